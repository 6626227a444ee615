//! What a session did, kept in git beside the code: a chain of records under `refs/arborist/sessions/{id}`, and what was
//! said in another under `refs/arborist/transcripts/{id}`.
//!
//! Each record is a commit without files. Its first parent is the record before it, the others are the code that it is
//! about, so whoever has fetched the chain has the code too. The message is a subject for people and one line of JSON.
//! Every record carries what the session came to so far, so the newest tells most of what anybody asks.
//!
//! [`Chronicle`] writes one chain, [`Archive`] reads them all. What is read was written by anybody: it is bounded and
//! checked, and nothing of it is ever run.

mod archive;
mod asked;
mod chain;
mod chronicle;
mod error;
mod interrupted;
mod milestone;
mod moment;
mod ownership;
mod point;
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

pub use archive::{Archive, Origin, Shelf, Stored};
pub use asked::{Asked, OF_RUNNER};
pub use chronicle::{Chronicle, Draft};
pub use error::SessionError;
pub use interrupted::{finish_turn_elsewhere, finish_turns, recover_from_crash};
pub use milestone::{Checkpoint, End, Pause, Resumed, Verdict};
pub use ownership::owned_by;
pub use point::Point;
pub use recall::Recollection;
pub use record::{Context, Happening, Record, Spending, Totals};
pub use recording::{RecordedCall, RecordedTurn, Recording};
pub use standing::Standing;
pub use start::{Driver, Fork, RepositoryStart, Start};
pub use trail::{Trail, turn_of};
pub use transcript::{Line, Transcript, Voice};
pub use turn::{TurnCommit, TurnDraft, UNKNOWN, value_of};
pub use turn_record::{OtherCommit, TokenCount, ToolCall, Turn};
pub use witness::{find_unrecorded, forget_unrecorded};

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
