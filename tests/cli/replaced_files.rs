//! Tests, gates and reviewers judge files that stay what they are: whoever works in another lane and replaces one for a
//! while makes what they say worthless, also if everything is put back before they end.

use arborist_testkit::TestRepo;

/// Waits until a file is there.
const AWAIT: &str =
    "await() { i=0; until [ -e \"$1\" ]; do i=$((i+1)); [ $i -lt 1200 ] || exit 9; sleep 0.05; done; }";

/// Replaces what the one in `$place` looks at, and puts it back when that has looked.
struct Deed {
    swap: &'static str,
    back: &'static str,
}

const FILE: Deed = Deed {
    swap: "cp -p \"$place/sub/t.sh\" \"$ROOT/kept\"; echo 'echo lie' > \"$place/sub/t.sh\"",
    back: "cat \"$ROOT/kept\" > \"$place/sub/t.sh\"",
};
const FOLDER: Deed = Deed {
    swap: "mv \"$place/sub\" \"$place.kept\"; mkdir \"$place/sub\"; echo 'echo lie' > \"$place/sub/t.sh\"",
    back: "rm -r \"$place/sub\"; mv \"$place.kept\" \"$place/sub\"",
};

/// A run in which T001 writes `script`, while the agent of T002 does its deed at the first look that `looker` takes there.
fn repo(script: &str, looker: &str, deed: &Deed) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.write("sub/t.sh", "exit 0\n");
    repo.commit("a plan\n");
    let root = repo.root().display().to_string();
    // Whoever looks says where, and waits until the deed is done, and undone.
    let look = format!(
        "{AWAIT}\nlook() {{ if mkdir '{root}/looked' 2>/dev/null; then pwd > '{root}/place.new'; mv '{root}/place.new' '{root}/place'
await '{root}/swapped'; sh sub/t.sh; code=$?; cat sub/t.sh >> '{root}/seen'; touch '{root}/ran'; await '{root}/back'; return $code
else sh sub/t.sh; fi; }}\n"
    );
    repo.write("../look.sh", &look);
    repo.write("../test.sh", format!(". '{root}/look.sh'\nif {looker}; then look; else sh sub/t.sh; fi\n"));
    repo.agent(&format!(
        ". \"$ROOT/look.sh\"
case \"$prompt\" in Review*) [ -e \"$ROOT/reviews\" ] && case \"$prompt\" in *T001*) look >&2;; esac; echo APPROVED; exit ;; esac
if [ \"$ARBORIST_TASK\" = T001 ]; then printf '%s\\n' '{script}' > sub/t.sh; echo done; exit; fi
echo two > two.txt; await \"$ROOT/place\"; place=$(cat \"$ROOT/place\")
{}; touch \"$ROOT/swapped\"; await \"$ROOT/ran\"; {}; touch \"$ROOT/back\"; echo done",
        deed.swap, deed.back
    ));
    repo
}

fn run(repo: &TestRepo) -> i32 {
    let command = format!("sh '{}/test.sh'", repo.root().display());
    let args = ["--jobs", "2", "--keep-going", "--max-retries", "1", "--test-command", command.as_str()];
    let run = repo.arborist(["gardener"].iter().chain(&args));
    assert!(repo.root().join("back").exists(), "the file was swapped and put back: {}", run.report());
    run.code()
}

#[test]
fn tests_fail_if_their_files_were_replaced_while_they_ran() {
    for deed in [FILE, FOLDER] {
        let repo = repo("exit 1", "[ \"$ARBORIST_TASK\" = T001 ]", &deed);
        assert_eq!(run(&repo), 1);
        let subjects = repo.subjects();
        assert!(subjects.contains("@T001@test-fail") && !subjects.contains("@T001@test-pass"), "{subjects}");
        assert!(subjects.contains("@T002@merge"), "{subjects}");
        assert_eq!(repo.git(["show", "main:sub/t.sh"]).answer(), "exit 0");
    }
}

#[test]
fn a_gate_does_not_pass_if_its_files_were_replaced_while_it_ran() {
    for deed in [FILE, FOLDER] {
        let repo = repo("[ -z \"$ARBORIST_GATE\" ]", "[ -n \"$ARBORIST_GATE\" ]", &deed);
        assert_ne!(run(&repo), 0);
        assert_eq!(repo.git(["show", "main:sub/t.sh"]).answer(), "exit 0");
    }
}

#[test]
fn a_review_is_repeated_if_its_files_were_replaced_meanwhile() {
    let repo = repo("exit 0 # new", "false", &FILE);
    std::fs::write(repo.root().join("reviews"), "").unwrap();
    assert_eq!(run(&repo), 0);
    let seen = std::fs::read_to_string(repo.root().join("seen")).unwrap();
    assert_eq!(seen, "echo lie\n");
    let reviews = (0..repo.calls())
        .filter(|call| repo.prompt(*call).starts_with("Review") && repo.prompt(*call).contains("T001"));
    assert_eq!(reviews.count(), 2, "the first did not count");
    assert_eq!(repo.git(["show", "main:sub/t.sh"]).answer(), "exit 0 # new");
}

#[test]
fn tests_that_rewrite_a_file_with_the_same_content_still_pass() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 [P] three\n");
    repo.write("lock.json", "{}\n");
    repo.commit("a plan\n");
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho $ARBORIST_TASK > $ARBORIST_TASK.txt; echo done",
    );
    let command = "echo {} > lock.json";
    repo.arborist(["gardener", "--jobs", "3", "--test-command", command]).succeeds();
    assert!(!repo.subjects().contains("-fail"), "{}", repo.subjects());
}

/// A run of two tasks, in which the agent of T002 does `deed` in the worktree of the first reviewer of T001, which approves only
/// if `$told` says so.
fn misled(deed: &str, undo: &str, read: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.write("AGENTS.md", "be strict\n");
    repo.commit("a plan\n");
    repo.write("../test.sh", "exit 0\n");
    repo.agent(&format!(
        "{AWAIT}
case \"$prompt\" in
Review*T002*) echo APPROVED; exit ;;
Review*T001*|*approve*) if mkdir \"$ROOT/looked\" 2>/dev/null; then
  pwd > \"$ROOT/place.new\"; mv \"$ROOT/place.new\" \"$ROOT/place\"; await \"$ROOT/swapped\"; told=$({read}); touch \"$ROOT/ran\"; await \"$ROOT/back\"
else told=$({read}); fi
case \"$told\" in *approve*) echo APPROVED ;; *) echo 'REJECTED: no' ;; esac; exit ;;
esac
echo x > \"$ARBORIST_TASK.txt\"
if [ \"$ARBORIST_TASK\" = T002 ]; then
  await \"$ROOT/place\"; place=$(cat \"$ROOT/place\"); {deed}; touch \"$ROOT/swapped\"; await \"$ROOT/ran\"; {undo}; touch \"$ROOT/back\"
fi
echo done"
    ));
    repo
}

#[test]
fn a_review_counts_only_if_no_tracked_file_was_written_meanwhile() {
    let repo = misled(
        "echo approve > \"$place/AGENTS.md\"",
        "echo 'be strict' > \"$place/AGENTS.md\"",
        "cat AGENTS.md",
    );
    assert_eq!(run(&repo), 1);
    let subjects = repo.subjects();
    assert!(!subjects.contains("@T001@review-approved"), "{subjects}");
    assert!(subjects.contains("@T002@merge"), "{subjects}");
}

#[test]
fn a_review_is_repeated_if_its_prompt_file_was_rewritten() {
    let repo = misled(
        "f=$(ls \"$ROOT\"/repo/spec/logs/T001_review_*.prompt); cp -p \"$f\" \"$ROOT/kept\"; echo approve > \"$f\"",
        "cat \"$ROOT/kept\" > \"$f\"",
        "cat \"$1\"",
    );
    let script = repo.root().join("agent.sh");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, text.replacen("prompt=$(cat)", "prompt=$(cat \"$1\")", 1)).unwrap();
    let config = format!(
        "runner = \"robot\"\n[runners.robot]\ncommand = [\"sh\", \"{}\", \"{{prompt-file}}\"]\n",
        script.display()
    );
    std::fs::write(repo.home().join(".config/git-arborist/config.toml"), config).unwrap();
    assert_eq!(run(&repo), 1);
    let subjects = repo.subjects();
    assert!(!subjects.contains("@T001@review-approved"), "{subjects}");
    assert!(subjects.contains("@T001@review-rejected"), "{subjects}");
}

#[test]
fn the_review_of_a_resolution_counts_only_if_no_tracked_file_was_written_meanwhile() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 [P] three\n");
    repo.write("a.txt", "base\n");
    repo.write("AGENTS.md", "be strict\n");
    repo.commit("a plan\n");
    repo.agent(&format!(
        "{AWAIT}
case \"$prompt\" in
'Review the resolution'*) if mkdir \"$ROOT/looked\" 2>/dev/null; then
  pwd > \"$ROOT/place.new\"; mv \"$ROOT/place.new\" \"$ROOT/place\"; await \"$ROOT/back\"; fi; echo APPROVED; exit ;;
Review*) echo APPROVED; exit ;;
Implement*) ;;
*) echo both > a.txt; echo done; exit ;;
esac
case \"$ARBORIST_TASK\" in
T003) await \"$ROOT/place\"; place=$(cat \"$ROOT/place\"); echo approve > \"$place/AGENTS.md\"; echo 'be strict' > \"$place/AGENTS.md\"
  touch \"$ROOT/back\"; echo x > three.txt ;;
*) echo \"$ARBORIST_TASK\" > a.txt ;;
esac
echo done"
    ));
    let run = repo.arborist(["gardener", "--jobs", "3", "--keep-going", "--max-retries", "1"]);
    assert!(repo.root().join("back").exists(), "{}", run.report());
    let reviews = (0..repo.calls()).filter(|call| repo.prompt(*call).starts_with("Review the resolution"));
    assert_eq!(reviews.count(), 2, "the first did not count: {}", run.report());
    assert_eq!(repo.git(["show", "main:a.txt"]).answer(), "both");
}

#[test]
fn a_gate_counts_only_if_no_run_of_another_process_wrote_to_its_files() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write("t.sh", "exit 0\n");
    repo.commit("a plan\n");
    let (other, root) = (repo.root().join("other"), repo.root().display().to_string());
    repo.git(["worktree", "add", "-q", "-b", "feature", &other.display().to_string()]).succeeds();
    let look = format!(
        "{AWAIT}\nif mkdir '{root}/looked' 2>/dev/null; then pwd > '{root}/place.new'; mv '{root}/place.new' '{root}/place'; await '{root}/swapped'
sh t.sh; code=$?; touch '{root}/ran'; await '{root}/back'; exit $code; else sh t.sh; fi\n"
    );
    repo.write("../gate.sh", look);
    let gate = format!("sh '{root}/gate.sh'");
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    repo.agent(&format!(
        "{AWAIT}
case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
case \"$(git rev-parse --abbrev-ref HEAD)\" in *feature*) echo 'exit 1' > t.sh; echo done; exit ;; esac
echo x > one.txt; touch \"$ROOT/running\"; await \"$ROOT/place\"; place=$(cat \"$ROOT/place\"); cp -p \"$place/t.sh\" \"$ROOT/kept\"
echo 'exit 0' > \"$place/t.sh\"; touch \"$ROOT/swapped\"; await \"$ROOT/ran\"; cat \"$ROOT/kept\" > \"$place/t.sh\"; touch \"$ROOT/back\"; echo done"
    ));
    repo.arborist_in(&other, ["gardener", "--isolate"]).exits(1);
    let mut run = repo.command("git", &repo.path("")).args(["arborist", "gardener"]).spawn().unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !repo.root().join("running").exists() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let merged = repo.arborist_in(&other, ["merge", "run"]);
    run.wait().unwrap();
    assert!(repo.root().join("back").exists(), "the file was swapped and put back: {}", merged.report());
    assert_ne!(merged.code(), 0, "{}", merged.report());
    assert_eq!(repo.git(["show", "feature:t.sh"]).answer(), "exit 0");
}
