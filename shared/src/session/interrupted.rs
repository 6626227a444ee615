//! A turn that a crash has cut in two. Its record, its branch and the mark of its index move in one transaction, but with
//! git's files backend a kill between two renames leaves the first moved and the others not. The record is the first: it
//! then names a commit that is on no branch.

use super::{Archive, SessionError, Stored, archive::words_of};
use crate::{
    git::{RefMove, Repository},
    message::{Key, Status},
    name::{BranchName, Oid},
    record::staging_mark,
};

/// Moves the branch of a turn to its commit where only the record was written. Call this with the lock of the run `branch`
/// in hand, before where its branch is was read. Gives the commits that were brought to their branches.
pub fn finish_turns(repository: &Repository, branch: &BranchName) -> Result<Vec<Oid>, SessionError> {
    let mut finished = Vec::new();
    for newest in Archive::new(repository).list()?.sessions {
        if newest.record.context.branch == *branch
            && let Some(commit) = finish(repository, branch, &newest)?
        {
            finished.push(commit);
        }
    }
    Ok(finished)
}

fn finish(repository: &Repository, run: &BranchName, newest: &Stored) -> Result<Option<Oid>, SessionError> {
    let record = &newest.record;
    let Some(commit) = record.turn().and_then(|turn| turn.commit) else { return Ok(None) };
    // What a record says is no proof: the commit itself must be the turn of this session that the record speaks of.
    let Some((session, message)) = words_of(repository, commit)? else { return Ok(None) };
    let number = message.trailers.get(Key::Turn).and_then(|number| number.parse::<u32>().ok());
    let is_it = session == record.session
        && message.subject.status == Status::Turn
        && number == record.turn().map(|turn| turn.number);
    let Some(task) = message.subject.task.clone().filter(|_| is_it) else { return Ok(None) };
    let is_in_place = record.context.tip == commit;
    let branch = if is_in_place { run.clone() } else { run.task_branch(&task) };
    let loaded = repository.load_commits(&[commit])?;
    let parent = loaded.first().and_then(|commit| commit.parents().next());
    let tip = repository.find_branch(&branch)?;
    // Whatever else the branch points to, it has moved on, or somebody else has moved it.
    let Some(before) = tip.filter(|tip| Some(*tip) == parent) else { return Ok(None) };
    let (name, mark) = (branch.to_ref(), staging_mark(&branch, before));
    let mut moves = vec![RefMove { name: &name, new: Some(commit), old: Some(before) }];
    // In a lane nobody's index could be wrong.
    if is_in_place && repository.find_ref(&mark)?.is_none() {
        moves.push(RefMove { name: &mark, new: Some(before), old: None });
    }
    repository.move_refs(&moves, "arborist: finish an interrupted turn")?;
    Ok(Some(commit))
}
