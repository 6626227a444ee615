//! The state of a session: from its newest record, and whether a process is at work.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Driver, RecordKind, SessionEnd, SessionList, SessionVerdict, StoredRecord};
use crate::{git::Repository, process::FileLock};

/// The state of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionState {
    /// A run is active.
    Running,
    /// Another program runs it, and it has not ended.
    Open,
    /// It was paused.
    Paused,
    /// It crashed: no process is working on it, and no end is recorded.
    Crashed,
    /// It ended with a failure.
    Failed,
    /// It is done.
    Complete,
}

impl SessionState {
    /// The name of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Open => "open",
            Self::Paused => "paused",
            Self::Crashed => "crashed",
            Self::Failed => "failed",
            Self::Complete => "complete",
        }
    }
}

impl SessionList {
    /// The state of a session in this list. A run's lock is that of its branch, so of several sessions on one branch
    /// only the last one can be at work.
    #[must_use]
    pub fn standing(&self, repository: &Repository, stored: &StoredRecord) -> SessionState {
        let record = &stored.record;
        let is_last = || {
            let same =
                self.sessions.iter().filter(|other| other.record.context.branch == record.context.branch);
            same.map(|other| (other.record.context.started, &other.record.session)).max()
                == Some((record.context.started, &record.session))
        };
        let lock = || repository.run_lock(&record.context.branch);
        if record.context.driver == Driver::Run && FileLock::find_holder(&lock()).is_some() && is_last() {
            return SessionState::Running;
        }
        match &record.kind {
            RecordKind::End(SessionEnd { result: SessionVerdict::Complete, .. }) => SessionState::Complete,
            RecordKind::End(SessionEnd { result: SessionVerdict::Failed, .. }) => SessionState::Failed,
            RecordKind::Pause(_) => SessionState::Paused,
            _ if record.context.driver == Driver::Other => SessionState::Open,
            _ => SessionState::Crashed,
        }
    }
}
