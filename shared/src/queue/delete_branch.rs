//! Deletes branches of tasks that have landed.

use super::LandingStep;
use crate::{
    git::{GitError, RefMove, Repository},
    name::{BranchName, Oid},
};

/// The words for the reflog.
const REASON: &str = "arborist: landed";

/// Deletes the branch of a task if all of its commits are in `landed`. Nothing may have it checked out.
pub fn delete_landed(repository: &Repository, branch: &BranchName, landed: Oid) -> Result<(), GitError> {
    if let Some(tip) = repository.find_branch(branch)?
        && repository.is_ancestor(tip, landed)?
    {
        let name = branch.to_ref();
        let moved = RefMove { name: &name, new: None, old: Some(tip) };
        // If the branch has moved since, the compare-and-swap fails and the branch stays.
        let _ = repository.move_refs(&[moved], REASON);
    }
    Ok(())
}

/// Deletes the branches of these tasks that are at the commit that landed and are not checked out.
pub(super) fn delete_unused_branches(repository: &Repository, steps: &[LandingStep]) -> Result<(), GitError> {
    for LandingStep { ticket, .. } in steps {
        let branch = ticket.scope.task_branch(&ticket.task);
        if repository.find_branch(&branch)? == Some(ticket.source)
            && repository.checkouts_of(&branch)?.is_empty()
        {
            let delete = RefMove { name: &branch.to_ref(), new: None, old: Some(ticket.source) };
            repository.move_refs(&[delete], REASON)?;
        }
    }
    Ok(())
}
