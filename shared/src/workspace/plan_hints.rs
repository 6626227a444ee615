//! Remembers in a repository which other repositories have the plans of sessions that work in it, because only those hold
//! the sessions' records. This is a hint for finding sessions: the files are a cache, and nothing breaks without them.

use std::{fs, path::PathBuf};

use super::top_of_main_worktree;
use crate::{
    git::{GitError, Repository},
    name::digest,
    safe_files,
};

/// The directory of the hints, below the common git directory. Each plan's repository has one file. Cleanup keeps them,
/// because it needs them to find out whether a session is over.
pub(crate) const PLAN_HINTS: &str = "arborist/cache/plans";

/// Remembers in `other` that a session works there whose plan is in `main`. A failure to write the hint is ignored.
pub fn remember_plan_repository(other: &Repository, main: &Repository) -> Result<(), GitError> {
    let top = top_of_main_worktree(main)?;
    if let Some(top) = top.to_str() {
        let file = other.common_dir.join(PLAN_HINTS).join(digest(top.as_bytes()));
        let _ = safe_files::write(&file, top.as_bytes());
    }
    Ok(())
}

/// The checkouts of the repositories whose plans' sessions have worked in `other`, whether they still exist or not.
#[must_use]
pub fn list_plan_paths(other: &Repository) -> Vec<PathBuf> {
    let files = fs::read_dir(other.common_dir.join(PLAN_HINTS)).into_iter().flatten().flatten();
    let mut tops: Vec<PathBuf> =
        files.filter_map(|file| safe_files::read_text(&file.path()).ok()).map(PathBuf::from).collect();
    tops.sort();
    tops
}

/// Opens the repositories whose plans' sessions have worked in `other`. Those that no longer exist are left out.
#[must_use]
pub fn list_plan_repositories(other: &Repository) -> Vec<Repository> {
    list_plan_paths(other).iter().filter_map(|top| Repository::open_at(top).ok()).collect()
}
