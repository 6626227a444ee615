//! Phases: their state follows from their leaves, and from their own tests at the end.

use super::{NodeProgress, Progress};
use crate::{
    history::{Event, State, TaskHistory},
    message::Status,
    name::TaskId,
    plan::Task,
};

impl Progress<'_> {
    /// The phases whose leaves are all complete and whose own tests failed when they last ran.
    pub(super) fn find_broken(&self) -> Vec<TaskId> {
        let has_failed = |standing: &&NodeProgress<'_>| {
            let last = standing.history.and_then(TaskHistory::last).map(Event::status);
            !standing.is_leaf() && standing.state == State::Testing && last == Some(Status::TestFail)
        };
        self.standings.iter().filter(has_failed).map(|standing| standing.id.clone()).collect()
    }

    /// Children come after their parents, so that in reverse order every child is done before its parent.
    pub(super) fn settle_phases(&mut self) {
        for at in (0..self.standings.len()).rev() {
            let standing = &self.standings[at];
            let Some(phase) = standing.planned.filter(|task| !task.is_leaf()) else {
                continue;
            };
            let below: Vec<State> = phase.children.iter().map(|child| self.state_of(child)).collect();
            let is_there =
                |child| self.find(child).is_some_and(|s| s.state == State::Skipped || s.is_landed());
            let are_there = phase.children.iter().all(is_there);
            self.standings[at].state = phase_state(phase, (&below, are_there), standing.history);
        }
    }
}

/// A task that is complete on its own branch only is not available to others, so its phase is not complete.
fn phase_state(phase: &Task, (below, are_there): (&[State], bool), history: Option<&TaskHistory>) -> State {
    if below.iter().all(|state| *state == State::Skipped) {
        return State::Skipped;
    }
    if are_there {
        return if phase.own_tests().next().is_some() { tested(history) } else { State::Complete };
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

/// The phase is complete when its own tests passed last time; a missing result is not a pass.
fn tested(history: Option<&TaskHistory>) -> State {
    let last = history.and_then(TaskHistory::last).map(Event::status);
    if last == Some(Status::TestPass) { State::Complete } else { State::Testing }
}
