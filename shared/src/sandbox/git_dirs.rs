//! Finds what belongs to git in a folder that a child may change, without running git.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::safe_files;

/// The `.git` of a worktree, the git directory that it names if it is a file, and the common directory of that.
pub(super) fn find_git_dirs(worktree: &Path) -> Vec<PathBuf> {
    let link = worktree.join(".git");
    let git_dir = named_in(&link, b"gitdir: ").unwrap_or_else(|| link.clone());
    let common = named_in(&git_dir.join("commondir"), b"");
    let found = [Some(link), Some(git_dir), common].into_iter().flatten();
    let mut found: Vec<PathBuf> =
        found.filter(|path| path.exists()).map(|path| safe_files::resolved(&path)).collect();
    found.dedup();
    found
}

/// The path that a file names after `prefix`, relative to the folder of the file.
fn named_in(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let content = safe_files::read(file).ok()?;
    let path = content.strip_prefix(prefix)?.trim_ascii_end();
    Some(file.parent()?.join(OsStr::from_bytes(path)))
}
