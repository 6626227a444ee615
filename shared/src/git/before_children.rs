//! Remembers which links there were before the first child process started. Links that appear later are not the user's:
//! git must not write to wherever they point.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::GitError;
use crate::{mutex::MutexExt, safe_files};

/// Whether a child process that runs code of a repository has started. Links that appear after that are not the user's.
static HAS_CHILD_STARTED: AtomicBool = AtomicBool::new(false);
/// Worktrees that the user reaches through links, and where the links pointed before the first child.
static LINKED: Mutex<BTreeMap<PathBuf, PathBuf>> = Mutex::new(BTreeMap::new());
/// Folders in git directories that were links before the first child, by git directory.
static LINKED_INSIDE: Mutex<BTreeMap<PathBuf, Vec<PathBuf>>> = Mutex::new(BTreeMap::new());

/// Call this before a child process starts that runs code of a repository.
pub(super) fn note_child_started() {
    HAS_CHILD_STARTED.store(true, Ordering::Relaxed);
}

/// Fails if a worktree is reached through a link that was not there before: git would write to wherever the link
/// points. A missing worktree is no error here; git reports it.
pub(super) fn require_plain_top(top: &Path) -> Result<(), GitError> {
    if safe_files::kind_of(top).is_some_and(|kind| kind != safe_files::FileKind::Link) {
        return Ok(());
    }
    if !top.ancestors().any(Path::is_symlink) {
        return Ok(());
    }
    let mut known = LINKED.hold();
    if !has_child_started() {
        known.insert(top.to_owned(), safe_files::resolved(top));
    }
    if known.contains_key(top) { Ok(()) } else { Err(GitError::LinkedWorktree { path: top.to_owned() }) }
}

/// The real path of a worktree. If the user reaches it through a link, the one from before the first child process
/// counts.
pub(super) fn real_top(top: &Path) -> PathBuf {
    let known = LINKED.hold();
    known.get(top).cloned().unwrap_or_else(|| top.to_owned())
}

/// Where links of these names in a git directory pointed before the first child process started. Later links are not
/// the user's.
pub(super) fn linked_folders(git_dir: &Path, names: &[&str]) -> Vec<PathBuf> {
    let mut known = LINKED_INSIDE.hold();
    let find = || {
        let links = names.iter().map(|name| git_dir.join(name)).filter(|path| path.is_symlink());
        links.map(|link| safe_files::resolved(&link)).collect()
    };
    known
        .entry(git_dir.to_owned())
        .or_insert_with(|| if has_child_started() { Vec::new() } else { find() })
        .clone()
}

/// Whether a child process that runs code of a repository has started.
pub(super) fn has_child_started() -> bool {
    HAS_CHILD_STARTED.load(Ordering::Relaxed)
}
