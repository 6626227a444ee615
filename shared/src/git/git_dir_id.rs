//! Remembers which git directory a repository was opened at. If it is removed or replaced, our git commands must not
//! act on another repository in a parent directory.

use std::{
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{GitError, Repository};
use crate::process::ProcessError;

/// A git directory, identified by device and inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitDirId {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl GitDirId {
    /// The directory at `path` as it is now; `None` if there is none.
    pub(super) fn of(path: &Path) -> Option<Self> {
        // The path was resolved when the repository was opened, so a link here was planted.
        let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_dir)?;
        Some(Self { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// Fails unless the same directory is still there.
    pub(super) fn require(&self) -> Result<(), GitError> {
        let why = match Self::of(&self.path) {
            Some(now) if now == *self => return Ok(()),
            Some(_) => "was replaced by another one",
            None => "was removed",
        };
        Err(GitError::Moved { path: self.path.clone(), why })
    }
}

impl Repository {
    /// The error for a file below the git directory that cannot be read or written.
    pub(super) fn file_error(&self, source: io::Error) -> GitError {
        match self.git_dir_ids.iter().try_for_each(GitDirId::require) {
            Err(moved) => moved,
            Ok(()) => ProcessError { program: "git".into(), source }.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_git_directory_is_detected() {
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
