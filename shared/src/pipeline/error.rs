//! Errors that stop a pipeline. A mistake of an agent or a failing test is not an error but a failed attempt.

use std::time::Duration;

use crate::{
    agent::LimitKind,
    agent::{
        AgentError,
        limits::{BudgetLevel, Overrun},
    },
    failure::{Exit, Explain, Explanation},
    git::GitError,
    history::{Event, Interruptions},
    name::{SessionId, TaskId},
    process::Cancel,
    record::RecordError,
    session::SessionError,
};

/// Ctrl-C: the signal that is assumed if none is known.
const SIGINT: u8 = 2;

/// The reason why a task could not continue.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A commit could not be recorded.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The runner cannot be used.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A file could not be written.
    #[error("could not write '{path}': {source}")]
    File {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// Files that a test has changed could not be restored.
    #[error("files that the tests changed could not be restored: {0}")]
    Unrestored(GitError),
    /// Tests fail in a lane without the task's work too.
    #[error("the tests also fail in a worktree without the changes of the task: {why}; log: {log}")]
    RedLane {
        /// The reason in one line.
        why: String,
        /// The path of the log.
        log: String,
    },
    /// A worktree for tests could not be created.
    #[error("could not create a worktree for the tests: {0}")]
    NoTestPlace(String),
    /// The user asked to stop.
    #[error("stopped")]
    Stopped {
        /// The signal, if it was one.
        signal: Option<i32>,
    },
    /// The agent's provider rejects our credentials.
    #[error("the provider of '{runner}' refuses the login: {said}")]
    Refused {
        /// The name of the runner.
        runner: String,
        /// The message of the program.
        said: String,
        /// How to log in, if we know.
        login: Option<&'static str>,
    },
    /// The agent's provider is overloaded, or a usage limit is reached, and that did not end in time.
    #[error("the provider of '{runner}' {}: {said} (waited {} s)", limited(*kind), .waited.as_secs())]
    Unavailable {
        /// Why the provider accepts no call.
        kind: LimitKind,
        /// The name of the runner.
        runner: String,
        /// The message of the program.
        said: String,
        /// How long we waited.
        waited: Duration,
    },
    /// The reviewer's worktree could not be created.
    #[error("could not prepare the worktree for the reviewer: {0}")]
    ReviewPlace(String),
    /// No reviewer has reached a verdict.
    #[error("the reviewer of '{task}' failed {tries} times: {said} (log: {log})")]
    NoReview {
        /// The task.
        task: TaskId,
        /// The path of the log.
        log: String,
        /// How many calls were made.
        tries: u32,
        /// The message of the last call.
        said: String,
    },
    /// A budget is spent.
    #[error(transparent)]
    Budget(#[from] Overrun),
    /// Processes of an agent could not be ended.
    #[error("processes of the agent could not be stopped: {0}")]
    Survivors(String),
    /// The replayed session has no record of what comes next.
    #[error(
        "session '{session}' has no record of the {step} step of '{task}' at this point, so that step cannot be replayed"
    )]
    NotRecorded {
        /// The session that is replayed.
        session: SessionId,
        /// The task.
        task: TaskId,
        /// The step that should run.
        step: &'static str,
    },
    /// The record of a session cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The task was interrupted too often in a row.
    #[error("task '{task}' was interrupted {count} times in a row, the last time because of this: {why}")]
    Interrupted {
        /// The task.
        task: TaskId,
        /// The number of interruptions.
        count: usize,
        /// The reason of the last one.
        why: String,
    },
    /// The task has no command for the runner `shell`.
    #[error("task '{task}' has no command for the runner 'shell' to run")]
    NoCommand {
        /// The task.
        task: String,
    },
}

impl PipelineError {
    /// Whether this error interrupts an attempt that has begun, so that it is recorded even if the agent changed and
    /// spent nothing. All other errors mean that something cannot be used or that a budget is spent; they are recorded
    /// only together with changes or expenses.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        match self {
            Self::Git(_)
            | Self::Unrestored(_)
            | Self::Record(_)
            | Self::File { .. }
            | Self::Stopped { .. }
            | Self::Unavailable { .. }
            | Self::ReviewPlace(_)
            | Self::Survivors(_) => true,
            Self::Agent(_)
            | Self::Refused { .. }
            | Self::NoReview { .. }
            | Self::Budget(_)
            | Self::NotRecorded { .. }
            | Self::Session(_)
            | Self::NoCommand { .. }
            | Self::RedLane { .. }
            | Self::NoTestPlace(_)
            | Self::Interrupted { .. } => false,
        }
    }

    /// The recorded reason of an interruption.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Stopped { signal: Some(2) } => "stopped by Ctrl-C or SIGINT".into(),
            Self::Stopped { signal: Some(15) } => "stopped by SIGTERM".into(),
            Self::Stopped { signal: Some(signal) } => format!("stopped by signal {signal}"),
            Self::Stopped { signal: None } => "stopped by the user".into(),
            error => error.to_string(),
        }
    }

    /// Returns the same error, or [`PipelineError::Interrupted`] if the task was interrupted too often in a row. A
    /// signal is always returned, because its sender waits for the matching exit code.
    #[must_use]
    pub fn after(self, task: &TaskId, events: &[Event]) -> Self {
        match self {
            Self::Stopped { .. } | Self::Interrupted { .. } => self,
            error if error.is_interruption() => Self::interrupted_too_often(task, events).unwrap_or(error),
            error => error,
        }
    }

    /// The error of a task that was interrupted too often in a row.
    pub(super) fn interrupted_too_often(task: &TaskId, events: &[Event]) -> Option<Self> {
        let Interruptions { count, why } = Interruptions::of(events);
        let why = why.filter(|_| count >= Interruptions::MAX_IN_A_ROW)?;
        Some(Self::Interrupted { task: task.clone(), count, why })
    }

    /// The error for a run that was cancelled.
    #[must_use]
    pub fn stopped(cancel: &Cancel) -> Self {
        Self::Stopped { signal: cancel.signal() }
    }

    /// Whether other tasks can continue.
    #[must_use]
    pub fn concerns_only_the_task(&self) -> bool {
        matches!(self, Self::Budget(overrun) if overrun.level() == BudgetLevel::Task)
    }
}

fn limited(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Limit => "refuses calls because of a usage limit",
        LimitKind::Overload => "is overloaded",
    }
}

impl Explain for PipelineError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Record(error) => error.explain(),
            Self::Agent(error) => error.explain(),
            Self::Session(error) => error.explain(),
            Self::Stopped { signal } => {
                Exit::Child(128 + signal.and_then(|signal| u8::try_from(signal).ok()).unwrap_or(SIGINT))
                    .hint("run the same command again to continue")
            }
            Self::NotRecorded { .. } => Exit::No.hint(
                "to let agents continue from here, run: git arborist session replay <session> --turn <turn>",
            ),
            Self::RedLane { .. } => Exit::No.hint(
                "the worktree may lack files or packages: add them with the settings worktree.setup or worktree.copy (no attempt is used up)\nor continue with --allow-red",
            ),
            Self::Unavailable { .. } => Exit::No.hint(
                "run the same command again later (no attempt is used up), or name another runner with --fallback",
            ),
            Self::Budget(overrun) => Exit::No.hint(format!(
                "run the same command again with a higher limit: {} (no attempt is used up)",
                overrun.option()
            )),
            Self::NoCommand { .. } => Exit::No.hint(
                "convert the plan to JSON with: git arborist plan -o task-tree.json\nthen give the task a \"command\" there, or choose another runner",
            ),
            Self::Refused { login, .. } => {
                let login = login.map_or_else(|| "check its login or its key, ".to_owned(), |login| format!("{login}; "));
                Exit::Person.hint(format!("{login}then run the same command again (no attempt is used up)"))
            }
            Self::NoReview { .. } => Exit::Person.hint(
                "read the log and correct the reviewer, or choose another one with --review-runner\nthen run the same command again: it continues with the review, and no attempt is used up",
            ),
            Self::Interrupted { .. } => {
                Exit::Person.hint("to continue anyway, run the same command again with --retry-failed")
            }
            Self::Survivors(_) => Exit::Person.hint("stop them, then run the same command again"),
            Self::Unrestored(_) => Exit::Person.hint(
                "look at the files with: git status\nrestore them, then run the same command again (no attempt is used up)",
            ),
            Self::ReviewPlace(_) => Exit::Fatal.hint(
                "see the worktrees with: git worktree list\nor let reviewers work in the checkout: git config arborist.steps.review.place checkout",
            ),
            Self::File { .. } | Self::NoTestPlace(_) => Exit::Fatal.into(),
        }
    }
}
