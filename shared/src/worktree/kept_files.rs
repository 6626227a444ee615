//! Ignored files that stay in a gate's worktree for the next gate (`merge.keep`). Only files that a gate left stay,
//! because an agent can write to that worktree between two gates.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Mutex,
};

use super::{Pool, WorktreeError, copied_files::FileList, scratch::REASON, survey};
use crate::{git::Repository, mutex::MutexExt, name::TaskId, safe_files};

/// The files that may stay, by the top of the worktree.
#[derive(Debug, Default)]
struct KeptFiles {
    /// The git directories whose worktrees have been read.
    known: BTreeSet<PathBuf>,
    files: BTreeMap<PathBuf, FileList>,
}

static KEPT: Mutex<KeptFiles> = Mutex::new(KeptFiles { known: BTreeSet::new(), files: BTreeMap::new() });

impl Pool {
    /// Trusts the files that earlier processes left in worktrees of gates, as they are when this process first looks.
    pub(super) fn trust_kept_files(&self) -> Result<(), WorktreeError> {
        if self.options.merge_keep.is_empty() || !KEPT.hold().known.insert(self.repository.common_dir.clone())
        {
            return Ok(());
        }
        for place in self.scratch_worktrees()? {
            // In a worktree that cannot be read, nothing may stay.
            if let Ok(files) = list(&place) {
                KEPT.hold().files.insert(place.dir.clone(), files);
            }
        }
        Ok(())
    }

    /// Called when a gate or test has ended: the files in its worktree now may stay. `patterns` are those of
    /// `merge.keep`.
    pub fn remember_kept(&self, place: &Repository, patterns: &[String]) {
        if patterns.is_empty() {
            return;
        }
        let files = list(place).unwrap_or_default();
        KEPT.hold().files.insert(place.dir.clone(), files);
    }

    /// Removes every untracked file that is not remembered, or that has changed since.
    pub(super) fn remove_unknown(&self, place: &Repository) -> Result<(), WorktreeError> {
        let known = KEPT.hold().files.get(&place.dir).cloned().unwrap_or_default();
        let mut removed: Option<PathBuf> = None;
        for (path, facts) in list(place)?.iter() {
            if removed.as_ref().is_some_and(|removed| path.starts_with(removed)) || known.has(path, facts) {
                continue;
            }
            let full = place.dir.join(path);
            safe_files::remove_all(&full).map_err(WorktreeError::file("remove", &full))?;
            removed = Some(path.to_owned());
        }
        Ok(())
    }

    /// Called at the end of a run, because the next process trusts what is there.
    pub fn sweep_kept(&self) -> Result<(), WorktreeError> {
        if self.options.merge_keep.is_empty() {
            return Ok(());
        }
        for place in self.scratch_worktrees()? {
            let Ok(name) = survey::name_of(&place.dir).parse::<TaskId>() else { continue };
            // If another process uses it, that process will check it.
            if let Ok(_lock) = self.lock_worktree(&place.dir, &name) {
                self.remove_unknown(&place)?;
            }
        }
        Ok(())
    }

    fn scratch_worktrees(&self) -> Result<Vec<Repository>, WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        let is_there = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let ours = worktrees.iter().filter(|found| found.lock.as_deref() == Some(REASON));
        Ok(ours
            .filter(|found| is_there(&found.path))
            .filter_map(|found| self.repository.linked(found))
            .collect())
    }
}

/// Lists all untracked files of a worktree.
fn list(place: &Repository) -> Result<FileList, WorktreeError> {
    let paths = place.list_untracked()?;
    FileList::scan(&place.dir, &paths).map_err(WorktreeError::file("read", &place.dir))
}
