//! A lease: a worktree that a task has while a process works on it.
//!
//! | | lane | worktree with the name of its task |
//! |---|---|---|
//! | [`Pool::lease`], [`Pool::add`] | the one of the task, or a free one, or a new one (`choice`); a free one is filled (`fill`) | a new one |
//! | [`Pool::lease_existing`] | the one that the task has | the same |
//! | the lease is dropped | the branch stays checked out: the task can be continued there | the same |
//! | [`Lease::release`] | `HEAD` is detached: the lane is free, and keeps its files and caches | stays as it is |
//! | [`Pool::release_landed`] | the same, if the process was killed that had to do it | stays as it is |

use std::path::PathBuf;

use super::{
    LeaseStart, Pool, WorktreeError, WorktreeKind, WorktreeNote,
    claim::{ChosenWorktree, WantedKind, WorktreeOrigin, WorktreeRequest},
    fill::Freed,
    paths, survey,
};
use crate::{
    git::{Repository, checkout_locks},
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
    pub start: LeaseStart,
    /// Whether the worktree was created for it.
    pub is_new: bool,
    /// Notes for the user.
    pub notes: Vec<WorktreeNote>,
    freed: Freed,
    _task_lock: FileLock,
    _worktree_lock: FileLock,
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
    pub fn lease_existing(&self, task: &TaskId) -> Result<Lease, WorktreeError> {
        let absent = || WorktreeError::Absent(task.to_string());
        let base = self.repository.find_branch(&self.run.task_branch(task))?.ok_or_else(absent)?;
        self.take(task, base, WantedKind::Own)
    }

    /// Frees the lanes of tasks that have landed, if the process that had to do it was killed. Lanes in use stay as
    /// they are.
    pub fn release_landed(&self, has_landed: impl Fn(&TaskId) -> bool) -> Result<(), WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        for lane in self.survey()?.into_iter().filter(|row| row.kind == WorktreeKind::Lane) {
            let own = lane.task.as_ref().filter(|task| lane.branch == Some(self.run.task_branch(task)));
            let (Some(task), Some(head)) = (own.filter(|task| has_landed(task)), lane.head) else {
                continue;
            };
            if let Ok(_lock) = self.lock_worktree(&lane.path, task) {
                let view = self.view(&lane)?;
                checkout_locks::clear(&view.git_dir.join("HEAD.lock"));
                view.detach(head)?;
            }
        }
        Ok(())
    }

    fn take(&self, task: &TaskId, base: Oid, kind: WantedKind) -> Result<Lease, WorktreeError> {
        let mut request =
            WorktreeRequest { task, branch: self.run.task_branch(task), base, kind, refused: Vec::new() };
        loop {
            let chosen = self.claim_worktree(&request)?;
            let environment = self.task_variables(&chosen, task);
            match self.prepare(&chosen, &request, &environment) {
                Ok(notes) => return Ok(self.lease_of(chosen, request, environment, notes)),
                Err(WorktreeError::Embedded { path, .. }) if chosen.origin == WorktreeOrigin::Reused => {
                    request.refused.push(path);
                }
                Err(error) => {
                    self.undo(&chosen, &request);
                    return Err(error);
                }
            }
        }
    }

    /// Repairs and fills a chosen worktree, and runs the set-up commands.
    fn prepare(
        &self,
        chosen: &ChosenWorktree,
        request: &WorktreeRequest<'_>,
        environment: &[(String, String)],
    ) -> Result<Vec<WorktreeNote>, WorktreeError> {
        chosen.repository.restore_common_dir()?;
        chosen.repository.restore_index()?;
        self.repair_link(&chosen.repository)?;
        checkout_locks::sweep_indexes(&chosen.repository.git_dir);
        let mut notes = match chosen.origin {
            WorktreeOrigin::Found => Vec::new(),
            _ => self.fill(&chosen.repository, &request.branch, chosen.origin)?,
        };
        notes.extend(self.set_up(&chosen.repository, environment)?);
        Ok(notes)
    }

    fn lease_of(
        &self,
        chosen: ChosenWorktree,
        request: WorktreeRequest<'_>,
        environment: Vec<(String, String)>,
        notes: Vec<WorktreeNote>,
    ) -> Lease {
        let ChosenWorktree { mut repository, path, start, origin, task_lock, worktree_lock, .. } = chosen;
        repository.head.branch = Some(request.branch.clone());
        if let Ok(tip) = repository.find_branch(&request.branch) {
            repository.head.commit = tip;
        }
        let (branch, task) = (request.branch, request.task.clone());
        Lease {
            repository,
            branch,
            task,
            path,
            environment,
            start,
            is_new: origin == WorktreeOrigin::Made,
            notes,
            freed: self.freed.clone(),
            _task_lock: task_lock,
            _worktree_lock: worktree_lock,
        }
    }
}

impl Lease {
    /// Frees the lane of a task that has landed, with its caches. A worktree that was created by hand stays as it is.
    pub fn release(self) -> Result<(), WorktreeError> {
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
}
