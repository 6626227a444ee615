//! Paths that are watched because of others: the folders around them, and the targets of links.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    copy::{FileState, PathStates},
    surface::{WatchMode, WatchedItem},
};

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
