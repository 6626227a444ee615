//! Remembers the commits of a run in memory for repeated reading. Commits never change, so only new ones are read from
//! git.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    HistoryError,
    entry::HistoryEntry,
    walk::{CommitSource, RunCommits, Walker, select_run},
};
use crate::name::{BranchName, Oid};

/// The commits of a run at the last reading. Clones share them.
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

    /// Reads a run from git, without reading remembered commits again. The first time, commits are taken from the cache
    /// file: each is verified by its id, from the tip, which git names, down to the start.
    pub(super) fn walk(&self, walker: &Walker<'_>) -> Result<RunCommits, HistoryError> {
        let mut remembered = self.lock();
        let known = remembered.take().filter(|known| known.branch == *walker.branch);
        let walk = match known.and_then(|known| walker.read_since(known.tip, known.entries)) {
            Some(walk) => walk,
            None => walker.walk(CommitSource::Cached)?,
        };
        // Without a run, the whole history was read, and remembering it has no use.
        *remembered = walk.start.map(|_| {
            let entries = walk.graph.entries.clone();
            Remembered { branch: walker.branch.clone(), tip: walker.tip, entries }
        });
        Ok(walk)
    }
}

impl Walker<'_> {
    /// The remembered commits up to `old`, and from git only those that are newer. `None` if the memory cannot be used.
    fn read_since(&self, old: Oid, known: Vec<HistoryEntry>) -> Option<RunCommits> {
        if self.repository.is_shallow {
            return None;
        }
        let mut entries = Vec::new();
        if old != self.tip {
            entries = self.read_all(&[self.tip.to_string(), format!("^{old}")]).ok()?.entries;
        }
        entries.extend(known);
        let walk = select_run(entries, self.tip).ok()?;
        walk.start?;
        self.has_complete_edges(&walk)?;
        Some(walk)
    }
}
