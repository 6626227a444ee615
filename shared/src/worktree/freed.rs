//! Lanes that we left, and the branches that led to what was checked out there. Whoever fills such a lane again need not ask
//! git for a ref that leads there: one is known, and only has to be looked at. To look through all refs takes longer the
//! more tasks there were.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::WorktreeError;
use crate::{
    git::Repository,
    name::{BranchName, Oid},
};

/// The commit and the branch that each lane was left with. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Freed(Arc<Mutex<HashMap<PathBuf, (Oid, BranchName)>>>);

impl Freed {
    /// A lane was left.
    pub(super) fn note(&self, lane: PathBuf, left: (Oid, BranchName)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(lane, left);
    }

    /// Whether the branch that a lane was left with is still at `head`, which is checked out there.
    pub(super) fn is_held(
        &self,
        repository: &Repository,
        lane: &Path,
        head: Oid,
    ) -> Result<bool, WorktreeError> {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(lane).cloned();
        match left {
            Some((commit, branch)) if commit == head => Ok(repository.find_branch(&branch)? == Some(head)),
            _ => Ok(false),
        }
    }
}
