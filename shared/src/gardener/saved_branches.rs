//! Saves commits of task branches that are about to be moved or deleted.

use super::GardenerError;
use crate::{
    git::{RefMove, Repository},
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
    let is_saved = repository.find_ref(&saved_branch_ref(&branch, own))? == Some(own);
    if is_saved || repository.is_ancestor(own, tip)? {
        return Ok(None);
    }
    save_branch(repository, &branch, own).map(Some)
}

/// Saves a commit of a branch that is about to be moved or deleted. Returns the saved ref.
pub(super) fn save_branch(
    repository: &Repository,
    branch: &BranchName,
    commit: Oid,
) -> Result<String, GardenerError> {
    save(repository, &saved_branch_ref(branch, commit), commit)
}

/// The ref that saves a commit of a branch.
#[must_use]
pub fn saved_branch_ref(branch: &BranchName, commit: Oid) -> String {
    branch.saved_commit_ref(commit)
}

/// Saves a commit as the ref `name`, and returns the name.
pub(super) fn save(repository: &Repository, name: &str, commit: Oid) -> Result<String, GardenerError> {
    if repository.find_ref(name)? != Some(commit) {
        repository.move_refs(&[RefMove { name, new: Some(commit), old: None }], "arborist: saved")?;
    }
    Ok(name.to_owned())
}
