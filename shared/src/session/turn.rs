//! One turn of an agent: its record, limited in size, and its commit. Both are written in one transaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    DraftRecord, RecordKind, SessionError, SessionWriter, Transcript,
    record::{is_false, rfc3339},
};
use crate::{
    git::RefMove,
    history::Event,
    message::{Body, Key, Status, SubjectParts, plain_line, plain_text},
    name::{Attempt, Oid, TaskId},
    record::{IndexUpdate, PreparedCommit, RecordError, RunRecorder, StagedCommit, TaskEvent},
};

/// Most of a turn that is written: files, other repositories, calls of tools, characters of a call, characters of a message.
const MOST_FILES: usize = 2000;
const MOST_OTHERS: usize = 100;
const MOST_TOOLS: usize = 500;
const LONGEST_SUMMARY: usize = 200;
const LONGEST_MESSAGE: usize = 4000;

/// One turn of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// From 1, and only once in a session.
    pub number: u32,
    /// The task.
    pub node: TaskId,
    /// The step: `implement`, `review` and so on.
    pub step: String,
    /// The attempt, from 0.
    #[schemars(with = "u32")]
    pub attempt: Attempt,
    /// The model.
    pub model: String,
    /// Its provider.
    pub provider: String,
    /// The runner that it was called by.
    pub runner: String,
    /// The paths that it wrote, deleted ones too; those in other repositories are in `others`.
    #[serde(default)]
    pub files: Vec<String>,
    /// The tools that it called.
    #[serde(default)]
    pub tools: Vec<ToolCall>,
    /// Its tokens; null if the agent did not report them. An offline replay repeats them, but uses none.
    #[serde(default)]
    pub tokens: Option<TokenCount>,
    /// Cost in US dollars; null if the agent did not report it.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Its commit in the repository that has the plan; null if it wrote nothing there, or nothing that could be committed.
    pub commit: Option<Oid>,
    /// What it wrote in other repositories of the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherCommit>,
    /// Why some of its files are not in its commit; null if all are.
    #[serde(default)]
    pub not_committed: Option<String>,
    /// Whether it was stopped before it had ended.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interrupted: bool,
    /// The message of that commit, without its trailers; of the first in another repository if there is none here.
    #[serde(default)]
    pub message: Option<String>,
    /// The agent's last line, such as a reviewer's verdict, if there is no such message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The agent's own session id, to continue it.
    #[serde(default)]
    pub agent_session: Option<String>,
    /// When it began, in RFC 3339.
    #[serde(with = "rfc3339")]
    #[schemars(with = "String")]
    pub started: i64,
    /// When it ended, in RFC 3339.
    #[serde(with = "rfc3339")]
    #[schemars(with = "String")]
    pub ended: i64,
}

/// The commit of a turn in another repository of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OtherCommit {
    /// The name of the repository.
    pub repository: String,
    /// The commit, on the session's branch there.
    pub commit: Oid,
    /// The paths that were written there, deleted ones too.
    #[serde(default)]
    pub files: Vec<String>,
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
    /// Input, including cached tokens.
    pub read: u64,
    /// Output.
    pub written: u64,
}

impl Turn {
    /// Whether it has a commit, in any repository.
    #[must_use]
    pub fn has_commit(&self) -> bool {
        self.commit.is_some() || !self.others.is_empty()
    }

    /// All paths that it wrote; those in other repositories as `NAME:PATH`.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let others = self
            .others
            .iter()
            .flat_map(|other| other.files.iter().map(move |path| format!("{}:{path}", other.repository)));
        self.files.iter().cloned().chain(others).collect()
    }

    /// Whether this is its commit, in any repository.
    #[must_use]
    pub fn made(&self, commit: Oid) -> bool {
        self.commit == Some(commit) || self.others.iter().any(|other| other.commit == commit)
    }

    /// Limits its lists of files and repositories in size.
    #[must_use]
    pub(super) fn bounded(mut self) -> Self {
        self.files.truncate(MOST_FILES);
        self.others.truncate(MOST_OTHERS);
        let mut left = MOST_FILES - self.files.len();
        for other in &mut self.others {
            other.files.truncate(left);
            left -= other.files.len();
        }
        self.tools.truncate(MOST_TOOLS);
        for tool in &mut self.tools {
            tool.name = cut(&tool.name, LONGEST_SUMMARY);
            tool.summary = cut(&tool.summary, LONGEST_SUMMARY).replace('\n', " ");
        }
        self.message = self.message.map(|message| cut(&message, LONGEST_MESSAGE));
        self.said = self.said.map(|said| cut(&said, LONGEST_SUMMARY).replace('\n', " "));
        self.not_committed = self.not_committed.map(|why| cut(&why, LONGEST_MESSAGE));
        self
    }
}

/// The first `most` characters as plain text.
pub(super) fn cut(text: &str, most: usize) -> String {
    let plain = plain_text(text);
    match plain.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

/// The longest value of a trailer, in characters.
const LONGEST_VALUE: usize = 200;
/// The value for something that is not known.
pub const UNKNOWN: &str = "unknown";

/// The commit of a turn, before the turn has a number.
#[derive(Debug)]
pub struct TurnCommit<'a> {
    /// The task.
    pub node: &'a TaskId,
    /// The attempt.
    pub attempt: Attempt,
    /// The model, if it is known.
    pub model: Option<&'a str>,
    /// The provider of the model, if it is known.
    pub provider: Option<&'a str>,
    /// The pipeline.
    pub pipeline: &'a str,
    /// The text of the subject after the colon.
    pub subject: &'a str,
    /// The body of the message.
    pub body: Body,
}

impl TurnCommit<'_> {
    /// The commit as an event, whose author is the task and the model.
    #[must_use]
    pub fn entry(self) -> TaskEvent<'static> {
        let wording = SubjectParts { name: self.subject, attempt: self.attempt, max: 0 };
        let mut entry = TaskEvent::new(self.node.clone(), Status::Turn, wording);
        entry.body = self.body;
        sign_by_agent(&mut entry, (self.model, self.provider), self.pipeline);
        entry
    }
}

/// Makes an agent the author of an event, and adds trailers about it. A model or provider may be unknown.
pub fn sign_by_agent(
    entry: &mut TaskEvent<'_>,
    (model, provider): (Option<&str>, Option<&str>),
    pipeline: &str,
) {
    let (model, node) = (value_of(model), entry.task.to_string());
    entry.author = Some(format!("{node} ({})", model.replace(['<', '>'], "")));
    let (provider, pipeline) = (value_of(provider), value_of(Some(pipeline)));
    for (key, value) in
        [(Key::Model, model), (Key::Provider, provider), (Key::Node, node), (Key::Pipeline, pipeline)]
    {
        let _ = entry.trailers.set(key, value);
    }
}

/// Makes foreign text a value for trailers and records: one line, never empty.
#[must_use]
pub fn value_of(text: Option<&str>) -> String {
    let line = plain_line(text.unwrap_or_default());
    let cut: String = line.trim().chars().take(LONGEST_VALUE).collect();
    match cut.trim() {
        "" => UNKNOWN.to_owned(),
        value => value.to_owned(),
    }
}

/// What is recorded about a turn.
#[derive(Debug)]
pub struct TurnDraft<'a> {
    /// Its commit, to which the number is added. `None` if the turn changed nothing.
    pub entry: Option<TaskEvent<'a>>,
    /// Its record, to which the commit is added.
    pub turn: Turn,
    /// Its transcript, if transcripts are kept.
    pub transcript: Option<Transcript>,
}

impl SessionWriter {
    /// Records a turn: its changes on the recorder's branch, and its record. `draft` is called with the turn's number,
    /// and again with another one if a concurrent process took it. Returns the commit and its index update, if there is
    /// something to commit.
    pub fn deliver_turn<'e>(
        &self,
        recorder: &mut RunRecorder<'_>,
        delivery: StagedCommit<'_>,
        time: i64,
        mut draft: impl FnMut(u32) -> TurnDraft<'e>,
    ) -> Result<Option<(Event, IndexUpdate)>, SessionError> {
        let branch = recorder.branch().to_ref();
        let mark = recorder.turn_mark();
        let mut prepared: Option<PreparedCommit> = None;
        let written = self.append(time, |number| {
            let TurnDraft { entry, turn, transcript } = draft(number);
            let mut turn = Turn { number, ..turn };
            let transcript = transcript.map(|said| Transcript { turn: number, ..said });
            let mut moves = Vec::new();
            prepared = match entry {
                Some(mut entry) => {
                    let _ = entry.trailers.set(Key::Turn, number.to_string());
                    Some(recorder.prepare(entry, delivery.tree)?)
                }
                None => None,
            };
            if let Some(prepared) = &prepared {
                turn.commit = Some(prepared.commit);
                // The mark first: if the branch moved without it, the index would stay outdated for good.
                moves.extend(mark.as_ref().map(|mark| mark.begin_move()));
                moves.push(RefMove { name: &branch, new: Some(prepared.commit), old: Some(delivery.tip) });
            }
            let about = Some(turn.commit.unwrap_or(recorder.head()));
            let tip = about.filter(|_| recorder.is_on_run_branch());
            Ok::<_, SessionError>(DraftRecord { kind: RecordKind::Turn(turn), about, tip, transcript, moves })
        });
        if let Err(error) = written {
            let is_elsewhere = prepared.is_some()
                && recorder.repository().find_branch(recorder.branch())? != Some(delivery.tip);
            let moved = || RecordError::Moved { branch: recorder.branch().clone() };
            return Err(if is_elsewhere { moved().into() } else { error });
        }
        let Some(prepared) = prepared else {
            return Ok(None);
        };
        let event = recorder.accept(prepared);
        Ok(Some((event, recorder.stage_turn(mark, delivery)?)))
    }
}
