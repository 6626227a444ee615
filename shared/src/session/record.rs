//! A record: one thing that happened in a session, with what the session came to so far.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    message::plain_text,
    name::{Attempt, BranchName, Oid, SessionId, TaskId},
};

/// Most of a record that is read, in bytes.
pub(super) const LONGEST: usize = 1 << 20;
/// Most of a turn that is written: files, calls of tools, characters of a call, characters of a message.
const MOST_FILES: usize = 2000;
const MOST_TOOLS: usize = 500;
const LONGEST_SUMMARY: usize = 200;
const LONGEST_MESSAGE: usize = 4000;

/// One thing that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The session.
    #[schemars(with = "String")]
    pub session: SessionId,
    /// How many records stand before it.
    pub sequence: u64,
    /// When it was written, in RFC 3339.
    #[serde(with = "moment")]
    #[schemars(with = "String")]
    pub time: i64,
    /// What the session came to, this record included.
    pub totals: Totals,
    /// What stays the same from record to record, and where others stand.
    pub context: Context,
    /// What happened.
    #[serde(flatten)]
    pub happening: Happening,
}

/// What a session came to so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// The number of the last turn.
    pub turns: u32,
    /// How many turns have a commit.
    pub commits: u32,
    /// Tokens read, as far as agents told.
    pub tokens_in: u64,
    /// Tokens written, as far as agents told.
    pub tokens_out: u64,
    /// US dollars, as far as agents told; null if none did.
    pub cost: Option<f64>,
}

/// What every record repeats, so that the newest is enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// When the session began, in RFC 3339.
    #[serde(with = "moment")]
    #[schemars(with = "String")]
    pub started: i64,
    /// The branch that it works on.
    #[schemars(with = "String")]
    pub branch: BranchName,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// Its pipeline.
    pub pipeline: String,
    /// Who drives it.
    pub driver: Driver,
    /// The newest commit of its code, on whatever branch.
    #[schemars(with = "String")]
    pub head: Oid,
    /// The newest commit of the branch that it works on. Tasks may have branches of their own.
    #[schemars(with = "String")]
    pub tip: Oid,
    /// The record that it began with; null in that record itself.
    #[schemars(with = "Option<String>")]
    pub start: Option<Oid>,
    /// The record of the last checkpoint before this one.
    #[schemars(with = "Option<String>")]
    pub checkpoint: Option<Oid>,
}

/// Who drives a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// A run of `garden` or `gardener`.
    Run,
    /// Another program, or a person with an agent, through `git arborist session`.
    Other,
}

/// What a record is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "most records are turns, and few are held at a time")]
pub enum Happening {
    /// The session begins.
    Start(Start),
    /// An agent has ended a turn.
    Turn(Turn),
    /// A step has ended.
    Checkpoint(Checkpoint),
    /// The session goes on after a pause, a crash or an end.
    Resume(Resumed),
    /// The session rests.
    Pause(Pause),
    /// The session is over.
    End(End),
}

/// How a session begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    /// Where it works: at least one, the first is the one that holds these records.
    pub repositories: Vec<RepositoryStart>,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// Its pipeline.
    pub pipeline: String,
    /// Who drives it.
    pub driver: Driver,
    /// What was asked for, by the names of options. For people, and for what may be taken up again without harm.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Where it comes from, if it is a replay.
    #[serde(default)]
    pub forked_from: Option<Fork>,
}

/// A repository as a session found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryStart {
    /// Its name in the workspace, or of its folder.
    pub name: String,
    /// The branch that is worked on.
    #[schemars(with = "String")]
    pub branch: BranchName,
    /// The commit that it began at.
    #[schemars(with = "String")]
    pub base: Oid,
}

/// What a replay was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fork {
    /// The session.
    #[schemars(with = "String")]
    pub session: SessionId,
    /// The turn, whose tree it begins with.
    pub turn: u32,
}

/// One turn of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// From 1, and only once in a session.
    pub number: u32,
    /// The task.
    #[schemars(with = "String")]
    pub node: TaskId,
    /// The step: `implement`, `review` and so on.
    pub step: String,
    /// The attempt, from 0.
    #[schemars(with = "u32")]
    pub attempt: Attempt,
    /// The model.
    pub model: String,
    /// Who serves it.
    pub provider: String,
    /// The runner that it was called by.
    pub runner: String,
    /// The paths that it wrote, deleted ones too.
    #[serde(default)]
    pub files: Vec<String>,
    /// The tools that it called.
    #[serde(default)]
    pub tools: Vec<ToolCall>,
    /// What it spent; null if the agent did not tell.
    #[serde(default)]
    pub tokens: Option<TokenCount>,
    /// US dollars; null if the agent did not tell.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Its commit; null if it wrote nothing, or nothing that could be committed.
    #[schemars(with = "Option<String>")]
    pub commit: Option<Oid>,
    /// Why something that it wrote is not in its commit; null if all is.
    #[serde(default)]
    pub not_committed: Option<String>,
    /// The message of that commit, without its trailers.
    #[serde(default)]
    pub message: Option<String>,
    /// The agent's own session, by which it can be continued.
    #[serde(default)]
    pub agent_session: Option<String>,
    /// When it began, in RFC 3339.
    #[serde(with = "moment")]
    #[schemars(with = "String")]
    pub started: i64,
    /// When it ended, in RFC 3339.
    #[serde(with = "moment")]
    #[schemars(with = "String")]
    pub ended: i64,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The tool, as the program names it.
    pub name: String,
    /// One line: the command, the file, the pattern.
    pub summary: String,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenCount {
    /// Read, cached ones included.
    pub read: u64,
    /// Written.
    pub written: u64,
}

/// The end of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    /// The task; null for what concerns the whole run.
    #[schemars(with = "Option<String>")]
    pub node: Option<TaskId>,
    /// The step.
    pub step: String,
    /// How it ended, as in the subject of its commit.
    pub status: String,
    /// The head of each repository of the workspace. Best effort: they are asked one after the other, and one that could not
    /// be asked is left out.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>")]
    pub snapshot: BTreeMap<String, Oid>,
}

/// How a session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// The turn whose tree was brought back; null if it goes on from where it was.
    pub turn: Option<u32>,
    /// The commit that it goes on from.
    #[schemars(with = "String")]
    pub commit: Oid,
}

/// Why a session rests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// In words.
    pub why: String,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Whether all was done.
    pub result: Verdict,
    /// More, in words.
    #[serde(default)]
    pub words: String,
}

/// Whether all was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It was.
    Complete,
    /// Something failed.
    Failed,
}

impl Turn {
    /// The same, no longer than a record may be.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.files.truncate(MOST_FILES);
        self.tools.truncate(MOST_TOOLS);
        for tool in &mut self.tools {
            tool.name = cut(&tool.name, LONGEST_SUMMARY);
            tool.summary = cut(&tool.summary, LONGEST_SUMMARY).replace('\n', " ");
        }
        self.message = self.message.map(|message| cut(&message, LONGEST_MESSAGE));
        self.not_committed = self.not_committed.map(|why| cut(&why, LONGEST_MESSAGE));
        self
    }
}

impl Happening {
    /// The word for it.
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
}

impl Record {
    /// The turn that it is about.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        match &self.happening {
            Happening::Turn(turn) => Some(turn),
            _ => None,
        }
    }

    /// The subject of its commit.
    pub(super) fn subject(&self) -> String {
        let what = match &self.happening {
            Happening::Turn(turn) => format!("turn {} of {}", turn.number, turn.node),
            Happening::Checkpoint(Checkpoint { node: Some(node), status, .. }) => {
                format!("checkpoint of {node}: {status}")
            }
            Happening::Checkpoint(checkpoint) => format!("checkpoint: {}", checkpoint.status),
            other => other.kind().to_owned(),
        };
        format!("session {}: {}", self.session, what.replace('\n', " "))
    }

    /// The first record of a session.
    pub(super) fn first(session: SessionId, start: Start, head: Oid, time: i64) -> Option<Self> {
        let context = Context {
            started: time,
            branch: start.repositories.first()?.branch.clone(),
            plan: start.plan.clone(),
            pipeline: start.pipeline.clone(),
            driver: start.driver,
            head,
            tip: head,
            start: None,
            checkpoint: None,
        };
        let totals = Totals::default();
        Some(Self { session, sequence: 0, time, totals, context, happening: Happening::Start(start) })
    }

    /// The record that follows this one, which stands at `commit`. It is about the code `head`, when the branch is at `tip`.
    pub(super) fn next(&self, commit: Oid, happening: Happening, (head, tip): (Oid, Oid), time: i64) -> Self {
        let mut context = Context { head, tip, ..self.context.clone() };
        match self.happening {
            Happening::Start(_) => context.start = Some(commit),
            Happening::Checkpoint(_) => context.checkpoint = Some(commit),
            _ => {}
        }
        let happening = match happening {
            Happening::Turn(turn) => Happening::Turn(turn.bounded()),
            other => other,
        };
        let totals = match &happening {
            Happening::Turn(turn) => self.totals.with(turn),
            _ => self.totals,
        };
        let session = self.session.clone();
        Self { session, sequence: self.sequence.saturating_add(1), time, totals, context, happening }
    }
}

impl Totals {
    fn with(self, turn: &Turn) -> Self {
        let tokens = turn.tokens.unwrap_or_default();
        Self {
            turns: self.turns.max(turn.number),
            commits: self.commits.saturating_add(u32::from(turn.commit.is_some())),
            tokens_in: self.tokens_in.saturating_add(tokens.read),
            tokens_out: self.tokens_out.saturating_add(tokens.written),
            cost: match (self.cost, turn.cost) {
                (None, None) => None,
                (before, now) => Some(before.unwrap_or(0.0) + now.unwrap_or(0.0)),
            },
        }
    }
}

/// The first so many characters, plain.
pub(super) fn cut(text: &str, most: usize) -> String {
    let plain = plain_text(text);
    match plain.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

/// Seconds since 1970 as they stand in JSON: RFC 3339.
mod moment {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use super::Timestamp;

    pub(super) fn serialize<S: Serializer>(seconds: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        let moment = Timestamp::from_second(*seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        serializer.collect_str(&moment)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse::<Timestamp>().map(Timestamp::as_second).map_err(D::Error::custom)
    }
}
