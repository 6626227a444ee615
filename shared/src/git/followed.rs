//! Target branches, which users move as well as the run. Commits of users are kept and built upon. Step commits of the run
//! that this process did not write are not: a child process that writes them wants the next run to count them.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{LazyLock, Mutex, PoisonError},
};

use super::{GitError, Repository};
use crate::{
    message::{self, Reading, Status},
    name::{BranchName, Oid},
};

/// Commits that this process has written.
static WRITTEN: LazyLock<Mutex<HashSet<Oid>>> = LazyLock::new(Mutex::default);

/// A branch that is followed. It is only known where this process left it.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) left: Oid,
    /// Moves of others that this process has built upon: from where, and where to.
    pub(super) gaps: Vec<(Oid, Oid)>,
    /// The branch of the run. Only this process may write steps of that run to the target.
    pub(super) scope: BranchName,
}

/// This process has written a commit.
pub(super) fn note_written(commit: Oid) {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).insert(commit);
}

/// The last commit between `from` and `to` that comes before any forged step of the run, `None` if there is no forged step.
/// Commits on the run's `own` branches are not forged.
pub(super) fn last_before_claims(
    repository: &Repository,
    scope: &BranchName,
    (from, to): (Oid, Oid),
    own: &BTreeSet<Oid>,
) -> Result<Option<Oid>, GitError> {
    let claims = find_claims(repository, scope, (from, to), own)?;
    if claims.is_empty() {
        return Ok(None);
    }
    let line = ["--first-parent", "--reverse", &to.to_string(), &format!("^{from}")].map(str::to_owned);
    let mut last = from;
    for commit in repository.stream_commits(&line)? {
        let commit = commit?.id;
        if !find_claims(repository, scope, (last, commit), own)?.is_empty() {
            break;
        }
        last = commit;
    }
    Ok(Some(last))
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
        if is_step(scope, commit.message()) && !is_written(commit.id) {
            claims.push(commit.id);
        }
    }
    Ok(claims)
}

/// Whether it would count as a step of the run. Landings are written by other processes, too, and prove themselves.
fn is_step(scope: &BranchName, message: &[u8]) -> bool {
    match message::read(message) {
        Reading::Foreign | Reading::Unsound(_) => false,
        Reading::Sound(message) => {
            message.subject.branch == *scope && message.subject.status != Status::Merge
        }
    }
}

fn is_written(commit: Oid) -> bool {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner).contains(&commit)
}
