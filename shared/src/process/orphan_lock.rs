//! Tells whether any process of an attempt is still alive, also after the driver was killed.
//!
//! The agent and most of its processes inherit the descriptor of the lock, so it stays locked until the last of them is
//! gone. The file names their group and mark, so that a later run can end them before it begins.

use std::{
    collections::BTreeSet,
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::process::Signal;

use super::{
    Cancel, FileLock, Holder, LockError,
    file_lock::{Locked, read_holder},
    holder::Leader,
    mark::RunMark,
    process_group::{Terminable, clear, is_orphan, send},
    table::{self, Process},
};

/// The lock that the processes of an attempt share. Only a driver that holds the run's lock may take it.
#[derive(Debug)]
pub struct OrphanLock {
    lock: Locked,
}

/// How long a child that is being started can have copies of descriptors that are not meant for it, also on a busy
/// machine.
const SPAWN_TIME: Duration = Duration::from_secs(10);

impl OrphanLock {
    /// The path of the orphan lock that belongs to the lock at `lock`.
    #[must_use]
    pub fn beside(lock: &Path) -> PathBuf {
        let mut name = lock.file_name().unwrap_or_default().to_owned();
        name.push(Self::SUFFIX);
        lock.with_file_name(name)
    }

    /// The suffix of such locks, which no branch name can contain.
    pub const SUFFIX: &str = "~orphans";

    /// Takes the lock at `path`, after ending all processes of an earlier attempt: by TERM, and by KILL after `grace`.
    /// `run` proves that their driver is gone. Returns the processes that had to be ended. If a process could not be
    /// ended, the error says that the lock is held.
    pub fn take_over(run: &FileLock, path: &Path, grace: Duration) -> Result<(Self, Vec<u32>), LockError> {
        let ended = match EarlierAttempt::read(path) {
            Some(remains) => remains.end(path, grace)?,
            None => Vec::new(),
        };
        let lock = Locked::take_within(path, run.what(), SPAWN_TIME, &Cancel::new())?;
        Ok((Self { lock }, ended))
    }

    /// Takes a lock again that this process took over before and has dropped. An attempt ends only after all of its processes
    /// did, so they are searched only if the lock is still shared.
    pub fn take_again(run: &FileLock, path: &Path, grace: Duration) -> Result<(Self, Vec<u32>), LockError> {
        match Locked::try_take(path, run.what()) {
            Ok(lock) => Ok((Self { lock }, Vec::new())),
            Err(_) => Self::take_over(run, path, grace),
        }
    }

    /// Writes the mark of the program that is about to start.
    pub(super) fn announce(&mut self, mark: &RunMark) -> io::Result<()> {
        self.lock.holder.mark = Some(mark.to_string());
        self.lock.holder.leader = None;
        self.lock.write_holder()
    }

    /// Writes the leader of the group that was started. Without it the mark and the lock still identify the processes.
    pub(super) fn enter(&mut self, pid: u32) {
        self.lock.holder.leader = Some(Leader { pid, started: table::start_of(pid) });
        let _ = self.lock.write_holder();
    }

    pub(super) const fn file(&self) -> &File {
        &self.lock.file
    }
}

/// What an earlier attempt may have left behind.
struct EarlierAttempt {
    file: File,
    identity: Metadata,
    holder: Holder,
    mark: Option<RunMark>,
    seen: BTreeSet<u32>,
}

impl EarlierAttempt {
    /// `None` if there was no earlier attempt.
    fn read(path: &Path) -> Option<Self> {
        let file = crate::safe_files::open(path).ok()?;
        let identity = file.metadata().ok()?;
        let holder = read_holder(&file);
        // A mark of a living driver means that the file was forged: the processes of a living driver are not ours to
        // end.
        let mark = holder.mark.as_deref().and_then(RunMark::written).filter(|mark| !mark.is_of_the_living());
        Some(Self { file, identity, holder, mark, seen: BTreeSet::new() })
    }

    fn end(mut self, path: &Path, grace: Duration) -> Result<Vec<u32>, LockError> {
        if clear(&mut self, grace).is_empty() {
            return Ok(self.seen.into_iter().collect());
        }
        Err(LockError::Held { path: path.to_owned(), holder: Box::new(self.holder) })
    }

    fn is_locked(&self) -> bool {
        let free = self.file.try_lock_shared().is_ok();
        if free {
            let _ = self.file.unlock();
        }
        !free
    }

    /// Whether a process belongs to the attempt: it shares the lock or has the mark. The file alone proves nothing,
    /// because any process of the user can write another process id into it.
    fn owns(&self, process: &Process, group: Option<u32>) -> bool {
        Some(process.group) == group
            || self.mark.as_ref().is_some_and(|mark| table::carries(process.pid, mark))
            || table::shares_lock(process.pid, &self.identity)
    }

    /// If neither marks nor locks of others are visible, the recorded group is believed while the lock is held and its
    /// leader is the recorded one, or is gone.
    fn sure_group(&self, all: &[Process]) -> Option<u32> {
        if cfg!(target_os = "linux") || !self.is_locked() {
            return None;
        }
        let leader = self.holder.leader.as_ref()?;
        let sure = all
            .iter()
            .find(|process| process.pid == leader.pid)
            .is_none_or(|process| process.started == leader.started && !leader.started.is_empty());
        sure.then_some(leader.pid)
    }
}

impl Terminable for EarlierAttempt {
    /// Spares this process and its ancestors, because the user may work in a terminal that an agent opened, and its
    /// children, which have copies of all our descriptors while they are being started.
    fn living(&mut self) -> Vec<u32> {
        let all = table::all();
        let group = self.sure_group(&all);
        let us = std::process::id();
        let spared = table::with_ancestors(&all, us);
        let ours = |process: &Process| process.parent == us && !is_orphan(process);
        let theirs = |process: &&Process| {
            !spared.contains(&process.pid) && !ours(process) && self.owns(process, group)
        };
        let roots = all.iter().filter(theirs).map(|process| process.pid).collect();
        let found = table::with_descendants(&all, roots);
        let alive = all.iter().filter(|process| !process.zombie && found.contains(&process.pid));
        let living: Vec<u32> = alive.map(|process| process.pid).collect();
        self.seen.extend(&living);
        living
    }

    fn kill(&self, members: &[u32]) {
        send(Signal::KILL, members);
    }
}
