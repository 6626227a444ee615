//! Reads event streams. The bytes may arrive in any pieces and contain anything.

mod bounded_json;
mod claude;
mod codex;
mod gemini;
mod lines;
mod opencode;
mod tools;
mod turns;

use serde_json::Value;

use self::{
    bounded_json::skim,
    claude::Claude,
    codex::Codex,
    gemini::Gemini,
    lines::{LineBuffer, StreamLine},
    opencode::Opencode,
};
use super::{AgentEvent, EventFormat};

/// Whether a dialect recognised an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Yes,
    No,
}

/// The event format of one program.
trait Dialect: Send {
    /// Reads one event. An unknown event is shown as it is.
    fn read(&mut self, event: &Value, out: &mut Vec<AgentEvent>) -> Known;

    /// Whether an event ends the call. A program prints such an event once.
    fn is_final(&self, event: &Value) -> bool;

    /// The stream has ended, and with it an open turn.
    fn close(&mut self, out: &mut Vec<AgentEvent>);
}

/// Turns the output of a program into events, independently of the pieces in which it arrives.
pub struct EventReader {
    lines: LineBuffer,
    dialect: Option<Box<dyn Dialect>>,
    /// Whether the final event has been read.
    is_over: bool,
}

impl std::fmt::Debug for EventReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventReader").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl EventReader {
    /// A reader at the beginning of a stream.
    #[must_use]
    pub fn new(format: EventFormat) -> Self {
        let dialect: Option<Box<dyn Dialect>> = match format {
            EventFormat::Claude => Some(Box::<Claude>::default()),
            EventFormat::Codex => Some(Box::<Codex>::default()),
            EventFormat::Gemini => Some(Box::<Gemini>::default()),
            EventFormat::Opencode => Some(Box::<Opencode>::default()),
            EventFormat::Text => None,
        };
        Self { lines: LineBuffer::new(format), dialect, is_over: false }
    }

    /// Adds bytes, and returns the events in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let Self { lines, dialect, is_over } = self;
        lines.feed(bytes, |line| read_line(dialect.as_deref_mut(), is_over, line, &mut events));
        events
    }

    /// Ends the stream: reads a last line without a line end, and ends an open turn.
    pub fn finish(&mut self) -> Vec<AgentEvent> {
        let mut events = Vec::new();
        let Self { lines, dialect, is_over } = self;
        lines.finish(|line| read_line(dialect.as_deref_mut(), is_over, line, &mut events));
        if let Some(dialect) = dialect {
            dialect.close(&mut events);
        }
        events
    }
}

fn read_line(
    dialect: Option<&mut (dyn Dialect + 'static)>,
    is_over: &mut bool,
    line: StreamLine<'_>,
    out: &mut Vec<AgentEvent>,
) {
    match (dialect, line) {
        (None, StreamLine::Words(words)) => out.push(AgentEvent::Text(words)),
        (Some(_), StreamLine::Words(words)) if words.trim().is_empty() => {}
        (_, StreamLine::Words(words)) => out.push(AgentEvent::Unread(words)),
        (_, StreamLine::TooLong(bytes)) => out.push(AgentEvent::Unread(format!("[a line of {bytes} bytes]"))),
        (Some(dialect), StreamLine::Json(bytes)) => match skim(bytes) {
            // A program that the agent started can print to the same stream. So the first final event counts, and a
            // second one is not read at all.
            Some(event) if *is_over && dialect.is_final(&event) => out.push(AgentEvent::SecondEnd),
            Some(event) => {
                *is_over |= dialect.is_final(&event);
                if dialect.read(&event, out) == Known::No {
                    out.extend(lines::pieces(bytes).map(AgentEvent::Unread));
                }
            }
            None => out.extend(lines::pieces(bytes).map(AgentEvent::Unread)),
        },
        (None, StreamLine::Json(bytes)) => out.extend(lines::pieces(bytes).map(AgentEvent::Text)),
    }
}
