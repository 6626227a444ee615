//! What a session did, kept in git beside the code: a chain of records under `refs/arborist/sessions/{id}`, and what was
//! said in another under `refs/arborist/transcripts/{id}`.
//!
//! Each record is a commit without files. Its first parent is the record before it, the others are the code that it is
//! about, so whoever has fetched the chain has the code too. The message is a subject for people and one line of JSON.
//! Every record carries what the session came to so far, so the newest tells most of what anybody asks.
//!
//! [`SessionWriter`] writes one chain, [`SessionReader`] reads them all. Records are untrusted input: it is bounded and
//! checked, and nothing of it is ever run.

mod asked;
mod chain;
mod error;
mod interrupted;
mod milestone;
mod moment;
mod ownership;
mod point;
mod reader;
mod recall;
mod record;
mod recording;
mod standing;
mod start;
mod trail;
mod transcript;
mod turn;
mod turn_record;
mod witness;
mod writer;

pub use asked::{Asked, OF_RUNNER};
pub use error::SessionError;
pub use interrupted::{finish_turn_elsewhere, finish_turns, recover_from_crash};
pub use milestone::{Checkpoint, Resumed, SessionEnd, SessionPause, SessionVerdict};
pub use ownership::{owned_by, owned_elsewhere};
pub use point::SessionPoint;
pub use reader::{CommitOrigin, SessionList, SessionReader, StoredRecord};
pub use recall::ResumeContext;
pub use record::{Context, Record, RecordKind, SessionTotals, Spending};
pub use recording::{RecordedCall, RecordedTurn, Recording};
pub use standing::SessionState;
pub use start::{Driver, Fork, RepositoryStart, SessionStart};
pub use trail::{Trail, turn_of};
pub use transcript::{Speaker, Transcript, Utterance};
pub use turn::{TurnCommit, TurnDraft, UNKNOWN, value_of};
pub use turn_record::{OtherCommit, TokenCount, ToolCall, Turn};
pub use witness::{find_unrecorded, forget_unrecorded};
pub use writer::{DraftRecord, SessionWriter};

use crate::name::SessionId;

/// Where records stand.
pub const SESSIONS: &str = "refs/arborist/sessions/";
/// Where transcripts stand.
pub const TRANSCRIPTS: &str = "refs/arborist/transcripts/";

/// The ref of a session's records.
#[must_use]
pub fn ref_of(session: &SessionId) -> String {
    format!("{SESSIONS}{session}")
}

/// The ref of what was said in a session.
#[must_use]
pub fn transcript_ref_of(session: &SessionId) -> String {
    format!("{TRANSCRIPTS}{session}")
}
