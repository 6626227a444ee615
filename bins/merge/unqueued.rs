//! Finished tasks that have neither landed nor are queued: their run was stopped before it queued them, they were removed,
//! the policy chose others, or their landing was undone.

use std::collections::HashSet;

use arborist_core::{
    failure::Failure,
    history::{CommitSource, HandMerge, State, TaskHistory},
    name::TaskId,
    process::FileLock,
    queue::{LogEntry, LoggedOutcome},
};

use super::{open::OpenQueue, show::entries};
use crate::ui::Ui;

/// Reports how many there are, and the command that lands them. Does nothing if the history cannot be read, or while the
/// run is at work: it queues its tasks itself.
pub(super) fn report(site: &OpenQueue, ui: &mut Ui) {
    if FileLock::find_holder(&site.repository.run_lock(&site.scope.branch)).is_some() {
        return;
    }
    if let Ok(run) = site.scan(CommitSource::Cached) {
        let queued = site.store().load(Some(&site.scope.branch)).unwrap_or_default();
        let is_queued = |task: &TaskId| queued.iter().any(|stored| stored.ticket.task == *task);
        for history in run.tasks.iter().filter(|history| !is_queued(&history.id)) {
            if let Some(reverted) = &history.reverted {
                ui.note(&format!("{} was {}", history.id, reverted.words()));
                ui.hint(&reverted.advice(&history.id));
            }
            let hand_merge = history.merged_by_hand.as_ref();
            if let Some(words) = hand_merge.and_then(HandMerge::taken_back_words) {
                ui.note(&format!("{} was merged by hand, and {words}", history.id));
            }
        }
    }
    let tasks: Vec<String> = find(site).unwrap_or_default().iter().map(ToString::to_string).collect();
    let (words, them) = match tasks.len() {
        0 => return,
        1 => ("1 finished task is".to_owned(), "it"),
        count => (format!("{count} finished tasks are"), "them"),
    };
    ui.note(&format!("{words} not in the queue: {}", tasks.join(", ")));
    ui.hint(&format!("land {them} with: {}", site.command(&tasks.join(" "))));
}

fn find(site: &OpenQueue) -> Result<Vec<TaskId>, Failure> {
    let run = site.scan(CommitSource::Cached)?;
    let queued = site.store().load(Some(&site.scope.branch))?;
    let queued: HashSet<TaskId> = queued.into_iter().map(|stored| stored.ticket.task).collect();
    let is_left = |history: &&TaskHistory| {
        history.state() == State::Complete && !history.is_landed && !queued.contains(&history.id)
    };
    let left: Vec<&TaskId> = run.tasks.iter().filter(is_left).map(|history| &history.id).collect();
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let log = entries(site, None)?;
    let mut found = Vec::new();
    for task in left {
        let source = site.repository.find_branch(&site.scope.branch.task_branch(task))?;
        let last = log.iter().find(|entry| entry.task == *task);
        let last = last.filter(|last| Some(last.source) == source);
        if source.is_some() && !last.map(|last| is_settled(site, last)).transpose()?.unwrap_or(false) {
            found.push(task.clone());
        }
    }
    Ok(found)
}

/// Whether nothing is left to land: it changes nothing, or its landing is on another branch.
fn is_settled(site: &OpenQueue, last: &LogEntry) -> Result<bool, Failure> {
    let Some(commit) = last.commit.filter(|_| last.outcome == LoggedOutcome::Landed) else {
        return Ok(last.outcome == LoggedOutcome::NoChange);
    };
    for branch in site.repository.list_refs(&["refs/heads/"])? {
        if site.repository.is_ancestor(commit, branch.target)? {
            return Ok(true);
        }
    }
    Ok(false)
}
