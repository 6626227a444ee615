//! Any bytes give a plan or complaints with places; a plan survives being written as a tree; a tick is one byte.

#![no_main]

use arborist_core::plan::{Plan, PlanError, TreeDocument, apply_edits, plan_ids};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    check("tree.json", bytes);
    check("tasks.md", bytes);
    let _ = plan_ids(&[("tasks.md", bytes)]);
});

fn check(label: &str, bytes: &[u8]) {
    match Plan::read(label, bytes) {
        Ok(plan) => {
            check_tree(&plan);
            check_ticks(&plan, bytes);
        }
        Err(PlanError::Wrong(problems)) => {
            assert!(!problems.is_empty());
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
            for problem in problems {
                assert!((1..=lines).contains(&problem.line) && problem.column > 0, "{problem}");
            }
        }
        Err(error) => panic!("{error}"),
    }
}

fn check_tree(plan: &Plan) {
    assert_eq!(plan.order().len(), plan.leaves().count());
    let tree = serde_json::to_vec(&TreeDocument::from(plan)).unwrap();
    let again = Plan::read("tree.json", &tree).unwrap();
    assert_eq!(again.tasks.len(), plan.tasks.len());
    assert_eq!(serde_json::to_vec(&TreeDocument::from(&again)).unwrap(), tree);
}

fn check_ticks(plan: &Plan, bytes: &[u8]) {
    for edit in plan.plan_ticks('x', |_| true) {
        let ticked = apply_edits(bytes, std::slice::from_ref(&edit));
        assert_eq!((&ticked[..edit.at], &ticked[edit.at + 1..]), (&bytes[..edit.at], &bytes[edit.at + 1..]));
    }
}
