//! Errors of working with others through a remote.

use crate::{
    failure::{Exit, Explain, Explanation},
    git::{GitError, RemoteError},
    name::BranchName,
};

/// Why a plan cannot be shared through a remote.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum CoordinationError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Remote(#[from] RemoteError),
    #[error("'{0}' does not support atomic pushes, which workers need to share a plan")]
    NotAtomic(String),
    #[error("'{remote}' has no branch '{branch}' to land on")]
    NoTarget { remote: String, branch: BranchName },
    #[error("'{remote}' refused the push of {name}: {why}")]
    Refused { remote: String, name: String, why: String },
    #[error("'{branch}' has commits that '{remote}' does not have")]
    Ahead { remote: String, branch: BranchName },
    #[error("'{branch}' at '{remote}' was moved while the run started")]
    MovedAtStart { remote: String, branch: BranchName },
}

impl Explain for CoordinationError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Remote(error) => error.explain(),
            Self::NotAtomic(_) => Exit::Fatal
                .hint("use a git server that does, or one machine: git arborist gardener --jobs N"),
            Self::NoTarget { remote, branch } => {
                Exit::Fatal.hint(format!("push it first: git push {remote} {branch}"))
            }
            Self::Refused { .. } => Exit::Fatal.hint(
                "workers must be allowed to push to the branch, to refs/heads/arborist/ and to refs/arborist/",
            ),
            Self::Ahead { remote, branch } => Exit::Person.hint(format!(
                "see these commits with: git log {remote}/{branch}..{branch}\nthen push or remove them: git push {remote} {branch}"
            )),
            Self::MovedAtStart { remote, branch } => Exit::Person.hint(format!(
                "no task was started; move to the new commits: git fetch {remote} && git reset --keep {remote}/{branch}"
            )),
        }
    }
}

impl CoordinationError {
    /// An error of the remote, explained if the remote cannot push atomically.
    pub(super) fn of_push(error: RemoteError) -> Self {
        match error {
            RemoteError::Unreached { remote, why, .. } if why.contains("--atomic") => Self::NotAtomic(remote),
            other => other.into(),
        }
    }
}
