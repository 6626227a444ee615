//! Removes tickets from the queue, and lets them be tried again.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    name::TaskId,
    process::FileLock,
    queue::{LogEntry, OutcomeWritten, StoredTicket, Ticket, TicketState},
};

use super::{QueueScopeArgs, add::unique, document, open::OpenQueue};
use crate::{clock, entry::Outcome, ui::Ui};

/// Takes tasks out of the queue.
pub(super) fn drop(args: &QueueScopeArgs, tasks: &[TaskId], ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    refuse_while_landing(&site)?;
    let store = site.store();
    for stored in require(&site, tasks)? {
        if let TicketState::Parked { .. } = stored.ticket.standing {
            let task = &stored.ticket.task;
            return Err(Failure::new(Exit::No, format!("'{task}' has landed and only waits for a checkout"))
                .hint("see: git arborist merge status"));
        }
        let entry = LogEntry::new(&stored.ticket, "dropped", None, clock::now());
        store.log(&stored.ticket.into, &[entry], std::slice::from_ref(&stored), OutcomeWritten::New)?;
        if !args.json {
            ui.line(&format!("removed {} from the queue; its branch is kept", stored.ticket.task));
        }
    }
    if args.json {
        return document::print_queue(&site, ui);
    }
    ui.hint(&site.queued_again(&unique(tasks)));
    Ok(Exit::Done)
}

/// Lets tasks be tried again.
pub(super) fn retry(args: &QueueScopeArgs, tasks: &[TaskId], ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    let stored = require(&site, tasks)?;
    let is_aside = |stored: &&StoredTicket| {
        !matches!(stored.ticket.standing, TicketState::Waiting | TicketState::Parked { .. })
    };
    let again: Vec<(Option<&StoredTicket>, Ticket)> = stored
        .iter()
        .filter(is_aside)
        .map(|stored| {
            let ticket = stored.ticket.clone();
            (Some(stored), Ticket { standing: TicketState::Waiting, tries: Vec::new(), ..ticket })
        })
        .collect();
    site.store().write(&again)?;
    if args.json {
        return document::print_queue(&site, ui);
    }
    for StoredTicket { ticket, .. } in &stored {
        ui.line(&match ticket.standing {
            TicketState::Waiting => format!("{} is already waiting", ticket.task),
            TicketState::Parked { .. } => format!("{} has landed and only waits for a checkout", ticket.task),
            _ => format!("{} is queued again", ticket.task),
        });
    }
    if stored.iter().any(|stored| !matches!(stored.ticket.standing, TicketState::Parked { .. })) {
        ui.hint(&format!("land what is queued with: {}", site.command("run")));
    }
    Ok(Exit::Done)
}

/// Refuses to take tasks out of the queue while another process lands them. While a run lands tasks, it reads the queue
/// again before each landing.
fn refuse_while_landing(site: &OpenQueue) -> Result<(), Failure> {
    let branch = &site.scope.branch;
    match FileLock::try_take(&site.repository.run_lock(branch), "git arborist merge") {
        Err(source) if source.is_landing() => {
            Err(GardenerError::Locked { branch: branch.clone(), source }.into())
        }
        _ => Ok(()),
    }
}

fn require(site: &OpenQueue, tasks: &[TaskId]) -> Result<Vec<StoredTicket>, Failure> {
    let known = site.store().load(Some(&site.scope.branch))?;
    let find = |task: &TaskId| known.iter().find(|stored| stored.ticket.task == *task).cloned();
    unique(tasks).into_iter().map(|task| find(task).ok_or_else(|| site.not_queued(task))).collect()
}
