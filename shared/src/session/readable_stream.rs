//! Turns the output of an agent program into text for people: what the agent said, which tools it called and what they
//! answered.

use super::{Speaker, Transcript, Utterance};
use crate::{
    agent::{AgentEvent, EventFormat, EventReader},
    message::plain_text,
};

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
        self.add_all(events)
    }

    /// The output has ended.
    pub fn finish(&mut self) -> Vec<Utterance> {
        let events = self.reader.finish();
        let mut utterances = self.add_all(events);
        self.end_fragments(&mut utterances);
        utterances
    }

    fn add_all(&mut self, events: Vec<AgentEvent>) -> Vec<Utterance> {
        let mut utterances = Vec::new();
        for event in events {
            self.add(event, &mut utterances);
        }
        utterances
    }

    fn add(&mut self, event: AgentEvent, utterances: &mut Vec<Utterance>) {
        if let (AgentEvent::Text(text), true) = (&event, self.is_fragmented) {
            self.fragments.push_str(text);
            return;
        }
        self.end_fragments(utterances);
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
        utterances.push(Utterance { speaker, text: plain_text(&text) });
    }

    fn end_fragments(&mut self, utterances: &mut Vec<Utterance>) {
        if !self.fragments.is_empty() {
            self.last_text = std::mem::take(&mut self.fragments);
            utterances.push(Utterance { speaker: Speaker::Agent, text: plain_text(&self.last_text) });
        }
    }
}

impl Transcript {
    /// The transcript as text for people. Raw lines of a stream become what they say.
    #[must_use]
    pub fn readable(&self) -> Vec<Utterance> {
        let format = self.events.parse().or_else(|_| self.runner.parse()).unwrap_or(EventFormat::Text);
        let mut stream = ReadableStream::new(format);
        let mut utterances = Vec::new();
        for line in &self.lines {
            match line.speaker {
                Speaker::Stream => utterances.extend(stream.feed(format!("{}\n", line.text).as_bytes())),
                _ => utterances.push(line.clone()),
            }
        }
        utterances.extend(stream.finish());
        utterances
    }
}
