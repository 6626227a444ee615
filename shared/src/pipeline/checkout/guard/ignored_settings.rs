//! Settings of the reviewers' programs in a checkout that git ignores, such as `.claude/settings.local.json`. No tree
//! contains them, so they are not among the protected files of a task. A reviewer that works in the checkout obeys them:
//! a hook in them runs when the review begins.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    restore_watched_files::{RunningChildren, WatchedCopy},
    watched_files::{WatchMode, WatchedItem},
};
use crate::{
    git::{Repository, move_aside},
    message::visible,
};

/// Watches such settings in one worktree.
#[derive(Debug)]
pub(super) struct IgnoredSettings {
    repository: Repository,
    /// Files and folders that contain settings.
    names: BTreeSet<&'static str>,
    known: BTreeSet<PathBuf>,
    before: WatchedCopy,
}

impl IgnoredSettings {
    /// `None` if no reviewer reads settings there.
    pub(super) fn find(
        repository: &Repository,
        names: &BTreeSet<&'static str>,
        running_children: RunningChildren,
    ) -> Option<Self> {
        let top = repository.worktree.clone().filter(|_| !names.is_empty())?;
        let known = list(repository, &top, names).unwrap_or_default();
        let item = |path: &PathBuf| WatchedItem { path: path.clone(), watch_mode: WatchMode::ReviewSettings };
        let items = known.iter().map(item).collect();
        let before = WatchedCopy::take(items, vec![top], repository.git_dir.clone(), running_children);
        Some(Self { repository: repository.clone(), names: names.clone(), known, before })
    }

    /// Moves new settings away, restores those that were changed, and returns messages about both.
    pub(super) fn restore(&self) -> Vec<String> {
        let top = self.repository.top();
        let mut found = Vec::new();
        match list(&self.repository, top, &self.names) {
            Ok(now) => found.extend(now.difference(&self.known).map(|path| self.move_new(top, path))),
            Err(error) => {
                found.push(format!("settings of the reviewer's program could not be listed: {error}"));
            }
        }
        found.extend(self.before.restore());
        found
    }

    fn move_new(&self, top: &Path, path: &Path) -> String {
        let shown = visible(&path.strip_prefix(top).unwrap_or(path).to_string_lossy());
        let what = format!("'{shown}' is read by the reviewer's program; it was added while the task ran");
        match move_aside(&self.repository.git_dir, path) {
            Ok(kept) => format!("{what}, and is kept in {}", kept.display()),
            Err(error) => format!("{what}, and could not be moved away: {error}"),
        }
    }
}

fn list(
    repository: &Repository,
    top: &Path,
    names: &BTreeSet<&'static str>,
) -> Result<BTreeSet<PathBuf>, crate::git::GitError> {
    let found = repository.list_ignored_at(names.iter().copied())?;
    // A repository has a slash at the end, through which a link would be followed.
    Ok(found.iter().map(|path| top.join(path).components().collect()).collect())
}
