//! Finds drivers that died: a lock file whose holder never released it. Recovery needs to know when the dead driver
//! started, because only files that appeared after that moment can be its work.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, SystemTime},
};

use super::{
    Holder, OrphanLock, ProcessId,
    file_lock::{read_holder, write_holder},
};

/// Whether a child of ours was killed, which may leave the same traces as a killed driver.
static LOST: AtomicBool = AtomicBool::new(false);

/// Start times are written in whole seconds, and file systems round as well.
const ROUNDING: Duration = Duration::from_secs(1);

/// Records that a child of ours was killed before it could clean up.
pub(super) fn note_lost_child() {
    LOST.store(true, Ordering::Release);
}

pub(super) fn has_lost_child() -> bool {
    LOST.load(Ordering::Acquire)
}

/// When the earliest driver that died started, according to the locks in this folder, if nothing has recovered from it
/// yet. `None` if none died.
#[must_use]
pub fn find_dead(locks: &Path) -> Option<SystemTime> {
    let us = ProcessId::ours();
    let since = files(locks).into_iter().filter_map(|path| death(&path, &us)).min()?;
    since.checked_sub(ROUNDING)
}

/// Forgets the dead drivers of this folder, after their leftovers were cleaned up.
pub fn forget_dead(locks: &Path) {
    let us = ProcessId::ours();
    for path in files(locks) {
        let (Some(file), true) = (open(&path), death(&path, &us).is_some()) else { continue };
        let holder = read_holder(&file);
        if holder.process.as_ref() == Some(&us) {
            let _ = write_holder(&file, &Holder { dead: None, ..holder });
        } else if file.try_lock().is_ok() {
            // Another process may have taken and released it since.
            if death_of(&read_holder(&file), &us).is_some() {
                let _ = file.set_len(0);
            }
            let _ = file.unlock();
        }
    }
    LOST.store(false, Ordering::Release);
}

/// The lock files of drivers. Locks that agents inherit say nothing about drivers.
fn files(locks: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(locks).into_iter().flatten().flatten();
    let is_ours = |entry: &fs::DirEntry| {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && !entry.file_name().as_encoded_bytes().ends_with(OrphanLock::SUFFIX.as_bytes())
    };
    entries.filter(is_ours).map(|entry| entry.path()).collect()
}

/// Opens a lock file. Only a regular file is a lock, and opening a named pipe would block.
fn open(path: &Path) -> Option<File> {
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).ok()
}

fn death(path: &Path, us: &ProcessId) -> Option<SystemTime> {
    let file = open(path)?;
    let since = death_of(&read_holder(&file), us)?;
    if read_holder(&file).process.as_ref() == Some(us) {
        return Some(since);
    }
    // A process in another container looks dead from here, but the kernel knows whether it holds its lock. The lock is
    // only tried if the holder seems dead, because trying it can disturb others that take it at the same moment.
    file.try_lock_shared().ok()?;
    let _ = file.unlock();
    Some(since)
}

/// When the dead holders that a lock file names started.
fn death_of(holder: &Holder, us: &ProcessId) -> Option<SystemTime> {
    let process = holder.process.as_ref()?;
    let since = || holder.since.parse::<jiff::Timestamp>().ok().map(SystemTime::from);
    let earlier = || holder.dead.as_ref()?.parse::<jiff::Timestamp>().ok().map(SystemTime::from);
    if process == us {
        return earlier().or_else(|| has_lost_child().then(since).flatten());
    }
    if process.is_here() { None } else { earlier().or_else(since) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::FileLock;

    #[test]
    fn an_unreleased_lock_reports_a_dead_driver_until_it_is_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run-main");
        drop(FileLock::try_take(&path, "a run").unwrap());
        assert_eq!(find_dead(folder.path()), None, "released");
        let lock = FileLock::try_take(&path, "a run").unwrap();
        assert_eq!(find_dead(folder.path()), None, "we live");
        let ours = fs::read_to_string(&path).unwrap();
        drop(lock);
        let pid = format!("\"pid\":{}", std::process::id());
        fs::write(&path, ours.replace(&pid, "\"pid\":4194999")).unwrap();
        let died = find_dead(folder.path()).unwrap();
        let lock = FileLock::try_take(&path, "a run").unwrap();
        assert_eq!(find_dead(folder.path()), Some(died), "whoever takes the lock inherits that");
        drop(lock);
        assert_eq!(find_dead(folder.path()), Some(died), "nobody has recovered from it");
        forget_dead(folder.path());
        assert_eq!(find_dead(folder.path()), None);
    }
}
