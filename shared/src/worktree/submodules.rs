//! Submodules of a worktree: checked out where the main checkout has them, on a branch of their own, and kept when the
//! worktree goes.

use super::{Pool, WorktreeError, WorktreeNote};
use crate::{
    git::{Repository, Submodule},
    name::{BranchName, Oid},
};

impl Pool {
    /// Checks out the submodules of `tip` that the main checkout has, and says which are not there.
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
            lane.mend_submodule(&submodule)?;
            self.keep_old(lane, &submodule)?;
            match lane.update_submodule(&submodule, &module)? {
                Ok(()) => lane.branch_submodule(&submodule, branch)?,
                Err(why) => without.push(format!("'{}': {why}", submodule.path)),
            }
        }
        Ok((!without.is_empty()).then(|| WorktreeNote::WithoutSubmodules { which: without.join("; ") }))
    }

    /// Keeps what only the submodules of a worktree have, before they go with it.
    pub(super) fn keep_submodules(&self, lane: &Repository) -> Result<(), WorktreeError> {
        let _floating = lane.float_home();
        let Some(tip) = lane.find_commit("HEAD")? else {
            return Ok(());
        };
        for submodule in lane.list_submodules(tip)? {
            lane.mend_submodule(&submodule)?;
            self.keep_old(lane, &submodule)?;
        }
        Ok(())
    }

    fn keep_old(&self, lane: &Repository, submodule: &Submodule) -> Result<(), WorktreeError> {
        let is_there = lane.dir.join(&submodule.path).join(".git").exists();
        match lane.find_module(submodule).filter(|_| is_there) {
            Some(module) => Ok(lane.keep_submodule(submodule, &module)?),
            None => Ok(()),
        }
    }
}
