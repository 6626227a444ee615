//! An index of ours in the place of the user's own. Where everything that lies in a worktree was taken in and committed, ours
//! is what git would have to make of theirs, file by file.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use super::{GitError, KnownIndex, Repository, Stamp, TreeChange, index_format::has_hidden};
use crate::safe_files;

/// The file of an index of our own, removed when dropped.
#[derive(Debug)]
pub struct IndexFile {
    pub(super) path: PathBuf,
    /// The user's own index, as it was when this was copied from it.
    pub(super) origin: Option<Stamp>,
}

impl IndexFile {
    /// Whether the user's own index was then what it had been at `stamp`.
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
    /// Makes `index` the user's own, which holds all of `HEAD` then, and writes those files of `changes` that are not in the
    /// checkout. Where that cannot be, only these paths of the user's own are brought to what `HEAD` holds, and false is
    /// returned.
    pub fn install(&self, index: &IndexFile, changes: &[TreeChange]) -> Result<bool, GitError> {
        // Read now: once it is in place, others can write to it.
        let bytes = KnownIndex::read(&index.path).ok().flatten();
        let is_in_place = self.put_in_place(index);
        if is_in_place {
            // Ours has taken in all files, and began with what is known.
            self.note_installed(bytes);
            self.write_missing(changes)?;
        } else {
            self.bring(changes)?;
        }
        Ok(is_in_place)
    }

    /// The user's own index as it is now.
    #[must_use]
    pub fn index_stamp(&self) -> Option<Stamp> {
        Stamp::of(&self.index_file()?)
    }

    /// Makes `index` the user's own, if that can be. As git does it: whoever makes the lock file has the lock, and its
    /// renaming is the moment that counts. If the user's own is not what ours was copied from, somebody staged something
    /// since: then it stays.
    pub fn put_in_place(&self, index: &IndexFile) -> bool {
        let (Some(own), lock) = (self.index_file(), self.git_dir.join("index.lock")) else {
            return false;
        };
        // An index that is not all in one file, or hides something, is not to be replaced by a copy.
        let is_plain = [&own, &index.path].iter().all(|file| has_hidden(file, self.format) == Some(false));
        // The lock is complete as soon as it is there, so that it is there for no longer than a moment. It is as old as our
        // index, since git looks again at whatever is not older than its own.
        let is_locked = is_plain
            && give_to_readers_of(&own, &index.path).is_ok()
            && safe_files::hard_link(&index.path, &lock).is_ok();
        let is_there = is_locked && index.follows(Stamp::of(&own)) && safe_files::rename(&lock, &own).is_ok();
        if is_locked && !is_there {
            let _ = safe_files::remove(&lock);
        }
        is_there
    }
}

/// Our index is for the same people as the one that it replaces.
pub(super) fn give_to_readers_of(own: &Path, index: &Path) -> io::Result<()> {
    safe_files::set_mode(index, fs::metadata(own)?.permissions().mode())
}
