//! Transcripts: what was said in a session, turn by turn: prompts, words of agents, answers of tools. They stay in this
//! repository unless the user wants them pushed.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SessionError, SessionReader, record, transcript_ref_of, turn::cut};
use crate::{
    agent::{AgentEvent, EventFormat, EventReader},
    message::plain_text,
    name::{Attempt, Oid, SessionId, TaskId},
};

/// The longest prompt, in characters.
const LONGEST_PROMPT: usize = 32 * 1024;

/// The transcript of one turn, or of a call whose turns cannot be distinguished.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transcript {
    /// The turn.
    pub turn: u32,
    /// The task.
    pub node: TaskId,
    /// The step.
    pub step: String,
    /// The attempt.
    pub attempt: Attempt,
    /// The runner that was called.
    pub runner: String,
    /// The format of its event stream; empty if that was not recorded.
    #[serde(default)]
    pub events: String,
    /// The lines, in order. They must have passed the redactor.
    pub lines: Vec<Utterance>,
}

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Utterance {
    /// Who said it.
    #[serde(rename = "voice")]
    pub speaker: Speaker,
    /// The text.
    pub text: String,
}

impl Utterance {
    /// What a speaker said. A prompt is cut to a reasonable length; a raw line is kept whole, because a part of one
    /// cannot be parsed.
    #[must_use]
    pub fn new(speaker: Speaker, text: &str) -> Self {
        let text = if speaker == Speaker::Stream { text.to_owned() } else { cut(text, LONGEST_PROMPT) };
        Self { speaker, text }
    }
}

/// The speaker of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Speaker {
    /// The prompt.
    Prompt,
    /// The agent.
    Agent,
    /// The agent calls a tool.
    Call,
    /// A tool answers.
    Tool,
    /// A raw line of the program's event stream, from which the others can be derived again.
    Stream,
}

impl Transcript {
    pub(super) fn subject(&self, session: &SessionId) -> String {
        format!("transcript of {session}: turn {} of {}", self.turn, self.node)
    }

    /// The prompt; empty if none was recorded with this turn.
    #[must_use]
    pub fn prompt(&self) -> String {
        let prompts = self.lines.iter().filter(|line| line.speaker == Speaker::Prompt);
        prompts.map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl SessionReader<'_> {
    /// The commits of transcripts by the numbers of their turns. For each number, the newest one counts.
    pub fn list_transcripts(&self, session: &SessionId) -> Result<HashMap<u32, Oid>, SessionError> {
        let Some(tip) = self.find_transcript(session)? else {
            return Ok(HashMap::new());
        };
        let begin = format!("transcript of {session}: turn ");
        let mut found = HashMap::new();
        for commit in self.repository.stream_commits(&["--first-parent".into(), tip.to_string()])? {
            let commit = commit?;
            let number = std::str::from_utf8(commit.message())
                .ok()
                .and_then(|said| said.strip_prefix(&begin)?.split_once(' ')?.0.parse().ok());
            // Newest first: of two with the same number, the older one belongs to a turn whose record was lost in a
            // kill.
            if let Some(number) = number {
                found.entry(number).or_insert(commit.id);
            }
        }
        Ok(found)
    }

    /// Loads the transcript at `commit`.
    pub fn load_transcript(&self, session: &SessionId, commit: Oid) -> Result<Transcript, SessionError> {
        let name = transcript_ref_of(session);
        let loaded = self.repository.load_commits(&[commit])?.pop();
        record::read_json(&name, &loaded.ok_or_else(|| SessionError::Unknown(session.to_string()))?)
    }

    /// The newest commit of a session's transcripts.
    pub fn find_transcript(&self, session: &SessionId) -> Result<Option<Oid>, SessionError> {
        Ok(self.repository.find_ref(&transcript_ref_of(session))?)
    }
}

// Turns the output of an agent program into text for people: what the agent said, which tools it called and what they
// answered.

/// Reads the output of one call. The bytes may arrive in any pieces.
#[derive(Debug)]
pub struct ReadableStream {
    reader: EventReader,
    /// Whether the program prints its text in fragments, which are joined.
    is_fragmented: bool,
    fragments: String,
    /// The newest text, which most programs repeat at their end.
    last_text: String,
}

impl ReadableStream {
    /// A stream of this format.
    #[must_use]
    pub fn new(format: EventFormat) -> Self {
        Self {
            reader: EventReader::new(format),
            is_fragmented: format == EventFormat::Gemini,
            fragments: String::new(),
            last_text: String::new(),
        }
    }

    /// Adds output, and returns what can be told from it.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Utterance> {
        let events = self.reader.feed(bytes);
        self.tell_all(events)
    }

    /// The output has ended.
    pub fn finish(&mut self) -> Vec<Utterance> {
        let events = self.reader.finish();
        let mut told = self.tell_all(events);
        self.end_fragments(&mut told);
        told
    }

    fn tell_all(&mut self, events: Vec<AgentEvent>) -> Vec<Utterance> {
        let mut told = Vec::new();
        for event in events {
            self.tell(event, &mut told);
        }
        told
    }

    fn tell(&mut self, event: AgentEvent, told: &mut Vec<Utterance>) {
        if let (AgentEvent::Text(text), true) = (&event, self.is_fragmented) {
            self.fragments.push_str(text);
            return;
        }
        self.end_fragments(told);
        let (speaker, text) = match event {
            AgentEvent::Text(text) => {
                self.last_text.clone_from(&text);
                (Speaker::Agent, text)
            }
            AgentEvent::ToolCall { name, summary } if summary.is_empty() => (Speaker::Call, name),
            AgentEvent::ToolCall { name, summary } => (Speaker::Call, format!("{name}: {summary}")),
            AgentEvent::ToolAnswer { text, is_failure: true } => {
                (Speaker::Tool, format!("failed: {text}").trim_end_matches([' ', ':']).to_owned())
            }
            AgentEvent::ToolAnswer { text, is_failure: false } => (Speaker::Tool, text),
            AgentEvent::Finished { text } if text.trim() != self.last_text.trim() => (Speaker::Agent, text),
            AgentEvent::Failed { message, .. } => (Speaker::Stream, format!("failed: {message}")),
            AgentEvent::RateLimited { .. } => (Speaker::Stream, "waiting for the provider".to_owned()),
            AgentEvent::Unread(line) => (Speaker::Stream, line),
            AgentEvent::SessionStarted { .. }
            | AgentEvent::TurnStarted { .. }
            | AgentEvent::TurnEnded { .. }
            | AgentEvent::FileWritten { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Finished { .. }
            | AgentEvent::SecondEnd => return,
        };
        told.push(Utterance { speaker, text: plain_text(&text) });
    }

    fn end_fragments(&mut self, told: &mut Vec<Utterance>) {
        if !self.fragments.is_empty() {
            self.last_text = std::mem::take(&mut self.fragments);
            told.push(Utterance { speaker: Speaker::Agent, text: plain_text(&self.last_text) });
        }
    }
}

impl Transcript {
    /// The transcript as text for people. Raw lines of a stream become what they say.
    #[must_use]
    pub fn readable(&self) -> Vec<Utterance> {
        let format = self.events.parse().or_else(|_| self.runner.parse()).unwrap_or(EventFormat::Text);
        let mut stream = ReadableStream::new(format);
        let mut told = Vec::new();
        for line in &self.lines {
            match line.speaker {
                Speaker::Stream => told.extend(stream.feed(format!("{}\n", line.text).as_bytes())),
                _ => told.push(line.clone()),
            }
        }
        told.extend(stream.finish());
        told
    }
}
