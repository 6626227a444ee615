//! Collects what an agent says and does in a turn, within bounded memory, and makes the commit, the record and the
//! transcript of the turn from it.

use crate::{
    agent::{
        AgentEvent, Usage, UsageScope,
        redact::{Redactor, Secrets},
    },
    git::TreeChange,
    message::Step,
    name::{Attempt, TaskId},
    pipeline::{
        ActiveRunner, CheckpointWriter, MessageOrigin, TaskContext,
        turns::{message::TurnMessage, messenger::Messenger},
    },
    plan::Task,
    session::{Speaker, TokenCount, ToolCall, Transcript, Turn, TurnCommit, TurnDraft, Utterance, value_of},
    settings::TranscriptMode,
};

/// What all turns of a call share.
pub(in crate::pipeline) struct TurnContext<'a> {
    pub(in crate::pipeline) task: &'a Task,
    attempt: Attempt,
    step: Step,
    pub(in crate::pipeline) checkpoints: CheckpointWriter<'a>,
    pub(in crate::pipeline) secrets: Secrets,
    pub(in crate::pipeline) message_by: MessageOrigin,
    pub(in crate::pipeline) messenger: Option<Messenger>,
}

impl<'a> TurnContext<'a> {
    pub(in crate::pipeline) fn of(
        context: &TaskContext<'a>,
        task: &'a Task,
        step: Step,
        attempt: Attempt,
    ) -> Self {
        let (checkpoints, secrets) = (context.checkpoints.clone(), context.run.secrets.clone());
        Self {
            task,
            attempt,
            step,
            checkpoints,
            secrets,
            message_by: context.run.options.message_by.clone(),
            messenger: None,
        }
    }

    /// Lets a model write the messages, if there is one.
    pub(in crate::pipeline) fn asking(self, messenger: Option<Messenger>) -> Self {
        Self { messenger, ..self }
    }
}

/// The content of a finished turn, without secrets.
pub(in crate::pipeline) struct FinishedTurn {
    pub(in crate::pipeline) words: String,
    tools: Vec<ToolCall>,
    lines: Vec<Utterance>,
    pub(in crate::pipeline) usage: Option<Usage>,
    started: i64,
    is_cut: bool,
    model: Option<String>,
    session: Option<String>,
}

impl FinishedTurn {
    pub(in crate::pipeline) fn new(
        draft: &OpenTurn,
        model: Option<String>,
        session: Option<String>,
        secrets: &Secrets,
    ) -> Self {
        let clean = |text: &str| Redactor::redact(secrets, text);
        let tool = |tool: &ToolCall| ToolCall { name: clean(&tool.name), summary: clean(&tool.summary) };
        let line = |line: &Utterance| Utterance::new(line.speaker, &clean(&line.text));
        Self {
            words: clean(&draft.words),
            tools: draft.tools.iter().map(tool).collect(),
            lines: draft.lines.iter().map(line).collect(),
            usage: draft.usage,
            started: draft.started,
            is_cut: draft.is_cut,
            model,
            session,
        }
    }
}

/// The call that a turn belongs to.
pub(in crate::pipeline) struct CallLabel<'a> {
    pub(in crate::pipeline) node: &'a TaskId,
    pub(in crate::pipeline) attempt: Attempt,
    pub(in crate::pipeline) step: &'a str,
    pub(in crate::pipeline) words: TranscriptMode,
}

impl FinishedTurn {
    /// The record of a turn without changes, and its transcript if these are kept.
    pub(in crate::pipeline) fn written(
        &self,
        of: &CallLabel<'_>,
        active_runner: &ActiveRunner,
        number: u32,
        ended: i64,
    ) -> (Turn, Option<Transcript>) {
        let CallLabel { node, attempt, step, words } = *of;
        let (model, usage) = (self.model.as_deref(), self.usage);
        let turn = Turn {
            number,
            node: node.clone(),
            step: step.to_owned(),
            attempt,
            model: value_of(model),
            provider: value_of(active_runner.provider_of(model).as_deref()),
            runner: value_of(Some(&active_runner.runner)),
            files: Vec::new(),
            tools: self.tools.clone(),
            tokens: usage.map(|usage| TokenCount { read: usage.tokens_in, written: usage.tokens_out }),
            cost: usage.and_then(|usage| usage.cost),
            commit: None,
            others: Vec::new(),
            not_committed: None,
            interrupted: self.is_cut,
            message: None,
            said: self.words.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned),
            agent_session: self.session.clone(),
            started: self.started,
            ended,
        };
        let transcript = (words != TranscriptMode::Dropped).then(|| Transcript {
            turn: number,
            node: node.clone(),
            step: step.to_owned(),
            attempt,
            runner: active_runner.runner.clone(),
            events: active_runner.events.as_str().to_owned(),
            lines: self.lines.clone(),
        });
        (turn, transcript)
    }
}

impl TurnContext<'_> {
    /// The message of a turn's commit; `told` is the reply of a model.
    pub(in crate::pipeline) fn message(
        &self,
        stated: Option<TurnMessage>,
        words: &str,
        changes: &[TreeChange],
    ) -> TurnMessage {
        stated.unwrap_or_else(|| self.message_by.without_model(words, changes))
    }

    /// The commit, record and transcript of a turn with this number.
    pub(in crate::pipeline) fn drafted(
        &self,
        active_runner: &ActiveRunner,
        finished: &FinishedTurn,
        message: Option<&TurnMessage>,
        changes: &[TreeChange],
        number: u32,
        ended: i64,
    ) -> TurnDraft<'static> {
        let (node, attempt, words) = (&self.task.id, self.attempt, self.checkpoints.words);
        let call = CallLabel { node, attempt, step: self.step.as_str(), words };
        let (turn, transcript) = finished.written(&call, active_runner, number, ended);
        let (files, text) = (changes.iter().map(TreeChange::shown).collect(), message.map(TurnMessage::text));
        let turn = Turn { files, said: turn.said.filter(|_| text.is_none()), message: text, ..turn };
        let model = finished.model.as_deref();
        let provider = active_runner.provider_of(model);
        let (provider, pipeline) = (provider.as_deref(), self.checkpoints.pipeline.as_str());
        let entry = message.map(|message| {
            let (subject, body) = (message.subject.as_str(), message.body());
            TurnCommit { node, attempt, model, provider, pipeline, subject, body }.entry()
        });
        TurnDraft { entry, turn, transcript }
    }
}

/// How many bytes of an agent's words are kept for a turn.
const LONGEST_WORDS: usize = 16 * 1024;

/// How many tool calls are kept for a turn.
const MOST_TOOLS: usize = 500;

/// How many bytes of output are kept for a turn.
const MOST_PRINTED: usize = 256 * 1024;

/// The current turn.
#[derive(Debug)]
pub(in crate::pipeline) struct OpenTurn {
    /// When it began, in seconds since 1970.
    pub(in crate::pipeline) started: i64,
    /// The text of the agent.
    pub(in crate::pipeline) words: String,
    /// The tools that it called.
    pub(in crate::pipeline) tools: Vec<ToolCall>,
    /// What it cost, if the agent reported that.
    pub(in crate::pipeline) usage: Option<Usage>,
    /// The lines that the program printed.
    pub(in crate::pipeline) lines: Vec<Utterance>,
    /// Whether the end of a turn was reported.
    pub(in crate::pipeline) is_over: bool,
    /// Whether the program ended during it.
    pub(in crate::pipeline) is_cut: bool,
    keeps: TranscriptMode,
    unfinished: Vec<u8>,
    printed: usize,
}

impl OpenTurn {
    pub(in crate::pipeline) fn new(started: i64, keeps: TranscriptMode) -> Self {
        Self {
            started,
            words: String::new(),
            tools: Vec::new(),
            usage: None,
            lines: Vec::new(),
            is_over: false,
            is_cut: false,
            keeps,
            unfinished: Vec::new(),
            printed: 0,
        }
    }

    /// Adds the prompt of the call.
    pub(in crate::pipeline) fn prompt(&mut self, text: &str) {
        if self.keeps != TranscriptMode::Dropped {
            // It is cut only after it was redacted: half a secret would not be recognised.
            self.lines.push(Utterance { speaker: Speaker::Prompt, text: text.to_owned() });
        }
    }

    /// Adds output of the program. A line is kept completely or not at all, because a part of one cannot be parsed.
    pub(in crate::pipeline) fn print(&mut self, bytes: &[u8]) {
        if self.keeps == TranscriptMode::Dropped {
            return;
        }
        self.printed += bytes.len();
        if self.printed > MOST_PRINTED {
            self.unfinished = Vec::new();
            return;
        }
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.ends_with(b"\n") {
            self.close();
        }
    }

    /// Adds the last line if it has no newline.
    pub(in crate::pipeline) fn close(&mut self) {
        if !self.unfinished.is_empty() {
            let text = String::from_utf8_lossy(self.unfinished.trim_ascii_end()).into_owned();
            self.lines.push(Utterance::new(Speaker::Stream, &text));
            self.unfinished.clear();
        }
    }

    /// Adds an event.
    pub(in crate::pipeline) fn note(&mut self, event: &AgentEvent, in_pieces: bool) {
        match event {
            AgentEvent::Text(words) => self.say(words, in_pieces),
            AgentEvent::ToolCall { name, summary } if self.tools.len() < MOST_TOOLS => {
                self.tools.push(ToolCall { name: name.clone(), summary: summary.clone() });
            }
            AgentEvent::Usage { scope: UsageScope::Turn, usage } => {
                self.usage = Some(self.usage.unwrap_or_default().plus(*usage));
            }
            _ => {}
        }
    }

    fn say(&mut self, words: &str, in_pieces: bool) {
        if !in_pieces && !self.words.is_empty() {
            self.words.push('\n');
        }
        let room = LONGEST_WORDS.saturating_sub(self.words.len());
        let end = (0..=room.min(words.len())).rev().find(|at| words.is_char_boundary(*at)).unwrap_or(0);
        self.words.push_str(&words[..end]);
    }
}
