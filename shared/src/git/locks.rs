//! Git's own lock files, where a killed process left them. Git removes its locks at every end but SIGKILL and a power cut;
//! after those, each later call that needs the locked file fails until somebody removes the lock.
//!
//! A lock is removed only if all of these hold: no process has it open; it has not been touched for two seconds, which is
//! longer than git leaves a closed lock before its last act on it; no git that could write runs in the repository; and
//! either the locked file belongs to arborist alone, or a driver died that was at work when the lock appeared. All other
//! locks may belong to a process of the user: they are waited for and then reported.

use std::{
    fs::{self, Metadata},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant, SystemTime},
};

use super::{
    GitError, Repository,
    misplaced::{find_obstacles, move_and_report},
    stale::is_abandoned,
};
use crate::{
    process::{Cancel, FileLock, Occupants, find_dead, forget_dead},
    safe_files,
};

/// The user's own git gets so long to release a lock.
const COURTESY: Duration = Duration::from_secs(10);
/// A git that a dead driver started gets so long to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a lock is looked at.
const GLANCE: Duration = Duration::from_millis(20);

/// Since when a driver was at work that died, in whichever repository its lock is. A run that works in several repositories
/// holds its lock in one of them.
static DEAD: Mutex<Option<SystemTime>> = Mutex::new(None);
/// The locks that were removed and not reported yet.
static REMOVED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The stale locks that this process has removed since this was asked last.
#[must_use]
pub fn take_removed_locks() -> Vec<PathBuf> {
    std::mem::take(&mut REMOVED.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Repository {
    /// Removes the locks that a driver left which died, once none of its gits is at work any more. Call this with a lock of
    /// ours in hand, before anything is written. It is done once in a process, and costs next to nothing where no driver died.
    /// Gives whether one did.
    pub fn recover_locks(&self) -> Result<bool, GitError> {
        static DONE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
        let place = Place { common_dir: self.common_dir.clone() };
        let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
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
        let end = Instant::now() + COURTESY;
        let mut left = place.find_locks();
        while !left.is_empty() && Instant::now() < end {
            left.retain(|lock| lock.symlink_metadata().is_ok() && !place.remove_if_stale(lock));
            // One that is not ours to remove is no reason to wait: whoever needs it will.
            left.retain(|lock| lock.exists() && place.may_be_ours(lock));
            if !left.is_empty() {
                thread::sleep(GLANCE * 5);
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
    let end = Instant::now() + COURTESY;
    loop {
        if lock.symlink_metadata().is_err() || place.as_ref().is_some_and(|place| place.remove_if_stale(lock))
        {
            return Ok(());
        }
        if Instant::now() >= end {
            return Err(held(lock));
        }
        thread::sleep(GLANCE);
    }
}

/// Moves a folder that has the name of a lock. No git makes one, so none waits for it. Whether it was moved.
pub(super) fn move_folder(lock: &Path) -> bool {
    let is_folder = lock.symlink_metadata().is_ok_and(|found| found.is_dir());
    is_folder && Place::of(lock).is_some_and(|place| move_and_report(&place.common_dir, lock))
}

/// Removes a lock if it is proved to be stale.
pub(super) fn remove_if_stale(lock: &Path) -> bool {
    Place::of(lock).is_some_and(|place| place.remove_if_stale(lock))
}

/// The error for a lock that was waited for in vain.
pub(super) fn held(lock: &Path) -> GitError {
    let age = lock.symlink_metadata().and_then(|file| file.modified()).ok();
    let age = age.and_then(|time| time.elapsed().ok()).unwrap_or_default();
    GitError::LockHeld { path: lock.to_owned(), age }
}

/// The lock file that git complains of, if that is what stopped it.
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

/// The locks of the tables of refs that a git in `dir` writes: those of its worktree, and those that all worktrees share.
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

/// A repository, for its locks.
struct Place {
    common_dir: PathBuf,
}

impl Place {
    /// The repository that a file of git belongs to.
    fn of(lock: &Path) -> Option<Self> {
        let is_common = |folder: &&Path| folder.join("objects").is_dir() && folder.join("HEAD").exists();
        lock.ancestors().skip(1).find(is_common).map(|folder| Self { common_dir: folder.to_owned() })
    }

    fn own_locks(&self) -> PathBuf {
        self.common_dir.join("arborist/locks")
    }

    /// Since when a driver was at work that died.
    fn dead_since(&self) -> Option<SystemTime> {
        let mut dead = DEAD.lock().unwrap_or_else(PoisonError::into_inner);
        let here = find_dead(&self.own_locks());
        *dead = dead.into_iter().chain(here).min();
        *dead
    }

    /// Where gits of this repository work.
    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let linked = entries.filter_map(|entry| {
            let link = safe_files::read_text(&entry.path().join("gitdir")).ok()?;
            Some(Path::new(link.trim_end()).parent()?.to_owned())
        });
        let main = self.common_dir.parent().filter(|_| self.common_dir.ends_with(".git"));
        linked.chain(main.map(Path::to_owned)).chain([self.common_dir.clone()]).collect()
    }

    /// Gits of a dead driver go on until they have ended. What they write must not meet what we write.
    fn await_orphans(&self) -> Result<(), GitError> {
        let folders = self.folders();
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let end = Instant::now() + PATIENCE;
        loop {
            let alive = Occupants::gits_of_dead_drivers(&folders);
            match alive.first() {
                None => return Ok(()),
                Some(pid) if Instant::now() >= end => return Err(GitError::Orphan { pid: *pid }),
                Some(_) => thread::sleep(GLANCE),
            }
        }
    }

    /// Indexes of our own that the dead have left, with their locks. Their names tell whose they were.
    fn remove_private_indexes(&self) {
        let linked = fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let git_dirs = linked.map(|entry| entry.path()).chain([self.common_dir.clone()]);
        for git_dir in git_dirs {
            for entry in fs::read_dir(git_dir.join("arborist")).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let owner = name.to_str().and_then(owner_of_index);
                // Where the system does not list its processes, they stay: they stand in nobody's way.
                let is_dead = |pid: u32| {
                    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
                };
                if owner.is_some_and(is_dead) && self.may_be_ours(&entry.path()) {
                    let _ = safe_files::remove(&entry.path());
                }
            }
        }
    }

    /// Every lock file of git in this repository.
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
        // An index that is being put in place is as old as the one that it replaces: of it only the change of its names tells.
        let Ok(found) = lock.symlink_metadata() else { return false };
        let changed =
            Duration::from_secs(u64::try_from(found.mtime().max(found.ctime())).unwrap_or_default());
        self.dead_since()
            .is_some_and(|since| SystemTime::UNIX_EPOCH + changed + Duration::from_secs(1) >= since)
    }

    /// Whether it is in the git directory of a worktree that we have made: those are locked with a reason of ours.
    fn is_in_own_worktree(&self, inner: &Path) -> bool {
        let Ok(rest) = inner.strip_prefix("worktrees") else { return false };
        let Some(name) = rest.components().next() else { return false };
        let reason = safe_files::read_text(&self.common_dir.join("worktrees").join(name).join("locked"));
        reason.is_ok_and(|reason| reason.starts_with("arborist"))
    }

    /// Removes a lock if it is proved that nobody needs it any more.
    fn remove_if_stale(&self, lock: &Path) -> bool {
        let Ok(seen) = lock.symlink_metadata() else { return false };
        // No git makes a folder of this name, so none waits for it.
        if seen.is_dir() {
            return move_and_report(&self.common_dir, lock);
        }
        if !seen.is_file() || !is_abandoned(lock) || !self.may_be_ours(lock) || self.has_other_git() {
            return false;
        }
        // While the stale lock is there, no git can make another one of its name. Another arborist could remove it and let a
        // git in between our look and our act, so only one of us removes locks at a time.
        let guard = self.own_locks().join("stale-locks");
        let Ok(_guard) = FileLock::take_within(&guard, "git arborist", COURTESY, &Cancel::new()) else {
            return false;
        };
        let is_same = |now: Metadata| (now.ino(), now.mtime_nsec()) == (seen.ino(), seen.mtime_nsec());
        if !lock.symlink_metadata().is_ok_and(is_same) || safe_files::remove(lock).is_err() {
            return false;
        }
        REMOVED.lock().unwrap_or_else(PoisonError::into_inner).push(lock.to_owned());
        true
    }

    /// Where the system does not tell, [`is_abandoned`] has waited long enough.
    fn has_other_git(&self) -> bool {
        let folders = self.folders();
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        Occupants::has_other_git(&folders).unwrap_or(false)
    }
}

/// The process that made a private index: `index-{name}-{pid}-{count}`, and the same with `.lock`.
fn owner_of_index(name: &str) -> Option<u32> {
    let name = name.strip_prefix("index-")?.trim_end_matches(".lock");
    name.rsplit('-').nth(1)?.parse().ok()
}

/// Locks at or below a place. `packed-refs.new` is what git writes before it renames it, and refuses to write again.
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
    fn a_private_index_names_its_process() {
        assert_eq!(owner_of_index("index-turns-1129-2.lock"), Some(1129));
        assert_eq!(owner_of_index("index-a-b-7-0"), Some(7));
        assert_eq!(owner_of_index("index"), None);
    }

    #[test]
    fn the_lock_is_read_from_what_git_says() {
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
