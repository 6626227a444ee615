//! Errors of working with others through a remote.

use crate::{
    failure::{Exit, Explain},
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
    fn exit(&self) -> Exit {
        match self {
            Self::Git(error) => error.exit(),
            Self::Remote(error) => error.exit(),
            Self::NotAtomic(_) | Self::NoTarget { .. } | Self::Refused { .. } => Exit::Fatal,
            Self::Ahead { .. } | Self::MovedAtStart { .. } => Exit::Person,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Remote(error) => error.hint(),
            Self::NotAtomic(_) => {
                Some("use a git server that does, or one machine: git arborist gardener --jobs N".into())
            }
            Self::NoTarget { remote, branch } => Some(format!("push it first: git push {remote} {branch}")),
            Self::Refused { .. } => Some(
                "workers must be allowed to push to the branch, to refs/heads/arborist/ and to refs/arborist/"
                    .into(),
            ),
            Self::Ahead { remote, branch } => Some(format!(
                "see these commits with: git log {remote}/{branch}..{branch}\nthen push or remove them: git push {remote} {branch}"
            )),
            Self::MovedAtStart { remote, branch } => Some(format!(
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
