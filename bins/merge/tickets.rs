//! Removes tickets from the queue, and lets them be tried again.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::Repository,
    history::CommitSource,
    message::visible,
    name::TaskId,
    process::{FileLock, shell_word},
    queue::{StoredTicket, Ticket, TicketState, advice_to_commit_resolved},
};

use super::{
    QueueScopeArgs,
    add::{hint_by_force, unique},
    document,
    open::OpenQueue,
};
use crate::{clock, entry::Outcome, ui::Ui};

/// Takes tasks out of the queue.
pub(super) fn drop(args: &QueueScopeArgs, tasks: &[TaskId], ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    refuse_while_landing(&site)?;
    let store = site.store();
    let mut dropped = Vec::new();
    for stored in require(&site, "drop", tasks)? {
        if let TicketState::Parked { .. } = stored.ticket.state {
            let task = &stored.ticket.task;
            return Err(Failure::new(
                Exit::No,
                format!("'{task}' has landed, but the checkout of its target is not updated yet"),
            )
            .hint("see how to update it with: git arborist merge status"));
        }
        let saved = store.take_out(&stored, clock::now())?;
        if !args.json {
            let task = &stored.ticket.task;
            let kept = match site.repository.find_branch(&stored.ticket.branch())? {
                _ if !saved.is_empty() => format!("its commits are saved as {}", saved.join(", ")),
                Some(_) => "its branch is kept".to_owned(),
                None => "its commits have landed".to_owned(),
            };
            ui.line(&format!("removed {task} from the queue; {kept}"));
        }
        dropped.push(stored.ticket);
    }
    if args.json {
        return document::print_queue(&site, ui);
    }
    site.queued_again(&dropped)?.iter().for_each(|hint| ui.hint(hint));
    Ok(Exit::Done)
}

/// Lets tasks be tried again.
pub(super) fn retry(args: &QueueScopeArgs, tasks: &[TaskId], ui: &mut Ui) -> Outcome {
    let site = OpenQueue::open(args, ui)?;
    let stored = require(&site, "retry", tasks)?;
    stored.iter().try_for_each(|stored| refuse_unmerged(&site, &stored.ticket))?;
    let run = site.scan(CommitSource::Cached)?;
    let elsewhere = site.other_branches(&run)?;
    let mut now = Vec::new();
    for StoredTicket { ticket, .. } in &stored {
        let mut ticket = ticket.clone();
        ticket.update_state(&site.repository, &run, elsewhere.as_ref())?;
        if let Some(why) = ticket.trouble() {
            let words = format!("'{}' is {}: {why}", ticket.task, ticket.state.as_str());
            let failure = Failure::new(Exit::Person, words);
            return Err(ticket.advice().into_iter().fold(failure, Failure::hint));
        }
        now.push(ticket);
    }
    let is_aside = |stored: &&StoredTicket| {
        !matches!(stored.ticket.state, TicketState::Waiting | TicketState::Parked { .. })
    };
    let again: Vec<(Option<&StoredTicket>, Ticket)> = stored
        .iter()
        .filter(is_aside)
        .map(|stored| {
            let ticket = stored.ticket.clone();
            (Some(stored), Ticket { state: TicketState::Waiting, tries: Vec::new(), ..ticket })
        })
        .collect();
    site.store().write(&again)?;
    if args.json {
        return document::print_queue(&site, ui);
    }
    for (StoredTicket { ticket, .. }, now) in stored.iter().zip(&now) {
        ui.line(&match (&ticket.state, &now.state) {
            (_, TicketState::Parked { .. }) => {
                format!("{} has landed, but the checkout of its target is not updated yet", ticket.task)
            }
            (TicketState::Waiting | TicketState::Parked { .. }, _) => {
                format!("{} is already queued", ticket.task)
            }
            _ => format!("{} is queued again", ticket.task),
        });
    }
    stored.iter().try_for_each(|stored| warn_of_uncommitted(&site, &stored.ticket, ui))?;
    let (forced, others): (Vec<Ticket>, Vec<Ticket>) =
        now.into_iter().partition(|ticket| ticket.is_incomplete(&run));
    forced.iter().for_each(|ticket| ui.hint(&hint_by_force(&site, ticket)));
    if others.iter().any(|ticket| !matches!(ticket.state, TicketState::Parked { .. })) {
        ui.hint(&format!("land what is queued with: {}", site.command("run")));
    }
    Ok(Exit::Done)
}

/// Warns if the worktree of a task has changes that are not committed: only commits land.
fn warn_of_uncommitted(site: &OpenQueue, ticket: &Ticket, ui: &mut Ui) -> Result<(), Failure> {
    for place in site.repository.checkouts_of(&ticket.branch())? {
        if !Repository::discover_from(&place)?.changed_paths()?.is_empty() {
            let place = visible(&place.to_string_lossy());
            ui.warn(&format!("'{place}' has changes that are not committed; they do not land"));
            let at = shell_word(&place);
            ui.hint(&format!("commit them first: git -C {at} add -A && git -C {at} commit"));
        }
    }
    Ok(())
}

/// Refuses a task whose worktree has unresolved conflicts: its commits are not its result yet, and a hint to commit the
/// files would commit the conflict markers.
fn refuse_unmerged(site: &OpenQueue, ticket: &Ticket) -> Result<(), Failure> {
    for place in site.repository.checkouts_of(&ticket.branch())? {
        let files = Repository::discover_from(&place)?.unmerged_paths()?;
        if !files.is_empty() {
            let place = visible(&place.to_string_lossy());
            let words = format!("'{place}' has unresolved conflicts: {}", files.join(", "));
            let at = format!(" -C {}", shell_word(&place));
            return Err(Failure::new(Exit::Person, words).hint(advice_to_commit_resolved(&at, &files)));
        }
    }
    Ok(())
}

/// Refuses to take tasks out of the queue while another process lands them. While a run lands tasks, it reads the queue
/// again before each landing.
fn refuse_while_landing(site: &OpenQueue) -> Result<(), Failure> {
    let branch = &site.scope.branch;
    match FileLock::require_free(&site.repository.run_lock(branch)) {
        Err(source) if source.is_landing() => {
            Err(GardenerError::Locked { branch: branch.clone(), source }.into())
        }
        _ => Ok(()),
    }
}

fn require(site: &OpenQueue, verb: &str, tasks: &[TaskId]) -> Result<Vec<StoredTicket>, Failure> {
    let known = site.store().load(Some(&site.scope.branch))?;
    let find = |task: &TaskId| known.iter().find(|stored| stored.ticket.task == *task).cloned();
    unique(tasks).into_iter().map(|task| find(task).ok_or_else(|| site.not_queued(verb, task))).collect()
}
