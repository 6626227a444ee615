//! Tickets with another target than the run's own branch. Only the command line that lands them can name that target.

use arborist_core::{
    failure::Failure,
    message::plain_text,
    queue::{StoredTicket, Ticket, TicketOutcome, TicketState},
};

use super::open::OpenQueue;
use crate::ui::Ui;

/// Withholds these tickets, and names the command that would land them.
pub(super) fn withhold(
    site: &OpenQueue,
    tickets: &[StoredTicket],
    ui: &mut Ui,
) -> Result<Vec<(Ticket, TicketOutcome)>, Failure> {
    let store = site.store();
    let mut outcomes = Vec::new();
    for stored in tickets {
        let Ticket { task, into, .. } = &stored.ticket;
        let why = format!("it was queued for '{into}', which is not the branch of its run");
        ui.warn(&plain_text(&format!("'{task}' is not landed, because {why}")));
        ui.hint(&format!("to land it there anyway, run: {}", site.command(&format!("run --into {into}"))));
        let withheld =
            Ticket { standing: TicketState::Withheld { why: why.clone() }, ..stored.ticket.clone() };
        if withheld != stored.ticket {
            store.write(&[(Some(stored), withheld.clone())])?;
        }
        outcomes.push((withheld, TicketOutcome::Waiting { reason: why }));
    }
    Ok(outcomes)
}
