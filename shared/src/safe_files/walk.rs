//! The way to a file: every folder on it is a folder, and none is a link.

use std::{
    ffi::OsStr,
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
};

/// A folder that is only passed through. It need not be readable, so it is opened as a place where that can be had.
#[cfg(target_os = "linux")]
const PASSED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PASSED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A folder whose names are read.
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What becomes of folders on the way that are not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingParent {
    /// They are made, but for a git directory.
    Made,
    /// It is an error.
    Refused,
}

/// The folder that holds `path`, and its last name.
pub(super) fn parent_of(path: &Path, missing: MissingParent) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((enter(folder.unwrap_or(Path::new(".")), missing)?, name))
}

/// Folders that the user had linked before anything else ran, and where they led then.
static LINKED: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

/// Remembers where a folder of the user's leads that may be reached through links, such as one for logs on another disk.
/// Call this before anybody else is at work: from then on that place is meant, wherever the links lead.
pub fn allow_linked(folder: &Path) {
    let real = resolved(folder);
    let mut known = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    if known.iter().all(|(linked, _)| linked != folder) {
        known.push((folder.to_owned(), real));
    }
}

/// The folders that were made known by [`allow_linked`] and were behind no link: nobody has a reason to link them now.
#[must_use]
pub fn plain_folders() -> Vec<PathBuf> {
    let known = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().filter(|(folder, real)| folder == real).map(|(folder, _)| folder.clone()).collect()
}

/// The same folder as the user meant it, if that was behind a link.
fn as_allowed(folder: &Path) -> Option<PathBuf> {
    let known = LINKED.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().find_map(|(linked, real)| Some(real.join(folder.strip_prefix(linked).ok()?)))
}

/// A folder, for what is to be done in it.
pub(super) fn enter(folder: &Path, missing: MissingParent) -> io::Result<OwnedFd> {
    match as_allowed(folder) {
        Some(meant) => enter_plain(&meant, missing),
        None => enter_plain(folder, missing),
    }
}

fn enter_plain(folder: &Path, missing: MissingParent) -> io::Result<OwnedFd> {
    match open_at_once(folder, PASSED) {
        Ok(opened) => return Ok(opened),
        Err(Errno::NOENT) if missing == MissingParent::Made => {}
        Err(Errno::LOOP | Errno::MLINK) => return Err(linked(folder)),
        Err(errno) if is_unable(errno) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut here = openat(CWD, if folder.is_absolute() { "/" } else { "." }, PASSED, Mode::empty())?;
    for part in folder.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir => return Err(io::ErrorKind::InvalidInput.into()),
            _ => continue,
        };
        let next = openat(&here, name, PASSED, Mode::empty());
        here = match next {
            Err(Errno::NOENT) if missing == MissingParent::Made && !is_git_directory(folder, name) => {
                match mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => openat(&here, name, PASSED, Mode::empty()),
                    Err(errno) => Err(errno),
                }
            }
            next => next,
        }
        .map_err(|errno| explained(errno, folder))?;
    }
    Ok(here)
}

/// A folder that is there, as a place that can be named to the system. It need not be readable.
pub fn open_place(folder: &Path) -> io::Result<OwnedFd> {
    enter(folder, MissingParent::Refused)
}

/// A folder that is there, to be listed.
pub(super) fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let meant = as_allowed(folder);
    let folder = meant.as_deref().unwrap_or(folder);
    match open_at_once(folder, LISTED) {
        Err(errno) if is_unable(errno) => {
            Ok(openat(enter_plain(folder, MissingParent::Refused)?, ".", LISTED, Mode::empty())?)
        }
        opened => opened.map_err(|errno| explained(errno, folder)),
    }
}

/// Folders of ours in `arborist` in a git directory.
const OURS: [&str; 5] = ["cache", "doing", "homes", "locks", "logs"];

/// Whether the folder `name` on the way to `folder` is a git directory: by its name, or by what of ours it would hold.
fn is_git_directory(folder: &Path, name: &OsStr) -> bool {
    let names: Vec<&OsStr> = folder.components().map(Component::as_os_str).collect();
    let holds_ours = |three: &[&OsStr]| {
        three[0] == name && three[1] == "arborist" && OURS.iter().any(|ours| three[2] == *ours)
    };
    name == ".git" || names.windows(3).any(holds_ours)
}

/// One call where the system has it: each folder costs a microsecond, and this is asked a lot.
#[cfg(target_os = "linux")]
fn open_at_once(folder: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_folder: &Path, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Old kernels do not know the call, and some sandboxes refuse it.
fn is_unable(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN)
}

fn explained(errno: Errno, folder: &Path) -> io::Error {
    // A link where a folder is asked for: systems do not agree on the name for it.
    let is_link = matches!(errno, Errno::LOOP | Errno::MLINK)
        || (errno == Errno::NOTDIR && folder.ancestors().any(Path::is_symlink));
    if is_link { linked(folder) } else { errno.into() }
}

/// Why a link is not followed.
pub(super) fn linked(path: &Path) -> io::Error {
    let link = path.ancestors().find(|path| path.is_symlink()).unwrap_or(path);
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("'{}' is a link, and links are not followed here", link.display()),
    )
}

/// The path with links resolved, as far as it exists. For folders that the user names, before anybody else can change them.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}
