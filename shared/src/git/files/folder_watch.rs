//! Notices folders that are moved. Moving a folder away and another one in its place for a while changes nothing about
//! the files in it, not even a ctime; but inotify reports it while it happens.

use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    mem::MaybeUninit,
    os::unix::ffi::OsStrExt,
};

#[cfg(target_os = "linux")]
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
};

/// Watches the folders of files and all their parents. On systems without inotify it reports nothing.
#[derive(Debug, Default)]
pub(in crate::git) struct FolderWatch {
    #[cfg(target_os = "linux")]
    events: Option<(OwnedFd, HashMap<i32, PathBuf>)>,
}

impl FolderWatch {
    /// Starts to watch the folders of these files below `top`, and all parents.
    #[cfg(target_os = "linux")]
    pub(in crate::git) fn begin<'a>(top: &Path, files: impl Iterator<Item = &'a [u8]>) -> Self {
        let Ok(events) = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) else {
            return Self::default();
        };
        let flags =
            WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        let parent = |path: &'a [u8]| memchr::memrchr(b'/', path).map(|at| &path[..at]);
        let mut below: BTreeSet<&[u8]> = BTreeSet::new();
        for file in files {
            let mut folder = parent(file);
            while let Some(path) = folder.filter(|path| below.insert(path)) {
                folder = parent(path);
            }
        }
        let below = below.into_iter().map(|path| top.join(OsStr::from_bytes(path)));
        let folders = top.ancestors().map(Path::to_owned).chain(below);
        let watched =
            folders.filter_map(|path| Some((inotify::add_watch(&events, &path, flags).ok()?, path)));
        let watched = watched.collect();
        Self { events: Some((events, watched)) }
    }

    /// This system does not report moved folders.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::git) fn begin<'a>(_: &Path, _: impl Iterator<Item = &'a [u8]>) -> Self {
        Self::default()
    }

    /// The folders that were moved or removed since the watch started.
    #[cfg(target_os = "linux")]
    pub(in crate::git) fn find_moved(&self) -> Vec<PathBuf> {
        let Some((events, folders)) = &self.events else { return Vec::new() };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(events.as_fd(), &mut buffer);
        let mut moved = BTreeSet::new();
        while let Ok(event) = reader.next() {
            let has_overflow = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            if has_overflow || event.events().intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF) {
                moved.insert(folders.get(&event.wd()).cloned().unwrap_or_else(|| PathBuf::from(".")));
            }
        }
        moved.into_iter().collect()
    }

    /// This system does not report moved folders.
    #[cfg(not(target_os = "linux"))]
    pub(in crate::git) fn find_moved(&self) -> Vec<PathBuf> {
        Vec::new()
    }
}
