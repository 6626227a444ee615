//! Marks an attempt by a ref while an agent runs. After a crash it contains the worktree from before the attempt, so
//! that the agent's changes can be told from the user's.

use std::collections::HashSet;

use crate::{
    git::{GitError, RefMove, Repository, Signing},
    name::{Attempt, BranchName, Oid, TaskId},
};

/// How the messages of the commits start that hold the worktree and the index before an attempt.
const MARK_START: &str = "worktree before attempt ";
const INDEX_START: &str = "index before attempt ";
/// How the message of a mark's own commit ends if the agent had a private git directory.
const PRIVATE_GIT: &str = "\n\nThe agent has a private git directory.\n";

/// An attempt that began and was not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedAttempt {
    /// The ref that marks it.
    pub name: String,
    /// The task.
    pub task: TaskId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The commit that the ref points at. Its tree is the worktree before the attempt.
    pub mark_commit: Oid,
}

impl UnfinishedAttempt {
    /// The prefix of these refs.
    pub const REFS: &str = "refs/arborist/wip/";

    fn folder(branch: &BranchName) -> String {
        format!("{}{}/", Self::REFS, branch.component())
    }

    /// The ref that marks an attempt.
    #[must_use]
    pub fn name_of(branch: &BranchName, task: &TaskId, attempt: Attempt) -> String {
        format!("{}{task}/{attempt}", Self::folder(branch))
    }

    /// Marks that an attempt begins. If the tree of the worktree is that of the branch's tip, no commit
    /// is needed for it. Staged content that differs from both is kept by a second parent, as in `git stash`.
    pub fn begin(
        repository: &Repository,
        branch: &BranchName,
        mark: AttemptMark<'_>,
    ) -> Result<Self, GitError> {
        let AttemptMark { task, attempt, head, head_tree, worktree_tree, staged } = mark;
        let staged = staged.filter(|staged| *staged != head_tree && *staged != worktree_tree);
        let mark_commit = if worktree_tree == head_tree && staged.is_none() {
            head
        } else {
            let write = |start: &str, tree, parents: &[Oid]| {
                let message = format!("{start}{} of {task}\n", attempt.ordinal());
                repository.write_commit_with_parents(tree, parents, &message, Signing::No)
            };
            let staged = staged.map(|staged| write(INDEX_START, staged, &[head])).transpose()?;
            let parents: Vec<Oid> = [head].into_iter().chain(staged).collect();
            write(MARK_START, worktree_tree, &parents)?
        };
        let name = Self::name_of(branch, task, attempt);
        repository.write_note(&name, mark_commit)?;
        Ok(Self { name, task: task.clone(), attempt, mark_commit })
    }

    /// Records in the mark that the agent gets a private git directory. After a crash that is gone, and with it the
    /// knowledge which commit the agent had checked out.
    pub fn note_private_git(&mut self, repository: &Repository) -> Result<(), GitError> {
        let commits = repository.load_commits(&[self.mark_commit])?;
        let own = commits.first().filter(|commit| commit.message().starts_with(MARK_START.as_bytes()));
        let parents = own.map_or_else(|| vec![self.mark_commit], |own| own.parents().collect());
        let tree = repository.tree_of(self.mark_commit)?;
        let message = format!("{MARK_START}{} of {}{PRIVATE_GIT}", self.attempt.ordinal(), self.task);
        let new = repository.write_commit_with_parents(tree, &parents, &message, Signing::No)?;
        let note = RefMove { name: &self.name, new: Some(new), old: Some(self.mark_commit) };
        repository.move_refs_with_default_reason(&[note])?;
        self.mark_commit = new;
        Ok(())
    }

    /// Whether the agent had a private git directory.
    pub fn had_private_git(&self, repository: &Repository) -> Result<bool, GitError> {
        let commits = repository.load_commits(&[self.mark_commit])?;
        let is_marked = |message: &[u8]| {
            message.starts_with(MARK_START.as_bytes()) && message.ends_with(PRIVATE_GIT.as_bytes())
        };
        Ok(commits.first().is_some_and(|commit| is_marked(commit.message())))
    }

    /// The ref components of all branches with marked attempts.
    pub fn list_marked(repository: &Repository) -> Result<HashSet<String>, GitError> {
        let refs = repository.list_refs(&[Self::REFS])?;
        let place = |name: &str| Some(name.strip_prefix(Self::REFS)?.split_once('/')?.0.to_owned());
        Ok(refs.iter().filter_map(|found| place(&found.name)).collect())
    }

    /// The attempts that a crashed run of `branch` left. A mark that appeared while a child was running is ignored.
    pub fn find_all(repository: &Repository, branch: &BranchName) -> Result<Vec<Self>, GitError> {
        let folder = Self::folder(branch);
        let refs = repository.list_refs(&[&folder])?;
        let parse = |name: &str| {
            let (task, attempt) = name.strip_prefix(&folder)?.split_once('/')?;
            Some((task.parse().ok()?, Attempt(attempt.parse().ok()?)))
        };
        let found = refs.into_iter().filter_map(|found| {
            let (task, attempt) = parse(&found.name)?;
            repository.is_own_note(&found.name, found.target).then_some(())?;
            Some(Self { name: found.name, task, attempt, mark_commit: found.target })
        });
        Ok(found.collect())
    }

    /// The task whose attempt a ref marks, on the run's branch `branch` or on the task's own.
    #[must_use]
    pub fn task_of(mark: &str, branch: &BranchName) -> Option<TaskId> {
        let (place, rest) = mark.strip_prefix(Self::REFS)?.split_once('/')?;
        let (task, attempt) = rest.split_once('/')?;
        attempt.parse::<u32>().ok()?;
        let task: TaskId = task.parse().ok()?;
        let is_ours = place == branch.component() || place == branch.task_branch(&task).component();
        is_ours.then_some(task)
    }

    /// The tree of the index when the attempt began, if it was neither in the worktree nor committed.
    pub fn find_staged(&self, repository: &Repository) -> Result<Option<Oid>, GitError> {
        let commits = repository.load_commits(&[self.mark_commit])?;
        let Some(commit) = commits.first() else { return Ok(None) };
        // The mark of a clean worktree points to a commit of the branch, which may be a merge.
        let [_, staged] = commit.parents().collect::<Vec<Oid>>()[..] else { return Ok(None) };
        if !commit.message().starts_with(MARK_START.as_bytes()) {
            return Ok(None);
        }
        repository.tree_of(staged).map(Some)
    }

    /// The move that removes the mark.
    #[must_use]
    pub fn end_move(&self) -> RefMove<'_> {
        RefMove { name: &self.name, new: None, old: Some(self.mark_commit) }
    }
}

/// The content of a mark.
#[derive(Debug, Clone, Copy)]
pub struct AttemptMark<'a> {
    /// The task.
    pub task: &'a TaskId,
    /// Its attempt.
    pub attempt: Attempt,
    /// The tip of the branch.
    pub head: Oid,
    /// The tree of that commit.
    pub head_tree: Oid,
    /// The tree of the worktree.
    pub worktree_tree: Oid,
    /// The tree of the index, if it differs from the commit.
    pub staged: Option<Oid>,
}
