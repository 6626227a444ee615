//! Making a worktree of what was saved of one: its files, what was staged, and its branch.

use std::path::{Path, PathBuf};

use super::{Pool, WorktreeError, WorktreeRemains, set_up::forget_set_up};
use crate::name::{BranchName, Oid};

/// A worktree as it was saved.
#[derive(Debug, Clone)]
pub struct Remembered {
    /// What was checked out.
    pub head: Oid,
    /// The branch that was checked out, if it is to be so again.
    pub branch: Option<BranchName>,
    /// What lay there.
    pub tree: Oid,
    /// What was staged, if that was something else than what was checked out.
    pub staged: Option<Oid>,
}

impl Pool {
    /// Where a worktree of this name would be made.
    #[must_use]
    pub fn path_for(&self, name: &str) -> PathBuf {
        let name = if super::places::is_lane(name) { format!("restored-{name}") } else { name.to_owned() };
        self.places.base.join(name)
    }

    /// Makes a worktree at `path`, which must not exist, and puts what was saved into it: as work that is not committed.
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
            self.mend_unmade(&path)?;
            return Err(error.into());
        }
        self.note_made();
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

    /// What git ignores in a worktree and one of `patterns` matches, as paths.
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

    /// Caches of a worktree are gone: it is made fit for work again before the next one works there.
    pub fn forget_caches(&self, place: &WorktreeRemains) {
        if let Some(lane) = self.look_into(place) {
            forget_set_up(&lane);
        }
    }
}
