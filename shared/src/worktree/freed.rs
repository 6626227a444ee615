//! Remembers lanes that this process freed, and the branch that led to the checked out commit. When such a lane is
//! filled again, only that branch has to be checked to know that the commit is reachable; searching all refs takes
//! longer with every task.

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

/// The commit and the branch of each freed lane. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Freed(Arc<Mutex<HashMap<PathBuf, (Oid, BranchName)>>>);

impl Freed {
    /// Remembers a freed lane.
    pub(super) fn note(&self, lane: PathBuf, left: (Oid, BranchName)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(lane, left);
    }

    /// Whether the branch of a freed lane is still at `head`, which is checked out there.
    pub(super) fn is_reachable_from_refs(
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
