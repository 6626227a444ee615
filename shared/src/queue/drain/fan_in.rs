//! Policies under which not everything lands that could: only some tasks, all or none, or the first few.

use super::Drain;
use crate::queue::{Closing, QueueBackend, QueueError, QueueView, Ticket, TicketOutcome, TicketState};

impl<G: QueueBackend> Drain<'_, G> {
    /// Whether the ticket is among the wanted ones.
    pub(super) fn is_wanted(&self, ticket: &Ticket) -> bool {
        self.rules.only.is_empty() || self.rules.only.contains(&ticket.task)
    }

    /// How many tickets have landed in this drain.
    pub(super) fn count_landed(&self) -> usize {
        let is_landed = |outcome: &TicketOutcome| {
            matches!(outcome, TicketOutcome::Landed { .. } | TicketOutcome::Parked { .. })
        };
        self.report.outcomes.iter().filter(|(_, outcome)| is_landed(outcome)).count()
    }

    /// Closes a ticket because enough others have landed.
    pub(super) fn leave_out(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        self.backend.close(ticket, Closing::NotChosen)?;
        self.set_aside(ticket, TicketOutcome::NotChosen);
        Ok(())
    }

    /// Whether a wanted ticket is set aside or waits for another, so that it is not in the batch.
    pub(super) fn is_blocked(&self, view: &QueueView, batch: &[Ticket]) -> bool {
        let is_there = |ticket: &Ticket| batch.iter().any(|other| other.task == ticket.task);
        let is_parked = |ticket: &Ticket| matches!(ticket.standing, TicketState::Parked { .. });
        let mut wanted = view.tickets.iter().filter(|ticket| self.is_wanted(ticket));
        wanted.any(|ticket| !is_there(ticket) && !is_parked(ticket))
    }

    /// Whether one of these tickets would have to land and is missing.
    pub(super) fn is_any_missing(&self, tickets: &[Ticket], is_there: impl Fn(&Ticket) -> bool) -> bool {
        let is_unchanged = |ticket: &Ticket| self.report.find(&ticket.task) == Some(&TicketOutcome::NoChange);
        tickets.iter().any(|ticket| !is_there(ticket) && !is_unchanged(ticket))
    }

    /// Lands nothing of these. Tickets that have an outcome keep it; the others are reported as not tried.
    pub(super) fn refuse(&mut self, tickets: &[Ticket], why: &str) -> Result<(), QueueError> {
        self.is_over = true;
        for ticket in tickets {
            if self.report.find(&ticket.task).is_none() {
                self.set_aside(
                    ticket,
                    TicketOutcome::Waiting {
                        reason: format!("all tasks to be able to land (--policy all-or-nothing): {why}"),
                    },
                );
            }
        }
        Ok(())
    }
}
