//! The stream of OpenCode. It reports where steps begin and end; the call is finished when a step ends with `stop`.

use serde_json::Value;

use super::{
    super::{AgentEvent, FailureKind, RetryWait, Usage, UsageScope},
    Dialect, Known,
    tools::{count, money, text, tool_answer, tool_call, word, written_file},
    turns::Turns,
};

#[derive(Debug, Default)]
pub(super) struct Opencode {
    turns: Turns,
    is_named: bool,
    last_words: String,
}

impl Dialect for Opencode {
    fn read(&mut self, event: &Value, out: &mut Vec<AgentEvent>) -> Known {
        let part = &event["part"];
        if !matches!(
            word(event, "type"),
            "step_start" | "step_finish" | "tool_use" | "text" | "reasoning" | "error"
        ) {
            return Known::No;
        }
        self.name_session(event, out);
        match word(event, "type") {
            "step_start" => {
                self.turns.end(out);
                self.last_words.clear();
                self.turns.begin(out);
            }
            "step_finish" => self.step_finish(part, out),
            "tool_use" => tool_use(part, out),
            "text" => {
                word(part, "text").clone_into(&mut self.last_words);
                out.extend(text(part, "text").map(AgentEvent::Text));
            }
            "error" => {
                self.turns.end(out);
                out.push(failed(&event["error"]));
            }
            _ => {}
        }
        Known::Yes
    }

    fn is_final(&self, event: &Value) -> bool {
        word(event, "type") == "step_finish"
            && !matches!(word(&event["part"], "reason"), "tool-calls" | "unknown" | "")
    }

    fn close(&mut self, out: &mut Vec<AgentEvent>) {
        self.turns.end(out);
    }
}

impl Opencode {
    /// Every event contains the session id; it is reported once.
    fn name_session(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        if let Some(id) = text(event, "sessionID").filter(|_| !self.is_named) {
            self.is_named = true;
            out.push(AgentEvent::SessionStarted { id, model: None });
        }
    }

    fn step_finish(&mut self, part: &Value, out: &mut Vec<AgentEvent>) {
        out.push(AgentEvent::Usage { scope: UsageScope::Turn, usage: usage(part) });
        self.turns.end(out);
        match word(part, "reason") {
            "tool-calls" | "unknown" | "" => {}
            "stop" => out.push(AgentEvent::Finished { text: std::mem::take(&mut self.last_words) }),
            reason => out.push(AgentEvent::Failed {
                kind: FailureKind::Other,
                message: format!("the model stopped: {reason}"),
                wait: RetryWait::Unknown,
            }),
        }
    }
}

/// A tool call is reported after it was answered.
fn tool_use(part: &Value, out: &mut Vec<AgentEvent>) {
    let (name, state) = (word(part, "tool"), &part["state"]);
    out.push(tool_call(name, &state["input"]));
    let is_failure = word(state, "status") == "error";
    out.extend(tool_answer(&state[if is_failure { "error" } else { "output" }], is_failure));
    if word(state, "status") == "completed" {
        out.extend(written_file(name, &state["input"]).map(|path| AgentEvent::FileWritten { path }));
    }
}

fn usage(part: &Value) -> Usage {
    let tokens = &part["tokens"];
    let cached = count(&tokens["cache"], "read").saturating_add(count(&tokens["cache"], "write"));
    Usage {
        tokens_in: count(tokens, "input").saturating_add(cached),
        tokens_out: count(tokens, "output").saturating_add(count(tokens, "reasoning")),
        cost: money(part, "cost"),
    }
}

fn failed(error: &Value) -> AgentEvent {
    let data = &error["data"];
    let status = data["statusCode"].as_u64().map(FailureKind::of_status);
    let kind = FailureKind::of_code(word(error, "name")).or(status).unwrap_or(FailureKind::Other);
    let message = text(data, "message").or_else(|| text(error, "message")).or_else(|| text(error, "name"));
    AgentEvent::Failed { kind, message: message.unwrap_or_default(), wait: requested_wait(data) }
}

fn requested_wait(data: &Value) -> RetryWait {
    let headers = &data["responseHeaders"];
    let precise = text(headers, "retry-after-ms").and_then(|value| value.trim().parse::<f64>().ok());
    let plain = text(headers, "retry-after").map_or(RetryWait::Unknown, |value| RetryWait::of_header(&value));
    precise.map_or(plain, |millis| RetryWait::for_seconds(millis / 1000.0))
}
