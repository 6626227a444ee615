//! What this worker knows about workers on other machines.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use super::{choose::Pick, work_state::FinishedTask};
use crate::{coordination::RemoteProgress, name::TaskId};

/// The shortest time between two looks of a worker, for each of the others. All of them together then look at most ten times
/// a second. GitHub recommends at most fifteen reads a second.
const INTERVAL_FOR_EACH: Duration = Duration::from_millis(100);

/// What is known about workers on other machines.
#[derive(Default)]
pub(super) struct OtherWorkers {
    pub(super) remote_progress: RemoteProgress,
    /// When to look at them again.
    pub(super) next_look_at: Option<Instant>,
    /// The most tasks that others had at the same time.
    pub(super) most_taken: u32,
    /// How many tasks others have claimed before this worker could.
    pub(super) lost_claims: usize,
    /// The task that was claimed together with the last result.
    pub(super) claimed_early: Option<TaskId>,
    /// Tasks that are finished here and could not be published, because the remote was out of reach.
    pub(super) unpublished: Vec<FinishedTask>,
    /// How often in a row the remote was out of reach.
    pub(super) failures: u32,
    /// For how many looks finished tasks of others have waited to land.
    pub(super) waited: u32,
    /// When to try again to land what waits.
    pub(super) retry_landing_at: Option<Instant>,
    /// Until when more may be finished that lands together with the last result.
    pub(super) batch_until: Option<Instant>,
    /// How often tasks have waited to land, although it was tried.
    pub(super) tries: BTreeMap<TaskId, u32>,
    /// Remarks that were reported.
    pub(super) reported: BTreeSet<String>,
}

impl OtherWorkers {
    /// How long to wait between two looks: so long, or longer if there are many workers.
    pub(super) fn interval(&self, alone: Duration) -> Duration {
        INTERVAL_FOR_EACH.saturating_mul(self.most_taken).max(alone)
    }

    /// Whether no other worker has taken, finished or failed this task.
    pub(super) fn is_open(&self, task: &TaskId) -> bool {
        let RemoteProgress { taken, finished, failed, .. } = &self.remote_progress;
        !taken.contains(task) && !finished.contains_key(task) && !failed.contains(task)
    }

    /// Whether this task was claimed together with the last result.
    pub(super) fn is_claimed_early(&self, task: &TaskId) -> bool {
        self.claimed_early.as_ref() == Some(task)
    }

    /// Which of the ready tasks this worker tries to claim: one of as many as there are workers.
    pub(super) fn pick(&self) -> Pick {
        match self.most_taken {
            0 => Pick::FIRST,
            others => {
                let number = (std::process::id() as usize).wrapping_add(self.lost_claims);
                Pick { among: others as usize + 1, number }
            }
        }
    }
}
