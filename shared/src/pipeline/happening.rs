//! What a pipeline tells while it works. Somebody else finds the words.

use crate::{
    message::Status,
    name::{Attempt, Oid, TaskId},
};

/// Something that has happened.
#[derive(Debug, Clone)]
pub enum Happening<'a> {
    /// A step of a task begins.
    Begins {
        /// The task.
        task: &'a TaskId,
        /// Its name.
        name: &'a str,
        /// The attempt.
        attempt: Attempt,
        /// What comes: `implement`, `test` or `review`.
        step: &'a str,
        /// Who does it.
        by: &'a str,
    },
    /// The agent said or did something.
    Said {
        /// One line.
        words: &'a str,
    },
    /// Something was written down.
    Recorded {
        /// The task.
        task: &'a TaskId,
        /// What happened.
        status: Status,
        /// The commit.
        commit: Oid,
        /// Why it failed, in one line, if it did.
        why: Option<&'a str>,
    },
    /// The agent's provider asks us to wait.
    Waits {
        /// For so many seconds.
        seconds: u64,
    },
    /// Anything else that a user should know.
    Note {
        /// A sentence.
        words: &'a str,
    },
}
