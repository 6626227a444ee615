//! Several gardeners on one repository at once: on one branch exactly one works, on two branches both do.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TestRepo, WORKER};

const PLAN: &str =
    "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 [P] do c\n- [ ] T004 [P] do d\n";

/// Waits for `$ROOT/go`, then writes a file of its own.
const WAITER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) until [ -e "$ROOT/go" ]; do sleep 0.05; done; echo "$ARBORIST_TASK" >> "$ARBORIST_TASK.txt" ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, WAITER)
}

fn start(repo: &TestRepo, dir: &Path) -> Child {
    let mut command = repo.command("git-arborist-gardener", dir);
    let piped = command.args(["--jobs", "2"]).stdin(Stdio::null()).stdout(Stdio::piped());
    piped.stderr(Stdio::piped()).spawn().unwrap()
}

fn merges(repo: &TestRepo, branch: &str) -> usize {
    let log = repo.git(["log", "--first-parent", "--format=%s", branch]).answer();
    log.lines()
        .filter(|line| line.starts_with(&format!("task({branch}@")) && line.contains("@merge)"))
        .count()
}

fn assert_no_locks_or_temporary_refs_are_left(repo: &TestRepo) {
    repo.git(["fsck", "--strict", "--no-dangling"]).succeeds().silent();
    let locks = Run::of(repo.command("find", &repo.path(".git")).args([".", "-name", "*.lock"]), b"");
    assert_eq!(locks.answer(), "");
    for kind in ["wip", "queue/tickets", "landing"] {
        assert_eq!(repo.git(["for-each-ref", &format!("refs/arborist/{kind}")]).answer(), "");
    }
}

#[test]
fn of_four_gardeners_on_one_branch_one_works_and_the_others_are_refused() {
    let repo = repo();
    let mut gardeners: Vec<Child> = (0..4).map(|_| start(&repo, &repo.path(""))).collect();
    let begun = Instant::now();
    while gardeners.iter_mut().filter_map(|gardener| gardener.try_wait().unwrap()).count() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(180), "more than one works");
        std::thread::sleep(Duration::from_millis(10));
    }
    fs::write(repo.root().join("go"), "").unwrap();
    let mut codes = Vec::new();
    for gardener in gardeners {
        let ended = gardener.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        if ended.status.code() == Some(3) {
            assert!(said.contains("error: a run of 'main' is active") && said.contains("process"), "{said}");
        }
        codes.push(ended.status.code().unwrap());
    }
    codes.sort_unstable();
    assert_eq!(codes, [0, 3, 3, 3]);
    assert_eq!((merges(&repo, "main"), repo.calls()), (4, 8), "nothing is done twice");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    assert_no_locks_or_temporary_refs_are_left(&repo);
}

#[test]
fn gardeners_on_two_branches_run_at_the_same_time_and_both_finish() {
    let repo = repo();
    let other = repo.root().join("other");
    repo.git(["worktree", "add", "-q", "-b", "other", other.to_str().unwrap()]).succeeds();
    let gardeners = [start(&repo, &repo.path("")), start(&repo, &other)];
    fs::write(repo.root().join("go"), "").unwrap();
    for gardener in gardeners {
        let ended = gardener.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    for (branch, dir) in [("main", repo.path("")), ("other", other)] {
        assert_eq!(merges(&repo, branch), 4);
        assert_eq!(repo.git_in(&dir, ["status", "--porcelain"]).answer(), "", "{branch} is clean");
        assert_eq!(fs::read_to_string(dir.join("T003.txt")).unwrap(), "T003\n");
        repo.arborist_in(&dir, ["state", "--exit-code"]).succeeds();
    }
    assert_eq!(repo.calls(), 16);
    assert_no_locks_or_temporary_refs_are_left(&repo);
}

#[test]
fn constant_packing_of_refs_stops_no_run_and_loses_no_turn() {
    let plan: String = (1..=5).map(|n| format!("- [ ] T00{n} do it\n")).collect();
    let repo = TestRepo::planned("tasks.md", &plan, WORKER);
    // It fails if a ref is locked at that moment.
    let pack = "while sleep 0.01; do git pack-refs --all --prune; done";
    let mut packing = repo.command("sh", &repo.path(""));
    let mut packing = packing.args(["-c", pack]).stderr(Stdio::null()).spawn().unwrap();
    let run = repo.arborist(["gardener", "--session-branch", "--test-command", "true"]);
    packing.kill().unwrap();
    packing.wait().unwrap();
    run.succeeds().out("5 completed").never("could not be recorded");
}
