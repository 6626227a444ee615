//! Other repositories inside the user's checkout, such as an ignored clone. A program that an agent writes into the
//! configuration or the hooks of one would run as soon as the user calls git there.
//!
//! They may disappear or be made again: builds and tests do that. So a change of their configuration is undone only if
//! it could run something.

use std::path::{Path, PathBuf};

use super::surface::{self, WatchMode, WatchedItem};
use crate::{
    git::{Repository, find_module_dirs},
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
    let mut items = surface::items(&git_dir, &INNER);
    for module in find_module_dirs(&git_dir) {
        items.extend(surface::items(&module, &INNER));
    }
    if has_includes(&git_dir.join("config")) {
        let named = surface::named_by_module(repository, &git_dir).into_iter();
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
