//! The interface between deciding and acting. [`Drain`](super::Drain) needs no git: it sees the repository through
//! [`QueueBackend`], which tests implement on plain maps.

use std::collections::HashSet;

use super::{Gate, GateVerdict, LoggedOutcome, Parking, QueueError, QueueEvent, Ticket, TicketState};
use crate::{
    git::MergeConflict,
    name::{Oid, TaskId},
};

/// The state of the queue.
#[derive(Debug, Clone, Default)]
pub struct QueueView {
    /// All tickets of one target.
    pub tickets: Vec<Ticket>,
    /// Tickets that turned out to have landed already, with their merge commits. They are no longer in the queue.
    pub done: Vec<(Ticket, Oid)>,
    /// The commit that the next merge is based on, at the time of this view.
    pub tip: Option<Oid>,
    /// The tasks that have landed.
    pub landed: HashSet<TaskId>,
    /// The recent tries to land something.
    pub recent: RecentTries,
    /// Whether anything has a gate. Without gates there is no reason to land in parts.
    pub is_gated: bool,
}

/// How often something was tested to land recently.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecentTries {
    /// All tries.
    pub tries: usize,
    /// Those that failed a gate.
    pub reds: usize,
}

/// A merge commit that is to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingStep {
    /// The ticket.
    pub ticket: Ticket,
    /// The commit. Its first parent is the step before, or the target.
    pub commit: Oid,
    /// The gates that it has to pass.
    pub gates: Vec<Gate>,
}

/// A task that landed while the work of a ticket was under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierLanding {
    /// The task.
    pub task: TaskId,
    /// The target before it landed.
    pub before: Oid,
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A merge commit.
    Clean(Box<LandingStep>),
    /// It would change nothing.
    NoChange,
    /// It conflicts.
    Conflict(Vec<MergeConflict>),
    /// It cannot land in another repository, for this reason.
    Refused(String),
}

/// Which remembered results may be used instead of running a gate again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RememberedResults {
    /// All.
    Any,
    /// Those of gates that passed. A gate that failed runs again.
    Passed,
}

/// The result of publishing a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The target was moved.
    Landed,
    /// The target could not be moved. The landing is parked, and later ones are put on top of it.
    Parked(Parking),
    /// Another process has moved the target. Nothing has landed.
    TargetChanged,
    /// A branch of another repository cannot be moved, for this reason. Nothing has landed.
    Refused(String),
}

/// The result of a try to resolve a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The ticket waits again, with a resolution to be merged and tested.
    Resolved,
    /// It failed. The reason is in the stored ticket's last try.
    Failed,
    /// The task is done again; its ticket is closed.
    Withdrawn,
    /// No agent tries. The ticket has its current conflicts.
    Left(Box<Ticket>),
}

/// Everything that a drain needs from the repository.
pub trait QueueBackend {
    /// Repairs what a crash left, and returns the state of the queue. It may be the last view, if this backend has changed
    /// nothing since.
    fn repair_and_read(&mut self) -> Result<QueueView, QueueError>;
    /// The commit that the next merge is based on: the target, or the landing parked for it.
    fn tip(&mut self) -> Result<Oid, QueueError>;
    /// Merges a ticket's source into a new commit. Moves no ref.
    fn merge(&mut self, onto: Oid, ticket: &Ticket) -> Result<Merged, QueueError>;
    /// Writes the same merge again, with a message that these gates were not required because they failed before.
    fn excuse(&mut self, onto: Oid, step: &LandingStep, red: &[Gate]) -> Result<LandingStep, QueueError>;
    /// Runs gates on a commit, or uses remembered results.
    fn run_gates(
        &mut self,
        commit: Oid,
        gates: &[Gate],
        remembered: RememberedResults,
    ) -> Result<GateVerdict, QueueError>;
    /// How many gates were run since this was last asked.
    fn take_gate_runs(&mut self) -> usize;
    /// Whether a gate is known to have failed on a commit recently. Runs nothing.
    fn is_known_to_fail_on_target(&mut self, commit: Oid, gate: &Gate) -> Result<bool, QueueError>;
    /// The landings on the target since the work of a ticket began, oldest first, without the tasks that it needs.
    fn landings_since(&mut self, ticket: &Ticket) -> Result<Vec<EarlierLanding>, QueueError>;
    /// Records in steps that passed their gates how many tests ran. Returns the steps that land.
    fn record_tests(&mut self, steps: &[LandingStep]) -> Result<Vec<LandingStep>, QueueError> {
        Ok(steps.to_vec())
    }
    /// Moves the target from `base` to the last of `steps`, and closes their tickets.
    fn publish(&mut self, base: Oid, steps: &[LandingStep]) -> Result<Published, QueueError>;
    /// Stores the state of a ticket.
    fn set_state(&mut self, ticket: &Ticket, state: TicketState) -> Result<(), QueueError>;
    /// Removes a ticket that does not land from the queue, and logs why.
    fn close(&mut self, ticket: &Ticket, outcome: LoggedOutcome) -> Result<(), QueueError>;
    /// Keeps a person's resolution that has failed a gate, so that the person can correct it. Says where it is.
    fn keep_resolution(&mut self, _ticket: &Ticket) -> Result<Option<String>, QueueError> {
        Ok(None)
    }
    /// Tries to resolve the conflict of a ticket.
    fn resolve(&mut self, ticket: &Ticket) -> Result<Resolution, QueueError>;
    /// Reports an event.
    fn report(&mut self, event: QueueEvent);
    /// Whether the user asked to stop.
    fn is_cancelled(&self) -> bool;
    /// The current time in seconds since 1970.
    fn now(&self) -> i64;
}
