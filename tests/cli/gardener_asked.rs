//! `merge.auto = false`: what `git arborist gardener --jobs N` finishes is queued, and lands when somebody says so.

use arborist_testkit::Garden;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn garden(name: &str, plan: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write(name, plan);
    garden.commit("a plan\n");
    garden.agent(WORKER);
    garden.git(["config", "arborist.merge.auto", "false"]).succeeds();
    garden
}

#[test]
fn what_is_finished_stays_queued_until_somebody_lands_it() {
    let garden = garden(
        "tasks.md",
        "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 [P] do c\n- [ ] T004 do d (depends on T001)\n",
    );
    let flags = ["gardener", "--jobs", "1", "--isolate"];
    garden
        .arborist(flags)
        .exits(1)
        .out("3 did not land (T001, T002, T003), 1 left (T004)")
        .out("T001: it is queued, and merge.auto is off")
        .out("waits for T001")
        .out("next   git arborist merge run");
    assert_eq!(garden.git(["ls-files", "T*.txt"]).answer(), "", "nothing has landed");
    garden.arborist(["state", "--exit-code", "T001"]).exits(1).out("not landed");
    let calls = garden.calls();
    garden.arborist(flags).exits(1).out("3 did not land");
    assert_eq!(garden.calls(), calls, "nothing is done twice");
    garden.arborist(["merge", "T002"]).succeeds().out("1 landed (T002)");
    garden.arborist(["merge", "run"]).succeeds().out("2 landed (T001, T003)");
    garden.arborist(flags).exits(1).out("1 did not land (T004)");
    garden.arborist(["merge", "run"]).succeeds().out("1 landed (T004)");
    garden.arborist(flags).succeeds().out("nothing was left to do");
    assert_eq!(garden.git(["ls-files", "T*.txt"]).answer(), "T001.txt\nT002.txt\nT003.txt\nT004.txt");
}

#[test]
fn the_last_of_a_phase_lands_behind_the_others_and_through_the_tests_of_the_phase() {
    let garden = garden(
        "task-tree.json",
        r#"{"nodes": {
  "P1": {"id": "P1", "name": "Phase", "children": ["T001", "T002"],
         "test_commands": [{"type": "integration", "command": "test -e T001.txt && test -e T002.txt"}]},
  "T001": {"id": "T001", "name": "a", "parent": "P1"},
  "T002": {"id": "T002", "name": "b", "parent": "P1"}},
  "root_ids": ["P1"]}"#,
    );
    garden.arborist(["gardener", "--jobs", "2", "--yes"]).exits(1).out("2 did not land");
    garden.arborist(["state", "--exit-code"]).exits(1).out("0%").out("P1 Phase  implementing");
    garden.arborist(["merge", "run", "--yes"]).succeeds().out("2 landed").out("1 gate run");
    garden.arborist(["gardener", "--jobs", "2", "--yes"]).succeeds();
    garden.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn the_session_is_over_when_the_last_of_its_tasks_has_landed() {
    let garden = garden("tasks.md", "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n");
    garden.arborist(["gardener", "--jobs", "2"]).exits(1).out("2 did not land");
    garden.arborist(["merge", "T001"]).succeeds();
    garden.arborist(["session", "list"]).succeeds().out("paused");
    garden.arborist(["merge", "run"]).succeeds();
    garden.arborist(["session", "list"]).succeeds().out("complete").never("paused");
    garden.arborist(["cleanup", "--older-than", "0"]).succeeds().never("its session is");
    assert_eq!(garden.git(["for-each-ref", "refs/heads/arborist"]).answer(), "");
}
