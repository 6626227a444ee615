//! Commits on a target that this process did not make. A target is the user's too: what they commit there is built upon and
//! listed, and it is never moved back.

use super::{QueueError, git_backend::is_known_parking};
use crate::{
    git::{RawCommit, Repository},
    history::Event,
    message::visible,
    name::{BranchName, Oid, SessionId},
};

/// So many commits are named.
const MOST: usize = 10;

/// Commits that came to a target from elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignCommits {
    /// In a sentence.
    pub words: String,
    /// All of them, each with its subject.
    pub commits: Vec<(Oid, String)>,
}

/// Looks at a target, and tells what others committed there since this process looked last or moved it. A
/// target that lost commits is left to a person. Commits that claim to be this run's own are taken off: no gate of this
/// run was asked about them.
pub fn list_foreign(
    repository: &Repository,
    (into, scope): (&BranchName, &BranchName),
    session: Option<&SessionId>,
) -> Result<Vec<ForeignCommits>, QueueError> {
    let mut told = Vec::new();
    for (from, to) in repository.moves_of_others(&into.to_ref(), scope)? {
        if !repository.is_ancestor(from, to)? {
            return Err(QueueError::Rewound { into: into.clone(), from, to });
        }
        let commits = commits_between(repository, (into, scope), (from, to))?;
        // One that names no session would count as well.
        let is_claim = |commit: &&RawCommit| {
            let event = Event::of(commit).filter(|event| event.branch() == scope);
            event.is_some_and(|event| event.session().is_none() || event.session().as_ref() == session)
        };
        if let Some(forged) = commits.iter().find(is_claim) {
            let done = repository.take_off_claims(&into.to_ref(), scope, (from, to))?;
            let done = done.map(|done| format!(": {done}")).unwrap_or_default();
            return Err(QueueError::Forged { into: into.clone(), commit: forged.id, done });
        }
        told.extend(words_on(into, &commits));
    }
    Ok(told)
}

/// What came to a target, but for what is on task branches of the run or parked for it: that is the run's own work, also
/// where somebody else merged it.
fn commits_between(
    repository: &Repository,
    (into, scope): (&BranchName, &BranchName),
    (from, to): (Oid, Oid),
) -> Result<Vec<RawCommit>, QueueError> {
    let mut revisions = vec![to.to_string(), format!("^{from}")];
    // What somebody parked and brought up in one go is not the run's own.
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
    let shown = commits.iter().take(MOST).map(|(commit, subject)| format!("{} {subject}", commit.short()));
    let shown: Vec<String> = shown.collect();
    let more =
        if commits.len() > MOST { format!(", and {} more", commits.len() - MOST) } else { String::new() };
    let words = format!("commits on '{into}' that this run did not make: {}{more}", shown.join(", "));
    Some(ForeignCommits { words, commits })
}
