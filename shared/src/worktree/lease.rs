//! A lease: a worktree that a task has while a process works on it.

use std::path::PathBuf;

use super::{
    LeaseStart, Pool, WorktreeError, WorktreeKind, WorktreeNote,
    choice::{ClaimedWorktree, WantedKind, WorktreeOrigin, WorktreeRequest},
    fill::Freed,
    paths, survey,
};
use crate::{
    git::{Repository, stale},
    name::{BranchName, Oid, TaskId},
    process::FileLock,
};

/// A worktree with a task's branch checked out. No other process can take it, or the task, while this exists. Dropping
/// it leaves everything as it is.
#[derive(Debug)]
pub struct Lease {
    /// The repository, opened there.
    pub repository: Repository,
    /// The task's branch.
    pub branch: BranchName,
    /// The task.
    pub task: TaskId,
    /// The top of the worktree.
    pub path: PathBuf,
    /// Environment variables for programs that run there.
    pub environment: Vec<(String, String)>,
    /// How it started.
    pub begun: LeaseStart,
    /// Whether the worktree was created for it.
    pub is_new: bool,
    /// Notes for the user.
    pub notes: Vec<WorktreeNote>,
    freed: Freed,
    #[allow(dead_code, reason = "held, not read")]
    locks: [FileLock; 2],
}

impl Pool {
    /// A worktree for a task: the one that still has it, with its files; or else a free lane; or else a new one. A
    /// branch without commits of its own starts at `base`; one that has some is continued.
    pub fn lease(&self, task: &TaskId, base: Oid) -> Result<Lease, WorktreeError> {
        self.take(task, base, WantedKind::Lane)
    }

    /// Like [`Self::lease`], but with a new worktree that has the task's name.
    pub fn add(&self, task: &TaskId, base: Oid) -> Result<Lease, WorktreeError> {
        self.take(task, base, WantedKind::Named)
    }

    /// The worktree that a task has. None is created.
    pub fn hold(&self, task: &TaskId) -> Result<Lease, WorktreeError> {
        let absent = || WorktreeError::Absent(task.to_string());
        let base = self.repository.find_branch(&self.run.task_branch(task))?.ok_or_else(absent)?;
        self.take(task, base, WantedKind::Own)
    }

    /// Frees the lanes of tasks that have landed, if the process that had to do it was killed. Lanes in use stay as
    /// they are.
    pub fn free(&self, has_landed: impl Fn(&TaskId) -> bool) -> Result<(), WorktreeError> {
        let _gate = self.lock_registry()?;
        for lane in self.survey()?.into_iter().filter(|row| row.kind == WorktreeKind::Lane) {
            let own = lane.task.as_ref().filter(|task| lane.branch == Some(self.run.task_branch(task)));
            let (Some(task), Some(head)) = (own.filter(|task| has_landed(task)), lane.head) else {
                continue;
            };
            if let Ok(_lock) = self.lock_worktree(&lane.path, task) {
                let view = self.view(&lane)?;
                stale::clear(&view.git_dir.join("HEAD.lock"));
                view.detach(head)?;
            }
        }
        Ok(())
    }

    fn take(&self, task: &TaskId, base: Oid, place: WantedKind) -> Result<Lease, WorktreeError> {
        let mut request =
            WorktreeRequest { task, branch: self.run.task_branch(task), base, place, refused: Vec::new() };
        loop {
            let claim = self.claim(&request)?;
            match self.ready(&claim, &request) {
                Ok(notes) => return Ok(self.lease_of(claim, request, notes)),
                Err(WorktreeError::Embedded { path, .. }) if claim.origin == WorktreeOrigin::Recycled => {
                    request.refused.push(path);
                }
                Err(error) => {
                    self.undo(&claim, &request);
                    return Err(error);
                }
            }
        }
    }

    fn ready(
        &self,
        claim: &ClaimedWorktree,
        request: &WorktreeRequest<'_>,
    ) -> Result<Vec<WorktreeNote>, WorktreeError> {
        claim.lane.restore_common_dir()?;
        claim.lane.restore_index()?;
        self.repair_link(&claim.lane)?;
        stale::sweep_indexes(&claim.lane.git_dir);
        let mut notes = match claim.origin {
            WorktreeOrigin::Found => Vec::new(),
            _ => self.fill(&claim.lane, &request.branch, claim.origin)?,
        };
        let environment = self.task_variables(claim, request.task);
        notes.extend(self.set_up(&claim.lane, &environment)?);
        Ok(notes)
    }

    fn lease_of(
        &self,
        claim: ClaimedWorktree,
        request: WorktreeRequest<'_>,
        notes: Vec<WorktreeNote>,
    ) -> Lease {
        let environment = self.task_variables(&claim, request.task);
        let ClaimedWorktree { mut lane, path, begun, origin, locks, .. } = claim;
        lane.head.branch = Some(request.branch.clone());
        if let Ok(tip) = lane.find_branch(&request.branch) {
            lane.head.commit = tip;
        }
        let (branch, task) = (request.branch, request.task.clone());
        Lease {
            repository: lane,
            branch,
            task,
            path,
            environment,
            begun,
            is_new: origin == WorktreeOrigin::Made,
            notes,
            freed: self.freed.clone(),
            locks,
        }
    }
}

impl Lease {
    /// Frees the lane of a task that has landed, with its caches. A worktree that was created by hand stays as it is.
    pub fn recycle(self) -> Result<(), WorktreeError> {
        if !paths::is_lane(&survey::name_of(&self.path)) {
            return Ok(());
        }
        match self.repository.find_commit("HEAD")? {
            Some(commit) => {
                self.repository.detach(commit)?;
                self.freed.note(self.path, (commit, self.branch));
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Ends the lease and leaves everything as it is, to be inspected or continued.
    pub fn keep(self) {
        drop(self);
    }
}
