//! Lanes in the other repositories of a workspace. A task that works there has its own worktree and branch, as in the
//! repository with the plan, so that tasks do not see each other's files. Its work is merged into the session's branch
//! there when the task is about to land here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::SyncSender};

use super::{
    GardenerError, Tools,
    lanes::{LaneStart, is_stale, save_and_reset, tip_of},
    recover::{Recovered, TaskFacts, record_unfinished},
    worker::{WorkerReport, works_in},
};
use crate::{
    event::{EventKind, RunEvent},
    git::{FastForward, Merge, MergeConflict, Repository},
    history::{CommitSource, Run, RunScope, WorkBase},
    name::{BranchName, Oid, RepoName, TaskId},
    pipeline::{IgnoredFiles, OtherRepo, PreCommit},
    plan::Task,
    process::FileLock,
    record::{RunIdentity, RunRecorder, Tip, Unfinished, settle_lane},
    session::finish_turn_elsewhere,
    worktree::{Lease, LeaseStart, Pool, SESSION_REASON, WorktreeError, WorktreeOptions},
};

/// The lanes of a run in another repository.
#[derive(Debug)]
pub struct OtherLanes {
    name: RepoName,
    /// The repository, opened in the session's worktree.
    repository: Repository,
    identity: RunIdentity,
    hook: PreCommit,
    pool: Pool,
    lock: Arc<FileLock>,
    /// Held while the session's worktree is tested in or moved.
    checkout: Mutex<()>,
}

/// A lane that a task has in another repository.
pub(super) struct OtherLane {
    pub(super) place: OtherRepo,
    pub(super) lease: Lease,
    /// Attempts that an earlier run left unfinished there, recorded now.
    pub(super) recovered: Vec<Recovered>,
}

/// What taking a lane needs to know.
#[derive(Clone, Copy)]
pub(super) struct OtherLaneRequest<'a> {
    pub(super) task: &'a Task,
    /// The repository with the plan, which has the session's records.
    pub(super) records: &'a Repository,
    pub(super) log_dir: &'a str,
    pub(super) max_retries: u32,
    /// Whether what the branch has must not be continued.
    pub(super) is_distrusted: bool,
}

/// Why the work of a task cannot be merged in another repository.
pub(super) struct RefusedMerge {
    pub(super) words: String,
    pub(super) conflicts: Vec<MergeConflict>,
}

impl OtherLanes {
    /// Lanes beside the session's worktree in another repository.
    pub fn new(session: &OtherRepo, options: WorktreeOptions) -> Result<Self, WorktreeError> {
        let mut options = options;
        options.session = Some(session.identity.session.clone());
        options.repo = Some(session.name.clone());
        Ok(Self {
            name: session.name.clone(),
            repository: session.repository.clone(),
            identity: session.identity.clone(),
            hook: session.hook,
            pool: Pool::open(&session.repository, &session.identity.run, options)?,
            lock: Arc::clone(&session.lock),
            checkout: Mutex::new(()),
        })
    }

    /// The name of the repository.
    pub(super) fn name(&self) -> &RepoName {
        &self.name
    }

    /// The session's branch there.
    fn branch(&self) -> &BranchName {
        &self.identity.run
    }

    fn head(&self) -> Result<Oid, GardenerError> {
        let head = self.find_tip(self.branch())?;
        head.ok_or_else(|| GardenerError::Unborn(self.branch().clone()))
    }

    /// The commit that this run gave a branch, whatever a child process has made of the ref since.
    fn find_tip(&self, branch: &BranchName) -> Result<Option<Oid>, GardenerError> {
        match self.repository.find_owned_ref(&branch.to_ref()) {
            Some(known) => Ok(known),
            None => Ok(self.repository.find_branch(branch)?),
        }
    }

    /// Tells the session's checkout there which commit landings have moved it to.
    pub(super) fn refresh(&self, session: &mut OtherRepo) -> Result<(), GardenerError> {
        let head = self.head()?;
        if head != session.tip.head {
            session.tip = Tip::new(&self.repository, self.branch().clone(), head)?;
        }
        Ok(())
    }

    /// Waits until nothing else tests in the session's worktree or moves it.
    pub(super) fn lock_checkout(&self) -> MutexGuard<'_, ()> {
        self.checkout.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees the lanes of tasks that have landed.
    pub(super) fn free(&self, has_landed: impl Fn(&TaskId) -> bool) -> Result<(), GardenerError> {
        Ok(self.pool.free(has_landed)?)
    }

    /// Takes a lane for a task. It begins at the session's newest commit there, and keeps what earlier attempts left.
    pub(super) fn take(&self, request: OtherLaneRequest<'_>) -> Result<OtherLane, GardenerError> {
        let task = request.task;
        let base = self.head()?;
        let lease = self.pool.lease(&task.id, base)?;
        let mut head = tip_of(&lease)?;
        if lease.begun == LeaseStart::Adopted {
            settle_lane(&lease.repository, head)?;
        }
        let mut recovered = Vec::new();
        if !Unfinished::find_all(&lease.repository, &lease.branch)?.is_empty() {
            (head, recovered) = self.record_left(&lease, head, request)?;
        }
        let start = LaneStart { base, newest: None, session: self.identity.session.clone() };
        if request.is_distrusted || is_stale(&lease, head, &start)? {
            save_and_reset(&lease, head, base)?;
            head = base;
        } else {
            head = self.catch_up(&lease, head, base)?;
        }
        let tip = Tip::new(&lease.repository, lease.branch.clone(), head)?;
        let ignored = IgnoredFiles::default();
        ignored.begin(&lease.repository, tip.tree, request.log_dir)?;
        let mut place = OtherRepo {
            name: self.name.clone(),
            repository: lease.repository.clone(),
            identity: self.identity.clone(),
            hook: self.hook,
            ignored,
            base: WorkBase::fresh(tip.head, tip.tree),
            tip,
            lock: Arc::clone(&self.lock),
        };
        if head != base {
            place.find_base(&task.id)?;
        }
        Ok(OtherLane { place, lease, recovered })
    }

    /// Records attempts that an earlier run left unfinished in the lane. Returns the new tip.
    fn record_left(
        &self,
        lease: &Lease,
        head: Oid,
        request: OtherLaneRequest<'_>,
    ) -> Result<(Oid, Vec<Recovered>), GardenerError> {
        let (place, branch, name) = (&lease.repository, &lease.branch, self.name.as_str());
        finish_turn_elsewhere(request.records, &self.identity.session, (name, place, branch))?;
        let head = place.find_branch(branch)?.unwrap_or(head);
        let scope = RunScope { branch: self.branch().clone(), tip: Some(head) };
        let run = Run::scan(place, scope, CommitSource::Fresh)?;
        let events = |task: &TaskId| run.find(task).map_or(&[][..], |history| history.current());
        let name = |_: &TaskId| Some(request.task.name.as_str());
        let known = TaskFacts { events: &events, name: &name, max: request.max_retries, why: None };
        let tip = Tip::new(place, branch.clone(), head)?;
        let mut recorder = RunRecorder::at(place, self.identity.clone(), tip);
        let recovered = record_unfinished(&mut recorder, &known)?;
        Ok((recorder.head(), recovered))
    }

    /// Merges what has landed there since into the task's branch. If that conflicts, the branch is saved and the task
    /// begins again there.
    fn catch_up(&self, lease: &Lease, head: Oid, base: Oid) -> Result<Oid, GardenerError> {
        let place = &lease.repository;
        if place.is_ancestor(base, head)? {
            return Ok(head);
        }
        let tree = match place.merge(head, base)? {
            Merge::Clean(tree) if place.is_clean()? => tree,
            _ => {
                save_and_reset(lease, head, base)?;
                return Ok(base);
            }
        };
        let message = format!("Merge '{}' into '{}'\n", self.branch(), lease.branch);
        let merged =
            place.write_commit_with_parents(tree, &[head, base], &message, self.repository.signing()?)?;
        place.reset_hard(&lease.branch, merged)?;
        Ok(merged)
    }

    /// The commit that the session's branch has to move to so that it has the work of a task, with the one it is at.
    /// `None` if it has it already.
    fn plan_merge(&self, task: &TaskId) -> Result<Result<Option<(Oid, Oid)>, RefusedMerge>, GardenerError> {
        let (repository, branch) = (&self.repository, self.branch().task_branch(task));
        let head = self.head()?;
        let Some(tip) = self.find_tip(&branch)? else { return Ok(Ok(None)) };
        if repository.is_ancestor(tip, head)? {
            return Ok(Ok(None));
        }
        if repository.is_ancestor(head, tip)? {
            return Ok(Ok(Some((head, tip))));
        }
        match repository.merge(head, tip)? {
            Merge::Clean(tree) => {
                let message = format!("Merge '{branch}' into '{}'\n", self.branch());
                let parents = [head, tip];
                let merged =
                    repository.write_commit_with_parents(tree, &parents, &message, repository.signing()?)?;
                Ok(Ok(Some((head, merged))))
            }
            Merge::Conflicted(_, conflicts) => {
                let paths: Vec<&str> =
                    conflicts.iter().flat_map(|conflict| &conflict.paths).map(String::as_str).collect();
                let words = format!(
                    "'{branch}' conflicts with '{}' in {}: {}",
                    self.branch(),
                    self.name,
                    paths.join(", ")
                );
                Ok(Err(RefusedMerge { words, conflicts }))
            }
        }
    }
}

impl Tools<'_> {
    /// Whether a task works in its own lane in this repository, which is another one than the plan's.
    pub(super) fn has_lane_in(&self, task: &Task, name: &RepoName) -> bool {
        let is_other = || self.other_lanes.iter().any(|other| other.name() == name);
        task.is_leaf() && works_in(task, name) && is_other()
    }

    /// Takes a lane for a task in each of the other repositories that it works in, and reports it.
    pub(super) fn take_other_lanes(
        &self,
        task: &Task,
        is_distrusted: bool,
        reports: &SyncSender<WorkerReport>,
    ) -> Result<(Vec<OtherRepo>, Vec<Lease>), GardenerError> {
        let lanes = self.lanes.ok_or(GardenerError::NoPlace)?;
        let options = self.context.options;
        let request = OtherLaneRequest {
            task,
            records: lanes.repository,
            log_dir: &options.log_dir,
            max_retries: options.max_retries,
            is_distrusted,
        };
        let (mut places, mut leases) = (Vec::new(), Vec::new());
        for other in self.other_lanes.iter().filter(|other| works_in(task, other.name())) {
            let OtherLane { place, lease, recovered } = other.take(request)?;
            let words = recovered.iter().map(|recovered| format!("in {}: {}", place.name, recovered.words()));
            for words in words.chain(lease.notes.iter().map(ToString::to_string)) {
                let _ = reports.send(WorkerReport::News(RunEvent::of(&task.id, EventKind::note(words))));
            }
            places.push(place);
            leases.push(lease);
        }
        Ok((places, leases))
    }
}

/// Merges the work of a task into the session's branches in all other repositories, or in none if one refuses. After a
/// crash in between, the next call continues.
pub(super) fn merge_elsewhere(
    all: &[OtherLanes],
    task: &TaskId,
) -> Result<Result<(), RefusedMerge>, GardenerError> {
    let _checkouts: Vec<MutexGuard<'_, ()>> = all.iter().map(OtherLanes::lock_checkout).collect();
    let mut moves = Vec::new();
    for other in all {
        match other.plan_merge(task)? {
            Ok(planned) => moves.extend(planned.map(|planned| (other, planned))),
            Err(refused) => return Ok(Err(refused)),
        }
    }
    for (other, planned) in moves {
        let why = match other.repository.bring_forward(other.branch(), planned, SESSION_REASON)? {
            FastForward::Done => continue,
            FastForward::Refused(why) => why,
            FastForward::Overtaken => "another process is moving it".to_owned(),
        };
        let words = format!("'{}' cannot be moved in {}: {why}", other.branch(), other.name);
        return Ok(Err(RefusedMerge { words, conflicts: Vec::new() }));
    }
    Ok(Ok(()))
}
