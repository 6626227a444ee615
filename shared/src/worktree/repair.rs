//! Repairs worktrees that were moved, broken links, and lock files that killed processes left.

use std::{fs, path::PathBuf};

use super::{Pool, WorktreeError, is_ours};
use crate::{git::stale, process::FileLock};

impl Pool {
    /// Repairs what can be repaired, and returns git's output.
    pub fn repair(&self) -> Result<String, WorktreeError> {
        let _gate = self.gate()?;
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let folders: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.join(".git").is_file()).collect();
        let said = self.repository.repair_worktrees(&folders)?;
        for worktree in self.repository.list_worktrees()?.iter().filter(|worktree| is_ours(worktree)) {
            let is_busy = FileLock::find_holder(&self.repository.worktree_lock(&worktree.path)).is_some();
            if is_busy || !worktree.path.is_dir() {
                continue;
            }
            let lane = self.linked(worktree)?;
            self.repair_link(&lane)?;
            for name in ["index.lock", "HEAD.lock"] {
                stale::clear(&lane.git_dir.join(name));
            }
            stale::sweep_indexes(&lane.git_dir);
        }
        Ok(said)
    }
}
