//! What a drain came to, and what it tells while it works.

use super::{Failing, ForeignCommits, Parking, Ticket};
use crate::{
    git::MergeConflict,
    name::{Oid, TaskId},
};

/// What became of a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketOutcome {
    /// It is on its target.
    Landed {
        /// Its merge commit.
        commit: Oid,
    },
    /// It is kept on top of its target until a person brings a checkout up.
    Parked {
        /// Its merge commit.
        commit: Oid,
    },
    /// Its target has all of it.
    NoChange,
    /// Others were chosen instead.
    NotChosen,
    /// It cannot be merged.
    Conflict {
        /// What stands in the way.
        conflicts: Vec<MergeConflict>,
        /// Whether a person is needed now.
        escalated: bool,
    },
    /// Its task is to be done anew, on what has landed meanwhile.
    Withdrawn,
    /// A gate does not let it through.
    Red {
        /// What the gate said.
        failing: Failing,
        /// The tasks that it does not go together with, although it is good without them.
        with: Vec<TaskId>,
    },
    /// A gate is red, but it was red on the target too.
    RedBefore {
        /// What the gate said.
        failing: Failing,
    },
    /// A gate could not be asked.
    Broken {
        /// Why.
        failing: Failing,
    },
    /// It was not tried.
    Waiting {
        /// For what, in words.
        reason: String,
    },
}

/// What a drain came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueReport {
    /// What became of each ticket, in the order in which it was settled.
    pub outcomes: Vec<(Ticket, TicketOutcome)>,
    /// How many gates were run.
    pub gate_runs: usize,
    /// Gates that were red and then green on the same commit.
    pub flaky: Vec<String>,
    /// Where landings wait for a person.
    pub parking: Option<Parking>,
    /// Whether the user asked to stop.
    pub is_stopped: bool,
}

impl QueueReport {
    /// What became of a task.
    #[must_use]
    pub fn find(&self, task: &TaskId) -> Option<&TicketOutcome> {
        self.outcomes.iter().rev().find(|(ticket, _)| ticket.task == *task).map(|(_, outcome)| outcome)
    }

    /// Takes in what another drain came to.
    pub fn join(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
        self.gate_runs += other.gate_runs;
        self.flaky.extend(other.flaky);
        self.parking = self.parking.take().or(other.parking);
        self.is_stopped |= other.is_stopped;
    }

    /// A later word on a ticket replaces an earlier one.
    pub(super) fn put(&mut self, ticket: &Ticket, outcome: TicketOutcome) {
        self.outcomes.retain(|(known, _)| known.task != ticket.task);
        self.outcomes.push((ticket.clone(), outcome));
    }
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueEvent {
    /// A gate is run.
    Gating {
        /// Its name.
        gate: String,
        /// The commit.
        commit: Oid,
    },
    /// What became of a ticket.
    Settled {
        /// The ticket.
        ticket: Box<Ticket>,
        /// What.
        outcome: Box<TicketOutcome>,
    },
    /// An agent is asked to resolve a conflict.
    Resolving {
        /// The task.
        task: TaskId,
        /// Which try, from 1.
        attempt: u32,
    },
    /// Commits came to the target that this process did not make.
    Foreign(ForeignCommits),
    /// Anything else that a user should know.
    Note {
        /// A sentence.
        words: String,
    },
}
