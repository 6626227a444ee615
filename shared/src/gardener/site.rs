//! Where a worker works, with everything that it needs there: the user's checkout, or a lane of its own.

use super::GardenerError;
use crate::{
    git::Repository,
    process::OrphanLock,
    record::{RunIdentity, RunRecorder, Tip},
    worktree::Lease,
};

/// A place that is nobody's while a worker has it.
#[derive(Debug)]
pub struct WorkerPlace {
    /// The repository, as it is seen from there.
    pub repository: Repository,
    /// The branch that is checked out there, and where it stands.
    pub tip: Tip,
    /// Tells whether a process of an attempt lives there.
    pub orphan_lock: OrphanLock,
    /// What makes it ours, if it is not the user's checkout.
    pub lease: Option<Lease>,
}

impl WorkerPlace {
    /// One who writes down what happens there.
    #[must_use]
    pub fn recorder(&self, identity: &RunIdentity) -> RunRecorder<'_> {
        RunRecorder::at(&self.repository, identity.clone(), self.tip.clone())
    }

    /// Where a lane's folder is gone, whatever fails there fails for that.
    pub(super) fn explain(&self, error: GardenerError) -> GardenerError {
        match &self.lease {
            Some(lease) if !lease.path.is_dir() => {
                GardenerError::LaneGone { task: lease.task.clone(), path: lease.path.display().to_string() }
            }
            _ => error,
        }
    }
}
