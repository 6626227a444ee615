//! Finishes turns that a crash has cut in two: the record was written, and the branch was not moved.
//!
//! A turn's record, its branch and the mark of its index move in one transaction. But with git's files backend, a kill
//! between two renames leaves the first ref moved and the others not. The record is moved before the branch, so after
//! such a kill it names a commit that is on no branch. In another repository of the workspace the branch always moves
//! after the record, so a kill between them leaves the same state there.

use super::{SESSIONS, SessionError, SessionReader, StoredRecord, Turn, reader::message_of, ref_of};
use crate::{
    git::{RefMove, Repository},
    message::{Key, Status},
    name::{BranchName, Oid, SessionId, TaskId},
    process::FileLock,
    record::turn_mark_name,
};

/// How many records are searched, newest first, for the last turn in another repository. Records after it belong to other
/// tasks, which work elsewhere or at the same time.
const RECORDS_READ: usize = 1000;

/// Moves the branch of a turn to its commit if only the record was written. `_lock` is the lock of the run `branch`: no
/// other process is writing a turn of it. Read the position of the branch only afterwards. Returns the commits that
/// branches were moved to.
pub fn finish_turns(
    repository: &Repository,
    _lock: &FileLock,
    branch: &BranchName,
) -> Result<Vec<Oid>, SessionError> {
    let mut finished = Vec::new();
    let session_reader = SessionReader::new(repository);
    // Other records were written completely, or elsewhere. There may be thousands of them.
    for name in repository.list_written(SESSIONS) {
        let session = name.strip_prefix(SESSIONS).and_then(|session| session.parse().ok());
        let newest = session.map(|session| session_reader.newest(&session)).transpose()?.flatten();
        if let Some(newest) = newest
            && newest.record.context.branch == *branch
            && let Some(commit) = finish(repository, branch, &newest)?
        {
            finished.push(commit);
        }
    }
    Ok(finished)
}

fn finish(
    repository: &Repository,
    run: &BranchName,
    newest: &StoredRecord,
) -> Result<Option<Oid>, SessionError> {
    let record = &newest.record;
    let Some(turn) = record.turn() else { return Ok(None) };
    // A record that came from a remote moves no branch here.
    if !repository.has_written(&ref_of(&record.session), newest.commit) {
        return Ok(None);
    }
    // A step that changed nothing here has a commit too, and the record is about that commit.
    let commit = turn.commit.unwrap_or(record.context.head);
    // In a lane, the commit is on the task's branch, and no index of the user can be outdated.
    let (branch, mark) = if record.context.tip == commit {
        (run.clone(), Mark::Wanted)
    } else {
        (run.task_branch(&turn.node), Mark::None)
    };
    move_branch(repository, &branch, mark, commit, &record.session, turn)
}

/// Finishes a turn of another repository of the workspace whose record was written and whose branch was not moved. There `session` has `branch`, or one of its tasks has it in its
/// lane. The session's records are in `records`.
pub fn finish_turn_elsewhere(
    records: &Repository,
    session: &SessionId,
    name: &str,
    place: &Repository,
    branch: &BranchName,
    task: Option<&TaskId>,
) -> Result<Option<Oid>, SessionError> {
    let mark = if task.is_some() { Mark::None } else { Mark::Wanted };
    match find_turn_elsewhere(records, session, name, task)? {
        Some((turn, commit)) => move_branch(place, branch, mark, commit, session, &turn),
        None => Ok(None),
    }
}

/// The newest recorded turn that changed something in another repository, of one task if it is named, and its commit
/// there.
pub fn find_turn_elsewhere(
    records: &Repository,
    session: &SessionId,
    name: &str,
    task: Option<&TaskId>,
) -> Result<Option<(Turn, Oid)>, SessionError> {
    let session_reader = SessionReader::new(records);
    let Some(newest) = session_reader.newest(session)? else { return Ok(None) };
    for stored in session_reader.walk(&newest)?.take(RECORDS_READ) {
        let stored = stored?;
        let is_its = |turn: &&Turn| task.is_none_or(|task| turn.node == *task);
        let Some(turn) = stored.record.turn().filter(is_its) else { continue };
        if let Some(other) = turn.others.iter().find(|other| other.repository == name) {
            return Ok(Some((turn.clone(), other.commit)));
        }
    }
    Ok(None)
}

/// Whether an index has to follow the branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Wanted,
    None,
}

/// Moves a branch to the commit of a turn if its tip is that commit's parent. Returns the commit if it was moved.
fn move_branch(
    repository: &Repository,
    branch: &BranchName,
    mark: Mark,
    commit: Oid,
    session: &SessionId,
    turn: &Turn,
) -> Result<Option<Oid>, SessionError> {
    // A record is no proof: the commit itself must be the turn of this session that the record describes.
    let Some((named, message)) = message_of(repository, commit)? else { return Ok(None) };
    let number_of = |key: Key| message.trailers.get(key).and_then(|number| number.parse::<u32>().ok());
    let is_this_turn = match message.subject.status {
        Status::Turn => number_of(Key::Turn) == Some(turn.number),
        // An agent that reports no turns has one turn, which is committed with its step.
        Status::ImplementPass | Status::ImplementFail => number_of(Key::Retry) == Some(turn.attempt.0),
        _ => false,
    };
    if !is_this_turn || named != *session || message.subject.task.as_ref() != Some(&turn.node) {
        return Ok(None);
    }
    let loaded = repository.load_commits(&[commit])?;
    let parent = loaded.first().and_then(|commit| commit.parents().next());
    let tip = repository.find_branch(branch)?;
    // Otherwise the branch has moved on, or another process has moved it.
    let Some(before) = tip.filter(|tip| Some(*tip) == parent) else { return Ok(None) };
    let (name, staging) = (branch.to_ref(), turn_mark_name(branch, before));
    let mut moves = Vec::new();
    // The mark first, as when a turn is written.
    if mark == Mark::Wanted && repository.find_ref(&staging)?.is_none() {
        moves.push(RefMove { name: &staging, new: Some(before), old: None });
    }
    moves.push(RefMove { name: &name, new: Some(commit), old: Some(before) });
    repository.move_refs(&moves, "arborist: finish an interrupted turn")?;
    Ok(Some(commit))
}
