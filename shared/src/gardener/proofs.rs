//! What this process itself has seen to pass. Nothing of it is kept: a file could be written by an agent.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crate::name::Oid;

/// Trees that a test command has passed on, and lanes in which it has passed at all.
#[derive(Debug, Default)]
pub struct Proofs {
    trees: Mutex<HashSet<(Oid, String)>>,
    lanes: Mutex<HashSet<PathBuf>>,
}

impl Proofs {
    /// The command has passed on this tree.
    pub fn add(&self, tree: Oid, command: &str) {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).insert((tree, command.to_owned()));
    }

    /// Whether it has.
    #[must_use]
    pub fn has(&self, tree: Oid, command: &str) -> bool {
        self.trees.lock().unwrap_or_else(PoisonError::into_inner).contains(&(tree, command.to_owned()))
    }

    /// Tests have passed in this lane, so it has all that they need.
    pub fn add_lane(&self, lane: &Path) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).insert(lane.to_owned());
    }

    /// Whether they have.
    #[must_use]
    pub fn has_lane(&self, lane: &Path) -> bool {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).contains(lane)
    }
}
