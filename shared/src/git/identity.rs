//! Which directory a repository was opened at. Whoever removes it, or puts another in its place, must not make our git
//! act on a repository that happens to lie around it.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::GitError;

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
