//! Creates a worktree from a saved one: its files, its staged changes and its branch.

use std::path::{Path, PathBuf};

use super::{Pool, WorktreeError, WorktreeRemains, set_up::forget_set_up};
use crate::name::{BranchName, Oid};

/// A saved worktree.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// The commit that was checked out.
    pub head: Oid,
    /// The branch to check out, if any.
    pub branch: Option<BranchName>,
    /// The files.
    pub tree: Oid,
    /// The staged tree, if it differed from the commit.
    pub staged: Option<Oid>,
}

impl Pool {
    /// The path for a worktree of this name.
    #[must_use]
    pub fn path_for(&self, name: &str) -> PathBuf {
        let name = if super::places::is_lane(name) { format!("restored-{name}") } else { name.to_owned() };
        self.places.base.join(name)
    }

    /// Creates a worktree at `path`, which must not exist, with the saved files as uncommitted changes.
    pub fn revive(&self, path: &Path, saved: &Remembered) -> Result<PathBuf, WorktreeError> {
        let _gate = self.gate()?;
        let worktrees = self.repository.list_worktrees()?;
        let places = self.places.prepared(&self.repository, &worktrees)?;
        let path = match path.strip_prefix(&self.places.base) {
            Ok(rest) => places.base.join(rest),
            Err(_) => path.to_owned(),
        };
        if path.symlink_metadata().is_ok() {
            return Err(WorktreeError::Occupied(path));
        }
        self.note_making(&path)?;
        if let Err(error) = self.repository.add_worktree(&path, saved.head, super::REASON) {
            self.repair_failed(&path)?;
            return Err(error.into());
        }
        self.note_made();
        self.hide_worktree(&path)?;
        let found = self.repository.list_worktrees()?.into_iter().find(|worktree| worktree.path == path);
        let found = found.ok_or_else(|| WorktreeError::Missing(super::REASON.into(), path.clone()))?;
        let lane = self.linked(&found)?;
        lane.check_out_commit(saved.head)?;
        lane.private_index("revive")?.write_out(saved.tree)?;
        if let Some(staged) = saved.staged {
            lane.stage_tree(staged)?;
        }
        if let Some(branch) = &saved.branch {
            lane.attach(branch)?;
        }
        Ok(path)
    }

    /// The ignored files of a worktree that match one of `patterns`.
    pub fn find_ignored(
        &self,
        place: &WorktreeRemains,
        patterns: &[String],
    ) -> Result<Vec<PathBuf>, WorktreeError> {
        let Some(lane) = self.look_into(place).filter(|_| !place.is_missing && !patterns.is_empty()) else {
            return Ok(Vec::new());
        };
        let (ignored, _) = lane.split_ignored(lane.find_untracked(patterns)?)?;
        Ok(ignored.iter().map(|path| place.path.join(path)).collect())
    }

    /// Called when caches of a worktree were deleted, so that it is set up again before its next use.
    pub fn forget_caches(&self, place: &WorktreeRemains) {
        if let Some(lane) = self.look_into(place) {
            forget_set_up(&lane);
        }
    }
}
