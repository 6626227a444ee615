//! Counts the child processes that are watched, in all repositories of this process.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::git::{OtherWriters, Repository};

/// The number of agents, reviewers and tests that are watched now, in all repositories of this process.
pub(super) static ACTIVE_WATCHES: AtomicUsize = AtomicUsize::new(0);
/// The number of watches that have ever begun.
pub(super) static WATCHES_BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Finds out whether a child process was the only one in its repository.
#[derive(Debug, Clone, Copy)]
pub struct ConcurrentChildren<'r> {
    repository: &'r Repository,
    running_children: usize,
    begun: usize,
    /// Whether another process is running a plan here.
    has_others: bool,
}

impl<'r> ConcurrentChildren<'r> {
    /// Call this before the child is watched.
    #[must_use]
    pub fn count(repository: &'r Repository) -> Self {
        let (running_children, begun) =
            (ACTIVE_WATCHES.load(Ordering::SeqCst), WATCHES_BEGUN.load(Ordering::SeqCst));
        Self { repository, running_children, begun, has_others: repository.has_other_runs() }
    }

    /// Whether other processes are running now.
    #[must_use]
    pub fn now(self) -> OtherWriters {
        if self.running_children == 0 && !self.has_others {
            OtherWriters::Alone
        } else {
            OtherWriters::Others
        }
    }

    /// Whether other processes were running since then. `own` is the number of watches that belong to the child itself.
    #[must_use]
    pub fn since(self, own: usize) -> OtherWriters {
        let others = WATCHES_BEGUN.load(Ordering::SeqCst).saturating_sub(self.begun) > own;
        if others || self.repository.has_other_runs() { OtherWriters::Others } else { self.now() }
    }
}
