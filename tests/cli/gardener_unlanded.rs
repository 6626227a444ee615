//! In the checkout, beside what stands elsewhere: tasks on branches of their own, and landings that are parked.

use std::fs;

use arborist_testkit::TestRepo;

use crate::pasted_hints::{hinted, paste};

const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";

/// Writes a file for each task; fails while `$ROOT/broken` is there.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) if [ -e "$ROOT/broken" ]; then kill $PPID; sleep 60; fi; echo APPROVED ;;
  *) echo "$ARBORIST_TASK" >> "${FILE:-$ARBORIST_TASK.txt}" ;;
esac
"#;

fn repo(agent: &str) -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, agent)
}

#[test]
fn a_task_started_in_a_lane_is_not_started_again_in_the_checkout() {
    let repo = repo(WORKER);
    fs::write(repo.root().join("broken"), "").unwrap();
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).exits(143).err("stopped");
    for command in [["garden", "T001"].as_slice(), &["gardener"]] {
        repo.arborist(command)
            .exits(2)
            .err("error: task 'T001' was started on its own branch, 'arborist/task/main/T001'")
            .err("hint: to continue it there, run: git arborist gardener --isolate --only T001");
    }
    assert_eq!(repo.calls(), 2, "nobody was asked");
    fs::remove_file(repo.root().join("broken")).unwrap();
    repo.arborist(["garden", "T002"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).succeeds().out("1 completed");
    assert_eq!(repo.read("T001.txt"), "T001\n", "the work is not done twice");
    repo.arborist(["gardener"]).succeeds().out("nothing is left to do");
}

#[test]
fn a_complete_task_that_has_not_landed_is_not_done_again() {
    let both = "touch \"$ROOT/at-$ARBORIST_TASK\"; until [ -e \"$ROOT/at-T001\" ] && [ -e \"$ROOT/at-T002\" ]; do sleep 0.02; done";
    let repo = repo(&format!("FILE=same.txt\n{both}\n{WORKER}"));
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--keep-going"])
        .exits(2)
        .out("1 did not land")
        .out("not landed ");
    let state = repo.arborist(["state", "--json"]).succeeds().stdout();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let is_left = |task: &&serde_json::Value| task["landed"] == false && task["id"] != "phase-1";
    let left = state["tasks"].as_array().unwrap().iter().find(is_left).unwrap();
    let left = left["id"].as_str().unwrap();
    let calls = repo.calls();
    for command in [["garden", left].as_slice(), &["gardener"]] {
        repo.arborist(command)
            .exits(2)
            .err(&format!("error: task '{left}' is complete on its own branch"))
            .err("and has not landed because of a conflict: both sides added same.txt")
            .err(&format!("hint: resolve its conflict with: git arborist merge resolve {left}"));
    }
    assert_eq!(repo.calls(), calls, "nobody was asked");
    let said = repo.arborist(["gardener"]).exits(2).stderr();
    paste(&repo, &hinted(&said, "resolve its conflict with: ")).succeeds().out(&format!("resolve-{left}"));
    repo.arborist(["merge", "drop", left]).succeeds();
    let said = repo.arborist(["gardener"]).exits(2).stderr();
    paste(&repo, &hinted(&said, "land it with: ")).exits(2).err("is in conflict");
}

#[test]
fn a_run_in_a_checkout_with_a_parked_landing_is_refused() {
    let repo = repo(WORKER);
    repo.write("T001.txt", "mine\n");
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).exits(2).out("parked");
    repo.arborist(["gardener", "--allow-dirty"])
        .exits(2)
        .err("error: a landing on 'main' is parked: changed files are in the way (T001.txt)")
        .err("git merge --ff-only --no-overwrite-ignore refs/arborist/landing/main");
    fs::remove_file(repo.path("T001.txt")).unwrap();
    repo.git(["merge", "-q", "--ff-only", "refs/arborist/landing/main"]).succeeds();
    repo.arborist(["gardener"]).succeeds().out("1 completed (T002)");
    assert_eq!(repo.calls(), 4);
}
