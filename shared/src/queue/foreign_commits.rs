//! Commits on a target that this process did not make. The target belongs to the user too: their commits are reported
//! and built upon, and never removed.

use super::{QueueError, git_backend::is_known_parking};
use crate::{
    git::{RawCommit, Repository},
    history::Event,
    message::visible,
    name::{BranchName, Oid, SessionId},
};

/// How many commits are named in a message.
const MAX_COMMITS: usize = 10;

/// Commits on a target that this process did not make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignCommits {
    /// A sentence about them.
    pub words: String,
    /// All of them, with their subjects.
    pub commits: Vec<(Oid, String)>,
}

/// Lists what others committed to a target since this process last looked or moved it. A target that lost commits is an
/// error, which a person has to handle. Commits that claim to be this run's are removed, because no gate of this run
/// has tested them.
pub fn list_foreign(
    repository: &Repository,
    (into, scope): (&BranchName, &BranchName),
    session: Option<&SessionId>,
) -> Result<Vec<ForeignCommits>, QueueError> {
    let mut told = Vec::new();
    for (from, to) in repository.take_moves_by_others(&into.to_ref(), scope)? {
        if !repository.is_ancestor(from, to)? {
            return Err(QueueError::Rewound { into: into.clone(), from, to });
        }
        let commits = commits_between(repository, (into, scope), (from, to))?;
        // A commit that names no session would count as the run's as well.
        let is_claim = |commit: &&RawCommit| {
            let event = Event::of(commit).filter(|event| event.branch() == scope);
            event.is_some_and(|event| event.session().is_none() || event.session().as_ref() == session)
        };
        if let Some(forged) = commits.iter().find(is_claim) {
            let done = repository.remove_forged_commits(&into.to_ref(), scope, (from, to))?;
            let done = done.map(|done| format!(": {done}")).unwrap_or_default();
            return Err(QueueError::Forged { into: into.clone(), commit: forged.id, done });
        }
        told.extend(words_on(into, &commits));
    }
    Ok(told)
}

/// The new commits of a target, except those on the run's task branches or parked for it: they are the run's own work,
/// even if another process merged them.
fn commits_between(
    repository: &Repository,
    (into, scope): (&BranchName, &BranchName),
    (from, to): (Oid, Oid),
) -> Result<Vec<RawCommit>, QueueError> {
    let mut revisions = vec![to.to_string(), format!("^{from}")];
    // A landing that another process both parked and brought up is not the run's own.
    let parked = repository.find_ref(&into.landing_ref())?.filter(|parked| is_known_parking(*parked));
    revisions.extend(parked.map(|parked| format!("^{parked}")));
    let branches = repository.list_refs(&[&scope.task_refs()])?;
    revisions.extend(branches.iter().map(|branch| format!("^{}", branch.target)));
    let commits: Result<Vec<RawCommit>, _> = repository.stream_commits(&revisions)?.collect();
    Ok(commits?)
}

fn words_on(into: &BranchName, commits: &[RawCommit]) -> Option<ForeignCommits> {
    if commits.is_empty() {
        return None;
    }
    let subject = |commit: &RawCommit| {
        let message = String::from_utf8_lossy(commit.message()).into_owned();
        (commit.id, visible(message.lines().next().unwrap_or_default()))
    };
    let commits: Vec<(Oid, String)> = commits.iter().map(subject).collect();
    let shown =
        commits.iter().take(MAX_COMMITS).map(|(commit, subject)| format!("{} {subject}", commit.short()));
    let shown: Vec<String> = shown.collect();
    let more = if commits.len() > MAX_COMMITS {
        format!(", and {} more", commits.len() - MAX_COMMITS)
    } else {
        String::new()
    };
    let words = format!("'{into}' has commits that this run did not make: {}{more}", shown.join(", "));
    Some(ForeignCommits { words, commits })
}
