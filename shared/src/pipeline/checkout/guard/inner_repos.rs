//! Other repositories inside a checkout, such as an ignored clone, and those that a child planted there. A program that an agent writes into the
//! configuration or the hooks of one would run as soon as the user calls git there.
//!
//! They may disappear or be made again: builds and tests do that. So a change of their configuration is undone only if
//! it could run something.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::watched_files::{self, WatchMode, WatchedItem};
use crate::{
    git::{PlantedRepository, Repository, find_module_dirs},
    message::visible,
    safe_files,
};

/// Files in the git directory of such a repository, or of a submodule in it.
const INNER: [(&str, WatchMode); 4] = [
    ("config", WatchMode::InnerConfig),
    ("config.worktree", WatchMode::InnerConfig),
    ("commondir", WatchMode::InnerFile),
    ("hooks", WatchMode::InnerFolder),
];

/// Watched items of the repositories that were inside of this checkout when the run began.
pub(super) fn items(repository: &Repository) -> Vec<WatchedItem> {
    repository.find_inner_git_dirs().into_iter().flat_map(|git_dir| of_repo(repository, git_dir)).collect()
}

fn of_repo(repository: &Repository, git_dir: PathBuf) -> Vec<WatchedItem> {
    let mut items = watched_files::items(&git_dir, &INNER);
    for module in find_module_dirs(&git_dir) {
        items.extend(watched_files::items(&module, &INNER));
    }
    if has_includes(&git_dir.join("config")) {
        let named = watched_files::named_by_module(repository, &git_dir).into_iter();
        let named = named.filter(|path| !path.starts_with(&git_dir));
        items.extend(named.map(|path| WatchedItem { path, watch_mode: WatchMode::InnerFile }));
    }
    items.push(WatchedItem { path: git_dir, watch_mode: WatchMode::InnerFile });
    items
}

/// Whether a configuration may include others. Asking git takes longer.
fn has_includes(config: &Path) -> bool {
    let text = safe_files::read(config).unwrap_or_default();
    String::from_utf8_lossy(&text).to_ascii_lowercase().contains("[include")
}

/// Takes repositories apart that a child made in a folder of the checkout, and returns a message about them.
#[must_use]
pub fn move_planted_git(repository: &Repository) -> Option<String> {
    match repository.move_planted_git() {
        Ok(moved) if moved.is_empty() => None,
        Ok(moved) => {
            let shown = moved.iter().map(|PlantedRepository { path, kept, link_to, is_index }| {
                let what = if *is_index { " (an index that leads git to other repositories)" } else { "" };
                let kept = kept.as_ref().map(|kept| format!(", which is kept in {}", kept.display()));
                let link = link_to.as_ref().map(|link_to| {
                    format!(", a link to '{}', which is removed", visible(&link_to.to_string_lossy()))
                });
                visible(&path.to_string_lossy()) + what + &kept.or(link).unwrap_or_default()
            });
            let shown: Vec<String> = shown.collect();
            Some(format!("it made a repository in a folder of the checkout: {}", shown.join("; ")))
        }
        Err(error) => Some(format!("the checkout could not be checked for new repositories: {error}")),
    }
}

/// Takes submodules out of the index that a child added to it, and returns a message about them.
pub(super) fn take_out_gitlinks(repository: &Repository, known: &BTreeSet<Vec<u8>>) -> Option<String> {
    match repository.take_out_gitlinks(known) {
        Ok(paths) if paths.is_empty() => None,
        Ok(paths) => {
            let shown: Vec<String> =
                paths.iter().map(|path| visible(&String::from_utf8_lossy(path))).collect();
            Some(format!("it added a submodule to the index, which was removed again: {}", shown.join(", ")))
        }
        Err(error) => Some(format!("the index could not be checked for new submodules: {error}")),
    }
}
