//! Submodules of a worktree. They are checked out if the main checkout has them, on their own branch, and their work is
//! kept when the worktree is removed.

use super::{Pool, WorktreeError, WorktreeNote};
use crate::{
    git::{Repository, Submodule},
    name::{BranchName, Oid},
};

impl Pool {
    /// Checks out the submodules of `tip` that the main checkout has, and reports the others.
    pub(super) fn fill_submodules(
        &self,
        lane: &Repository,
        branch: &BranchName,
        tip: Oid,
    ) -> Result<Option<WorktreeNote>, WorktreeError> {
        let mut without = Vec::new();
        for submodule in lane.list_submodules(tip)? {
            let Some(module) = lane.find_module(&submodule) else {
                without.push(format!("'{}' is not initialised in the main checkout", submodule.path));
                continue;
            };
            lane.repair_submodule(&submodule)?;
            self.keep_old(lane, &submodule)?;
            match lane.update_submodule(&submodule, &module)? {
                Ok(()) => lane.branch_submodule(&submodule, branch)?,
                Err(why) => without.push(format!("'{}': {why}", submodule.path)),
            }
        }
        Ok((!without.is_empty()).then(|| WorktreeNote::WithoutSubmodules { which: without.join("; ") }))
    }

    /// Saves what only the submodules of a worktree have, before they are removed with it.
    pub(super) fn keep_submodules(&self, lane: &Repository) -> Result<(), WorktreeError> {
        let _head_exemption = lane.exempt_git_dir();
        let Some(tip) = lane.find_commit("HEAD")? else {
            return Ok(());
        };
        for submodule in lane.list_submodules(tip)? {
            lane.repair_submodule(&submodule)?;
            self.keep_old(lane, &submodule)?;
        }
        Ok(())
    }

    fn keep_old(&self, lane: &Repository, submodule: &Submodule) -> Result<(), WorktreeError> {
        let is_there = lane.dir.join(&submodule.path).join(".git").exists();
        match lane.find_module(submodule).filter(|_| is_there) {
            Some(module) => Ok(lane.push_submodule_branches(submodule, &module)?),
            None => Ok(()),
        }
    }
}
