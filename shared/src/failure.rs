//! How a command fails: an exit code, a message, and hints.

use crate::process::{LockError, ProcessError};

/// The exit codes of every command. They are public interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A task failed, work remains, or a check failed.
    No,
    /// A person must decide or fix something.
    Person,
    /// Another run holds the lock.
    Locked,
    /// git or the machine failed.
    Fatal,
    /// The command line is wrong.
    Usage,
    /// A child exited with this code, which is passed on.
    Child(u8),
}

impl Exit {
    /// The exit code as a number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Person => 2,
            Self::Locked => 3,
            Self::Fatal => 128,
            Self::Usage => 129,
            Self::Child(code) => code,
        }
    }

    /// This exit code, with what to try next.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Explanation {
        Explanation { exit: self, hint: Some(hint.into()) }
    }
}

/// What an error means for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The exit code.
    pub exit: Exit,
    /// What to try next.
    pub hint: Option<String>,
}

impl From<Exit> for Explanation {
    fn from(exit: Exit) -> Self {
        Self { exit, hint: None }
    }
}

/// The meaning of an error for the user. Each module implements it for its own errors.
pub trait Explain: std::error::Error {
    /// The exit code for this error, and what to try next.
    fn explain(&self) -> Explanation;

    /// The exit code for this error.
    fn exit(&self) -> Exit {
        self.explain().exit
    }

    /// What to try next.
    fn hint(&self) -> Option<String> {
        self.explain().hint
    }

    /// All messages, each with what to try next: more than one if several things are wrong at once.
    fn messages(&self) -> Vec<(String, Option<String>)> {
        vec![(self.to_string(), self.hint())]
    }
}

impl Explain for ProcessError {
    fn explain(&self) -> Explanation {
        Exit::Fatal.into()
    }
}

impl Explain for LockError {
    fn explain(&self) -> Explanation {
        let exit = match self {
            Self::Held { .. } => Exit::Locked,
            Self::Failed { .. } => Exit::Fatal,
        };
        Explanation { exit, hint: self.advice_to_stop() }
    }
}

/// The error of a command, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    /// What failed, in one sentence; more lines may follow.
    pub message: String,
    /// What to try next, one line each.
    pub hints: Vec<String>,
    /// What else is wrong, each with its hint.
    pub others: Vec<(String, Option<String>)>,
}

impl Failure {
    /// A failure with this code and message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hints: Vec::new(), others: Vec::new() }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Errors without a type of ours, such as those of files: the binaries add what was tried with [`anyhow::Context`].
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Fatal, format!("{error:#}"))
    }
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut messages = error.messages().into_iter();
        let (message, hint) = messages.next().unwrap_or_default();
        Self { exit: error.exit(), message, hints: hint.into_iter().collect(), others: messages.collect() }
    }
}
