//! Applies a plan. At no moment is a hook of others missing, or half written.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use arborist_core::{failure::Failure, git::Repository, safe_files};

use super::plan::HookChange;

pub(super) fn apply(step: &HookChange, repository: &Repository) -> Result<(), Failure> {
    let config = || repository.act("config").arg("--local");
    let (path, done) = match step {
        HookChange::Set { key, value } => return Ok(config().args([key, value]).stdout().map(drop)?),
        HookChange::Unset { key } => return Ok(config().args(["--unset-all", key]).stdout().map(drop)?),
        HookChange::SetAside { from, to } => (to, set_aside(&within(from), &within(to))),
        HookChange::Restore { from, to } => (to, safe_files::rename(&within(from), &within(to))),
        HookChange::Place { path, bytes } => (path, place(&within(path), bytes)),
        HookChange::Edit { path, bytes } => (path, edit(&within(path), bytes)),
        HookChange::Remove { path } => (path, safe_files::remove(&within(path))),
    };
    Ok(done.with_context(|| format!("could not change '{}'", path.display()))?)
}

/// The hooks directory may be a link, because the user chose it. Links inside of it are not followed.
fn within(path: &Path) -> PathBuf {
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => safe_files::resolved(folder).join(name),
        _ => path.to_owned(),
    }
}

/// Gives a hook a second name, until ours takes the first one. It never replaces a file: of two concurrent
/// installations, the later one would otherwise replace the kept hook by our script.
fn set_aside(from: &Path, to: &Path) -> io::Result<()> {
    match safe_files::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => match to.symlink_metadata() {
            Err(_) => safe_files::rename(from, to),
            Ok(_) => Err(error),
        },
        Err(_) if safe_files::read(from)? == safe_files::read(to)? => Ok(()),
        linked => linked,
    }
}

/// Replaces the file atomically. If it is a link, the link itself is replaced.
fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    safe_files::write_with_mode(path, bytes, 0o755)
}

/// Edits the file. It keeps its permissions, and a link is followed: the user asked for this, and the file is theirs.
fn edit(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.canonicalize() {
        Ok(target) => safe_files::write(&target, bytes),
        Err(_) => place(path, bytes),
    }
}
