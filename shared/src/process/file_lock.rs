//! Locks between processes: `flock` on a file. The kernel releases the lock however its holder ends.
//!
//! A lock counts only while its path leads to the locked file, so it is noticed if the file is removed or replaced. Most
//! files stay when the lock is released. Locks of which there would be ever more, one for each task, remove theirs.

use std::{
    fs::{File, Metadata, TryLockError},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, Weak},
    time::{Duration, Instant},
};

use super::{Cancel, Holder, crash, drivers::DriverMark};
use crate::{mutex::MutexExt, safe_files};

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it.
    #[error("'{}' is {holder}", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// The holder, according to the file.
        holder: Box<Holder>,
    },
    /// The file could not be opened, locked or written.
    #[error("could not lock '{}': {source}", path.display())]
    Failed {
        /// The lock file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl LockError {
    /// The message: `held` and the holder, or the error of the operating system.
    #[must_use]
    pub fn sentence(&self, held: &str) -> String {
        match self {
            Self::Held { holder, .. } if holder.pid == 0 => held.to_owned(),
            Self::Held { holder, .. } => format!("{held}: {}", holder.process_words()),
            Self::Failed { .. } => self.to_string(),
        }
    }

    /// Whether `git arborist merge` holds it.
    #[must_use]
    pub fn is_landing(&self) -> bool {
        matches!(self, Self::Held { holder, .. } if holder.is_landing())
    }

    /// A hint: how to stop the process that holds it.
    #[must_use]
    pub fn advice_to_stop(&self) -> Option<String> {
        match self {
            Self::Held { holder, .. } => Some(holder.advice_to_stop()),
            Self::Failed { .. } => self.advice(""),
        }
    }

    /// A hint: `held` if another process holds it.
    #[must_use]
    pub fn advice(&self, held: &str) -> Option<String> {
        match self {
            Self::Held { .. } => Some(held.to_owned()),
            Self::Failed { path, source } => {
                let folder = path.parent().unwrap_or(path).display();
                (source.kind() == io::ErrorKind::PermissionDenied)
                    .then(|| format!("make sure that you may write to the folder '{folder}'"))
            }
        }
    }
}

/// A lock that is held until this is dropped. Children do not inherit it.
#[derive(Debug)]
pub struct FileLock {
    path: PathBuf,
    what: String,
    locked: Arc<Mutex<Locked>>,
    _mark: Option<DriverMark>,
}

/// All locks that this process holds.
static HELD: Mutex<Vec<Weak<Mutex<Locked>>>> = Mutex::new(Vec::new());

/// Takes locks of this process below `folder` again if their files were removed or replaced, and returns messages about
/// them. Without its file, a lock keeps no other process out.
pub fn retake_lost_locks(folder: &Path) -> Vec<String> {
    let mut held = HELD.hold();
    held.retain(|lock| lock.strong_count() > 0);
    let locks: Vec<Arc<Mutex<Locked>>> = held.iter().filter_map(Weak::upgrade).collect();
    drop(held);
    let below = |lock: &Locked| lock.path.starts_with(folder);
    locks
        .iter()
        .map(|lock| lock.hold())
        .filter(|lock| below(lock))
        .filter_map(|mut lock| lock.restore())
        .collect()
}

/// A locked file. The lock lasts as long as any process has this descriptor or a copy of it.
#[derive(Debug)]
pub(super) struct Locked {
    pub(super) file: File,
    pub(super) path: PathBuf,
    pub(super) holder: Holder,
    /// Whether the file is removed when the lock is released.
    is_temporary: bool,
    /// Whether the lock was released, so that its file may be gone.
    is_released: bool,
}

/// How often the file may be replaced while we try to lock it.
const MAX_LOCK_TRIES: usize = 100;
const MAX_HOLDER_SIZE: usize = 4096;
/// The processes of a killed holder are gone within this time, also on a busy machine.
const EXIT_TIME: Duration = Duration::from_secs(10);
/// A process that only inspects a lock has released it within this time.
const LOOK_TIME: Duration = Duration::from_secs(2);

/// Tries again while the lock is held by a process that only looks at it or that was killed.
fn retry_while_transient<T>(mut attempt: impl FnMut() -> Result<T, LockError>) -> Result<T, LockError> {
    let begun = Instant::now();
    let is_passing = |holder: &Holder| {
        // A lock without a holder is only being inspected: `find_holder` takes it for a moment.
        let time = if holder.pid == 0 { LOOK_TIME } else { EXIT_TIME };
        (holder.pid == 0 || holder.is_gone()) && begun.elapsed() < time
    };
    loop {
        match attempt() {
            Err(LockError::Held { holder, .. }) if is_passing(&holder) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

impl FileLock {
    /// Takes the lock at `path` if it is free. `what` is shown to processes that find it held. Missing folders are
    /// created. If the holder was killed, a child of it that has not called `exec` yet may hold the lock a little
    /// longer: that is waited for.
    pub fn try_take(path: &Path, what: &str) -> Result<Self, LockError> {
        retry_while_transient(|| Locked::try_take(path, what)).map(Self::new)
    }

    /// Takes the lock, waiting until `time` is over or `cancel` is triggered.
    pub fn take_within(path: &Path, what: &str, time: Duration, cancel: &Cancel) -> Result<Self, LockError> {
        Locked::take_within(path, what, time, cancel).map(Self::new)
    }

    fn new(locked: Locked) -> Self {
        let (path, what) = (locked.path.clone(), locked.holder.what.clone());
        let locked = Arc::new(Mutex::new(locked));
        HELD.hold().push(Arc::downgrade(&locked));
        Self { _mark: DriverMark::set(&path), path, what, locked }
    }

    /// Removes the file when the lock is released.
    #[must_use]
    pub fn temporary(self) -> Self {
        self.locked.hold().is_temporary = true;
        self
    }

    /// The holder of the lock at `path`, if it is held. This neither creates the file nor keeps the lock.
    #[must_use]
    pub fn find_holder(path: &Path) -> Option<Holder> {
        Self::look(path).ok().flatten()
    }

    /// The holder of the lock at `path`, if it is held, or an error if that could not be determined.
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

    /// Fails if another process holds the lock at `path`. This does not take it, so that a process which takes it at the same
    /// moment does not fail.
    pub fn require_free(path: &Path) -> Result<(), LockError> {
        retry_while_transient(|| match Self::look(path) {
            Ok(None) => Ok(()),
            Ok(Some(holder)) => Err(LockError::Held { path: path.to_owned(), holder: Box::new(holder) }),
            Err(source) => Err(LockError::Failed { path: path.to_owned(), source }),
        })
    }

    /// Whether the path still leads to the file that we locked. If not, another process may believe that it holds the
    /// lock.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        self.locked.hold().is_in_place()
    }

    /// The lock file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is held for.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl Drop for FileLock {
    /// Unlocks explicitly: a child that is just being started has a copy of every descriptor until it calls `exec`, and
    /// closing only our descriptor would leave the lock with it for a moment.
    fn drop(&mut self) {
        // The text in the file would tell the next holder that we died, so it is removed. It stays if a child of ours
        // was killed or if there is still an earlier death to recover from.
        let mut lock = self.locked.hold();
        lock.is_released = true;
        if !crash::has_lost_child() && read_holder(&lock.file).dead.is_none() && lock.is_in_place() {
            // Removed while it is locked: a process that opened it before sees that its path is gone, and opens it again.
            let is_removed = lock.is_temporary && safe_files::remove(&lock.path).is_ok();
            if !is_removed {
                let _ = lock.file.set_len(0);
            }
        }
        let _ = lock.file.unlock();
    }
}

impl Locked {
    pub(super) fn try_take(path: &Path, what: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::Failed { path: path.to_owned(), source };
        for _ in 0..MAX_LOCK_TRIES {
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
            // A lock that was released properly has an empty file.
            let since = (before.pid != 0).then_some(before.since);
            let holder = Holder { dead: before.dead.or(since), ..Holder::us(what) };
            let lock = Self { file, path: path.to_owned(), holder, is_temporary: false, is_released: false };
            if lock.is_in_place() {
                lock.write_holder().map_err(failed)?;
                return Ok(lock);
            }
        }
        Err(failed(io::Error::other("the file keeps being replaced")))
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

    /// Takes the lock again if its file is gone, and returns a message.
    fn restore(&mut self) -> Option<String> {
        if self.is_released || self.is_in_place() {
            return None;
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("the lock {name} of this run was removed while an agent or a command ran");
        match Self::try_take(&self.path, &self.holder.what) {
            Ok(new) => {
                let holder = std::mem::take(&mut self.holder);
                *self = Self { holder, is_temporary: self.is_temporary, ..new };
                let _ = self.write_holder();
                Some(message)
            }
            Err(error) => Some(format!("{message}, and could not be restored: {error}")),
        }
    }

    fn is_in_place(&self) -> bool {
        let same = |a: Metadata, b: Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
        match (self.file.metadata(), self.path.symlink_metadata()) {
            (Ok(ours), Ok(there)) => same(ours, there),
            _ => false,
        }
    }

    pub(super) fn write_holder(&self) -> io::Result<()> {
        write_holder(&self.file, &self.holder)
    }
}

/// Replaces the holder in this lock file.
pub(super) fn write_holder(file: &File, holder: &Holder) -> io::Result<()> {
    let line = holder.line();
    file.write_all_at(line.as_bytes(), 0)?;
    file.set_len(line.len() as u64)
}

/// The holder that was last written into this lock file.
pub(super) fn read_holder(file: &File) -> Holder {
    let mut content = vec![0; MAX_HOLDER_SIZE];
    match file.read_at(&mut content, 0) {
        Ok(size) => Holder::read(&content[..size]),
        Err(_) => Holder::default(),
    }
}
