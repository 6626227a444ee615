//! The order of plans as people write them, and plans without ids, through the command line.

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

fn json(run: Run) -> Value {
    serde_json::from_str(&run.answer()).unwrap_or_else(|error| panic!("{error}"))
}

/// What a node of the tree waits for, as one line.
fn needs(repo: &TestRepo, id: &str) -> String {
    let tree = json(repo.arborist(["plan", "--format", "json"]));
    let ids = tree["nodes"][id]["depends_on"].as_array().cloned().unwrap_or_default();
    ids.iter().map(|id| id.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" ")
}

fn plan(text: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", text);
    repo
}

#[test]
fn a_serial_task_waits_for_the_parallel_ones_before_it() {
    let repo = plan(
        "## Phase 1: a\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 generate\n- [ ] T004 [P] c\n- [ ] T005 [P] d\n",
    );
    let waves = json(repo.arborist(["plan", "--waves", "--format", "json"]));
    assert_eq!(waves["waves"], serde_json::json!([["T001", "T002"], ["T003"], ["T004", "T005"]]));
}

#[test]
fn tests_to_write_first_come_before_the_implementation_and_sections_run_in_order() {
    let repo = plan(
        "## Phase 3: User Story 1\n### Implementation for User Story 1\n- [ ] T002 [P] a\n- [ ] T003 [P] b\n\
         ### Tests for User Story 1\n- [ ] T001 [P] test\n### Documentation\n- [ ] T004 [P] write\n\
         ## Notes\n- Write tests FIRST\n",
    );
    assert_eq!(needs(&repo, "T001"), "");
    assert_eq!((needs(&repo, "T002"), needs(&repo, "T003")), ("T001".into(), "T001".into()));
    assert_eq!(needs(&repo, "T004"), "T002 T003");
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
        let repo = plan(&format!("{STORIES}\n## Dependencies\n\n{dependencies}"));
        assert_eq!(needs(&repo, "phase-3").split(' ').next(), Some("phase-2"), "{dependencies}");
        assert_eq!(needs(&repo, "phase-4"), "phase-2", "{dependencies}");
        assert!(needs(&repo, "phase-5").contains("phase-3"), "{dependencies}");
        assert!(!needs(&repo, "phase-5").contains("phase-4"), "{dependencies}");
        assert!(needs(&repo, "phase-6").contains("phase-5"), "{dependencies}");
    }
}

#[test]
fn statements_with_ranges_denials_and_before_set_dependencies_of_tasks() {
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
        let repo = plan(&format!("{text}\n## Dependencies\n- {said}\n"));
        assert_eq!(needs(&repo, id), wanted, "{said}");
    }
}

#[test]
fn dependencies_that_every_task_states_replace_the_implied_ones() {
    let repo = plan(
        "## Phase 1: a\n\n| ID | Task | Depends on |\n|---|---|---|\n| T001 | a | — |\n| T002 | b | — |\n| T003 | c | T001 |\n\n\
         ## Phase 2: b\n\n| ID | Task | Depends on |\n|---|---|---|\n| T004 | d | T002 |\n",
    );
    assert_eq!(needs(&repo, "T002"), "");
    assert_eq!((needs(&repo, "T003"), needs(&repo, "T004")), ("T001".into(), "T002".into()));
    assert_eq!(needs(&repo, "phase-2"), "");
}

#[test]
fn explain_names_file_and_line_of_each_reason() {
    let repo = plan(&format!("{STORIES}\n## Dependencies\n- US3 depends on US1\n"));
    let said = json(repo.arborist(["plan", "--explain", "T005", "--format", "json"]));
    let reasons = said["reasons"].as_array().unwrap();
    let on: Vec<_> = reasons.iter().map(|reason| (reason["on"].as_str(), reason["line"].as_u64())).collect();
    assert_eq!(on, [(Some("phase-2"), Some(3)), (Some("phase-3"), Some(15))]);
    let reason = &reasons[1];
    assert_eq!(reason["node"], "phase-5");
    assert_eq!((reason["line"].as_u64(), reason["stated"].as_bool()), (Some(15), Some(true)));
    assert_eq!(reason["why"], "- US3 depends on US1");
    repo.arborist(["plan", "--explain", "T002"]).succeeds().out("tasks.md:3");
    repo.arborist(["plan", "--explain", "T999"]).exits(1).err("T999");
}

#[test]
fn boxes_without_ids_keep_their_ids_when_lines_are_inserted_and_the_file_is_not_changed() {
    let text = "# Plan\n- [ ] Write the parser\n- [ ] 1.2 Numbered\n- [ ] Test it\n";
    let repo = plan(text);
    let order =
        |repo: &TestRepo| json(repo.arborist(["plan", "--format", "json"]))["execution_order"].clone();
    assert_eq!(order(&repo), serde_json::json!(["write-the-parser", "1.2", "test-it"]));
    assert_eq!(repo.read("tasks.md"), text);
    repo.write("tasks.md", text.replace("# Plan\n", "# Plan\n- [ ] First\n"));
    assert_eq!(order(&repo), serde_json::json!(["first", "write-the-parser", "1.2", "test-it"]));
    repo.arborist(["plan", "-o", "task-tree.json"]).succeeds();
    repo.arborist(["state", "--tree", "task-tree.json"]).succeeds().out("write-the-parser");
}

#[test]
fn text_that_cannot_be_understood_is_a_warning_and_an_error_under_strict() {
    for text in [
        "- [ ] T001 a\n- [%] T002 b\n",
        "- [ ] T001 a\n- [ ] T002 b\n## Dependencies\n- T002 depends on the weather\n",
        "- [ ] T001 a\n- [ ] T001 b\n",
    ] {
        let repo = plan(text);
        repo.arborist(["plan"]).succeeds().err("warning: tasks.md:");
        repo.arborist(["plan", "--check", "--strict"]).exits(1).out("error: ");
    }
}

#[test]
fn without_an_argument_the_only_plan_is_used_and_several_are_listed() {
    let repo = TestRepo::init();
    repo.write(".kiro/specs/login/tasks.md", "- [ ] 1. a\n- [ ] 2. b\n- [ ] 2.1 c\n");
    repo.arborist(["plan"]).succeeds().out("[ ] 1 a").out("2.1");
    repo.write("openspec/changes/add/tasks.md", "## 1. S\n- [ ] 1.1 x\n");
    repo.arborist(["plan"]).exits(1).err(".kiro/specs/login/tasks.md").err("openspec/changes/add/tasks.md");
    repo.write("specs/001-x/tasks.md", "- [ ] T001 mine\n");
    repo.git(["checkout", "-q", "-b", "feature/001-x"]).succeeds();
    repo.arborist(["plan"]).succeeds().out("read from specs/001-x/tasks.md");
    repo.arborist(["plan"]).succeeds().out("T001 mine");
}

#[test]
fn red_is_proposed_where_tests_must_fail_first() {
    let repo = plan(
        "## Phase 3: User Story 1\n### Tests for User Story 1\n\n> Write these tests FIRST, ensure they FAIL before implementation\n\n\
         - [ ] T001 [P] Contract test\n- [ ] T002 [red] Other test\n### Implementation for User Story 1\n- [ ] T003 do it\n",
    );
    repo.arborist(["plan"]).succeeds().out("[red] for T001, because").never("[red] for T001 T002");
    assert_eq!(json(repo.arborist(["plan", "--format", "json"]))["nodes"]["T001"]["red"], Value::Null);
}

/// Six tasks without `[P]` in one phase, two phases for stories, and what a section says about them.
fn plan_with_dependencies(dependencies: &str) -> TestRepo {
    plan(&format!(
        "{STORIES}## Phase 7: More\n- [ ] T007 g\n- [ ] T008 h\n- [ ] T009 i\n- [ ] T010 j\n\n## Dependencies\n\n{dependencies}"
    ))
}

#[test]
fn tasks_that_may_run_in_parallel_do_not_wait_for_each_other_and_the_next_waits_for_all() {
    let repo = plan_with_dependencies("- T008 and T009 can run in parallel (different files)\n");
    assert_eq!(needs(&repo, "T008"), "T007");
    assert_eq!(needs(&repo, "T009"), "T007");
    assert_eq!(needs(&repo, "T010"), "T008 T009");
    let repo = plan(
        "## Phase 1: a\n### First\n- [ ] T001 a\n- [ ] T002 b\n- [ ] T003 [P] c\n### Second\n- [ ] T004 d\n\n## Dependencies\n\nT001, T002, T003 in parallel\n",
    );
    assert_eq!(needs(&repo, "T004"), "T001 T002 T003");
    let repo = plan_with_dependencies("- T008 and T009 cannot run in parallel\n");
    assert_eq!(needs(&repo, "T009"), "T008");
}

#[test]
fn sequential_tasks_wait_for_each_other_even_after_a_common_arrow() {
    let repo = plan_with_dependencies(
        "- T007 → T008, T009 (same file) → T010\n- T008–T009 edit the same file and run sequentially\n",
    );
    assert!(needs(&repo, "T009").contains("T008"));
    let repo = plan_with_dependencies(
        "- T008–T009 run sequentially or in parallel\n- T007 → T008, T009\n- T009 → T010\n",
    );
    assert!(!needs(&repo, "T009").contains("T008"));
}

#[test]
fn a_phase_waits_only_for_the_tasks_that_it_specifically_names() {
    let repo =
        plan_with_dependencies("- **US2 (Phase 4)**: Depends on Phase 3 (specifically T003 for the page)\n");
    assert!(needs(&repo, "phase-4").contains("T003"));
    assert!(!needs(&repo, "phase-4").contains("phase-3"));
}

#[test]
fn a_recommended_order_is_overridden_by_a_firm_statement() {
    let repo = plan_with_dependencies("- **US2**: Best done after US1\n- **US2**: no dependency on US1\n");
    assert_eq!(needs(&repo, "phase-4"), "phase-2");
    let repo =
        plan_with_dependencies("- **US2**: Depends on Phase 2, but final verification needs US1 complete\n");
    assert_eq!(needs(&repo, "phase-4"), "phase-2");
    let repo = plan_with_dependencies("- **US2**: Depends on US1\n- **US2**: no dependency on US3\n");
    assert!(needs(&repo, "phase-4").contains("phase-3"));
}

#[test]
fn contradicting_arrows_follow_the_file_and_adjacent_titles_count_as_one() {
    let repo =
        plan_with_dependencies("T007 → T009\nT009 → T007 (needs the list)\nT010 → T009\nT008 → T007\n");
    assert!(needs(&repo, "T009").contains("T007"));
    assert!(!needs(&repo, "T007").contains("T009"));
    let repo = plan_with_dependencies(
        "- **Parallel**: models can be developed in parallel after foundational setup\n",
    );
    assert_eq!((needs(&repo, "phase-1"), needs(&repo, "phase-2")), (String::new(), "phase-1".into()));
}

#[test]
fn in_a_drawing_a_corner_continues_all_rows_and_an_arrow_only_its_own_row() {
    let repo = plan_with_dependencies(
        "```\nPhase 2\n  ├── US1 (a) ──┐\n  ├── US2 (b) ──┤──→ US3 (c)\n  └── Phase 7 ──┘\n                └──→ Phase 6 (Polish)\n```\n",
    );
    assert!(needs(&repo, "phase-5").contains("phase-4"));
    assert!(!needs(&repo, "phase-5").contains("phase-3"));
    assert!(!needs(&repo, "phase-5").contains("phase-7"));
    assert!(needs(&repo, "phase-6").contains("phase-3"));
}

#[test]
fn a_story_that_only_a_phase_title_names_does_not_make_phases_parallel() {
    let repo = plan(
        "## Phase 0: Tools\n- [ ] T001 a\n## Phase 1: Login (US-1, M-01)\n- [ ] T002 b\n## Phase 2: Vault (US-2)\n- [ ] T003 c\n",
    );
    assert_eq!(needs(&repo, "phase-2"), "phase-1");
    let repo = plan(
        "## Phase 0: Setup\n- [ ] T001 a\n## Phase 1: Login (US1)\n- [ ] T002 [US1] b\n## Phase 2: Vault (US2)\n- [ ] T003 [US2] c\n",
    );
    assert_eq!(needs(&repo, "phase-2"), "phase-0");
}

#[test]
fn bold_lines_divide_a_phase_into_tests_and_implementation() {
    let repo = plan(
        "## Phase 1: a\n\n**Implementation**:\n\n- [ ] T002 [P] b\n\n**Tests (write first):**\n\n- [ ] T001 [P] t\n",
    );
    assert_eq!((needs(&repo, "T001"), needs(&repo, "T002")), (String::new(), "T001".into()));
}

#[test]
fn proposed_red_marks_are_shown_by_the_check_and_explained() {
    let repo = plan(
        "## Phase 1: a\n### Tests (must FAIL before implementation)\n- [ ] T001 write tests\n### Implementation\n- [ ] T002 b\n",
    );
    repo.arborist(["plan", "--check"]).succeeds().out("[red] for T001");
    let explained = |task: &str| json(repo.arborist(["plan", "--explain", task, "--format", "json"]));
    assert_eq!(explained("T001")["proposed_red"]["line"], 2);
    assert!(explained("T002").get("proposed_red").is_none());
}
