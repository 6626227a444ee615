//! What a task that begins anew has left in the tree, and taking it out.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::GardenerError;
use crate::{
    git::{RefMove, Repository, TreeChange},
    history::{Conflicts, Run, TaskWork, WorkBase},
    message::{Status, Wording},
    name::{Attempt, BranchName, Oid, TaskId},
    record::{RunRecorder, StagedCommit, TaskEvent, settle},
};

/// What a task has added to a tree and is still there.
#[derive(Debug)]
pub struct Remains {
    /// The tree without it.
    pub tree: Oid,
    /// What takes it out.
    pub changes: Vec<TreeChange>,
    /// Files of these that others have changed again since, so that taking it out would undo their work.
    pub contested: Vec<String>,
}

impl Remains {
    /// Of a task, at the tip of a branch.
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
        let changes = if tree == whole { Vec::new() } else { repository.changes(whole, tree)? };
        let contested = changes.iter().filter(|change| conflicts.contains(&change.path));
        let contested = contested.map(TreeChange::shown).collect();
        Ok(Self { tree, changes, contested })
    }

    /// The paths.
    #[must_use]
    pub fn shown(&self) -> String {
        self.changes.iter().map(TreeChange::shown).collect::<Vec<_>>().join(", ")
    }

    /// Takes it out of the tree, by a `reset` of the task. The commit that has it is saved first, under the ref that is given
    /// back. Files that are changed and not committed are never touched: they stop this before anything is done.
    pub fn take_out(
        &self,
        recorder: &mut RunRecorder<'_>,
        (task, name): (&TaskId, &str),
        checkout: Option<&Repository>,
    ) -> Result<(Oid, String), GardenerError> {
        let (branch, tip) = (recorder.branch().clone(), recorder.head());
        if !self.contested.is_empty() {
            return Err(GardenerError::Contested(task.clone(), self.contested.join(", ")));
        }
        if let Some(checkout) = checkout {
            settle(checkout, &branch, tip)?;
            self.refuse_overlap(checkout, recorder.tree())?;
        }
        let folder = format!("refs/arborist/saved/{}/{task}", branch.component());
        let saved = save(recorder.repository(), &format!("{folder}/dropped-{}", tip.short()), tip)?;
        // The files come first: killed behind this, the same command finds them as they shall be, and goes on.
        if let Some(checkout) = checkout {
            checkout.put_back(self.tree, &self.changes)?;
        }
        let entry =
            TaskEvent::new(task.clone(), Status::Reset, Wording { name, attempt: Attempt(0), max: 0 });
        let event = match checkout {
            Some(_) => {
                let delivery = StagedCommit { tree: self.tree, tip, changes: &self.changes, index: None };
                recorder.deliver(entry, delivery, &[])?
            }
            None => recorder.record(entry, self.tree)?,
        };
        Ok((event.commit, saved))
    }

    /// Refuses where a path that would be changed is neither as it is committed nor as it shall be, in the worktree or in the
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

/// Saves the task's own branch, if it holds something that `tip` does not; the next run begins it anew. Gives the ref.
pub fn save_own_branch(
    repository: &Repository,
    run: &BranchName,
    (task, tip): (&TaskId, Oid),
) -> Result<Option<String>, GardenerError> {
    let branch = run.task_branch(task);
    let Some(own) = repository.find_branch(&branch)? else { return Ok(None) };
    if repository.is_ancestor(own, tip)? {
        return Ok(None);
    }
    let name = format!("refs/arborist/saved/{}/{}", branch.component(), own.short());
    save(repository, &name, own).map(Some)
}

fn save(repository: &Repository, name: &str, commit: Oid) -> Result<String, GardenerError> {
    if repository.find_ref(name)? != Some(commit) {
        repository.move_refs(&[RefMove { name, new: Some(commit), old: None }], "arborist: saved")?;
    }
    Ok(name.to_owned())
}
