//! What a task still waits for in the plan, given what is done. Pure. `progress` adds the states of tasks and what they
//! share, and decides whether a task is ready; `merge add` and `reset` ask here directly.
//!
//! A ticked task in the middle of a list must not cut the list in two: with T001 open and T002 ticked, T003 still
//! waits for T001, although the plan only lets it wait for T002. So whatever is done passes on what it waits for
//! itself. The plan itself does not change by that: `depends_on` stays what the file says.

use super::{Plan, Task};
use crate::name::TaskId;

/// Which tasks are done, and what the others still wait for.
#[derive(Debug)]
pub struct Readiness<'p> {
    plan: &'p Plan,
    /// For each node, whether others can build on it: the leaves as given, a phase if all its leaves are done.
    is_done: Vec<bool>,
    /// For each node that is done, what is not done among all that it waits for, by position.
    passed_on: Vec<Vec<usize>>,
}

impl Plan {
    /// Looks through the whole plan once. `is_done` is asked for leaves only.
    #[must_use]
    pub fn readiness(&self, is_done: impl Fn(&Task) -> bool) -> Readiness<'_> {
        let mut done = vec![true; self.tasks.len()];
        // Children come after their parents.
        for (at, task) in self.tasks.iter().enumerate().rev() {
            done[at] = if task.is_leaf() { is_done(task) } else { done[at] };
            if let Some(parent) = task.parent.as_ref().and_then(|parent| self.index.get(parent)) {
                done[*parent] &= done[at];
            }
        }
        let passed_on = self.flow.passed_on(&done);
        Readiness { plan: self, is_done: done, passed_on }
    }
}

impl Readiness<'_> {
    /// The unfinished dependencies of a task and of its phases, as they are declared. A finished dependency is replaced
    /// by its own unfinished ones.
    #[must_use]
    pub fn waits_for(&self, id: &TaskId) -> Vec<TaskId> {
        let mut waits: Vec<usize> = Vec::new();
        let mut next = self.plan.find(id);
        while let Some(node) = next {
            let needs = node.depends_on.iter().filter_map(|need| self.plan.index.get(need).copied());
            for need in needs {
                if self.is_done[need] {
                    waits.extend(&self.passed_on[need]);
                } else {
                    waits.push(need);
                }
            }
            next = node.parent.as_ref().and_then(|parent| self.plan.find(parent));
        }
        let mut seen = std::collections::HashSet::new();
        waits.retain(|at| seen.insert(*at));
        waits.into_iter().map(|at| self.plan.tasks[at].id.clone()).collect()
    }

    /// The unfinished tasks that a task waits for, also because of its phases. A phase counts as those of its tasks that are
    /// not done.
    #[must_use]
    pub fn leaves_waited_for(&self, id: &TaskId) -> Vec<TaskId> {
        let mut leaves = Vec::new();
        self.waits_for(id).iter().for_each(|need| self.plan.push_leaves(need, &mut leaves));
        leaves.retain(|at| !self.is_done[*at]);
        leaves.sort_unstable();
        leaves.dedup();
        leaves.into_iter().map(|at| self.plan.tasks[at].id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

    /// What each unticked task waits for, as one line.
    fn waits(text: &str) -> String {
        let plan = Plan::read("tasks.md", text.as_bytes()).unwrap();
        let readiness = plan.readiness(|task| task.mark.is_settled());
        let line = |task: &crate::plan::Task| {
            let waits: Vec<String> = readiness.waits_for(&task.id).iter().map(ToString::to_string).collect();
            format!("{}<{}", task.id, waits.join(","))
        };
        plan.leaves().filter(|task| !task.mark.is_settled()).map(line).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn completed_tasks_pass_on_their_own_dependencies() {
        for (text, wanted) in [
            ("- [ ] T001 a\n- [x] T002 b\n- [ ] T003 c\n", "T001< T003<T001"),
            ("- [ ] T001 a\n- [x] T002 b\n- [-] T003 c\n- [ ] T004 d\n", "T001< T004<T001"),
            ("- [x] T001 a\n- [x] T002 b\n- [ ] T003 c\n", "T003<"),
            (
                "## Phase 1: a\n- [ ] T001 a\n- [x] T002 b\n## Phase 2: b\n- [x] T003 c\n## Phase 3: c\n- [ ] T004 d\n",
                "T001< T004<phase-1",
            ),
            (
                "## Phase 1: a\n- [ ] T001 a\n- [ ] T002 [P] b\n- [x] T003 c\n- [ ] T004 d\n",
                "T001< T002<T001 T004<T002",
            ),
        ] {
            assert_eq!(waits(text), wanted, "{text}");
        }
    }

    #[test]
    fn the_waves_of_a_plan_respect_its_dependencies() {
        let text = "- [ ] T001 a\n- [x] T002 b\n- [ ] T003 c\n- [ ] T004 d\n";
        let plan = Plan::read("tasks.md", text.as_bytes()).unwrap();
        let waves = plan.waves(|task| task.mark.is_settled());
        assert_eq!(waves.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
    }
}
