//! Files by their paths: reading, writing, moving and removing them.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::{
            ffi::OsStringExt,
            fs::{MetadataExt, OpenOptionsExt},
        },
    },
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fstat, linkat, mkdirat, openat, readlinkat, renameat, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::{
    draft::DraftFile,
    journal::note,
    tree::{ChangeStamp, FileKind, kind_of},
    walk::{MissingParent, enter, linked, parent_of},
};

/// The logs that this process made: their disk, their number there and their name.
static LOGS: Mutex<BTreeSet<(u64, u64, Option<OsString>)>> = Mutex::new(BTreeSet::new());

/// Nothing that we read as a whole is larger: notes, plans, configuration, hooks.
const LARGEST: u64 = 64 * 1024 * 1024;

/// So many links lead from one file to the next at most.
const LINKS: usize = 16;

/// Without following a link, without waiting, and without making a terminal ours.
const QUIET: OFlags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens a regular file to be read.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::RDONLY, MissingParent::Refused)
}

/// Opens a file to be read and written, and makes it with its folders where it is missing. For locks.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    let _noted = note(path);
    open_with(path, OFlags::RDWR | OFlags::CREATE, MissingParent::Made)
}

/// A log with its folders. What is in it stays. Logs lie in the worktree, where anybody can put something in their way: a
/// link, a hard link or a queue there is taken away, and what it led to is left alone.
pub fn open_log(path: &Path) -> io::Result<File> {
    let log = open_log_file(path)?;
    let found = log.metadata()?;
    // One that somebody had filled before is theirs.
    if found.len() == 0 {
        let log = (found.dev(), found.ino(), path.file_name().map(OsStr::to_owned));
        LOGS.lock().unwrap_or_else(PoisonError::into_inner).insert(log);
    }
    Ok(log)
}

/// Whether this file is a log that this process made.
#[must_use]
pub fn is_own_log(path: &Path, stamp: &ChangeStamp) -> bool {
    let log = (stamp.device, stamp.inode, path.file_name().map(OsStr::to_owned));
    LOGS.lock().unwrap_or_else(PoisonError::into_inner).contains(&log)
}

fn open_log_file(path: &Path) -> io::Result<File> {
    let _noted = note(path);
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
    let refused = match open_with(path, flags, MissingParent::Made) {
        // A second name of a file that may lie anywhere.
        Ok(file) if fstat(&file)?.st_nlink > 1 => {
            return remove(path).and_then(|()| open_with(path, flags, MissingParent::Made));
        }
        Err(error) if [io::ErrorKind::InvalidInput, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
            error
        }
        opened => return opened,
    };
    let is_in_the_way = |path: &&Path| matches!(kind_of(path), Some(FileKind::Link | FileKind::Special));
    match path.ancestors().find(is_in_the_way) {
        Some(obstacle) => remove(obstacle).and_then(|()| open_with(path, flags, MissingParent::Made)),
        None => Err(refused),
    }
}

fn open_with(path: &Path, flags: OFlags, missing: MissingParent) -> io::Result<File> {
    let (folder, name) = parent_of(path, missing)?;
    let opened = match openat(&folder, name, flags | QUIET, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP | Errno::MLINK) => return Err(linked(path)),
        // A queue without a reader, or a socket: neither can be written to without waiting.
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

/// All of a file.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, LARGEST)
}

/// All of a file that may be larger than others.
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read_whole(open(path)?, most)
}

/// All of a file, as text.
pub fn read_text(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

/// All of a file that the user names, wherever it is and whatever links lead to it: their own configuration, or what
/// stands on a command line. A queue or a device is refused there too.
pub fn read_users(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    require_regular(&file)?;
    read_whole(file, LARGEST)
}

/// All of a file that the user names, which may be one of the worktree at `top`.
pub fn read_named(top: Option<&Path>, file: &Path) -> io::Result<Vec<u8>> {
    match top.and_then(|top| Some((top, file.strip_prefix(top).ok()?))) {
        Some((top, path)) => read_beneath(top, path),
        None => read_users(file),
    }
}

/// All of a file of a worktree that may be a link to another file of it, such as a tracked plan. Links are followed by
/// hand, and never out of `top`.
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

/// Where the first link on the way leads; `None` if there is none.
fn follow_one(top: &Path, path: &Path) -> io::Result<Option<PathBuf>> {
    let mut done = PathBuf::new();
    let mut rest = path.components();
    while let Some(part) = rest.next() {
        let here = top.join(&done).join(part);
        if !here.symlink_metadata()?.is_symlink() {
            done.push(part);
            continue;
        }
        let (folder, name) = parent_of(&here, MissingParent::Refused)?;
        let target = readlinkat(&folder, name, Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        return plain(&done.join(target).join(rest.as_path())).map(Some);
    }
    Ok(None)
}

/// A relative path without `.` and `..`; an error if it leads upwards out of its beginning, or begins elsewhere.
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
    // With room for all of it and for one byte more, one read gives the file and the next its end.
    let size = file.metadata().map_or(0, |found| found.len().min(most));
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Makes `bytes` the content of a file, with the folders that lead to it. Whoever reads meanwhile finds the old file or the
/// new one. A regular file keeps its mode; whatever else is in its place (a link, a queue) is replaced.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Made)?;
    let known = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    let known = known.filter(|known| FileType::from_raw_mode(known.st_mode) == FileType::RegularFile);
    let draft = DraftFile::begin(&folder)?;
    draft.fill(bytes, known.as_ref())?;
    Ok(draft.publish(name)?)
}

/// The same with this mode.
pub fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Made)?;
    let draft = DraftFile::begin(&folder)?;
    draft.fill(bytes, None)?;
    draft.set_mode(mode)?;
    Ok(draft.publish(name)?)
}

/// Writes a file that must not be there yet, in place: what is read before it is complete is not complete. What the file
/// system says of it then is returned.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<Metadata> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Made)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | QUIET;
    let mut file = File::from(openat(&folder, name, flags, Mode::from_raw_mode(0o666))?);
    file.write_all(bytes)?;
    file.metadata()
}

/// Copies a regular file with its mode, and gives the copy to be changed further. It takes the place of what is there.
pub fn copy(from: &Path, to: &Path) -> io::Result<File> {
    let _noted = note(to);
    let mut original = open(from)?;
    let mode = fstat(&original)?.st_mode & 0o777;
    let (folder, name) = parent_of(to, MissingParent::Made)?;
    let draft = DraftFile::begin(&folder)?;
    io::copy(&mut original, &mut draft.file())?;
    draft.set_mode(mode)?;
    let copied = draft.file().try_clone()?;
    draft.publish(name)?;
    Ok(copied)
}

/// Copies a regular file with its mode if it is, and stays, the one that `stamp` is of. False if it is not; then there is
/// no copy.
pub fn copy_unchanged(from: &Path, to: &Path, stamp: &ChangeStamp) -> io::Result<bool> {
    let Ok(mut original) = open(from) else { return Ok(false) };
    // The opened file is asked, not the path: a folder on the way could be another one for a moment.
    let before = original.metadata()?;
    if ChangeStamp::of(&before) != *stamp {
        return Ok(false);
    }
    let _noted = note(to);
    let (folder, name) = parent_of(to, MissingParent::Made)?;
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

/// Gives a file a second name, which must be free.
pub fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    let _from_noted = note(from);
    let _to_noted = note(to);
    let ((folder, name), (to_folder, to_name)) =
        (parent_of(from, MissingParent::Refused)?, parent_of(to, MissingParent::Refused)?);
    Ok(linkat(folder, name, to_folder, to_name, AtFlags::empty())?)
}

/// Makes a link at a name that must be free.
pub fn symlink(target: &Path, at: &Path) -> io::Result<()> {
    let _noted = note(at);
    let (folder, name) = parent_of(at, MissingParent::Refused)?;
    Ok(symlinkat(target, folder, name)?)
}

/// Moves whatever has this name to another one, with the folders that lead there. A link is moved as a link.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let _from_noted = note(from);
    let _to_noted = note(to);
    let ((folder, name), (to_folder, to_name)) =
        (parent_of(from, MissingParent::Refused)?, parent_of(to, MissingParent::Made)?);
    Ok(renameat(folder, name, to_folder, to_name)?)
}

/// Removes whatever has this name, unless it is a folder. A link is removed as a link.
pub fn remove(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Refused)?;
    // Whoever waits at a queue would wait for ever once it has no name. To open both its ends lets them go on, to find
    // that nothing comes.
    let is_queue = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo);
    let _ends = is_queue.then(|| openat(&folder, name, OFlags::RDWR | QUIET, Mode::empty()));
    Ok(unlinkat(folder, name, AtFlags::empty())?)
}

/// Removes an empty folder.
pub fn remove_folder(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Refused)?;
    Ok(unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}

/// Makes a folder, which must not be there.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let _noted = note(path);
    let (folder, name) = parent_of(path, MissingParent::Made)?;
    Ok(mkdirat(folder, name, Mode::from_raw_mode(0o777))?)
}

/// Makes a folder and those that lead to it, where they are missing.
pub fn make_folders(path: &Path) -> io::Result<()> {
    // Nearly always they are there, and nothing is done.
    if enter(path, MissingParent::Refused).is_ok() {
        return Ok(());
    }
    let _noted = note(path);
    enter(path, MissingParent::Made).map(drop)
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its whole path.
    pub path: PathBuf,
    /// What it is; links are not followed.
    pub kind: FileKind,
}
