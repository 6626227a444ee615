//! What a call came to.

use super::{FailureKind, LimitKind, RetryWait, Usage};

/// How the process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    /// By itself, with this code.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// We ended it, and this is why, such as `no output for 300 s`.
    Stopped(String),
}

impl ProcessEnd {
    /// In a few words, with `it` for the program.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Code(code) => format!("it exited with code {code}"),
            Self::Signal(signal) => format!("it was ended by signal {signal}"),
            Self::Stopped(why) => why.clone(),
        }
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The agent did what it could.
    Success {
        /// Its last words.
        text: String,
        /// What it cost, as far as it told.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
    /// It may be tried again later, and no attempt was used up.
    Limited {
        /// Who cannot keep up.
        kind: LimitKind,
        /// When to try again.
        until: RetryWait,
        /// In the program's words.
        message: String,
        /// What it cost all the same.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
    /// It did not work.
    Failed {
        /// Why.
        kind: FailureKind,
        /// In one sentence.
        message: String,
        /// What it cost all the same.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
}
