//! Handles git's lock files that a killed process left. git removes its locks at every exit except SIGKILL and a power
//! failure; after those, every later command that needs the locked file fails until the lock is removed.
//!
//! A lock is removed only if all of these are true: no process has it open; it has not changed for two seconds, which
//! is longer than git keeps a closed lock before it renames it; no git that could write runs in the repository; and
//! either the locked file belongs to arborist alone, or a driver died that was running when the lock appeared. All
//! other locks may belong to a process of the user: we wait for them, and then report them.

use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Mutex,
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    GitError, Repository,
    misplaced_files::{find_obstacles, move_and_report},
    notices::report_removed,
};
use crate::{
    mutex::MutexExt,
    process::{Cancel, FileLock, Occupants, find_dead, forget_dead, interrupt::received_signal, is_open},
    safe_files,
};

/// How long to wait for the user's own git to release a lock, before we report it.
pub(super) const USER_GIT_TIMEOUT: Duration = Duration::from_secs(10);
/// git needs less than this between closing a lock file and renaming it.
const MIN_AGE_IF_CLOSED: Duration = Duration::from_secs(2);
/// The minimal age of a stale lock where the system cannot say whether a process has it open.
const MIN_AGE_IF_UNKNOWN: Duration = Duration::from_secs(600);
/// How long to wait for a git that a dead driver started.
const ORPHAN_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a lock is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// When the earliest driver that died was started, in any repository. A run that works in several repositories holds
/// its lock in one of them.
static DEAD_SINCE: Mutex<Option<SystemTime>> = Mutex::new(None);

impl Repository {
    /// Removes the locks of a dead driver after its git processes have ended, before anything is written under `_lock`.
    /// It is done once in a process, and costs almost nothing if no driver died. Returns whether one did; then what was
    /// read before may be outdated.
    ///
    /// Afterwards the dead driver is forgotten in the whole repository, so `false` does not mean that nothing else is
    /// left of it. What it left of its own branch is looked for each time, see `run::recover_branch`.
    pub fn remove_stale_locks(&self, _lock: &FileLock) -> Result<bool, GitError> {
        static DONE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let place = Place { common_dir: self.common_dir.clone() };
        let mut done = DONE.hold();
        if done.contains(&place.common_dir) {
            return Ok(false);
        }
        done.push(place.common_dir.clone());
        drop(done);
        for path in find_obstacles(&place.common_dir) {
            move_and_report(&place.common_dir, &path);
        }
        if place.dead_since().is_none() {
            return Ok(false);
        }
        place.await_orphans()?;
        place.remove_private_indexes();
        let end = Instant::now() + USER_GIT_TIMEOUT;
        let mut left = place.find_locks();
        while !left.is_empty() && Instant::now() < end {
            left.retain(|lock| lock.symlink_metadata().is_ok() && !place.remove_if_stale(lock));
            // Do not wait for a lock that we may not remove: a command that needs it will wait.
            left.retain(|lock| lock.exists() && place.may_be_ours(lock));
            if !left.is_empty() {
                thread::sleep(POLL_INTERVAL * 5);
            }
        }
        if left.is_empty() {
            forget_dead(&place.own_locks());
        }
        Ok(true)
    }
}

/// Waits until a command that this lock stopped can be tried again: the lock is gone, or was stale and is removed.
pub(super) fn wait_for(lock: &Path) -> Result<(), GitError> {
    let place = Place::of(lock);
    let end = Instant::now() + USER_GIT_TIMEOUT;
    loop {
        if lock.symlink_metadata().is_err() || place.as_ref().is_some_and(|place| place.remove_if_stale(lock))
        {
            return Ok(());
        }
        if Instant::now() >= end || received_signal().is_some() {
            return Err(held(lock));
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Moves a folder with the name of a lock aside. git creates no such folder. Returns whether it was moved.
pub(super) fn move_folder(lock: &Path) -> bool {
    let is_folder = lock.symlink_metadata().is_ok_and(|found| found.is_dir());
    is_folder && Place::of(lock).is_some_and(|place| move_and_report(&place.common_dir, lock))
}

/// Removes a lock if it is certainly stale.
pub(super) fn remove_if_stale(lock: &Path) -> bool {
    Place::of(lock).is_some_and(|place| place.remove_if_stale(lock))
}

/// The error for a lock that was not released in time.
pub(super) fn held(lock: &Path) -> GitError {
    let age = lock.symlink_metadata().and_then(|file| file.modified()).ok();
    let age = age.and_then(|time| time.elapsed().ok()).unwrap_or_default();
    GitError::LockHeld { path: lock.to_owned(), age }
}

/// The lock file in git's error message, if a lock is what stopped it.
pub(super) fn find_obstacle(complaint: &str, dir: &Path) -> Option<PathBuf> {
    for line in complaint.lines().filter(|line| !line.starts_with("remote:")) {
        let quoted = line
            .split_once("Unable to create '")
            .and_then(|(_, rest)| Some(rest.rsplit_once("': File exists")?.0.to_owned()));
        let config = || {
            let (_, rest) = line.split_once("could not lock config file ")?;
            Some(format!("{}.lock", rest.strip_suffix(": File exists")?))
        };
        let bare = || {
            let (_, rest) = line.split_once("unable to create file ")?;
            Some(rest.strip_suffix(": File exists")?.to_owned())
        };
        if let Some(path) = quoted.or_else(config).or_else(bare) {
            return Some(dir.join(path));
        }
        // The reftable backend does not name its lock.
        if line.ends_with("cannot lock references") {
            return find_table_locks(dir).into_iter().find(|lock| lock.exists());
        }
    }
    None
}

/// The reftable locks of a git in `dir`: those of its worktree, and those that all worktrees share.
fn find_table_locks(dir: &Path) -> Vec<PathBuf> {
    let link = |file: &Path| {
        let text = safe_files::read_text(file).ok()?;
        Some(file.parent()?.join(text.trim_end().trim_start_matches("gitdir: ")))
    };
    let git_dir = dir.ancestors().find_map(|folder| {
        let inner = folder.join(".git");
        match inner.symlink_metadata() {
            Ok(found) if found.is_dir() => Some(inner),
            Ok(_) => link(&inner),
            Err(_) => folder.join("reftable").is_dir().then(|| folder.to_owned()),
        }
    });
    let Some(git_dir) = git_dir else { return Vec::new() };
    let common = link(&git_dir.join("commondir"));
    let folders = [Some(git_dir), common].into_iter().flatten();
    folders.map(|folder| folder.join("reftable/tables.list.lock")).collect()
}

/// A repository with locks.
struct Place {
    common_dir: PathBuf,
}

impl Place {
    /// The repository of a file in a git directory.
    fn of(lock: &Path) -> Option<Self> {
        let is_common = |folder: &&Path| folder.join("objects").is_dir() && folder.join("HEAD").exists();
        lock.ancestors().skip(1).find(is_common).map(|folder| Self { common_dir: folder.to_owned() })
    }

    fn own_locks(&self) -> PathBuf {
        self.common_dir.join("arborist/locks")
    }

    /// When a driver that died here was started.
    fn dead_since(&self) -> Option<SystemTime> {
        let mut dead = DEAD_SINCE.hold();
        let here = find_dead(&self.own_locks());
        *dead = dead.into_iter().chain(here).min();
        *dead
    }

    /// The folders in which git processes of this repository work.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let linked = entries.filter_map(|entry| {
            let link = safe_files::read_text(&entry.path().join("gitdir")).ok()?;
            Some(Path::new(link.trim_end()).parent()?.to_owned())
        });
        let main = self.common_dir.parent().filter(|_| self.common_dir.ends_with(".git"));
        linked.chain(main.map(Path::to_owned)).chain([self.common_dir.clone()]).collect()
    }

    /// Waits for git processes of a dead driver, so that their writes do not collide with ours.
    fn await_orphans(&self) -> Result<(), GitError> {
        let folders = self.folders();
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let end = Instant::now() + ORPHAN_TIMEOUT;
        loop {
            let alive = Occupants::gits_of_dead_drivers(&folders);
            match alive.first() {
                None => return Ok(()),
                Some(pid) if Instant::now() >= end => return Err(GitError::Orphan { pid: *pid }),
                Some(_) => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Removes private indexes of dead processes, and their locks. Their names contain the process ids. Here other
    /// processes may be at work in the worktrees; `sweep_indexes` is for a worktree of which we hold the lock.
    fn remove_private_indexes(&self) {
        let linked = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let git_dirs = linked.map(|entry| entry.path()).chain([self.common_dir.clone()]);
        for git_dir in git_dirs {
            for entry in fs::read_dir(git_dir.join("arborist")).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let owner = name.to_str().and_then(owner_of_index);
                // If the system does not list its processes, they stay: they do no harm.
                let is_dead = |pid: u32| {
                    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
                };
                if owner.is_some_and(is_dead) && self.may_be_ours(&entry.path()) {
                    let _ = safe_files::remove(&entry.path());
                }
            }
        }
    }

    /// All lock files of git in this repository.
    fn find_locks(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let is_deep =
            |name: &[u8]| [&b"refs"[..], b"logs", b"reftable", b"worktrees", b"info"].contains(&name);
        let entries = fs::read_dir(&self.common_dir).into_iter().flatten().flatten();
        for entry in entries {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if !is_folder || is_deep(entry.file_name().as_encoded_bytes()) {
                collect(&entry, &mut found);
            }
        }
        for folder in ["objects/info", "objects/info/commit-graphs", "objects/pack"] {
            let entries = fs::read_dir(self.common_dir.join(folder)).into_iter().flatten().flatten();
            entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).for_each(|entry| {
                collect(&entry, &mut found);
            });
        }
        found
    }

    /// Whether the locked file is arborist's alone, or a driver died after the lock appeared.
    fn may_be_ours(&self, lock: &Path) -> bool {
        let inner = lock.strip_prefix(&self.common_dir).unwrap_or(lock);
        let own = ["refs/arborist", "refs/heads/arborist", "logs/refs/arborist", "logs/refs/heads/arborist"];
        if own.iter().any(|own| inner.starts_with(own)) || self.is_in_own_worktree(inner) {
            return true;
        }
        // The mtime of an index that is being installed is that of the old one, so only its ctime counts.
        let Ok(found) = lock.symlink_metadata() else { return false };
        let changed =
            Duration::from_secs(u64::try_from(found.mtime().max(found.ctime())).unwrap_or_default());
        self.dead_since()
            .is_some_and(|since| SystemTime::UNIX_EPOCH + changed + Duration::from_secs(1) >= since)
    }

    /// Whether it is in the git directory of one of our worktrees, which are locked with a reason of ours.
    fn is_in_own_worktree(&self, inner: &Path) -> bool {
        let Ok(rest) = inner.strip_prefix("worktrees") else { return false };
        let Some(name) = rest.components().next() else { return false };
        let reason = safe_files::read_text(&self.common_dir.join("worktrees").join(name).join("locked"));
        reason.is_ok_and(|reason| reason.starts_with("arborist"))
    }

    /// Removes a lock if it is certain that no process needs it any more.
    fn remove_if_stale(&self, lock: &Path) -> bool {
        let Ok(seen) = lock.symlink_metadata() else { return false };
        // git creates no folder of this name.
        if seen.is_dir() {
            return move_and_report(&self.common_dir, lock);
        }
        if !seen.is_file() || !is_abandoned(lock) || !self.may_be_ours(lock) || self.has_other_git() {
            return false;
        }
        // While the stale lock exists, no git can create another one. But another arborist could remove it, and a git
        // could create a new one between our check and our removal. So only one process removes locks at a time.
        let guard = self.own_locks().join("stale-locks");
        let Ok(_guard) = FileLock::take_within(&guard, "git arborist", USER_GIT_TIMEOUT, &Cancel::new())
        else {
            return false;
        };
        let is_same = |now: Metadata| (now.ino(), now.mtime_nsec()) == (seen.ino(), seen.mtime_nsec());
        if !lock.symlink_metadata().is_ok_and(is_same) || safe_files::remove(lock).is_err() {
            return false;
        }
        report_removed(lock);
        true
    }

    /// Whether another git is running. If the system cannot tell, [`is_abandoned`] has waited long enough.
    fn has_other_git(&self) -> bool {
        let folders = self.folders();
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        Occupants::has_other_git(&folders).unwrap_or(false)
    }
}

/// Whether no process can still be using a lock file, according to the system.
pub(super) fn is_abandoned(path: &Path) -> bool {
    let changed =
        path.symlink_metadata().and_then(|file| file.modified()).unwrap_or_else(|_| SystemTime::now());
    let age = changed.elapsed().unwrap_or_default();
    match is_open(path) {
        Some(is_open) => !is_open && age >= MIN_AGE_IF_CLOSED,
        None => age >= MIN_AGE_IF_UNKNOWN,
    }
}

/// The process id in the name of a private index: `index-{name}-{pid}-{count}`, or the same with `.lock`.
fn owner_of_index(name: &str) -> Option<u32> {
    let name = name.strip_prefix("index-")?.trim_end_matches(".lock");
    name.rsplit('-').nth(1)?.parse().ok()
}

/// Collects locks at or below a path. `packed-refs.new` is a temporary file that git refuses to overwrite.
fn collect(entry: &fs::DirEntry, found: &mut Vec<PathBuf>) {
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => {
            let entries = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            entries.for_each(|entry| collect(&entry, found));
        }
        Ok(kind) if kind.is_file() => {
            let name = entry.file_name();
            if name.as_encoded_bytes().ends_with(b".lock") || name == "packed-refs.new" {
                found.push(entry.path());
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_of_a_private_index_is_read_from_its_name() {
        assert_eq!(owner_of_index("index-turns-1129-2.lock"), Some(1129));
        assert_eq!(owner_of_index("index-a-b-7-0"), Some(7));
        assert_eq!(owner_of_index("index"), None);
    }

    #[test]
    fn the_lock_path_is_read_from_error_messages_of_git() {
        let find = |complaint: &str| find_obstacle(complaint, Path::new("/repo"));
        for (complaint, lock) in [
            (
                "fatal: prepare: cannot lock ref 'refs/heads/x': Unable to create '/r/.git/refs/heads/x.lock': File exists.\n\nAnother git",
                "/r/.git/refs/heads/x.lock",
            ),
            ("fatal: Unable to create '/r/it's/.git/index.lock': File exists.", "/r/it's/.git/index.lock"),
            ("error: could not lock config file .git/config: File exists", "/repo/.git/config.lock"),
        ] {
            assert_eq!(find(complaint), Some(PathBuf::from(lock)), "{complaint}");
        }
        for complaint in [
            "fatal: Unable to create '/r/.git/index.lock': Permission denied",
            "remote: error: cannot lock ref 'x': Unable to create '/r/x.lock': File exists.",
            "cannot lock ref 'refs/heads/x': is at 1 but expected 2",
        ] {
            assert_eq!(find(complaint), None, "{complaint}");
        }
    }
}
