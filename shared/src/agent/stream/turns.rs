//! Finds the turns in streams that do not report them: a turn begins with the agent's next action and ends when the last
//! tool that it called has answered. At that moment the files do not change, because the model is working.

use std::collections::HashMap;

use super::super::AgentEvent;

/// The number of tool calls that are tracked at once, to bound memory if a stream never answers them.
const MAX_TRACKED_CALLS: usize = 1024;

/// How a tool ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolResult {
    Done,
    Refused,
}

/// The turns of one call.
#[derive(Debug, Default)]
pub(super) struct Turns {
    number: u32,
    is_open: bool,
    /// The running tool calls, each with the file that it writes.
    waiting: HashMap<String, Option<String>>,
}

impl Turns {
    /// The agent acts: a turn is open from now on.
    pub(super) fn begin(&mut self, out: &mut Vec<AgentEvent>) {
        if !self.is_open {
            self.is_open = true;
            self.number = self.number.saturating_add(1);
            out.push(AgentEvent::TurnStarted { number: self.number });
        }
    }

    /// Ends the turn, if one is open.
    pub(super) fn end(&mut self, out: &mut Vec<AgentEvent>) {
        self.waiting.clear();
        if self.is_open {
            self.is_open = false;
            out.push(AgentEvent::TurnEnded { number: self.number });
        }
    }

    /// A tool was called, which writes `file`, if any.
    pub(super) fn call(&mut self, id: &str, file: Option<String>) {
        if self.waiting.len() < MAX_TRACKED_CALLS {
            self.waiting.insert(id.to_owned(), file);
        }
    }

    /// Whether this tool call is running.
    pub(super) fn waits_for(&self, id: &str) -> bool {
        self.waiting.contains_key(id)
    }

    /// A tool has answered. The last answer ends the turn.
    pub(super) fn answer(&mut self, id: &str, answer: ToolResult, out: &mut Vec<AgentEvent>) {
        let Some(file) = self.waiting.remove(id) else {
            return;
        };
        if let (Some(path), ToolResult::Done) = (file, answer) {
            out.push(AgentEvent::FileWritten { path });
        }
        if self.waiting.is_empty() {
            self.end(out);
        }
    }
}
