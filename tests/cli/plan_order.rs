//! The order of plans as people write them, and plans without ids, through the command line.

use arborist_testkit::{Garden, Run};
use serde_json::Value;

fn json(run: Run) -> Value {
    serde_json::from_str(&run.answer()).unwrap_or_else(|error| panic!("{error}"))
}

/// What a node of the tree waits for, as one line.
fn needs(garden: &Garden, id: &str) -> String {
    let tree = json(garden.arborist(["plan", "--format", "json"]));
    let ids = tree["nodes"][id]["depends_on"].as_array().cloned().unwrap_or_default();
    ids.iter().map(|id| id.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
}

fn plan(text: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("tasks.md", text);
    garden
}

#[test]
fn a_serial_task_waits_for_the_parallel_ones_before_it() {
    let garden = plan(
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 generate\n- [ ] T004 [P] c\n- [ ] T005 [P] d\n",
    );
    let waves = json(garden.arborist(["plan", "--waves", "--format", "json"]));
    assert_eq!(waves["waves"], serde_json::json!([["T001", "T002"], ["T003"], ["T004", "T005"]]));
}

#[test]
fn tests_come_before_the_implementation_and_sections_run_in_order() {
    let garden = plan(
        "## Phase 3: User Story 1\n### Implementation for User Story 1\n- [ ] T002 [P] a\n- [ ] T003 [P] b\n\
         ### Tests for User Story 1\n- [ ] T001 [P] test\n### Documentation\n- [ ] T004 [P] write\n",
    );
    assert_eq!(needs(&garden, "T001"), "");
    assert_eq!((needs(&garden, "T002"), needs(&garden, "T003")), ("T001".into(), "T001".into()));
    assert_eq!(needs(&garden, "T004"), "T002 T003");
}

const STORIES: &str = "\
## Phase 1: Setup
- [ ] T001 a
## Phase 2: Foundational (blocks all user stories)
- [ ] T002 b
## Phase 3: User Story 1 - x
- [ ] T003 [US1] c
## Phase 4: User Story 2 - y
- [ ] T004 [US2] d
## Phase 5: User Story 3 - z
- [ ] T005 [US3] e
## Phase 6: Polish
- [ ] T006 f
";

#[test]
fn dependencies_between_stories_are_read_as_sentences_tables_and_drawings() {
    for dependencies in [
        "- **US3 (P3)**: Depends on US1, independent of US2\n- **User Story 2 (P2)**: can start after Foundational\n",
        "| Story | Depends on |\n|---|---|\n| US2 | Phase 2 |\n| US3 (P3) | US1 complete |\n",
        "```\nPhase 2: Foundational\n  ├── Phase 3: US1\n  │     └── Phase 5: US3\n  └── Phase 4: US2\n```\n",
        "```mermaid\ngraph TD\n  F[Phase 2: Foundational] --> US1[Phase 3]\n  F --> US2\n  US1 --> C[User Story 3]\n```\n",
    ] {
        let garden = plan(&format!("{STORIES}\n## Dependencies\n\n{dependencies}"));
        assert_eq!(needs(&garden, "phase-3").split(' ').next(), Some("phase-2"), "{dependencies}");
        assert_eq!(needs(&garden, "phase-4"), "phase-2", "{dependencies}");
        assert!(needs(&garden, "phase-5").contains("phase-3"), "{dependencies}");
        assert!(!needs(&garden, "phase-5").contains("phase-4"), "{dependencies}");
        assert!(needs(&garden, "phase-6").contains("phase-5"), "{dependencies}");
    }
}

#[test]
fn ranges_and_denials_are_understood_and_before_with_ids_is_firm() {
    let text = "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n- [ ] T004 [P] d\n- [ ] T005 [P] e\n";
    for (said, id, wanted) in [
        ("T005 depends on T001–T003", "T005", "T001 T002 T003"),
        ("T004 before T001", "T001", "T004"),
        ("T003 can run in parallel with T001, independent of T002", "T003", ""),
        ("T003 does not depend on T001", "T003", ""),
        ("T003 独立于 T001", "T003", ""),
        ("T003 依赖T001", "T003", "T001"),
        ("T003 dépend de T001", "T003", "T001"),
        ("T003 zależy od T001", "T003", "T001"),
        ("T003はT001に依存", "T003", "T001"),
    ] {
        let garden = plan(&format!("{text}\n## Dependencies\n- {said}\n"));
        assert_eq!(needs(&garden, id), wanted, "{said}");
    }
}

#[test]
fn dependencies_that_every_task_states_replace_the_implied_ones() {
    let garden = plan(
        "## Phase 1: a\n\n| ID | Task | Depends on |\n|---|---|---|\n| T001 | a | — |\n| T002 | b | — |\n| T003 | c | T001 |\n\n\
         ## Phase 2: b\n\n| ID | Task | Depends on |\n|---|---|---|\n| T004 | d | T002 |\n",
    );
    assert_eq!(needs(&garden, "T002"), "");
    assert_eq!((needs(&garden, "T003"), needs(&garden, "T004")), ("T001".into(), "T002".into()));
    assert_eq!(needs(&garden, "phase-2"), "");
}

#[test]
fn explain_names_file_and_line_of_each_reason() {
    let garden = plan(&format!("{STORIES}\n## Dependencies\n- US3 depends on US1\n"));
    let said = json(garden.arborist(["plan", "--explain", "T005", "--format", "json"]));
    let reason = &said["reasons"][0];
    assert_eq!((reason["node"].as_str(), reason["on"].as_str()), (Some("phase-5"), Some("phase-3")));
    assert_eq!((reason["line"].as_u64(), reason["stated"].as_bool()), (Some(15), Some(true)));
    assert_eq!(reason["why"], "- US3 depends on US1");
    garden.arborist(["plan", "--explain", "T002"]).succeeds().out("tasks.md:3");
    garden.arborist(["plan", "--explain", "T999"]).exits(128).err("T999");
}

#[test]
fn boxes_without_ids_keep_their_ids_when_lines_are_inserted_and_the_file_is_not_changed() {
    let text = "# Plan\n- [ ] Write the parser\n- [ ] 1.2 Numbered\n- [ ] Test it\n";
    let garden = plan(text);
    let order =
        |garden: &Garden| json(garden.arborist(["plan", "--format", "json"]))["execution_order"].clone();
    assert_eq!(order(&garden), serde_json::json!(["write-the-parser", "1.2", "test-it"]));
    assert_eq!(garden.read("tasks.md"), text);
    garden.write("tasks.md", text.replace("# Plan\n", "# Plan\n- [ ] First\n"));
    assert_eq!(order(&garden), serde_json::json!(["first", "write-the-parser", "1.2", "test-it"]));
    garden.arborist(["plan", "-o", "task-tree.json"]).succeeds();
    garden.arborist(["state", "--tree", "task-tree.json"]).succeeds().out("write-the-parser");
}

#[test]
fn what_cannot_be_read_is_a_warning_and_an_error_under_strict() {
    for text in [
        "- [ ] T001 a\n- [%] T002 b\n",
        "- [ ] T001 a\n- [ ] T002 b\n## Dependencies\n- T002 depends on the weather\n",
        "- [ ] T001 a\n- [ ] T001 b\n",
    ] {
        let garden = plan(text);
        garden.arborist(["plan"]).succeeds().err("warning: tasks.md:");
        garden.arborist(["plan", "--check", "--strict"]).exits(1).out("error: ");
    }
}

#[test]
fn without_a_name_all_plans_are_listed_and_the_only_one_is_used() {
    let garden = Garden::sprout();
    garden.write(".kiro/specs/login/tasks.md", "- [ ] 1. a\n- [ ] 2. b\n- [ ] 2.1 c\n");
    garden.arborist(["plan"]).succeeds().out("[ ] 1 a").out("2.1");
    garden.write("openspec/changes/add/tasks.md", "## 1. S\n- [ ] 1.1 x\n");
    garden
        .arborist(["plan"])
        .exits(128)
        .err(".kiro/specs/login/tasks.md")
        .err("openspec/changes/add/tasks.md");
    garden.write("specs/001-x/tasks.md", "- [ ] T001 mine\n");
    garden.git(["checkout", "-q", "-b", "feature/001-x"]).succeeds();
    garden.arborist(["plan"]).succeeds().out("T001 mine");
}

#[test]
fn red_is_proposed_where_tests_must_fail_first() {
    let garden = plan(
        "## Phase 3: User Story 1\n### Tests for User Story 1\n\n> Write these tests FIRST, ensure they FAIL before implementation\n\n\
         - [ ] T001 [P] Contract test\n- [ ] T002 [red] Other test\n### Implementation for User Story 1\n- [ ] T003 do it\n",
    );
    garden.arborist(["plan"]).succeeds().out("[red] for T001:").never("[red] for T001 T002");
    assert_eq!(json(garden.arborist(["plan", "--format", "json"]))["nodes"]["T001"]["red"], Value::Null);
}
