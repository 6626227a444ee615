//! Links, named pipes and devices in the place of reflogs. git appends to reflogs, so it would write wherever such a link
//! leads. After a child has ended, the guard removes what it planted. But an agent of another task can plant a link at any
//! time, so every command of ours that appends to reflogs looks at them first. Where Landlock works, it also keeps git from
//! writing through a link that is planted after that.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{
    git::{Repository, refs::TEMPORARY},
    message::visible,
    mutex::MutexExt,
    safe_files::{self, FileKind},
};

/// What is known about the reflogs of a repository.
#[derive(Debug, Default)]
struct LinkedReflogs {
    /// Those that were links before the first child, so that they belong to the user.
    users: BTreeSet<PathBuf>,
    /// Messages about links that were removed and not reported yet.
    removed: Vec<String>,
}

/// By common git directory.
static LINKED_REFLOGS: Mutex<BTreeMap<PathBuf, LinkedReflogs>> = Mutex::new(BTreeMap::new());

impl Repository {
    /// Remembers which reflogs are links of the user. Call this before a child starts; only the first call counts.
    pub(in crate::git) fn remember_reflog_links(&self) {
        let find = || LinkedReflogs {
            users: self.list_irregular_reflogs().into_iter().collect(),
            removed: Vec::new(),
        };
        LINKED_REFLOGS.hold().entry(self.common_dir.clone()).or_insert_with(find);
    }

    /// Removes links that were planted in the place of the reflogs of these refs, or of `HEAD` of this worktree, to which
    /// git appends if one of the refs is checked out.
    pub(in crate::git) fn clear_reflogs_of<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let mut known = LINKED_REFLOGS.hold();
        let Some(known) = known.get_mut(&self.common_dir) else { return };
        for name in names.chain(["HEAD"]) {
            let is_own = !name.contains('/') || TEMPORARY.iter().any(|prefix| name.starts_with(prefix));
            let git_dir = if is_own { &self.git_dir } else { &self.common_dir };
            known
                .removed
                .extend(find_irregular(git_dir, name).and_then(|path| self.clear(&known.users, &path)));
        }
    }

    /// Removes links that were planted in the place of any reflog.
    pub(in crate::git) fn clear_reflogs(&self) {
        let mut known = LINKED_REFLOGS.hold();
        let Some(known) = known.get_mut(&self.common_dir) else { return };
        let odd = self.list_irregular_reflogs();
        known.removed.extend(odd.iter().filter_map(|path| self.clear(&known.users, path)));
    }

    /// Messages about links that were removed since the last call.
    pub(in crate::git) fn take_removed_reflog_links(&self) -> Vec<String> {
        let mut known = LINKED_REFLOGS.hold();
        let mut removed = known
            .get_mut(&self.common_dir)
            .map(|known| std::mem::take(&mut known.removed))
            .unwrap_or_default();
        removed.sort();
        removed.dedup();
        removed
    }

    fn clear(&self, users: &BTreeSet<PathBuf>, path: &Path) -> Option<String> {
        if users.contains(path) {
            return None;
        }
        let shown = path.strip_prefix(&self.common_dir).unwrap_or(path).to_string_lossy();
        let shown = visible(&shown);
        let (deed, done) = match safe_files::is_hard_link(path) {
            true => ("became a hard link", safe_files::separate(path).map(|()| "is replaced by a copy")),
            false => (
                "was replaced by a link, a FIFO or a device",
                safe_files::remove(path).map(|()| "is removed"),
            ),
        };
        Some(match done {
            Ok(done) => format!("{shown} {deed} while an agent or a command ran, and {done}"),
            Err(error) => {
                format!("{shown} {deed} while an agent or a command ran, and could not be removed: {error}")
            }
        })
    }

    /// Everything in the folders of reflogs that is neither a folder nor a file with one name.
    fn list_irregular_reflogs(&self) -> Vec<PathBuf> {
        let worktrees = safe_files::list_kinds(&self.common_dir.join("worktrees")).unwrap_or_default();
        let git_dirs = worktrees.into_iter().map(|entry| entry.path).chain([self.common_dir.clone()]);
        let mut open: Vec<PathBuf> = git_dirs.map(|git_dir| git_dir.join("logs")).collect();
        let mut odd: Vec<PathBuf> = open.iter().filter(|logs| is_irregular(logs)).cloned().collect();
        while let Some(folder) = open.pop() {
            // A folder that is a link is not listed.
            for entry in safe_files::list_kinds(&folder).unwrap_or_default() {
                match entry.kind {
                    FileKind::Folder => open.push(entry.path),
                    _ if is_irregular(&entry.path) => odd.push(entry.path),
                    _ => {}
                }
            }
        }
        odd
    }
}

/// The first odd part of the way to the reflog of a ref.
fn find_irregular(git_dir: &Path, name: &str) -> Option<PathBuf> {
    let mut path = git_dir.to_owned();
    for part in ["logs"].into_iter().chain(name.split('/')) {
        path.push(part);
        if is_irregular(&path) {
            return Some(path);
        }
    }
    None
}

fn is_irregular(path: &Path) -> bool {
    let kind = path.symlink_metadata().ok().map(|found| FileKind::of(&found));
    matches!(kind, Some(FileKind::Link | FileKind::Special)) || safe_files::is_hard_link(path)
}
