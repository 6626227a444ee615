//! A turn that a crash has cut in two. Its record, its branch and the mark of its index move in one transaction, but with
//! git's files backend a kill between two renames leaves the first moved and the others not. The record comes before the
//! branch: it then names a commit that is on no branch. In another repository of the workspace the branch always
//! moves after the record, so a kill between them leaves the same there.

use super::{SessionError, SessionReader, StoredRecord, Turn, reader::words_of};
use crate::{
    git::{RefMove, Repository},
    message::{Key, Status},
    name::{BranchName, Oid, SessionId},
    record::staging_mark,
};

/// So many records are looked at, newest first, for the last turn in another repository. Only one task at a time
/// works there; the records behind its last turn are those of tasks beside it.
const RECORDS_READ: usize = 200;

/// Moves the branch of a turn to its commit where only the record was written. Call this with the lock of the run `branch`
/// in hand, before where its branch is was read. Gives the commits that were brought to their branches.
pub fn finish_turns(repository: &Repository, branch: &BranchName) -> Result<Vec<Oid>, SessionError> {
    let mut finished = Vec::new();
    for newest in SessionReader::new(repository).list()?.sessions {
        if newest.record.context.branch == *branch
            && let Some(commit) = finish(repository, branch, &newest)?
        {
            finished.push(commit);
        }
    }
    Ok(finished)
}

/// Brings a repository in order after a driver died: removes the locks that it left, and finishes the turn that it was
/// writing. Call this with the lock of `branch` in hand. Gives whether one died: then what was read before may be old.
pub fn recover_from_crash(repository: &Repository, branch: &BranchName) -> Result<bool, SessionError> {
    let has_crashed = repository.recover_locks()?;
    if has_crashed {
        finish_turns(repository, branch)?;
    }
    Ok(has_crashed)
}

fn finish(
    repository: &Repository,
    run: &BranchName,
    newest: &StoredRecord,
) -> Result<Option<Oid>, SessionError> {
    let record = &newest.record;
    let Some(turn) = record.turn() else { return Ok(None) };
    // A step that changed nothing here has a commit too, and its record is about that.
    let commit = turn.commit.unwrap_or(record.context.head);
    // A lane is on the branch of its task, and nobody's index could be wrong there.
    let (branch, mark) = if record.context.tip == commit {
        (run.clone(), Mark::Wanted)
    } else {
        (run.task_branch(&turn.node), Mark::None)
    };
    bring(repository, (&branch, mark), commit, (&record.session, turn))
}

/// The same in another repository of the workspace, where `session` has `branch`. Its records are in `records`.
pub fn finish_turn_elsewhere(
    records: &Repository,
    session: &SessionId,
    (name, place, branch): (&str, &Repository, &BranchName),
) -> Result<Option<Oid>, SessionError> {
    let session_reader = SessionReader::new(records);
    let Some(newest) = session_reader.newest(session)? else { return Ok(None) };
    for stored in session_reader.walk(&newest)?.take(RECORDS_READ) {
        let stored = stored?;
        let Some(turn) = stored.record.turn() else { continue };
        let mut others = turn.others.iter();
        if let Some(other) = others.find(|other| other.repository == name) {
            return bring(place, (branch, Mark::Wanted), other.commit, (session, turn));
        }
    }
    Ok(None)
}

/// Whether somebody's index has to follow the branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Wanted,
    None,
}

/// Moves a branch to the commit of a turn, if that is its next one. Gives the commit if it was moved.
fn bring(
    repository: &Repository,
    (branch, mark): (&BranchName, Mark),
    commit: Oid,
    (session, turn): (&SessionId, &Turn),
) -> Result<Option<Oid>, SessionError> {
    // What a record says is no proof: the commit itself must be the turn of this session that the record speaks of.
    let Some((named, message)) = words_of(repository, commit)? else { return Ok(None) };
    let said = |key: Key| message.trailers.get(key).and_then(|number| number.parse::<u32>().ok());
    let is_it = match message.subject.status {
        Status::Turn => said(Key::Turn) == Some(turn.number),
        // An agent that tells of no turns has one, and that is committed with its step.
        Status::ImplementPass | Status::ImplementFail => said(Key::Retry) == Some(turn.attempt.0),
        _ => false,
    };
    if !is_it || named != *session || message.subject.task.as_ref() != Some(&turn.node) {
        return Ok(None);
    }
    let loaded = repository.load_commits(&[commit])?;
    let parent = loaded.first().and_then(|commit| commit.parents().next());
    let tip = repository.find_branch(branch)?;
    // Whatever else the branch points to, it has moved on, or somebody else has moved it.
    let Some(before) = tip.filter(|tip| Some(*tip) == parent) else { return Ok(None) };
    let (name, staging) = (branch.to_ref(), staging_mark(branch, before));
    let mut moves = Vec::new();
    // The mark first, as where the turn was written.
    if mark == Mark::Wanted && repository.find_ref(&staging)?.is_none() {
        moves.push(RefMove { name: &staging, new: Some(before), old: None });
    }
    moves.push(RefMove { name: &name, new: Some(commit), old: Some(before) });
    repository.move_refs(&moves, "arborist: finish an interrupted turn")?;
    Ok(Some(commit))
}
