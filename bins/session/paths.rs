//! Converts paths that a driver names to paths of the repository.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{Repository, TreeChange, plain_path},
    message::visible,
    name::Oid,
};

/// Reads a list of paths, relative to the top of the repository.
pub(super) fn named_paths(repository: &Repository, file: &Path) -> Result<Vec<PathBuf>, Failure> {
    let could_not_read = || format!("could not read '{}'", file.display());
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut bytes).with_context(could_not_read)?;
    } else {
        bytes = std::fs::read(file).with_context(could_not_read)?;
    }
    let end = if bytes.contains(&0) { 0 } else { b'\n' };
    let names = bytes.split(|byte| *byte == end).filter(|name| !name.is_empty());
    names.map(|name| inside(repository, name)).collect()
}

/// Converts a path. It need not exist: it may have been deleted.
fn inside(repository: &Repository, name: &[u8]) -> Result<PathBuf, Failure> {
    let path = Path::new(OsStr::from_bytes(name));
    plain_path(&repository.dir.join(path))
        .strip_prefix(repository.top())
        .map(Path::to_owned)
        .map_err(|_| Failure::new(Exit::No, format!("'{}' is outside of the repository", path.display())))
}

/// Whether a changed path is one of these, or below one.
pub(super) fn is_below(change: &TreeChange, paths: &[PathBuf]) -> bool {
    let path = Path::new(OsStr::from_bytes(&change.path));
    paths.iter().any(|named| path.starts_with(named))
}

/// Refuses a path that cannot be committed: neither the commit `before` nor the worktree has it.
pub(super) fn require_committable(
    repository: &Repository,
    paths: &[PathBuf],
    before: Oid,
    now: Oid,
) -> Result<(), Failure> {
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty()) {
        if repository.has_path(now, path)? || repository.has_path(before, path)? {
            continue;
        }
        let why = match path.components().next() {
            Some(Component::Normal(name)) if name.eq_ignore_ascii_case(".git") => "it belongs to git itself",
            _ if repository.top().join(path).symlink_metadata().is_ok() => {
                "git ignores it, or it is an empty folder or below a symbolic link"
            }
            _ => "it does not exist",
        };
        let words = format!("'{}' cannot be committed: {why}", visible(&path.to_string_lossy()));
        return Err(Failure::new(Exit::No, words).hint("nothing was committed or recorded"));
    }
    Ok(())
}
