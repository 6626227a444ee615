//! Task branches that were deleted although their work has not landed. A run must not do such a task again without a
//! word: its commits are still in the merge queue, or in the reflog of the lane that had the branch checked out.

use std::{fmt, io::Read};

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

/// A task branch that was deleted although its work has not landed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostBranch {
    /// The task.
    pub task: TaskId,
    /// Its branch.
    pub branch: BranchName,
    /// Where its commits still are.
    pub place: String,
    /// The last of them, if it is known.
    pub tip: Option<Oid>,
}

impl fmt::Display for LostBranch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { branch, place, tip, .. } = self;
        write!(f, "its branch '{branch}' is gone, but its commits are still in {place}")?;
        tip.map_or(Ok(()), |tip| write!(f, ", up to {}", tip.short()))
    }
}

impl Gardener<'_> {
    /// Refuses to begin unfinished tasks whose branches were deleted.
    pub(super) fn refuse_lost(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let progress = Progress::new(Some(self.plan), &self.run, Boxes::Count);
        let is_open = |lost: &LostBranch| {
            wanted.iter().any(|wanted| wanted.id == lost.task)
                && progress.find(&lost.task).is_none_or(|standing| !standing.state.is_done())
        };
        let lost = find_lost_branches(self.repository, &self.tools.context.identity.run)?;
        lost.into_iter().find(is_open).map_or(Ok(()), |lost| Err(GardenerError::Lost(lost)))
    }
}

/// The task branches of a run that were deleted although the merge queue or a worktree still needs them.
pub fn find_lost_branches(
    repository: &Repository,
    run: &BranchName,
) -> Result<Vec<LostBranch>, GardenerError> {
    let mut lost = Vec::new();
    for stored in Store::new(repository).load(Some(run))? {
        let ticket = stored.ticket;
        let branch = ticket.branch();
        if repository.find_branch(&branch)?.is_none() {
            let place = "the merge queue".to_owned();
            lost.push(LostBranch { task: ticket.task, branch, place, tip: Some(ticket.source) });
        }
    }
    // Without a linked worktree there is no lane, and git need not be asked.
    if repository.common_dir.join("worktrees").is_dir() {
        let worktrees = repository.list_worktrees()?;
        lost.extend(worktrees.iter().filter_map(|lane| lost_in(repository, run, lane)));
    }
    Ok(lost)
}

/// The branch that a worktree has checked out although it is gone.
fn lost_in(repository: &Repository, run: &BranchName, lane: &Worktree) -> Option<LostBranch> {
    let branch = lane.branch.clone().filter(|_| lane.head.is_none())?;
    let task: TaskId = branch.to_ref().strip_prefix(&run.task_refs())?.parse().ok()?;
    if !matches!(repository.find_branch(&branch), Ok(None)) {
        return None;
    }
    let tip = lane.git_dir.as_ref().and_then(|git_dir| last_of_reflog(&git_dir.join("logs/HEAD")));
    Some(LostBranch { task, branch, place: format!("the reflog of {}", lane.path.display()), tip })
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
