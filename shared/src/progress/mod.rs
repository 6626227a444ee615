//! Joins plan and history: the state of every task and phase, what waits for what, and what is ready. Pure.

mod merged;
mod phase;
mod totals;
mod words;

pub use merged::{MergedRun, tasks_done_by};
pub use totals::RunTotals;

use std::collections::HashMap;

use crate::{
    history::{Run, State, TaskHistory, TaskState},
    name::{Attempt, TaskId},
    plan::{Mark, Plan, Task},
};

/// Whether the marks of a plan count. If so, those of the frozen plan are used, never those that an agent may have
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boxes {
    /// A ticked task is complete from the start, a crossed one skipped.
    Count,
    /// Marks are ignored.
    Ignore,
}

/// The state of one task or phase, with its evidence.
#[derive(Debug, Clone)]
pub struct NodeProgress<'a> {
    /// Its id.
    pub id: &'a TaskId,
    /// Its name according to the plan, or to its commits.
    pub name: &'a str,
    /// The node of the plan, if the plan contains it.
    pub planned: Option<&'a Task>,
    /// Its history.
    pub history: Option<&'a TaskHistory>,
    /// Its state.
    pub state: State,
    /// Whether there is a plan and it does not contain this.
    pub is_stray: bool,
    /// How many phases it is nested in.
    pub depth: usize,
    /// The declared dependencies that are not on the run's branch yet: tasks and phases.
    pub waits_for: Vec<TaskId>,
    /// Whether it can be started now: an unfinished leaf that waits for nothing.
    pub is_ready: bool,
}

impl NodeProgress<'_> {
    /// Whether it has no tasks below it.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        self.planned.is_none_or(Task::is_leaf)
    }

    /// The current or last attempt.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.history.and_then(|history| history.state.attempt)
    }

    /// Whether it is complete on its own branch only.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        self.state == State::Complete && !self.is_landed()
    }

    /// Whether it is complete on the run's branch.
    #[must_use]
    pub fn is_landed(&self) -> bool {
        self.state == State::Complete && self.history.is_none_or(|history| history.is_landed)
    }
}

/// How much of the work is done. Skipped tasks count in neither number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Complete tasks that have landed.
    pub done: usize,
    /// All tasks.
    pub total: usize,
}

impl Share {
    /// In percent, rounded, but 100 only if everything is done.
    #[must_use]
    pub fn percent(self) -> usize {
        let rounded = (self.done * 100 + self.total / 2).checked_div(self.total).unwrap_or(100);
        if self.done < self.total { rounded.min(99) } else { rounded }
    }
}

/// The state of everything, in the order of the plan; nodes that only history knows come last.
#[derive(Debug)]
pub struct Progress<'a> {
    /// One for each node.
    pub standings: Vec<NodeProgress<'a>>,
    index: HashMap<&'a TaskId, usize>,
    /// Phases whose own tests failed when they last ran. A run begins with these tests and stops if they fail again, so
    /// nothing is ready before they pass.
    broken: Vec<TaskId>,
}

impl<'a> Progress<'a> {
    /// Joins a plan and a run.
    #[must_use]
    pub fn new(plan: Option<&'a Plan>, run: &'a Run, boxes: Boxes) -> Self {
        let histories: HashMap<&TaskId, &TaskHistory> =
            run.tasks.iter().map(|history| (&history.id, history)).collect();
        let planned = plan.map(|plan| plan.tasks.as_slice()).unwrap_or_default();
        let mut progress = Self { standings: Vec::new(), index: HashMap::new(), broken: Vec::new() };
        for task in planned {
            let depth = task
                .parent
                .as_ref()
                .and_then(|parent| progress.find(parent))
                .map_or(0, |parent| parent.depth + 1);
            progress.push(leaf(task, histories.get(&task.id).copied(), boxes, depth));
        }
        for history in &run.tasks {
            if !progress.index.contains_key(&history.id) {
                let standing = unplanned(history);
                // A run only works on its plan, so nothing else is ready.
                let is_ready = standing.is_ready && plan.is_none();
                progress.push(NodeProgress { is_stray: plan.is_some(), is_ready, ..standing });
            }
        }
        if let Some(plan) = plan {
            progress.settle_phases();
            progress.find_ready(plan);
        }
        progress
    }

    /// The state of one node.
    #[must_use]
    pub fn find(&self, id: &TaskId) -> Option<&NodeProgress<'a>> {
        self.index.get(id).map(|at| &self.standings[*at])
    }

    /// The leaves.
    pub fn leaves(&self) -> impl Iterator<Item = &NodeProgress<'a>> {
        self.standings.iter().filter(|standing| standing.is_leaf())
    }

    /// The leaves that are the work: those of the plan, or all if there is none.
    pub fn counted(&self) -> impl Iterator<Item = &NodeProgress<'a>> {
        self.leaves().filter(|standing| !standing.is_stray)
    }

    /// How much of the work is done.
    #[must_use]
    pub fn share(&self) -> Share {
        let total = self.counted().filter(|standing| standing.state != State::Skipped).count();
        Share { done: self.counted().filter(|standing| standing.is_landed()).count(), total }
    }

    /// How many tasks are ready.
    #[must_use]
    pub fn count_ready(&self) -> usize {
        self.counted().filter(|standing| standing.is_ready && !standing.is_paused()).count()
    }

    /// Whether a task waits only for failed tests of phases: a run that includes it begins with these.
    #[must_use]
    pub fn waits_for_tests_only(&self, id: &TaskId) -> bool {
        self.find(id).is_some_and(|standing| {
            is_unfinished(standing.state)
                && !standing.waits_for.is_empty()
                && standing.waits_for.iter().all(|need| self.broken.contains(need))
        })
    }

    /// Whether a run has something to do for a task: work, or a landing.
    #[must_use]
    pub fn is_left(&self, id: &TaskId) -> bool {
        self.find(id).is_some_and(|standing| !standing.state.is_settled() || standing.is_apart())
    }

    /// How many of the counted leaves are in `state`.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.counted().filter(|standing| standing.state == state).count()
    }

    fn push(&mut self, standing: NodeProgress<'a>) {
        self.index.insert(standing.id, self.standings.len());
        self.standings.push(standing);
    }

    fn state_of(&self, id: &TaskId) -> State {
        self.find(id).map_or(State::Pending, |standing| standing.state)
    }

    /// A task waits for the dependencies of itself and of its phases, as declared: a phase stands for all its leaves. A
    /// leaf is available if it is skipped, or complete on the run's branch.
    fn find_ready(&mut self, plan: &'a Plan) {
        self.broken = self.find_broken();
        let is_there = |task: &Task| {
            self.find(&task.id)
                .is_some_and(|standing| standing.state == State::Skipped || standing.is_landed())
        };
        let readiness = plan.readiness(is_there);
        // The changes of such a task are not on the run's branch yet: a second change of the same file would conflict.
        let is_unlanded =
            |standing: &&NodeProgress<'a>| standing.state == State::Complete && !standing.is_landed();
        let unlanded: Vec<&Task> =
            self.leaves().filter(is_unlanded).filter_map(|standing| standing.planned).collect();
        for at in 0..self.standings.len() {
            let Some(task) = self.standings[at].planned.filter(|task| task.is_leaf()) else { continue };
            let mut waits_for = readiness.waits_for(&task.id);
            let is_shared = |other: &&&Task| other.shares_files(task) && !waits_for.contains(&other.id);
            let shared: Vec<TaskId> = unlanded.iter().filter(is_shared).map(|task| task.id.clone()).collect();
            waits_for.extend(shared);
            if is_unfinished(self.standings[at].state) {
                let more = self.broken.iter().filter(|phase| !waits_for.contains(phase));
                let more: Vec<TaskId> = more.cloned().collect();
                waits_for.extend(more);
            }
            let standing = &mut self.standings[at];
            standing.is_ready = waits_for.is_empty() && is_unfinished(standing.state);
            standing.waits_for = waits_for;
        }
    }
}

fn is_unfinished(state: State) -> bool {
    state == State::Pending || state.is_under_way()
}

/// History decides; without it, the mark in the plan does.
fn leaf<'a>(
    task: &'a Task,
    history: Option<&'a TaskHistory>,
    boxes: Boxes,
    depth: usize,
) -> NodeProgress<'a> {
    let told = history
        .map(|history| &history.state)
        .filter(|state| state.commit.is_some() || state.state == State::Forked);
    let state = match (told, task.mark, boxes) {
        (_, Mark::Skipped, Boxes::Count) => State::Skipped,
        (Some(TaskState { state, .. }), _, _) => *state,
        (None, Mark::Done, Boxes::Count) => State::Complete,
        (None, _, _) => State::Pending,
    };
    NodeProgress {
        id: &task.id,
        name: &task.name,
        planned: Some(task),
        history,
        state,
        is_stray: false,
        depth,
        waits_for: Vec::new(),
        is_ready: false,
    }
}

fn unplanned(history: &TaskHistory) -> NodeProgress<'_> {
    let state = history.state.state;
    NodeProgress {
        id: &history.id,
        name: history.name().unwrap_or_default(),
        planned: None,
        history: Some(history),
        state,
        is_stray: false,
        depth: 0,
        waits_for: Vec::new(),
        is_ready: is_unfinished(state),
    }
}
