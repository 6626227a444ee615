//! The stream of Claude Code, which Amp, Cursor and Qwen use as well.

use serde_json::Value;

use super::{
    super::{AgentEvent, FailureKind, LimitKind, RetryWait, Usage, UsageScope},
    Dialect, Known,
    tools::{count, money, text, tool_answer, tool_call, word, written_file},
    turns::{ToolResult, Turns},
};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageAuthor {
    Agent,
    /// A sub-agent, whose text belongs to the turn that called it.
    SubAgent,
    /// The program itself, about an error of the provider.
    Program,
}

impl MessageAuthor {
    fn of(event: &Value) -> Self {
        if event.get("parent_tool_use_id").is_some_and(Value::is_string) {
            Self::SubAgent
        } else if event.get("error").is_some_and(Value::is_string) {
            Self::Program
        } else {
            Self::Agent
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Claude {
    turns: Turns,
    /// The id of the message that the open turn belongs to.
    message: String,
    /// The error that the last synthetic message was about.
    error: Option<FailureKind>,
    /// When the account may continue, after it was refused.
    refused: Option<RetryWait>,
}

impl Dialect for Claude {
    fn read(&mut self, event: &Value, out: &mut Vec<AgentEvent>) -> Known {
        match word(event, "type") {
            "system" => system(event, out),
            "assistant" => self.assistant(event, out),
            "user" => self.answers(event, out),
            "tool_call" => self.cursor_call(event, out),
            "rate_limit_event" => self.rate_limit(event, out),
            "result" => self.result(event, out),
            "stream_event" | "thinking" | "tool_progress" | "tool_use_summary" | "auth_status" => {}
            _ => return Known::No,
        }
        Known::Yes
    }

    fn is_final(&self, event: &Value) -> bool {
        word(event, "type") == "result"
    }

    fn close(&mut self, out: &mut Vec<AgentEvent>) {
        self.turns.end(out);
    }
}

/// The beginning of the session, and waits of the program itself.
fn system(event: &Value, out: &mut Vec<AgentEvent>) {
    match word(event, "subtype") {
        "init" | "session_start" => {
            if let Some(id) = text(event, "session_id") {
                out.push(AgentEvent::SessionStarted { id, model: text(event, "model") });
            }
        }
        // The delay is the program's own choice, not what the provider asked for.
        "api_retry" => {
            if let Some(kind) = failure_kind(event, "error_status").and_then(FailureKind::as_limit) {
                out.push(AgentEvent::RateLimited { kind, wait: RetryWait::Unknown });
            }
        }
        _ => {}
    }
}

/// The meaning of a status, or of an error code.
fn failure_kind(event: &Value, status: &str) -> Option<FailureKind> {
    let by_status = event.get(status).and_then(Value::as_u64).map(FailureKind::of_status);
    by_status
        .filter(|kind| *kind != FailureKind::Other)
        .or_else(|| FailureKind::of_code(word(event, "error")))
}

impl Claude {
    /// A message consists of several lines with one id.
    fn assistant(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        let message = &event["message"];
        let author = MessageAuthor::of(event);
        self.error = FailureKind::of_code(word(event, "error"));
        if author == MessageAuthor::Agent {
            self.open_turn(message, out);
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match word(block, "type") {
                "text" => out.extend(text(block, "text").map(AgentEvent::Text)),
                "tool_use" => self.tool_use(block, author, out),
                _ => {}
            }
        }
    }

    fn open_turn(&mut self, message: &Value, out: &mut Vec<AgentEvent>) {
        self.refused = None;
        let id = word(message, "id");
        let is_next = id.is_empty() || id != self.message;
        if is_next {
            self.turns.end(out);
        }
        self.turns.begin(out);
        if is_next {
            id.clone_into(&mut self.message);
            if let Some(usage) = message.get("usage") {
                out.push(AgentEvent::Usage { scope: UsageScope::Turn, usage: tokens(usage) });
            }
        }
    }

    fn tool_use(&mut self, block: &Value, author: MessageAuthor, out: &mut Vec<AgentEvent>) {
        let name = word(block, "name");
        out.push(tool_call(name, &block["input"]));
        let file = written_file(name, &block["input"]);
        if author == MessageAuthor::Agent {
            self.turns.call(word(block, "id"), file);
        } else if let Some(path) = file {
            out.push(AgentEvent::FileWritten { path });
        }
    }

    fn answers(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        for block in event["message"]["content"].as_array().into_iter().flatten() {
            if word(block, "type") == "tool_result" {
                let refused = block["is_error"].as_bool() == Some(true);
                let answer = if refused { ToolResult::Refused } else { ToolResult::Done };
                out.extend(tool_answer(&block["content"], refused));
                self.turns.answer(word(block, "tool_use_id"), answer, out);
            }
        }
    }

    /// Cursor reports tool calls in separate events: `{"tool_call":{"writeToolCall":{"args":{…}}}}`.
    fn cursor_call(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        let id = word(event, "call_id");
        let Some((name, call)) = event["tool_call"].as_object().and_then(|calls| calls.iter().next()) else {
            return;
        };
        if word(event, "subtype") == "started" {
            self.turns.begin(out);
            out.push(tool_call(name, &call["args"]));
            self.turns.call(id, written_file(name, &call["args"]));
        } else {
            self.turns.answer(id, ToolResult::Done, out);
        }
    }

    /// Only a refusal is a limit; the event also reports how much is left.
    fn rate_limit(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        let info = &event["rate_limit_info"];
        let on_credit = info["isUsingOverage"].as_bool() == Some(true);
        if word(info, "status") != "rejected" || on_credit {
            self.refused = None;
            return;
        }
        let wait = info["resetsAt"].as_i64().map_or(RetryWait::Unknown, RetryWait::until_second);
        self.refused = Some(wait);
        out.push(AgentEvent::RateLimited { kind: LimitKind::Limit, wait });
    }

    /// `is_error` decides, whatever the subtype is.
    fn result(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        self.turns.end(out);
        if let Some(usage) = call_usage(event) {
            out.push(AgentEvent::Usage { scope: UsageScope::Call, usage });
        }
        let is_error = event["is_error"].as_bool() == Some(true) || word(event, "subtype") != "success";
        if !is_error {
            out.push(AgentEvent::Finished { text: word(event, "result").to_owned() });
            return;
        }
        let limited = self.refused.map(|_| FailureKind::Limit);
        let kind = failure_kind(event, "api_error_status").or(self.error).or(limited);
        let listed = event["errors"][0].as_str().map(str::to_owned);
        let error_text = ["result", "error", "subtype"].iter().find_map(|field| text(event, field));
        out.push(AgentEvent::Failed {
            kind: kind.unwrap_or(FailureKind::Other),
            message: listed.or(error_text).unwrap_or_default(),
            wait: self.refused.unwrap_or(RetryWait::Unknown),
        });
    }
}

fn tokens(usage: &Value) -> Usage {
    let read = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    let tokens_in = read.iter().fold(0_u64, |sum, field| sum.saturating_add(count(usage, field)));
    Usage { tokens_in, tokens_out: count(usage, "output_tokens"), cost: None }
}

/// The cost of the whole call. The sums by model include sub-agents.
fn call_usage(event: &Value) -> Option<Usage> {
    let by_model = event["modelUsage"].as_object().filter(|models| !models.is_empty());
    let sum = by_model.map(|models| models.values().map(model_tokens).fold(Usage::default(), Usage::plus));
    let sum = sum.or_else(|| event.get("usage").map(tokens))?;
    Some(Usage { cost: money(event, "total_cost_usd"), ..sum })
}

fn model_tokens(model: &Value) -> Usage {
    let read = ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
    let tokens_in = read.iter().fold(0_u64, |sum, field| sum.saturating_add(count(model, field)));
    Usage { tokens_in, tokens_out: count(model, "outputTokens"), cost: None }
}
