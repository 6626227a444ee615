//! Restores protected files that an attempt has changed without permission, so that nothing later is judged by them.

use crate::{
    git::{GitError, Repository, TreeChange},
    name::Oid,
    pipeline::{
        ProtectedChanges, Protection,
        checkout::{
            attempt::{AttemptCheckout, AttemptWork},
            branch::save_tree,
        },
    },
    plan::Task,
    record::RunRecorder,
};

/// What is protected from a task in one repository.
#[derive(Debug, Clone)]
pub struct TaskProtection {
    protection: Protection,
    /// The pathspecs that the plan allows the task to change.
    allow: Vec<String>,
    /// The tree that the task started from.
    base: Oid,
}

impl TaskProtection {
    pub(in crate::pipeline) fn new(protection: &Protection, task: &Task, base: Oid) -> Self {
        Self { protection: protection.clone(), allow: task.allow.clone(), base }
    }

    fn find(&self, repository: &Repository, tree: Oid) -> Result<ProtectedChanges, GitError> {
        self.protection.find_changes(repository, (self.base, tree), &self.allow)
    }
}

impl AttemptCheckout {
    /// Whether a commit with this tree would change a protected file without permission.
    pub(super) fn changes_protected(&self, repository: &Repository, tree: Oid) -> Result<bool, GitError> {
        Ok(!self.rules.protection.find(repository, tree)?.refused.is_empty())
    }

    /// Finds the protected files that the task has changed. Those without permission are restored in the worktree and in
    /// the work.
    pub(super) fn restore_protected(
        &self,
        recorder: &RunRecorder<'_>,
        work: &mut AttemptWork,
    ) -> Result<ProtectedChanges, GitError> {
        let (repository, protection) = (recorder.repository(), &self.rules.protection);
        let mut found = protection.find(repository, work.commit_tree)?;
        if found.refused.is_empty() {
            return Ok(found);
        }
        let files: Vec<TreeChange> = found.refused.iter().map(|file| file.change.clone()).collect();
        let trees = RestoredTrees { base: protection.base, tree: work.commit_tree, head: self.head };
        let (tree, kept) =
            restore_files(repository, &self.unfinished.name, trees, &files, &|path| self.is_users(path))?;
        repository.require_verified(recorder.tree(), tree)?;
        work.changes = repository.changes(recorder.tree(), tree)?;
        work.commit_tree = tree;
        work.whole_worktree = None;
        found.restored(&kept);
        Ok(found)
    }
}

/// The trees between which files are restored.
pub struct RestoredTrees {
    /// The tree from which they are restored.
    pub base: Oid,
    /// The tree that is changed.
    pub tree: Oid,
    /// The commit on which the changed tree is saved.
    pub head: Oid,
}

/// Restores these files in the worktree and in the index, unless they are the user's. The tree with the changed files is
/// saved under the name of the mark `attempt`. Returns the tree with the restored files, and the saved ref.
pub fn restore_files(
    repository: &Repository,
    attempt: &str,
    RestoredTrees { base, tree, head }: RestoredTrees,
    files: &[TreeChange],
    is_users: &dyn Fn(&[u8]) -> bool,
) -> Result<(Oid, String), GitError> {
    let kept = save_tree(repository, attempt, tree, head)?;
    let written = files.iter().filter(|file| !file.concerns_gitlink() && !is_users(&file.path));
    let written: Vec<TreeChange> = written.cloned().collect();
    repository.restore_paths(base, &written)?;
    repository.stage_as_in(&base.to_string(), &written)?;
    let undo = |file: &TreeChange| TreeChange { before: file.after, after: file.before, ..file.clone() };
    // What was removed must be gone before a file or a folder takes its place.
    let (gone, back): (Vec<TreeChange>, Vec<TreeChange>) =
        files.iter().map(undo).partition(|file| file.after.is_none());
    let tree = repository.tree_with(tree, &gone)?;
    Ok((repository.tree_with(tree, &back)?, kept))
}
