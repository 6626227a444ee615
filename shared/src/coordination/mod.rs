//! Who works on what. A run asks its [`Coordinator`] before it starts a task, publishes a finished one and lands.
//!
//! [`Alone`] is the answer for a run on one machine: everything is granted. [`RemoteWork`] shares the plan with workers
//! on other machines through claims, which are refs at a remote.

mod claim;
mod error;
mod listing;
mod remote_work;

pub use claim::{CLAIMS, ClaimState, TaskClaim, WORK_CLAIMS, WorkerName, worker_records};
pub use error::CoordinationError;
pub use listing::{RemoteClaim, RemoteView, WorkRequest};
pub use remote_work::RemoteWork;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
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
pub struct Outlook {
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
    /// The target was somewhere else: here. Nothing was published.
    Moved(Oid),
    /// Another worker lands now. Nothing was published.
    Overtaken,
}

/// How a task is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// Another worker may take it.
    Free,
    /// It has failed. No worker takes it again.
    Failed,
}

/// Decides who works on what.
pub trait Coordinator: fmt::Debug + Send + Sync {
    /// How often to look at what others do; `None` on one machine.
    fn interval(&self) -> Option<Duration>;
    /// The name of this worker; `None` on one machine.
    fn worker(&self) -> Option<&WorkerName>;
    /// The remote through which the plan is shared, without secrets; `None` on one machine.
    fn shown_remote(&self) -> Option<String>;
    /// What others have done.
    fn look(&self) -> Result<Outlook, CoordinationError>;
    /// Claims a task.
    fn claim(&self, task: &TaskId) -> Result<Claiming, CoordinationError>;
    /// Publishes a task that is finished at `tip`, and claims `next` with the same push if it is free.
    fn finish(
        &self,
        task: &TaskId,
        tip: Oid,
        next: Option<&TaskId>,
    ) -> Result<Publication, CoordinationError>;
    /// Gives a task back.
    fn release(&self, task: &TaskId, release: Release) -> Result<(), CoordinationError>;
    /// Brings these commits of finished tasks here.
    fn fetch(&self, tasks: &[(TaskId, Oid)]) -> Result<(), CoordinationError>;
    /// No longer counts a task as finished, because the commit of its claim cannot land. Until it expires, its claim is
    /// respected like one that cannot be read.
    fn distrust(&self, task: &TaskId, source: Oid);
    /// Whether this worker may land now. If so, look again: something may have landed before.
    fn begin_landing(&self) -> Result<bool, CoordinationError>;
    /// Publishes a landing.
    fn land(&self, landing: &PublishedLanding<'_>) -> Result<SharedLanding, CoordinationError>;
    /// Lets others land.
    fn end_landing(&self) -> Result<(), CoordinationError>;
}

/// A run on one machine: everything is granted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alone;

impl Coordinator for Alone {
    fn interval(&self) -> Option<Duration> {
        None
    }

    fn worker(&self) -> Option<&WorkerName> {
        None
    }

    fn shown_remote(&self) -> Option<String> {
        None
    }

    fn look(&self) -> Result<Outlook, CoordinationError> {
        Ok(Outlook::default())
    }

    fn claim(&self, _: &TaskId) -> Result<Claiming, CoordinationError> {
        Ok(Claiming::Won)
    }

    fn finish(&self, _: &TaskId, _: Oid, _: Option<&TaskId>) -> Result<Publication, CoordinationError> {
        Ok(Publication::Done)
    }

    fn release(&self, _: &TaskId, _: Release) -> Result<(), CoordinationError> {
        Ok(())
    }

    fn fetch(&self, _: &[(TaskId, Oid)]) -> Result<(), CoordinationError> {
        Ok(())
    }

    fn distrust(&self, _: &TaskId, _: Oid) {}

    fn begin_landing(&self) -> Result<bool, CoordinationError> {
        Ok(true)
    }

    fn land(&self, _: &PublishedLanding<'_>) -> Result<SharedLanding, CoordinationError> {
        Ok(SharedLanding::Done)
    }

    fn end_landing(&self) -> Result<(), CoordinationError> {
        Ok(())
    }
}
