//! What is ready: whatever is done passes on what it waits for itself, and every command agrees about that.

use arborist_testkit::TestRepo;
use serde_json::{Value, json};

use crate::gardener_task_selection::WORKER;

/// A ticked task between two that are open.
const TICKED_BETWEEN: &str =
    "- [ ] T001 lay the ground\n- [x] T002 fence it in\n- [ ] T003 build the house\n";

fn document(repo: &TestRepo, arguments: &[&str]) -> Value {
    serde_json::from_str(&repo.arborist(arguments).succeeds().stdout()).unwrap()
}

/// Whether a task is ready, and what it waits for.
fn readiness(repo: &TestRepo, id: &str) -> (bool, Value) {
    let state = document(repo, &["state", "--json"]);
    let tasks = state["tasks"].as_array().unwrap();
    let task = tasks.iter().find(|task| task["id"] == id).unwrap();
    (task["ready"].as_bool().unwrap(), task["waits_for"].clone())
}

#[test]
fn a_task_also_waits_for_the_dependencies_of_a_ticked_task_in_every_command() {
    let repo = TestRepo::planned("tasks.md", TICKED_BETWEEN, WORKER);
    assert_eq!(readiness(&repo, "T001"), (true, json!([])));
    assert_eq!(readiness(&repo, "T003"), (false, json!(["T001"])));
    repo.arborist(["state", "--ready"]).succeeds().out("T001").never("T003");
    let waves = document(&repo, &["plan", "--waves", "--format", "json"]);
    assert_eq!(waves["waves"], json!([["T001"], ["T003"]]));
    repo.arborist(["garden", "T003"]).exits(1).err("T001");
    drop(repo.arborist(["gardener", "--only", "T003"]));
    assert_eq!(repo.git(["ls-files", "T*.txt"]).answer(), "");
}

#[test]
fn a_task_after_a_ticked_one_does_not_start_if_a_dependency_of_the_ticked_one_fails() {
    let repo = TestRepo::planned("tasks.md", TICKED_BETWEEN, WORKER);
    std::fs::write(repo.root().join("broken"), "T001\n").unwrap();
    drop(repo.arborist(["gardener", "--keep-going"]));
    assert_eq!(repo.git(["ls-files", "T*.txt"]).answer(), "");
}

#[test]
fn a_tick_does_not_change_the_dependencies_of_a_plan() {
    let repo = TestRepo::planned("tasks.md", TICKED_BETWEEN, WORKER);
    let ticked = document(&repo, &["plan", "--format", "json"]);
    repo.write("tasks.md", TICKED_BETWEEN.replace("[x]", "[ ]"));
    let open = document(&repo, &["plan", "--format", "json"]);
    assert_eq!(ticked["nodes"]["T003"]["depends_on"], json!(["T002"]));
    assert_eq!(ticked["nodes"]["T003"]["depends_on"], open["nodes"]["T003"]["depends_on"]);
}

#[test]
fn tasks_after_a_complete_phase_wait_for_the_dependencies_of_that_phase() {
    let plan = "## Phase 1: Ground\n\n- [ ] T001 dig\n- [x] T002 fill\n\n## Phase 2: House\n\n- [x] T003 build\n\n\
                ## Phase 3: Garden\n\n- [ ] T004 plant\n";
    let repo = TestRepo::planned("tasks.md", plan, WORKER);
    assert_eq!(readiness(&repo, "T004"), (false, json!(["phase-1"])));
    let waves = document(&repo, &["plan", "--waves", "--format", "json"]);
    assert_eq!(waves["waves"], json!([["T001"], ["T004"]]));
    repo.arborist(["gardener"]).succeeds();
    let log = repo.git(["log", "--reverse", "--format=%s"]).answer();
    let first = |task: &str| log.find(task).unwrap();
    assert!(first("T001") < first("T004"), "{log}");
    assert_eq!(readiness(&repo, "T004").1, json!([]));
}
