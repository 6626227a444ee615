//! Repairs worktrees: those that were moved, broken links, lock files that killed processes left, and folders that git has
//! forgotten.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Pool, WorktreeError, fill, is_ours};
use crate::{
    git::{checkout_locks, has_valid_head},
    name::BranchName,
    process::{FileLock, shell_word},
};

/// What a repair did.
#[derive(Debug)]
pub struct RepairedWorktrees {
    /// Worktrees that were broken and now work.
    pub repaired: Vec<PathBuf>,
    /// Worktrees that are still broken.
    pub broken: Vec<PathBuf>,
    /// What git said about worktrees that were moved.
    pub said: String,
}

impl Pool {
    /// Repairs what can be repaired. Returns the worktrees that were broken and now work, those that are still broken,
    /// and git's output.
    pub fn repair(&self) -> Result<RepairedWorktrees, WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let before = self.list_broken()?;
        self.repair_ours()?;
        for orphan in self.list_orphans(&self.repository.list_worktrees()?)? {
            let path = &orphan.worktree.path;
            if FileLock::find_holder(&self.repository.worktree_lock(path)).is_none() {
                self.reconnect(&orphan)?;
            }
        }
        // Worktrees that were moved. Git complains about each that it cannot repair.
        let entries = fs::read_dir(&self.places.base).into_iter().flatten().flatten();
        let is_known = |path: &PathBuf| path.join(".git").is_file() && !self.is_orphan(path);
        let folders: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_known).collect();
        let said = self.repository.repair_worktrees(&folders)?;
        let broken = self.list_broken()?;
        let repaired = before.into_iter().filter(|path| !broken.contains(path)).collect();
        Ok(RepairedWorktrees { repaired, broken, said })
    }

    fn list_broken(&self) -> Result<Vec<PathBuf>, WorktreeError> {
        let broken = self.survey()?.into_iter().filter(|row| row.is_broken);
        Ok(broken.map(|row| row.path).collect())
    }

    /// What to do about a worktree that cannot be repaired. Its files may be the only copy of uncommitted work.
    #[must_use]
    pub fn advice_for_broken(&self, path: &Path) -> String {
        let why = match self.is_orphan(path) {
            true => "its git directory is gone, and with it the name of its branch",
            false => "its git directory does not say what was checked out",
        };
        let word = shell_word(&path.to_string_lossy());
        let away = shell_word(&format!("{}.old", path.display()));
        format!("{why}; keep its files and move it away with: mv {word} {away}")
    }

    fn repair_ours(&self) -> Result<(), WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        let used: Vec<BranchName> = worktrees.iter().filter_map(|worktree| worktree.branch.clone()).collect();
        for worktree in worktrees.iter().filter(|worktree| is_ours(worktree)) {
            let is_busy = FileLock::find_holder(&self.repository.worktree_lock(&worktree.path)).is_some();
            if is_busy || !worktree.path.is_dir() {
                continue;
            }
            let lane = self.linked(worktree)?;
            lane.restore_common_dir()?;
            lane.restore_head(&used)?;
            self.repair_link(&lane)?;
            fill::clear_locks(&lane);
            checkout_locks::sweep_indexes(&lane.git_dir);
            if has_valid_head(&lane.git_dir) {
                lane.restore_index()?;
            }
        }
        Ok(())
    }
}
