//! Records of what a session did, stored in git next to the code: a chain of commits at `refs/arborist/sessions/{id}`,
//! and transcripts in another chain at `refs/arborist/transcripts/{id}`.
//!
//! Each record is a commit without files. Its first parent is the previous record; the others are the code that it is
//! about, so a clone that has fetched the chain has the code too. The message is a subject for people and one line of
//! JSON. Every record carries the totals so far, so the newest one answers most questions.
//!
//! [`SessionWriter`] writes one chain, [`SessionReader`] reads all of them. Records are untrusted input: their size is
//! limited, they are checked, and nothing in them is ever run.

mod error;
mod missing_work;
mod point;
mod readable_stream;
mod reader;
mod record;
mod recording;
mod recovery;
mod resume_context;
mod trail;
mod transcript;
mod turn;
mod writer;

pub use error::SessionError;
pub use missing_work::{find_lost_tasks, find_unrecorded, forget_unrecorded};
pub use point::SessionPoint;
pub use readable_stream::ReadableStream;
pub use reader::{
    CommitOrigin, DamagedRecord, OF_RUNNER, RecordedOptions, SessionList, SessionReader, SessionState,
    StoredRecord,
};
pub use record::{
    Checkpoint, Context, Driver, Fork, Record, RecordKind, RepositoryStart, Resumed, SessionEnd,
    SessionPause, SessionStart, SessionTotals, SessionVerdict, Spending, is_record,
};
pub use recording::{RecordedCall, RecordedTurn, Recording};
pub use recovery::{find_turn_elsewhere, finish_turn_elsewhere, finish_turns};
pub use resume_context::ResumeContext;
pub use trail::{Trail, TrailStep, turn_of};
pub use transcript::{Speaker, Transcript, Utterance};
pub use turn::{
    OtherCommit, TokenCount, ToolCall, Turn, TurnCommit, TurnDraft, UNKNOWN, sign_by_agent, value_of,
};
pub use writer::{DraftRecord, SessionWriter};

use crate::{
    git::Ownership,
    name::{BranchName, SessionId, TaskId},
    record::UnfinishedAttempt,
};

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

/// The refs of the run `run`: its task branches, the records of its session and its marks of unfinished work. Marks of
/// other runs are watched too, because they are trusted after a crash. The run's own branch is not included: others may
/// commit to it at any time, and where tasks work in its checkout, their steps watch it.
#[must_use]
pub fn owned_by(run: &BranchName, session: Option<&SessionId>) -> Ownership {
    let records = session.into_iter().flat_map(|session| [ref_of(session), transcript_ref_of(session)]);
    let mut prefixes = vec![run.task_refs(), format!("{}{}/", UnfinishedAttempt::REFS, run.component())];
    prefixes.extend(marks_of_tasks(run));
    Ownership {
        names: records.collect(),
        prefixes,
        shared: vec![UnfinishedAttempt::REFS.to_owned()],
        bases: vec![run.to_ref()],
    }
}

/// The refs of a session in another repository of its workspace. It has no records there, but refs under such names would
/// be pushed with the branch, so they are owned too. So is the branch itself: only landings and the run move it.
#[must_use]
pub fn owned_elsewhere(branch: &BranchName, session: &SessionId) -> Ownership {
    let mut owned = owned_by(branch, Some(session));
    owned.names.append(&mut owned.bases);
    owned
}

/// The prefix of marks of attempts on task branches. `None` for a very long branch, whose name is truncated.
fn marks_of_tasks(run: &BranchName) -> Option<String> {
    let task: TaskId = "T".parse().ok()?;
    let component = run.task_branch(&task).component();
    Some(format!("{}{}", UnfinishedAttempt::REFS, component.strip_suffix("%2FT")?.to_owned() + "%2F"))
}
