//! Finds other drivers in a repository: processes that hold one of its lock files and are not children of this process.
//! What they write there belongs to them.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    path::Path,
};

use super::{Holder, OrphanLock, lock::read_holder, mark::RunMark, table};
use crate::safe_files;

/// The names of the locks in this folder that other drivers hold. Any process can write anything into a lock file, so
/// the kernel is asked whether the lock is held, and on Linux whether a child of this process holds it.
#[must_use]
pub fn find_other_drivers(locks: &Path) -> BTreeSet<String> {
    let mut children = None;
    let entries = fs::read_dir(locks).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| !name.ends_with(OrphanLock::SUFFIX));
    names.filter(|name| is_held_by_other(&locks.join(name), &mut children)).collect()
}

/// Whether this process may have been started by a step of a run, in any repository. This check is cheap.
#[must_use]
pub fn may_be_in_step() -> bool {
    RunMark::drivers_in_environment().next().is_some()
        || table::has_open_lock()
        || table::ancestors(std::process::id()).iter().any(|pid| table::is_driver(*pid))
}

/// The driver whose step started this process, if it holds one of the run locks in this folder. It is found by the
/// environment, or if that was cleared by the parents, because a process that loses its parent is adopted by the
/// driver. A process in another PID namespace still has the lock of the attempt open.
#[must_use]
pub fn find_outer_driver(locks: &Path) -> Option<Holder> {
    let us = std::process::id();
    let callers = table::ancestors(us);
    let told: BTreeSet<u32> = RunMark::drivers_in_environment().chain(callers.iter().copied()).collect();
    let entries = fs::read_dir(locks).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| OF_RUNS.iter().any(|kind| name.starts_with(kind)));
    names.into_iter().find_map(|name| {
        let file = safe_files::open(&locks.join(name)).ok()?;
        if file.try_lock_shared().is_ok() {
            let _ = file.unlock();
            return None;
        }
        let (holder, identity) = (read_holder(&file), file.metadata().ok()?);
        // This command may hold a run lock itself by now.
        let is_inherited = || holder.pid != us && table::shares_lock(us, &identity);
        let is_outer = told.contains(&holder.pid) || is_inherited() || is_shared_by(&callers, &identity);
        is_outer.then_some(holder)
    })
}

/// The prefixes of locks that are held while steps of a run may be running.
const OF_RUNS: [&str; 3] = ["run-", "landing-", "session-"];

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
