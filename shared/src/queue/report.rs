//! The report of a drain, and its events.

use super::{Failing, ForeignCommits, LandingPolicy, ParkingObstacle, Ticket, UnparkWay};
use crate::{
    git::MergeConflict,
    history::RevertedMerge,
    name::{Oid, TaskId},
};

/// The outcome of a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicketOutcome {
    /// It has landed on its target.
    Landed {
        /// Its merge commit.
        commit: Oid,
    },
    /// It has landed on top of its target, and waits until a person updates the checkout.
    Parked {
        /// Its merge commit.
        commit: Oid,
    },
    /// Its target already has all of its changes.
    NoChange,
    /// Others were chosen instead.
    NotChosen {
        /// The policy.
        policy: LandingPolicy,
    },
    /// It cannot be merged.
    Conflict {
        /// The conflicts.
        conflicts: Vec<MergeConflict>,
        /// Whether a person has to resolve it.
        escalated: bool,
    },
    /// Its task will be done again, on top of what has landed meanwhile.
    Withdrawn,
    /// A gate failed.
    Red {
        /// The result of the gate.
        failing: Failing,
        /// The tasks together with which the gate fails, although it passes without them.
        with: Vec<TaskId>,
    },
    /// A gate failed, but it fails on the target too.
    FailsOnTarget {
        /// The result of the gate.
        failing: Failing,
    },
    /// A gate could not be run.
    Broken {
        /// The reason.
        failing: Failing,
    },
    /// It cannot land in another repository, so it lands in none.
    Blocked {
        /// The reason.
        why: String,
    },
    /// Its branch is gone. The ticket says where its commits are.
    Lost,
    /// It was merged by hand, and its changes were taken back.
    Reverted(RevertedMerge),
    /// It was not tried.
    Waiting {
        /// What it waits for, in words.
        reason: String,
    },
}

/// A landing that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parking {
    /// Why the target could not be moved.
    pub why: String,
    /// How the checkout is brought up to date.
    pub way: UnparkWay,
    /// What is in the way in the checkout, if it was found.
    pub obstacle: Option<ParkingObstacle>,
}

/// The report of a drain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueReport {
    /// The outcome of each ticket, in the order in which they were settled.
    pub outcomes: Vec<(Ticket, TicketOutcome)>,
    /// How many gates were run.
    pub gate_runs: usize,
    /// Gates that failed and then passed on the same commit.
    pub flaky: Vec<String>,
    /// Set if landings are parked.
    pub parking: Option<Parking>,
    /// Whether the user asked to stop.
    pub is_stopped: bool,
}

impl QueueReport {
    /// Finds the outcome of a task.
    #[must_use]
    pub fn find(&self, task: &TaskId) -> Option<&TicketOutcome> {
        self.outcomes.iter().rev().find(|(ticket, _)| ticket.task == *task).map(|(_, outcome)| outcome)
    }

    /// Adds the report of another drain.
    pub fn join(&mut self, other: Self) {
        self.outcomes.extend(other.outcomes);
        self.gate_runs += other.gate_runs;
        self.flaky.extend(other.flaky);
        self.parking = self.parking.take().or(other.parking);
        self.is_stopped |= other.is_stopped;
    }

    /// Records an outcome. It replaces an earlier one of the same task.
    pub(super) fn put(&mut self, ticket: &Ticket, outcome: TicketOutcome) {
        self.outcomes.retain(|(known, _)| known.task != ticket.task);
        self.outcomes.push((ticket.clone(), outcome));
    }
}

/// An event of a drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueEvent {
    /// A ticket has an outcome.
    Settled {
        /// The ticket.
        ticket: Box<Ticket>,
        /// The outcome.
        outcome: Box<TicketOutcome>,
    },
    /// There are commits on the target that this process did not make.
    Foreign(ForeignCommits),
    /// Something takes time: a gate, or an agent that resolves a conflict.
    Progress {
        /// The task, if it is about one.
        task: Option<TaskId>,
        /// A sentence.
        words: String,
    },
    /// Anything else that the user should know.
    Note {
        /// The task, if it is about one.
        task: Option<TaskId>,
        /// A sentence.
        words: String,
    },
}

impl QueueEvent {
    /// A note about no task in particular.
    pub(super) fn note(words: String) -> Self {
        Self::Note { task: None, words }
    }
}
