//! Chooses the next task. Pure functions of the plan, its progress and the running tasks.

use std::collections::BTreeSet;

use super::GardenerError;
use crate::{
    history::{Run, State},
    name::TaskId,
    plan::{Plan, Task},
    progress::{NodeProgress, PlanMarks, Progress},
};

/// Which tasks are wanted.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Only these tasks and the tasks of these phases, if any are named.
    pub only: Vec<TaskId>,
    /// Nothing after this task or phase in the order of the plan.
    pub until: Option<TaskId>,
    /// Whether tasks that do not depend on a failed one are still started.
    pub keep_going: bool,
    /// Whether tasks that have failed before are reset and done again.
    pub retry_failed: bool,
}

impl Selection {
    /// A task that is named here but is not in the plan.
    #[must_use]
    pub fn unknown(&self, plan: &Plan) -> Option<&TaskId> {
        self.only.iter().chain(&self.until).find(|task| plan.find(task).is_none())
    }

    /// Refuses names of which none comes before the last task that is wanted.
    pub fn refuse_empty(&self, plan: &Plan) -> Result<(), GardenerError> {
        match &self.until {
            Some(until) if !self.only.is_empty() && wanted(plan, self).is_empty() => {
                Err(GardenerError::NothingSelected { only: self.only.clone(), until: until.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// The selected tasks, in the order of the plan.
#[must_use]
pub fn wanted<'a>(plan: &'a Plan, selection: &Selection) -> Vec<&'a Task> {
    let mut order = plan.order();
    let last = |until| order.iter().rposition(|task| is_below(plan, task, until));
    if let Some(end) = selection.until.as_ref().and_then(last) {
        order.truncate(end + 1);
    }
    order.retain(|task| {
        selection.only.is_empty() || selection.only.iter().any(|named| is_below(plan, task, named))
    });
    order
}

/// The selected tasks for which there is something to do: work, or a landing.
#[must_use]
pub fn due<'a>(plan: &'a Plan, progress: &Progress<'_>, selection: &Selection) -> Vec<&'a Task> {
    let mut due = wanted(plan, selection);
    due.retain(|task| match progress.find(&task.id).map(|node| node.state) {
        Some(State::Failed) => selection.retry_failed,
        _ => progress.is_left(&task.id),
    });
    due
}

/// Whether `named` is the task itself or a phase that contains it.
fn is_below(plan: &Plan, task: &Task, named: &TaskId) -> bool {
    let parent = |task: &&Task| task.parent.as_ref().and_then(|parent| plan.find(parent));
    std::iter::successors(Some(task), parent).any(|task| task.id == *named)
}

/// The next task to start while `running` ones run: the first ready one that names none of their files. One that does
/// waits until they have landed, because it would conflict with them. Tasks in `excluded` are not started again.
pub(super) fn next_task<'a>(
    wanted: &[&'a Task],
    progress: &Progress<'_>,
    running: &[&Task],
    excluded: &BTreeSet<TaskId>,
    pick: Pick,
) -> Option<&'a Task> {
    let is_ready = |task: &&&Task| {
        let is_free = !excluded.contains(&task.id) && running.iter().all(|other| other.id != task.id);
        is_free && progress.find(&task.id).is_some_and(NodeProgress::is_ready)
    };
    let shares_no_file = |task: &&&Task| running.iter().all(|other| !task.shares_files(other));
    let candidates = wanted.iter().filter(is_ready).filter(shares_no_file).copied();
    let candidates: Vec<&'a Task> = candidates.take(pick.among).collect();
    candidates.get(pick.number % candidates.len().max(1)).copied()
}

/// Which of the tasks that could be started is started. Workers that share a plan choose different ones, so that they
/// do not all claim the first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick {
    /// How many tasks there are to choose from.
    pub(super) among: usize,
    /// A number that is different for each worker.
    pub(super) number: usize,
}

impl Pick {
    /// The first one.
    pub(super) const FIRST: Self = Self { among: 1, number: 0 };
}

/// The tasks of a selection that are not done and have not failed in this call.
#[must_use]
pub fn left_over(plan: &Plan, run: &Run, selection: &Selection, failed: &[TaskId]) -> Vec<TaskId> {
    left(&wanted(plan, selection), &Progress::new(Some(plan), run, PlanMarks::Count), failed)
}

/// The tasks that are not done and have not failed in this call.
pub(super) fn left(wanted: &[&Task], progress: &Progress<'_>, failed: &[TaskId]) -> Vec<TaskId> {
    let is_left = |node: &&NodeProgress<'_>| !node.state.is_done() && !failed.contains(node.id);
    let left = wanted.iter().filter_map(|task| progress.find(&task.id)).filter(is_left);
    left.map(|node| node.id.clone()).collect()
}

/// The tasks that have failed before.
pub(super) fn failed_before<'a>(wanted: &[&'a Task], progress: &Progress<'_>) -> Vec<&'a Task> {
    let has_failed = |task: &&&Task| progress.find(&task.id).is_some_and(|node| node.state == State::Failed);
    wanted.iter().filter(has_failed).copied().collect()
}
