//! Target branches, which users move as well as the run. Commits of users are kept and built upon. Step commits of the run
//! that this process did not write are not: a child process that writes them wants the next run to count them.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{LazyLock, Mutex, PoisonError},
};

use super::{GitError, Merge, RawCommit, Repository};
use crate::{
    message::{self, Message, MessageReading, Status},
    name::{BranchName, Oid},
};

/// Commits that this process has written.
static WRITTEN: LazyLock<Mutex<HashSet<Oid>>> = LazyLock::new(Mutex::default);

/// Landings that the gates of this process have let through.
static PASSED: LazyLock<Mutex<HashSet<Oid>>> = LazyLock::new(Mutex::default);

/// A branch that is followed. It is only known where this process left it.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) left: Oid,
    /// Moves of others that this process has built upon: from where, and where to.
    pub(super) gaps: Vec<(Oid, Oid)>,
    /// The branch of the run. Only this process may write steps of that run to the target.
    pub(super) scope: BranchName,
}

/// The gates of this process have let a landing through. That it was written proves nothing: it is written before they are
/// asked, and anybody can move a target to it.
pub fn note_landing(commit: Oid) {
    PASSED.lock().unwrap_or_else(PoisonError::into_inner).insert(commit);
}

/// This process has written a commit.
pub(super) fn note_written(commit: Oid) {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).insert(commit);
}

/// Which landings that this process did not write count as forged. Other processes land tasks of the run, too, and those
/// that joined nothing but the target and a task are left to whoever can stop the run without blaming a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Landings {
    /// Those that bring anything else than what they say.
    False,
    /// All of them: their gates have not run.
    All,
}

/// The last commit between `from` and `to` that comes before any forged step of the run, `None` if there is no forged step.
/// Commits on the run's `own` branches are not forged, but whoever moves a target to one of them has landed it without a gate.
pub(super) fn last_before_claims(
    repository: &Repository,
    scope: &BranchName,
    (from, to): (Oid, Oid),
    (own, landings): (&BTreeSet<Oid>, Landings),
) -> Result<Option<Oid>, GitError> {
    let line = ["--first-parent", "--reverse", &to.to_string(), &format!("^{from}")].map(str::to_owned);
    let line: Vec<RawCommit> = repository.stream_commits(&line)?.collect::<Result<_, _>>()?;
    let mut last = from;
    for commit in line {
        let commit = repository.exact(commit)?;
        if is_misplaced(repository, scope, &commit, landings)?
            || !find_claims(repository, scope, (last, commit.id), own)?.is_empty()
        {
            return Ok(Some(last));
        }
        last = commit.id;
    }
    Ok(None)
}

/// Whether a commit on a target's first-parent line is a step, which never belongs there, or a landing of another process.
fn is_misplaced(
    repository: &Repository,
    scope: &BranchName,
    commit: &RawCommit,
    landings: Landings,
) -> Result<bool, GitError> {
    let Some(message) = step_of(scope, commit.message()) else { return Ok(false) };
    if message.subject.status != Status::Merge {
        return Ok(true);
    }
    if PASSED.lock().unwrap_or_else(PoisonError::into_inner).contains(&commit.id) {
        return Ok(false);
    }
    Ok(landings == Landings::All || !is_true_landing(repository, commit, message.trailers.source())?)
}

/// Whether a landing holds what follows from the commits that it joins, and nothing else.
fn is_true_landing(
    repository: &Repository,
    commit: &RawCommit,
    source: Option<Oid>,
) -> Result<bool, GitError> {
    let parents: Vec<Oid> = commit.parents().collect();
    let [onto, landed] = parents[..] else { return Ok(false) };
    if source != Some(landed) {
        return Ok(false);
    }
    Ok(match repository.merge(onto, landed)? {
        Merge::Clean(tree) => commit.tree() == Some(tree),
        Merge::Conflicted(..) => false,
    })
}

fn find_claims(
    repository: &Repository,
    scope: &BranchName,
    (from, to): (Oid, Oid),
    own: &BTreeSet<Oid>,
) -> Result<Vec<Oid>, GitError> {
    let mut revisions = vec![to.to_string(), format!("^{from}")];
    revisions.extend(own.iter().map(|own| format!("^{own}")));
    let mut claims = Vec::new();
    for commit in repository.stream_commits(&revisions)? {
        let commit = repository.exact(commit?)?;
        let step = step_of(scope, commit.message()).filter(|step| step.subject.status != Status::Merge);
        if step.is_some() && !is_written(commit.id) {
            claims.push(commit.id);
        }
    }
    Ok(claims)
}

/// What a message says, if it would count as a step of the run.
fn step_of(scope: &BranchName, message: &[u8]) -> Option<Box<Message>> {
    match message::read(message) {
        MessageReading::Foreign | MessageReading::Unsound(_) => None,
        MessageReading::Sound(message) => (message.subject.branch == *scope).then_some(message),
    }
}

fn is_written(commit: Oid) -> bool {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&commit)
}
