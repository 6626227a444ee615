//! Frees the disk space of build output and caches in worktrees that stay. Deletes only ignored directories, and only
//! where no process is at work.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{CleanupError, Sweep, survey::size_of};
use crate::{
    git::Repository,
    process::Occupants,
    worktree::{Pool, RemainsKind, WorktreeRemains, delete_in_background},
};

/// A directory that was or would be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaimed {
    /// The worktree.
    pub worktree: String,
    /// The directory.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// Why it could not be deleted.
    pub failed: Option<String>,
}

/// Whether anything is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only report.
    DryRun,
    /// Delete.
    Real,
}

impl Sweep<'_> {
    /// Deletes what matches one of `patterns` in the worktrees that stay. Those in `leaving` are about to be deleted
    /// anyway.
    pub fn reclaim(
        &self,
        patterns: &[String],
        leaving: &[PathBuf],
        mode: Mode,
    ) -> Result<Vec<Reclaimed>, CleanupError> {
        let Some(pool) = &self.pool else { return Ok(Vec::new()) };
        let _gate = if mode == Mode::Real { Some(pool.lock_registry()?) } else { None };
        let places = pool.list_places(&self.repository.list_worktrees()?);
        let occupants = Occupants::find();
        let mut found = Vec::new();
        for place in places.iter().filter(|place| is_ours(place) && !leaving.contains(&place.path)) {
            let is_empty = occupants.as_ref().is_some_and(|occupants| occupants.of(&place.path).is_none());
            let is_free = is_empty && matches!(pool.find_occupant(&place.path), Ok(None));
            if is_free && self.wants(&owners_of(place)) {
                found.extend(reclaim_in(self.repository, pool, place, patterns, mode)?);
            }
        }
        Ok(found)
    }
}

fn is_ours(place: &WorktreeRemains) -> bool {
    matches!(place.kind, RemainsKind::Work | RemainsKind::Scratch) && !place.is_missing
}

fn owners_of(place: &WorktreeRemains) -> Vec<String> {
    let task = place.branch().and_then(|branch| branch.as_str().rsplit('/').next().map(str::to_owned));
    [place.name()].into_iter().chain(task).collect()
}

fn reclaim_in(
    repository: &Repository,
    pool: &Pool,
    place: &WorktreeRemains,
    patterns: &[String],
    mode: Mode,
) -> Result<Vec<Reclaimed>, CleanupError> {
    let _lock = match mode {
        Mode::DryRun => None,
        Mode::Real => match pool.occupy(&place.path) {
            Ok(lock) => Some(lock),
            Err(_) => return Ok(Vec::new()),
        },
    };
    let mut found = Vec::new();
    let mut trash = Vec::new();
    // Build output is a directory. An ignored file, such as one with secrets, may be the user's only copy.
    let is_free = |path: &PathBuf| is_folder(path) && !holds_repository(path);
    for path in pool.find_ignored(place, patterns)?.into_iter().filter(is_free) {
        let mut one = Reclaimed { worktree: place.name(), size: size_of(&path), path, failed: None };
        if mode == Mode::Real {
            match pool.rename_to_trash(&one.path) {
                Ok(path) => trash.push(path),
                Err(error) => one.failed = Some(error.to_string()),
            }
        }
        found.push(one);
    }
    if !trash.is_empty() {
        pool.forget_caches(place);
        delete_in_background(repository, &trash);
    }
    Ok(found)
}

/// Whether it is a directory itself, not a link to one.
fn is_folder(path: &Path) -> bool {
    let plain: PathBuf = path.components().collect();
    plain.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Whether there is a repository somewhere in a directory. Then it is more than a cache.
fn holds_repository(path: &Path) -> bool {
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name() == ".git" {
                return true;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
    false
}
