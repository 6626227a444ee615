//! Joins plan and history: the state of every task and phase, what waits for what, and what is ready. Pure.

mod merged;
mod run_costs;
mod words;

pub use merged::{MergedRun, tasks_done_by};
pub use run_costs::RunTotals;
pub use words::RestingState;

use std::collections::HashMap;

use crate::{
    history::{Event, Run, State, TaskHistory, TaskState},
    message::{Key, Status},
    name::{Attempt, TaskId},
    plan::{Mark, Plan, Task},
};

/// Whether the marks of a plan count. If so, those of the frozen plan are used, never those that an agent may have
/// written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanMarks {
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
    is_ready: bool,
}

impl NodeProgress<'_> {
    /// Whether it can be started now: an unfinished leaf that waits for nothing and is not held.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

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
    pub fn is_unlanded(&self) -> bool {
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
    nodes: Vec<NodeProgress<'a>>,
    index: HashMap<&'a TaskId, usize>,
    /// Phases whose own tests failed when they last ran. A run begins with these tests and stops if they fail again, so
    /// nothing is ready before they pass.
    broken: Vec<TaskId>,
}

impl<'a> Progress<'a> {
    /// Joins a plan and a run.
    #[must_use]
    pub fn new(plan: Option<&'a Plan>, run: &'a Run, marks: PlanMarks) -> Self {
        let histories: HashMap<&TaskId, &TaskHistory> =
            run.tasks.iter().map(|history| (&history.id, history)).collect();
        let planned = plan.map(|plan| plan.tasks.as_slice()).unwrap_or_default();
        let mut progress = Self { nodes: Vec::new(), index: HashMap::new(), broken: Vec::new() };
        for task in planned {
            let depth = task
                .parent
                .as_ref()
                .and_then(|parent| progress.find(parent))
                .map_or(0, |parent| parent.depth + 1);
            progress.push(leaf(task, histories.get(&task.id).copied(), marks, depth));
        }
        for history in &run.tasks {
            if !progress.index.contains_key(&history.id) {
                let node = unplanned(history);
                // A run only works on its plan, so nothing else is ready.
                let is_ready = node.is_ready && plan.is_none();
                progress.push(NodeProgress { is_stray: plan.is_some(), is_ready, ..node });
            }
        }
        if let Some(plan) = plan {
            progress.set_phase_states();
            progress.set_ready(plan);
        }
        progress
    }

    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> &[NodeProgress<'a>] {
        &self.nodes
    }

    /// Makes nodes not ready, for a reason that is neither in the plan nor in the history: a run is working on them, or
    /// would refuse to begin them.
    pub fn mark_not_ready(&mut self, is_blocked: impl Fn(&NodeProgress<'a>) -> bool) {
        for node in self.nodes.iter_mut().filter(|node| is_blocked(node)) {
            node.is_ready = false;
        }
    }

    /// The state of one node.
    #[must_use]
    pub fn find(&self, id: &TaskId) -> Option<&NodeProgress<'a>> {
        self.index.get(id).map(|at| &self.nodes[*at])
    }

    /// The leaves.
    pub fn leaves(&self) -> impl Iterator<Item = &NodeProgress<'a>> {
        self.nodes.iter().filter(|node| node.is_leaf())
    }

    /// The leaves that are the work: those of the plan, or all if there is none.
    pub fn counted(&self) -> impl Iterator<Item = &NodeProgress<'a>> {
        self.leaves().filter(|node| !node.is_stray)
    }

    /// How much of the work is done.
    #[must_use]
    pub fn share(&self) -> Share {
        let total = self.counted().filter(|node| node.state != State::Skipped).count();
        Share { done: self.counted().filter(|node| node.is_landed()).count(), total }
    }

    /// Whether all of the work is done: every task has landed, and the tests of every phase have passed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let is_done = |node: &NodeProgress<'_>| match node.state {
            State::Skipped => true,
            State::Complete => !node.is_leaf() || node.is_landed(),
            _ => false,
        };
        self.counted().next().is_some() && self.nodes.iter().filter(|node| !node.is_stray).all(is_done)
    }

    /// How many tasks are ready.
    #[must_use]
    pub fn count_ready(&self) -> usize {
        self.counted().filter(|node| node.is_ready && !node.is_paused()).count()
    }

    /// Whether a task waits only for failed tests of phases: a run that includes it begins with these.
    #[must_use]
    pub fn waits_for_tests_only(&self, id: &TaskId) -> bool {
        self.find(id).is_some_and(|node| {
            is_unfinished(node.state)
                && !node.waits_for.is_empty()
                && node.waits_for.iter().all(|need| self.broken.contains(need))
        })
    }

    /// Whether a run has something to do for a task: work, or a landing.
    #[must_use]
    pub fn is_left(&self, id: &TaskId) -> bool {
        self.find(id).is_some_and(|node| !node.state.is_done() || node.is_unlanded())
    }

    /// How many of the counted leaves are in `state`.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.counted().filter(|node| node.state == state).count()
    }

    fn push(&mut self, node: NodeProgress<'a>) {
        self.index.insert(node.id, self.nodes.len());
        self.nodes.push(node);
    }

    fn state_of(&self, id: &TaskId) -> State {
        self.find(id).map_or(State::Pending, |node| node.state)
    }

    /// Sets what each leaf waits for. A task waits for the dependencies of itself and of its phases, as declared: a
    /// phase stands for all its leaves. A leaf is available if it is skipped, or complete on the run's branch.
    fn set_ready(&mut self, plan: &'a Plan) {
        self.broken = self.find_broken();
        let is_there = |task: &Task| {
            self.find(&task.id).is_some_and(|node| node.state == State::Skipped || node.is_landed())
        };
        let readiness = plan.readiness(is_there);
        // The changes of such a task are not on the run's branch yet: a second change of the same file would conflict.
        let is_unlanded = |node: &&NodeProgress<'a>| node.state == State::Complete && !node.is_landed();
        let unlanded: Vec<&Task> =
            self.leaves().filter(is_unlanded).filter_map(|node| node.planned).collect();
        for at in 0..self.nodes.len() {
            let Some(task) = self.nodes[at].planned.filter(|task| task.is_leaf()) else { continue };
            let mut waits_for = readiness.waits_for(&task.id);
            let is_shared = |other: &&&Task| other.shares_files(task) && !waits_for.contains(&other.id);
            let shared: Vec<TaskId> = unlanded.iter().filter(is_shared).map(|task| task.id.clone()).collect();
            waits_for.extend(shared);
            if is_unfinished(self.nodes[at].state) {
                let more = self.broken.iter().filter(|phase| !waits_for.contains(phase));
                let more: Vec<TaskId> = more.cloned().collect();
                waits_for.extend(more);
            }
            let node = &mut self.nodes[at];
            node.is_ready = waits_for.is_empty() && is_unfinished(node.state);
            node.waits_for = waits_for;
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
    marks: PlanMarks,
    depth: usize,
) -> NodeProgress<'a> {
    let recorded = history
        .map(|history| &history.state)
        .filter(|state| state.commit.is_some() || state.state == State::Forked);
    let state = match (recorded, task.mark, marks) {
        (_, Mark::Skipped, PlanMarks::Count) => State::Skipped,
        (Some(TaskState { state, .. }), _, _) => *state,
        (None, Mark::Done, PlanMarks::Count) => State::Complete,
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
    let state = history.state();
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

impl Progress<'_> {
    /// The phases whose leaves are all complete and whose own tests failed when they last ran.
    fn find_broken(&self) -> Vec<TaskId> {
        let has_failed = |node: &&NodeProgress<'_>| {
            let last = node.history.and_then(TaskHistory::last).map(Event::status);
            !node.is_leaf() && node.state == State::Testing && last == Some(Status::TestFail)
        };
        self.nodes.iter().filter(has_failed).map(|node| node.id.clone()).collect()
    }

    /// Sets the states of phases. Children come after their parents, so that in reverse order every child is done
    /// before its parent.
    fn set_phase_states(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let node = &self.nodes[at];
            let Some(phase) = node.planned.filter(|task| !task.is_leaf()) else {
                continue;
            };
            let below: Vec<State> = phase.children.iter().map(|child| self.state_of(child)).collect();
            let is_there =
                |child| self.find(child).is_some_and(|s| s.state == State::Skipped || s.is_landed());
            let are_there = phase.children.iter().all(is_there);
            let has_passed = || self.has_passed(phase, node.history);
            self.nodes[at].state = phase_state(phase, &below, are_there, has_passed);
        }
    }

    /// Whether the phase's own tests passed after its last task was done. Workers that share a plan run them only as gates
    /// of the landing that completes the phase; a run on one machine records them afterwards. A missing result is not a
    /// pass, and neither is one from before a task was done again.
    fn has_passed(&self, phase: &Task, history: Option<&TaskHistory>) -> bool {
        let tested = history.and_then(|history| Some((history.last()?, history.place)));
        let done_at = self.find_last_place(phase);
        let is_current = tested.is_some_and(|(_, place)| done_at.is_none_or(|done_at| done_at < place));
        if is_current {
            return tested.is_some_and(|(last, _)| last.status() == Status::TestPass);
        }
        let landings = self.landings_below(phase);
        let newest = landings.iter().map(|landing| landing.time).max();
        let is_newest = |landing: &&&Event| Some(landing.time) == newest;
        landings.iter().filter(is_newest).any(|landing| has_passed_gates(landing, &phase.id))
    }

    /// The place in history of the last event of a task below the phase.
    fn find_last_place(&self, phase: &Task) -> Option<usize> {
        let children = phase.children.iter().filter_map(|child| self.find(child));
        let places = children.filter_map(|child| match child.planned.filter(|task| !task.is_leaf()) {
            Some(inner) => self.find_last_place(inner),
            None => child.history.map(|history| history.place),
        });
        places.max()
    }

    /// The last landing of each task of the phase.
    fn landings_below(&self, phase: &Task) -> Vec<&Event> {
        let children = phase.children.iter().filter_map(|child| self.find(child));
        let mut landings = Vec::new();
        for child in children {
            match child.planned.filter(|task| !task.is_leaf()) {
                Some(inner) => landings.extend(self.landings_below(inner)),
                None => {
                    let events = child.history.map(|history| history.events.as_slice()).unwrap_or_default();
                    landings.extend(events.iter().rfind(|event| event.status() == Status::Merge));
                }
            }
        }
        landings
    }
}

/// Whether the tests of this phase were gates of a landing of a worker, and passed.
fn has_passed_gates(landing: &Event, phase: &TaskId) -> bool {
    let of_phase = format!(" of {phase}");
    let gates = landing.trailers.get(Key::Gate).unwrap_or_default();
    let mut gates = gates.split(", ").filter(|gate| gate.ends_with(&of_phase)).peekable();
    // The body names the gates that failed before the task as well, and did not stop it.
    landing.trailers.get(Key::Worker).is_some()
        && gates.peek().is_some()
        && gates.all(|gate| !landing.mentions(&format!("> {gate}")))
}

/// A task that is complete on its own branch only is not available to others, so its phase is not complete.
fn phase_state(phase: &Task, below: &[State], are_there: bool, has_passed: impl FnOnce() -> bool) -> State {
    if below.iter().all(|state| *state == State::Skipped) {
        return State::Skipped;
    }
    if are_there {
        let is_complete = phase.own_tests().next().is_none() || has_passed();
        return if is_complete { State::Complete } else { State::Testing };
    }
    if let Some(worst) =
        [State::Forked, State::Reverted, State::Failed].into_iter().find(|worst| below.contains(worst))
    {
        return worst;
    }
    if below.iter().all(|state| matches!(state, State::Pending | State::Skipped)) {
        return State::Pending;
    }
    State::Implementing
}
