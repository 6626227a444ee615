//! Removes lock files of git that a killed process left in one checkout, and waits for those of the user. The conditions
//! for a stale lock are in `locks`.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{
    GitError, Repository,
    locks::{self, USER_GIT_TIMEOUT, is_abandoned},
    notices::report_removed,
};
use crate::{name::BranchName, process::Occupants, safe_files};

/// How long to wait for one of our git processes that is still running.
const OWN_GIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until the lock file at `path` is gone, and removes it if its owner is gone. Call this only while one of our
/// own locks guarantees that nothing else works there.
pub fn clear(path: &Path) {
    let end = Instant::now() + OWN_GIT_TIMEOUT;
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
    /// Whether a git holds the lock of this checkout's index, or a killed one has left it.
    #[must_use]
    pub fn is_index_held(&self) -> bool {
        self.git_dir.join("index.lock").symlink_metadata().is_ok()
    }

    /// Waits until the index of the user's checkout is not locked. The lock is removed only if it is from a driver of
    /// ours that died: the user's `git commit` holds the lock without an open file while the editor is open.
    pub fn await_index(&self) -> Result<(), GitError> {
        let path = self.git_dir.join("index.lock");
        let end = Instant::now() + USER_GIT_TIMEOUT;
        while path.symlink_metadata().is_ok() {
            if locks::remove_if_stale(&path) {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(locks::held(&path));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Removes locks that a killed git left in one of our worktrees, which has `branch` checked out.
    pub fn clear_locks(&self, branch: &BranchName) {
        self.locks(branch).iter().for_each(|path| clear(path));
    }

    /// The existing lock files of a checkout of `branch`.
    #[must_use]
    pub fn find_locks(&self, branch: &BranchName) -> Vec<PathBuf> {
        self.locks(branch).into_iter().filter(|path| path.symlink_metadata().is_ok()).collect()
    }

    fn locks(&self, branch: &BranchName) -> [PathBuf; 4] {
        let own = |name: &str| self.git_dir.join(name);
        let shared = |name: &str| self.common_dir.join(format!("{name}.lock"));
        [own("index.lock"), own("HEAD.lock"), shared(&branch.to_ref()), shared("packed-refs")]
    }

    /// Removes locks in the user's checkout that appeared while an agent ran. All processes of the agent have ended. If
    /// another git is running there, or the system cannot tell, waits for the locks instead.
    pub fn clear_new_locks(&self, branch: &BranchName, known: &[PathBuf]) -> Result<(), GitError> {
        let end = Instant::now() + USER_GIT_TIMEOUT;
        let is_new = |path: &PathBuf| !known.contains(path);
        loop {
            let left: Vec<PathBuf> = self.find_locks(branch).into_iter().filter(is_new).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() >= end {
                let index = self.git_dir.join("index.lock");
                let held = left.into_iter().find(|path| *path == index);
                return held.map_or(Ok(()), |path| Err(locks::held(&path)));
            }
            if left.iter().any(|path| locks::move_folder(path)) {
                continue;
            }
            let has_no_other_git = || Occupants::has_other_git(&[self.top(), &self.git_dir]) == Some(false);
            if left.iter().all(|path| is_abandoned(path)) && has_no_other_git() {
                let removed = left.into_iter().filter(|path| safe_files::remove(path).is_ok());
                removed.for_each(|lock| report_removed(&lock));
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Removes the private indexes that killed processes left in a worktree's git directory. Call this only while a lock of
/// ours guarantees that nothing else works there, so that none of them can be in use; without it, `locks` removes only
/// those of dead processes.
pub fn sweep_indexes(git_dir: &Path) {
    let entries = fs::read_dir(git_dir.join("arborist")).into_iter().flatten().flatten();
    let indexes = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"index-"));
    indexes.for_each(|entry| drop(safe_files::remove(&entry.path())));
}
