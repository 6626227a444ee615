//! Carrying out a plan. At no moment is a hook of others without a name, or half written.

use std::{fs, io, os::unix::fs::PermissionsExt, path::Path};

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitCommand, Repository},
};

use super::{plan::Step, site::with_suffix};

pub(super) fn apply(step: &Step, repository: &Repository) -> Result<(), Failure> {
    let config = || GitCommand::acting("config", &repository.dir).arg("--local");
    let (path, done) = match step {
        Step::Set { key, value } => return Ok(config().args([key, value]).stdout().map(drop)?),
        Step::Unset { key } => return Ok(config().args(["--unset-all", key]).stdout().map(drop)?),
        Step::SetAside { from, to } => (to, set_aside(from, to)),
        Step::Restore { from, to } => (to, fs::rename(from, to)),
        Step::Place { path, bytes } => (path, place(path, bytes)),
        Step::Edit { path, bytes } => (path, edit(path, bytes)),
        Step::Remove { path } => (path, fs::remove_file(path)),
    };
    done.map_err(|error| Failure::new(Exit::Fatal, format!("could not change '{}': {error}", path.display())))
}

/// A second name for the hook, until ours takes the first. It never replaces a file: of two installations at
/// once, the later would otherwise put our script in the place of the hook that was kept.
fn set_aside(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => match to.symlink_metadata() {
            Err(_) => fs::rename(from, to),
            Ok(_) => Err(error),
        },
        Err(_) if fs::read(from)? == fs::read(to)? => Ok(()),
        linked => linked,
    }
}

/// Whatever stands there is replaced in one step; if it was a link, the link is.
fn place(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    replace(path, bytes, fs::Permissions::from_mode(0o755))
}

/// The file keeps its permissions, and a link is followed.
fn edit(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match path.canonicalize() {
        Ok(target) => replace(&target, bytes, fs::metadata(&target)?.permissions()),
        Err(_) => place(path, bytes),
    }
}

fn replace(path: &Path, bytes: &[u8], permissions: fs::Permissions) -> io::Result<()> {
    let scratch = with_suffix(path, &format!(".arborist-{}", std::process::id()));
    let written = fs::write(&scratch, bytes)
        .and_then(|()| fs::set_permissions(&scratch, permissions))
        .and_then(|()| fs::rename(&scratch, path));
    if written.is_err() {
        let _ = fs::remove_file(&scratch);
    }
    written
}
