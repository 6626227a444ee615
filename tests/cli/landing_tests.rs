//! Landings without configured gates: the test command of the run has to pass on the merged commit.

use arborist_testkit::{Run, TestRepo};

use crate::queue_repo::QueueRepo;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n";
/// Writes a file of the task's name.
const WORKER: &str =
    "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\" ;;\nesac";
/// Each task passes it alone; both together do not.
const NOT_BOTH: &str = "! test -e T001.txt || ! test -e T002.txt";

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, WORKER)
}

fn gates(repo: &TestRepo) -> Vec<String> {
    let format = "--format=%(trailers:key=Arborist-Gate,valueonly,separator=)";
    let log = repo.git(["log", "--merges", format, "main"]).answer();
    log.lines().map(str::to_owned).collect()
}

fn landed(repo: &TestRepo) -> usize {
    repo.git(["ls-tree", "--name-only", "main", "T001.txt", "T002.txt"]).answer().lines().count()
}

/// Runs both tasks at once, and returns what was said.
fn run(repo: &TestRepo, args: &[&str]) -> Run {
    repo.arborist([&["gardener", "--jobs", "2"], args].concat())
}

#[test]
fn two_tasks_that_fail_the_tests_only_together_do_not_both_land() {
    let repo = repo();
    run(&repo, &["--test-command", NOT_BOTH]).exits(1);
    assert_eq!(landed(&repo), 1);
    assert_eq!(gates(&repo), ["test"]);
    repo.arborist(["state", "--exit-code"]).exits(1);
}

#[test]
fn a_test_command_in_the_frozen_configuration_gates_landings() {
    let repo = repo();
    repo.write(".arborist/config.toml", format!("test-command = \"{NOT_BOTH}\"\n"));
    repo.commit("configuration\n");
    run(&repo, &["--yes", "--keep-going"]).exits(1);
    assert_eq!((landed(&repo), gates(&repo)), (1, vec!["test".to_owned()]));
}

#[test]
fn configured_gates_replace_the_test_command() {
    let repo = repo();
    repo.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    run(&repo, &["--test-command", NOT_BOTH]).succeeds();
    assert_eq!(gates(&repo), ["check", "check"]);
}

#[test]
fn a_test_command_of_a_single_task_gates_its_landing() {
    let test = |command: &str| serde_json::json!([{ "type": "unit", "command": command }]);
    let plan = serde_json::json!({
        "nodes": {
            "T001": { "id": "T001", "name": "a", "test_commands": test("test -e T001.txt && ! test -e T002.txt") },
            "T002": { "id": "T002", "name": "b", "test_commands": test("test -e T002.txt && ! test -e T001.txt") },
        },
        "root_ids": ["T001", "T002"],
    });
    let repo = TestRepo::planned("task-tree.json", &plan.to_string(), WORKER);
    run(&repo, &["--yes"]).exits(1);
    assert_eq!(landed(&repo), 1);
    assert_eq!(gates(&repo), ["unit test"]);
}

#[test]
fn a_test_command_that_finds_no_tests_yet_lets_the_first_tasks_land() {
    let repo = repo();
    let empty = "echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";
    run(&repo, &["--test-command", empty]).succeeds();
    assert_eq!(landed(&repo), 2);
}

#[test]
fn landings_without_any_test_are_named_in_one_warning() {
    let repo = repo();
    let said = run(&repo, &[]).succeeds().stderr();
    assert_eq!(said.matches("not tested").count(), 1, "{said}");
    assert_eq!(gates(&repo), ["none", "none"]);
}

#[test]
fn landings_by_hand_are_tested_with_the_test_command() {
    let queue_repo = QueueRepo::with_finished(&["T001", "T002"]);
    queue_repo.git(["config", "arborist.test-command", NOT_BOTH]).succeeds();
    queue_repo.merge(&["T001", "T002"]).exits(1);
    assert_eq!((landed(&queue_repo), gates(&queue_repo)), (1, vec!["test".to_owned()]));

    let queue_repo = QueueRepo::with_finished(&["T001", "T002"]);
    queue_repo.merge(&["T001", "T002", "--test-command", NOT_BOTH]).exits(1);
    assert_eq!((landed(&queue_repo), gates(&queue_repo)), (1, vec!["test".to_owned()]));
}

#[test]
fn a_landing_by_hand_without_a_test_warns_once() {
    let queue_repo = QueueRepo::with_finished(&["T001", "T002"]);
    let said = queue_repo.merge(&["T001", "T002"]).succeeds().stderr();
    assert_eq!(said.matches("not tested").count(), 1, "{said}");
    assert_eq!(gates(&queue_repo), ["none", "none"]);
}

#[test]
fn a_test_command_given_to_the_run_also_gates_landings_by_hand() {
    let repo = repo();
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    run(&repo, &["--test-command", NOT_BOTH]).exits(1);
    repo.arborist(["merge", "run"]).exits(1);
    assert_eq!((landed(&repo), gates(&repo)), (1, vec!["test".to_owned()]));
}

#[test]
fn with_an_unapproved_test_command_from_a_record_nothing_lands_until_it_is_given() {
    let repo = repo();
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    run(&repo, &["--test-command", NOT_BOTH]).exits(1);
    std::fs::remove_dir_all(repo.home().join(".local/state/git-arborist/approved")).unwrap();
    repo.arborist(["merge", "run"]).exits(1).matches_snapshot();
    assert_eq!(landed(&repo), 0, "nothing lands untested");
    repo.arborist(["merge", "run", "--test-command", NOT_BOTH]).exits(1);
    assert_eq!((landed(&repo), gates(&repo)), (1, vec!["test".to_owned()]));
}

#[test]
fn a_gate_sees_only_committed_files_and_configured_copies() {
    let queue_repo = QueueRepo::with_finished(&["T001"]);
    queue_repo.write(".gitignore", "hidden.txt\n");
    queue_repo.commit("ignore\n");
    queue_repo.write("hidden.txt", "only here");
    queue_repo.git(["config", "arborist.test-command", "test -e hidden.txt"]).succeeds();
    assert_ne!(queue_repo.merge(&["T001"]).code(), 0);
    assert_eq!(landed(&queue_repo), 0);
    queue_repo.git(["config", "arborist.worktree.copy", "hidden.txt"]).succeeds();
    queue_repo.merge(&["retry", "T001"]).succeeds();
    queue_repo.merge(&["run"]).succeeds();
    assert_eq!(landed(&queue_repo), 1);
}
