//! Locks between processes: `flock` on a file. The kernel releases it however its holder ends.
//!
//! The file stays when the lock is released; removing it would let two hold "the" lock. Whoever does remove or replace
//! it is noticed: a lock counts only while its path leads to the file that is locked.

use std::{
    fs::{File, Metadata, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{Cancel, Holder, crash};
use crate::safe_files;

/// Why a lock was not got.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else has it.
    #[error("'{}' is {holder}", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who, as they wrote it down.
        holder: Box<Holder>,
    },
    /// The file could not be opened, locked or written.
    #[error("could not lock '{}': {source}", path.display())]
    Failed {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LockError {
    /// The sentence for it: `held` and who holds it, or what the system said, which is another matter.
    #[must_use]
    pub fn sentence(&self, held: &str) -> String {
        match self {
            Self::Held { .. } => format!("{held}: {self}"),
            Self::Failed { .. } => self.to_string(),
        }
    }

    /// What to try next: `held` if somebody holds it.
    #[must_use]
    pub fn advice(&self, held: &str) -> Option<String> {
        match self {
            Self::Held { .. } => Some(held.to_owned()),
            Self::Failed { path, source } => {
                let folder = path.parent().unwrap_or(path).display();
                (source.kind() == io::ErrorKind::PermissionDenied)
                    .then(|| format!("you must be allowed to write in '{folder}'"))
            }
        }
    }
}

/// A lock that is held until this is dropped. Children do not inherit it.
#[derive(Debug)]
pub struct FileLock(Locked);

/// A locked file; the lock lasts as long as anybody has this descriptor or a copy of it.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) holder: Holder,
}

/// A file that is replaced faster than this many times is not worth locking.
const TRIES: usize = 100;
const WORDS: usize = 4096;
/// The processes of a holder that was killed are gone within this time.
const DYING: Duration = Duration::from_secs(2);

impl FileLock {
    /// Takes the lock at `path` if it is free; `what` is told to those who find it held. Directories are made. Of a holder that
    /// was killed, a child that had not become its program yet may keep the lock until it has died too: that is waited for.
    pub fn try_take(path: &Path, what: &str) -> Result<Self, LockError> {
        let end = Instant::now() + DYING;
        loop {
            match Locked::try_take(path, what) {
                // A lock without a holder is only being looked at: `find_holder` takes it for a moment.
                Err(LockError::Held { holder, .. })
                    if (holder.is_gone() || holder.pid == 0) && Instant::now() < end =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                result => return result.map(Self),
            }
        }
    }

    /// Takes the lock, waiting at most `time` for it, or until `cancel`.
    pub fn take_within(path: &Path, what: &str, time: Duration, cancel: &Cancel) -> Result<Self, LockError> {
        Locked::take_within(path, what, time, cancel).map(Self)
    }

    /// Who holds the lock at `path`, if anybody does. To look does not make the file, and does not take the lock.
    #[must_use]
    pub fn find_holder(path: &Path) -> Option<Holder> {
        Self::look(path).ok().flatten()
    }

    /// The same for one who must know: that it could not be found out is an error.
    pub fn look(path: &Path) -> io::Result<Option<Holder>> {
        let file = match safe_files::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(read_holder(&file))),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Whether the path still leads to the file that we locked. If not, somebody else may believe to have the lock.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.0.is_in_place()
    }

    /// The lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// What it is held for.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.0.holder.what
    }
}

impl Drop for FileLock {
    /// A child that is just being started has a copy of every descriptor until it becomes its program. Closing ours
    /// would leave the lock with it for a moment; this does not.
    fn drop(&mut self) {
        // What stands in the file tells the next holder that we died, unless it is removed. Where a child of ours was killed,
        // or nobody has recovered from an earlier death, there is still something to recover from.
        if !crash::has_lost_child() && read_holder(&self.0.file).dead.is_none() && self.is_in_place() {
            let _ = self.0.file.set_len(0);
        }
        let _ = self.0.file.unlock();
    }
}

impl Locked {
    pub(super) fn try_take(path: &Path, what: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::Failed { path: path.to_owned(), source };
        for _ in 0..TRIES {
            let file = safe_files::open_or_create(path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let holder = Box::new(read_holder(&file));
                    return Err(LockError::Held { path: path.to_owned(), holder });
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
            let before = read_holder(&file);
            // The first holder of a lock that was released finds nobody in it.
            let since = (before.pid != 0).then_some(before.since);
            let holder = Holder { dead: before.dead.or(since), ..Holder::us(what) };
            let lock = Self { file, path: path.to_owned(), holder };
            if lock.is_in_place() {
                lock.write_down().map_err(failed)?;
                return Ok(lock);
            }
        }
        Err(failed(io::Error::other("the file is replaced again and again")))
    }

    pub(super) fn take_within(
        path: &Path,
        what: &str,
        time: Duration,
        cancel: &Cancel,
    ) -> Result<Self, LockError> {
        let end = Instant::now() + time;
        let mut pause = Duration::from_millis(1);
        loop {
            match Self::try_take(path, what) {
                Err(LockError::Held { .. }) if Instant::now() < end && !cancel.wait(pause) => {}
                result => return result,
            }
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    fn is_in_place(&self) -> bool {
        let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        match (self.file.metadata(), self.path.symlink_metadata()) {
            (Ok(ours), Ok(there)) => same(ours, there),
            _ => false,
        }
    }

    pub(super) fn write_down(&self) -> io::Result<()> {
        let line = self.holder.line();
        self.file.write_all_at(line.as_bytes(), 0)?;
        self.file.set_len(line.len() as u64)
    }
}

/// Who wrote themselves into this lock file last.
pub(super) fn read_holder(file: &File) -> Holder {
    let mut content = vec![0; WORDS];
    match file.read_at(&mut content, 0) {
        Ok(size) => Holder::read(&content[..size]),
        Err(_) => Holder::default(),
    }
}
