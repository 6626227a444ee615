//! Claims of workers. A claim is a ref at a remote that names a commit without files. Its message has a line of JSON:
//! who holds it, since when, and how long it is valid without renewal.
//!
//! Claims come from a remote that many can write to, so everything in them is bounded and checked when it is read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::{
    engine::EngineJob,
    git::{GitError, RawCommit, Repository, Signing},
    message::one_line,
    name::{BranchName, Oid, TaskId, WorkerName, digest},
    process::ProcessId,
};

/// The prefix of the refs of all claims.
pub const CLAIMS: &str = "refs/arborist/claims/";
/// The prefix of the refs of claims of workers. `%` is escaped in the names of branches, so no claim on the queue of a
/// branch has this name.
pub const WORK_CLAIMS: &str = "refs/arborist/claims/%work/";
/// The largest commit that is read as a claim.
pub(super) const LARGEST_CLAIM: u64 = 4096;
/// The limits of a time to live in seconds. A claim with a longer one was not written by a worker.
const TIMES_TO_LIVE: std::ops::RangeInclusive<u64> = 1..=86_400;
/// How long a claim that cannot be read is respected.
pub(super) const UNREADABLE_TIME_TO_LIVE: Duration = Duration::from_secs(600);
/// How many characters of a name of a worker or host are used.
const LONGEST_NAME: usize = 64;

/// The refs with which the workers of one run coordinate.
#[derive(Debug, Clone)]
pub(super) struct ClaimRefs {
    /// The prefix of claims on tasks.
    pub(super) tasks: String,
    /// The claim of the worker that lands.
    pub(super) lander: String,
    /// The prefix of requests to workers.
    pub(super) requests: String,
    /// The target.
    pub(super) target: String,
    /// The prefix of branches of finished tasks.
    pub(super) branches: String,
    /// The prefix of the session's records of each worker.
    pub(super) records: String,
}

impl ClaimRefs {
    pub(super) fn new(run: &BranchName) -> Self {
        let of_run = format!("{WORK_CLAIMS}{}", run.component());
        Self {
            tasks: format!("{of_run}/tasks/"),
            lander: format!("{of_run}/lander"),
            requests: format!("{of_run}/requests/"),
            target: run.to_ref(),
            branches: run.task_refs(),
            records: format!("{of_run}/records/"),
        }
    }

    pub(super) fn task(&self, task: &TaskId) -> String {
        format!("{}{task}", self.tasks)
    }

    pub(super) fn branch(&self, task: &TaskId) -> String {
        format!("{}{task}", self.branches)
    }
}

/// The prefix of the refs with the records that each worker on the plan of this branch has published.
#[must_use]
pub fn worker_records(run: &BranchName) -> String {
    ClaimRefs::new(run).records
}

/// What a worker does with a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimState {
    /// It works on the task, or lands.
    Working,
    /// The task is finished, and waits to land. The claim does not expire.
    Finished,
    /// The task has failed, or could not land. The claim does not expire.
    Failed,
    /// It has ended. Anyone may take the claim.
    Free,
}

/// The content of a claim. It is serialised into git as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaim {
    /// The worker.
    pub worker: WorkerName,
    /// Its host.
    pub host: String,
    /// Its process.
    pub process: u32,
    /// Identifies the clone on its machine, until the next boot.
    pub(super) place: String,
    /// A value that no other claim has.
    pub(super) nonce: String,
    /// The task; `None` for the claim of the worker that lands.
    pub task: Option<TaskId>,
    /// What the worker does.
    pub state: ClaimState,
    /// The commit of a finished task.
    pub source: Option<Oid>,
    /// When it was taken: seconds since 1970 by the clock of the worker.
    pub since: i64,
    /// When it was last renewed: seconds since 1970 by the clock of the worker.
    pub renewed: i64,
    /// How often it was renewed.
    pub renewals: u64,
    /// How many seconds it is valid without renewal.
    pub ttl: u64,
    /// The job of the worker, if an engine has started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<EngineJob>,
}

impl TaskClaim {
    /// Reads a claim. `None` if it is not one.
    pub(super) fn read(commit: &RawCommit) -> Option<Self> {
        let text = std::str::from_utf8(commit.message()).ok()?;
        let mut claim: Self = serde_json::from_str(text.lines().nth(2)?).ok()?;
        if !TIMES_TO_LIVE.contains(&claim.ttl) {
            return None;
        }
        claim.job = claim.job.filter(EngineJob::is_plain);
        claim.host = one_line(&claim.host).chars().take(LONGEST_NAME).collect();
        Some(claim)
    }

    /// Writes it as a commit that no other claim has. Without the nonce, a claim that is renewed twice in the same second
    /// would be the same commit, and other workers could not see that it was renewed.
    pub(super) fn write(&mut self, repository: &Repository) -> Result<Oid, GitError> {
        self.nonce = nonce();
        let what = self.task.as_ref().map_or("landing", TaskId::as_str);
        let subject = format!("claim: {what} by {}", self.worker);
        repository.write_json_commit(&subject, &[&*self], &[], Signing::No)
    }

    /// How long it is valid without renewal.
    pub(super) fn time_to_live(&self) -> Duration {
        Duration::from_secs(self.ttl)
    }
}

/// This worker.
#[derive(Debug, Clone)]
pub(super) struct OwnIdentity {
    pub(super) name: WorkerName,
    host: String,
    process: u32,
    pub(super) place: String,
    job: Option<EngineJob>,
}

impl OwnIdentity {
    /// The worker of this clone. Its name is made from the host and from what identifies the clone there.
    pub(super) fn find(repository: &Repository, job: Option<EngineJob>) -> Self {
        let process = ProcessId::ours();
        let inode = folder_id(&repository.common_dir);
        let seed = format!("{}\n{}\n{inode}", process.machine(), repository.common_dir.display());
        let place: String = digest(seed.as_bytes()).chars().take(16).collect();
        let name = WorkerName::new(&process.host, &place[..6]);
        Self { name, host: process.host.clone(), process: process.pid, place, job }
    }

    /// A new claim.
    pub(super) fn claim(&self, task: Option<TaskId>, (now, ttl): (i64, Duration)) -> TaskClaim {
        TaskClaim {
            worker: self.name.clone(),
            host: self.host.clone(),
            process: self.process,
            place: self.place.clone(),
            nonce: String::new(),
            task,
            state: ClaimState::Working,
            source: None,
            since: now,
            renewed: now,
            renewals: 0,
            ttl: ttl.as_secs().max(1),
            job: self.job.clone(),
        }
    }
}

/// Device and inode of a folder.
fn folder_id(folder: &std::path::Path) -> String {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(folder).map(|found| format!("{} {}", found.dev(), found.ino())).unwrap_or_default()
}

/// A value that no other process gets.
pub(super) fn nonce() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let process = ProcessId::ours();
    let seed = format!(
        "{time} {} {} {:?} {}",
        process.pid,
        process.machine(),
        std::thread::current().id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    digest(seed.as_bytes()).chars().take(24).collect()
}
