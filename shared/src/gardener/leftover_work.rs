//! The work of a task that is still in a tree, and its removal when the task is reset.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::GardenerError;
use crate::{
    git::{Repository, TreeChange},
    history::{Conflicts, Run, TaskWork, WorkBase},
    message::{Status, SubjectParts},
    name::{Attempt, Oid, TaskId, saved_ref},
    record::{RunRecorder, StagedCommit, TaskEvent, repair_index},
};

/// The work of a task that is still in a tree.
#[derive(Debug)]
pub struct LeftoverWork {
    /// The tree without it.
    pub tree: Oid,
    /// The changes that remove it.
    pub changes: Vec<TreeChange>,
    /// Files that others have changed since, so that removing the task's work would undo theirs.
    pub contested: Vec<String>,
}

impl LeftoverWork {
    /// Finds the work of a task at the tip of a branch.
    pub fn find(repository: &Repository, run: &Run, task: &TaskId, tip: Oid) -> Result<Self, GardenerError> {
        let whole = repository.tree_of(tip)?;
        let (tree, conflicts) = match run.start_of_work(task) {
            Some((start, session)) => {
                let work = TaskWork { task, session: &session, start, tip };
                let (base, conflicts) = WorkBase::find_with_conflicts(repository, work)?;
                (base.tree, conflicts)
            }
            None => (whole, Conflicts::new()),
        };
        let mut changes = if tree == whole { Vec::new() } else { repository.changes(whole, tree)? };
        let is_contested = |change: &&TreeChange| conflicts.contains(&change.path);
        let mut tree = tree;
        if let Some(start) = run.start.as_ref().filter(|_| changes.iter().any(|change| is_contested(&change)))
        {
            // A file that is again as the run began has none of the task's work.
            let since = repository.changes(repository.tree_of(start.accepted)?, whole)?;
            let is_left = |change: &TreeChange| {
                !is_contested(&change) || since.iter().any(|other| other.path == change.path)
            };
            changes.retain(is_left);
            tree = repository.tree_with(whole, &changes)?;
        }
        let contested = changes.iter().filter(is_contested).map(TreeChange::shown).collect();
        Ok(Self { tree, changes, contested })
    }

    /// What the task did to the files, for example "added a, deleted b". Empty if nothing of that is left.
    #[must_use]
    pub fn describe_work(&self) -> String {
        self.describe(["added", "changed", "deleted"])
    }

    /// What undoing it does to the files.
    #[must_use]
    pub fn describe_removal(&self) -> String {
        self.describe(["removed", "changed back", "restored"])
    }

    /// The paths after the verbs for files that the task added, changed and deleted.
    fn describe(&self, verbs: [&str; 3]) -> String {
        // The changes lead from the task's work to the tree without it.
        let kind = |change: &&TreeChange| match (change.before, change.after) {
            (_, None) => 0,
            (Some(_), Some(_)) => 1,
            (None, Some(_)) => 2,
        };
        let paths = |wanted: usize| {
            let changes = self.changes.iter().filter(|change| kind(change) == wanted);
            let paths = changes.map(TreeChange::shown);
            paths.collect::<Vec<_>>().join(", ")
        };
        let parts = verbs.iter().enumerate().map(|(kind, verb)| (verb, paths(kind)));
        let parts = parts.filter(|(_, paths)| !paths.is_empty());
        parts.map(|(verb, paths)| format!("{verb} {paths}")).collect::<Vec<_>>().join("; ")
    }

    /// Removes the work from the tree with a `reset` commit. The commit that has it is saved first; the saved ref is
    /// returned. Uncommitted changes to these files are an error, before anything is done.
    pub fn undo_work(
        &self,
        recorder: &mut RunRecorder<'_>,
        task: &TaskId,
        name: &str,
        checkout: Option<&Repository>,
    ) -> Result<(Oid, String), GardenerError> {
        let (branch, tip) = (recorder.branch().clone(), recorder.head());
        if !self.contested.is_empty() {
            return Err(GardenerError::Contested(task.clone(), self.contested.join(", ")));
        }
        if let Some(checkout) = checkout {
            repair_index(checkout, &branch, tip)?;
            self.refuse_overlap(checkout, recorder.tree())?;
        }
        let saved = saved_ref(&format!("{}/{task}", branch.component()), "dropped", tip);
        recorder.repository().save_commit(&saved, tip)?;
        // Files come first: if we are killed after this, the same command finds them in their final state and
        // continues.
        if let Some(checkout) = checkout {
            checkout.restore_paths(self.tree, &self.changes)?;
        }
        let entry =
            TaskEvent::new(task.clone(), Status::Reset, SubjectParts { name, attempt: Attempt(0), max: 0 });
        let event = match checkout {
            Some(_) => {
                let delivery = StagedCommit { tree: self.tree, tip, changes: &self.changes, index: None };
                recorder.record_staged(entry, delivery, &[])?
            }
            None => recorder.record(entry, self.tree)?,
        };
        Ok((event.commit, saved))
    }

    /// Refuses if a path that would be changed is neither as committed nor as it will be, in the worktree or in the
    /// index.
    fn refuse_overlap(&self, checkout: &Repository, committed: Oid) -> Result<(), GardenerError> {
        let mut mine = Vec::new();
        for tree in [checkout.snapshot()?, checkout.staged()?] {
            mine.extend(checkout.changes(committed, tree)?);
        }
        let is_mine = |change: &&TreeChange| {
            let is_other = |other: &TreeChange| other.path == change.path && other.after != change.after;
            let is_ignored = change.before.is_none() && !mine.iter().any(|other| other.path == change.path);
            let path = checkout.top().join(OsStr::from_bytes(&change.path));
            mine.iter().any(is_other) || (is_ignored && path.symlink_metadata().is_ok())
        };
        let overlap: Vec<String> = self.changes.iter().filter(is_mine).map(TreeChange::shown).collect();
        if overlap.is_empty() { Ok(()) } else { Err(GardenerError::Overlap(overlap.join(", "))) }
    }
}
