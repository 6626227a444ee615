//! Two runs of one branch that `git pull` has joined: each of two clones has worked on the branch.

use std::path::PathBuf;

use arborist_testkit::{TestRepo, WORKER};
use serde_json::Value;

/// A repository and its clone. Each has started a run, and the repository has pulled the run of the clone.
fn joined() -> (TestRepo, PathBuf) {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    let clone = repo.root().join("clone");
    repo.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
    repo.arborist_in(&clone, ["gardener", "--only", "T002"]).succeeds();
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.git(["pull", "-q", "--no-rebase", "--no-edit", clone.to_str().unwrap(), "main"]).succeeds();
    (repo, clone)
}

#[test]
fn after_a_merge_of_two_runs_the_state_of_the_first_parent_is_shown_with_a_hint() {
    let (repo, _clone) = joined();
    let run = repo.arborist(["state", "--json"]).succeeds();
    let state: Value = serde_json::from_str(&run.stdout()).unwrap();
    let state_of = |id: &str| {
        let tasks = state["tasks"].as_array().unwrap();
        tasks.iter().find(|task| task["id"] == id).unwrap()["state"].clone()
    };
    assert_eq!((state_of("T001"), state_of("T002")), ("complete".into(), "pending".into()));
    let run = run.err("warning: both sides of a merge started a run");
    run.err("hint: start a new run after both: git arborist gardener --new-run");
    repo.arborist(["state"]).succeeds().err("both sides of a merge started a run");
    repo.arborist(["gardener"]).exits(2).err("both sides of a merge started a run").err("gardener --new-run");
    repo.arborist(["gardener", "--new-run"]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds().never("both sides");
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn verify_checks_both_merged_runs_and_reports_their_merge_as_a_problem() {
    let (repo, clone) = joined();
    for args in [&["verify"][..], &["verify", "HEAD~3..HEAD"], &["verify", "--strict"]] {
        repo.arborist(args).exits(1).out("both sides of a merge started a run");
    }
    let run = repo.arborist(["verify", "--json"]).exits(1);
    let found: Value = serde_json::from_str(&run.stdout()).unwrap();
    let problems = found["problems"].as_array().unwrap();
    assert_eq!((problems.len(), &problems[0]["check"]), (1, &"run".into()), "{found:#}");
    let tasks: Vec<&Value> = found["tasks"].as_array().unwrap().iter().map(|task| &task["task"]).collect();
    assert_eq!(tasks, ["T001", "T002"], "{found:#}");
    // A third run joins them.
    repo.git_in(&clone, ["reset", "-q", "--hard", "HEAD~6"]).succeeds();
    repo.arborist(["gardener", "--new-run", "--only", "T001"]).succeeds();
    repo.arborist(["verify"]).exits(1).out("both sides of a merge started a run");
    repo.arborist(["verify", "HEAD~5..HEAD"]).succeeds().out("verified 1 task");
}

#[test]
fn tasks_completed_later_in_another_clone_are_not_reported_as_forged() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    let clone = repo.root().join("clone");
    repo.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
    repo.arborist_in(&clone, ["gardener"]).succeeds();
    repo.git(["pull", "-q", "--ff-only", clone.to_str().unwrap(), "main"]).succeeds();
    repo.arborist(["verify"]).succeeds().out("not checked (records)").out("T002");
    repo.arborist(["verify", "--strict"]).exits(1);
}
