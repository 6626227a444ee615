//! The branch of an attempt: after a child ran, the branch is put back to where the run left it, and what the child had
//! committed, stashed or left in the worktree is saved.

use crate::{
    git::{self, GitError, HeadOf, NewCommit, RefMove, Repository, Signing},
    name::{Oid, SAVED},
    pipeline::checkout::violations::Violations,
    record::RunRecorder,
};

/// Ends a merge, rebase or similar operation that was left unfinished. Finishing it later would undo what was recorded
/// since, or claim that something was merged.
pub fn quit_operations(repository: &Repository, attempt: &str) -> Result<Vec<String>, GitError> {
    let words = |git::EndedOperation { what, with, stashed }| {
        let of = with.map_or_else(String::new, |commit| format!(" of {}", commit.short()));
        let left = format!("it left a {what}{of} unfinished");
        Ok(match stashed {
            Some(stashed) => {
                format!("{left}, and its stash is kept as {}", save(repository, attempt, stashed)?)
            }
            None => left,
        })
    };
    repository.quit_operations()?.into_iter().map(words).collect()
}

/// The branch of an attempt after a child ran.
pub(in crate::pipeline) struct BranchAfterChild {
    pub(in crate::pipeline) tip: Oid,
    /// The ref that keeps the commits that are not the run's.
    pub(in crate::pipeline) saved: Option<String>,
    /// The commit that was checked out, if it does not contain `base`: the files of the worktree are based on it, so their
    /// difference from the branch is not the child's work.
    pub(in crate::pipeline) other_base: Option<Oid>,
    /// What the child did to the branch without permission.
    pub(in crate::pipeline) violations: Violations,
}

/// Makes `HEAD` point to the run's branch again. If the branch has other commits than ours, they are saved; the branch
/// itself is moved when the work is committed. It must still descend from `base`, where the agent found it; the agent may
/// rewrite its own turns.
pub(in crate::pipeline) fn restore_branch(
    recorder: &RunRecorder<'_>,
    attempt: &str,
    base: Oid,
) -> Result<BranchAfterChild, GitError> {
    let repository = recorder.repository();
    let branch = recorder.branch();
    let ours = recorder.head();
    let mut violations = Violations::default();
    violations.extend(unlink_branch(recorder, attempt)?);
    violations.extend(repository.make_room_for_ref(&branch.to_ref()));
    let found = repository.find_head(branch)?;
    let other_base = find_other_base(repository, found, base, ours)?;
    if !matches!(found, HeadOf::Branch { .. }) {
        repository.change("symbolic-ref").args(["HEAD", &branch.to_ref()]).stdout()?;
    }
    let tip = match found {
        HeadOf::Branch { tip } => tip,
        HeadOf::Elsewhere { tip } => {
            violations.add("it switched to another branch".to_owned());
            tip
        }
        HeadOf::Nowhere => {
            let name = branch.to_ref();
            repository
                .move_refs(&[RefMove { name: &name, new: Some(ours), old: None }], "arborist: restored")?;
            violations.add("it deleted or renamed the branch".to_owned());
            return Ok(BranchAfterChild { tip: ours, saved: None, other_base, violations });
        }
    };
    if tip == ours {
        return Ok(BranchAfterChild { tip: ours, saved: None, other_base, violations });
    }
    let saved = save(repository, attempt, tip)?;
    if !repository.is_ancestor(base, tip)? {
        violations.add("it moved the branch so that it no longer contains the commits of the run".to_owned());
    }
    Ok(BranchAfterChild { tip, saved: Some(saved), other_base, violations })
}

/// The commit that is checked out, if it does not contain `base`; if it cannot be read, `ours`.
fn find_other_base(
    repository: &Repository,
    found: HeadOf,
    base: Oid,
    ours: Oid,
) -> Result<Option<Oid>, GitError> {
    let checked_out = match found {
        HeadOf::Branch { tip } => Some(tip),
        HeadOf::Elsewhere { .. } | HeadOf::Nowhere => repository.find_commit("HEAD")?,
    };
    let Some(commit) = checked_out else { return Ok(Some(ours)) };
    if commit == ours {
        return Ok(None);
    }
    Ok(match repository.is_ancestor(base, commit) {
        Ok(true) => None,
        Ok(false) => Some(commit),
        Err(_) => Some(ours),
    })
}

/// Makes a branch that became a symbolic ref an ordinary branch again, because writing to it would move another branch.
fn unlink_branch(recorder: &RunRecorder<'_>, attempt: &str) -> Result<Option<String>, GitError> {
    let (repository, name) = (recorder.repository(), recorder.branch().to_ref());
    if !repository.is_symbolic_ref(&name) {
        return Ok(None);
    }
    let mut message = "it turned the branch into a symbolic ref".to_owned();
    if let Some(tip) = repository.find_commit(&name)?.filter(|tip| *tip != recorder.head()) {
        message += &format!("; its target is kept as {}", save(repository, attempt, tip)?);
    }
    repository.remove_symbolic_ref(&name)?;
    // An older value of it may be packed.
    let old = repository.find_ref(&name)?;
    if old != Some(recorder.head()) {
        let back = RefMove { name: &name, new: Some(recorder.head()), old };
        repository.move_refs(&[back], "arborist: restored")?;
    }
    Ok(Some(message))
}

/// Moves the branch back to `tip` and checks it out. Its previous value is saved.
pub(in crate::pipeline) fn restore_branch_at(
    recorder: &RunRecorder<'_>,
    attempt: &str,
    tip: Oid,
) -> Result<Violations, GitError> {
    let BranchAfterChild { tip: found, saved, mut violations, .. } = restore_branch(recorder, attempt, tip)?;
    if found != tip {
        let name = recorder.branch().to_ref();
        let back = RefMove { name: &name, new: Some(tip), old: Some(found) };
        recorder.repository().move_refs(&[back], "arborist: restored")?;
        let kept = saved.map(|saved| format!("; they are kept as {saved}")).unwrap_or_default();
        violations.add(format!("it made commits on {}{kept}", recorder.branch()));
    }
    Ok(violations)
}

/// Whether the branch is checked out and where the run left it.
pub(in crate::pipeline) fn is_untouched(recorder: &RunRecorder<'_>) -> Result<bool, GitError> {
    recorder.repository().is_head_at(recorder.branch(), recorder.head())
}

/// Saves the tree of a worktree that must be restored, as a commit on top of `parent`, and returns the ref.
pub(in crate::pipeline) fn save_tree(
    repository: &Repository,
    attempt: &str,
    tree: Oid,
    parent: Oid,
) -> Result<String, GitError> {
    let message = format!("worktree after {}\n", attempt.trim_start_matches("refs/arborist/wip/"));
    let commit =
        repository.write_commit(NewCommit { tree, parent, message: &message, author: None }, Signing::No)?;
    save(repository, attempt, commit)
}

/// Saves commits that no other ref contains, under a name derived from the mark of the attempt, and returns the ref.
pub(super) fn save(repository: &Repository, attempt: &str, tip: Oid) -> Result<String, GitError> {
    let folder = attempt.replace("refs/arborist/wip/", SAVED);
    let name = format!("{folder}-{}", tip.short());
    repository.save_commit(&name, tip)?;
    Ok(name)
}
