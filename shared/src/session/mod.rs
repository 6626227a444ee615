//! Records of what a session did, stored in git next to the code: a chain of commits at `refs/arborist/sessions/{id}`,
//! and transcripts in another chain at `refs/arborist/transcripts/{id}`.
//!
//! Each record is a commit without files. Its first parent is the previous record; the others are the code that it is
//! about, so a clone that has fetched the chain has the code too. The message is a subject for people and one line of
//! JSON. Every record carries the totals so far, so the newest one answers most questions.
//!
//! [`SessionWriter`] writes one chain, [`SessionReader`] reads all of them. Records are untrusted input: their size is
//! limited, they are checked, and nothing in them is ever run.

mod asked;
mod chain;
mod error;
mod interrupted;
mod lost;
mod milestone;
mod ownership;
mod point;
mod readable;
mod reader;
mod recall;
mod record;
mod recording;
mod rfc3339;
mod start;
mod state;
mod trail;
mod transcript;
mod turn;
mod turn_record;
mod unrecorded;
mod writer;

pub use asked::{Asked, OF_RUNNER};
pub use chain::is_record;
pub use error::SessionError;
pub use interrupted::{find_turn_elsewhere, finish_turn_elsewhere, finish_turns, recover_from_crash};
pub use lost::find_lost_tasks;
pub use milestone::{Checkpoint, Resumed, SessionEnd, SessionPause, SessionVerdict};
pub use ownership::{owned_by, owned_elsewhere};
pub use point::SessionPoint;
pub use readable::ReadableStream;
pub use reader::{CommitOrigin, DamagedRecord, SessionList, SessionReader, StoredRecord};
pub use recall::ResumeContext;
pub use record::{Context, Record, RecordKind, SessionTotals, Spending};
pub use recording::{RecordedCall, RecordedTurn, Recording};
pub use start::{Driver, Fork, RepositoryStart, SessionStart};
pub use state::SessionState;
pub use trail::{Trail, TrailStep, turn_of};
pub use transcript::{Speaker, Transcript, Utterance};
pub use turn::{TurnCommit, TurnDraft, UNKNOWN, sign_by_agent, value_of};
pub use turn_record::{OtherCommit, TokenCount, ToolCall, Turn};
pub use unrecorded::{find_unrecorded, forget_unrecorded};
pub use writer::{DraftRecord, SessionWriter};

use crate::name::SessionId;

/// The prefix of the refs of records.
pub const SESSIONS: &str = "refs/arborist/sessions/";
/// The prefix of the refs of transcripts.
pub const TRANSCRIPTS: &str = "refs/arborist/transcripts/";

/// The ref of a session's records.
#[must_use]
pub fn ref_of(session: &SessionId) -> String {
    format!("{SESSIONS}{session}")
}

/// The ref of a session's transcripts.
#[must_use]
pub fn transcript_ref_of(session: &SessionId) -> String {
    format!("{TRANSCRIPTS}{session}")
}
