//! Decides what to do with a file, from what exists at its path, and does it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use arborist_core::failure::{Exit, Failure};

use super::{
    assets::{Asset, is_ours},
    places::InstallFolder,
};

/// What exists at the path of a file of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstalledFile {
    Nothing,
    /// Our file, of this version.
    Same,
    /// Our file, of another version or edited.
    Other,
    /// Another file, with the reason.
    Foreign(&'static str),
}

/// Whether files of others may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overwrite {
    OursOnly,
    Forced,
}

/// What to do with one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileChange {
    Write,
    Remove,
    /// Nothing: it is as it should be.
    Keep,
    /// Nothing, although something was asked for.
    Refuse(&'static str),
}

/// One file and what is to be done with it.
#[derive(Debug)]
pub(super) struct InstallStep {
    pub(super) file: PathBuf,
    pub(super) asset: &'static Asset,
    pub(super) change: FileChange,
}

const CHANGED: &str = "it was changed after it was installed, or comes from another version";

impl InstalledFile {
    pub(super) fn on_install(self, consent: Overwrite) -> FileChange {
        match (self, consent) {
            (Self::Same, _) => FileChange::Keep,
            (Self::Foreign(why), Overwrite::OursOnly) => FileChange::Refuse(why),
            _ => FileChange::Write,
        }
    }

    pub(super) fn on_uninstall(self, consent: Overwrite) -> FileChange {
        match (self, consent) {
            (Self::Same, _) | (Self::Other, Overwrite::Forced) => FileChange::Remove,
            (Self::Other, Overwrite::OursOnly) => FileChange::Refuse(CHANGED),
            (Self::Nothing | Self::Foreign(_), _) => FileChange::Keep,
        }
    }

    /// Examines the file without following a symbolic link at its path, or one that leads out of its root.
    pub(super) fn look(place: &InstallFolder, asset: &Asset) -> Result<Self, Failure> {
        let file = place.dir.join(asset.name);
        if leads_out(place) {
            return Ok(Self::Foreign("a symbolic link leads out of the folder"));
        }
        let meta = match file.symlink_metadata() {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(error) => return Err(failed("read", &file, &error)),
        };
        if !meta.is_file() {
            return Ok(Self::Foreign("it is not a plain file"));
        }
        let content = fs::read(&file).map_err(|error| failed("read", &file, &error))?;
        Ok(match content {
            content if content == asset.text.as_bytes() => Self::Same,
            content if is_ours(&content) => Self::Other,
            _ => Self::Foreign("git arborist did not write it"),
        })
    }
}

impl InstallStep {
    pub(super) fn apply(&self) -> Result<(), Failure> {
        match self.change {
            FileChange::Write => {
                write(&self.file, self.asset.text).map_err(|error| failed("write", &self.file, &error))
            }
            FileChange::Remove => {
                fs::remove_file(&self.file).map_err(|error| failed("remove", &self.file, &error))
            }
            FileChange::Keep | FileChange::Refuse(_) => Ok(()),
        }
    }
}

/// Whether the existing part of the directory is outside of its root.
fn leads_out(place: &InstallFolder) -> bool {
    let Ok(root) = place.root.canonicalize() else { return false };
    let there = place.dir.ancestors().find_map(|dir| dir.canonicalize().ok());
    there.is_some_and(|dir| !dir.starts_with(root))
}

/// Writes a temporary file and renames it, so that no reader sees half of it and a link is replaced, not followed.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    fs::create_dir_all(dir)?;
    let draft = dir.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = fs::write(&draft, text).and_then(|()| fs::rename(&draft, file));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

fn failed(what: &str, file: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Exit::Fatal, format!("could not {what} '{}': {error}", file.display()));
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            failure.hint("choose a folder that you can write to with --prefix <dir>, or run the command as the owner of this one")
        }
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_overwrites_only_our_files_and_uninstall_removes_only_unchanged_ones() {
        use FileChange::{Keep, Refuse, Remove, Write};
        use Overwrite::{Forced, OursOnly};
        let foreign = InstalledFile::Foreign("why");
        for (found, consent, install, uninstall) in [
            (InstalledFile::Nothing, OursOnly, Write, Keep),
            (InstalledFile::Same, OursOnly, Keep, Remove),
            (InstalledFile::Other, OursOnly, Write, Refuse(CHANGED)),
            (InstalledFile::Other, Forced, Write, Remove),
            (foreign, OursOnly, Refuse("why"), Keep),
            (foreign, Forced, Write, Keep),
        ] {
            assert_eq!(found.on_install(consent), install, "{found:?}");
            assert_eq!(found.on_uninstall(consent), uninstall, "{found:?}");
        }
    }
}
