//! What the records of a session say about task branches. A run compares its refs after every child process; one that was
//! killed could not. What an agent forged by then is told from what the run wrote by the records, which name every commit
//! that changed something.

use std::collections::HashSet;

use super::ref_of;
use crate::{
    git::{GitError, Repository},
    history::{Event, Run, TaskHistory},
    message::Status,
    name::{Oid, TaskId},
};

/// How the subjects of records begin: behind the first of them, the code's own history follows.
const RECORD: &[u8] = b"session ";

/// The tasks whose work was approved on their own branches, and whose newest change no record of the run's session knows.
/// Where a session has no records, nothing is known against anybody.
pub fn find_unrecorded(repository: &Repository, run: &Run) -> Result<Vec<TaskId>, GitError> {
    let approved: Vec<&TaskHistory> =
        run.tasks.iter().filter(|history| !history.is_landed && is_approved(history)).collect();
    let (Some(start), false) = (&run.start, approved.is_empty()) else {
        return Ok(Vec::new());
    };
    let Some(newest) = repository.find_ref(&ref_of(&start.session))? else {
        return Ok(Vec::new());
    };
    let known = known_commits(repository, newest)?;
    let mut unknown = Vec::new();
    for history in approved {
        let changed = newest_change(repository, history.current())?;
        if changed.is_some_and(|commit| !known.contains(&commit)) {
            unknown.push(history.id.clone());
        }
    }
    Ok(unknown)
}

/// Takes from a run what [`find_unrecorded`] finds, and gives those tasks. Whoever shows or acts on the state of a run
/// calls this, so that all commands give the same answer: such work does not count, and is done again.
pub fn forget_unrecorded(repository: &Repository, run: &mut Run) -> Result<Vec<TaskId>, GitError> {
    let unknown = find_unrecorded(repository, run)?;
    unknown.iter().for_each(|task| run.forget(task));
    Ok(unknown)
}

/// Whether nobody would look at the work again before it lands.
fn is_approved(history: &TaskHistory) -> bool {
    let is_last_word = |event: &Event| matches!(event.status(), Status::ReviewApproved | Status::Complete);
    history.current().last().is_some_and(is_last_word)
}

/// The commits that the records are about: every record follows the one before, and then these.
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

/// The newest commit of a task that changed a file, but for the report that ends it.
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
