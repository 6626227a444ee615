//! Opens the parent folders of a path, none of which may be a link.

use std::{
    ffi::OsStr,
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Mutex,
};

use rustix::{
    fs::{CWD, Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use crate::mutex::MutexExt;

/// Flags for a folder on the path. It need not be readable, so it is opened as a mere path if the system can do that.
#[cfg(target_os = "linux")]
const PATH_FLAGS: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const PATH_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Flags for a folder that is listed.
pub(super) const LIST_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What to do about missing parent folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingParent {
    /// Create them, but never a git directory.
    Create,
    /// It is an error.
    Fail,
}

/// Opens the parent folder of `path`, and returns the last name.
pub(super) fn parent_of(path: &Path, missing: MissingParent) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok((enter(folder.unwrap_or(Path::new(".")), missing)?, name))
}

/// Folders that the user had linked before any child ran, and their targets at that time.
static LINKED: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

/// Remembers the target of a folder that may be reached through links, such as a folder for logs on another disk. Call
/// this before any child runs: from then on this target is used, whatever the links are changed to.
pub fn allow_linked(folder: &Path) {
    let real = resolved(folder);
    let mut known = LINKED.hold();
    if known.iter().all(|(linked, _)| linked != folder) {
        known.push((folder.to_owned(), real));
    }
}

/// The folders that were passed to [`allow_linked`] and had no links, so that a link there now is not legitimate.
#[must_use]
pub fn plain_folders() -> Vec<PathBuf> {
    let known = LINKED.hold();
    known.iter().filter(|(folder, real)| folder == real).map(|(folder, _)| folder.clone()).collect()
}

/// The remembered target of a folder, if it was behind a link.
fn as_allowed(folder: &Path) -> Option<PathBuf> {
    let known = LINKED.hold();
    known.iter().find_map(|(linked, real)| Some(real.join(folder.strip_prefix(linked).ok()?)))
}

/// Opens a folder for operations in it.
pub(super) fn enter(folder: &Path, missing: MissingParent) -> io::Result<OwnedFd> {
    match as_allowed(folder) {
        Some(meant) => enter_plain(&meant, missing),
        None => enter_plain(folder, missing),
    }
}

fn enter_plain(folder: &Path, missing: MissingParent) -> io::Result<OwnedFd> {
    match open_at_once(folder, PATH_FLAGS) {
        Ok(opened) => return Ok(opened),
        Err(Errno::NOENT) if missing == MissingParent::Create => {}
        Err(Errno::LOOP | Errno::MLINK) => return Err(linked(folder)),
        // Each of the folders can be opened from its parent, however long the whole path is.
        Err(Errno::NAMETOOLONG) => {}
        Err(errno) if is_unable(errno) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut here = openat(CWD, if folder.is_absolute() { "/" } else { "." }, PATH_FLAGS, Mode::empty())?;
    for part in folder.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir => return Err(io::ErrorKind::InvalidInput.into()),
            _ => continue,
        };
        let next = openat(&here, name, PATH_FLAGS, Mode::empty());
        here = match next {
            Err(Errno::NOENT) if missing == MissingParent::Create && !is_git_directory(folder, name) => {
                match mkdirat(&here, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => openat(&here, name, PATH_FLAGS, Mode::empty()),
                    Err(errno) => Err(errno),
                }
            }
            next => next,
        }
        .map_err(|errno| explained(errno, folder))?;
    }
    Ok(here)
}

/// Opens an existing folder, which need not be readable, as a handle for system calls.
pub fn open_place(folder: &Path) -> io::Result<OwnedFd> {
    enter(folder, MissingParent::Fail)
}

/// Opens an existing folder for listing.
pub fn open_folder(folder: &Path) -> io::Result<OwnedFd> {
    let meant = as_allowed(folder);
    let folder = meant.as_deref().unwrap_or(folder);
    match open_at_once(folder, LIST_FLAGS) {
        Err(errno) if is_unable(errno) => {
            Ok(openat(enter_plain(folder, MissingParent::Fail)?, ".", LIST_FLAGS, Mode::empty())?)
        }
        opened => opened.map_err(|errno| explained(errno, folder)),
    }
}

/// Our folders below `arborist` in a git directory.
const OWN_FOLDERS: [&str; 6] = ["cache", "doing", "homes", "locks", "logs", "written"];

/// Whether the folder `name` in the path `folder` is a git directory: by its name, or by our folders that follow.
fn is_git_directory(folder: &Path, name: &OsStr) -> bool {
    let names: Vec<&OsStr> = folder.components().map(Component::as_os_str).collect();
    let holds_ours = |three: &[&OsStr]| {
        three[0] == name && three[1] == "arborist" && OWN_FOLDERS.iter().any(|ours| three[2] == *ours)
    };
    name == ".git" || names.windows(3).any(holds_ours)
}

/// Opens the whole path with one system call, if there is one: each folder costs a microsecond, and this is called a
/// lot.
#[cfg(target_os = "linux")]
fn open_at_once(folder: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};
    openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)
}

#[cfg(not(target_os = "linux"))]
fn open_at_once(_folder: &Path, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// Whether the call is not available: old kernels lack it, and some sandboxes refuse it.
fn is_unable(errno: Errno) -> bool {
    matches!(errno, Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::AGAIN)
}

fn explained(errno: Errno, folder: &Path) -> io::Error {
    // A link in the place of a folder: systems return different errors.
    let is_link = matches!(errno, Errno::LOOP | Errno::MLINK)
        || (errno == Errno::NOTDIR && folder.ancestors().any(Path::is_symlink));
    if is_link { linked(folder) } else { errno.into() }
}

/// The error about a link that is not followed.
pub(super) fn linked(path: &Path) -> io::Error {
    let link = path.ancestors().find(|path| path.is_symlink()).unwrap_or(path);
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("'{}' is a link, and links are not followed here", link.display()),
    )
}

/// The link through which a path below `top` leads out of it, if it does. A file that the repository tracks must not choose
/// which of the user's other files are read or written.
#[must_use]
pub fn find_link_out(top: &Path, path: &Path) -> Option<PathBuf> {
    if resolved(path).starts_with(resolved(top)) {
        return None;
    }
    let links = path.ancestors().take_while(|path| *path != top).filter(|path| path.is_symlink());
    Some(links.last().unwrap_or(path).to_owned())
}

/// Resolves links in a path, as far as it exists. For folders that the user names, before any child can change them.
#[must_use]
pub fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}
