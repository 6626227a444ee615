//! Which directory a repository was opened at. Whoever removes it, or puts another in its place, must not make our git
//! act on a repository that happens to lie around it.

use std::{
    collections::BTreeMap,
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
pub(super) struct GitDirId {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl GitDirId {
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
/// Worktrees that the user had behind links before, and where they led then.
static LINKED: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());
/// Folders in git directories that the user had linked before, by git directory.
static LINKED_INSIDE: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());

/// A child process begins that runs code of a repository.
pub(super) fn note_child() {
    HAS_BEGUN.store(true, Ordering::Relaxed);
}

/// An error if a worktree is reached through a link that was not there before: git would write to wherever it leads. That a
/// worktree is missing is for git to say.
pub(super) fn require_plain_top(top: &Path) -> Result<(), GitError> {
    if safe_files::kind_of(top).is_some_and(|kind| kind != safe_files::FileKind::Link) {
        return Ok(());
    }
    if !top.ancestors().any(Path::is_symlink) {
        return Ok(());
    }
    let mut known = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    if !has_begun() {
        known.insert(top.to_owned(), safe_files::resolved(top));
    }
    if known.contains_key(top) { Ok(()) } else { Err(GitError::LinkedWorktree { path: top.to_owned() }) }
}

/// Where a worktree really is: as it was before the first child process began, if the user has it behind a link.
pub(super) fn real_top(top: &Path) -> PathBuf {
    let known = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    known.get(top).cloned().unwrap_or_else(|| top.to_owned())
}

/// Where the user's links with one of these names in a git directory led before the first child process began. Later ones are
/// not the user's.
pub(super) fn linked_folders(git_dir: &Path, names: &[&str]) -> Vec<PathBuf> {
    let mut known = LINKED_INSIDE.lock().unwrap_or_else(PoisonError::into_inner);
    let find = || {
        let links = names.iter().map(|name| git_dir.join(name)).filter(|path| path.is_symlink());
        links.map(|link| safe_files::resolved(&link)).collect()
    };
    known.entry(git_dir.to_owned()).or_insert_with(|| if has_begun() { Vec::new() } else { find() }).clone()
}

/// Whether one has.
pub(super) fn has_begun() -> bool {
    HAS_BEGUN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_directory_in_its_place_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("git");
        std::fs::create_dir(&path).unwrap();
        let identity = GitDirId::of(&path).unwrap();
        assert!(identity.require().is_ok());
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        assert!(identity.require().is_err());
        std::fs::create_dir(&path).unwrap();
        assert!(identity.require().is_err());
    }
}
