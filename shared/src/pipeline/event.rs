//! What a run tells while it is opened, works and ends. Whoever listens finds the words.

use std::path::PathBuf;

use super::{Expense, Snapshot};
use crate::{
    agent::limits::Chosen,
    message::Status,
    name::{Attempt, BranchName, Oid, RepoName, SessionId, TaskId},
    progress::{RunTotals, Share},
};

/// Something that has happened, and to which task.
#[derive(Debug, Clone)]
pub struct PipelineEvent {
    /// The task; `None` for what concerns the whole run.
    pub task: Option<TaskId>,
    /// What.
    pub kind: PipelineEventKind,
}

impl PipelineEvent {
    /// Of a task.
    #[must_use]
    pub fn of(task: &TaskId, kind: PipelineEventKind) -> Self {
        Self { task: Some(task.clone()), kind }
    }

    /// Of the whole run.
    #[must_use]
    pub fn of_run(kind: PipelineEventKind) -> Self {
        Self { task: None, kind }
    }
}

/// How a run stands when it begins or continues.
#[derive(Debug, Clone)]
pub struct RunOpening {
    /// The run's branch.
    pub branch: BranchName,
    /// Its session.
    pub session: SessionId,
    /// The commit before the first that is made.
    pub head: Oid,
    /// How much of the plan is done.
    pub share: Share,
    /// How many tasks have failed.
    pub failed: usize,
    /// How many attempts each task has.
    pub max_attempts: u32,
    /// What the run has spent.
    pub spent: RunTotals,
    /// Whether no agent is called.
    pub offline: bool,
    /// The options that it was asked for with, to be typed again: each with a space before it.
    pub options: String,
    /// Those of them that are not recorded, and which tasks were wanted, in the same way.
    pub again: String,
}

/// A branch and what it is to land on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The branch.
    pub branch: BranchName,
    /// The target.
    pub target: BranchName,
}

/// Something that has happened.
#[derive(Debug, Clone)]
pub enum PipelineEventKind {
    /// A step of a task begins.
    Begins {
        /// The task's name.
        name: String,
        /// The attempt.
        attempt: Attempt,
        /// What comes: `implement`, `test` or `review`.
        step: &'static str,
        /// Who does it: a runner, or a command.
        by: String,
    },
    /// The agent said or did something.
    Said {
        /// One line.
        words: String,
    },
    /// The agent has ended a turn: what it changed is in the tree.
    Turned,
    /// What the agent changed in a turn was committed.
    Committed {
        /// The number of the turn in its session.
        turn: u64,
        /// The repository, if it is not the one that has the plan.
        repo: Option<RepoName>,
        /// The commit.
        commit: Oid,
        /// What the commit says in its first line, for people.
        words: String,
    },
    /// How far a session has come was written down.
    Checkpoint {
        /// The record.
        record: Oid,
        /// The newest commit of the work.
        commit: Oid,
        /// Where all repositories were, as far as they could be asked.
        snapshot: Snapshot,
    },
    /// Something was written down.
    Recorded {
        /// What happened.
        status: Status,
        /// The commit.
        commit: Oid,
        /// Why it failed, in one line, if it did.
        why: Option<String>,
        /// What the step cost.
        expense: Expense,
        /// How many files an agent left changed, where that is all of its work.
        files: Option<usize>,
    },
    /// A task has a worktree of its own, or a session has one in a repository.
    Placed {
        /// The repository of the session's worktree; `None` for that of a task.
        repo: Option<RepoName>,
        /// Its top.
        path: PathBuf,
        /// The branch that is checked out there.
        branch: BranchName,
        /// Whether it was made for this task, and not one that was free or its own from before.
        is_new: bool,
    },
    /// A task has landed.
    Merged {
        /// How.
        landing: Meeting,
        /// The merge commit.
        commit: Oid,
        /// Who had to resolve a conflict for that, and what people are told of it; `None` if it merged by itself.
        resolved: Option<(String, String)>,
    },
    /// A task cannot land as it is.
    Conflicted {
        /// Of what with what.
        landing: Meeting,
        /// The files that it is about.
        paths: Vec<String>,
        /// How many conflicts there are.
        count: usize,
        /// Whether a person is needed now.
        is_escalated: bool,
    },
    /// The agent's provider cannot keep up, and we wait.
    Waits {
        /// For so many seconds.
        seconds: u64,
        /// Who chose that time.
        chosen: Chosen,
    },
    /// The run is open: agents are called from here on.
    RunBegins(Box<RunOpening>),
    /// No task is worked on any more: the session is closed, and the last pushes are waited for.
    RunEnds,
    /// A repository of the workspace was not there, and was cloned.
    Cloned {
        /// Its name.
        repo: RepoName,
        /// Where from.
        remote: String,
    },
    /// A repository's remote was asked what it has.
    Fetched {
        /// Its name.
        repo: RepoName,
        /// The remote.
        remote: String,
    },
    /// A session has a branch in a repository.
    BranchCreated {
        /// The repository.
        repo: RepoName,
        /// The branch.
        branch: BranchName,
        /// The commit that it begins at.
        base: Oid,
    },
    /// The remote of a repository has what it had not before.
    Pushed {
        /// The repository.
        repo: RepoName,
        /// The remote.
        remote: String,
        /// The full names of the refs.
        refs: Vec<String>,
    },
    /// A push failed. It is tried again while the run works.
    PushFailed {
        /// The repository.
        repo: RepoName,
        /// Why, in one line.
        why: String,
    },
    /// Anything else that a user should know.
    Note {
        /// A sentence.
        words: String,
    },
    /// Something may be wrong.
    Warning {
        /// A sentence.
        words: String,
    },
    /// What to try.
    Hint {
        /// A sentence.
        words: String,
        /// Whether it is said only once, although several remotes may need the same.
        once: bool,
    },
}
