//! Errors of cleanup and restore.

use std::path::PathBuf;

use crate::{
    failure::{Exit, Explain},
    git::GitError,
    message::nearest,
    process::LockError,
    queue::QueueError,
    session::SessionError,
    worktree::WorktreeError,
};

/// Subcommands that a mistyped name may mean.
const VERBS: [&str; 2] = ["saved", "restore"];

/// Why a cleanup or restore failed as a whole.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum CleanupError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Session(#[from] SessionError),
    #[error(transparent)]
    Queue(#[from] QueueError),
    #[error("{}", .0.sentence("another cleanup is running"))]
    Locked(LockError),
    #[error("there is nothing to clean up for '{0}' in this repository")]
    NothingOf(String),
    #[error("there is no saved work '{0}'")]
    NoSaved(String),
    #[error("several saved items match '{name}'")]
    Ambiguous {
        name: String,
        /// The names, each with the time of the save, newest first.
        found: Vec<(String, Option<i64>)>,
    },
    #[error("'{branch}' already exists, at another commit")]
    BranchExists { branch: String },
    #[error("'{}' already exists", .0.display())]
    PathExists(PathBuf),
    #[error("'{0}' is not a branch, so it cannot have a worktree")]
    NoBranch(String),
    #[error("'{0}' is not a valid branch name")]
    BranchName(String),
    #[error("worktrees need a checkout, but this repository is bare")]
    Bare,
}

impl Explain for CleanupError {
    fn exit(&self) -> Exit {
        match self {
            Self::Git(error) => error.exit(),
            Self::Worktree(error) => error.exit(),
            Self::Session(error) => error.exit(),
            Self::Queue(error) => error.exit(),
            Self::Locked(error) => error.exit(),
            Self::NothingOf(_) | Self::NoSaved(_) | Self::Ambiguous { .. } => Exit::No,
            Self::BranchExists { .. } | Self::PathExists(_) => Exit::Person,
            Self::BranchName(_) | Self::NoBranch(_) => Exit::Usage,
            Self::Bare => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Git(error) => error.hint(),
            Self::Worktree(error) => error.hint(),
            Self::Session(error) => error.hint(),
            Self::Queue(error) => error.hint(),
            Self::Locked(source) => source.advice("wait for it to end, then run the same command again"),
            Self::NothingOf(name) if nearest(name, VERBS).is_some() => {
                let meant = nearest(name, VERBS).unwrap_or_default();
                Some(format!("did you mean 'git arborist cleanup {meant}'?"))
            }
            Self::NothingOf(_) => Some("see everything with: git arborist cleanup --dry-run".into()),
            Self::NoSaved(_) => Some("see all saved work with: git arborist cleanup saved".into()),
            Self::Ambiguous { .. } => Some("give more characters of the name".into()),
            Self::BranchExists { .. } => Some("give it another name with: --branch <name>".into()),
            Self::PathExists(_) => Some("name another place with: --to <dir>".into()),
            Self::BranchName(_) => None,
            Self::NoBranch(_) => Some("leave out --to, or make it a branch with: --branch <name>".into()),
            Self::Bare => Some("clone it, and run this in the clone".into()),
        }
    }
}
