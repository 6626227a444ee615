//! Tasks that name the same file are not worked on at once: the second begins with what the first has landed.

use arborist_testkit::TestRepo;

const PLAN: &str = "\
## Phase 1: Work

- [ ] T001 [P] first line in src/shared.txt
- [ ] T002 [P] second line in ./src/shared.txt
- [ ] T003 [P] something in src/other.txt
";

/// Appends to the file that its task names.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) mkdir -p src
     case "$ARBORIST_TASK" in T003) file=src/other.txt ;; *) file=src/shared.txt ;; esac
     echo "$ARBORIST_TASK" >> "$file" ;;
esac
"#;

#[test]
fn of_two_tasks_that_name_the_same_file_the_second_waits_until_the_first_has_landed() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "3"]).succeeds();
    assert_eq!(repo.git(["show", "main:src/shared.txt"]).answer(), "T001\nT002");
    let merge = |task: &str| {
        let found = repo.git(["log", "--format=%H", &format!("--grep=@{task}@merge"), "main"]);
        found.answer()
    };
    let second = format!("{}^2", merge("T002"));
    repo.git(["merge-base", "--is-ancestor", &merge("T001"), &second]).succeeds();
}

#[test]
fn a_task_is_not_ready_while_another_with_the_same_file_waits_to_land() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "3"]).exits(1);
    let document = repo.arborist(["state", "--json"]).stdout();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let states: Vec<(&str, bool)> = document["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|task| task["id"].as_str().unwrap().starts_with("T00"))
        .map(|task| (task["state"].as_str().unwrap(), task["ready"].as_bool().unwrap()))
        .collect();
    assert_eq!(states, [("complete", false), ("pending", false), ("complete", false)]);
    repo.arborist(["merge", "run"]).succeeds();
    repo.arborist(["gardener", "--jobs", "3"]).exits(1);
    repo.arborist(["merge", "run"]).succeeds();
    assert_eq!(repo.git(["show", "main:src/shared.txt"]).answer(), "T001\nT002");
}
