//! Compares a session's records with branches, where work is on one side only.
//!
//! - Work on task branches that is in no record. A run compares its refs after every child process; if it is killed, it
//!   cannot. Then records, which name every commit that changed something, tell what the run wrote from what an agent
//!   forged.
//! - Finished tasks that are no longer on the branch of their run: the branch was reset, or rewritten without their
//!   commits. Records keep these commits, so they can be named.

use std::collections::HashSet;

use super::{Driver, SessionError, SessionReader};
use crate::{
    git::{GitError, Repository},
    history::{CommitSource, Event, Run, RunScope, State, TaskHistory},
    message::Status,
    name::{Oid, TaskId},
};

/// The prefix of subjects of records. After the first record, the history of the code follows.
const RECORD: &[u8] = b"session ";

/// The tasks with approved work on their own branches whose newest change is in no record of the run's session. If a
/// session has no records, no task is suspected.
pub fn find_unrecorded(repository: &Repository, run: &Run) -> Result<Vec<TaskId>, GitError> {
    let approved: Vec<&TaskHistory> =
        run.tasks.iter().filter(|history| !history.is_landed && is_approved(history)).collect();
    let (Some(start), false) = (&run.start, approved.is_empty()) else {
        return Ok(Vec::new());
    };
    let newest = match SessionReader::new(repository).newest(&start.session) {
        Err(SessionError::Git(error)) => return Err(error),
        newest => newest.ok().flatten(),
    };
    let Some(newest) = newest else { return Ok(Vec::new()) };
    let known = known_commits(repository, newest.commit)?;
    let mut unknown = Vec::new();
    for history in approved {
        let changed = newest_change(repository, history.current())?;
        if changed.is_some_and(|commit| !known.contains(&commit)) {
            unknown.push(history.id.clone());
        }
    }
    Ok(unknown)
}

/// Removes what [`find_unrecorded`] finds from a run, and returns the tasks. Every command that shows or uses the state
/// of a run calls this, so that all give the same answer: such work does not count, and is done again.
pub fn forget_unrecorded(repository: &Repository, run: &mut Run) -> Result<Vec<TaskId>, GitError> {
    let unknown = find_unrecorded(repository, run)?;
    unknown.iter().for_each(|task| run.forget(task));
    Ok(unknown)
}

/// Whether the work would land without being checked again.
fn is_approved(history: &TaskHistory) -> bool {
    let is_last_word = |event: &Event| matches!(event.status(), Status::ReviewApproved | Status::Complete);
    history.current().last().is_some_and(is_last_word)
}

/// The commits that records are about: the parents of each record after the first one.
fn known_commits(repository: &Repository, newest: Oid) -> Result<HashSet<Oid>, GitError> {
    let mut known = HashSet::new();
    for record in repository.stream_commits(&["--first-parent".into(), newest.to_string()])? {
        let record = record?;
        if !record.message().starts_with(RECORD) {
            break;
        }
        known.extend(record.parents().skip(1));
    }
    Ok(known)
}

/// The task's newest commit that changed a file, except the report at its end.
fn newest_change(repository: &Repository, events: &[Event]) -> Result<Option<Oid>, GitError> {
    let is_work = |event: &&Event| {
        matches!(event.status(), Status::Turn | Status::ImplementPass | Status::ImplementFail)
    };
    for event in events.iter().rev().filter(is_work) {
        let commits = repository.load_commits(&[event.commit])?;
        let parent = commits.first().and_then(|commit| commit.parents().next());
        let is_change = match parent {
            Some(parent) => repository.tree_of(event.commit)? != repository.tree_of(parent)?,
            None => true,
        };
        if is_change {
            return Ok(Some(event.commit));
        }
    }
    Ok(None)
}

/// The tasks that were complete on the branch when the last record was written and are not now, each with its last
/// commit at that time.
pub fn find_lost_tasks(repository: &Repository, run: &Run) -> Result<Vec<(TaskId, Oid)>, GitError> {
    let RunScope { branch, tip: Some(tip) } = &run.scope else { return Ok(Vec::new()) };
    let Some(recorded) = find_recorded_tip(repository, run)? else { return Ok(Vec::new()) };
    let is_event = |history: &TaskHistory| history.events.iter().any(|event| event.commit == recorded);
    // The reflog proves that the branch was there. A record that was fetched may be ahead of the branch.
    let is_lost = recorded != *tip
        && !run.tasks.iter().any(is_event)
        && !repository.is_ancestor(recorded, *tip).unwrap_or(true)
        && repository.is_in_reflog(&branch.to_ref(), recorded)?;
    if !is_lost {
        return Ok(Vec::new());
    }
    let scope = RunScope { branch: branch.clone(), tip: Some(recorded) };
    let Ok(before) = Run::scan(repository, scope, CommitSource::Fresh) else { return Ok(Vec::new()) };
    let lost = before.tasks.iter().filter(|history| history.has_landed());
    let lost = lost.filter(|history| run.state_of(&history.id) == State::Pending);
    Ok(lost.filter_map(|history| Some((history.id.clone(), history.last()?.commit))).collect())
}

/// The tip of the branch when the last record of the run's session was written. If the branch has no run, the last
/// session that worked on it counts.
fn find_recorded_tip(repository: &Repository, run: &Run) -> Result<Option<Oid>, GitError> {
    let reader = SessionReader::new(repository);
    let found = match &run.start {
        Some(start) => reader.newest(&start.session),
        None => reader.list().map(|list| {
            list.sessions.into_iter().find(|stored| {
                let context = &stored.record.context;
                context.branch == run.scope.branch && context.driver == Driver::Run
            })
        }),
    };
    match found {
        Ok(stored) => Ok(stored.map(|stored| stored.record.context.tip)),
        Err(SessionError::Git(error)) => Err(error),
        Err(_) => Ok(None),
    }
}
