//! What children cannot read: keys of the user, git directories of repositories that they do not work in, and worktrees of
//! other tasks.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{Sandbox, SandboxedChild, find_git_dirs, in_home};
use crate::{
    git::{list_worktree_folders, object_folders},
    process::ConfinementBackend,
    safe_files,
    settings::{SandboxLayers, Sourced},
};

/// Folders and files that look empty in the sandbox if `sandbox.deny-read` is not set.
pub(super) const DENIED: [&str; 4] = ["~/.ssh", "~/.gnupg", "~/.aws", "~/.netrc"];

/// Those of them that set-up commands may read, because they fetch private dependencies.
const NEEDED_BY_SETUP: [&str; 2] = ["~/.ssh", "~/.netrc"];

/// How many repositories the objects of one may come from: git follows five levels of alternates, and agents can write
/// files that name each other for ever.
const MAX_ALTERNATES: usize = 32;

impl Sandbox {
    /// What this backend hides from a child, and the setting that decides it.
    pub(super) fn hidden(
        &self,
        child: &SandboxedChild<'_>,
        backend: ConfinementBackend,
    ) -> (Vec<PathBuf>, String) {
        let key = find_denied(&self.settings, child).map(|denied| denied.key.clone());
        let mut hidden = self.list_denied(child);
        // A list that is set replaces the whole default, also the part that is no list of paths.
        if key.is_none() {
            hidden.extend(self.list_unrelated(child));
            // Landlock would have to grant all files beside them, and those that are replaced later could not be read.
            if backend.can_take_away() {
                hidden.extend(self.list_neighbours(child));
            }
        }
        (hidden, key.unwrap_or_else(|| "sandbox.deny-read".to_owned()))
    }

    /// The folders and files of `sandbox.deny-read`. The most specific list replaces the others, but one of the
    /// repository does not replace the user's.
    fn list_denied(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let denied = find_denied(&self.settings, child);
        let usual = || DENIED.map(str::to_owned).to_vec();
        let mut words = denied.map_or_else(usual, |denied| denied.value.clone());
        if denied.is_some_and(Sourced::is_tracked) {
            words.extend(find_denied(&self.users, child).into_iter().flat_map(|users| users.value.clone()));
        }
        let of_step = self.settings.steps.find(child.step);
        if child.step == "setup" && of_step.is_none_or(|settings| settings.deny_read.is_none()) {
            words.retain(|word| !NEEDED_BY_SETUP.contains(&word.as_str()));
        }
        words.iter().filter_map(|word| in_home(word)).map(|path| safe_files::resolved(&path)).collect()
    }

    /// Git directories of repositories that a child has nothing to do with, and the folders with worktrees of all tasks. Its
    /// own worktrees in them stay visible.
    fn list_unrelated(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let own = self.list_own(child);
        let git_dirs = self.repositories.iter().flat_map(|checkout| find_git_dirs(checkout));
        let git_dirs = git_dirs.filter(|path| path.is_dir() && !leads_to(path, &own));
        let folders = list_worktree_folders().into_iter().chain(self.worktree_folder.clone());
        let folders = folders.map(|folder| safe_files::resolved(&folder));
        git_dirs.chain(folders.filter(|folder| folder.is_dir())).collect()
    }

    /// Git directories of the repositories in folders beside the checkouts of a run. A folder that the child may change is left
    /// to it.
    pub(super) fn list_neighbours(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let own = self.list_own(child);
        let others = self.repositories.iter().flat_map(|checkout| find_git_dirs(checkout));
        let git_dirs: Vec<PathBuf> = own.iter().cloned().chain(others).collect();
        let checkouts =
            git_dirs.iter().filter(|path| path.ends_with(".git")).filter_map(|path| path.parent());
        let folders: BTreeSet<&Path> = checkouts.filter_map(Path::parent).collect();
        let entries = folders.into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        let found = entries.map(|entry| entry.path().join(".git"));
        let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let found = found.filter(is_folder).map(|path| safe_files::resolved(&path));
        let granted = self.granted(child);
        let is_granted = |path: &PathBuf| granted.iter().any(|folder| path.starts_with(folder));
        found.filter(|path| !leads_to(path, &own) && !is_granted(path)).collect()
    }

    /// The git directories that a child uses, and those whose objects they borrow.
    fn list_own(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let own = child.places.iter().chain(&child.reads).flat_map(|place| find_git_dirs(place));
        let mut own: Vec<PathBuf> = own.chain(self.git_dirs.iter().cloned()).collect();
        let mut next = 0;
        while next < own.len().min(MAX_ALTERNATES) {
            for objects in object_folders(&own[next]).iter().skip(1) {
                own.extend(safe_files::resolved(objects).parent().map(Path::to_owned));
            }
            next += 1;
        }
        own
    }
}

/// Whether one of these paths is in `folder`.
fn leads_to(folder: &Path, paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| path.starts_with(folder))
}

/// The most specific list for a child.
fn find_denied<'s>(
    layers: &'s SandboxLayers,
    child: &SandboxedChild<'_>,
) -> Option<&'s Sourced<Vec<String>>> {
    layers.of(Some(child.step), child.runner).find_map(|settings| settings.deny_read.as_ref())
}
