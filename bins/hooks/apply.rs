//! Carrying out a plan.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use arborist_core::{
    failure::{Exit, Failure},
    git::{GitCommand, Repository},
};

use super::{plan::Step, site::with_suffix};

pub(super) fn apply(step: &Step, repository: &Repository) -> Result<(), Failure> {
    let config = || GitCommand::acting("config", &repository.dir).arg("--local");
    let failed = |path: &Path, error: &io::Error| {
        Failure::new(Exit::Fatal, format!("could not change '{}': {error}", path.display()))
    };
    match step {
        Step::Set { key, value } => config().args([key, value]).stdout().map(drop).map_err(Failure::from),
        Step::Unset { key } => config().args(["--unset-all", key]).stdout().map(drop).map_err(Failure::from),
        Step::Rename { from, to } => fs::rename(from, to).map_err(|error| failed(from, &error)),
        Step::Write { path, bytes } => write(path, bytes).map_err(|error| failed(path, &error)),
        Step::Remove { path } => fs::remove_file(path).map_err(|error| failed(path, &error)),
    }
}

/// Writes beside the file and renames, so that git never sees half a hook. A link is followed.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let target: PathBuf = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let permissions = match fs::metadata(&target) {
        Ok(found) => found.permissions(),
        Err(_) => fs::Permissions::from_mode(0o755),
    };
    let scratch = with_suffix(&target, ".arborist-new");
    fs::write(&scratch, bytes)?;
    fs::set_permissions(&scratch, permissions)?;
    fs::rename(&scratch, &target)
}
