//! Uncommitted changes that the user had when an agent began. An attempt that touches them fails, and they are
//! restored.

use std::collections::BTreeSet;

use crate::{
    git::{GitError, Repository, TreeChange},
    name::Oid,
    pipeline::checkout::{branch, violations::Violations},
    record::UnfinishedAttempt,
};

/// The paths with uncommitted changes of the user: those that differed from the branch when the agent began.
#[derive(Debug, Default)]
pub struct UsersPaths(BTreeSet<Vec<u8>>);

impl UsersPaths {
    /// These paths.
    #[must_use]
    pub fn of(paths: BTreeSet<Vec<u8>>) -> Self {
        Self(paths)
    }

    /// Finds the paths in which the worktree differs from the branch.
    pub fn of_worktree(repository: &Repository, branch: Oid, worktree: Oid) -> Result<Self, GitError> {
        if branch == worktree {
            return Ok(Self::default());
        }
        Ok(Self(repository.changes(branch, worktree)?.into_iter().map(|change| change.path).collect()))
    }

    /// Finds the paths in which the worktree or its index differs from the branch.
    pub fn of_checkout(
        repository: &Repository,
        branch: Oid,
        worktree: Oid,
        staged: Oid,
    ) -> Result<Self, GitError> {
        let mut found = Self::of_worktree(repository, branch, worktree)?;
        let staged = repository.changes(branch, staged)?;
        found.0.extend(staged.into_iter().map(|change| change.path));
        Ok(found)
    }

    /// Whether nothing differed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a change touches the user's paths.
    #[must_use]
    pub fn covers_change(&self, change: &TreeChange) -> bool {
        self.covers(&change.path)
    }

    /// Whether this path is the user's, or cannot exist together with one that is: it is below a file of the user, or
    /// takes the place of a folder with a file of the user.
    #[must_use]
    pub fn covers(&self, path: &[u8]) -> bool {
        let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        let below = [path, b"/"].concat();
        let is_folder = self.0.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below));
        self.0.contains(path) || is_folder || folders.into_iter().any(|folder| self.0.contains(folder))
    }

    /// Restores those of these paths that are among `changes`, which lead from the tree `before` to the tree `after`. What
    /// they became is saved under a ref.
    pub fn restore(
        &self,
        repository: &Repository,
        unfinished: &UnfinishedAttempt,
        before: Oid,
        after: Oid,
        changes: &[TreeChange],
    ) -> Result<Violations, GitError> {
        let mut violations = Violations::default();
        let touched: Vec<TreeChange> =
            changes.iter().filter(|change| self.covers_change(change)).cloned().collect();
        if touched.is_empty() {
            return Ok(violations);
        }
        let kept = branch::save_tree(repository, &unfinished.name, after, unfinished.mark_commit)?;
        repository.restore_paths(before, &touched)?;
        let shown =
            |changes: &[TreeChange]| changes.iter().map(TreeChange::shown).collect::<Vec<_>>().join(", ");
        // A tree has only the commit of a repository inside the checkout.
        let (repositories, files): (Vec<TreeChange>, Vec<TreeChange>) =
            touched.into_iter().partition(TreeChange::was_gitlink);
        if !files.is_empty() {
            violations.add(format!(
                "it changed uncommitted files that are not its own: {}; they were restored, and the agent's version is kept in {kept}",
                shown(&files)
            ));
        }
        if !repositories.is_empty() {
            violations.add(format!(
                "it removed your repositories inside the checkout, which cannot be restored: {}",
                shown(&repositories)
            ));
        }
        Ok(violations)
    }
}
