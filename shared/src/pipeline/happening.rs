//! What a pipeline tells while it works. Somebody else finds the words.

use super::Expense;
use crate::{
    agent::limits::Chosen,
    message::Status,
    name::{Attempt, Oid, TaskId},
};

/// Something that has happened, and to which task.
#[derive(Debug, Clone)]
pub struct News {
    /// The task; `None` for what concerns the whole run.
    pub task: Option<TaskId>,
    /// What.
    pub happening: Happening,
}

impl News {
    /// Of a task.
    #[must_use]
    pub fn of(task: &TaskId, happening: Happening) -> Self {
        Self { task: Some(task.clone()), happening }
    }
}

/// Something that has happened.
#[derive(Debug, Clone)]
pub enum Happening {
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
    },
    /// The agent's provider cannot keep up, and we wait.
    Waits {
        /// For so many seconds.
        seconds: u64,
        /// Who chose that time.
        chosen: Chosen,
    },
    /// Anything else that a user should know.
    Note {
        /// A sentence.
        words: String,
    },
}
