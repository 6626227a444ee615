//! Replaces files atomically: a reader sees the old content or the new one.

use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    os::fd::OwnedFd,
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{AtFlags, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, openat, renameat, unlinkat},
    io::Errno,
};

use super::{
    folder::{Enclosure, EnclosureError, MissingFolder, require_file},
    path::InnerPath,
};

/// The prefix of draft files. A draft that a killed process left is ignored by git because of it.
const DRAFT: &str = ".arborist-draft-";

/// The effect of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The file is new.
    Created,
    /// The file replaced another one.
    Replaced,
}

impl Enclosure {
    /// The pattern of files that exist only during a write.
    pub const DRAFTS: &str = ".arborist-draft-*";

    /// Replaces a file by `bytes`, and creates missing folders. An existing file keeps its mode. The old file is not
    /// written to, so that its other hard links keep their content.
    pub fn write(&self, path: &InnerPath, bytes: &[u8]) -> Result<WriteOutcome, EnclosureError> {
        let folder = self.folder_of(path, MissingFolder::Create)?;
        let known = require_file(&folder, path)?;
        if known.as_ref().is_some_and(|known| known.st_mode & 0o222 == 0) {
            return Err(EnclosureError::new(path, "is read-only"));
        }
        let failed =
            |error: std::io::Error| EnclosureError::new(path, format!("could not be written: {error}"));
        let draft = DraftFile::begin(&folder).map_err(|errno| failed(errno.into()))?;
        draft.fill(bytes, known.as_ref()).map_err(failed)?;
        draft.publish(path.leaf()).map_err(|errno| failed(errno.into()))?;
        Ok(if known.is_some() { WriteOutcome::Replaced } else { WriteOutcome::Created })
    }
}

/// A file that does not have its final name yet. It is removed if it never gets it.
pub(super) struct DraftFile<'a> {
    folder: &'a OwnedFd,
    name: String,
    file: File,
    is_public: bool,
}

impl<'a> DraftFile<'a> {
    pub(super) fn begin(folder: &'a OwnedFd) -> Result<Self, Errno> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            let name = format!("{DRAFT}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            match openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
                Err(Errno::EXIST) => {}
                opened => return Ok(Self { folder, name, file: File::from(opened?), is_public: false }),
            }
        }
    }

    pub(super) fn fill(&self, bytes: &[u8], known: Option<&Stat>) -> std::io::Result<()> {
        (&self.file).write_all(bytes)?;
        let Some(known) = known else {
            return Ok(());
        };
        let own = fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (known.st_uid, known.st_gid) {
            // Only privileged users may change the owner; for others the file becomes theirs.
            let _ = fchown(&self.file, Some(Uid::from_raw(known.st_uid)), Some(Gid::from_raw(known.st_gid)));
        }
        fchmod(&self.file, Mode::from_raw_mode(known.st_mode & 0o777))?;
        Ok(())
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn set_mode(&self, mode: u32) -> std::io::Result<()> {
        Ok(fchmod(&self.file, Mode::from_raw_mode(mode & 0o7777))?)
    }

    pub(super) fn publish(mut self, leaf: impl AsRef<OsStr>) -> Result<(), Errno> {
        renameat(self.folder, &self.name, self.folder, leaf.as_ref())?;
        self.is_public = true;
        Ok(())
    }
}

impl Drop for DraftFile<'_> {
    fn drop(&mut self) {
        if !self.is_public {
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}
