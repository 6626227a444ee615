//! Errors of the queue.

use super::QueueClaim;
use crate::{
    failure::{Exit, Explain},
    git::GitError,
    history::HistoryError,
    message::Fault,
    name::{BranchName, Oid, TaskId},
    pipeline::PipelineError,
    process::LockError,
    worktree::WorktreeError,
};

/// Why a queue cannot be read or drained.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence says what it is")]
pub enum QueueError {
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    #[error("{}", source.sentence(&format!("something is landing on '{into}' already")))]
    Locked { into: BranchName, source: LockError },
    #[error("'{}' is drained by {} already", .0.into, .0.holder)]
    Claimed(Box<QueueClaim>),
    #[error("what drains '{0}' changes all the time")]
    Changing(BranchName),
    #[error("somebody else drains '{0}' now: we did not answer for too long")]
    Overtaken(BranchName),
    #[error("'{into}' lost commits while the run was at work: it was at {} and is at {}", from.short(), to.short())]
    Rewound { into: BranchName, from: Oid, to: Oid },
    #[error("commit {} on '{into}' claims to be a step of this run, but the run did not make it{done}", commit.short())]
    Forged { into: BranchName, commit: Oid, done: String },
    #[error("there is no branch '{0}' to land on")]
    NoTarget(BranchName),
    #[error("the ticket '{name}' could not be read: {why}")]
    Unreadable { name: String, why: String },
    #[error("the message for the landing of '{task}' would not be sound: {}", faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("; "))]
    Unsound { task: TaskId, faults: Vec<Fault> },
    #[error("'{into}' was moved to {}, but {what}", commit.short())]
    Unproved { into: BranchName, commit: Oid, what: String },
    #[error("{0}")]
    Resolver(String),
    #[error("'{task}' is not in conflict: it is {standing}")]
    NoConflict { task: TaskId, standing: &'static str },
    #[error("'{task}' is not in the queue")]
    NotQueued { task: TaskId },
    #[error("the ticket of '{task}' was changed by somebody else meanwhile")]
    Changed { task: TaskId },
    #[error("could not write '{path}': {source}")]
    File { path: String, source: std::io::Error },
}

impl Explain for QueueError {
    fn exit(&self) -> Exit {
        match self {
            Self::Git(error) => error.exit(),
            Self::History(error) => error.exit(),
            Self::Worktree(error) => error.exit(),
            Self::Pipeline(error) => error.exit(),
            Self::Locked { source: LockError::Held { .. }, .. }
            | Self::Claimed(_)
            | Self::Changing(_)
            | Self::Overtaken(_) => Exit::Locked,
            Self::NotQueued { .. } | Self::NoConflict { .. } | Self::Resolver(_) => Exit::No,
            Self::Unproved { .. } | Self::Rewound { .. } | Self::Forged { .. } => Exit::Person,
            Self::Locked { .. }
            | Self::NoTarget(_)
            | Self::Unreadable { .. }
            | Self::Unsound { .. }
            | Self::Changed { .. }
            | Self::File { .. } => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Git(error) => return error.hint(),
            Self::History(error) => return error.hint(),
            Self::Worktree(error) => return error.hint(),
            Self::Pipeline(error) => return error.hint(),
            Self::Locked { source, .. } => {
                return source.advice("wait for it, or end it; its lock ends with it");
            }
            Self::Claimed(_) | Self::Changing(_) | Self::Overtaken(_) => {
                "wait for it; where it was killed, what it claimed is free ten minutes later".into()
            }
            Self::Rewound { into, from, .. } => format!(
                "nothing is lost; bring them back with: git update-ref refs/heads/{into} {from}, or run again from where it is"
            ),
            Self::Forged { commit, .. } => {
                format!("look at it with: git show {commit}; then run the same command again")
            }
            Self::NoTarget(_) => "see the branches with: git branch".into(),
            Self::Unreadable { name, .. } => format!("take it out with: git update-ref -d {name}"),
            Self::NotQueued { .. } | Self::NoConflict { .. } => "see what is: git arborist merge list".into(),
            Self::Unproved { .. } => "nothing was deleted; look at it with: git log --graph".into(),
            Self::Changed { .. } => "run the same command again".into(),
            Self::Unsound { .. } | Self::File { .. } | Self::Resolver(_) => return None,
        })
    }
}
