//! Lock files of git that a killed process left. Only what nobody can still be using is removed.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant, SystemTime},
};

use crate::process::is_open;

/// Between git's closing of a lock file and its last act on it lies less than this.
const SETTLED: Duration = Duration::from_secs(2);
/// Where the system does not tell who has a file open, so long must have passed.
const OLD: Duration = Duration::from_secs(600);
/// A git that is still at work gets so long to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until the lock file at `path` is gone, and removes it if its owner is. Call this only where our own lock says
/// that nobody else is at work there.
pub(super) fn clear(path: &Path) {
    let end = Instant::now() + PATIENCE;
    while path.symlink_metadata().is_ok() && Instant::now() < end {
        if is_abandoned(path) {
            let _ = fs::remove_file(path);
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Removes the private indexes that killed processes left in a worktree's git directory.
pub(super) fn sweep_indexes(git_dir: &Path) {
    let entries = fs::read_dir(git_dir.join("arborist")).into_iter().flatten().flatten();
    let indexes = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"index-"));
    indexes.for_each(|entry| drop(fs::remove_file(entry.path())));
}

fn is_abandoned(path: &Path) -> bool {
    let changed =
        path.symlink_metadata().and_then(|file| file.modified()).unwrap_or_else(|_| SystemTime::now());
    let age = changed.elapsed().unwrap_or_default();
    match is_open(path) {
        Some(is_open) => !is_open && age >= SETTLED,
        None => age >= OLD,
    }
}
