//! Reads, writes, moves and removes files by path.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::{MetadataExt, OpenOptionsExt},
        },
    },
    path::{Component, Path, PathBuf},
    sync::Mutex,
};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, chmod, fchmod, fstat, linkat, mkdirat, openat, readlinkat,
    renameat, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{
    draft::DraftFile,
    journal::note,
    tree::{ChangeStamp, FileKind, kind_of},
    walk::{MissingParent, enter, linked, open_folder, open_place, parent_of},
};

use crate::mutex::MutexExt;

/// The logs that this process created: device, inode and name.
static LOGS: Mutex<BTreeSet<(u64, u64, Option<OsString>)>> = Mutex::new(BTreeSet::new());

/// The largest file that is read as a whole: notes, plans, configuration, hooks.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// How many links may lead from one file to the next.
const LINKS: usize = 16;

/// Does not follow links, does not block, and does not acquire a controlling terminal.
const OPEN_FLAGS: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How logs are opened.
const LOG_FLAGS: OFlags = OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::CREATE);

/// Opens a regular file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY, MissingParent::Fail)
}

/// Opens a file for reading and writing, and creates it and its folders if they are missing. Used for locks.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    let _noted = note(path);
    open_with(path, OFlags::RDWR | OFlags::CREATE, MissingParent::Create)
}

/// Opens a log for appending, and creates its folders. Logs are in the worktree, where any process can put something in
/// their way: a link, a hard link or a named pipe there is removed, and its target is left alone.
pub fn open_log(path: &Path) -> io::Result<File> {
    own_log(path, open_log_file(path)?)
}

/// Creates a log like [`open_log`]. Returns `None` if there is a file of this name.
pub fn create_log(path: &Path) -> io::Result<Option<File>> {
    let _noted = note(path);
    match open_with(path, LOG_FLAGS | OFlags::EXCL, MissingParent::Create) {
        Ok(log) => own_log(path, log).map(Some),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && has_one_name(path) => Ok(None),
        Err(_) => open_log(path).map(Some),
    }
}

/// Whether there is a regular file of this name, and it has no other name.
fn has_one_name(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.nlink() == 1)
}

/// Remembers a log as one of this process. A file that already had content is not.
fn own_log(path: &Path, log: File) -> io::Result<File> {
    let found = log.metadata()?;
    if found.len() == 0 {
        let log = (found.dev(), found.ino(), path.file_name().map(OsStr::to_owned));
        LOGS.hold().insert(log);
    }
    Ok(log)
}

/// Whether this file is a log that this process created.
#[must_use]
pub fn is_own_log(path: &Path, stamp: &ChangeStamp) -> bool {
    let log = (stamp.device, stamp.inode, path.file_name().map(OsStr::to_owned));
    LOGS.hold().contains(&log)
}

fn open_log_file(path: &Path) -> io::Result<File> {
    let _noted = note(path);
    let flags = LOG_FLAGS;
    let refused = match open_with(path, flags, MissingParent::Create) {
        // A hard link to a file that may be anywhere.
        Ok(file) if fstat(&file)?.st_nlink > 1 => {
            return remove(path).and_then(|()| open_with(path, flags, MissingParent::Create));
        }
        Err(error) if [io::ErrorKind::InvalidInput, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            error
        }
        opened => return opened,
    };
    let is_in_the_way = |path: &&Path| matches!(kind_of(path), Some(FileKind::Link | FileKind::Special));
    match path.ancestors().find(is_in_the_way) {
        Some(obstacle) => remove(obstacle).and_then(|()| open_with(path, flags, MissingParent::Create)),
        None => Err(refused),
    }
}

fn open_with(path: &Path, flags: OFlags, missing: MissingParent) -> io::Result<File> {
    let (folder, name) = parent_of(path, missing)?;
    let opened = match openat(&folder, name, flags | OPEN_FLAGS, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP | Errno::MLINK) => return Err(linked(path)),
        // A named pipe without a reader, or a socket: neither can be written to without blocking.
        Err(Errno::NXIO) => return Err(irregular()),
        opened => opened?,
    };
    require_regular(&opened)?;
    Ok(File::from(opened))
}

fn require_regular(file: impl AsFd) -> io::Result<()> {
    match FileType::from_raw_mode(fstat(file)?.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(irregular()),
    }
}

fn irregular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Reads a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LARGEST_FILE)
}

/// Reads a file of at most `most` bytes.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_whole(open(path)?, most)
}

/// Reads the last bytes of a file, at most `most`.
pub fn read_tail(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file as text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

/// Reads a file that the user names, following links: their own configuration, or a file on the command line. Named
/// pipes and devices are refused here, too.
pub fn read_users(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    require_regular(&file)?;
    read_whole(file, LARGEST_FILE)
}

/// Reads a file that the user names and that may be in the worktree at `top`.
pub fn read_named(top: Option<&Path>, file: &Path) -> io::Result<Vec<u8>> {
    match top.and_then(|top| Some((top, file.strip_prefix(top).ok()?))) {
        Some((top, path)) => read_beneath(top, path),
        None => read_users(file),
    }
}

/// Reads a file of a worktree that may be a link to another file of it, such as a tracked plan. Links are resolved
/// here, and never out of `top`.
pub fn read_beneath(top: &Path, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut path = plain(path.as_ref())?;
    for _ in 0..LINKS {
        match follow_one(top, &path)? {
            Some(next) => path = next,
            None => return read(&top.join(path)),
        }
    }
    Err(linked(&top.join(path)))
}

/// The target of the first link in a path; `None` if there is none.
fn follow_one(top: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let mut done = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        let here = top.join(&done).join(part);
        if !here.symlink_metadata()?.is_symlink() {
            done.push(part);
            continue;
        }
        let (folder, name) = parent_of(&here, MissingParent::Fail)?;
        let target = readlinkat(&folder, name, Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        return plain(&done.join(target).join(rest.as_path())).map(Some);
    }
    Ok(None)
}

/// A relative path without `.` and `..`; an error if it leads out of its start or is absolute.
fn plain(path: &Path) -> io::Result<PathBuf> {
    let outside = || io::Error::new(io::ErrorKind::InvalidInput, "it leads out of the repository");
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir if clean.pop() => {}
            _ => return Err(outside()),
        }
    }
    Ok(clean)
}

fn read_whole(file: File, most: u64) -> io::Result<Vec<u8>> {
    // With room for the file and one more byte, one read returns the content and the next one the end.
    let size = file.metadata().map_or(0, |found| found.len().min(most));
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Replaces a file by `bytes`, and creates missing folders. A reader sees the old file or the new one. A regular file
/// keeps its mode; anything else (a link, a named pipe) is replaced.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Create)?;
    let known = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let known = known.filter(|known| FileType::from_raw_mode(known.st_mode) == FileType::RegularFile);
    let draft = DraftFile::begin(&folder)?;
    draft.fill(bytes, known.as_ref())?;
    Ok(draft.publish(name)?)
}

/// Like [`write`], but the file gets this mode.
pub fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Create)?;
    let draft = DraftFile::begin(&folder)?;
    draft.fill(bytes, None)?;
    draft.set_mode(mode)?;
    Ok(draft.publish(name)?)
}

/// Writes a file that must not exist yet, in place: a concurrent reader may see a part of it. Returns its metadata.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<Metadata> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Create)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OPEN_FLAGS;
    let mut file = File::from(openat(&folder, name, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)?;
    file.metadata()
}

/// Copies a regular file with its mode, and returns the open copy. An existing file is replaced.
pub fn copy(from: &Path, to: &Path) -> io::Result<File> {
    let _noted = note(to);
    let mut original = open(from)?;
    let mode = fstat(&original)?.st_mode & 0o777;
    let (folder, name) = parent_of(to, MissingParent::Create)?;
    let draft = DraftFile::begin(&folder)?;
    io::copy(&mut original, &mut draft.file())?;
    draft.set_mode(mode)?;
    let copied = draft.file().try_clone()?;
    draft.publish(name)?;
    Ok(copied)
}

/// Copies a regular file with its mode if it has this `stamp` before and after. Otherwise returns false, and there is
/// no copy.
pub fn copy_unchanged(from: &Path, to: &Path, stamp: &ChangeStamp) -> io::Result<bool> {
    let Ok(mut original) = open(from) else { return Ok(false) };
    // The open file is checked, not the path, because a parent folder could be replaced for a moment.
    let before = original.metadata()?;
    if ChangeStamp::of(&before) != *stamp {
        return Ok(false);
    }
    let _noted = note(to);
    let (folder, name) = parent_of(to, MissingParent::Create)?;
    let draft = DraftFile::begin(&folder)?;
    io::copy(&mut original, &mut draft.file())?;
    if ChangeStamp::of(&original.metadata()?) != *stamp {
        return Ok(false);
    }
    draft.set_mode(before.mode() & 0o777)?;
    draft.publish(name)?;
    Ok(true)
}

/// Sets the mode of a regular file.
pub fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let _noted = note(path);
    Ok(fchmod(open(path)?, Mode::from_raw_mode(mode & 0o7777))?)
}

/// Opens the folders between `top` and `path` that a child process has closed. What fails here fails again when the path is
/// written.
pub fn allow_writing_around(top: &Path, path: &Path) {
    let mut folders: Vec<&Path> =
        path.ancestors().skip(1).take_while(|folder| folder.starts_with(top)).collect();
    folders.reverse();
    for folder in folders {
        let found = folder.symlink_metadata();
        if found.is_ok_and(|found| found.is_dir() && found.mode() & 0o300 != 0o300) {
            let _ = allow_owner(folder);
        }
    }
}

/// Opens all folders below `top` that a child process has closed. Returns whether there were any. Links are not followed.
#[must_use]
pub fn allow_writing_below(top: &Path) -> bool {
    let mut has_closed = false;
    let mut open = vec![top.to_owned()];
    while let Some(folder) = open.pop() {
        let found = folder.symlink_metadata();
        if found.is_ok_and(|found| found.is_dir() && found.mode() & 0o700 != 0o700) {
            has_closed |= allow_owner(&folder).is_ok();
        }
        let inner = super::list_kinds(&folder).unwrap_or_default().into_iter();
        open.extend(inner.filter(|entry| entry.kind == FileKind::Folder).map(|entry| entry.path));
    }
    has_closed
}

/// Gives the owner of a folder all permissions for it. Links are not followed. Systems other than Linux can do this
/// only if the folder is readable.
pub fn allow_owner(folder: &Path) -> io::Result<()> {
    let opened = open_place(folder)?;
    let mode = Mode::from_raw_mode((fstat(&opened)?.st_mode & 0o7777) | 0o700);
    match fchmod(&opened, mode) {
        // A handle that was opened as a mere path can be used by its name only.
        Err(Errno::BADF) => Ok(chmod(format!("/proc/self/fd/{}", opened.as_raw_fd()), mode)?),
        done => Ok(done?),
    }
}

/// Whether a file has another name elsewhere.
#[must_use]
pub fn is_hard_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.nlink() > 1)
}

/// Replaces a hard link by a copy of its file.
pub fn separate(path: &Path) -> io::Result<()> {
    let mode = path.symlink_metadata()?.mode() & 0o7777;
    write_with_mode(path, &read(path)?, mode)
}

/// Creates a hard link; the new name must be free.
pub fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    let _from_noted = note(from);
    let _to_noted = note(to);
    let ((folder, name), (to_folder, to_name)) =
        (parent_of(from, MissingParent::Fail)?, parent_of(to, MissingParent::Fail)?);
    Ok(linkat(folder, name, to_folder, to_name, AtFlags::empty())?)
}

/// Creates hard links in the folder `to`, which is created if needed, to the files of the folder `from` whose names are
/// `wanted`. Names that exist already are left out, and so are files that cannot be linked. Both folders are opened
/// once, because there may be thousands of files.
pub fn link_files(from: &Path, to: &Path, wanted: impl Fn(&OsStr) -> bool) -> io::Result<()> {
    let _noted = note(to);
    let (from, to) = (open_folder(from)?, enter(to, MissingParent::Create)?);
    for entry in Dir::read_from(&from)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if wanted(name) && matches!(entry.file_type(), FileType::RegularFile | FileType::Unknown) {
            let _ = linkat(&from, name, &to, name, AtFlags::empty());
        }
    }
    Ok(())
}

/// Creates a symbolic link; the name must be free.
pub fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    let _noted = note(at);
    let (folder, name) = parent_of(at, MissingParent::Fail)?;
    Ok(symlinkat(target, folder, name)?)
}

/// Moves a file, folder or link, and creates the folders of the new path. Links are not followed.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let _from_noted = note(from);
    let _to_noted = note(to);
    let ((folder, name), (to_folder, to_name)) =
        (parent_of(from, MissingParent::Fail)?, parent_of(to, MissingParent::Create)?);
    Ok(renameat(folder, name, to_folder, to_name)?)
}

/// Removes a file or link, but no folder. Links are not followed.
pub fn remove(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Fail)?;
    // A process that is blocked on a named pipe would wait forever after its name is gone. Opening both ends wakes it,
    // and it finds no data.
    let is_queue = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo);
    let _ends = is_queue.then(|| openat(&folder, name, OFlags::RDWR | OPEN_FLAGS, Mode::empty()));
    Ok(unlinkat(folder, name, AtFlags::empty())?)
}

/// Removes an empty folder.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Fail)?;
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Creates a folder, which must not exist.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Create)?;
    Ok(mkdirat(folder, name, Mode::from_raw_mode(0o777))?)
}

/// Creates a folder and its parents, if they are missing.
pub fn make_folders(path: &Path) -> io::Result<()> {
    // Nearly always they exist, and nothing has to be done.
    if enter(path, MissingParent::Fail).is_ok() {
        return Ok(());
    }
    let _noted = note(path);
    enter(path, MissingParent::Create).map(drop)
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its full path.
    pub path: PathBuf,
    /// Its kind; links are not followed.
    pub kind: FileKind,
}
