//! Taking tickets out of the queue, and letting them be tried again.

use arborist_core::{
    failure::{Exit, Failure},
    name::TaskId,
    queue::{LogEntry, Standing, Stored, Ticket, Written},
};

use super::{ScopeArgs, add::unique, document, open::Site};
use crate::{clock, entry::Outcome, ui::Ui};

/// Takes tasks out of the queue.
pub(super) fn drop(args: &ScopeArgs, tasks: &[TaskId], ui: &mut Ui) -> Outcome {
    let site = Site::open(args, ui)?;
    let store = site.store();
    for stored in require(&site, tasks)? {
        if let Standing::Parked { .. } = stored.ticket.standing {
            let task = &stored.ticket.task;
            return Err(Failure::new(Exit::No, format!("'{task}' has landed and waits for a checkout only"))
                .hint("see: git arborist merge status"));
        }
        let entry = LogEntry::new(&stored.ticket, "dropped", None, clock::now());
        store.log(&stored.ticket.into, &[entry], std::slice::from_ref(&stored), Written::New)?;
        if !args.json {
            ui.line(&format!("{} is out of the queue; its branch stays", stored.ticket.task));
        }
    }
    if args.json {
        return document::print_queue(&site, ui);
    }
    ui.hint(&site.queued_again(&unique(tasks)));
    Ok(Exit::Done)
}

/// Lets tasks be tried again.
pub(super) fn retry(args: &ScopeArgs, tasks: &[TaskId], ui: &mut Ui) -> Outcome {
    let site = Site::open(args, ui)?;
    let stored = require(&site, tasks)?;
    let is_aside =
        |stored: &&Stored| !matches!(stored.ticket.standing, Standing::Waiting | Standing::Parked { .. });
    let again: Vec<(Option<&Stored>, Ticket)> = stored
        .iter()
        .filter(is_aside)
        .map(|stored| {
            let ticket = stored.ticket.clone();
            (Some(stored), Ticket { standing: Standing::Waiting, tries: Vec::new(), ..ticket })
        })
        .collect();
    site.store().write(&again)?;
    if args.json {
        return document::print_queue(&site, ui);
    }
    for Stored { ticket, .. } in &stored {
        ui.line(&match ticket.standing {
            Standing::Waiting => format!("{} waits already, and stays as it is", ticket.task),
            Standing::Parked { .. } => format!("{} has landed and waits for a checkout only", ticket.task),
            _ => format!("{} will be tried again", ticket.task),
        });
    }
    Ok(Exit::Done)
}

fn require(site: &Site, tasks: &[TaskId]) -> Result<Vec<Stored>, Failure> {
    let known = site.store().load(Some(&site.scope.branch))?;
    let find = |task: &TaskId| known.iter().find(|stored| stored.ticket.task == *task).cloned();
    unique(tasks).into_iter().map(|task| find(task).ok_or_else(|| site.not_queued(task))).collect()
}
