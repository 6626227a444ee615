//! `merge.auto = false`: what `git arborist gardener --jobs N` finishes is queued, and lands when somebody says so.

use arborist_testkit::TestRepo;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn repo(name: &str, plan: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write(name, plan);
    repo.commit("a plan\n");
    repo.agent(WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo
}

#[test]
fn without_merge_auto_finished_tasks_stay_queued_until_they_are_merged() {
    let repo = repo(
        "tasks.md",
        "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 [P] do c\n- [ ] T004 do d (depends on T001)\n",
    );
    let flags = ["gardener", "--jobs", "1", "--isolate"];
    repo.arborist(flags)
        .exits(1)
        .out("3 did not land (T001, T002, T003), 1 left (T004)")
        .out("T001: it is queued, and merge.auto is off")
        .out("waits for T001")
        .out("next       git arborist merge run");
    assert_eq!(repo.git(["ls-files", "T*.txt"]).answer(), "", "nothing has landed");
    repo.arborist(["state", "--exit-code", "T001"]).exits(1).out("not landed");
    let calls = repo.calls();
    repo.arborist(flags).exits(1).out("3 did not land");
    assert_eq!(repo.calls(), calls, "nothing is done twice");
    repo.arborist(["merge", "T002"]).succeeds().out("1 landed (T002)");
    repo.arborist(["merge", "run"]).succeeds().out("2 landed (T001, T003)");
    repo.arborist(flags).exits(1).out("1 did not land (T004)");
    repo.arborist(["merge", "run"]).succeeds().out("1 landed (T004)");
    repo.arborist(flags).succeeds().out("nothing is left to do");
    assert_eq!(repo.git(["ls-files", "T*.txt"]).answer(), "T001.txt\nT002.txt\nT003.txt\nT004.txt");
}

#[test]
fn the_last_task_of_a_phase_lands_after_the_others_and_must_pass_the_phase_tests() {
    let repo = repo(
        "task-tree.json",
        r#"{"nodes": {
  "P1": {"id": "P1", "name": "Phase", "children": ["T001", "T002"],
         "test_commands": [{"type": "integration", "command": "test -e T001.txt && test -e T002.txt"}]},
  "T001": {"id": "T001", "name": "a", "parent": "P1"},
  "T002": {"id": "T002", "name": "b", "parent": "P1"}},
  "root_ids": ["P1"]}"#,
    );
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).exits(1).out("2 did not land");
    repo.arborist(["state", "--exit-code"]).exits(1).out("0%").out("P1 Phase  waiting to land");
    repo.arborist(["merge", "run", "--yes"]).succeeds().out("2 landed").out("1 gate run");
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_session_is_complete_when_its_last_task_has_landed() {
    let repo = repo("tasks.md", "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    repo.arborist(["gardener", "--jobs", "2"]).exits(1).out("2 did not land");
    repo.arborist(["merge", "T001"]).succeeds();
    repo.arborist(["session", "list"]).succeeds().out("paused");
    repo.arborist(["merge", "run"]).succeeds();
    repo.arborist(["session", "list"]).succeeds().out("complete").never("paused");
    repo.arborist(["cleanup", "--older-than", "0"]).succeeds().never("its session is");
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist"]).answer(), "");
}

#[test]
fn a_conflict_that_is_queued_is_left_to_a_person() {
    let repo = repo("tasks.md", "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    repo.agent(&WORKER.replace("\"$ARBORIST_TASK.txt\"", "shared.txt"));
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).exits(1).out("2 did not land");
    repo.arborist(["merge", "run"]).exits(2).out("1 landed (T001), 1 in conflict (T002)");
    repo.arborist(["gardener", "--jobs", "2"])
        .exits(2)
        .out("not landed T002: it conflicts in shared.txt")
        .out("next       git arborist merge resolve T002\n");
}
