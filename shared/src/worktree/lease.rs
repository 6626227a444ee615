//! A lease: a worktree that a task has while a process works on it.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Pool, WorktreeError, WorktreeKind, WorktreeNote,
    claim::{PlaceClaim, PlaceOrigin, PlaceRequest, WantedKind},
    paths, survey,
};
use crate::{
    git::{Repository, stale},
    name::{BranchName, Oid, TaskId},
    process::FileLock,
};

/// How a lease started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStart {
    /// The branch has no commits of its own yet.
    Fresh,
    /// The branch existed, with commits of its own.
    Continued {
        /// The newest of them.
        tip: Oid,
    },
    /// The worktree existed, with whatever files are in it.
    Adopted,
}

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

    /// The same, with a new worktree that has the task's name.
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
        let _gate = self.gate()?;
        for lane in self.survey()?.into_iter().filter(|row| row.kind == WorktreeKind::Lane) {
            let own = lane.task.as_ref().filter(|task| lane.branch == Some(self.run.task_branch(task)));
            let (Some(task), Some(head)) = (own.filter(|task| has_landed(task)), lane.head) else {
                continue;
            };
            if let Ok(_lock) = self.lock_place(&lane.path, task) {
                let view = self.view(&lane)?;
                stale::clear(&view.git_dir.join("HEAD.lock"));
                view.detach(head)?;
            }
        }
        Ok(())
    }

    fn take(&self, task: &TaskId, base: Oid, place: WantedKind) -> Result<Lease, WorktreeError> {
        let mut request =
            PlaceRequest { task, branch: self.run.task_branch(task), base, place, refused: Vec::new() };
        loop {
            let claim = self.claim(&request)?;
            match self.ready(&claim, &request) {
                Ok(notes) => return Ok(self.lease_of(claim, request, notes)),
                Err(WorktreeError::Embedded { path, .. }) if claim.origin == PlaceOrigin::Recycled => {
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
        claim: &PlaceClaim,
        request: &PlaceRequest<'_>,
    ) -> Result<Vec<WorktreeNote>, WorktreeError> {
        claim.lane.restore_common_dir()?;
        claim.lane.restore_index()?;
        self.repair_link(&claim.lane)?;
        stale::sweep_indexes(&claim.lane.git_dir);
        let mut notes = match claim.origin {
            PlaceOrigin::Found => Vec::new(),
            _ => self.fill(&claim.lane, &request.branch, claim.origin)?,
        };
        let environment = self.task_variables(claim, request.task);
        notes.extend(self.set_up(&claim.lane, &environment)?);
        Ok(notes)
    }

    fn lease_of(&self, claim: PlaceClaim, request: PlaceRequest<'_>, notes: Vec<WorktreeNote>) -> Lease {
        let environment = self.task_variables(&claim, request.task);
        let PlaceClaim { mut lane, path, begun, origin, locks, .. } = claim;
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
            is_new: origin == PlaceOrigin::Made,
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

// Remembers lanes that this process freed, and the branch that led to the checked out commit. When such a lane is
// filled again, only that branch has to be checked to know that the commit is reachable; searching all refs takes
// longer with every task.

/// The commit and the branch of each freed lane. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Freed(Arc<Mutex<HashMap<PathBuf, (Oid, BranchName)>>>);

impl Freed {
    /// Remembers a freed lane.
    pub(super) fn note(&self, lane: PathBuf, left: (Oid, BranchName)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(lane, left);
    }

    /// Whether the branch of a freed lane is still at `head`, which is checked out there.
    pub(super) fn is_reachable_from_refs(
        &self,
        repository: &Repository,
        lane: &Path,
        head: Oid,
    ) -> Result<bool, WorktreeError> {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(lane).cloned();
        match left {
            Some((commit, branch)) if commit == head => Ok(repository.find_branch(&branch)? == Some(head)),
            _ => Ok(false),
        }
    }
}
