//! Lists folders, and removes them with everything in them.

use std::{
    ffi::{OsStr, OsString},
    fs::Metadata,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::MetadataExt},
    },
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, Stat, fchmod, openat, renameat, statat, unlinkat},
    io::Errno,
};

use super::{
    files::FolderEntry,
    journal::note,
    walk::{LIST_FLAGS, MissingParent, open_folder, parent_of},
};

/// The kind of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, wherever it leads.
    Link,
    /// A named pipe, a socket or a device.
    Special,
}

impl FileKind {
    /// The kind according to metadata.
    #[must_use]
    pub fn of(found: &Metadata) -> Self {
        Self::of_type(FileType::from_raw_mode(found.mode()))
    }

    fn of_type(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

/// The kind of a path, if it exists. A path with a link in the middle counts as missing.
#[must_use]
pub fn kind_of(path: &Path) -> Option<FileKind> {
    let (folder, name) = parent_of(path, MissingParent::Fail).ok()?;
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileKind::of_type(FileType::from_raw_mode(found.st_mode)))
}

/// The first folder on the way from `top` to `path` that is a file instead, if there is one.
#[must_use]
pub fn find_file_in_way(top: &Path, path: &Path) -> Option<PathBuf> {
    let mut folders: Vec<&Path> = path.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
    folders.reverse();
    let is_file =
        |folder: &&&Path| matches!(kind_of(&top.join(folder)), Some(FileKind::File | FileKind::Special));
    folders.iter().find(is_file).map(|found| found.to_path_buf())
}

/// Identifies one state of a file or folder. Programs cannot set the change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangeStamp {
    /// The device.
    pub device: u64,
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The kind and the permissions.
    pub mode: u32,
    /// The change time (ctime), in seconds and nanoseconds.
    pub changed: (i64, i64),
    /// The modification time (mtime), which programs can set.
    pub written: (i64, i64),
}

impl ChangeStamp {
    /// The stamp of what is at a path, without following a link; `None` if nothing is there.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|found| Self::of(&found))
    }

    /// The stamp according to metadata.
    #[must_use]
    pub fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            mode: found.mode(),
            changed: (found.ctime(), found.ctime_nsec()),
            written: (found.mtime(), found.mtime_nsec()),
        }
    }

    // These numbers have different types on different systems.
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "not on every system"
    )]
    fn of_stat(found: &Stat) -> Self {
        Self {
            device: found.st_dev as u64,
            inode: found.st_ino as u64,
            size: found.st_size as u64,
            mode: found.st_mode as u32,
            changed: (found.st_ctime as i64, found.st_ctime_nsec as i64),
            written: (found.st_mtime as i64, found.st_mtime_nsec as i64),
        }
    }
}

/// Two changes within this many nanoseconds may have the same time, because clocks of file systems tick at up to 10 ms.
const TICK: i128 = 20_000_000;

/// How many seconds ago a file must have changed for its stamp to be final.
const SETTLED_AFTER_SECONDS: i64 = 1;

impl ChangeStamp {
    /// Whether a change from now on might leave the stamp unchanged. Ask this before you read the file.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let changed = i128::from(self.changed.0) * 1_000_000_000 + i128::from(self.changed.1);
        i128::try_from(now.as_nanos()).is_ok_and(|now| now - changed < TICK)
    }

    /// Whether the last change is so long ago that any later write is certain to get another stamp: clocks of file systems
    /// tick slowly.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_secs())
            .is_ok_and(|now| now > self.changed.0.saturating_add(SETTLED_AFTER_SECONDS))
    }
}

/// Metadata of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its kind.
    pub kind: FileKind,
    /// Its stamp.
    pub stamp: ChangeStamp,
    /// The number of bytes on disk, which is small for a sparse file.
    pub stored: u64,
}

impl Facts {
    // These numbers have different types on different systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "not on every system")]
    fn of_stat(found: &Stat) -> Self {
        Self {
            kind: FileKind::of_type(FileType::from_raw_mode(found.st_mode)),
            stamp: ChangeStamp::of_stat(found),
            stored: (found.st_blocks as u64).saturating_mul(512),
        }
    }
}

/// A name in a folder, with its kind and stamp.
pub type StampedName = (OsString, FileKind, ChangeStamp);

/// An open folder, for looking at many names in it.
#[derive(Debug)]
pub struct OpenedFolder(OwnedFd);

impl OpenedFolder {
    /// Opens a folder by a path without links.
    pub fn open(folder: &Path) -> io::Result<Self> {
        open_folder(folder).map(Self)
    }

    /// The metadata of a path in it, if it exists. Parent folders may be links.
    #[must_use]
    pub fn look_at(&self, path: impl AsRef<Path>) -> Option<Facts> {
        let found = statat(&self.0, path.as_ref(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Facts::of_stat(&found))
    }
}

/// The metadata of a path, if it exists. A path with a link in the middle counts as missing.
#[must_use]
pub fn look_at(path: &Path) -> Option<Facts> {
    let (folder, name) = parent_of(path, MissingParent::Fail).ok()?;
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Facts::of_stat(&found))
}

/// The entries of a folder, sorted by name. A folder that is missing or a link has no entries.
pub fn list(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut found: Vec<FolderEntry> = list_stamps(folder)?
        .into_iter()
        .map(|(name, kind, _)| FolderEntry { path: folder.join(name), kind })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The names in a folder, unsorted, with their kinds and stamps.
pub fn list_stamps(folder: &Path) -> io::Result<Vec<StampedName>> {
    let mut found = Vec::new();
    visit_stamps(folder, |name, kind, stamp| {
        found.push((name.to_owned(), kind, *stamp));
        Some(())
    })?;
    Ok(found)
}

/// Like [`list`], but unsorted, and without a system call for each name if the system lists kinds with names.
pub fn list_kinds(folder: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut found = Vec::new();
    visit_kinds(folder, |name, kind| found.push(FolderEntry { path: folder.join(name), kind }))?;
    Ok(found)
}

/// Visits each name in a folder with its kind, unsorted.
pub fn visit_kinds(folder: &Path, mut visit: impl FnMut(&OsStr, FileKind)) -> io::Result<()> {
    let Some(place) = open_if_there(folder)? else { return Ok(()) };
    for entry in Dir::new(place)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not return kinds.
            FileType::Unknown => kind_of(&folder.join(name)),
            kind => Some(FileKind::of_type(kind)),
        };
        kind.into_iter().for_each(|kind| visit(name, kind));
    }
    Ok(())
}

/// Visits each name in a folder with its kind and stamp, unsorted, until `visit` returns `None`.
pub fn visit_stamps(
    folder: &Path,
    mut visit: impl FnMut(&OsStr, FileKind, &ChangeStamp) -> Option<()>,
) -> io::Result<Option<()>> {
    visit_facts(folder, |name, facts| visit(name, facts.kind, &facts.stamp))
}

/// Visits each name in a folder with its metadata, unsorted, until `visit` returns `None`.
pub fn visit_facts(
    folder: &Path,
    mut visit: impl FnMut(&OsStr, &Facts) -> Option<()>,
) -> io::Result<Option<()>> {
    let Some(place) = open_if_there(folder)? else { return Ok(Some(())) };
    let mut entries = Dir::new(place)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(stat) = statat(entries.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if visit(OsStr::from_bytes(name.to_bytes()), &Facts::of_stat(&stat)).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(()))
}

fn open_if_there(folder: &Path) -> io::Result<Option<OwnedFd>> {
    match open_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}

/// Removes a path: a folder with everything in it, a link without its target. A missing path is not an error.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = match parent_of(path, MissingParent::Fail) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    remove_in(&folder, name)
}

fn remove_in(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    if unlink_file(folder, name)? {
        return Ok(());
    }
    let top = open_to_empty(folder, name)?;
    let mut count = 0;
    // Nested folders are moved up one by one, because an agent can nest them deeper than there are descriptors or stack
    // space.
    loop {
        let names = names_in(&top)?;
        if names.is_empty() {
            break;
        }
        for name in names {
            if !unlink_file(&top, &name)? {
                empty_into(&top, &name, &mut count)?;
                remove_empty(&top, &name)?;
            }
        }
    }
    remove_empty(folder, name)
}

/// Removes anything but a folder. Returns false if it is one.
fn unlink_file(folder: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // Linux returns the first error for a folder, other systems the second.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn remove_empty(folder: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(errno) if errno != Errno::NOENT => Err(errno.into()),
        _ => Ok(()),
    }
}

/// Removes the files of a folder, and moves its folders to `top`.
fn empty_into(top: &OwnedFd, name: &OsStr, count: &mut u64) -> io::Result<()> {
    let inner = open_to_empty(top, name)?;
    for name in names_in(&inner)? {
        if unlink_file(&inner, &name)? {
            continue;
        }
        // Only a writable folder can be moved.
        open_to_empty(&inner, &name)?;
        loop {
            *count += 1;
            match renameat(&inner, &name, top, format!(".arborist-removed-{count}")) {
                Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
                moved => break moved?,
            }
        }
    }
    Ok(())
}

/// Opens a folder that is about to be removed. Missing permissions, as in some caches, are added.
fn open_to_empty(folder: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let opened = openat(folder, name, LIST_FLAGS, Mode::empty())?;
    let mode = rustix::fs::fstat(&opened)?.st_mode;
    if mode & 0o700 != 0o700 {
        let _ = fchmod(&opened, Mode::from_raw_mode((mode & 0o7777) | 0o700));
    }
    Ok(opened)
}

fn names_in(folder: impl AsFd) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::{super::*, *};

    /// A folder beside another one that contains something precious.
    fn places() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| top.join(name));
        fs::create_dir_all(ours.join("deep")).unwrap();
        fs::create_dir_all(&theirs).unwrap();
        fs::write(theirs.join("file"), "theirs").unwrap();
        (folder, ours, theirs)
    }

    #[test]
    fn links_in_parent_folders_are_not_followed() {
        let (_folder, ours, theirs) = places();
        symlink(&theirs, ours.join("link")).unwrap();
        let file = ours.join("link/file");
        assert!(read(&file).is_err());
        assert!(write(&file, b"ours").is_err());
        assert!(write(&ours.join("link/new/file"), b"ours").is_err());
        assert!(open_or_create(&file).is_err());
        assert!(remove(&file).is_err() && remove_all(&file).is_err());
        assert!(rename(&file, &ours.join("file")).is_err());
        assert!(rename(&ours.join("deep"), &ours.join("link/deep")).is_err());
        assert!(list(&ours.join("link")).is_err());
        assert_eq!(fs::read(theirs.join("file")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
    }

    #[test]
    fn a_link_at_the_end_of_a_path_is_replaced_or_removed_but_not_followed() {
        let (_folder, ours, theirs) = places();
        let link = ours.join("link");
        for act in [|path: &Path| write(path, b"ours"), |path: &Path| remove(path), remove_all] {
            let _ = fs::remove_file(&link);
            symlink(theirs.join("file"), &link).unwrap();
            assert!(read(&link).is_err() && open_or_create(&link).is_err());
            act(&link).unwrap();
            assert_eq!(fs::read(theirs.join("file")).unwrap(), b"theirs");
            assert!(!link.is_symlink());
        }
    }

    #[test]
    fn opening_a_log_replaces_links_except_those_that_the_user_had_before() {
        let (_folder, ours, theirs) = places();
        for log in ["link/a.log", "log"] {
            symlink(&theirs, ours.join("link")).unwrap();
            symlink(theirs.join("file"), ours.join("log")).unwrap();
            open_log(&ours.join(log)).unwrap();
            assert_eq!(fs::read(ours.join(log)).unwrap(), b"");
            assert_eq!(fs::read(theirs.join("file")).unwrap(), b"theirs");
            assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
            for name in ["link", "log"] {
                remove_all(&ours.join(name)).unwrap();
            }
        }
        symlink(&theirs, ours.join("mine")).unwrap();
        allow_linked(&ours.join("mine"));
        open_log(&ours.join("mine/a.log")).unwrap();
        assert!(theirs.join("a.log").exists() && ours.join("mine").is_symlink());
    }

    #[test]
    fn removing_a_folder_keeps_the_targets_of_its_links() {
        let (_folder, ours, theirs) = places();
        symlink(&theirs, ours.join("deep/link")).unwrap();
        fs::write(ours.join("deep/file"), "x").unwrap();
        remove_all(&ours).unwrap();
        assert!(!ours.exists());
        assert_eq!(fs::read(theirs.join("file")).unwrap(), b"theirs");
        remove_all(&ours).unwrap();
    }

    #[test]
    fn a_named_pipe_is_neither_read_nor_written_nor_waited_for() {
        let (_folder, ours, _) = places();
        let queue = ours.join("queue");
        rustix::fs::mknodat(rustix::fs::CWD, &queue, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        assert!(read(&queue).is_err() && read_users(&queue).is_err());
        assert!(open_or_create(&queue).is_err());
        assert_eq!(kind_of(&queue), Some(FileKind::Special));
        write(&queue, b"now a file").unwrap();
        assert_eq!(read(&queue).unwrap(), b"now a file");
    }

    #[test]
    fn a_link_is_read_only_if_its_target_is_below_the_top_folder() {
        let (_folder, ours, theirs) = places();
        fs::write(ours.join("deep/plan"), "plan").unwrap();
        symlink("deep/plan", ours.join("inside")).unwrap();
        symlink("deep", ours.join("folder")).unwrap();
        symlink("../inside", ours.join("deep/back")).unwrap();
        symlink("../theirs/file", ours.join("outside")).unwrap();
        symlink(theirs.join("file"), ours.join("absolute")).unwrap();
        symlink("loop", ours.join("loop")).unwrap();
        for path in ["inside", "folder/plan", "folder/back", "deep/../inside"] {
            assert_eq!(read_beneath(&ours, Path::new(path)).unwrap(), b"plan", "{path}");
        }
        for path in ["outside", "absolute", "loop", "../theirs/file", "missing"] {
            assert!(read_beneath(&ours, Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn folders_are_created_but_never_a_git_directory() {
        let (_folder, ours, _) = places();
        write(&ours.join("new/folder/file"), b"x").unwrap();
        assert!(write(&ours.join("gone.git/arborist/locks/x"), b"x").is_err());
        assert!(!ours.join("gone.git").exists());
        fs::create_dir(ours.join("gone.git")).unwrap();
        write(&ours.join("gone.git/arborist/locks/x"), b"x").unwrap();
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_larger_one_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, ours, _) = places();
        let file = ours.join("hook");
        write_with_mode(&file, b"a", 0o755).unwrap();
        write(&file, b"abc").unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
        assert!(read_up_to(&file, 2).is_err() && read_up_to(&file, 3).is_ok());
    }

    #[test]
    fn folders_are_removed_however_deep_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(folder.path()).unwrap();
        let mut inner = OwnedFd::from(fs::File::open(&top).unwrap());
        for _ in 0..3000 {
            rustix::fs::mkdirat(&inner, "deep", Mode::from_raw_mode(0o755)).unwrap();
            openat(&inner, "file", rustix::fs::OFlags::CREATE, Mode::from_raw_mode(0o644)).unwrap();
            inner = openat(&inner, "deep", LIST_FLAGS, Mode::empty()).unwrap();
        }
        remove_all(&top.join("deep")).unwrap();
        assert_eq!(fs::read_dir(&top).unwrap().count(), 1, "the file beside it stays");
    }
}
