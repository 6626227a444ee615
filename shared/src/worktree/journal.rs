//! A note of the worktree that is being made, so that one who comes after a crash knows that what is half made is ours.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{Pool, WorktreeError};
use crate::safe_files;

/// git may outlive the process that started it by so much.
const SETTLE: Duration = Duration::from_millis(200);

impl Pool {
    fn journal(&self) -> PathBuf {
        self.places.locks().join("worktrees.making")
    }

    /// Notes that a worktree is about to be made at `path`. Only one is made at a time.
    pub(super) fn note_making(&self, path: &Path) -> Result<(), WorktreeError> {
        let file = self.journal();
        safe_files::write(&file, path.as_os_str().as_bytes()).map_err(WorktreeError::file("write", file))
    }

    /// It is made, or nothing of it is left.
    pub(super) fn note_made(&self) {
        let _ = safe_files::remove(&self.journal());
    }

    /// Removes what one who was killed while making a worktree left. What is whole stays: it is a free lane.
    pub(super) fn mend_half_made(&self) -> Result<(), WorktreeError> {
        let Ok(bytes) = safe_files::read(&self.journal()) else {
            return Ok(());
        };
        let path = PathBuf::from(OsString::from_vec(bytes));
        if !self.is_registered(&path) {
            thread::sleep(SETTLE);
        }
        if !self.is_registered(&path) {
            self.remove_remains(&path)?;
        }
        self.note_made();
        Ok(())
    }

    fn is_registered(&self, path: &Path) -> bool {
        let worktrees = self.repository.list_worktrees().unwrap_or_default();
        worktrees.iter().any(|worktree| {
            worktree.path == path
                && worktree.head.is_some()
                && super::is_ours(worktree)
                && path.join(".git").is_file()
        })
    }

    /// A worktree that was never filled has nothing in it but its `.git` file. Anything else is not removed.
    fn remove_remains(&self, path: &Path) -> Result<(), WorktreeError> {
        for git_dir in self.half_made_homes(path) {
            let removed = self.repository.change_homes(|| safe_files::remove_all(&git_dir));
            removed.map_err(WorktreeError::file("remove", &git_dir))?;
        }
        let _ = safe_files::remove(&path.join(".git"));
        let _ = safe_files::remove_folder(path);
        Ok(())
    }

    /// The git directories that were being made for a worktree at `path`: those that name it, and those of its name
    /// that do not name anything yet.
    fn half_made_homes(&self, path: &Path) -> Vec<PathBuf> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let entries = fs::read_dir(self.repository.common_dir.join("worktrees")).into_iter().flatten();
        let is_ours = |home: &PathBuf| match safe_files::read(&home.join("gitdir")) {
            Ok(file) if !file.trim_ascii().is_empty() => {
                file.trim_ascii_end() == path.join(".git").as_os_str().as_bytes()
            }
            _ => home.file_name().is_some_and(|file| file.as_encoded_bytes().starts_with(name)),
        };
        entries.flatten().map(|entry| entry.path()).filter(is_ours).collect()
    }
}
