//! Finds what belongs to git in a folder that a child may change, without running git.

use std::path::{Path, PathBuf};

use crate::{
    git::{named_path, target_of},
    safe_files,
};

/// The `.git` of a worktree, the git directory that it names if it is a file, and the common directory of that.
pub(super) fn find_git_dirs(worktree: &Path) -> Vec<PathBuf> {
    let link = worktree.join(".git");
    let named = safe_files::read(&link).ok().and_then(|content| target_of(worktree, &content));
    let git_dir = named.unwrap_or_else(|| link.clone());
    let common =
        safe_files::read(&git_dir.join("commondir")).ok().map(|content| named_path(&git_dir, &content));
    let found = [Some(link), Some(git_dir), common].into_iter().flatten();
    let mut found: Vec<PathBuf> =
        found.filter(|path| path.exists()).map(|path| safe_files::resolved(&path)).collect();
    found.dedup();
    found
}
