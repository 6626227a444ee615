//! Finds other drivers in a repository: processes that hold one of its lock files and are not children of this process.
//! What they write there belongs to them.

use std::{
    collections::BTreeSet,
    fs::{self, File, Metadata},
    path::Path,
};

use super::{Holder, OrphanLock, file_lock::read_holder, mark::RunMark, table};
use crate::safe_files;

/// The names of the locks in this folder that begin with `prefix` and that other drivers hold. Any process can write
/// anything into a lock file, so the kernel is asked whether the lock is held, and on Linux whether a child of this
/// process holds it.
#[must_use]
pub fn find_other_drivers(locks: &Path, prefix: &str) -> BTreeSet<String> {
    let mut children = None;
    let entries = fs::read_dir(locks).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| name.starts_with(prefix) && !name.ends_with(OrphanLock::SUFFIX));
    names.filter(|name| is_held_by_other(&locks.join(name), &mut children)).collect()
}

/// Whether this process may have been started by a step of a run, in any repository. This check is cheap.
#[must_use]
pub fn may_be_in_step() -> bool {
    RunMark::drivers_in_environment().next().is_some()
        || table::has_open_lock()
        || table::ancestors(std::process::id()).iter().any(|pid| table::is_driver(*pid))
}

/// The driver whose step started this process, if it is running in the repository with this git directory. It is found
/// by the environment, or if that was cleared by the parents, because a process that loses its parent is adopted by the
/// driver. A process in another PID namespace still has the lock of the attempt open. A step can remove the lock files,
/// but not the [`DriverMark`].
#[must_use]
pub fn find_outer_driver(git_dir: &Path) -> Option<Holder> {
    let us = std::process::id();
    let mut drivers: BTreeSet<u32> = RunMark::drivers_in_environment().chain(table::ancestors(us)).collect();
    drivers.remove(&us);
    let mark = git_dir.metadata().ok()?;
    if let Some(pid) = drivers.iter().find(|pid| table::shares_lock(**pid, &mark)) {
        return Some(Holder { pid: *pid, ..Holder::default() });
    }
    let locks = git_dir.join(LOCKS);
    if table::has_removed_lock(&locks) {
        return Some(Holder::default());
    }
    let entries = fs::read_dir(&locks).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| is_of_run(path));
    paths.into_iter().find_map(|path| {
        let file = safe_files::open(&path).ok()?;
        if file.try_lock_shared().is_ok() {
            let _ = file.unlock();
            return None;
        }
        let (holder, identity) = (read_holder(&file), file.metadata().ok()?);
        // This command may hold a run lock itself by now.
        let is_inherited = || holder.pid != us && table::shares_lock(us, &identity);
        (drivers.contains(&holder.pid) || is_inherited()).then_some(holder)
    })
}

/// The folder of locks in a git directory.
const LOCKS: &str = "arborist/locks";
/// The prefixes of locks that are held while steps of a run may be running.
const OF_RUNS: [&str; 3] = ["run-", "landing-", "session-"];

fn is_of_run(lock: &Path) -> bool {
    let name = lock.file_name().unwrap_or_default().to_string_lossy();
    OF_RUNS.iter().any(|kind| name.starts_with(kind))
}

/// A shared lock on the git directory itself, which a driver holds together with a lock of a run. Other processes use it
/// only to recognise the driver. It works as long as the folder exists, so a step cannot remove it.
#[derive(Debug)]
pub(super) struct DriverMark {
    _folder: File,
}

impl DriverMark {
    /// Sets the mark if the file at `lock` is a lock of a run. Some network file systems cannot lock folders; there the
    /// lock files alone must do.
    pub(super) fn set(lock: &Path) -> Option<Self> {
        let locks = lock.parent().filter(|locks| locks.ends_with(LOCKS) && is_of_run(lock))?;
        let git_dir = locks.parent()?.parent()?;
        let folder = File::from(safe_files::open_folder(git_dir).ok()?);
        folder.try_lock_shared().ok()?;
        Some(Self { _folder: folder })
    }
}

fn is_held_by_other(path: &Path, children: &mut Option<Vec<u32>>) -> bool {
    let Ok(file) = safe_files::open(path) else { return false };
    let Ok(identity) = file.metadata() else { return false };
    let us = std::process::id();
    // A driver writes its identity before it does anything else.
    let holder = read_holder(&file).pid;
    if holder == 0 || holder == us {
        return false;
    }
    // Checked first: lock files are never removed, and most of them are free.
    if file.try_lock_shared().is_ok() {
        let _ = file.unlock();
        return false;
    }
    !table::shares_lock(us, &identity) && !is_shared_by(children.get_or_insert_with(find_children), &identity)
}

fn is_shared_by(processes: &[u32], lock: &Metadata) -> bool {
    processes.iter().any(|pid| table::shares_lock(*pid, lock))
}

/// All processes that this process has started, directly or not, as far as they are visible.
fn find_children() -> Vec<u32> {
    let all = table::all();
    let mut found = table::with_descendants(&all, [std::process::id()].into());
    let pids = all.iter().map(|process| process.pid);
    found.extend(pids.filter(|pid| table::carries_ours(*pid)).collect::<Vec<_>>());
    found.into_iter().collect()
}
