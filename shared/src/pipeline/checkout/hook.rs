//! Runs the user's pre-commit hook on the work of an attempt. Hooks often run scripts of the repository, which the
//! agent may just have written, so the hook runs in the sandbox and is guarded like an agent.

use crate::{
    git::{GitError, HookVerdict, TreeChange},
    name::Oid,
    pipeline::{
        PipelineError, RunContext,
        checkout::{attempt::AttemptCheckout, branch, repo_attempt::RepoAttempt},
    },
    record::RunRecorder,
    sandbox::{SandboxedChild, describe_denials},
};

impl RepoAttempt<'_, '_> {
    /// Shows the pre-commit hook everything that the task adds. If the agent touched hooks or configuration, the hook does
    /// not run. What the hook stages is committed. What it writes without staging would be seen by the tests but be in no
    /// commit, so it is undone. Returns the hook's output if it rejects the work.
    pub(in crate::pipeline) fn ask_hook(
        &mut self,
        run: &RunContext<'_>,
    ) -> Result<Option<String>, PipelineError> {
        let base = self.commit_before_task()?;
        let Self { recorder, checkout, work, .. } = self;
        work.violations.extend(checkout.restore_after_end());
        if !work.violations.is_empty() {
            return Ok(None);
        }
        let repository = recorder.repository();
        // The hook may write to the worktree, too.
        work.whole_worktree = None;
        let before = repository.take_snapshot()?.tree;
        let places = vec![repository.top().to_owned()];
        let child = SandboxedChild { step: "hook", places, ..SandboxedChild::default() };
        let confinement = run.options.sandbox.confine(&child);
        let verdict = repository.pre_commit(work.commit_tree, base, confinement.clone(), &run.cancel);
        if run.cancel.is_cancelled() {
            return Err(PipelineError::stopped(&run.cancel));
        }
        let verdict = verdict?;
        // The hook may have run scripts that the agent has just changed.
        work.violations.extend(checkout.restore_after_end());
        if repository.find_branch(recorder.branch())? != Some(work.tip) {
            work.violations.extend(branch::restore_branch_at(recorder, &checkout.unfinished.name, work.tip)?);
        }
        let staged = match verdict {
            HookVerdict::Accepted(tree) => tree,
            HookVerdict::Refused(_) => work.commit_tree,
        };
        let kept = put_back_unstaged(recorder, checkout, work.commit_tree, before, staged)?;
        work.notes.extend(kept);
        match verdict {
            HookVerdict::Accepted(tree) if tree == work.commit_tree => Ok(None),
            HookVerdict::Accepted(tree) => {
                repository.require_verified(recorder.tree(), tree)?;
                work.changes = repository.changes(recorder.tree(), tree)?;
                work.commit_tree = tree;
                Ok(None)
            }
            HookVerdict::Refused(complaint) => {
                let denials = describe_denials(&complaint, confinement.as_ref());
                work.notes.extend(denials.clone());
                Ok(Some([Some(complaint), denials].into_iter().flatten().collect::<Vec<String>>().join("\n")))
            }
        }
    }

    /// Undoes what the hook of another repository did here. `before` is the worktree before that hook ran.
    pub(in crate::pipeline) fn undo_other_hook(&mut self, before: Oid) -> Result<(), GitError> {
        let Self { recorder, checkout, work, .. } = self;
        work.violations.extend(checkout.restore_after_end());
        let checked_tree = work.commit_tree;
        work.notes.extend(put_back_unstaged(recorder, checkout, checked_tree, before, checked_tree)?);
        Ok(())
    }
}

/// Undoes what a hook wrote and did not stage, and returns a message that names the saved ref. `before` is the worktree
/// before the hook ran, `asked` the tree that it was shown, and `staged` the tree that it staged.
fn put_back_unstaged(
    recorder: &RunRecorder<'_>,
    checkout: &AttemptCheckout,
    checked_tree: Oid,
    before: Oid,
    staged: Oid,
) -> Result<Option<String>, GitError> {
    let repository = recorder.repository();
    let wanted = match staged == checked_tree {
        true => before,
        false => repository.tree_with(before, &repository.changes(checked_tree, staged)?)?,
    };
    let now = repository.take_snapshot()?.tree;
    if now == wanted {
        return Ok(None);
    }
    let changes = repository.changes(wanted, now)?;
    let changes: Vec<TreeChange> = changes.into_iter().filter(|change| !change.concerns_gitlink()).collect();
    if changes.is_empty() {
        return Ok(None);
    }
    let kept = branch::save_tree(repository, &checkout.unfinished.name, now, checkout.head)?;
    repository.restore_paths(wanted, &changes)?;
    let paths: Vec<String> = changes.iter().map(TreeChange::shown).collect();
    let paths = paths.join(", ");
    Ok(Some(format!(
        "the pre-commit hook changed files without staging them; that is kept in {kept}: {paths}"
    )))
}
