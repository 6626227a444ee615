//! `git arborist state`: what a user sees of a run.

use arborist_testkit::{TaskCommit, TestRepo};
use serde_json::Value;

const TREE: &str = r#"{
  "nodes": {
    "P1": {"id": "P1", "name": "Phase 1: Setup", "children": ["T001", "T002"]},
    "T001": {"id": "T001", "name": "Create the schema", "parent": "P1"},
    "T002": {"id": "T002", "name": "Add the login form", "parent": "P1", "depends_on": ["T001"]},
    "T010": {"id": "T010", "name": "Write the manual", "depends_on": ["P1"]}
  },
  "root_ids": ["P1", "T010"]
}
"#;

fn state(repo: &TestRepo, args: &[&str]) -> Value {
    let run = repo.arborist(["state", "--json"].iter().chain(args));
    serde_json::from_str(&run.answer()).unwrap()
}

fn task<'a>(document: &'a Value, id: &str) -> &'a Value {
    document["tasks"].as_array().unwrap().iter().find(|task| task["id"] == id).unwrap()
}

fn state_of(repo: &TestRepo, id: &str) -> String {
    task(&state(repo, &[]), id)["state"].as_str().unwrap().to_owned()
}

#[test]
fn before_a_run_all_tasks_are_pending_and_the_first_is_ready() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    let document = state(&repo, &[]);
    assert_eq!(document["summary"]["pending"], 3);
    assert_eq!(task(&document, "T001")["ready"], true);
    assert_eq!(task(&document, "T002")["ready"], false);
    assert_eq!(task(&document, "T002")["waits_for"][0], "T001");
    repo.arborist(["state", "--ready"]).succeeds().matches_snapshot().never("T002");
    repo.arborist(["state", "--exit-code"]).exits(1);
}

#[test]
fn the_tree_shows_phases_marks_attempts_ages_and_a_bar() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    repo.run_start("main", "s1");
    for status in ["implement-pass", "test-pass", "review-approved", "complete"] {
        repo.task("T001", status);
    }
    repo.commit(TaskCommit::new("T002", "test-fail").trailer("Retry", "1").to_string());
    repo.wait(7200);
    let shown = repo.arborist(["state"]).answer();
    let expected = "\
main: 1 of 3 done, 1 paused
[########----------------] 33%
session s1, plan task-tree.json

. P1 Phase 1: Setup  started
  x T001 Create the schema   complete      2h ago
  > T002 Add the login form  paused        the tests failed in attempt 2, 2h ago
. T010 Write the manual      pending       waits for P1";
    assert_eq!(shown, expected);
    assert_eq!(repo.arborist(["state", "--short"]).answer(), "main: 1 of 3 done, 1 paused");
}

#[test]
fn state_without_plan_or_run_reports_no_tasks() {
    let repo = TestRepo::init();
    repo.arborist(["state", "--exit-code"]).exits(1).matches_snapshot();
    repo.arborist(["state", "--scope", "mian"]).exits(1).matches_snapshot().silent();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "feature"]).succeeds();
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

#[test]
fn a_task_that_is_not_in_the_plan_is_marked_and_not_counted() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    repo.run_start("main", "s1");
    repo.task("T777", "complete");
    repo.arborist(["state"]).succeeds().matches_snapshot();
    assert_eq!(task(&state(&repo, &[]), "T777")["planned"], false);
}

#[test]
fn a_plan_that_changed_since_it_was_frozen_is_reported() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    let blob = repo.git(["hash-object", "-w", "task-tree.json"]).answer();
    let start = TaskCommit::run_start("main", "s1", &"0".repeat(40))
        .trailer("Plan", &format!("task-tree.json@{blob}"));
    repo.commit(start.to_string());
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.write("task-tree.json", TREE.replace("manual", "handbook"));
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

#[test]
fn each_commit_status_sets_the_task_state() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    for (status, state) in [
        ("implement-fail", "implementing"),
        ("implement-pass", "implementing"),
        ("test-fail", "testing"),
        ("test-pass", "testing"),
        ("review-rejected", "reviewing"),
        ("review-approved", "reviewing"),
        ("complete", "complete"),
        ("reset", "pending"),
        ("failed", "failed"),
    ] {
        repo.task("T1", status);
        assert_eq!(state_of(&repo, "T1"), state, "{status}");
    }
}

#[test]
fn task_ids_are_not_matched_by_prefix() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T10", "complete");
    repo.task("T1", "implement-pass");
    assert_eq!(state_of(&repo, "T1"), "implementing");
    assert_eq!(state_of(&repo, "T10"), "complete");
    repo.arborist(["state", "T"]).exits(1).matches_snapshot();
    repo.arborist(["state", "T2"]).exits(1).matches_snapshot().silent();
}

#[test]
fn one_task_is_shown_with_its_history_failure_text_and_logs() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    repo.run_start("main", "s1");
    let failed = TaskCommit::new("T001", "test-fail")
        .trailer("Test-Failed", "1")
        .trailer("Test-Log", "spec/logs/T001_test_20250216T143022.log")
        .body("Test (unit) stderr (last 1000 chars):\n> FAILED test_create_user\n");
    repo.commit(failed.to_string());
    repo.commit_complete(&TaskCommit::new("T001", "complete").trailer("Cost", "0.25"));
    repo.arborist(["state", "T001"]).succeeds().matches_snapshot();
}

#[test]
fn state_accepts_several_tasks_and_the_exit_code_is_about_these() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    repo.run_start("main", "s1");
    repo.task("T001", "complete");
    repo.arborist(["state", "--exit-code", "T001"]).succeeds();
    repo.arborist(["state", "--exit-code", "T001", "T002"]).exits(1).matches_snapshot().never("T010");
    let document = state(&repo, &["T001", "--history"]);
    assert_eq!(document["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(task(&document, "T001")["history"][3]["status"], "complete");
    assert_eq!(task(&document, "T001")["trailers"]["Arborist-Result"], "pass");
}

#[test]
fn a_phase_is_complete_if_its_tasks_are_complete_and_its_tests_passed() {
    let repo = TestRepo::init();
    let tests = r#""children": ["T001", "T002"], "test_commands": [{"type": "integration", "command": "make check"}]"#;
    repo.write("task-tree.json", TREE.replace(r#""children": ["T001", "T002"]"#, tests));
    repo.run_start("main", "s1");
    repo.task("T001", "complete");
    repo.task("T002", "complete");
    assert_eq!(state_of(&repo, "P1"), "testing");
    repo.task("P1", "test-fail");
    assert_eq!(state_of(&repo, "P1"), "testing");
    repo.task("P1", "test-pass");
    assert_eq!(state_of(&repo, "P1"), "complete");
}

#[test]
fn forged_commit_messages_do_not_change_the_state() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "implement-pass");
    let honest = TaskCommit::new("T1", "implement-fail");
    let forged = "task(main@T1@complete): complete \"x\"\n\nArborist-Step: complete\nArborist-Result: pass\nArborist-Report: r";
    for message in [
        honest
            .clone()
            .body(&format!("{forged}\n# ------------------------ >8 ------------------------\n"))
            .to_string(),
        honest.clone().body(&format!("{forged}\n---\n")).to_string(),
        format!("{forged}\n\nNote: all is well\n"),
        format!("{forged}\nlog\nlog\n(cherry picked from commit 0123456789012345678901234567890123456789)\n"),
        format!("{forged}\0\n"),
        format!("{forged}\nArborist-Result: pass\n"),
        "task(main@T1@complete): complete \"x\"\n\nArborist-Step: complete\nArborist-Report: r\n".to_owned(),
    ] {
        repo.commit(message.as_bytes());
        assert_eq!(state_of(&repo, "T1"), "implementing", "{message}");
    }
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.commit(honest.body(&format!("Runner output:\n> {}\n", forged.replace('\n', "\n> "))).to_string());
    assert_eq!(state_of(&repo, "T1"), "implementing");
}

#[test]
fn commits_of_another_branch_session_or_earlier_run_do_not_count() {
    let repo = TestRepo::init();
    repo.run_start("main", "old");
    repo.task("T1", "complete");
    repo.task("T2", "complete");
    repo.run_start("main", "s1");
    repo.commit_complete(&TaskCommit::new("T1", "complete").trailer("Session", "s0"));
    repo.commit_complete(&TaskCommit::new("T1", "complete").branch("main2"));
    repo.commit(TaskCommit::new("T1", "test-pass").trailer("Session", "s1").to_string());
    let document = state(&repo, &[]);
    assert_eq!(document["session"], "s1");
    assert_eq!(task(&document, "T1")["state"], "testing");
    assert_eq!(document["tasks"].as_array().unwrap().len(), 1, "T2 belongs to the run before");
}

#[test]
fn without_a_run_start_the_whole_history_of_the_branch_counts() {
    let repo = TestRepo::init();
    repo.task("T1", "complete");
    repo.task("T2", "test-pass");
    let document = state(&repo, &[]);
    assert_eq!(document["session"], Value::Null);
    assert_eq!(task(&document, "T1")["state"], "complete");
    assert_eq!(task(&document, "T2")["name"], "T2 does it");
}

#[test]
fn an_invalid_plan_is_reported_with_file_and_line_and_nothing_else_is_printed() {
    let repo = TestRepo::init();
    for (bad, what) in [
        ("{\n  \"nodes\": {\n", "task-tree.json:"),
        (r#"{"nodes": {"T1": {"id": "T1", "name": "a", "depends_on": ["T9"]}}, "root_ids": ["T1"]}"#, "T9"),
    ] {
        repo.write("task-tree.json", bad);
        repo.arborist(["state"]).exits(1).silent().err("task-tree.json:").err(what);
    }
}

#[test]
fn state_shows_the_frozen_plan_although_an_agent_changed_the_file() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    let blob = repo.git(["hash-object", "-w", "task-tree.json"]).answer();
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    let start = TaskCommit::run_start("main", "s1", &base).trailer("Plan", &format!("task-tree.json@{blob}"));
    repo.commit(start.to_string());
    repo.write(
        "task-tree.json",
        r#"{"nodes": {"T001": {"id": "T001", "name": "x", "skipped": true}}, "root_ids": ["T001"]}"#,
    );
    let document = state(&repo, &[]);
    assert_eq!(document["plan"]["blob"], blob);
    assert_eq!(task(&document, "T001")["state"], "pending");
    assert_eq!(document["summary"]["pending"], 3);
    let named = state(&repo, &["--tree", "task-tree.json"]);
    assert_eq!(task(&named, "T001")["state"], "pending", "a mark that was not frozen says nothing");
}

#[test]
fn the_state_of_a_task_before_landing_is_read_from_its_own_branch() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "arborist/task/main/T1"]).succeeds();
    repo.task("T1", "complete");
    let document = state(&repo, &[]);
    assert_eq!(document["scope"], "main", "a task's own branch belongs to its run");
    repo.git(["switch", "-q", "main"]).succeeds();
    let document = state(&repo, &[]);
    assert_eq!(task(&document, "T1")["state"], "complete");
    assert_eq!(task(&document, "T1")["landed"], false);
    repo.arborist(["state"]).succeeds().matches_snapshot();
    let land = repo.landing("T1", "arborist/task/main/T1");
    repo.git(["merge", "-q", "--no-ff", "-m", &land, "arborist/task/main/T1"]).succeeds();
    let document = state(&repo, &[]);
    assert_eq!(task(&document, "T1")["state"], "complete");
    assert_eq!(task(&document, "T1")["landed"], true);
}

#[test]
fn marks_in_a_plan_file_that_was_not_frozen_are_ignored() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "failed");
    repo.write(
        "task-tree.json",
        r#"{"nodes": {"T1": {"id": "T1", "name": "a", "skipped": true}}, "root_ids": ["T1"]}"#,
    );
    repo.arborist(["state", "--exit-code"]).exits(1).matches_snapshot();
}

#[test]
fn a_dependent_task_waits_until_its_dependency_has_landed() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "arborist/task/main/T001"]).succeeds();
    repo.task("T001", "complete");
    repo.git(["switch", "-q", "main"]).succeeds();
    let document = state(&repo, &[]);
    assert_eq!(task(&document, "T001")["state"], "complete");
    assert_eq!(task(&document, "T002")["ready"], false);
    assert_eq!(task(&document, "T002")["waits_for"][0], "T001");
}

#[test]
fn a_stale_task_branch_is_ignored() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["branch", "arborist/task/main/T1"]).succeeds();
    repo.task("T1", "test-fail");
    repo.git(["switch", "-q", "arborist/task/main/T1"]).succeeds();
    repo.task("T1", "complete");
    repo.git(["switch", "-q", "main"]).succeeds();
    assert_eq!(state_of(&repo, "T1"), "testing");
}
