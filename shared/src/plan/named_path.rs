//! Plans that a user names: where they are, as paths from the top of the worktree.

use std::path::{Component, Path, PathBuf};

use super::PlanError;
use crate::{
    git::{Repository, plain_path},
    safe_files,
    settings::Settings,
};

/// A plan that was named on the command line, as a path from the top of the worktree. An absolute path, and one that
/// begins with `./` or `../`, is resolved as git does it. Any other starts at the top; only if nothing is there, it
/// starts in the current directory. What is outside of the worktree becomes an absolute path, which cannot be read.
#[must_use]
pub fn typed_plan_path(repository: &Repository, typed: &Path) -> PathBuf {
    let Some(top) = &repository.worktree else { return typed.to_owned() };
    let full = plain_path(&repository.dir.join(typed));
    let from_here = from_top(top, &full);
    let first = typed.components().next();
    if typed.is_absolute() || matches!(first, Some(Component::CurDir | Component::ParentDir)) {
        return from_here.unwrap_or(full);
    }
    let exists = |path: &Path| top.join(path).symlink_metadata().is_ok();
    let path = from_top(top, &top.join(typed)).unwrap_or_else(|| plain_path(&top.join(typed)));
    match from_here {
        Some(from_here) if !exists(&path) && exists(&from_here) => from_here,
        _ => path,
    }
}

/// The plan that the setting `tree` names, as a path from the top of the worktree.
#[must_use]
pub fn configured_plan_path(repository: &Repository, settings: &Settings) -> Option<String> {
    let path = Path::new(settings.general.tree.as_ref()?);
    let Some(top) = &repository.worktree else { return Some(path.display().to_string()) };
    let full = plain_path(&top.join(path));
    Some(from_top(top, &full).unwrap_or(full).display().to_string())
}

/// Reads a plan by its path from the top of the worktree. Links are never followed out of it.
pub fn read_named_plan(top: &Path, path: &str) -> Result<Vec<u8>, PlanError> {
    if Path::new(path).is_absolute() {
        return Err(PlanError::Outside { file: path.to_owned(), top: top.to_owned() });
    }
    safe_files::read_beneath(top, path).map_err(|error| PlanError::unreadable(path, &top.join(path), &error))
}

/// A full path as one from `top`. The folder may be known by another name, through a link.
fn from_top(top: &Path, full: &Path) -> Option<PathBuf> {
    let full = plain_path(full);
    if let Ok(path) = full.strip_prefix(top) {
        return Some(path.to_owned());
    }
    let folder = full.parent()?.canonicalize().ok()?;
    Some(folder.join(full.file_name()?).strip_prefix(top).ok()?.to_owned())
}
