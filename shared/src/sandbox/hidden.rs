//! What children cannot read: keys of the user, git directories of repositories that they do not work in, and worktrees of
//! other tasks.

use std::path::{Path, PathBuf};

use super::{Sandbox, SandboxedChild, find_git_dirs, in_home, own_keys};
use crate::{git::list_worktree_folders, safe_files, settings::Settings};

/// Folders and files that look empty in the sandbox if `sandbox.deny-read` is not set.
const DENIED: [&str; 4] = ["~/.ssh", "~/.gnupg", "~/.aws", "~/.netrc"];

/// Those of them that set-up commands may read, because they fetch private dependencies.
const NEEDED_BY_SETUP: [&str; 2] = ["~/.ssh", "~/.netrc"];

impl Sandbox {
    /// What a child must not read, and the setting that decides it.
    pub(super) fn hidden(&self, child: &SandboxedChild<'_>) -> (Vec<PathBuf>, String) {
        let keys = own_keys(Some(child.step), child.runner, "deny-read");
        let key = keys.iter().find(|key| self.settings.words(key).is_some());
        let key = key.map_or_else(|| "sandbox.deny-read".to_owned(), Clone::clone);
        (self.list_hidden(child), key)
    }

    /// The folders and files of `sandbox.deny-read`. The most specific list replaces the others, but one of the
    /// repository does not replace the user's.
    pub(super) fn list_hidden(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let keys = own_keys(Some(child.step), child.runner, "deny-read");
        let usual = DENIED.map(str::to_owned).to_vec();
        let configured = find_words(&self.settings, &keys);
        let mut words = configured.map_or(usual, <[String]>::to_vec);
        if self.is_tracked(&keys) {
            words.extend(find_words(&self.users, &keys).unwrap_or_default().iter().cloned());
        }
        if child.step == "setup" && self.settings.words(&keys[0]).is_none() {
            words.retain(|word| !NEEDED_BY_SETUP.contains(&word.as_str()));
        }
        let words = words.iter().filter_map(|word| in_home(word));
        let mut hidden: Vec<PathBuf> = words.map(|path| safe_files::resolved(&path)).collect();
        if configured.is_none() {
            hidden.extend(self.list_foreign(child));
        }
        hidden
    }

    /// Git directories of repositories that a child has nothing to do with, and the folders with worktrees of all tasks. Its
    /// own worktrees in them stay visible.
    fn list_foreign(&self, child: &SandboxedChild<'_>) -> Vec<PathBuf> {
        let own = child.places.iter().chain(&child.reads).flat_map(|place| find_git_dirs(place));
        let own: Vec<PathBuf> = own.chain(self.git_dirs.iter().cloned()).collect();
        let is_foreign = |path: &Path| !own.iter().any(|known| known.starts_with(path));
        let git_dirs = self.repositories.iter().flat_map(|checkout| find_git_dirs(checkout));
        let git_dirs = git_dirs.filter(|path| path.is_dir() && is_foreign(path));
        let folders = list_worktree_folders().into_iter().chain(self.worktree_folder.clone());
        let folders = folders.map(|folder| safe_files::resolved(&folder));
        git_dirs.chain(folders.filter(|folder| folder.is_dir())).collect()
    }
}

fn find_words<'s>(settings: &'s Settings, keys: &[String]) -> Option<&'s [String]> {
    keys.iter().find_map(|key| settings.words(key))
}
