//! What the queue stands on. Deciding needs no git: this is all that it asks for, and a test can be it as well.

use std::collections::HashSet;

use super::{Gate, GateVerdict, QueueError, QueueEvent, Ticket, TicketState};
use crate::{
    git::MergeConflict,
    name::{Oid, TaskId},
};

/// How things stand.
#[derive(Debug, Clone, Default)]
pub struct QueueView {
    /// All tickets of one target.
    pub tickets: Vec<Ticket>,
    /// Tickets that turned out to have landed already, with their merge commits; they are in the queue no more.
    pub done: Vec<(Ticket, Oid)>,
    /// What the next merge is put on top of, where all this was so.
    pub tip: Option<Oid>,
    /// The tasks that have landed.
    pub landed: HashSet<TaskId>,
    /// How many of the last tries there were, and how many of them were red.
    pub record: (usize, usize),
    /// Whether anything is tested before it lands. Where nothing is, there is no reason to land in parts.
    pub is_gated: bool,
}

/// A merge commit that is to land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingStep {
    /// Whose.
    pub ticket: Ticket,
    /// The commit; its first parent is the step before, or the target.
    pub commit: Oid,
    /// The gates that it has to pass.
    pub gates: Vec<Gate>,
}

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// A commit.
    Clean(Box<LandingStep>),
    /// It would change nothing.
    NoChange,
    /// It cannot be.
    Conflict(Vec<MergeConflict>),
}

/// Whether a remembered result will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// It will.
    Once,
    /// It will not.
    Again,
}

/// Why a ticket leaves the queue without landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// It would change nothing.
    NoChange,
    /// Others were chosen.
    NotChosen,
}

/// What came of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The target is there.
    Landed,
    /// The target could not be moved; it is kept aside, and what follows is put on top of it.
    Parked(Parking),
    /// Somebody else moved the target.
    Moved,
}

/// Where a landing waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parking {
    /// Why the target could not be moved.
    pub why: String,
    /// What brings it up.
    pub command: String,
}

/// What an attempt to resolve a conflict came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolution {
    /// The ticket waits again, with a result to be merged and tested.
    Resolved(Box<Ticket>),
    /// It failed; the ticket says why in its last try.
    Failed(Box<Ticket>),
    /// The task begins anew; its ticket is gone.
    Withdrawn,
    /// Nobody tries; this is how it is in conflict now.
    Left(Box<Ticket>),
}

/// What deciding needs of the world.
pub trait QueueBackend {
    /// Puts right what a crash left, and tells how things stand.
    fn view(&mut self) -> Result<QueueView, QueueError>;
    /// Where the next merge is put on top: the target, or what is parked for it.
    fn tip(&mut self) -> Result<Oid, QueueError>;
    /// Merges a ticket's source; moves nothing.
    fn merge(&mut self, onto: Oid, ticket: &Ticket) -> Result<Merged, QueueError>;
    /// The same merge onto the same commit, which says that it was not asked to pass these gates: they were red before.
    fn excuse(&mut self, onto: Oid, step: &LandingStep, red: &[Gate]) -> Result<LandingStep, QueueError>;
    /// Asks gates about a commit. Gives also how many were run for it.
    fn ask(
        &mut self,
        commit: Oid,
        gates: &[Gate],
        asking: Asking,
    ) -> Result<(GateVerdict, usize), QueueError>;
    /// Whether a gate is known to have been red on a commit not long ago. Nothing is run for it.
    fn is_known_red(&mut self, commit: Oid, gate: &Gate) -> Result<bool, QueueError>;
    /// Moves the target from `base` to the last of `steps`, and closes their tickets.
    fn publish(&mut self, base: Oid, steps: &[LandingStep]) -> Result<Published, QueueError>;
    /// Writes down how a ticket stands.
    fn note(&mut self, ticket: &Ticket, standing: TicketState) -> Result<(), QueueError>;
    /// Takes a ticket out of the queue that does not land.
    fn close(&mut self, ticket: &Ticket, why: Closing) -> Result<(), QueueError>;
    /// Lets somebody resolve the conflict of a ticket.
    fn resolve(&mut self, ticket: &Ticket) -> Result<Resolution, QueueError>;
    /// Tells what has happened.
    fn tell(&mut self, event: QueueEvent);
    /// Whether the user asked to stop.
    fn is_cancelled(&self) -> bool;
    /// Seconds since 1970.
    fn now(&self) -> i64;
}
