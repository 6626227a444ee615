//! Notices files that existed, or were different, only for a while. Comparing before with after does not show them.
//!
//! Only Linux can do this (with inotify). Elsewhere nothing is noticed.

use std::path::PathBuf;

/// Watches files and folders that should neither change nor appear.
#[derive(Debug)]
pub struct FileEvents {
    paths: Vec<PathBuf>,
    /// `None` if the system cannot watch files.
    watches: Option<system::Watches>,
}

impl FileEvents {
    /// Watches these paths, and everything below those that are folders. Links are not followed.
    #[must_use]
    pub fn watch(paths: Vec<PathBuf>) -> Self {
        let watches = system::Watches::begin(&paths);
        Self { paths, watches }
    }

    /// The watched paths that were changed since the last call. A new folder that is still empty is not one of them, because
    /// programs make the folders that they look into.
    pub fn take(&mut self) -> Vec<PathBuf> {
        self.watches.as_mut().map(|watches| watches.take(&self.paths)).unwrap_or_default()
    }

    /// Forgets everything that has happened so far. What was replaced meanwhile is watched again.
    pub fn restart(&mut self) {
        self.watches = system::Watches::begin(&self.paths);
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::{
        collections::{BTreeSet, HashMap},
        ffi::OsStr,
        mem::MaybeUninit,
        os::{fd::OwnedFd, unix::ffi::OsStrExt},
        path::{Path, PathBuf},
    };

    use rustix::fs::{
        AtFlags, CWD, StatxFlags,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
        statx,
    };

    use super::super::tree::{FileKind, kind_of, list_kinds};

    /// How many folders below the watched paths are watched.
    const MAX_FOLDERS: usize = 1000;
    /// A folder has not been used if it changed no later than this after it was made. File systems round their times.
    const NANOSECONDS_TO_MAKE: i128 = 10_000_000;

    /// Changes of the names in a folder.
    const NAMES: WatchFlags = WatchFlags::CREATE
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MOVED_FROM)
        .union(WatchFlags::MOVED_TO)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF);
    /// Changes of a file, or of the files in a folder. A file that is written through a memory mapping is only closed.
    const CONTENT: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);

    #[derive(Debug)]
    pub(super) struct Watches {
        inotify: OwnedFd,
        /// What is watched, by the number of its watch.
        watched: HashMap<i32, PathBuf>,
    }

    impl Watches {
        pub(super) fn begin(paths: &[PathBuf]) -> Option<Self> {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
            let mut watches = Self { inotify, watched: HashMap::new() };
            watches.add_missing(paths);
            Some(watches)
        }

        /// Watches what is not watched yet, because it did not exist.
        fn add_missing(&mut self, paths: &[PathBuf]) {
            for path in paths {
                let known: BTreeSet<&Path> = self.watched.values().map(PathBuf::as_path).collect();
                let folder = path.parent().filter(|folder| !known.contains(folder)).map(Path::to_owned);
                let is_new = !known.contains(path.as_path());
                if let Some(folder) = folder {
                    // Programs write to other files there all the time, so only names are watched.
                    self.add(&folder, NAMES);
                }
                match kind_of(path).filter(|_| is_new) {
                    Some(FileKind::File) => self.add(path, CONTENT),
                    Some(FileKind::Folder) => self.add_folder(path),
                    _ => {}
                }
            }
        }

        fn add(&mut self, path: &Path, events: WatchFlags) {
            let events = events | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
            if let Ok(number) = inotify::add_watch(&self.inotify, path, events) {
                self.watched.entry(number).or_insert_with(|| path.to_owned());
            }
        }

        /// Watches a folder and all folders in it.
        fn add_folder(&mut self, folder: &Path) {
            let mut open = vec![folder.to_owned()];
            while let Some(folder) = open.pop().filter(|_| self.watched.len() < MAX_FOLDERS) {
                self.add(&folder, NAMES | CONTENT);
                let entries = list_kinds(&folder).unwrap_or_default().into_iter();
                open.extend(entries.filter(|entry| entry.kind == FileKind::Folder).map(|entry| entry.path));
            }
        }

        pub(super) fn take(&mut self, paths: &[PathBuf]) -> Vec<PathBuf> {
            let mut changed = BTreeSet::new();
            let mut folders = Vec::new();
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = Reader::new(&self.inotify, &mut buffer);
            while let Ok(event) = reader.next() {
                if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                    // Some events were lost, so any of the files may have changed.
                    changed.extend(paths.iter().cloned());
                }
                let Some(watched) = self.watched.get(&event.wd()) else { continue };
                if event.events().contains(ReadFlags::IGNORED) {
                    self.watched.remove(&event.wd());
                    continue;
                }
                let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
                let path = name.map_or_else(|| watched.clone(), |name| watched.join(name));
                let is_watched =
                    |known: &PathBuf| path.starts_with(known) || (name.is_none() && known.starts_with(&path));
                if !paths.iter().any(is_watched) {
                    continue;
                }
                if event.events().contains(ReadFlags::CREATE | ReadFlags::ISDIR) {
                    folders.push(path);
                } else {
                    changed.insert(path);
                }
            }
            for folder in folders {
                // It is watched first, so that nothing happens in it unnoticed after this.
                self.add_folder(&folder);
                if !is_unused(&folder) {
                    changed.insert(folder);
                }
            }
            self.add_missing(paths);
            changed.into_iter().collect()
        }
    }

    /// Whether nothing has happened in a folder since it was made. Where the file system does not know when that was, only
    /// what is in it now counts.
    fn is_unused(folder: &Path) -> bool {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let Ok(found) = statx(CWD, folder, AtFlags::SYMLINK_NOFOLLOW, wanted) else { return false };
        let at =
            |seconds: i64, nanoseconds: u32| i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        let made = at(found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
        let changed = at(found.stx_ctime.tv_sec, found.stx_ctime.tv_nsec);
        let knows_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
        let is_empty = list_kinds(folder).is_ok_and(|entries| entries.is_empty());
        is_empty && (!knows_birth || changed - made <= NANOSECONDS_TO_MAKE)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::path::PathBuf;

    /// It cannot be made.
    #[derive(Debug)]
    pub(super) enum NoWatches {}

    pub(super) use NoWatches as Watches;

    impl NoWatches {
        pub(super) fn begin(_paths: &[PathBuf]) -> Option<Self> {
            None
        }

        pub(super) fn take(&mut self, _paths: &[PathBuf]) -> Vec<PathBuf> {
            match *self {}
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn watched(top: &Path) -> FileEvents {
        FileEvents::watch(["file", "missing", "folder", "later"].map(|name| top.join(name)).to_vec())
    }

    /// Runs `change` in a folder with a file and a folder, and returns the names that were noticed.
    fn noticed(change: impl FnOnce(&Path)) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        fs::write(top.join("file"), "old").unwrap();
        fs::create_dir_all(top.join("folder/inner")).unwrap();
        let mut events = watched(&top);
        change(&top);
        let names: Vec<String> = events
            .take()
            .iter()
            .map(|path| path.strip_prefix(&top).unwrap_or(path).display().to_string())
            .collect();
        assert!(events.take().is_empty(), "it is noticed once");
        names
    }

    #[test]
    fn changes_that_were_undone_are_noticed() {
        assert_eq!(
            noticed(|top| {
                fs::write(top.join("missing"), "new").unwrap();
                fs::remove_file(top.join("missing")).unwrap();
            }),
            ["missing"]
        );
        assert_eq!(noticed(|top| fs::write(top.join("file"), "old").unwrap()), ["file"]);
        assert_eq!(
            noticed(|top| {
                fs::rename(top.join("file"), top.join("other")).unwrap();
                fs::rename(top.join("other"), top.join("file")).unwrap();
            }),
            ["file"]
        );
        assert_eq!(noticed(|top| fs::write(top.join("folder/inner/x"), "").unwrap()), ["folder/inner/x"]);
        assert_eq!(
            noticed(|top| {
                fs::create_dir(top.join("later")).unwrap();
                fs::remove_dir(top.join("later")).unwrap();
            }),
            ["later"]
        );
    }

    #[test]
    fn a_new_folder_is_noticed_only_with_its_first_file() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap();
        let mut events = watched(&top);
        fs::create_dir(top.join("later")).unwrap();
        assert!(events.take().is_empty());
        fs::write(top.join("later/x"), "").unwrap();
        fs::remove_file(top.join("later/x")).unwrap();
        assert_eq!(events.take(), [top.join("later/x")]);
    }

    #[test]
    fn files_that_are_not_watched_are_ignored() {
        let changes = noticed(|top| {
            fs::write(top.join("other"), "new").unwrap();
            fs::create_dir_all(top.join("others/file")).unwrap();
            fs::read(top.join("file")).unwrap();
        });
        assert!(changes.is_empty(), "{changes:?}");
    }

    #[test]
    fn a_folder_that_is_created_later_is_watched_from_the_next_call_on() {
        let root = tempfile::tempdir().unwrap();
        let top = root.path().canonicalize().unwrap().join("made");
        let mut events = watched(&top);
        fs::create_dir(&top).unwrap();
        assert!(events.take().is_empty());
        fs::write(top.join("missing"), "").unwrap();
        fs::remove_file(top.join("missing")).unwrap();
        assert_eq!(events.take(), [top.join("missing")]);
    }
}
