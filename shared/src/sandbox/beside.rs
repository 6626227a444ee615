//! Closes folders in granted ones where the backend can only grant, by granting what is beside them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Sandbox, SandboxedChild, find_git_dirs};
use crate::{git::list_worktree_folders, process::ConfinementBackend, safe_files};

/// What stays closed in a granted folder.
#[derive(Debug, Default)]
pub(super) struct KeptFolders {
    /// Git directories of the run, and folders with worktrees of all tasks.
    of_run: Vec<PathBuf>,
    /// Folders that cannot be read.
    hidden: Vec<PathBuf>,
}

impl Sandbox {
    /// What must stay closed in folders that are granted to a child, if this backend can only grant.
    pub(super) fn list_kept(&self, child: &SandboxedChild<'_>, backend: ConfinementBackend) -> KeptFolders {
        if backend.can_take_away() {
            return KeptFolders::default();
        }
        let folders = list_worktree_folders().into_iter().chain(self.worktree_folder.clone());
        let folders = folders.map(|folder| safe_files::resolved(&folder));
        let granted = self.granted(child);
        let hidden = self.hidden(child, backend).0.into_iter();
        KeptFolders {
            of_run: self.list_git_dirs(child).into_iter().chain(folders).collect(),
            hidden: hidden.filter(|path| !granted.contains(path)).collect(),
        }
    }

    /// The git directories of the places of a child and of all repositories of the run.
    pub(super) fn list_git_dirs(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let checkouts = child.places.iter().chain(&self.repositories);
        checkouts.flat_map(|checkout| find_git_dirs(checkout)).chain(self.git_dirs.iter().cloned()).collect()
    }
}

impl KeptFolders {
    /// The folder or file. If something of the run in it must stay closed, everything in it that does not lead there instead, so
    /// that what is made directly in the folder later is not granted. Links are left out: they may lead there.
    pub(super) fn list_beside(&self, path: PathBuf) -> Vec<PathBuf> {
        if !is_above(&path, &self.of_run) {
            return vec![path];
        }
        let mut found = Vec::new();
        self.add_beside(path, &mut found);
        found
    }

    fn add_beside(&self, path: PathBuf, found: &mut Vec<PathBuf>) {
        if self.of_run.contains(&path) || self.hidden.contains(&path) {
            return;
        }
        if !is_above(&path, &self.of_run) && !is_above(&path, &self.hidden) {
            found.push(path);
            return;
        }
        let entries = fs::read_dir(&path).into_iter().flatten().flatten();
        let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        entries.for_each(|entry| self.add_beside(entry.path(), found));
    }
}

/// Whether one of these paths is this folder or in it.
fn is_above(folder: &Path, paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| path.starts_with(folder))
}
