//! A plan is frozen when a run first uses it, so that agents cannot tick or delete its tasks.

use arborist_testkit::TestRepo;

const PLAN: &str = "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n";

/// Works on its task, and runs `$ROOT/trick` in the checkout if it is there.
const AGENT: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) date +%N > "work-$n.txt"; [ ! -e "$ROOT/trick" ] || . "$ROOT/trick"; echo done ;;
esac
"#;

fn trick(repo: &TestRepo, script: &str) {
    std::fs::write(repo.root().join("trick"), script).unwrap();
}

/// The plan that the newest commit with such a trailer names.
fn frozen(repo: &TestRepo) -> String {
    let log = repo.git(["log", "--format=%(trailers:key=Arborist-Plan,valueonly,separator=)"]).answer();
    log.lines().find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

fn worked_on(repo: &TestRepo, task: &str) -> bool {
    let log = repo.git(["log", "--format=%s"]).answer();
    log.contains(&format!("task(main@{task}@implement-pass)"))
}

#[test]
fn a_run_that_began_without_a_plan_freezes_the_plan_before_its_first_task() {
    for tracked in [true, false] {
        let repo = TestRepo::init();
        repo.agent(AGENT);
        if tracked {
            repo.write("tasks.md", PLAN);
            repo.commit("a plan\n");
        }
        repo.arborist(["garden", "-m", "something else"]).succeeds();
        assert_eq!(frozen(&repo), "none");
        repo.write("tasks.md", PLAN);
        trick(&repo, "sed -i 's/\\[ \\] T002/[x] T002/' tasks.md");
        repo.arborist(["gardener"]).succeeds();
        let (path, blob) = frozen(&repo).rsplit_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(path, "tasks.md");
        assert_eq!(format!("{}\n", repo.git(["cat-file", "blob", &blob]).answer()), PLAN);
        assert!(worked_on(&repo, "T002"), "a box that an agent ticked does not count");
        assert!(worked_on(&repo, "T003"));
    }
}

#[test]
fn boxes_ticked_by_the_agent_of_an_unplanned_task_do_not_count() {
    let repo = TestRepo::planned("tasks.md", PLAN, AGENT);
    trick(&repo, "sed -i 's/\\[ \\]/[x]/' tasks.md");
    repo.arborist(["garden", "-m", "something else"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert!(["T001", "T002", "T003"].iter().all(|task| worked_on(&repo, task)));
}

#[test]
fn a_run_stops_if_the_agent_of_an_unplanned_task_deleted_tasks_from_the_plan() {
    let repo = TestRepo::planned("tasks.md", PLAN, AGENT);
    trick(&repo, "sed -i /T003/d tasks.md");
    repo.arborist(["garden", "-m", "something else"]).succeeds();
    repo.arborist(["gardener"]).exits(2).matches_snapshot();
    repo.arborist(["gardener", "--accept-changes"]).succeeds();
    assert!(!worked_on(&repo, "T003") && worked_on(&repo, "T002"));
}

#[test]
fn a_plan_that_the_user_changed_before_its_first_use_needs_no_acceptance() {
    let repo = TestRepo::planned("tasks.md", PLAN, AGENT);
    repo.arborist(["garden", "-m", "something else"]).succeeds();
    repo.write("tasks.md", format!("{PLAN}- [ ] T004 four\n"));
    repo.commit("more\n");
    repo.arborist(["gardener"]).succeeds();
    assert!(worked_on(&repo, "T004"));
}

#[test]
fn an_unplanned_task_does_not_unfreeze_the_plan() {
    let repo = TestRepo::planned("tasks.md", PLAN, AGENT);
    repo.arborist(["garden", "T001"]).succeeds();
    let before = frozen(&repo);
    assert!(before.starts_with("tasks.md@"));
    repo.arborist(["garden", "-m", "something else", "--accept-changes"]).succeeds();
    assert_eq!(frozen(&repo), before);
    trick(&repo, "sed -i 's/\\[ \\]/[x]/' tasks.md");
    repo.arborist(["garden", "-m", "yet another"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert!(worked_on(&repo, "T003"));
}

#[test]
fn an_unplanned_task_is_not_run_with_a_configuration_changed_by_an_agent() {
    let repo = TestRepo::planned("tasks.md", PLAN, AGENT);
    trick(&repo, "mkdir -p .arborist; echo 'max-retries = 9' > .arborist/config.toml");
    repo.arborist(["garden", "T001"]).succeeds();
    repo.arborist(["garden", "-m", "something else"]).exits(2).matches_snapshot();
    repo.arborist(["garden", "-m", "something else", "--accept-changes"]).succeeds();
}
