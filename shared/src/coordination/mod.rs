//! Who works on what. A run that shares its plan with workers on other machines has a [`RemoteWork`], and asks it before it
//! starts a task, publishes a finished one or lands. Claims are refs at a remote. A run on one machine has none.

mod claim;
mod error;
mod listing;
mod remote_work;

pub use claim::{CLAIMS, ClaimState, TaskClaim, WORK_CLAIMS, worker_records};
pub use error::CoordinationError;
pub use listing::{RemoteClaim, RemoteView, WorkRequest};
pub use remote_work::RemoteWork;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    engine::StartedBy,
    name::{BranchName, Oid, TaskId},
};

/// How a worker shares a plan.
#[derive(Debug, Clone)]
pub struct WorkOptions {
    /// The name or URL of the remote with the branch of the run.
    pub remote: String,
    /// The name or URL of another remote that has the claims, the requests and the branches of finished tasks.
    pub coordination: Option<String>,
    /// The branch of the run.
    pub run: BranchName,
    /// How long a claim is valid without renewal.
    pub ttl: Duration,
    /// The current time in seconds since 1970.
    pub clock: fn() -> i64,
    /// The engine that has started this worker, if one has.
    pub started_by: Option<StartedBy>,
}

impl WorkOptions {
    /// The remote that has the claims.
    pub(crate) fn claims_at(&self) -> &str {
        self.coordination.as_deref().unwrap_or(&self.remote)
    }
}

/// What other workers have done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteProgress {
    /// The target at the remote.
    pub target: Option<Oid>,
    /// Tasks that other workers work on.
    pub taken: BTreeSet<TaskId>,
    /// Tasks that are finished and wait to land, with their commits.
    pub finished: BTreeMap<TaskId, Oid>,
    /// Tasks that have failed, and finished ones that could not land.
    pub failed: BTreeSet<TaskId>,
    /// Whether another worker lands.
    pub is_landing: bool,
    /// What this worker was asked to do.
    pub request: Option<WorkRequest>,
    /// What is wrong at the remote, in words.
    pub remarks: Vec<String>,
}

/// The answer to a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claiming {
    /// The task is ours.
    Won,
    /// Another worker has it.
    Taken,
}

/// The result of publishing a finished task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publication {
    /// Everyone can see it.
    Done,
    /// Another worker has taken the task over, so it was refused.
    Lost,
}

/// A landing that is to be published.
#[derive(Debug, Clone, Copy)]
pub struct PublishedLanding<'a> {
    /// Where the target was when it was tested.
    pub base: Oid,
    /// Where it moves to.
    pub tip: Oid,
    /// The tasks that land.
    pub tasks: &'a [TaskId],
    /// The refs with the results of its gates, and their values.
    pub gate_results: &'a [(String, Oid)],
}

/// The result of publishing a landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedLanding {
    /// The target has moved.
    Done,
    /// The target is not where it was tested, but here. Nothing was published.
    TargetChanged(Oid),
    /// Another worker lands now. Nothing was published.
    OtherWorkerLands,
}

/// How a task is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Another worker may take it.
    Free,
    /// It has failed. No worker takes it again.
    Failed,
}
