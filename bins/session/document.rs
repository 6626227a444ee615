//! What `git arborist session` prints with `--json`.

use arborist_core::{
    message::visible,
    session::{
        Checkpoint, CommitOrigin, DamagedRecord, Driver, Fork, Record, RecordKind, RecordedOptions,
        RepositoryStart, SessionStart, SessionState, StoredRecord, Turn, Utterance,
    },
};
use schemars::JsonSchema;
use serde::Serialize;

use super::open::OpenSessions;
use crate::document::rfc3339;

/// The sessions of a repository.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionListDocument {
    /// The newest first.
    pub sessions: Vec<SessionDocument>,
    /// Sessions whose newest record cannot be read. They are not among the others.
    pub damaged: Vec<DamagedSessionDocument>,
}

/// A session whose newest record cannot be read.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DamagedSessionDocument {
    /// Its id.
    pub id: String,
    /// The ref of its records.
    pub record: String,
    /// Why the record cannot be read.
    pub damaged: String,
}

impl From<DamagedRecord> for DamagedSessionDocument {
    fn from(found: DamagedRecord) -> Self {
        Self { id: found.session.to_string(), record: visible(&found.name), damaged: visible(&found.why) }
    }
}

/// One session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionDocument {
    /// Its id.
    pub id: String,
    /// Its state.
    pub state: SessionState,
    /// Its plan, as `path@blob`; null if it has none.
    pub plan: Option<String>,
    /// The branch that it works on.
    pub branch: String,
    /// Its pipeline.
    pub pipeline: String,
    /// The program that runs it.
    pub driver: Driver,
    /// The number of its last turn.
    pub turns: u32,
    /// How many turns have a commit, in any repository.
    pub commits: u32,
    /// Input tokens, as reported by the agents.
    pub tokens_in: u64,
    /// Output tokens, as reported by the agents.
    pub tokens_out: u64,
    /// Cost in US dollars, as reported by the agents; null if none did.
    pub cost: Option<f64>,
    /// Whether it is an offline replay, which calls no model.
    pub offline: bool,
    /// When it began, in RFC 3339.
    pub started: String,
    /// When it was last recorded, in RFC 3339.
    pub updated: String,
    /// The newest commit of its code.
    pub head: String,
}

/// One session in detail.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SessionShowDocument {
    /// What the list says of it.
    pub session: SessionDocument,
    /// Where it works.
    pub repositories: Vec<RepositoryStart>,
    /// The options of the run, by name.
    pub options: std::collections::BTreeMap<String, String>,
    /// The names of options that contain a secret, and are not recorded.
    pub withheld: Vec<String>,
    /// Where it comes from, if it is a replay.
    pub forked_from: Option<Fork>,
    /// Its last checkpoint; null if it has none yet.
    pub checkpoint: Option<Checkpoint>,
    /// Its newest record.
    pub newest: Record,
}

/// The turns of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TurnsDocument {
    /// The session.
    pub session: String,
    /// Its turns, oldest first.
    pub turns: Vec<Turn>,
    /// The times it went back to an earlier turn, oldest first.
    pub resumed: Vec<ResumedDocument>,
}

/// A session that went back to one of its turns.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResumedDocument {
    /// The turn that it went back to; 0 is where it began.
    pub turn: u32,
    /// The turn after which it did.
    pub after: u32,
}

/// One turn.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TurnDocument {
    /// The session.
    pub session: String,
    /// The commit of the record.
    pub record: String,
    /// The turn.
    pub turn: Turn,
    /// The diff of its commit, if requested; null if it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
    /// The diffs of its commits in other repositories, if requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub other_patches: Vec<OtherPatchDocument>,
    /// The prompt, the agent's words, its tool calls and their output, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Vec<Utterance>>,
}

/// What a turn changed in another repository of the workspace.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OtherPatchDocument {
    /// The name of the repository.
    pub repository: String,
    /// What changed there.
    pub patch: String,
}

/// Where a commit comes from.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct WhichDocument {
    /// The commit.
    pub commit: String,
    /// The repository of the workspace that has it; null if it is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// The session that it names.
    pub session: String,
    /// The task that it names.
    pub node: Option<String>,
    /// The turn that it names; null if it is not the commit of a turn.
    pub turn: Option<u32>,
    /// The model; null if the record does not confirm it.
    pub model: Option<String>,
    /// The provider of the model.
    pub provider: Option<String>,
    /// Whether the session's records confirm it.
    pub proven: bool,
}

/// What differs between the trees of two turns.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DiffDocument {
    /// The session.
    pub session: String,
    /// The first turn.
    pub from: TurnTreeDocument,
    /// The second turn.
    pub to: TurnTreeDocument,
    /// The paths that differ.
    pub files: Vec<String>,
    /// How they differ.
    pub patch: String,
    /// The other repositories of the workspace in which something differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub others: Vec<OtherDiffDocument>,
}

/// What differs in another repository between two turns.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OtherDiffDocument {
    /// The name of the repository.
    pub repository: String,
    /// The newest commit of the session there when the first turn ended.
    pub from: String,
    /// The newest commit of the session there when the second turn ended.
    pub to: String,
    /// The paths that differ.
    pub files: Vec<String>,
    /// How they differ.
    pub patch: String,
}

/// The tree of a turn.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TurnTreeDocument {
    /// The turn; 0 is the commit that the session began at.
    pub turn: u32,
    /// The turn's commit, or the last before it if it wrote nothing.
    pub commit: String,
}

/// A new record.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecordedDocument {
    /// The commit of the record.
    pub commit: String,
    /// The record.
    pub record: Record,
}

/// A whole session.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ExportDocument {
    /// What the list says of it.
    pub session: SessionDocument,
    /// All its records, oldest first.
    pub records: Vec<Record>,
}

impl SessionDocument {
    pub(super) fn new(opened: &OpenSessions, stored: &StoredRecord) -> Self {
        let Record { session, time, totals, context, .. } = &stored.record;
        Self {
            id: session.to_string(),
            state: opened.state_of(stored),
            plan: context.plan.clone(),
            branch: context.branch.to_string(),
            pipeline: context.pipeline.clone(),
            driver: context.driver,
            turns: totals.turns,
            commits: totals.commits,
            tokens_in: totals.tokens_in,
            tokens_out: totals.tokens_out,
            cost: totals.cost,
            offline: context.offline,
            started: rfc3339(context.started),
            updated: rfc3339(*time),
            head: context.head.to_string(),
        }
    }
}

impl SessionShowDocument {
    pub(super) fn new(
        session: SessionDocument,
        newest: &StoredRecord,
        start: &SessionStart,
        asked: RecordedOptions,
        checkpoint: Option<&StoredRecord>,
    ) -> Self {
        let checkpoint = checkpoint.and_then(|stored| match &stored.record.kind {
            RecordKind::Checkpoint(checkpoint) => Some(checkpoint.clone()),
            _ => None,
        });
        Self {
            session,
            repositories: start.repositories.clone(),
            options: asked.options,
            withheld: asked.withheld,
            forked_from: start.forked_from.clone(),
            checkpoint,
            newest: newest.record.clone(),
        }
    }
}

impl WhichDocument {
    pub(super) fn new(commit: String, origin: &CommitOrigin, repository: Option<String>) -> Self {
        let word = |of: fn(&Turn) -> &String| origin.proof.as_ref().map(|turn| visible(of(turn)));
        Self {
            commit,
            repository,
            session: origin.session.to_string(),
            node: origin.node.as_ref().map(ToString::to_string),
            turn: origin.number,
            model: word(|turn| &turn.model),
            provider: word(|turn| &turn.provider),
            proven: origin.is_proven(),
        }
    }
}
