//! The `.git` file of a linked worktree, which leads git to the repository. If a child puts a repository in its place, the
//! next git command there obeys the settings of that one.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use crate::{
    git::{
        Repository, move_aside,
        worktrees::{
            plain_path, top_of_git_dir,
            worktree_git_dirs::{REMOVAL_TIMEOUT, shown},
        },
    },
    safe_files::{self, FileKind},
};

/// git writes a path into this file.
const LONGEST_LINK: u64 = 1 << 16;

/// The git directory that the `.git` file of the worktree at `top` leads to, according to its content.
#[must_use]
pub fn target_of(top: &Path, content: &[u8]) -> Option<PathBuf> {
    Some(named_path(top, content.strip_prefix(b"gitdir: ")?))
}

/// The path that the content of a file names. A relative one starts at `folder`.
#[must_use]
pub fn named_path(folder: &Path, content: &[u8]) -> PathBuf {
    plain_path(&folder.join(OsStr::from_bytes(content.trim_ascii_end())))
}

/// A `.git` file and its recorded content.
#[derive(Debug, Clone)]
pub(in crate::git) struct WorktreeLink {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl WorktreeLink {
    /// `None` if the worktree has no such file.
    pub(in crate::git) fn read(git_dir: &Path) -> Option<Self> {
        let path = top_of_git_dir(git_dir)?.join(".git");
        let bytes = safe_files::read_up_to(&path, LONGEST_LINK).ok()?;
        Some(Self { path, bytes })
    }

    /// Whether it is as it was, or is gone together with its worktree.
    pub(in crate::git) fn is_unchanged(&self) -> bool {
        let is_there = |top: &Path| safe_files::kind_of(top) == Some(FileKind::Folder);
        safe_files::read_up_to(&self.path, LONGEST_LINK).is_ok_and(|bytes| bytes == self.bytes)
            || !self.path.parent().is_some_and(is_there)
    }

    /// Writes it again, unless another process is just removing the worktree, and returns a message.
    pub(in crate::git) fn restore(&self, repository: &Repository) -> Option<String> {
        let end = Instant::now() + REMOVAL_TIMEOUT;
        let is_missing = || safe_files::kind_of(&self.path).is_none() && !self.is_unchanged();
        while is_missing() && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
        if self.is_unchanged() {
            return None;
        }
        let message =
            format!("{} was changed while an agent or a command ran", shown(repository, &self.path));
        match self.write(repository) {
            Ok(()) => Some(format!("{message}, and was restored")),
            Err(error) => Some(format!("{message}, and could not be restored: {error}")),
        }
    }

    fn write(&self, repository: &Repository) -> io::Result<()> {
        match safe_files::kind_of(&self.path) {
            None => {}
            Some(FileKind::Folder) => drop(move_aside(&repository.common_dir, &self.path)?),
            Some(_) => safe_files::remove(&self.path)?,
        }
        safe_files::write_with_mode(&self.path, &self.bytes, 0o644)
    }
}
