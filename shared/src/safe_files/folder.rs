//! A folder that cannot be left: an agent's tools read and write files in it by name, and can reach neither files
//! outside of it nor git's own files in it.
//!
//! A path is walked name by name from a descriptor of the top, and no link is followed. So concurrent changes between a
//! check and its use do not matter: the system never resolves a whole path.

use std::{
    borrow::Cow,
    fs::File,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat},
    io::Errno,
};

use super::{path::InnerPath, walk::LIST_FLAGS};

/// Why a file could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{path}' {why}")]
pub struct EnclosureError {
    path: String,
    why: Cow<'static, str>,
}

impl EnclosureError {
    pub(super) fn new(path: &(impl ToString + ?Sized), why: impl Into<Cow<'static, str>>) -> Self {
        Self { path: path.to_string(), why: why.into() }
    }

    fn system(path: &InnerPath, errno: Errno) -> Self {
        let error = std::io::Error::from(errno);
        Self::new(path, format!("could not be reached: {error}"))
    }
}

/// What to do about missing folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingFolder {
    /// Create them.
    Create,
    /// The file is not there.
    Fail,
}

/// A folder that cannot be left.
#[derive(Debug)]
pub struct Enclosure {
    top: OwnedFd,
    closed: Vec<InnerPath>,
}

impl Enclosure {
    /// Opens the folder at `top`.
    pub fn open(top: &Path) -> std::io::Result<Self> {
        let top = openat(CWD, top, LIST_FLAGS.difference(OFlags::NOFOLLOW), Mode::empty())?;
        Ok(Self { top, closed: Vec::new() })
    }

    /// Excludes everything in `folder`.
    #[must_use]
    pub fn without(mut self, folder: InnerPath) -> Self {
        self.closed.push(folder);
        self
    }

    /// Opens a file for reading.
    pub fn read(&self, path: &InnerPath) -> Result<File, EnclosureError> {
        let folder = self.folder_of(path, MissingFolder::Fail)?;
        require_file(&folder, path)?.ok_or_else(|| missing(path))?;
        // Does not block on a named pipe that replaced the file meanwhile.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&folder, path.leaf(), flags, Mode::empty())
            .map_err(|errno| blamed(&folder, path, errno))?;
        let found = fstat(&file).map_err(|errno| EnclosureError::system(path, errno))?;
        require_regular(&found, path)?;
        Ok(File::from(file))
    }

    /// Opens the folder of a file.
    pub(super) fn folder_of(
        &self,
        path: &InnerPath,
        missing: MissingFolder,
    ) -> Result<OwnedFd, EnclosureError> {
        if self.closed.iter().any(|closed| path.is_below(closed)) {
            return Err(EnclosureError::new(path, "belongs to the hooks of git"));
        }
        let mut folder =
            self.top.try_clone().map_err(|error| EnclosureError::new(path, error.to_string()))?;
        for name in path.folders() {
            folder =
                enter(&folder, name, missing).map_err(|errno| blamed_folder(&folder, name, path, errno))?;
        }
        Ok(folder)
    }
}

fn enter(folder: &OwnedFd, name: &str, missing: MissingFolder) -> Result<OwnedFd, Errno> {
    match openat(folder, name, LIST_FLAGS, Mode::empty()) {
        Err(Errno::NOENT) if missing == MissingFolder::Create => {
            match rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => openat(folder, name, LIST_FLAGS, Mode::empty()),
                Err(errno) => Err(errno),
            }
        }
        entered => entered,
    }
}

/// The metadata of a regular file; `None` if nothing exists.
pub(super) fn require_file(folder: &OwnedFd, path: &InnerPath) -> Result<Option<Stat>, EnclosureError> {
    match statat(folder, path.leaf(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if kind(&found) == FileType::Symlink => Err(link(folder, path.leaf(), path)),
        Ok(found) => require_regular(&found, path).map(|()| Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(EnclosureError::system(path, errno)),
    }
}

fn require_regular(found: &Stat, path: &InnerPath) -> Result<(), EnclosureError> {
    match kind(found) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(EnclosureError::new(path, "is a folder")),
        _ => Err(EnclosureError::new(path, "is not a regular file")),
    }
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn missing(path: &InnerPath) -> EnclosureError {
    EnclosureError::new(path, "does not exist")
}

/// The reason why a file that existed a moment ago could not be opened.
fn blamed(folder: &OwnedFd, path: &InnerPath, errno: Errno) -> EnclosureError {
    match errno {
        Errno::NOENT => missing(path),
        Errno::LOOP | Errno::MLINK => link(folder, path.leaf(), path),
        other => EnclosureError::system(path, other),
    }
}

/// Systems use different error codes for a link in the place of a folder, so it is inspected.
fn blamed_folder(folder: &OwnedFd, name: &str, path: &InnerPath, errno: Errno) -> EnclosureError {
    let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok();
    match (found.as_ref().map(kind), errno) {
        (Some(FileType::Symlink), _) => link(folder, name, path),
        (None, Errno::NOENT) => missing(path),
        (Some(FileType::Directory) | None, errno) => EnclosureError::system(path, errno),
        (Some(_), _) => EnclosureError::new(path, format!("is below '{name}', which is not a folder")),
    }
}

/// The error names the target of the link, so that the caller can use that name instead.
fn link(folder: impl AsFd, name: &str, path: &InnerPath) -> EnclosureError {
    let target = readlinkat(folder, name, Vec::new()).unwrap_or_default();
    let target = target.to_string_lossy();
    EnclosureError::new(path, format!("is not read or written through the link '{name}' to '{target}'"))
}
