//! Where tasks are worked on: the user's checkout, or lanes, worktrees in which several tasks are worked on at once, each on
//! its own branch.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::{
    gardener::GardenerError,
    git::{HiddenMarks, NewCommit, RefMove, Repository, Signing},
    history::Event,
    name::{Oid, SessionId, TaskId},
    process::{FileLock, OrphanLock},
    queue,
    record::{RunIdentity, RunRecorder, Tip, Unfinished, settle_lane},
    worktree::{Lease, LeaseStart, Pool},
};

/// What a crashed agent gets to end by itself.
const GRACE: Duration = Duration::from_secs(5);

/// So many finished tasks at least may wait in their lanes to land together: a landing costs the same for one or for four.
const WAITING: usize = 4;

/// The lanes of a run.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// The repository, as it is seen from the user's checkout.
    pub repository: &'a Repository,
    /// Where they come from.
    pub pool: Pool,
    /// How many may be at work at once.
    pub jobs: usize,
    /// Proves that nobody else drives this run.
    pub lock: &'a FileLock,
    /// How what was finished in them lands.
    pub queue: queue::QueueOptions,
    /// Where an earlier run may have left attempts.
    pub left: LeftMarks,
    /// Where this run has been.
    pub with_orphan_lock: Attended,
    /// What the test command has passed on.
    pub proofs: Proofs,
}

/// The locks of the processes in lanes that this run was in.
#[derive(Debug, Default)]
pub struct Attended(Mutex<HashSet<PathBuf>>);

/// The branches that attempts may be marked of, once they are known. They are listed together: nobody else drives this run
/// meanwhile.
#[derive(Debug, Default)]
pub struct LeftMarks(Mutex<Option<HashSet<String>>>);

/// Where a task begins, and what its branch must hold to be continued.
#[derive(Debug, Clone)]
pub(super) struct LaneStart {
    /// The newest commit of the run.
    pub(super) base: Oid,
    /// The task's newest commit on the run's own branch, if that has the last word on it.
    pub(super) newest: Option<Oid>,
    /// The run's session.
    pub(super) session: SessionId,
}

impl Lanes<'_> {
    /// A place for a task. What a branch from elsewhere held is saved, and the task begins anew.
    pub(super) fn take(&self, task: &TaskId, ground: &LaneStart) -> Result<WorkerPlace, GardenerError> {
        let lease = self.pool.lease(task, ground.base)?;
        let orphan_lock = self.attend(&lease.path)?;
        let mut head = tip_of(&lease)?;
        if lease.begun == LeaseStart::Adopted {
            settle_lane(&lease.repository, head)?;
        }
        if self.queue.distrusted.has(task) || is_stale(&lease, head, ground)? {
            put_aside(&lease, head, ground.base)?;
            head = ground.base;
            self.queue.distrusted.take(task);
        }
        let tip = Tip::new(&lease.repository, lease.branch.clone(), head)?;
        Ok(WorkerPlace { repository: lease.repository.clone(), tip, orphan_lock, lease: Some(lease) })
    }

    /// Whether an attempt at a task may be there that nobody ended. For whoever asks a second time it may be our own.
    pub(super) fn may_be_interrupted(&self, task: &TaskId) -> Result<bool, GardenerError> {
        let mut left = self.left.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut marked = match left.take() {
            Some(marked) => marked,
            None => Unfinished::list_marked(self.repository)?,
        };
        let is_new = marked.insert(self.pool.run().task_branch(task).component());
        *left = Some(marked);
        Ok(!is_new)
    }

    /// How many lanes there may be: one for each agent, and as many but at least a few in which finished tasks wait to
    /// land together, so that agents need not wait for landings. A single agent has one, and finds it as it left it.
    pub(super) fn most(&self) -> usize {
        Self::wanted(self.jobs).min(self.pool.max()).max(1)
    }

    /// How many lanes so many jobs want.
    #[must_use]
    pub fn wanted(jobs: usize) -> usize {
        if jobs == 1 { 1 } else { jobs.saturating_add(jobs.max(WAITING)) }
    }

    /// Ends what a crashed run left running in lanes. Gives the processes.
    pub fn clear(&self) -> Result<Vec<u32>, GardenerError> {
        let folder = self.lock.path().parent().unwrap_or(Path::new("."));
        let prefix = format!("{}~lane-", file_name(self.lock.path()));
        let mut ended = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix) && name.ends_with(OrphanLock::SUFFIX) {
                let (_, pids) = OrphanLock::take_over(self.lock, &entry.path(), GRACE)
                    .map_err(|source| GardenerError::Locked { branch: self.pool.run().clone(), source })?;
                ended.extend(pids.0);
            }
        }
        Ok(ended)
    }

    /// Whatever of an earlier run still lives in a lane is ended before we are there for the first time.
    fn attend(&self, lane: &Path) -> Result<OrphanLock, GardenerError> {
        let path = self.orphan_lock(lane);
        let is_known = self.with_orphan_lock.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&path);
        let take = if is_known { OrphanLock::take_again } else { OrphanLock::take_over };
        let (orphan_lock, _) = take(self.lock, &path, GRACE)
            .map_err(|source| GardenerError::Locked { branch: self.pool.run().clone(), source })?;
        self.with_orphan_lock.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
        Ok(orphan_lock)
    }

    fn orphan_lock(&self, lane: &Path) -> PathBuf {
        let name = format!("{}~{}{}", file_name(self.lock.path()), file_name(lane), OrphanLock::SUFFIX);
        self.lock.path().with_file_name(name)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn tip_of(lease: &Lease) -> Result<Oid, GardenerError> {
    lease.repository.head.commit.ok_or_else(|| GardenerError::Unborn(lease.branch.clone()))
}

/// A branch that does not follow what the run knows of its task speaks for another time: of an earlier run, or from
/// before the task was reset or its landing reverted.
fn is_stale(lease: &Lease, head: Oid, ground: &LaneStart) -> Result<bool, GardenerError> {
    if head == ground.base {
        return Ok(false);
    }
    if let Some(newest) = ground.newest {
        return Ok(!lease.repository.is_ancestor(newest, head)?);
    }
    for commit in lease.repository.stream_commits(&[head.to_string(), format!("^{}", ground.base)])? {
        let session = Event::of(&commit?).and_then(|event| event.session());
        if session.is_some_and(|session| session != ground.session) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Saves a branch and what lies in its worktree, and lets both begin anew.
fn put_aside(lease: &Lease, head: Oid, base: Oid) -> Result<(), GardenerError> {
    let repository = &lease.repository;
    repository.settle_index(HiddenMarks::Cleared)?;
    let tree = repository.snapshot()?;
    let saved = if tree == repository.tree_of(head)? {
        head
    } else {
        let message = format!("worktree of {} when its task began anew\n", lease.task);
        repository
            .write_commit(NewCommit { tree, parent: head, message: &message, author: None }, Signing::No)?
    };
    let folder = lease.branch.component();
    let name = format!("refs/arborist/saved/{folder}/{}", saved.short());
    if repository.list_refs(&[&name])?.is_empty() {
        let kept = RefMove { name: &name, new: Some(saved), old: None };
        repository.move_refs(&[kept], "arborist: begun anew")?;
    }
    repository.reset_hard(&lease.branch, base)?;
    repository.change("clean").args(["-q", "-f", "-d"]).stdout()?;
    Ok(())
}

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
