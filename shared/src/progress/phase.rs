//! Phases: their state follows from their leaves, and from their own tests at the end.

use super::{NodeProgress, Progress};
use crate::{
    history::{Event, State, TaskHistory},
    message::{Key, Status},
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
            let has_passed = || self.has_passed(phase, standing.history);
            self.standings[at].state = phase_state(phase, (&below, are_there), has_passed);
        }
    }

    /// Whether the phase's own tests passed when they last ran. Workers that share a plan run them only as gates of the
    /// landing that completes the phase; a run on one machine records them afterwards. A missing result is not a pass.
    fn has_passed(&self, phase: &Task, history: Option<&TaskHistory>) -> bool {
        let last = history.and_then(TaskHistory::last);
        if last.is_some_and(|last| last.status() == Status::TestPass) {
            return true;
        }
        let landings = self.landings_below(phase);
        let newest = landings.iter().map(|landing| landing.time).max();
        let is_newest = |landing: &&&Event| {
            Some(landing.time) == newest && last.is_none_or(|last| last.time < landing.time)
        };
        landings.iter().filter(is_newest).any(|landing| has_passed_gates(landing, &phase.id))
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
fn phase_state(
    phase: &Task,
    (below, are_there): (&[State], bool),
    has_passed: impl FnOnce() -> bool,
) -> State {
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
