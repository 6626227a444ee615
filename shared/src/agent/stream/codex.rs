//! The stream of Codex. Its own "turn" is the whole call; a turn in our sense is a round of its items.

use serde_json::Value;

use super::{
    super::{AgentEvent, FailureKind, RetryWait, Usage, UsageScope},
    Dialect, Known,
    tools::{count, text, tool_answer, tool_call, word, written_file},
    turns::{ToolResult, Turns},
};

#[derive(Debug, Default)]
pub(super) struct Codex {
    turns: Turns,
    last_words: String,
}

/// Items in which the agent acts. All others are text.
const ACTS: [&str; 5] =
    ["command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search"];

impl Dialect for Codex {
    fn read(&mut self, event: &Value, out: &mut Vec<AgentEvent>) -> Known {
        match word(event, "type") {
            "thread.started" => {
                let session =
                    text(event, "thread_id").map(|id| AgentEvent::SessionStarted { id, model: None });
                out.extend(session);
            }
            "item.started" => self.started(&event["item"], out),
            "item.completed" => self.completed(&event["item"], out),
            "turn.completed" => self.finished(event, out),
            "turn.failed" => {
                self.turns.end(out);
                out.push(failed(word(&event["error"], "message")));
            }
            "error" => complaint(word(event, "message"), out),
            "turn.started" | "item.updated" => {}
            _ => return Known::No,
        }
        Known::Yes
    }

    fn is_final(&self, event: &Value) -> bool {
        matches!(word(event, "type"), "turn.completed" | "turn.failed")
    }

    fn close(&mut self, out: &mut Vec<AgentEvent>) {
        self.turns.end(out);
    }
}

impl Codex {
    fn started(&mut self, item: &Value, out: &mut Vec<AgentEvent>) {
        if ACTS.contains(&word(item, "type")) {
            self.turns.begin(out);
            out.push(call_of(item));
            let file = written_file(word(item, "tool"), &item["arguments"]);
            self.turns.call(word(item, "id"), file);
        }
    }

    fn completed(&mut self, item: &Value, out: &mut Vec<AgentEvent>) {
        match word(item, "type") {
            "agent_message" => {
                self.turns.begin(out);
                word(item, "text").clone_into(&mut self.last_words);
                out.extend(text(item, "text").map(AgentEvent::Text));
            }
            kind if ACTS.contains(&kind) => self.acted(item, out),
            _ => {}
        }
    }

    /// Some acts are reported only after they have ended.
    fn acted(&mut self, item: &Value, out: &mut Vec<AgentEvent>) {
        let id = word(item, "id");
        if !self.turns.waits_for(id) {
            self.started(item, out);
        }
        let is_refused = word(item, "status") == "failed";
        let answer = match word(item, "type") {
            "mcp_tool_call" => &item["result"]["content"],
            _ => &item["aggregated_output"],
        };
        out.extend(tool_answer(answer, is_refused));
        if !is_refused {
            let changes = item["changes"].as_array().into_iter().flatten();
            let files = changes.filter_map(|change| text(change, "path"));
            out.extend(files.map(|path| AgentEvent::FileWritten { path }));
        }
        self.turns.answer(id, if is_refused { ToolResult::Refused } else { ToolResult::Done }, out);
    }

    fn finished(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        self.turns.end(out);
        if let Some(usage) = event.get("usage") {
            let (tokens_in, tokens_out) = (count(usage, "input_tokens"), count(usage, "output_tokens"));
            out.push(AgentEvent::Usage {
                scope: UsageScope::Call,
                usage: Usage { tokens_in, tokens_out, cost: None },
            });
        }
        out.push(AgentEvent::Finished { text: std::mem::take(&mut self.last_words) });
    }
}

fn call_of(item: &Value) -> AgentEvent {
    match word(item, "type") {
        "mcp_tool_call" => tool_call(word(item, "tool"), &item["arguments"]),
        "file_change" => tool_call("file_change", &item["changes"][0]),
        kind => tool_call(kind, item),
    }
}

/// An error while it retries by itself, or the last one before it gives up.
fn complaint(message: &str, out: &mut Vec<AgentEvent>) {
    match retried(message) {
        None => out.push(failed(message)),
        Some(cause) => {
            if let Some(kind) = kind_of(cause).as_limit() {
                out.push(AgentEvent::RateLimited { kind, wait: RetryWait::Unknown });
            }
        }
    }
}

fn failed(message: &str) -> AgentEvent {
    AgentEvent::Failed { kind: kind_of(message), message: message.to_owned(), wait: RetryWait::Unknown }
}

/// The message after `Reconnecting... 1/5 (`.
fn retried(message: &str) -> Option<&str> {
    let rest = message.strip_prefix("Reconnecting... ")?;
    Some(rest.split_once('(').map_or("", |(_, cause)| cause))
}

/// Codex has no field for the HTTP status, but its error messages begin with fixed phrases that no model and no task
/// can write. The rest of a message is ignored.
fn kind_of(message: &str) -> FailureKind {
    if message.starts_with("You've hit your usage limit") {
        return FailureKind::Limit;
    }
    let openings = ["unexpected status ", "exceeded retry limit, last status: "];
    let limit_text = openings.iter().find_map(|opening| message.strip_prefix(opening));
    let digits = limit_text.and_then(|rest| rest.get(..3));
    digits.and_then(|status| status.parse().ok()).map_or(FailureKind::Other, FailureKind::of_status)
}
