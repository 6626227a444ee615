//! Whatever the bytes: a plan, or complaints with places; and an edit changes what it says and nothing else.

use arborist_core::plan::{Mark, Plan, PlanError, TreeDocument, apply_edits, plan_ids, tick_style};
use proptest::prelude::*;

/// Lines that come close to what people write, and lines that come close to breaking it.
const LINES: &[&str] = &[
    "# Tasks: x",
    "## Phase 1: Setup",
    "## Phase 3.1 — ü (US1)",
    "### Phase 2",
    "## Dependencies & Execution Order",
    "- [ ] T001 do `src/a.rs`",
    "- [x] **T002 [P]** [US1] do (depends on T001)",
    "- [X] ✅ T003a — after T002",
    "* [-] ~~T004~~ gone",
    "  - [~] T005 nested",
    "1. [ ] 1.1 number",
    "- [ ] no id",
    "- [?] T006",
    "- [] T007 empty",
    "- [ü] T008 odd",
    "- [P] tasks = x",
    "### T009: heading",
    "| T010 | x | T001 |",
    "| ID | Task | Depends on |",
    "|---|---|---|",
    "- T002 depends on T001",
    "- T003a → T002",
    "T001 -> T002 -> T003a",
    "- T001-T005 before T006; T002 blocks T003a",
    "```",
    "~~~~",
    "<!--",
    "-->",
    "---",
    "  goes on",
    "\ttab",
    "> - [ ] T011 quoted",
    "",
    "**Phase 4**",
    "\u{feff}",
    "[ ] T012 (depends on T012)",
];

fn markdown() -> impl Strategy<Value = String> {
    let line = proptest::sample::select(LINES);
    let end = prop_oneof![Just("\n"), Just("\r\n")];
    proptest::collection::vec((line, end), 0..40)
        .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end]).collect())
}

fn check_reading(label: &str, bytes: &[u8]) -> Result<(), TestCaseError> {
    match Plan::read(label, bytes) {
        Ok(plan) => {
            prop_assert_eq!(plan.order().len(), plan.leaves().count());
            let written = serde_json::to_vec(&TreeDocument::from(&plan))
                .map_err(|error| TestCaseError::fail(error.to_string()))?;
            let again =
                Plan::read("tree.json", &written).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!(again.tasks.len(), plan.tasks.len());
        }
        Err(PlanError::Wrong { problems, .. }) => {
            prop_assert!(!problems.is_empty());
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
            for problem in problems {
                prop_assert!((1..=lines).contains(&problem.line) && problem.column > 0, "{}", problem);
            }
        }
        Err(error) => prop_assert!(false, "{}", error),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_a_plan_or_problems_with_positions(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        check_reading("tasks.md", &bytes)?;
        check_reading("tree.json", &bytes)?;
    }

    #[test]
    fn any_text_gives_a_plan_or_problems_with_positions(text in "\\PC{0,200}") {
        check_reading("tasks.md", text.as_bytes())?;
        check_reading("tree.json", text.as_bytes())?;
    }

    #[test]
    fn any_markdown_gives_a_plan_or_problems_with_positions(text in markdown()) {
        check_reading("tasks.md", text.as_bytes())?;
    }

    #[test]
    fn a_tick_changes_exactly_one_byte_and_one_task(text in markdown()) {
        let Ok(plan) = Plan::read("tasks.md", text.as_bytes()) else { return Ok(()) };
        for edit in plan.plan_ticks(tick_style(&text), |_| true) {
            let ticked = apply_edits(text.as_bytes(), std::slice::from_ref(&edit));
            prop_assert_eq!(ticked.len(), text.len());
            let changed: Vec<usize> = (0..text.len()).filter(|at| ticked[*at] != text.as_bytes()[*at]).collect();
            prop_assert_eq!(changed, vec![edit.at]);
            let again = Plan::read("tasks.md", &ticked).unwrap();
            for (before, after) in plan.tasks.iter().zip(&again.tasks) {
                let wanted = if before.id == edit.task { Mark::Done } else { before.mark };
                prop_assert_eq!(after.mark, wanted, "{}", before.id);
            }
        }
    }

    #[test]
    fn adding_ids_only_inserts_text(text in markdown()) {
        let Ok(edits) = plan_ids(&[("tasks.md", text.as_bytes())]) else { return Ok(()) };
        let changed = apply_edits(text.as_bytes(), &edits);
        let added: usize = edits.iter().map(|edit| edit.put.len()).sum();
        prop_assert_eq!(changed.len(), text.len() + added);
        prop_assert!(edits.iter().all(|edit| edit.cut == 0));
        let mut ids: Vec<_> = edits.iter().map(|edit| &edit.task).collect();
        ids.dedup();
        prop_assert_eq!(ids.len(), edits.len());
    }
}
