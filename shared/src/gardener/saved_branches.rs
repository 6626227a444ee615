//! Saves commits of task branches that are about to be moved or deleted.

use super::GardenerError;
use crate::{
    git::Repository,
    name::{BranchName, Oid, TaskId},
};

/// Saves the task's own branch if it has commits that `tip` does not; the next run starts it again. Returns the saved
/// ref.
pub fn save_own_branch(
    repository: &Repository,
    run: &BranchName,
    task: &TaskId,
    tip: Oid,
) -> Result<Option<String>, GardenerError> {
    let branch = run.task_branch(task);
    let Some(own) = repository.find_branch(&branch)? else { return Ok(None) };
    if repository.is_ancestor(own, tip)? {
        return Ok(None);
    }
    let name = branch.saved_commit_ref(own);
    Ok(repository.save_commit(&name, own)?.then_some(name))
}

/// Saves a commit of a branch that is about to be moved or deleted. Returns the saved ref.
pub(super) fn save_branch(
    repository: &Repository,
    branch: &BranchName,
    commit: Oid,
) -> Result<String, GardenerError> {
    let name = branch.saved_commit_ref(commit);
    repository.save_commit(&name, commit)?;
    Ok(name)
}
