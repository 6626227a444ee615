//! What plan and history together say: where every task and every phase stands, what waits for what, and what
//! can be taken up now. Pure: it decides, and somebody else shows or acts.

mod phase;
mod totals;

pub use totals::Totals;

use std::collections::{HashMap, HashSet};

use crate::{
    history::{Run, State, TaskHistory, TaskState},
    name::{Attempt, TaskId},
    plan::{Mark, Plan, Task},
};

/// Whether the marks of a plan count. They do as they stood when the plan was frozen, never as an agent may
/// have left them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boxes {
    /// A ticked task is complete from the start, a crossed one skipped.
    Count,
    /// Marks say nothing.
    Ignore,
}

/// Where one task or phase stands, and on what evidence.
#[derive(Debug, Clone)]
pub struct Standing<'a> {
    /// Its id.
    pub id: &'a TaskId,
    /// Its name: the plan's, else what its commits say.
    pub name: &'a str,
    /// The node of the plan, if the plan knows it.
    pub planned: Option<&'a Task>,
    /// What history knows of it.
    pub history: Option<&'a TaskHistory>,
    /// Its state.
    pub state: State,
    /// Whether there is a plan and it does not know this.
    pub is_stray: bool,
    /// How many phases it stands in.
    pub depth: usize,
    /// What it waits for, as the plan declares it: tasks and phases that are not there to build on yet.
    pub waits_for: Vec<TaskId>,
    /// Whether it can be taken up now: a leaf, unfinished, that waits for nothing.
    pub is_ready: bool,
}

impl Standing<'_> {
    /// Whether it has no tasks below it.
    #[must_use]
    pub fn is_leaf(&self) -> bool {
        self.planned.is_none_or(Task::is_leaf)
    }

    /// The attempt that it is in, or ended in.
    #[must_use]
    pub fn attempt(&self) -> Option<Attempt> {
        self.history.and_then(|history| history.state.attempt)
    }

    /// Whether it is complete and what completed it is on the run's branch.
    #[must_use]
    pub fn is_landed(&self) -> bool {
        self.state == State::Complete && self.history.is_none_or(|history| history.is_landed)
    }
}

/// The standing of everything, in the order of the plan; what only history knows comes last.
#[derive(Debug)]
pub struct Progress<'a> {
    /// One for each node.
    pub standings: Vec<Standing<'a>>,
    index: HashMap<&'a TaskId, usize>,
}

impl<'a> Progress<'a> {
    /// Joins a plan and a run.
    #[must_use]
    pub fn new(plan: Option<&'a Plan>, run: &'a Run, boxes: Boxes) -> Self {
        let histories: HashMap<&TaskId, &TaskHistory> =
            run.tasks.iter().map(|history| (&history.id, history)).collect();
        let planned = plan.map(|plan| plan.tasks.as_slice()).unwrap_or_default();
        let mut progress = Self { standings: Vec::new(), index: HashMap::new() };
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
                progress.push(Standing { is_stray: plan.is_some(), ..unplanned(history) });
            }
        }
        if let Some(plan) = plan {
            progress.settle_phases();
            progress.find_ready(plan);
        }
        progress
    }

    /// The standing of one node.
    #[must_use]
    pub fn find(&self, id: &TaskId) -> Option<&Standing<'a>> {
        self.index.get(id).map(|at| &self.standings[*at])
    }

    /// The standings of what is worked on.
    pub fn leaves(&self) -> impl Iterator<Item = &Standing<'a>> {
        self.standings.iter().filter(|standing| standing.is_leaf())
    }

    /// The leaves that make up the work: those of the plan, or all where there is none.
    pub fn counted(&self) -> impl Iterator<Item = &Standing<'a>> {
        self.leaves().filter(|standing| !standing.is_stray)
    }

    /// How many of the leaves that are counted are in `state`.
    #[must_use]
    pub fn count(&self, state: State) -> usize {
        self.counted().filter(|standing| standing.state == state).count()
    }

    fn push(&mut self, standing: Standing<'a>) {
        self.index.insert(standing.id, self.standings.len());
        self.standings.push(standing);
    }

    fn state_of(&self, id: &TaskId) -> State {
        self.find(id).map_or(State::Pending, |standing| standing.state)
    }

    /// What a task waits for is what the plan declares for it and for its phases, as it is declared: a phase stands for
    /// all its leaves.
    fn find_ready(&mut self, plan: &'a Plan) {
        let available = self.available(plan);
        // What such a task changed is not on the run's branch yet: a second change of the same file would conflict.
        let is_unlanded =
            |standing: &&Standing<'a>| standing.state == State::Complete && !standing.is_landed();
        let unlanded: Vec<&Task> =
            self.leaves().filter(is_unlanded).filter_map(|standing| standing.planned).collect();
        for at in 0..self.standings.len() {
            let Some(task) = self.standings[at].planned.filter(|task| task.is_leaf()) else { continue };
            let mut waits_for: Vec<TaskId> = Vec::new();
            let mut next = Some(task);
            while let Some(node) = next {
                let is_missing = |need: &&TaskId| !available.contains(*need) && !waits_for.contains(*need);
                let missing: Vec<TaskId> = node.depends_on.iter().filter(is_missing).cloned().collect();
                waits_for.extend(missing);
                next = node.parent.as_ref().and_then(|parent| plan.find(parent));
            }
            let is_shared = |other: &&&Task| other.shares_files(task) && !waits_for.contains(&other.id);
            let shared: Vec<TaskId> = unlanded.iter().filter(is_shared).map(|task| task.id.clone()).collect();
            waits_for.extend(shared);
            let standing = &mut self.standings[at];
            standing.is_ready = waits_for.is_empty() && is_unfinished(standing.state);
            standing.waits_for = waits_for;
        }
    }

    /// What others can build on: leaves that are skipped, or complete on the run's branch, and phases of such leaves.
    fn available(&self, plan: &'a Plan) -> HashSet<&'a TaskId> {
        let mut available = HashSet::new();
        for task in plan.tasks.iter().rev() {
            let is_there = match self.find(&task.id) {
                Some(standing) if task.is_leaf() => standing.state == State::Skipped || standing.is_landed(),
                _ => task.children.iter().all(|child| available.contains(child)),
            };
            if is_there {
                available.insert(&task.id);
            }
        }
        available
    }
}

fn is_unfinished(state: State) -> bool {
    state == State::Pending || state.is_under_way()
}

/// History speaks first; where it is silent, the mark in the plan does.
fn leaf<'a>(task: &'a Task, history: Option<&'a TaskHistory>, boxes: Boxes, depth: usize) -> Standing<'a> {
    let told = history
        .map(|history| &history.state)
        .filter(|state| state.commit.is_some() || state.state == State::Forked);
    let state = match (told, task.mark, boxes) {
        (_, Mark::Skipped, Boxes::Count) => State::Skipped,
        (Some(TaskState { state, .. }), _, _) => *state,
        (None, Mark::Done, Boxes::Count) => State::Complete,
        (None, _, _) => State::Pending,
    };
    Standing {
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

fn unplanned(history: &TaskHistory) -> Standing<'_> {
    let state = history.state.state;
    Standing {
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
