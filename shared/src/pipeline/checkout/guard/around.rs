//! Paths that are watched because of others: the folders around them, the targets of links, and files that settings
//! name.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    restore_watched_files::{FileState, PathStates},
    watched_files::{WatchMode, WatchedItem},
};
use crate::git::{Config, Repository};

/// The folders in which the items are, whether they exist or not: through a link in the place of one of them, git would find
/// other files.
pub(super) fn folders_around(items: &[WatchedItem], inside: &[PathBuf]) -> Vec<WatchedItem> {
    let mut folders = BTreeSet::new();
    for WatchedItem { path, .. } in items {
        let tops = inside.iter().filter(|top| path.starts_with(top));
        let Some(top) = tops.max_by_key(|top| top.as_os_str().len()) else { continue };
        folders.extend(path.ancestors().skip(1).take_while(|folder| folder != top));
    }
    let is_new = |folder: &&Path| items.iter().all(|item| item.path != **folder);
    let folders = folders.into_iter().filter(is_new);
    folders.map(|path| WatchedItem { path: path.to_owned(), watch_mode: WatchMode::Kind }).collect()
}

/// The targets of links that are not watched yet.
pub(super) fn targets_of(there: &PathStates, items: &[WatchedItem]) -> Vec<WatchedItem> {
    let is_closely = |watch_mode: WatchMode| {
        watch_mode.is_named()
            || watch_mode.is_folder()
            || matches!(watch_mode, WatchMode::Whole | WatchMode::ExcludeFile)
    };
    let links = there
        .iter()
        .filter(|(_, (watch_mode, there))| is_closely(*watch_mode) && matches!(there, FileState::Link(_)));
    let mut targets: Vec<WatchedItem> = Vec::new();
    for (path, (watch_mode, _)) in links {
        let Ok(target) = path.canonicalize() else { continue };
        let watch_mode = if target.is_dir() { WatchMode::Folder } else { *watch_mode };
        let is_known = |item: &WatchedItem| item.path == target;
        if !there.contains_key(&target) && !items.iter().chain(&targets).any(is_known) {
            targets.push(WatchedItem { path: target, watch_mode });
        }
    }
    targets
}

/// Settings that name a file which can hide something or run a program.
const FILES: [&str; 2] = ["core.attributesfile", "core.excludesfile"];

/// The configuration files, and the files that settings in them name. The second list has those whose path begins at the top of
/// a worktree: git reads relative paths from there, except for those of included files.
pub(super) fn named_files(config: &Config, repository: &Repository) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let dir = &repository.dir;
    let (mut files, mut in_worktrees) = (Vec::new(), Vec::new());
    for entry in config.section("") {
        let origin = entry.origin.strip_prefix("file:").map(|file| dir.join(file));
        let base = origin.as_deref().and_then(Path::parent).unwrap_or(dir);
        let is_include = entry.key.starts_with("include") && entry.key.ends_with(".path");
        if let Some(value) = entry.value.as_deref().filter(|value| !value.is_empty()) {
            if is_include {
                files.push(base.join(expanded_by_git(repository, value)));
            } else if FILES.contains(&entry.key.as_str()) {
                let path = expanded_by_git(repository, value);
                if path.is_absolute() { files.push(path) } else { in_worktrees.push(path) }
            }
        }
        files.extend(origin);
    }
    (files, in_worktrees)
}

/// The path that git makes of the value of a setting. Only git knows the home directories of other users and its own folder.
pub(super) fn expanded_by_git(repository: &Repository, value: &str) -> PathBuf {
    let is_known = value.starts_with("~/") || !value.starts_with(['~', '%']);
    let ask = || Config::expand_path(repository, value).ok();
    (!is_known).then(ask).flatten().unwrap_or_else(|| expanded(value))
}

pub(super) fn expanded(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => path.into(),
    }
}
