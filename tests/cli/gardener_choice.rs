//! Which tasks `git arborist gardener` takes up: `--only`, `--until`, `--keep-going`, `--retry-failed`.

use arborist_testkit::Garden;

const PLAN: &str = "\
## Phase 1: Ground

- [ ] T001 lay the ground
- [ ] T002 fence it in

## Phase 2: House

- [ ] T003 build the house
- [ ] T004 paint the house
";

/// Writes a file for each task, fails for those that `$ROOT/broken` names, and approves of everything.
pub(crate) const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p')
     if grep -qs "$task" "$ROOT/broken"; then echo "cannot do $task" >&2; exit 1; fi
     echo "$task" >> "$task.txt" ;;
esac
"#;

fn garden() -> Garden {
    Garden::planned("tasks.md", PLAN, WORKER)
}

fn done(garden: &Garden) -> String {
    let mut names: Vec<String> = garden
        .git(["ls-files", "T*.txt"])
        .answer()
        .lines()
        .map(|line| line.trim_end_matches(".txt").to_owned())
        .collect();
    names.sort();
    names.join(" ")
}

#[test]
fn only_what_is_named_is_taken_up_and_a_phase_names_its_tasks() {
    let garden = garden();
    garden.arborist(["gardener", "--only", "T009"]).exits(1).shows();
    garden.arborist(["gardener", "--only", "T001", "--only", "T002", "--dry-run"]).succeeds().never("T003");
    garden.arborist(["gardener", "--only", "T001"]).succeeds().shows();
    assert_eq!(done(&garden), "T001");
    let state = garden.arborist(["state", "--json"]).succeeds().stdout();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let phase = state["tasks"][0]["id"].as_str().unwrap();
    garden.arborist(["gardener", "--only", phase]).succeeds().shows();
    assert_eq!(done(&garden), "T001 T002");
}

#[test]
fn a_run_goes_up_to_a_task_and_no_further() {
    let garden = garden();
    garden.arborist(["gardener", "--until", "T003", "--dry-run"]).succeeds().shows().never("T004");
    garden.arborist(["gardener", "--until", "T003"]).succeeds().shows();
    assert_eq!(done(&garden), "T001 T002 T003");
    garden.arborist(["gardener", "--until", "T003"]).succeeds().shows();
}

#[test]
fn failed_tasks_stay_failed_until_they_are_to_begin_anew() {
    let garden = garden();
    garden.write("../broken", "T002\n");
    let flags = ["gardener", "--max-retries", "1", "--keep-going"];
    garden.arborist(flags).exits(1).shows();
    garden.arborist(flags).exits(1).shows().never("completed");
    garden.write("../broken", "");
    garden.arborist(flags).exits(1).never("completed");
    garden.arborist(["gardener", "--retry-failed"]).succeeds().shows();
    assert_eq!(done(&garden), "T001 T002 T003 T004");
    garden.arborist(["state", "--exit-code"]).succeeds();
    garden.arborist(["trailers", "log", "--task", "T002"]).succeeds().shows();
}

#[test]
fn without_keep_going_nothing_is_taken_up_after_a_failure() {
    let garden = garden();
    garden.write("../broken", "T001\n");
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1).shows();
    assert_eq!(garden.calls(), 1);
}

#[test]
fn a_box_without_an_id_is_run_under_an_id_made_from_its_text() {
    let garden = Garden::planned("tasks.md", "- [ ] T001 one\n- [ ] [P] two\n", WORKER);
    garden.arborist(["gardener"]).succeeds().shows();
    garden.arborist(["gardener"]).succeeds().never("completed");
}

#[test]
fn a_new_run_looks_for_its_plan_anew() {
    let garden = Garden::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    garden.arborist(["gardener"]).succeeds();
    let tree = r#"{"nodes": {"T009": {"id": "T009", "name": "nine"}}, "root_ids": ["T009"]}"#;
    garden.write("task-tree.json", tree);
    garden.commit("another plan\n");
    garden.arborist(["gardener", "--new-run"]).succeeds().shows();
}

#[test]
fn what_is_left_is_said_once_and_where_nothing_is_that_is_said_too() {
    let garden = Garden::planned("tasks.md", "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n", WORKER);
    let phase = garden.arborist(["garden", "phase-1"]).exits(1);
    phase.shows();
    let warning = "their tests pass whatever they do";
    garden.arborist(["gardener", "--until", "T001"]).succeeds().err(warning);
    garden.arborist(["gardener", "--dry-run"]).succeeds().shows().never("nothing is left");
    garden.arborist(["gardener"]).succeeds().never(warning);
    garden.arborist(["gardener", "--dry-run"]).succeeds().shows();
    garden.arborist(["gardener", "--new-run"]).succeeds().err(warning);
    let reports = garden.git(["ls-tree", "--name-only", "HEAD", "spec/reports/"]).answer();
    let names: Vec<&str> = reports.lines().filter(|name| name.contains("T001_run_")).collect();
    assert_eq!(names.len(), 2, "runs of one second have a report each: {reports}");
    garden.arborist(["state", "T001"]).succeeds().shows();
}

#[test]
fn a_task_without_its_option_is_told_which_one_it_needs() {
    let garden = garden();
    let said = garden.arborist(["gardener", "T001"]).exits(129).shows();
    said.shows();
    garden.arborist(["gardener", "--ony"]).exits(129).never("name tasks with");
}
