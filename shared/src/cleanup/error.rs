//! Errors of cleanup and restore.

use std::path::PathBuf;

use crate::{
    failure::{Exit, Explain, Explanation},
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
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Worktree(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Queue(error) => error.explain(),
            Self::Locked(source) => Explanation {
                exit: source.exit(),
                hint: source.advice("wait for it to end, then run the same command again"),
            },
            Self::NothingOf(name) => Exit::No.hint(match nearest(name, VERBS) {
                Some(meant) => format!("did you mean 'git arborist cleanup {meant}'?"),
                None => "see everything with: git arborist cleanup --dry-run".to_owned(),
            }),
            Self::NoSaved(_) => Exit::No.hint("see all saved work with: git arborist cleanup saved"),
            Self::Ambiguous { .. } => Exit::No.hint("give more characters of the name"),
            Self::BranchExists { .. } => Exit::Person.hint("give it another name with: --branch <name>"),
            Self::PathExists(_) => Exit::Person.hint("name another place with: --to <dir>"),
            Self::BranchName(_) => Exit::Usage.into(),
            Self::NoBranch(_) => {
                Exit::Usage.hint("leave out --to, or make it a branch with: --branch <name>")
            }
            Self::Bare => Exit::Fatal.hint("clone it, and run this in the clone"),
        }
    }
}
