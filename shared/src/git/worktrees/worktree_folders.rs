//! The folders that contain the worktrees of a repository. They belong to the driver. Many tools search the parents of
//! their folder for settings and instructions, so anything else there would decide tests and reviews.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{
    git::Repository,
    mutex::MutexExt,
    safe_files::{self, FileKind},
};

/// The prefix of directories that are being deleted.
pub const TRASH: &str = ".removed-";
/// What the names of directories contain that had to make room for a worktree.
pub const REPLACED: &str = ".replaced.";
/// A folder that tools search for in parents. Others begin with a dot.
const SEARCHED: &str = "node_modules";

/// The folders, by common git directory.
static FOLDERS: Mutex<BTreeMap<PathBuf, BTreeSet<PathBuf>>> = Mutex::new(BTreeMap::new());

impl Repository {
    /// Records a folder for worktrees that no other program uses. It need not exist.
    pub fn add_worktree_folder(&self, folder: &Path) {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mut folders = FOLDERS.hold();
        folders.entry(self.common_dir.clone()).or_default().insert(folder);
    }

    /// Everything in the folders for worktrees that is not a worktree.
    #[must_use]
    pub fn list_beside_worktrees(&self) -> BTreeSet<PathBuf> {
        let folders = FOLDERS.hold();
        let folders = folders.get(&self.common_dir).cloned().unwrap_or_default();
        let entries = folders.iter().flat_map(|folder| safe_files::list_kinds(folder).unwrap_or_default());
        // These may lack their `.git`, if a child removed it or another process is removing the worktree.
        let known = self.list_worktree_tops();
        let is_worktree = |folder: &Path| is_worktree(folder, known.contains(folder));
        let others = entries.filter(|entry| entry.kind != FileKind::Folder || !is_worktree(&entry.path));
        others.map(|entry| entry.path).collect()
    }
}

/// The folders for worktrees of all repositories that this process has opened a pool for.
#[must_use]
pub fn list_worktree_folders() -> BTreeSet<PathBuf> {
    let folders = FOLDERS.hold();
    folders.values().flatten().cloned().collect()
}

/// Whether a folder is a worktree of any repository, or one that is just being made or removed: those are empty, or
/// have a special name. `is_known` tells whether this repository has a worktree there.
fn is_worktree(folder: &Path, is_known: bool) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_searched = name.starts_with('.') || name == SEARCHED;
    let is_empty = || safe_files::list_kinds(folder).is_ok_and(|entries| entries.is_empty());
    name.starts_with(TRASH)
        || name.contains(REPLACED)
        || (!is_searched && (is_known || safe_files::kind_of(&folder.join(".git")) == Some(FileKind::File)))
        || is_empty()
}
