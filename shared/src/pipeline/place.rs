//! Where an agent works: the user's own checkout, or a lane. What was there before is told from what the agent did, and
//! what the agent did to the repository itself is undone.

use std::thread;

use super::{Dirt, Sentry, guard::Watch};
use crate::{
    git::{Change, GitError, HeadOf, NewCommit, RefMove, Repository, Signing},
    name::{Attempt, Oid, TaskId},
    record::{Mark, Recorder, Unfinished},
};

/// A checkout that an attempt has begun in.
#[derive(Debug)]
pub struct Begun {
    /// The mark that tells a later run of this attempt.
    pub unfinished: Unfinished,
    /// What lay in the worktree.
    before: Oid,
    /// What of that is not committed.
    dirt: Dirt,
    watch: Watch,
}

impl Begun {
    /// What was done to the repository since it was last looked at, in a sentence; it has been undone.
    #[must_use]
    pub fn look_again(&self) -> Option<String> {
        joined(&self.watch.restore())
    }
}

/// What an agent left.
#[derive(Debug)]
pub struct Work {
    /// The commit's tree: what the branch held, with the agent's changes.
    pub tree: Oid,
    /// Where the branch is now; beyond our own head if the agent committed by itself.
    pub tip: Oid,
    /// The paths that changed.
    pub changes: Vec<Change>,
    /// What the agent did that it may not do, in a sentence; it has been undone.
    pub trespass: Option<String>,
}

/// Remembers what lies in the worktree, and marks that an attempt begins.
pub fn begin(
    recorder: &Recorder<'_>,
    sentry: &Sentry,
    task: &TaskId,
    attempt: Attempt,
) -> Result<Begun, GitError> {
    let repository = recorder.repository();
    let watch = sentry.watch(repository);
    let (before, dirt) = if repository.is_clean()? {
        (recorder.tree(), Dirt::default())
    } else {
        let before = repository.snapshot()?;
        (before, Dirt::of_checkout(repository, recorder.tree(), before)?)
    };
    let (head, head_tree) = (recorder.head(), recorder.tree());
    let mark = Mark { task, attempt, head, head_tree, tree: before };
    let unfinished = Unfinished::begin(repository, recorder.branch(), mark)?;
    Ok(Begun { unfinished, before, dirt, watch })
}

/// What has changed since, with everything undone that an agent may not do.
pub fn end(recorder: &Recorder<'_>, begun: &Begun) -> Result<Work, GitError> {
    let repository = recorder.repository();
    let mut trespasses = begun.watch.restore();
    // The worktree and the branch are two questions, and neither waits for the other.
    let (after, moved) = thread::scope(|scope| {
        let after = scope.spawn(|| repository.snapshot());
        let moved = put_back_branch(recorder, &begun.unfinished.name);
        (after.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), moved)
    });
    let (after, (tip, moved)) = (after?, moved?);
    trespasses.extend(moved);
    let changes = repository.changes(begun.before, after)?;
    let nested: Vec<String> =
        changes.iter().filter(|change| change.is_gitlink()).map(Change::shown).collect();
    if !nested.is_empty() {
        trespasses.push(format!("it made a repository inside the repository: {}", nested.join(", ")));
    }
    let changes: Vec<Change> = changes.into_iter().filter(|change| !change.is_gitlink()).collect();
    let sorted = begun.dirt.sort(repository, &begun.unfinished, (begun.before, after), changes)?;
    let changes = sorted.changes;
    trespasses.extend(sorted.trespass);
    let tree = if changes.is_empty() {
        recorder.tree()
    } else if begun.before == recorder.tree() && nested.is_empty() {
        after
    } else {
        repository.tree_with(recorder.tree(), &changes)?
    };
    Ok(Work { tree, tip, changes, trespass: joined(&trespasses) })
}

pub(super) fn joined(trespasses: &[String]) -> Option<String> {
    (!trespasses.is_empty()).then(|| trespasses.join("; "))
}

/// `HEAD` is on the run's branch again. Commits of the agent's own are saved; the branch itself is moved when the work
/// is written down, or here if it does not follow our head any more.
pub(super) fn put_back_branch(
    recorder: &Recorder<'_>,
    attempt: &str,
) -> Result<(Oid, Vec<String>), GitError> {
    let repository = recorder.repository();
    let branch = recorder.branch();
    let mut trespasses = Vec::new();
    let ours = recorder.head();
    let found = repository.find_head(branch)?;
    if !matches!(found, HeadOf::Branch { .. }) {
        repository.change("symbolic-ref").args(["HEAD", &branch.to_ref()]).stdout()?;
    }
    let tip = match found {
        HeadOf::Branch { tip } => tip,
        HeadOf::Elsewhere { tip } => {
            trespasses.push("it switched to another branch".to_owned());
            tip
        }
        HeadOf::Nowhere => {
            let name = branch.to_ref();
            repository
                .move_refs(&[RefMove { name: &name, new: Some(ours), old: None }], "arborist: put back")?;
            trespasses.push("it deleted or renamed the branch".to_owned());
            return Ok((ours, trespasses));
        }
    };
    if tip == ours {
        return Ok((ours, trespasses));
    }
    save(repository, attempt, tip)?;
    if !repository.is_ancestor(ours, tip)? {
        trespasses.push("it moved the branch away from the run's own commits".to_owned());
    }
    Ok((tip, trespasses))
}

/// Keeps a worktree that somebody left as it may not be, on top of `parent`, and tells where.
pub(super) fn save_tree(
    repository: &Repository,
    attempt: &str,
    (tree, parent): (Oid, Oid),
) -> Result<String, GitError> {
    let message = format!("worktree after {}\n", attempt.trim_start_matches("refs/arborist/wip/"));
    let commit = repository.write_commit(NewCommit { tree, parent, message: &message }, Signing::No)?;
    save(repository, attempt, commit)
}

/// Keeps commits that nothing else would hold, named after the mark of an attempt, and tells where.
fn save(repository: &Repository, attempt: &str, tip: Oid) -> Result<String, GitError> {
    let folder = attempt.replace("refs/arborist/wip/", "refs/arborist/saved/");
    let name = format!("{folder}-{}", tip.short());
    if repository.list_refs(&[&name])?.is_empty() {
        repository.move_refs(&[RefMove { name: &name, new: Some(tip), old: None }], "arborist: saved")?;
    }
    Ok(name)
}
