//! What is written down about a turn: its commit, its record and its transcript.

use super::{
    CheckpointWriter, MessageBy, TaskContext, Who, Words, draft::OpenTurn as Draft, messenger::Messenger,
    turn_words::TurnMessage,
};
use crate::{
    agent::{
        Usage,
        redact::{Redactor, Secrets},
    },
    git::TreeChange,
    message::Step,
    name::{Attempt, TaskId},
    plan::Task,
    session::{TokenCount, ToolCall, Transcript, Turn, TurnCommit, TurnDraft, Utterance, value_of},
};

/// Whose turns are kept.
pub(super) struct TurnsOf<'a> {
    pub(super) task: &'a Task,
    attempt: Attempt,
    step: Step,
    pub(super) checkpoints: CheckpointWriter<'a>,
    pub(super) secrets: Secrets,
    pub(super) message_by: MessageBy,
    pub(super) messenger: Option<Messenger>,
}

impl<'a> TurnsOf<'a> {
    pub(super) fn of(context: &TaskContext<'a>, task: &'a Task, (step, attempt): (Step, Attempt)) -> Self {
        let (checkpoints, secrets) = (context.checkpoints.clone(), context.secrets.clone());
        Self {
            task,
            attempt,
            step,
            checkpoints,
            secrets,
            message_by: context.options.message_by.clone(),
            messenger: None,
        }
    }

    /// The same with somebody who is asked for messages, if that is wanted.
    pub(super) fn asking(self, messenger: Option<Messenger>) -> Self {
        Self { messenger, ..self }
    }
}

/// What a turn came to, without secrets.
pub(super) struct Noted {
    pub(super) words: String,
    tools: Vec<ToolCall>,
    lines: Vec<Utterance>,
    pub(super) usage: Option<Usage>,
    started: i64,
    is_cut: bool,
    model: Option<String>,
    session: Option<String>,
}

impl Noted {
    pub(super) fn new(
        draft: &Draft,
        (model, session): (Option<String>, Option<String>),
        secrets: &Secrets,
    ) -> Self {
        let clean = |text: &str| Redactor::redact(secrets, text);
        let tool = |tool: &ToolCall| ToolCall { name: clean(&tool.name), summary: clean(&tool.summary) };
        let line = |line: &Utterance| Utterance { speaker: line.speaker, text: clean(&line.text) };
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

/// The call that a turn is of.
pub(super) struct CallOf<'a> {
    pub(super) node: &'a TaskId,
    pub(super) attempt: Attempt,
    pub(super) step: &'a str,
    pub(super) words: Words,
}

impl Noted {
    /// The record of a turn that changed nothing, and what was said in it if that is kept.
    pub(super) fn written(
        &self,
        of: &CallOf<'_>,
        who: &Who,
        (number, ended): (u32, i64),
    ) -> (Turn, Option<Transcript>) {
        let CallOf { node, attempt, step, words } = *of;
        let (model, usage) = (self.model.as_deref(), self.usage);
        let turn = Turn {
            number,
            node: node.clone(),
            step: step.to_owned(),
            attempt,
            model: value_of(model),
            provider: value_of(who.provider_of(model).as_deref()),
            runner: value_of(Some(&who.runner)),
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
        let transcript = (words == Words::Kept).then(|| Transcript {
            turn: number,
            node: node.clone(),
            step: step.to_owned(),
            attempt,
            runner: who.runner.clone(),
            events: who.events.as_str().to_owned(),
            lines: self.lines.clone(),
        });
        (turn, transcript)
    }
}

impl TurnsOf<'_> {
    /// What a turn's commit says; `told` is what somebody said who was asked.
    pub(super) fn message(
        &self,
        told: Option<TurnMessage>,
        words: &str,
        changes: &[TreeChange],
    ) -> TurnMessage {
        told.unwrap_or_else(|| self.message_by.unasked(words, changes))
    }

    /// A turn as it is written down under this number.
    pub(super) fn drafted(
        &self,
        who: &Who,
        noted: &Noted,
        (message, changes): (Option<&TurnMessage>, &[TreeChange]),
        (number, ended): (u32, i64),
    ) -> TurnDraft<'static> {
        let (node, attempt, words) = (&self.task.id, self.attempt, self.checkpoints.words);
        let call = CallOf { node, attempt, step: self.step.as_str(), words };
        let (turn, transcript) = noted.written(&call, who, (number, ended));
        let (files, text) = (changes.iter().map(TreeChange::shown).collect(), message.map(TurnMessage::text));
        let turn = Turn { files, said: turn.said.filter(|_| text.is_none()), message: text, ..turn };
        let model = noted.model.as_deref();
        let provider = who.provider_of(model);
        let (provider, pipeline) = (provider.as_deref(), self.checkpoints.pipeline.as_str());
        let entry = message.map(|message| {
            let (subject, body) = (message.subject.as_str(), message.body());
            TurnCommit { node, attempt, model, provider, pipeline, subject, body }.entry()
        });
        TurnDraft { entry, turn, transcript }
    }
}
