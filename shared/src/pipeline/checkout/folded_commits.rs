//! Commits that an agent makes itself, in the checkout or in its private git directory. They are kept under refs, and folded
//! into the commit of the attempt: it contains what they changed.

use crate::{
    git::{GitError, PrivateCommits, PrivateGit, Repository},
    message::{first_of, visible},
    name::Oid,
    pipeline::checkout::{
        branch::{BranchAfterChild, save},
        violations::Violations,
    },
    record::RunRecorder,
};

/// How many saved refs are shown.
const MAX_SAVED: usize = 3;

/// Why an attempt fails whose private git directory does not tell which commit the files of the worktree belong to.
const UNKNOWN_HEAD: &str = "it left a private git directory in which HEAD cannot be read, so its files may belong to another branch or to an older commit, and commits that it made there may be lost";

/// The commits that an agent made itself, and what follows from them for its attempt.
#[derive(Debug)]
pub(in crate::pipeline) struct OwnCommits {
    /// Where the branch is.
    pub(in crate::pipeline) tip: Oid,
    /// The commit that the files of the worktree are based on, if it does not contain the one that the attempt began with.
    pub(in crate::pipeline) other_base: Option<Oid>,
    /// The agent's commits.
    pub(in crate::pipeline) folded: Vec<Folded>,
    /// What the agent did without permission in its private git directory.
    pub(in crate::pipeline) violations: Violations,
    /// Messages for the user about commits that are kept, but not folded in.
    pub(in crate::pipeline) notes: Vec<String>,
}

/// Finds the commits that an agent made, after its branch was restored. The attempt began at `head`. All of them are
/// saved under the name of its mark `attempt`.
pub(in crate::pipeline) fn find_own_commits(
    recorder: &RunRecorder<'_>,
    head: Oid,
    attempt: &str,
    branch: BranchAfterChild,
    private_git: Option<&PrivateGit>,
) -> Result<OwnCommits, GitError> {
    let BranchAfterChild { tip, saved, mut other_base, mut violations } = branch;
    let (repository, ours) = (recorder.repository(), recorder.head());
    let (mut folded, mut notes) = (Vec::new(), Vec::new());
    if let Some(private_git) = private_git {
        let work = keep_private(repository, private_git, head, attempt)?;
        other_base = match work.checked_out {
            PrivateHead::OnTop => other_base,
            PrivateHead::Elsewhere(commit) => {
                violations.add("it switched to another branch or to an older commit".to_owned());
                other_base.or(Some(commit))
            }
            PrivateHead::Unknown => {
                violations.add(UNKNOWN_HEAD.to_owned());
                other_base.or(Some(ours))
            }
        };
        folded.extend(work.folded);
        notes.extend(work.notes);
    }
    match saved {
        Some(name) if other_base.is_some() => {
            notes.push(format!("the agent moved its branch; it was restored, and the tip is kept as {name}"));
        }
        Some(name) => folded.push(Folded::find(repository, ours, tip, name)?),
        None => {}
    }
    Ok(OwnCommits { tip, other_base, folded, violations, notes })
}

/// What an agent left checked out in its private git directory.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum PrivateHead {
    /// A commit that contains the one that the attempt began with.
    #[default]
    OnTop,
    /// Another commit.
    Elsewhere(Oid),
    /// Not known. It may be a commit without the run's.
    Unknown,
}

/// What an agent did in its private git directory.
#[derive(Debug, Default)]
struct PrivateWork {
    checked_out: PrivateHead,
    /// Its commits on top of the one that the attempt began with.
    folded: Option<Folded>,
    notes: Vec<String>,
}

/// Keeps the commits that an agent made in its private git directory under refs. What it changed is in the worktree, so
/// commits that cannot be kept are only reported. `head` is the commit that the attempt began with.
fn keep_private(
    repository: &Repository,
    private: &PrivateGit,
    head: Oid,
    attempt: &str,
) -> Result<PrivateWork, GitError> {
    let mut work = PrivateWork::default();
    let taken = private.take_commits(repository);
    work.checked_out = match private.find_checked_out(repository)? {
        Some(commit) if repository.is_ancestor(head, commit)? => PrivateHead::OnTop,
        Some(commit) => PrivateHead::Elsewhere(commit),
        None if private.is_on_top_of(repository, head) => PrivateHead::OnTop,
        None => PrivateHead::Unknown,
    };
    let PrivateCommits { tip, mut others } = match taken {
        Ok(commits) => commits,
        Err(error) => {
            let words = format!("the commits that the agent made cannot be read, and are not kept: {error}");
            work.notes.push(words);
            return Ok(work);
        }
    };
    match tip {
        Some(tip) if work.checked_out == PrivateHead::OnTop => {
            let name = save(repository, attempt, tip)?;
            work.folded = Some(Folded::find(repository, head, tip, name)?);
        }
        Some(tip) if !repository.is_ancestor(tip, head)? => others.push(tip),
        _ => {}
    }
    let names: Result<Vec<String>, GitError> =
        others.into_iter().map(|other| save(repository, attempt, other)).collect();
    let names = names?;
    if !names.is_empty() {
        let words = format!(
            "commits and stashes that the agent made outside of its branch are kept as {}",
            first_of(&names, MAX_SAVED)
        );
        work.notes.push(words);
    }
    Ok(work)
}

/// Commits of others that one of our commits folded in.
#[derive(Debug)]
pub struct Folded {
    count: u64,
    /// The subject of the newest commit.
    subject: String,
    /// The ref that keeps them.
    name: String,
}

impl Folded {
    /// Finds the commits that `tip` has and `head` does not have.
    pub(in crate::pipeline) fn find(
        repository: &Repository,
        head: Oid,
        tip: Oid,
        name: String,
    ) -> Result<Self, GitError> {
        let count = repository.distance(tip, head)?.ahead;
        let commits = repository.load_commits(&[tip])?;
        let message = commits.first().map(|commit| String::from_utf8_lossy(commit.message()).into_owned());
        let subject = message.and_then(|message| message.lines().next().map(visible)).unwrap_or_default();
        Ok(Self { count, subject, name })
    }
}

/// A message about folded commits.
pub(in crate::pipeline) fn folded_message(folded: &[Folded]) -> Option<String> {
    let last = folded.last()?;
    let count: u64 = folded.iter().map(|folded| folded.count).sum();
    let Folded { subject, name, .. } = last;
    let others = match folded.len() - 1 {
        0 => String::new(),
        others => format!(", and {others} more refs"),
    };
    // The agent moved the branch back, so its tip has nothing to fold in.
    if count == 0 {
        return Some(format!(
            "the agent moved its branch back; it was restored, and the agent's tip is kept as {name}{others}"
        ));
    }
    Some(if count == 1 {
        format!(
            "1 commit that the run did not make ('{subject}') became part of the task's commit; the original is kept as {name}{others}"
        )
    } else {
        format!(
            "{count} commits that the run did not make (last '{subject}') became part of the task's commit; the originals are kept as {name}{others}"
        )
    })
}
