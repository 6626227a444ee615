//! What the user had changed and not committed when an agent began. It is theirs: an agent that touches it has failed,
//! and it is put back as it was.

use std::collections::BTreeSet;

use crate::{
    git::{GitError, Repository, TreeChange},
    name::Oid,
    pipeline::checkout::place,
    record::Unfinished,
};

/// The paths that were not as the branch has them.
#[derive(Debug, Default)]
pub struct ChangedPaths(BTreeSet<Vec<u8>>);

/// What an agent changed, without what it may not touch.
#[derive(Debug)]
pub struct Sorted {
    /// What may be committed.
    pub changes: Vec<TreeChange>,
    /// What it touched, and where that is kept.
    pub trespass: Option<String>,
}

impl ChangedPaths {
    /// The paths that a worktree holds otherwise than the branch.
    pub fn of_worktree(repository: &Repository, branch: Oid, worktree: Oid) -> Result<Self, GitError> {
        if branch == worktree {
            return Ok(Self::default());
        }
        Ok(Self(repository.changes(branch, worktree)?.into_iter().map(|change| change.path).collect()))
    }

    /// The same, and those that its index holds otherwise.
    pub fn of_checkout(
        repository: &Repository,
        branch: Oid,
        (worktree, staged): (Oid, Oid),
    ) -> Result<Self, GitError> {
        let mut changed_paths = Self::of_worktree(repository, branch, worktree)?;
        let staged = repository.changes(branch, staged)?;
        changed_paths.0.extend(staged.into_iter().map(|change| change.path));
        Ok(changed_paths)
    }

    /// Whether everything was as the branch has it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a change is of something that is the user's.
    #[must_use]
    pub fn holds(&self, change: &TreeChange) -> bool {
        self.has(&change.path)
    }

    /// Whether this path is the user's, or cannot be there together with one that is: below a file of theirs, or in the
    /// place of a folder that leads to one.
    #[must_use]
    pub fn has(&self, path: &[u8]) -> bool {
        let folders = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at]);
        let below = [path, b"/"].concat();
        let is_folder = self.0.range(below.clone()..).next().is_some_and(|next| next.starts_with(&below));
        self.0.contains(path) || is_folder || folders.into_iter().any(|folder| self.0.contains(folder))
    }

    /// Takes the user's paths out of `changes`, which led from the tree `before` to the tree `after`. They are put back as
    /// they were before; what they became is kept beside it.
    pub fn sort(
        &self,
        repository: &Repository,
        unfinished: &Unfinished,
        (before, after): (Oid, Oid),
        changes: Vec<TreeChange>,
    ) -> Result<Sorted, GitError> {
        let (touched, changes): (Vec<TreeChange>, Vec<TreeChange>) =
            changes.into_iter().partition(|change| self.holds(change));
        if touched.is_empty() {
            return Ok(Sorted { changes, trespass: None });
        }
        let kept = place::save_tree(repository, &unfinished.name, (after, unfinished.before))?;
        repository.put_back(before, &touched)?;
        let paths: Vec<String> = touched.iter().map(TreeChange::shown).collect();
        let trespass = format!(
            "it changed what was not committed and not its own: {}; that is as it was again, and what the agent made of it is kept in {kept}",
            paths.join(", ")
        );
        Ok(Sorted { changes, trespass: Some(trespass) })
    }
}
