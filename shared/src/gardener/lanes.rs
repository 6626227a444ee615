//! Lanes: worktrees in which several tasks are worked on at once, each on its own branch.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{
    event::{EventKind, RunEvent},
    gardener::{GardenerError, saved_branches::save_branch},
    git::{FastForward, HiddenMarks, Merge, NewCommit, Repository, Signing},
    history::{Event, Run},
    message::Status,
    mutex::{MutexExt, SharedSet},
    name::{Oid, RepoName, SessionId, TaskId},
    process::{FileLock, OrphanLock},
    queue,
    record::{RunIdentity, RunRecorder, Tip, UnfinishedAttempt, repair_lane_index},
    worktree::{GRACE, Lease, LeaseStart, Pool},
};

/// At least this many finished tasks may wait in their lanes to land together: a landing costs the same for one or for
/// four.
const WAITING: usize = 4;

/// The lanes of a run.
#[derive(Debug)]
pub struct Lanes<'a> {
    /// The repository, opened in the user's checkout.
    pub repository: &'a Repository,
    /// The pool of worktrees.
    pub pool: Pool,
    /// How many tasks are worked on at once.
    pub jobs: usize,
    /// The run's lock, which proves that no other process drives this run.
    pub lock: &'a FileLock,
    /// How finished tasks land.
    pub queue: queue::QueueOptions,
    /// The marks of unfinished attempts of an earlier run.
    pub left: LeftMarks,
    /// The lanes whose orphan lock this run has taken.
    pub visited: SharedSet<PathBuf>,
    /// The trees that a test command has passed on, with the command.
    pub green_trees: SharedSet<(Oid, String)>,
    /// The lanes in which tests have passed, so they have everything that the tests need.
    pub green_lanes: SharedSet<PathBuf>,
}

/// The task branches with marks of unfinished attempts. They are listed once: the run's lock keeps other processes from
/// adding to them.
#[derive(Debug, Default)]
pub struct LeftMarks(Mutex<Option<HashSet<String>>>);

/// Where a task starts in a lane, and what its branch must contain to be continued.
#[derive(Debug, Clone)]
pub(super) struct LaneStart {
    /// The newest commit of the run.
    pub(super) base: Oid,
    /// The commit with which the run started, if it is in this repository.
    pub(super) run_start: Option<Oid>,
    /// The task's newest commit on the run's own branch, if that is newer than its task branch.
    pub(super) newest: Option<Oid>,
    /// The run's session.
    pub(super) session: SessionId,
}

impl Lanes<'_> {
    /// Takes a lane for a task. If the task's branch is stale, it is saved and the task starts over. Also returns whether
    /// the task begins without any earlier work.
    pub(super) fn take(
        &self,
        task: &TaskId,
        start: &LaneStart,
    ) -> Result<(TaskCheckout, bool), GardenerError> {
        let lease = self.pool.lease(task, start.base)?;
        let orphan_lock = self.take_orphan_lock(&lease.path)?;
        let (tip, is_reset) = begin_lane(&lease, start, self.queue.memory.distrusted.has(task))?;
        if is_reset {
            self.queue.memory.distrusted.remove(task);
        }
        let has_no_commits = tip.head == start.base;
        let starts_over = is_reset
            || (has_no_commits && UnfinishedAttempt::find_all(&lease.repository, &lease.branch)?.is_empty());
        let (repository, other_leases) = (lease.repository.clone(), Vec::new());
        let site = TaskCheckout { repository, tip, orphan_lock, lease: Some(lease), other_leases };
        Ok((site, starts_over))
    }

    /// Whether there may be an unfinished attempt at this task. Also true if asked again: then the attempt may be our
    /// own.
    pub(super) fn may_be_interrupted(&self, task: &TaskId) -> Result<bool, GardenerError> {
        let mut left = self.left.0.hold();
        let mut marked = match left.take() {
            Some(marked) => marked,
            None => UnfinishedAttempt::list_marked(self.repository)?,
        };
        let is_new = marked.insert(self.pool.run().task_branch(task).component());
        *left = Some(marked);
        Ok(!is_new)
    }

    /// The largest number of lanes: one for each agent, and as many again, but at least [`WAITING`], for finished tasks
    /// that wait to land together, so that agents do not wait for landings. A single agent has one lane, and finds it
    /// as it left it.
    pub(super) fn max(&self) -> usize {
        Self::number_for(self.jobs).min(self.pool.max()).max(1)
    }

    /// The number of lanes for this number of jobs.
    #[must_use]
    pub fn number_for(jobs: usize) -> usize {
        if jobs == 1 { 1 } else { jobs.saturating_add(jobs.max(WAITING)) }
    }

    /// Ends processes that a crashed run left running in lanes, and returns their ids.
    pub fn end_orphans(&self) -> Result<Vec<u32>, GardenerError> {
        let folder = self.lock.path().parent().unwrap_or(Path::new("."));
        let prefix = format!("{}~lane-", file_name(self.lock.path()));
        let mut ended = Vec::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(&prefix) && name.ends_with(OrphanLock::SUFFIX) {
                let (_, pids) = OrphanLock::take_over(self.lock, &entry.path(), GRACE)
                    .map_err(|source| GardenerError::Locked { branch: self.pool.run().clone(), source })?;
                ended.extend(pids);
                // Nothing is left of the earlier run there, so its processes are not searched again when a task takes
                // the lane: that reads the environment and the open files of every process of the machine.
                self.visited.add(entry.path());
            }
        }
        Ok(ended)
    }

    /// Takes the lane's orphan lock. The first time, processes of an earlier run in the lane are ended.
    fn take_orphan_lock(&self, lane: &Path) -> Result<OrphanLock, GardenerError> {
        let path = self.orphan_lock_path(lane);
        let is_known = self.visited.has(&path);
        let take = if is_known { OrphanLock::take_again } else { OrphanLock::take_over };
        let (orphan_lock, _) = take(self.lock, &path, GRACE)
            .map_err(|source| GardenerError::Locked { branch: self.pool.run().clone(), source })?;
        self.visited.add(path);
        Ok(orphan_lock)
    }

    fn orphan_lock_path(&self, lane: &Path) -> PathBuf {
        let name = format!("{}~{}{}", file_name(self.lock.path()), file_name(lane), OrphanLock::SUFFIX);
        self.lock.path().with_file_name(name)
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Prepares a lane that was taken for a task. If its branch does not follow from what the run knows, or the task starts
/// over, the branch is saved and reset. Returns the tip, and whether that was done.
pub(super) fn begin_lane(
    lease: &Lease,
    start: &LaneStart,
    starts_over: bool,
) -> Result<(Tip, bool), GardenerError> {
    let head = tip_of(lease)?;
    if lease.start == LeaseStart::Adopted {
        repair_lane_index(&lease.repository, head)?;
    }
    let is_reset = (starts_over && head != start.base) || is_stale(lease, head, start)?;
    if is_reset {
        save_and_reset(lease, head, start.base)?;
    }
    let head = if is_reset { start.base } else { join_run(lease, head, start)? };
    Ok((Tip::new(&lease.repository, lease.branch.clone(), head)?, is_reset))
}

/// Merges the run into a task branch that has commits from before the run started. Without that merge the branch would
/// not count, because it does not contain the start of the run. Returns the new tip.
fn join_run(lease: &Lease, head: Oid, start: &LaneStart) -> Result<Oid, GardenerError> {
    let repository = &lease.repository;
    let Some(run_start) = start.run_start else { return Ok(head) };
    if repository.is_ancestor(run_start, head)? {
        return Ok(head);
    }
    let conflict = |why: String| GardenerError::BegunBefore {
        branch: lease.branch.clone(),
        path: lease.path.display().to_string(),
        run: start.base,
        why,
    };
    let Merge::Clean(tree) = repository.merge(head, start.base)? else {
        return Err(conflict("they conflict with it".into()));
    };
    let message = format!("Merge the run into {}\n", lease.branch);
    let parents = [head, start.base];
    let signing = repository.signing()?;
    let merged = repository.write_commit_with_parents(tree, &parents, &message, signing)?;
    match repository.fast_forward(&lease.path, &lease.branch, head, merged)? {
        FastForward::Done => Ok(merged),
        FastForward::Refused(why) => Err(conflict(why)),
        FastForward::BranchChanged => Err(conflict("the branch has just moved".into())),
    }
}

/// Reports that a task has a lane, in another repository if `repo` is its name, and what was found when it was taken.
pub(super) fn lane_events<'l>(
    task: &'l TaskId,
    repo: Option<&'l RepoName>,
    lease: &'l Lease,
    recovered: impl Iterator<Item = String> + 'l,
) -> impl Iterator<Item = RunEvent> + 'l {
    let (repo, path, branch) = (repo.cloned(), lease.path.clone(), lease.branch.clone());
    let created = EventKind::WorktreeCreated { repo, path, branch, recycled: !lease.is_new };
    let notes = recovered.chain(lease.notes.iter().map(ToString::to_string)).map(EventKind::note);
    std::iter::once(created).chain(notes).map(|kind| RunEvent::of(task, kind))
}

fn tip_of(lease: &Lease) -> Result<Oid, GardenerError> {
    let unborn = || GardenerError::Unborn(lease.branch.clone());
    lease.repository.find_branch(&lease.branch)?.ok_or_else(unborn)
}

/// Whether a task branch does not follow from what the run knows about the task: it is from an earlier run, or from
/// before the task was reset or its landing reverted.
fn is_stale(lease: &Lease, head: Oid, start: &LaneStart) -> Result<bool, GardenerError> {
    if head == start.base {
        return Ok(false);
    }
    if let Some(newest) = start.newest {
        return Ok(!lease.repository.is_ancestor(newest, head)?);
    }
    for commit in lease.repository.stream_commits(&[head.to_string(), format!("^{}", start.base)])? {
        let session = Event::of(&commit?).and_then(|event| event.session());
        if session.is_some_and(|session| session != start.session) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The events of a task on its own branch from before it was reset, oldest first. The run's branch has only the reset, and
/// the task's branch is saved when the task starts over.
pub(crate) fn events_before_reset(
    repository: &Repository,
    run: &Run,
    task: &TaskId,
) -> Result<Vec<Event>, GardenerError> {
    let history =
        run.find(task).filter(|history| history.events.iter().any(|event| event.status() == Status::Reset));
    let (Some(history), Some(start)) = (history, &run.start) else { return Ok(Vec::new()) };
    let branch = run.scope.branch.task_branch(task);
    let (own, saved) = (branch.to_ref(), branch.saved_refs());
    let mut revisions: Vec<String> =
        repository.list_refs(&[&own, &saved])?.into_iter().map(|found| found.target.to_string()).collect();
    if revisions.is_empty() {
        return Ok(Vec::new());
    }
    revisions.push(format!("^{}", run.scope.tip.unwrap_or(start.commit)));
    let mut events = Vec::new();
    for commit in repository.stream_commits(&revisions)? {
        let event = Event::of(&commit?).filter(|event| event.task() == Some(task));
        let is_told = |event: &Event| {
            event.session().as_ref() == Some(&start.session)
                && history.events.iter().all(|known| known.commit != event.commit)
        };
        events.extend(event.filter(is_told));
    }
    // Branches of different attempts follow each other only in time.
    events.reverse();
    events.sort_by_key(|event| event.time);
    Ok(events)
}

/// Saves a branch and the files of its worktree, and resets both.
fn save_and_reset(lease: &Lease, head: Oid, base: Oid) -> Result<(), GardenerError> {
    let repository = &lease.repository;
    repository.make_index_known(HiddenMarks::Cleared)?;
    let tree = repository.snapshot()?;
    let saved = if tree == repository.tree_of(head)? {
        head
    } else {
        let message = format!("worktree of {} when its task was started over\n", lease.task);
        repository
            .write_commit(NewCommit { tree, parent: head, message: &message, author: None }, Signing::No)?
    };
    save_branch(repository, &lease.branch, saved)?;
    repository.reset_hard(&lease.branch, base)?;
    Ok(repository.clean(&["-q", "-f", "-d"])?)
}

/// A checkout to work in. The thread of a task owns it while the task is worked on there.
#[derive(Debug)]
pub struct TaskCheckout {
    /// The repository, opened there.
    pub repository: Repository,
    /// The branch that is checked out there, and its commit.
    pub tip: Tip,
    /// Tells whether a process of an attempt is alive there.
    pub orphan_lock: OrphanLock,
    /// The lease of a lane; `None` for the user's checkout.
    pub lease: Option<Lease>,
    /// The leases of the lanes that the task has in other repositories.
    pub other_leases: Vec<Lease>,
}

impl TaskCheckout {
    /// A recorder for this place.
    #[must_use]
    pub fn recorder(&self, identity: &RunIdentity) -> RunRecorder<'_> {
        RunRecorder::at(&self.repository, identity.clone(), self.tip.clone())
    }

    /// Gives the leases of all of its lanes back.
    pub(super) fn into_leases(self) -> impl Iterator<Item = Lease> {
        self.lease.into_iter().chain(self.other_leases)
    }

    /// If the lane's directory is gone, that is the cause of every error there.
    pub(super) fn explain(&self, error: GardenerError) -> GardenerError {
        match &self.lease {
            Some(lease) if !lease.path.is_dir() => {
                GardenerError::LaneGone { task: lease.task.clone(), path: lease.path.display().to_string() }
            }
            _ => error,
        }
    }
}
