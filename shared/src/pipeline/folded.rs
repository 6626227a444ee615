//! Commits that somebody made in the worktree while an agent was at work there: the agent, or the user. They are kept beside
//! the branch, and it is said.

use crate::{
    git::{GitError, Repository},
    message::visible,
    name::Oid,
};

/// Commits that were folded into one of ours.
#[derive(Debug)]
pub struct Folded {
    count: u64,
    /// The first line of the newest.
    subject: String,
    /// The ref that keeps them.
    name: String,
}

impl Folded {
    /// Those that only `tip` has, and not `head`.
    pub(super) fn find(
        repository: &Repository,
        (head, tip): (Oid, Oid),
        name: String,
    ) -> Result<Self, GitError> {
        let count = repository.distance(tip, head)?.ahead;
        let commits = repository.load_commits(&[tip])?;
        let message = commits.first().map(|commit| String::from_utf8_lossy(commit.message()).into_owned());
        let subject = message.and_then(|message| message.lines().next().map(visible)).unwrap_or_default();
        Ok(Self { count, subject, name })
    }
}

/// What is said of them.
pub(super) fn words_of(folded: &[Folded]) -> Option<String> {
    let last = folded.last()?;
    let count: u64 = folded.iter().map(|folded| folded.count).sum();
    let Folded { subject, name, .. } = last;
    let others = match folded.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more beside it"),
    };
    Some(if count == 1 {
        format!("1 commit made meanwhile ('{subject}') was folded in; it is kept as {name}{others}")
    } else {
        format!(
            "{count} commits made meanwhile (last '{subject}') were folded in; they are kept as {name}{others}"
        )
    })
}
