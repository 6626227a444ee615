//! Lanes in the other repositories of a workspace. A task has its own worktree and branch there, as in the repository with
//! the plan, so that tasks do not see each other's files. The queue lands its work there when it lands here.

use std::sync::{Arc, mpsc::SyncSender};

use super::{
    GardenerError, RunResources,
    interrupted_attempts::{Recovered, TaskFacts, record_unfinished},
    lanes::{LaneStart, begin_lane, lane_events},
    work_state::ThreadReport,
};
use crate::{
    git::Repository,
    history::{CommitSource, Run, RunScope, WorkBase},
    name::{BranchName, Oid, RepoName, TaskId},
    pipeline::{IgnoredFiles, OtherRepo, PreCommit, RunContext},
    plan::Task,
    process::FileLock,
    record::{RunIdentity, RunRecorder, Tip, UnfinishedAttempt, repair_lane_index},
    session::finish_turn_elsewhere,
    worktree::{Lease, Pool, WorktreeError, WorktreeOptions},
};

/// The lanes of a run in another repository.
#[derive(Debug)]
pub struct OtherLanes {
    pub(super) name: RepoName,
    /// The repository, opened in the session's worktree.
    pub(super) repository: Repository,
    identity: RunIdentity,
    hook: PreCommit,
    pub(super) pool: Pool,
    lock: Arc<FileLock>,
}

/// A lane that a task has in another repository.
struct OtherLane {
    place: OtherRepo,
    lease: Lease,
    /// Attempts that an earlier run left unfinished there, recorded now.
    recovered: Vec<Recovered>,
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
            pool: Pool::open(&session.repository, &session.identity.run_branch, options)?,
            lock: Arc::clone(&session.lock),
        })
    }

    /// The session's branch there.
    fn branch(&self) -> &BranchName {
        &self.identity.run_branch
    }

    /// The commit that this run gave the session's branch, whatever a child process has made of the ref since.
    pub(super) fn head(&self) -> Result<Oid, GardenerError> {
        let head = self.repository.find_own_branch(self.branch())?;
        head.ok_or_else(|| GardenerError::Unborn(self.branch().clone()))
    }

    /// Tells the session's checkout there which commit landings have moved it to.
    pub(super) fn refresh(&self, session: &mut OtherRepo) -> Result<(), GardenerError> {
        let head = self.head()?;
        if head != session.tip.head {
            session.tip = Tip::new(&self.repository, self.branch().clone(), head)?;
        }
        Ok(())
    }

    /// Whether a lease is one of these lanes.
    pub(super) fn has(&self, lease: &Lease) -> bool {
        lease.repository.common_dir == self.repository.common_dir
    }

    /// Takes a lane for a task. It begins at the session's newest commit there, or continues what earlier attempts left,
    /// unless the task starts over.
    fn take(
        &self,
        task: &Task,
        starts_over: bool,
        tools: &RunResources<'_>,
    ) -> Result<OtherLane, GardenerError> {
        let base = self.head()?;
        let lease = self.pool.lease(&task.id, base)?;
        let mut recovered = Vec::new();
        if !UnfinishedAttempt::find_all(&lease.repository, &lease.branch)?.is_empty() {
            recovered = self.record_left(&lease, task, tools)?;
        }
        let start = LaneStart { base, run_start: None, newest: None, session: self.identity.session.clone() };
        let (tip, _) = begin_lane(&lease, &start, starts_over)?;
        let ignored = IgnoredFiles::default();
        ignored.begin(&lease.repository, tip.tree, &tools.context.options.log_dir)?;
        let is_begun = tip.head != base;
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
        if is_begun {
            place.find_base(&task.id)?;
        }
        Ok(OtherLane { place, lease, recovered })
    }

    /// Records attempts that an earlier run left unfinished in the lane. In the plan's repository, that happens after the
    /// lane has begun, because the attempts count there and their task is known by then. Here they do not count. If
    /// the task starts over, so does its lane, so unfinished work is committed first and saved with the branch.
    fn record_left(
        &self,
        lease: &Lease,
        task: &Task,
        tools: &RunResources<'_>,
    ) -> Result<Vec<Recovered>, GardenerError> {
        let (place, branch) = (&lease.repository, &lease.branch);
        let lanes = tools.lanes.ok_or(GardenerError::NoPlace)?;
        finish_turn_elsewhere(
            lanes.repository,
            &self.identity.session,
            self.name.as_str(),
            place,
            branch,
            Some(&task.id),
        )?;
        let unborn = || GardenerError::Unborn(branch.clone());
        let head = place.find_branch(branch)?.ok_or_else(unborn)?;
        repair_lane_index(place, head)?;
        let scope = RunScope { branch: self.branch().clone(), tip: Some(head) };
        let run = Run::scan(place, scope, CommitSource::Fresh)?;
        let events = |task: &TaskId| run.find(task).map_or(&[][..], |history| history.current());
        let name = |_: &TaskId| Some(task.name.as_str());
        let RunContext { options, config_guard, .. } = &tools.context;
        let allow = |_: &TaskId| task.allow.as_slice();
        let known =
            TaskFacts { events: &events, name: &name, allow: &allow, options, config_guard, why: None };
        let tip = Tip::new(place, branch.clone(), head)?;
        let mut recorder = RunRecorder::at(place, self.identity.clone(), tip);
        record_unfinished(&mut recorder, &known)
    }
}

impl RunResources<'_> {
    /// Whether a task has a lane in each of the repositories that it works in or is tested in.
    pub(super) fn has_lanes(&self, task: &Task) -> bool {
        self.lanes.is_some() && task.is_leaf()
    }

    /// Frees the lanes of tasks that have landed, in all repositories.
    pub(super) fn free_lanes(&self, has_landed: impl Fn(&TaskId) -> bool) -> Result<(), GardenerError> {
        let own = self.lanes.iter().map(|lanes| &lanes.pool);
        let mut pools = own.chain(self.other_lanes.iter().map(|other| &other.pool));
        Ok(pools.try_for_each(|pool| pool.release_landed(&has_landed))?)
    }

    /// The lanes of another repository.
    pub(super) fn find_other_lanes(&self, name: &RepoName) -> Option<&OtherLanes> {
        self.other_lanes.iter().find(|other| other.name == *name)
    }

    /// Takes a lane for a task in each of the other repositories that it needs, and reports it.
    pub(super) fn take_other_lanes(
        &self,
        task: &Task,
        starts_over: bool,
        reports: &SyncSender<ThreadReport>,
    ) -> Result<(Vec<OtherRepo>, Vec<Lease>), GardenerError> {
        let (mut places, mut leases) = (Vec::new(), Vec::new());
        for other in self.other_lanes.iter().filter(|other| self.needs(task, &other.name)) {
            let OtherLane { place, lease, recovered } = other.take(task, starts_over, self)?;
            let words = recovered.iter().map(|recovered| format!("in {}: {}", place.name, recovered.words()));
            for event in lane_events(&task.id, Some(&place.name), &lease, words) {
                let _ = reports.send(ThreadReport::News(event));
            }
            places.push(place);
            leases.push(lease);
        }
        Ok((places, leases))
    }
}
