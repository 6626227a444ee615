//! How a command ends when it does not simply succeed: a code, a sentence, and what to try.

use crate::process::{LockError, ProcessError};

/// The exit codes of every command. They are public interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// The answer is no, or a task failed, or work remains.
    No,
    /// A person is needed.
    Person,
    /// Another run holds the lock.
    Locked,
    /// git or the machine failed.
    Fatal,
    /// The command was typed wrongly.
    Usage,
    /// A child ended with this code, which is passed on.
    Child(u8),
}

impl Exit {
    /// The number that the process ends with.
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
}

/// What an error means for the user. Each module's error type says it beside its variants.
pub trait Explain: std::error::Error {
    /// The code that a command ends with because of this error.
    fn exit(&self) -> Exit {
        Exit::Fatal
    }

    /// What to try next.
    fn hint(&self) -> Option<String> {
        None
    }
}

impl Explain for ProcessError {}

impl Explain for LockError {
    fn exit(&self) -> Exit {
        match self {
            Self::Held { .. } => Exit::Locked,
            Self::Failed { .. } => Exit::Fatal,
        }
    }

    fn hint(&self) -> Option<String> {
        self.advice("wait until it is done, or end it first")
    }
}

/// What a command returns when it fails: ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The code to end with.
    pub exit: Exit,
    /// What failed, in one sentence; more lines may follow it.
    pub message: String,
    /// What to try next, a line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// A failure with this code and sentence.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hints: Vec::new() }
    }

    /// The same failure with one more hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Errors that have no type of ours, such as those of files: the binaries add with [`anyhow::Context`] what was tried.
impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Fatal, format!("{error:#}"))
    }
}

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { exit: error.exit(), message: error.to_string(), hints: error.hint().into_iter().collect() }
    }
}
