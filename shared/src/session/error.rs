//! Errors of sessions.

use super::DamagedRecord;
use crate::{
    failure::{Exit, Explain, Explanation},
    git::GitError,
    name::{Oid, SessionId},
    record::RecordError,
};

/// Why a session could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A commit of a turn could not be written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// No session has this name.
    #[error("there is no session '{0}'")]
    Unknown(String),
    /// The newest record of the session is damaged.
    #[error("session '{}' is damaged: its record '{}' could not be read: {}", .0.session, .0.name, .0.why)]
    Damaged(DamagedRecord),
    /// Several sessions have this prefix.
    #[error("several sessions begin with '{prefix}': {}", found.iter().map(SessionId::as_str).collect::<Vec<_>>().join(", "))]
    Ambiguous {
        /// The prefix.
        prefix: String,
        /// The sessions.
        found: Vec<SessionId>,
    },
    /// A session of this name exists already.
    #[error("session '{0}' already exists")]
    Exists(SessionId),
    /// A record is malformed.
    #[error("the record {} of '{name}' cannot be read: {why}", commit.short())]
    Unreadable {
        /// The ref.
        name: String,
        /// The commit.
        commit: Oid,
        /// What is wrong with it.
        why: String,
    },
    /// The session has no such turn.
    #[error("session '{session}' has no {}", if *turns == 0 { "turns yet".to_owned() } else { format!("turn {number}") })]
    NoTurn {
        /// The session.
        session: SessionId,
        /// The number that was asked for.
        number: u32,
        /// How many there are.
        turns: u32,
    },
    /// The transcript of a turn is not in this repository.
    #[error("session '{session}' has no transcript of turn {number}: it was not recorded, or not fetched")]
    NoTranscript {
        /// The session.
        session: SessionId,
        /// The turn.
        number: u32,
    },
    /// The history of the session cannot be read.
    #[error("the history of the session cannot be read: {0}")]
    History(String),
    /// Other processes write this session so fast that our records never succeed.
    #[error("session '{0}' could not be written, because other processes keep writing it")]
    Busy(SessionId),
}

impl Explain for SessionError {
    fn explain(&self) -> Explanation {
        match self {
            Self::Git(error) => error.explain(),
            Self::Record(error) => error.explain(),
            Self::Unknown(_) => Exit::No.hint("see all sessions with: git arborist session list"),
            Self::Ambiguous { .. } => Exit::No.hint("give more characters of its id"),
            Self::NoTurn { turns: 0, .. } | Self::Exists(_) => Exit::No.into(),
            Self::NoTurn { session, turns, .. } => {
                Exit::No.hint(format!("its turns are 1 to {turns}: git arborist session turns {session}"))
            }
            Self::NoTranscript { .. } => Exit::No.hint(
                "transcripts are not recorded if session.transcripts is off\nif they are at a remote, fetch them with: git fetch <remote> 'refs/arborist/transcripts/*:refs/arborist/transcripts/*'",
            ),
            Self::Damaged(damaged) => Exit::Person.hint(damaged.advice()),
            Self::History(_) => Exit::Person.into(),
            Self::Busy(_) => Exit::Locked.into(),
            Self::Unreadable { .. } => Exit::Fatal.into(),
        }
    }
}
