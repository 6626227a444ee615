//! Compares records with branches after something went wrong: a turn that a crash has cut in two, work on task branches that
//! is in no record, and finished tasks that are no longer on the branch of their run.

use std::collections::HashSet;

use super::{Driver, SESSIONS, SessionError, SessionReader, StoredRecord, Turn, reader::message_of, ref_of};
use crate::{
    git::{GitError, RefMove, Repository},
    history::{CommitSource, Event, Run, RunScope, State, TaskHistory},
    message::{Key, Status},
    name::{BranchName, Oid, SessionId, TaskId},
    process::FileLock,
    record::staging_mark,
};

// A turn's record, its branch and the mark of its index move in one transaction. But with git's files backend, a kill
// between two renames leaves the first ref moved and the others not. The record is moved before the branch, so after
// such a kill it names a commit that is on no branch. In another repository of the workspace the branch always moves
// after the record, so a kill between them leaves the same state there.

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
    move_branch(repository, (&branch, mark), commit, (&record.session, turn))
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
        Some((turn, commit)) => move_branch(place, (branch, mark), commit, (session, &turn)),
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
    (branch, mark): (&BranchName, Mark),
    commit: Oid,
    (session, turn): (&SessionId, &Turn),
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
    let (name, staging) = (branch.to_ref(), staging_mark(branch, before));
    let mut moves = Vec::new();
    // The mark first, as when a turn is written.
    if mark == Mark::Wanted && repository.find_ref(&staging)?.is_none() {
        moves.push(RefMove { name: &staging, new: Some(before), old: None });
    }
    moves.push(RefMove { name: &name, new: Some(commit), old: Some(before) });
    repository.move_refs(&moves, "arborist: finish an interrupted turn")?;
    Ok(Some(commit))
}

// Compares task branches with a session's records. A run compares its refs after every child process; if it is killed,
// it cannot. Then records, which name every commit that changed something, tell what the run wrote from what an agent
// forged.

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

// Tasks whose work is no longer on the branch of their run: the branch was reset, or rewritten without their commits.
// Records keep these commits, so they can be named.

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
