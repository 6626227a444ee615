//! A look at a worktree is used until the next child process begins. So whoever runs, whatever it does is seen by the next
//! look: a test, an agent and a reviewer each get one of their own, and what the run writes itself is no change.

use std::fs;

use arborist_testkit::TestRepo;

const PLAN: &str = "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n";

/// Nobody can read this in less than minutes.
const HUGE: &str = "1000G";

fn repo(agent: &str, review: &str) -> TestRepo {
    let agent = format!(
        "once() {{ [ ! -e \"$ROOT/$1\" ] && touch \"$ROOT/$1\"; }}
case \"$prompt\" in
  Review*) {review}
    echo APPROVED ;;
  *) {agent}
    echo $ARBORIST_TASK >> $ARBORIST_TASK.txt; echo done ;;
esac"
    );
    let repo = TestRepo::planned("tasks.md", PLAN, &agent);
    repo.write("kept.txt", "kept\n");
    repo.commit("a file\n");
    repo
}

/// What each task has brought, and nothing else.
fn is_exact(repo: &TestRepo) {
    let names = repo.git(["ls-tree", "--name-only", "main"]).answer();
    let ours: Vec<&str> =
        names.lines().filter(|name| name.starts_with('T') || name.contains("kept")).collect();
    assert_eq!(ours, ["T001.txt", "T002.txt", "T003.txt", "kept.txt"], "{names}");
    for task in ["T001", "T002", "T003"] {
        assert_eq!(repo.git(["show", &format!("main:{task}.txt")]).answer().lines().last(), Some(task));
    }
    assert_eq!(repo.git(["show", "main:kept.txt"]).answer(), "kept");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_named_pipe_is_found_after_every_kind_of_child_process() {
    let deed = "rm -f kept.txt && mkfifo kept.txt";
    for isolated in [false, true] {
        let args: &[&str] = if isolated { &["--isolate"] } else { &[] };
        let gardener = |repo: &TestRepo, test: &str| {
            let command = ["gardener", "--test-command", test];
            repo.arborist(command.iter().chain(args)).succeeds();
            assert_eq!(fs::read_to_string(repo.path("kept.txt")).unwrap(), "kept\n");
            is_exact(repo);
            repo.subjects()
        };
        let by_agent = repo(&format!("if [ $ARBORIST_TASK = T002 ] && once a; then {deed}; fi"), "");
        assert!(gardener(&by_agent, "true").contains("@T002@implement-fail"));
        let by_reviewer = repo("", &format!("if [ $ARBORIST_TASK = T002 ] && once a; then {deed}; fi"));
        gardener(&by_reviewer, "true");
        let by_test = repo("", "");
        let once = by_test.root().join("once");
        let test = format!(
            "if [ \"$ARBORIST_TASK\" = T002 ] && [ ! -e '{0}' ]; then touch '{0}'; {deed}; fi",
            once.display()
        );
        assert!(gardener(&by_test, &test).contains("@T002@test-fail"));
    }
}

#[test]
fn changes_that_a_reviewer_makes_in_the_checkout_are_undone_before_the_next_task() {
    let repo = repo(
        "",
        "if once $ARBORIST_TASK; then cd \"$ROOT/repo\" && echo x >> kept.txt && echo y > new.txt; fi",
    );
    repo.arborist(["gardener"]).succeeds();
    assert!(!repo.path("new.txt").exists());
    is_exact(&repo);
}

#[test]
fn a_huge_file_that_is_no_longer_ignored_is_not_read() {
    let rules = ["echo '!/spec/logs/' > .gitignore", "mkdir -p spec && echo '!logs/' > spec/.gitignore"];
    for rule in rules {
        let deed = format!(
            "if [ $ARBORIST_TASK = T002 ] && once a; then {rule}; truncate -s {HUGE} spec/logs/huge; fi"
        );
        let repo = repo(&deed, "");
        // The file was moved away, and the second attempt takes the rule back.
        let fix = "[ $ARBORIST_TASK = T001 ] || rm -f .gitignore spec/.gitignore";
        let script = fs::read_to_string(repo.root().join("agent.sh")).unwrap();
        fs::write(repo.root().join("agent.sh"), script.replace(&deed, &format!("{fix}\n{deed}"))).unwrap();
        repo.arborist(["gardener"]).succeeds();
        assert!(repo.subjects().contains("@T002@implement-fail"), "{rule}: {}", repo.subjects());
        assert!(repo.path(".git/arborist-aside/1/spec/logs/huge").exists());
        repo.arborist(["state", "--exit-code"]).succeeds();
    }
}
