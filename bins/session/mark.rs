//! The state of the worktree when a turn started. A ref keeps it, so that the turn's changes can be distinguished from
//! the user's.

use std::collections::HashSet;

use arborist_core::{
    failure::Failure,
    git::{NewCommit, RefMove, Repository, Signing},
    name::{BranchName, Oid, SessionId},
    record::Unfinished,
};

/// The ref of one session on its branch.
pub(super) struct SessionMark(String);

/// The files of the worktree, and the tree of the branch.
pub(super) struct TurnStart {
    pub(super) tree: Oid,
    committed: Oid,
}

impl SessionMark {
    pub(super) fn new(branch: &BranchName, session: &SessionId) -> Self {
        // No task can have this name, so it does not collide with marks of attempts.
        Self(format!("{}{}/@session/{session}", Unfinished::REFS, branch.component()))
    }

    pub(super) fn find(&self, repository: &Repository) -> Result<Option<TurnStart>, Failure> {
        let Some(commit) = repository.find_ref(&self.0)? else {
            return Ok(None);
        };
        let parent = repository.load_commits(&[commit])?.first().and_then(|commit| commit.parents().next());
        let tree = repository.tree_of(commit)?;
        let committed = parent.map(|parent| repository.tree_of(parent)).transpose()?;
        Ok(Some(TurnStart { tree, committed: committed.unwrap_or(tree) }))
    }

    /// Saves the files of the worktree, with the branch at `head`.
    pub(super) fn set(&self, repository: &Repository, (tree, head): (Oid, Oid)) -> Result<(), Failure> {
        let old = repository.find_ref(&self.0)?;
        let commit = NewCommit { tree, parent: head, message: "worktree before a turn\n", author: None };
        let new = Some(repository.write_commit(commit, Signing::No)?);
        Ok(repository.move_refs(&[RefMove { name: &self.0, new, old }], "arborist: session")?)
    }

    pub(super) fn take_away(&self, repository: &Repository) -> Result<(), Failure> {
        let Some(old) = repository.find_ref(&self.0)? else {
            return Ok(());
        };
        let gone = RefMove { name: &self.0, new: None, old: Some(old) };
        Ok(repository.move_refs(&[gone], "arborist: session")?)
    }
}

impl TurnStart {
    /// The paths that had been changed before and are not committed in `branch` in that state.
    pub(super) fn changed(&self, repository: &Repository, branch: Oid) -> Result<HashSet<Vec<u8>>, Failure> {
        let then = paths_between(repository, self.committed, self.tree)?;
        let now = paths_between(repository, branch, self.tree)?;
        Ok(then.intersection(&now).cloned().collect())
    }
}

pub(super) fn paths_between(
    repository: &Repository,
    before: Oid,
    after: Oid,
) -> Result<HashSet<Vec<u8>>, Failure> {
    Ok(repository.changes(before, after)?.into_iter().map(|change| change.path).collect())
}
