//! Task branches that were deleted although their work has not landed. A run must not do such a task again without a
//! word: its commits are still in the merge queue, or in the reflog of the lane that had the branch checked out.

use std::io::Read;

use super::{Gardener, GardenerError};
use crate::{
    git::{Repository, Worktree},
    name::{BranchName, Oid, TaskId},
    plan::Task,
    progress::{Boxes, Progress},
    queue::Store,
    safe_files,
};

/// How many bytes of a reflog are read.
const MAX_REFLOG: u64 = 1 << 20;

impl Gardener<'_> {
    /// Refuses to begin unfinished tasks whose branches were deleted.
    pub(super) fn refuse_lost(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let (repository, run) = (self.repository, &self.tools.context.identity.run);
        let progress = Progress::new(Some(self.plan), &self.run, Boxes::Count);
        let is_open = |task: &TaskId| {
            wanted.iter().any(|wanted| wanted.id == *task)
                && progress.find(task).is_none_or(|standing| !standing.state.is_settled())
        };
        for stored in Store::new(repository).load(Some(run))? {
            let ticket = stored.ticket;
            if is_open(&ticket.task) && repository.find_branch(&ticket.branch())?.is_none() {
                let branch = ticket.branch();
                let place = "the merge queue".to_owned();
                return Err(GardenerError::Lost {
                    task: ticket.task,
                    branch,
                    place,
                    tip: Some(ticket.source),
                });
            }
        }
        // Without a linked worktree there is no lane, and git need not be asked.
        if !repository.common_dir.join("worktrees").is_dir() {
            return Ok(());
        }
        let worktrees = repository.list_worktrees()?;
        match worktrees.iter().find_map(|lane| lost_in(repository, run, lane).filter(|lost| is_open(&lost.0)))
        {
            Some((task, branch, lane)) => Err(lost_lane(task, branch, lane)),
            None => Ok(()),
        }
    }
}

/// The task whose branch a worktree has checked out although the branch is gone.
fn lost_in<'a>(
    repository: &Repository,
    run: &BranchName,
    lane: &'a Worktree,
) -> Option<(TaskId, BranchName, &'a Worktree)> {
    let branch = lane.branch.clone().filter(|_| lane.head.is_none())?;
    let task: TaskId = branch.to_ref().strip_prefix(&run.task_refs())?.parse().ok()?;
    let is_gone = matches!(repository.find_branch(&branch), Ok(None));
    is_gone.then_some((task, branch, lane))
}

/// The error for a branch that was deleted while `lane` had it checked out.
fn lost_lane(task: TaskId, branch: BranchName, lane: &Worktree) -> GardenerError {
    let tip = lane.git_dir.as_ref().and_then(|git_dir| last_of_reflog(&git_dir.join("logs/HEAD")));
    GardenerError::Lost { task, branch, place: format!("the reflog of {}", lane.path.display()), tip }
}

/// The newest commit in a reflog. The deletion of a branch is recorded with an id of zeros, which is skipped.
fn last_of_reflog(path: &std::path::Path) -> Option<Oid> {
    let mut text = Vec::new();
    safe_files::open(path).ok()?.take(MAX_REFLOG).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    // Each line begins with the old and the new id.
    let ids = text.lines().rev().flat_map(|line| [line.split(' ').nth(1), line.split(' ').next()]).flatten();
    let mut ids = ids.filter(|id| id.bytes().any(|byte| byte != b'0'));
    ids.find_map(|id| id.parse().ok())
}
