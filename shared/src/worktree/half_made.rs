//! Notes that a worktree is being created, and removes what a killed process left of one.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{Pool, WorktreeError};
use crate::safe_files;

/// How long git may outlive the process that started it.
const SETTLE: Duration = Duration::from_millis(200);

impl Pool {
    fn journal(&self) -> PathBuf {
        self.repository.lock_folder().join("worktrees.making")
    }

    /// Notes that a worktree is about to be created at `path`. Only one is created at a time.
    pub(super) fn note_making(&self, path: &Path) -> Result<(), WorktreeError> {
        let file = self.journal();
        safe_files::write(&file, path.as_os_str().as_bytes()).map_err(WorktreeError::file("write", file))
    }

    /// Removes the note: the worktree is complete, or nothing of it is left.
    pub(super) fn note_made(&self) {
        let _ = safe_files::remove(&self.journal());
    }

    /// Removes what a process left that was killed while it created a worktree. A complete one stays: it is a free
    /// lane. Any process can write the note, so it is trusted only for paths at which we create worktrees.
    pub(super) fn repair_half_made(&self) -> Result<(), WorktreeError> {
        let Ok(bytes) = safe_files::read(&self.journal()) else {
            return Ok(());
        };
        let path = PathBuf::from(OsString::from_vec(bytes));
        // The parent of "folder/.." is the folder too, so require a file name.
        if path.file_name().is_some() && self.places.is_place(&path) {
            self.remove_unregistered(&path)?;
        }
        self.note_made();
        Ok(())
    }

    /// Removes what is left of a worktree that this process failed to create.
    pub(super) fn repair_failed(&self, path: &Path) -> Result<(), WorktreeError> {
        self.remove_unregistered(path)?;
        self.note_made();
        Ok(())
    }

    fn remove_unregistered(&self, path: &Path) -> Result<(), WorktreeError> {
        if !self.is_registered(path) {
            thread::sleep(SETTLE);
        }
        if self.is_registered(path) { Ok(()) } else { self.remove_remains(path) }
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

    /// Removes a worktree that was never filled: it has only its `.git` file. Anything else is not removed.
    fn remove_remains(&self, path: &Path) -> Result<(), WorktreeError> {
        let homes = self.half_made_homes(path);
        for git_dir in &homes {
            let removed = self.repository.change_git_dirs(|| safe_files::remove_all(git_dir));
            removed.map_err(WorktreeError::file("remove", git_dir))?;
        }
        let link = path.join(".git");
        if safe_files::read(&link).is_ok_and(|text| self.names_missing_git_dir(&text)) {
            let _ = safe_files::remove(&link);
        }
        let _ = safe_files::remove_folder(path);
        Ok(())
    }

    /// Whether a `.git` file names a missing git directory below this repository's `worktrees`.
    fn names_missing_git_dir(&self, link: &[u8]) -> bool {
        let Some(home) = link.strip_prefix(b"gitdir: ") else { return link.trim_ascii().is_empty() };
        let home = Path::new(OsStr::from_bytes(home.trim_ascii_end()));
        let is_here = home.parent() == Some(&self.repository.common_dir.join("worktrees"));
        is_here && home.symlink_metadata().is_err()
    }

    /// The git directories that were being created for a worktree at `path`: those that name it, and those of its name
    /// that name nothing yet.
    fn half_made_homes(&self, path: &Path) -> Vec<PathBuf> {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let entries = fs::read_dir(self.repository.common_dir.join("worktrees")).into_iter().flatten();
        let has_head = self.repository.list_worktrees().unwrap_or_default();
        let has_head = has_head.iter().any(|worktree| worktree.path == path && worktree.head.is_some());
        let is_ours = |home: &PathBuf| match safe_files::read(&home.join("gitdir")) {
            Ok(file) if !file.trim_ascii().is_empty() => {
                file.trim_ascii_end() == path.join(".git").as_os_str().as_bytes() && !has_head
            }
            _ => home.file_name().is_some_and(|file| file.as_encoded_bytes().starts_with(name)),
        };
        let homes = entries.flatten().map(|entry| entry.path());
        homes.filter(|home| is_half_made(home) && is_ours(home)).collect()
    }
}

/// Whether git was creating this git directory for us. Git locks it with our reason before it writes anything else, and
/// gives it an index last.
fn is_half_made(home: &Path) -> bool {
    if home.join("index").symlink_metadata().is_ok() {
        return false;
    }
    match safe_files::read(&home.join("locked")) {
        // All our reasons start with the same word. An interrupted write leaves a part of it, or nothing.
        Ok(reason) => {
            let own = super::REASON.as_bytes();
            reason.starts_with(own) || own.starts_with(&reason)
        }
        Err(_) => safe_files::list(home).is_ok_and(|entries| entries.is_empty()),
    }
}
