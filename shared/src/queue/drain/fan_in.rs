//! Where not everything that can land shall: only some tasks, all of them or none, or the first so many.

use super::Drain;
use crate::queue::{Closing, QueueBackend, QueueError, QueueView, Ticket, TicketOutcome, TicketState};

impl<G: QueueBackend> Drain<'_, G> {
    /// Whether a ticket is asked for.
    pub(super) fn is_wanted(&self, ticket: &Ticket) -> bool {
        self.rules.only.is_empty() || self.rules.only.contains(&ticket.task)
    }

    /// How many have landed in this drain.
    pub(super) fn count_landed(&self) -> usize {
        let is_landed = |outcome: &TicketOutcome| {
            matches!(outcome, TicketOutcome::Landed { .. } | TicketOutcome::Parked { .. })
        };
        self.report.outcomes.iter().filter(|(_, outcome)| is_landed(outcome)).count()
    }

    /// Enough others have landed.
    pub(super) fn leave_out(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        self.backend.close(ticket, Closing::NotChosen)?;
        self.set_aside(ticket, TicketOutcome::NotChosen);
        Ok(())
    }

    /// Whether a ticket that is asked for stands aside or waits for another, so that it is in no batch.
    pub(super) fn is_blocked(&self, view: &QueueView, batch: &[Ticket]) -> bool {
        let is_there = |ticket: &Ticket| batch.iter().any(|other| other.task == ticket.task);
        let is_parked = |ticket: &Ticket| matches!(ticket.standing, TicketState::Parked { .. });
        let mut wanted = view.tickets.iter().filter(|ticket| self.is_wanted(ticket));
        wanted.any(|ticket| !is_there(ticket) && !is_parked(ticket))
    }

    /// Whether one of these would have to land and is not there.
    pub(super) fn lacks_one(&self, tickets: &[Ticket], is_there: impl Fn(&Ticket) -> bool) -> bool {
        let is_unchanged = |ticket: &Ticket| self.report.find(&ticket.task) == Some(&TicketOutcome::NoChange);
        tickets.iter().any(|ticket| !is_there(ticket) && !is_unchanged(ticket))
    }

    /// Nothing of these lands. What was found out about one of them stands; the others were not tried.
    pub(super) fn refuse(&mut self, tickets: &[Ticket], why: &str) -> Result<(), QueueError> {
        self.is_over = true;
        for ticket in tickets {
            if self.report.find(&ticket.task).is_none() {
                self.set_aside(ticket, TicketOutcome::Waiting { reason: format!("all of them: {why}") });
            }
        }
        Ok(())
    }
}
