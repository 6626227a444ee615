//! Guards the folders that contain the worktrees: tools search the parents of their folder, so a file that a child puts
//! there would decide the tests and reviews of all tasks.

use std::{collections::BTreeSet, path::PathBuf, sync::Mutex};

use super::added_submodules::move_away;
use crate::{
    git::{Repository, add_notice},
    mutex::MutexExt,
};

/// What existed beside the worktrees.
#[derive(Debug)]
pub(super) struct BesideWorktrees {
    repository: Repository,
    known: BTreeSet<PathBuf>,
}

impl BesideWorktrees {
    /// Records what is there now, and reports each path to the user once.
    pub(super) fn find(repository: &Repository) -> Self {
        static TOLD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        let known = repository.list_beside_worktrees();
        let mut reported = TOLD.hold();
        for path in &known {
            if reported.insert(path.clone()) {
                add_notice(format!(
                    "{} is in the folder for worktrees, but was not made by git-arborist; agents and tests may find it there: move it away",
                    path.display()
                ));
            }
        }
        Self { repository: repository.clone(), known }
    }

    /// What is there is watched like the files that git obeys.
    pub(super) const fn known(&self) -> &BTreeSet<PathBuf> {
        &self.known
    }

    /// Moves everything that was added into the git directory.
    pub(super) fn move_new(&self) -> Vec<String> {
        let now = self.repository.list_beside_worktrees();
        let new = now.difference(&self.known);
        new.map(|path| {
            let folder = path.parent().and_then(|folder| folder.parent()).unwrap_or(path);
            move_away(path, folder, &self.repository.common_dir)
        })
        .collect()
    }
}
