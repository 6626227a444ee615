//! A record: one event of a session, with the totals so far, and what each kind of record says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{RecordedOptions, SessionError, TokenCount, Turn};
use crate::{
    agent::Usage,
    git::RawCommit,
    name::{BranchName, Oid, SessionId, TaskId},
};

/// The longest record that is parsed, in bytes.
pub(super) const LONGEST_RECORD: usize = 1 << 20;

/// One record of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The session.
    pub session: SessionId,
    /// How many records come before it.
    pub sequence: u64,
    /// When it was written, in RFC 3339.
    #[serde(with = "rfc3339")]
    #[schemars(with = "String")]
    pub time: i64,
    /// The totals of the session, including this record.
    pub totals: SessionTotals,
    /// Facts that every record repeats.
    pub context: Context,
    /// What was spent since the last record outside of turns: many programs report their cost only when they
    /// end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_turns: Option<Spending>,
    /// What happened.
    #[serde(flatten)]
    pub kind: RecordKind,
}

/// The totals of a session so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionTotals {
    /// The number of the last turn.
    pub turns: u32,
    /// How many turns have a commit, in any repository.
    pub commits: u32,
    /// Input tokens, as reported by the agents.
    pub tokens_in: u64,
    /// Output tokens, as reported by the agents.
    pub tokens_out: u64,
    /// Cost in US dollars, as reported by the agents; null if none did.
    pub cost: Option<f64>,
}

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spending {
    /// Tokens.
    pub tokens: TokenCount,
    /// Cost in US dollars; null if the agent did not report it.
    pub cost: Option<f64>,
}

impl From<Usage> for Spending {
    fn from(usage: Usage) -> Self {
        let tokens = TokenCount { read: usage.tokens_in, written: usage.tokens_out };
        Self { tokens, cost: usage.cost }
    }
}

/// Facts that every record repeats, so that the newest is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// When the session began, in RFC 3339.
    #[serde(with = "rfc3339")]
    #[schemars(with = "String")]
    pub started: i64,
    /// The nanosecond of that second; null in records of earlier versions. It tells which of two sessions began first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_nanosecond: Option<u32>,
    /// The branch that it works on.
    pub branch: BranchName,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// Its pipeline.
    pub pipeline: String,
    /// The program that runs it.
    pub driver: Driver,
    /// Where it comes from, if it is a replay.
    #[serde(default)]
    pub forked_from: Option<Fork>,
    /// Whether it is an offline replay of the session that it was forked from: no agent is called, and nothing is
    /// spent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub offline: bool,
    /// The newest commit of its work, on any branch.
    pub head: Oid,
    /// The newest commit of its branch. Tasks may have their own branches.
    pub tip: Oid,
    /// Its first record; null in that record itself.
    pub start: Option<Oid>,
    /// The record of the last checkpoint before this one.
    pub checkpoint: Option<Oid>,
    /// The record of the last resume that changed the options; null if there was none.
    #[serde(default)]
    pub asked: Option<Oid>,
}

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "most records are turns, and few are held at a time")]
pub enum RecordKind {
    /// The session starts.
    Start(SessionStart),
    /// An agent has ended a turn.
    Turn(Turn),
    /// A step has ended.
    Checkpoint(Checkpoint),
    /// The session continues after a pause, a crash or an end.
    Resume(Resumed),
    /// The session is paused.
    Pause(SessionPause),
    /// The session has ended.
    End(SessionEnd),
}

impl RecordKind {
    /// The name of the kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Turn(_) => "turn",
            Self::Checkpoint(_) => "checkpoint",
            Self::Resume(_) => "resume",
            Self::Pause(_) => "pause",
            Self::End(_) => "end",
        }
    }

    /// What the record itself says was spent.
    fn spending(&self) -> Option<Spending> {
        let Self::Turn(Turn { tokens, cost, .. }) = self else {
            return None;
        };
        Some(Spending { tokens: tokens.unwrap_or_default(), cost: *cost })
    }
}

impl Record {
    /// The turn that it is about.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        match &self.kind {
            RecordKind::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// The subject of its commit.
    pub(super) fn subject(&self) -> String {
        let what = match &self.kind {
            RecordKind::Turn(turn) => format!("turn {} of {}", turn.number, turn.node),
            RecordKind::Checkpoint(Checkpoint { node: Some(node), status, .. }) => {
                format!("checkpoint of {node}: {status}")
            }
            RecordKind::Checkpoint(checkpoint) => format!("checkpoint: {}", checkpoint.status),
            other => other.kind().to_owned(),
        };
        format!("session {}: {}", self.session, what.replace('\n', " "))
    }

    /// The first record of a session.
    pub(super) fn first(session: SessionId, start: SessionStart, head: Oid, time: i64) -> Option<Self> {
        let context = Context {
            started: time,
            started_nanosecond: nanosecond_of(time),
            branch: start.repositories.first()?.branch.clone(),
            plan: start.plan.clone(),
            pipeline: start.pipeline.clone(),
            driver: start.driver,
            forked_from: start.forked_from.clone(),
            offline: start.offline,
            head,
            tip: head,
            start: None,
            checkpoint: None,
            asked: None,
        };
        let totals = SessionTotals::default();
        let kind = RecordKind::Start(start);
        Some(Self { session, sequence: 0, time, totals, context, beside_turns: None, kind })
    }

    /// The record after this one, which is at `commit`. It is about the code `head` while the branch is at `tip`;
    /// `beside_turns` was spent since.
    pub(super) fn next(
        &self,
        commit: Oid,
        kind: RecordKind,
        beside_turns: Option<Spending>,
        head: Oid,
        tip: Oid,
        time: i64,
    ) -> Self {
        let mut context = Context { head, tip, ..self.context.clone() };
        match &self.kind {
            RecordKind::Resume(Resumed { asked: Some(_), .. }) => context.asked = Some(commit),
            RecordKind::Start(_) => context.start = Some(commit),
            RecordKind::Checkpoint(_) => context.checkpoint = Some(commit),
            _ => {}
        }
        let kind = match kind {
            RecordKind::Turn(turn) => RecordKind::Turn(turn.bounded()),
            other => other,
        };
        let mut totals = self.totals;
        if let RecordKind::Turn(turn) = &kind {
            totals = totals.with(turn);
        }
        if !context.offline {
            totals = totals.spending(kind.spending()).spending(beside_turns);
        }
        let (session, sequence) = (self.session.clone(), self.sequence.saturating_add(1));
        Self { session, sequence, time, totals, context, beside_turns, kind }
    }
}

impl Context {
    /// Whether this session began before the other one. If both began in the same second and one does not say when, they count
    /// as begun at the same time.
    #[must_use]
    pub fn began_before(&self, other: &Self) -> bool {
        let nanoseconds = self.started_nanosecond.zip(other.started_nanosecond);
        let is_earlier = nanoseconds.is_some_and(|(own, others)| own < others);
        self.started < other.started || (self.started == other.started && is_earlier)
    }
}

/// The nanosecond of the second `time`, which has just been read from the clock. If the second is over, its last one; `None` if
/// `time` is from another clock, as in tests.
fn nanosecond_of(time: i64) -> Option<u32> {
    let now = Timestamp::now();
    match now.as_second().checked_sub(time)? {
        0 => u32::try_from(now.subsec_nanosecond()).ok(),
        1 => Some(999_999_999),
        _ => None,
    }
}

impl SessionTotals {
    fn with(self, turn: &Turn) -> Self {
        let turns = self.turns.max(turn.number);
        Self { turns, commits: self.commits.saturating_add(u32::from(turn.has_commit())), ..self }
    }

    fn spending(self, spent: Option<Spending>) -> Self {
        let Some(Spending { tokens, cost }) = spent else {
            return self;
        };
        Self {
            tokens_in: self.tokens_in.saturating_add(tokens.read),
            tokens_out: self.tokens_out.saturating_add(tokens.written),
            cost: match (self.cost, cost) {
                (None, None) => None,
                (before, now) => Some(before.unwrap_or(0.0) + now.unwrap_or(0.0)),
            },
            ..self
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// The program that runs a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// A run of `garden` or `gardener`.
    Run,
    /// Another program, or a person with an agent, through `git arborist session`.
    Other,
}

/// The start of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStart {
    /// The repositories: at least one; the first has these records.
    pub repositories: Vec<RepositoryStart>,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// Its pipeline.
    pub pipeline: String,
    /// The program that runs it.
    pub driver: Driver,
    /// The options of the run, by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The names of options that contain a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// Where it comes from, if it is a replay.
    #[serde(default)]
    pub forked_from: Option<Fork>,
    /// Whether it is an offline replay, which calls no agent.
    #[serde(default)]
    pub offline: bool,
}

/// A repository as a session found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryStart {
    /// Its name in the workspace, or of its folder.
    pub name: String,
    /// The branch that is worked on.
    pub branch: BranchName,
    /// The commit at which it started.
    pub base: Oid,
}

/// What a replay was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The session.
    pub session: SessionId,
    /// The turn at which it starts.
    pub turn: u32,
}

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The task; null if the whole run is concerned.
    pub node: Option<TaskId>,
    /// The step.
    pub step: String,
    /// How it ended, as in the subject of its commit.
    pub status: String,
    /// The head of each repository of the workspace. Best effort: they are read one after the other, and one that could not
    /// be read is left out.
    #[serde(default)]
    pub snapshot: BTreeMap<String, Oid>,
}

/// How a session continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The turn whose tree was restored; null if it continues from where it was.
    pub turn: Option<u32>,
    /// The commit from which it continues.
    pub commit: Oid,
    /// The new options of the run; null if they have not changed.
    #[serde(default)]
    pub asked: Option<RecordedOptions>,
}

/// Why a session was paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionPause {
    /// In words.
    pub why: String,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnd {
    /// Whether everything was done.
    pub result: SessionVerdict,
    /// Further remarks.
    #[serde(default)]
    pub words: String,
}

/// Whether everything was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionVerdict {
    /// Everything was done.
    Complete,
    /// Something failed.
    Failed,
}

/// Parses a commit of the chain `name`.
pub(super) fn read_json<T: DeserializeOwned>(name: &str, commit: &RawCommit) -> Result<T, SessionError> {
    parse_json(name, commit.id, body_of(commit.message()))
}

fn body_of(message: &[u8]) -> &[u8] {
    memchr::memmem::find(message, b"\n\n").map_or(&message[..0], |at| &message[at + 2..])
}

/// Whether a commit with this message belongs to the record of a session or to its transcript.
#[must_use]
pub fn is_record(message: &[u8]) -> bool {
    let body = body_of(message).trim_ascii();
    let is_named = message.starts_with(b"session ") || message.starts_with(b"transcript of ");
    is_named && body.starts_with(b"{") && body.ends_with(b"}")
}

/// Parses the text below the subject of the commit `id`.
pub(super) fn parse_json<T: DeserializeOwned>(
    name: &str,
    commit: Oid,
    body: &[u8],
) -> Result<T, SessionError> {
    let unreadable = |why: String| SessionError::Unreadable { name: name.to_owned(), commit, why };
    if body.len() > LONGEST_RECORD {
        return Err(unreadable("it is too long".into()));
    }
    serde_json::from_slice(body).map_err(|error| unreadable(error.to_string()))
}

/// Serialises seconds since 1970 as RFC 3339.
pub(super) mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in crate::session) fn serialize<S: Serializer>(
        seconds: &i64,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let time = Timestamp::from_second(*seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        serializer.collect_str(&time)
    }

    pub(in crate::session) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<Timestamp>().map(Timestamp::as_second).map_err(D::Error::custom)
    }
}
