//! What remains when everything that could land has landed: conflicts to resolve, and tickets that wait.

use super::Drain;
use crate::{
    name::TaskId,
    queue::{QueueBackend, QueueError, Resolution, Ticket, TicketOutcome, TicketState, arrange},
};

impl<G: QueueBackend> Drain<'_, G> {
    /// Tries to resolve the next conflict. Returns whether there is something to try again.
    pub(super) fn resolve_next(&mut self) -> Result<bool, QueueError> {
        for ticket in self.backend.view()?.tickets {
            if !matches!(ticket.standing, TicketState::Conflict { escalated: false, .. }) {
                continue;
            }
            if self.backend.is_cancelled() {
                return Ok(false);
            }
            if ticket.tries.len() >= self.rules.resolve_attempts as usize {
                self.escalate(&ticket)?;
                continue;
            }
            match self.backend.resolve(&ticket)? {
                Resolution::Left(ticket) => self.escalate(&ticket)?,
                Resolution::Resolved(_) => {
                    self.aside.remove(&ticket.task);
                    return Ok(true);
                }
                Resolution::Failed(_) => return Ok(true),
                Resolution::Withdrawn => self.set_aside(&ticket, TicketOutcome::Withdrawn),
            }
        }
        Ok(false)
    }

    /// Marks a conflict as one that a person has to resolve.
    fn escalate(&mut self, ticket: &Ticket) -> Result<(), QueueError> {
        let TicketState::Conflict { onto, conflicts, .. } = ticket.standing.clone() else {
            return Ok(());
        };
        let standing = TicketState::Conflict { onto, conflicts: conflicts.clone(), escalated: true };
        self.backend.set_state(ticket, standing)?;
        self.set_aside(ticket, TicketOutcome::Conflict { conflicts, escalated: true });
        Ok(())
    }

    /// Reports the tickets that were not tried, and what they wait for.
    pub(super) fn report_rest(&mut self) -> Result<(), QueueError> {
        let view = self.backend.view()?;
        let now = self.backend.now();
        let is_waiting = |ticket: &Ticket| ticket.standing == TicketState::Waiting;
        let order = arrange(&view.tickets, is_waiting, &view.landed, now);
        for (at, ticket) in view.tickets.iter().enumerate() {
            if self.report.find(&ticket.task).is_none() {
                let held = order.held.iter().find(|(held, _)| *held == at);
                let needs = held.map(|(_, needs)| needs.as_slice()).unwrap_or_default();
                self.report.put(ticket, outcome_of(ticket, &waits_for(needs, &view.tickets)));
            }
        }
        Ok(())
    }
}

/// Describes needs, with the state of those that are in the queue.
#[must_use]
pub fn waits_for(needs: &[TaskId], tickets: &[Ticket]) -> String {
    let one = |need: &TaskId| match tickets.iter().find(|ticket| ticket.task == *need) {
        Some(ticket) => format!("{need} ({})", ticket.standing.as_str()),
        None => format!("{need} (not queued)"),
    };
    needs.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn outcome_of(ticket: &Ticket, needs: &str) -> TicketOutcome {
    match &ticket.standing {
        TicketState::Parked { commit } => TicketOutcome::Parked { commit: *commit },
        TicketState::Conflict { conflicts, escalated, .. } => {
            TicketOutcome::Conflict { conflicts: conflicts.clone(), escalated: *escalated }
        }
        TicketState::Waiting if needs.is_empty() => TicketOutcome::Waiting { reason: "its turn".into() },
        TicketState::Waiting => TicketOutcome::Waiting { reason: needs.to_owned() },
        TicketState::Red { gate, with, .. } if with.is_empty() => {
            TicketOutcome::Waiting { reason: format!("a fix: the gate '{gate}' failed") }
        }
        TicketState::Red { gate, with, .. } => {
            let with: Vec<String> = with.iter().map(ToString::to_string).collect();
            let reason = format!(
                "a fix: it passes the gate '{gate}' by itself, but not together with {}",
                with.join(", ")
            );
            TicketOutcome::Waiting { reason }
        }
        TicketState::Lost | TicketState::LostElsewhere { .. } => TicketOutcome::Lost,
        TicketState::Reverted(reverted) => TicketOutcome::Reverted(reverted.clone()),
        TicketState::Withheld { why } => TicketOutcome::Waiting { reason: why.clone() },
    }
}
