//! Requests to workers: refs that they see when they look at the remote.

use crate::git::RawCommit;

/// What workers are asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkRequest {
    /// Interrupt the agents and end.
    Stop,
    /// Finish the current tasks, take no more, and end.
    Drain,
}

/// The name of the ref that all workers of a run obey.
pub(super) const ALL: &str = "all";

impl WorkRequest {
    /// The request as it is typed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Drain => "drain",
        }
    }

    /// The message of its commit. `nonce` tells it from earlier ones.
    pub(super) fn message(self, nonce: &str) -> String {
        format!("request: {}\n\n{nonce}\n", self.as_str())
    }

    /// Reads a request. `None` if it is not one.
    pub(super) fn read(commit: &RawCommit) -> Option<Self> {
        match commit.message().split(|b| *b == b'\n').next()? {
            b"request: stop" => Some(Self::Stop),
            b"request: drain" => Some(Self::Drain),
            _ => None,
        }
    }
}
