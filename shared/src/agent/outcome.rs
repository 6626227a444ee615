//! The outcome of a call.

use super::{FailureKind, LimitKind, RetryWait, Usage};

/// How the process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Code(i32),
    /// A signal that we did not send ended it.
    Signal(i32),
    /// We ended it, for this reason, such as `no output for 300 s`.
    Stopped(String),
}

impl ProcessEnd {
    /// A short description.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Code(code) => format!("the agent exited with code {code}"),
            Self::Signal(signal) => format!("the agent was ended by signal {signal}"),
            Self::Stopped(why) => format!("the agent {why}"),
        }
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// The agent finished.
    Success {
        /// Its final answer.
        text: String,
        /// What it cost, if it reported that.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
    /// A limit was reached. The call can be repeated later; no attempt was used up.
    Limited {
        /// The kind of the limit.
        kind: LimitKind,
        /// When to try again.
        until: RetryWait,
        /// The program's message.
        message: String,
        /// What it cost nevertheless.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
    /// The call failed.
    Failed {
        /// Why.
        kind: FailureKind,
        /// The reason in one sentence.
        message: String,
        /// What it cost nevertheless.
        usage: Option<Usage>,
        /// The program's own session.
        session: Option<String>,
    },
}
