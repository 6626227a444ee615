//! Other drivers that are at work in a repository: processes that hold one of its lock files and are not children of this
//! process. What they write there belongs to them.

use std::{
    collections::BTreeSet,
    fs::{self, Metadata},
    path::Path,
};

use super::{OrphanLock, lock::read_holder, table};
use crate::safe_files;

/// The names of the locks in this folder that other drivers hold. Any process can write anything into a lock file, so it is
/// the kernel that tells whether a lock is held, and on Linux whether it is held by something that this process started.
#[must_use]
pub fn find_other_drivers(locks: &Path) -> BTreeSet<String> {
    let mut children = None;
    let entries = fs::read_dir(locks).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names = names.filter(|name| !name.ends_with(OrphanLock::SUFFIX));
    names.filter(|name| is_held_by_other(&locks.join(name), &mut children)).collect()
}

fn is_held_by_other(path: &Path, children: &mut Option<Vec<u32>>) -> bool {
    let Ok(file) = safe_files::open(path) else { return false };
    let Ok(identity) = file.metadata() else { return false };
    let us = std::process::id();
    // A driver writes down who it is before it does anything else.
    let holder = read_holder(&file).pid;
    if holder == 0 || holder == us || table::shares_lock(us, &identity) {
        return false;
    }
    if file.try_lock_shared().is_ok() {
        let _ = file.unlock();
        return false;
    }
    !is_shared_by(children.get_or_insert_with(find_children), &identity)
}

fn is_shared_by(processes: &[u32], lock: &Metadata) -> bool {
    processes.iter().any(|pid| table::shares_lock(*pid, lock))
}

/// Everything that this process has started, directly or not, as far as it can be seen.
fn find_children() -> Vec<u32> {
    let all = table::all();
    let mut found = table::with_descendants(&all, [std::process::id()].into());
    let pids = all.iter().map(|process| process.pid);
    found.extend(pids.filter(|pid| table::carries_ours(*pid)).collect::<Vec<_>>());
    found.into_iter().collect()
}
