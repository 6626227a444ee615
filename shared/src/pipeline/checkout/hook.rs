//! Asking the user's pre-commit hooks about the work of an attempt. They often run scripts of the repository, which the
//! agent has just written.

use crate::{
    git::{GitError, TreeChange},
    name::Oid,
    pipeline::{
        PipelineError, PreCommit,
        checkout::{
            guard::joined,
            place::{self, AttemptCheckout, AttemptWork},
        },
    },
    process::Cancel,
    record::RunRecorder,
};

/// The user's pre-commit hook sees what is about to be committed, and may change it. A repository whose hooks or
/// configuration were touched runs nothing. What the hook has staged is committed; what it wrote besides would be there for
/// the tests and in no commit, so it is put back.
pub(in crate::pipeline) fn ask_hook(
    recorder: &RunRecorder<'_>,
    (hook, cancel): (PreCommit, &Cancel),
    begun: &AttemptCheckout,
    work: &mut AttemptWork,
) -> Result<Option<String>, PipelineError> {
    if hook == PreCommit::None || work.trespass.is_some() || work.tree == begun.tree {
        return Ok(None);
    }
    let mut noticed = Vec::new();
    begun.look_at_end(&mut noticed);
    work.trespass = joined(&noticed);
    if work.trespass.is_some() {
        return Ok(None);
    }
    let repository = recorder.repository();
    // The hook may write to the worktree, too.
    work.seen = None;
    let before = repository.take_snapshot()?.tree;
    let answer = repository.pre_commit(work.tree, begun.head, cancel);
    if cancel.is_cancelled() {
        return Err(PipelineError::stopped(cancel));
    }
    let answer = answer?;
    // A hook runs what the repository brings along, and the agent has just changed that.
    begun.look_at_end(&mut noticed);
    if repository.find_branch(recorder.branch())? != Some(work.tip) {
        noticed.extend(place::put_back_at(recorder, &begun.unfinished.name, work.tip)?);
    }
    work.trespass = joined(&noticed);
    let staged = answer.as_ref().map_or(work.tree, |tree| *tree);
    let kept = put_back_unstaged(recorder, (begun, work.tree), (before, staged))?;
    work.notes.extend(kept);
    match answer {
        Ok(tree) if tree == work.tree => Ok(None),
        Ok(tree) => {
            repository.require_proven(recorder.tree(), tree)?;
            work.changes = repository.changes(recorder.tree(), tree)?;
            work.tree = tree;
            Ok(None)
        }
        Err(said) => Ok(Some(said)),
    }
}

/// Puts back what a hook of another repository wrote here: `before` lay in the worktree then. Says where that is kept.
pub(in crate::pipeline) fn put_back_files(
    recorder: &RunRecorder<'_>,
    begun: &AttemptCheckout,
    (work, before): (&AttemptWork, Oid),
) -> Result<Option<String>, GitError> {
    put_back_unstaged(recorder, (begun, work.tree), (before, work.tree))
}

/// Puts back what a hook wrote and did not stage, and says where it is kept. `before` lay in the worktree, `asked` is what the
/// hook was asked about, and `staged` what it made of that.
fn put_back_unstaged(
    recorder: &RunRecorder<'_>,
    (begun, asked): (&AttemptCheckout, Oid),
    (before, staged): (Oid, Oid),
) -> Result<Option<String>, GitError> {
    let repository = recorder.repository();
    let wanted = match staged == asked {
        true => before,
        false => repository.tree_with(before, &repository.changes(asked, staged)?)?,
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
    let kept = place::save_tree(repository, &begun.unfinished.name, (now, begun.head))?;
    repository.put_back(wanted, &changes)?;
    let paths: Vec<String> = changes.iter().map(TreeChange::shown).collect();
    let paths = paths.join(", ");
    Ok(Some(format!(
        "the pre-commit hook changed files without staging them; that is kept in {kept}: {paths}"
    )))
}
