//! Restores saved unfinished work.

use super::{Pool, WorktreeError, WorktreeNote, saver};
use crate::{
    git::TreeChange,
    name::{Oid, TaskId},
};

/// Restored work.
#[derive(Debug)]
pub struct RestoredWorktree {
    /// The commit that had it.
    pub from: Oid,
    /// The paths that were changed.
    pub changes: Vec<TreeChange>,
    /// Notes for the user.
    pub notes: Vec<WorktreeNote>,
}

impl Pool {
    /// Restores the files of a task's worktree from the last save. Branch and index stay, so that they are uncommitted
    /// changes. The current files are saved first.
    pub fn restore(&self, task: &TaskId) -> Result<RestoredWorktree, WorktreeError> {
        let name = saver::ref_of(&self.run, task);
        let nothing = || WorktreeError::NothingSaved(task.clone());
        let from = self.repository.find_ref(&name)?.ok_or_else(nothing)?;
        let at = self.repository.require_commit(&format!("{from}^"))?;
        let lease = self.add(task, at)?;
        let lane = &lease.repository;
        let tip = lane.require_commit("HEAD")?;
        if tip != at {
            return Err(WorktreeError::SavedElsewhere { task: task.clone(), at, tip, name });
        }
        let (now, wanted) = (lane.snapshot()?, lane.tree_of(from)?);
        let changes = lane.changes(now, wanted)?;
        let mut notes = Vec::new();
        if !changes.is_empty() {
            notes.extend(self.save(lane, task.as_str())?);
            lane.private_index("restore")?.write_out(wanted)?;
        }
        Ok(RestoredWorktree { from, changes, notes })
    }
}
