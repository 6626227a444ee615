//! Tests first: until when the tests of a task that is marked red may fail. Pure.

use super::{Plan, Task};
use crate::name::TaskId;

impl Plan {
    /// The tasks that write failing tests, each with those that have to make them pass: the others of its phase that
    /// come later or, where the phase has none, those of the next phase that has any. Once all of these are done, no test
    /// may fail. What the plan skips or has ticked does not count.
    #[must_use]
    pub fn tests_first(&self) -> Vec<(TaskId, Vec<TaskId>)> {
        if self.leaves().all(|task| !task.red) {
            return Vec::new();
        }
        let order = self.order();
        let reds = order.iter().enumerate().filter(|(_, task)| task.red);
        reds.map(|(at, red)| (red.id.clone(), menders(&order[at + 1..], red))).collect()
    }
}

fn menders(later: &[&Task], red: &Task) -> Vec<TaskId> {
    let open = || later.iter().filter(|task| !task.red && !task.mark.is_settled());
    let in_phase = |parent: &Option<TaskId>| -> Vec<TaskId> {
        open().filter(|task| task.parent == *parent).map(|task| task.id.clone()).collect()
    };
    match in_phase(&red.parent) {
        own if !own.is_empty() => own,
        _ => open().next().map(|next| in_phase(&next.parent)).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

    fn menders(text: &str, red: &str) -> String {
        let plan = Plan::read("tasks.md", text.as_bytes()).unwrap();
        let found = plan.tests_first().into_iter().find(|(task, _)| task.as_str() == red).unwrap().1;
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn later_tasks_of_the_phase_make_the_tests_pass() {
        let text = "## Phase 1: A\n\n- [ ] T001 x\n- [ ] T002 [red] tests\n- [ ] T003 [red] more\n- [ ] T004 y\n- [-] T005 no\n- [ ] T006 z\n\n## Phase 2: B\n\n- [ ] T007 w\n";
        assert_eq!(menders(text, "T002"), "T004 T006");
        assert_eq!(menders(text, "T003"), "T004 T006");
    }

    #[test]
    fn a_phase_of_tests_alone_is_mended_by_the_next_phase() {
        let text = "## Phase 1: Tests\n\n- [ ] T001 [red] tests\n\n## Phase 2: Work\n\n- [ ] T002 a\n- [ ] T003 b\n\n## Phase 3: More\n\n- [ ] T004 c\n";
        assert_eq!(menders(text, "T001"), "T002 T003");
    }
}
