//! What was read of a run before, for one who reads it again and again. Commits never change, so only new ones are asked for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    HistoryError,
    entry::HistoryEntry,
    walk::{CommitSource, RunCommits, Walker, settle},
};
use crate::name::{BranchName, Oid};

/// The commits of a run, as they were read last. Copies share them.
#[derive(Debug, Clone, Default)]
pub struct CommitCache(Arc<Mutex<Option<Remembered>>>);

#[derive(Debug)]
struct Remembered {
    branch: BranchName,
    tip: Oid,
    entries: Vec<HistoryEntry>,
}

impl CommitCache {
    fn lock(&self) -> MutexGuard<'_, Option<Remembered>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a run as git has it. What is remembered of it is not asked for again, and at first neither is what the cache
    /// holds: each commit there proves itself by its id, from the tip, which git tells, down to the start.
    pub(super) fn walk(&self, walker: &Walker<'_>) -> Result<RunCommits, HistoryError> {
        let mut remembered = self.lock();
        let known = remembered.take().filter(|known| known.branch == *walker.branch);
        let walk = match known.and_then(|known| walker.read_since(known.tip, known.entries)) {
            Some(walk) => walk,
            None => walker.walk(CommitSource::Cached)?,
        };
        // Where no run began, everything was read, and nobody would make use of it.
        *remembered = walk.start.map(|_| {
            let entries = walk.graph.entries.clone();
            Remembered { branch: walker.branch.clone(), tip: walker.tip, entries }
        });
        Ok(walk)
    }
}

impl Walker<'_> {
    /// What git itself gave before, up to `old`, and from git only what is new since. `None` if that is of no use.
    fn read_since(&self, old: Oid, known: Vec<HistoryEntry>) -> Option<RunCommits> {
        if self.repository.is_shallow {
            return None;
        }
        let mut entries = Vec::new();
        if old != self.tip {
            entries = self.read_all(&[self.tip.to_string(), format!("^{old}")]).ok()?.entries;
        }
        entries.extend(known);
        let walk = settle(entries, self.tip).ok()?;
        walk.start?;
        self.has_true_edges(&walk)?;
        Some(walk)
    }
}
