//! Replaces the user's index by a private one. After all files of a worktree were added and committed, the private
//! index is what git would have to make of the user's, file by file.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{GitError, KnownIndex, Repository, Stamp, TreeChange, index::index_format::has_hidden},
    safe_files,
};

/// The file of a private index, removed when dropped.
#[derive(Debug)]
pub struct IndexFile {
    pub(in crate::git) path: PathBuf,
    /// The stamp of the user's index when this one was copied from it.
    pub(in crate::git) origin: Option<Stamp>,
}

impl IndexFile {
    /// Whether the user's index had this stamp when it was copied.
    #[must_use]
    pub fn follows(&self, stamp: Option<Stamp>) -> bool {
        stamp.is_some() && self.origin == stamp
    }

    fn lock(&self) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".lock");
        name.into()
    }
}

impl Drop for IndexFile {
    fn drop(&mut self) {
        let _ = safe_files::remove(&self.path);
        let _ = safe_files::remove(&self.lock());
    }
}

impl Repository {
    /// Installs `index` as the user's index, which then matches `HEAD`, and writes those files of `changes` that are
    /// missing in the checkout. If it cannot be installed, only these paths of the user's index are set to the state of
    /// `HEAD`, and false is returned.
    pub fn install(&self, index: &IndexFile, changes: &[TreeChange]) -> Result<bool, GitError> {
        // Read it before it is installed: then other processes can write to it.
        let bytes = KnownIndex::read(&index.path).ok().flatten();
        let is_in_place = self.install_index(index);
        if is_in_place {
            // All files were added to it, and it started from a known index.
            self.note_installed(bytes);
            self.write_missing(changes)?;
        } else {
            self.stage_and_write_missing(changes)?;
        }
        Ok(is_in_place)
    }

    /// The present stamp of the user's index.
    #[must_use]
    pub fn index_stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.index_file()?)
    }

    /// Installs `index` as the user's index, if possible. Like git, we create the lock file, which is renamed to become
    /// the index. If the user's index is not the one from which `index` was copied, something has been staged since,
    /// and it stays.
    pub fn install_index(&self, index: &IndexFile) -> bool {
        let (Some(own), lock) = (self.index_file(), self.git_dir.join("index.lock")) else {
            return false;
        };
        // A split index, or one that hides files, must not be replaced by a copy.
        let is_plain = [&own, &index.path].iter().all(|file| has_hidden(file, self.format) == Some(false));
        // The lock file is complete when it is created, so it exists only for a moment. It keeps the mtime of our
        // index, because git rereads files that are not older than its index.
        let is_locked = is_plain
            && give_to_readers_of(&own, &index.path).is_ok()
            && safe_files::hard_link(&index.path, &lock).is_ok();
        let is_installed =
            is_locked && index.follows(Stamp::of(&own)) && safe_files::rename(&lock, &own).is_ok();
        if is_locked && !is_installed {
            let _ = safe_files::remove(&lock);
        }
        is_installed
    }
}

/// Gives our index the same permissions as the one that it replaces.
pub(in crate::git) fn give_to_readers_of(own: &Path, index: &Path) -> io::Result<()> {
    safe_files::set_mode(index, fs::metadata(own)?.permissions().mode())
}
