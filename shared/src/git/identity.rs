//! Which directory a repository was opened at. Whoever removes it, or puts another in its place, must not make our git
//! act on a repository that happens to lie around it.

use std::{
    collections::BTreeSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use super::GitError;
use crate::safe_files;

/// A git directory as the file system knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Identity {
    /// The directory at `path` as it is now; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        // Its path is resolved, so a link in its place is somebody else's, wherever it leads.
        let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// An error unless the same directory is still there.
    pub(super) fn require(&self) -> Result<(), GitError> {
        let why = match Self::of(&self.path) {
            Some(now) if now == *self => return Ok(()),
            Some(_) => "was replaced by another one",
            None => "is gone",
        };
        Err(GitError::Moved { path: self.path.clone(), why })
    }
}

/// Whether a child process has begun that runs code of a repository. A link that appears from then on is not the user's.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
/// Worktrees that the user had behind links before.
static LINKED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A child process begins that runs code of a repository.
pub(super) fn note_child() {
    HAS_BEGUN.store(true, Ordering::Relaxed);
}

/// An error if a worktree is reached through a link that was not there before: git would write to wherever it leads. That a
/// worktree is missing is for git to say.
pub(super) fn require_plain_top(top: &Path) -> Result<(), GitError> {
    if safe_files::kind_of(top).is_some_and(|kind| kind != safe_files::Kind::Link) {
        return Ok(());
    }
    if !top.ancestors().any(Path::is_symlink) {
        return Ok(());
    }
    let mut known = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    if !HAS_BEGUN.load(Ordering::Relaxed) {
        known.insert(top.to_owned());
    }
    if known.contains(top) { Ok(()) } else { Err(GitError::LinkedWorktree { path: top.to_owned() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_directory_in_its_place_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("git");
        std::fs::create_dir(&path).unwrap();
        let identity = Identity::of(&path).unwrap();
        assert!(identity.require().is_ok());
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        assert!(identity.require().is_err());
        std::fs::create_dir(&path).unwrap();
        assert!(identity.require().is_err());
    }
}
