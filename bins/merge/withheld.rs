//! Tickets that do not land: those that must not, and those for another branch than that of their run.

use arborist_core::{
    failure::Failure,
    history::CommitSource,
    message::plain_text,
    queue::{QueueReport, StoredTicket, Ticket, TicketOutcome, TicketState, WithheldReason},
};

use super::{open::OpenQueue, show};
use crate::ui::Ui;

/// Says why tickets were withheld, and what to do.
pub(super) fn report(site: &OpenQueue, report: &QueueReport, ui: &mut Ui) -> Result<(), Failure> {
    for (ticket, _) in &report.outcomes {
        let TicketState::Withheld { why } = &ticket.state else { continue };
        ui.warn(&plain_text(&format!("'{}' does not land: {why}", ticket.task)));
        let run = site.scan(CommitSource::Cached)?;
        show::find_advice(site, &run, ticket)?.iter().for_each(|advice| ui.hint(advice));
    }
    Ok(())
}

/// Withholds tickets with another target than the run's own branch, and names the command that would land them.
pub(super) fn withhold(
    site: &OpenQueue,
    tickets: &[StoredTicket],
    ui: &mut Ui,
) -> Result<Vec<(Ticket, TicketOutcome)>, Failure> {
    let store = site.store();
    let mut outcomes = Vec::new();
    for stored in tickets {
        let Ticket { task, into, .. } = &stored.ticket;
        let why = WithheldReason::OtherTarget { into: into.clone() };
        ui.warn(&plain_text(&format!("'{task}' is not landed, because {why}")));
        show::ways_of_other_target(site, &stored.ticket)?.iter().for_each(|way| ui.hint(way));
        let withheld = Ticket { state: TicketState::Withheld { why: why.clone() }, ..stored.ticket.clone() };
        if withheld != stored.ticket {
            store.write(&[(Some(stored), withheld.clone())])?;
        }
        outcomes.push((withheld, TicketOutcome::Waiting { reason: why.to_string() }));
    }
    Ok(outcomes)
}
