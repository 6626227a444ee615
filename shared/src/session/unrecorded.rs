//! Compares task branches with a session's records. A run compares its refs after every child process; if it is killed,
//! it cannot. Then records, which name every commit that changed something, tell what the run wrote from what an agent
//! forged.

use std::collections::HashSet;

use super::{SessionError, SessionReader};
use crate::{
    git::{GitError, Repository},
    history::{Event, Run, TaskHistory},
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
