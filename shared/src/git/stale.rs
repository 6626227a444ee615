//! Lock files of git that a killed process left. Only what nobody can still be using is removed.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{GitError, Repository, locks};
use crate::{
    name::BranchName,
    process::{Occupants, is_open},
    safe_files,
};

/// Between git's closing of a lock file and its last act on it lies less than this.
const SETTLED: Duration = Duration::from_secs(2);
/// Where the system does not tell who has a file open, so long must have passed.
const OLD: Duration = Duration::from_secs(600);
/// A git that is still at work gets so long to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// And one of the user's so long, before we say that it is in our way.
const COURTESY: Duration = Duration::from_secs(10);

/// Waits until the lock file at `path` is gone, and removes it if its owner is. Call this only where our own lock says
/// that nobody else is at work there.
pub fn clear(path: &Path) {
    let end = Instant::now() + PATIENCE;
    while path.symlink_metadata().is_ok() && Instant::now() < end {
        if locks::move_folder(path) {
            return;
        }
        if is_abandoned(path) {
            let _ = safe_files::remove(path);
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

impl Repository {
    /// Whether a git holds the index of this checkout, or has left its lock.
    #[must_use]
    pub fn is_index_held(&self) -> bool {
        self.git_dir.join("index.lock").symlink_metadata().is_ok()
    }

    /// Waits until nobody holds the index of the user's own checkout. Its lock is removed only where a driver
    /// of ours died: else an editor may be open for a commit, and that has closed the file.
    pub fn await_index(&self) -> Result<(), GitError> {
        let path = self.git_dir.join("index.lock");
        let end = Instant::now() + COURTESY;
        while path.symlink_metadata().is_ok() {
            if locks::remove_if_stale(&path) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(GitError::IndexHeld { path });
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Removes what a git that was killed has locked in a worktree of ours that has `branch`.
    pub fn clear_locks(&self, branch: &BranchName) {
        self.locks(branch).iter().for_each(|path| clear(path));
    }

    /// The locks of a checkout that has `branch`, as far as they are there.
    #[must_use]
    pub fn find_locks(&self, branch: &BranchName) -> Vec<PathBuf> {
        self.locks(branch).into_iter().filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    fn locks(&self, branch: &BranchName) -> [PathBuf; 4] {
        let own = |name: &str| self.git_dir.join(name);
        let shared = |name: &str| self.common_dir.join(format!("{name}.lock"));
        [own("index.lock"), own("HEAD.lock"), shared(&branch.to_ref()), shared("packed-refs")]
    }

    /// Removes the locks of the user's own checkout that were not there when an agent began, which is at its end with all of
    /// its processes, if no git of anybody else's is at work there. Only where the system tells of that; else they are waited
    /// for.
    pub fn clear_new_locks(&self, branch: &BranchName, known: &[PathBuf]) -> Result<(), GitError> {
        let end = Instant::now() + COURTESY;
        let is_new = |path: &PathBuf| !known.contains(path);
        loop {
            let left: Vec<PathBuf> = self.find_locks(branch).into_iter().filter(is_new).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                let index = self.git_dir.join("index.lock");
                let held = left.into_iter().find(|path| *path == index);
                return held.map_or(Ok(()), |path| Err(GitError::IndexHeld { path }));
            }
            if left.iter().any(|path| locks::move_folder(path)) {
                continue;
            }
            let is_ours_alone = || Occupants::has_other_git(&[self.top(), &self.git_dir]) == Some(false);
            if left.iter().all(|path| is_abandoned(path)) && is_ours_alone() {
                left.iter().for_each(|path| drop(safe_files::remove(path)));
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Removes the private indexes that killed processes left in a worktree's git directory.
pub fn sweep_indexes(git_dir: &Path) {
    let entries = fs::read_dir(git_dir.join("arborist")).into_iter().flatten().flatten();
    let indexes = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"index-"));
    indexes.for_each(|entry| drop(safe_files::remove(&entry.path())));
}

/// Whether no process can still be using a lock file, as far as the system tells.
pub(super) fn is_abandoned(path: &Path) -> bool {
    let changed =
        path.symlink_metadata().and_then(|file| file.modified()).unwrap_or_else(|_| SystemTime::now());
    let age = changed.elapsed().unwrap_or_default();
    match is_open(path) {
        Some(is_open) => !is_open && age >= SETTLED,
        None => age >= OLD,
    }
}
