//! Reasons not to start tasks: a person has to decide first. One is a task branch that was deleted although its work has
//! not landed: its commits are still in the merge queue, or in the reflog of the lane that had the branch checked out, and
//! the task must not be done again without a word.

use std::{fmt, io::Read, path::Path};

use super::{Gardener, GardenerError};
use crate::{
    git::{Repository, Worktree},
    history::{Run, State},
    name::{BranchName, Oid, TaskId},
    plan::Task,
    process::shell_word,
    progress::{NodeProgress, PlanMarks, Progress},
    queue::Store,
    record::UnfinishedAttempt,
    safe_files,
};

impl Gardener<'_> {
    /// Refuses tasks that were started or completed on their own branch: their work is not in the checkout, and has to
    /// continue in a lane.
    pub(super) fn refuse_own_branches(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        match find_started_in_lane(self.repository, &self.run, wanted)? {
            Some(task) => {
                let scope = &self.resources.context.identity.run_branch;
                Err(GardenerError::in_lane(self.repository, &self.run, scope, &task.id))
            }
            None => Ok(()),
        }
    }

    /// Refuses a task that has to write failing tests if there is no test command.
    pub(super) fn refuse_red_without_test(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let is_untested =
            |task: &&&Task| task.red && self.resources.context.options.tests_of(task).is_empty();
        match wanted.iter().find(is_untested) {
            Some(task) => Err(GardenerError::RedWithoutTest(task.id.clone())),
            None => Ok(()),
        }
    }

    /// Refuses to begin unfinished tasks whose branches were deleted.
    pub(super) fn refuse_lost(&self, wanted: &[&Task]) -> Result<(), GardenerError> {
        let progress = Progress::new(Some(self.plan), &self.run, PlanMarks::Count);
        let is_open = |lost: &LostBranch| {
            wanted.iter().any(|wanted| wanted.id == lost.task)
                && progress.find(&lost.task).is_none_or(|node| !node.state.is_done())
        };
        let lost = find_lost_branches(self.repository, &self.resources.context.identity.run_branch)?;
        lost.into_iter().find(is_open).map_or(Ok(()), |lost| Err(GardenerError::Lost(lost)))
    }

    pub(super) fn refuse_forks(&self) -> Result<(), GardenerError> {
        match self.run.tasks.iter().find(|history| history.forks.len() > 1) {
            Some(history) => Err(GardenerError::Forked {
                task: history.id.clone(),
                commits: [history.forks[0], history.forks[1]],
            }),
            None => Ok(()),
        }
    }
}

/// The first of these tasks that was started on its own branch. Its work has to continue in a lane.
pub fn find_started_in_lane<'a>(
    repository: &Repository,
    run: &Run,
    wanted: &[&'a Task],
) -> Result<Option<&'a Task>, GardenerError> {
    let marked = find_marked_in_lane(repository, run)?;
    let is_apart = |task: &&&Task| {
        let history = run.find(&task.id);
        history.is_some_and(|history| !history.is_landed && history.state() != State::Failed)
            || marked.contains(&task.id)
    };
    Ok(wanted.iter().find(is_apart).copied())
}

/// Tasks that a killed run had started on their own branches before it committed anything.
fn find_marked_in_lane(repository: &Repository, run: &Run) -> Result<Vec<TaskId>, GardenerError> {
    let (branch, mut found) = (&run.scope.branch, Vec::new());
    for mark in repository.list_refs(&[UnfinishedAttempt::REFS])? {
        let Some(task) = UnfinishedAttempt::task_of(&mark.name, branch) else { continue };
        let is_here = mark.name.starts_with(&format!("{}{}/", UnfinishedAttempt::REFS, branch.component()));
        let is_of_run = match &run.start {
            Some(start) => repository.is_ancestor(start.commit, mark.target)?,
            None => false,
        };
        found.extend(Some(task).filter(|_| !is_here && is_of_run));
    }
    Ok(found)
}

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

/// Refuses a selection of tasks that all wait for others that are not selected: a run could do nothing.
pub fn refuse_waiting(due: &[&Task], progress: &Progress<'_>) -> Result<(), GardenerError> {
    let Some(first) = due.first().and_then(|task| progress.find(&task.id)) else { return Ok(()) };
    let can_start = |task: &&Task| {
        let waits = progress.find(&task.id).is_some_and(|node| !node.waits_for.is_empty());
        !waits || progress.waits_for_tests_only(&task.id)
    };
    // What is complete lands first, and may be what the selection waits for.
    let has_unlanded = progress.leaves().any(NodeProgress::is_unlanded);
    if has_unlanded || due.iter().any(can_start) {
        return Ok(());
    }
    Err(GardenerError::not_ready(first.id, &first.waits_for, progress))
}

/// Refuses tasks that were merged by hand and reverted: a person has to decide whether they are wanted.
pub fn refuse_reverted(wanted: &[&Task], progress: &Progress<'_>) -> Result<(), GardenerError> {
    let is_reverted = |node: &&NodeProgress<'_>| node.state == State::Reverted;
    for node in wanted.iter().filter_map(|task| progress.find(&task.id)).filter(is_reverted) {
        if let Some(reverted) = node.history.and_then(|history| history.reverted.clone()) {
            return Err(GardenerError::Reverted { task: node.id.clone(), reverted });
        }
    }
    Ok(())
}

/// The hint for a run that was started on the branch of a task.
pub(super) fn advice_on_task_branch(run: &BranchName, place: Option<&Path>) -> String {
    match place {
        Some(place) => {
            let place = shell_word(&place.to_string_lossy());
            format!("continue that run where its branch is checked out: cd {place} && git arborist gardener")
        }
        None => {
            let run = shell_word(run.as_str());
            format!("continue that run on its branch: git switch {run} && git arborist gardener")
        }
    }
}
