//! The stream of Gemini CLI.

use serde_json::Value;

use super::{
    super::{AgentEvent, FailureKind, RetryWait, Usage, UsageScope},
    Dialect, Known,
    bounded_json::skim,
    tools::{count, text, tool_answer, tool_call, word, written_file},
    turns::{ToolResult, Turns},
};

#[derive(Debug, Default)]
pub(super) struct Gemini {
    turns: Turns,
    /// Its text since its last tool call; text arrives in fragments.
    last_words: String,
}

/// How many bytes of the last text are kept.
const LONGEST_LAST_TEXT: usize = 1024 * 1024;

impl Dialect for Gemini {
    fn read(&mut self, event: &Value, out: &mut Vec<AgentEvent>) -> Known {
        match word(event, "type") {
            "init" => out.extend(
                text(event, "session_id")
                    .map(|id| AgentEvent::SessionStarted { id, model: text(event, "model") }),
            ),
            "message" => self.message(event, out),
            "tool_use" => self.tool_use(event, out),
            "tool_result" => {
                let answer =
                    if word(event, "status") == "success" { ToolResult::Done } else { ToolResult::Refused };
                let is_failure = answer == ToolResult::Refused;
                let report = if is_failure { &event["error"]["message"] } else { &event["output"] };
                out.extend(tool_answer(report, is_failure));
                self.turns.answer(word(event, "tool_id"), answer, out);
            }
            "result" => self.result(event, out),
            // Only a warning; an error that ends the call is in the result.
            "error" => out.extend(text(event, "message").map(AgentEvent::Unread)),
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

impl Gemini {
    fn message(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        if word(event, "role") != "assistant" {
            return;
        }
        self.turns.begin(out);
        let words = word(event, "content");
        if self.last_words.len() + words.len() <= LONGEST_LAST_TEXT {
            self.last_words.push_str(words);
        }
        out.extend(text(event, "content").map(AgentEvent::Text));
    }

    fn tool_use(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        self.last_words.clear();
        self.turns.begin(out);
        let (name, input) = (word(event, "tool_name"), &event["parameters"]);
        out.push(tool_call(name, input));
        self.turns.call(word(event, "tool_id"), written_file(name, input));
    }

    fn result(&mut self, event: &Value, out: &mut Vec<AgentEvent>) {
        self.turns.end(out);
        if let Some(stats) = event.get("stats") {
            let (tokens_in, tokens_out) = (count(stats, "input_tokens"), count(stats, "output_tokens"));
            out.push(AgentEvent::Usage {
                scope: UsageScope::Call,
                usage: Usage { tokens_in, tokens_out, cost: None },
            });
        }
        let words = std::mem::take(&mut self.last_words);
        out.push(match word(event, "status") {
            "success" => AgentEvent::Finished { text: words },
            _ => failed(&event["error"]),
        });
    }
}

/// The program's own fields contain little; the provider's answer is in the message, as JSON.
fn failed(error: &Value) -> AgentEvent {
    let message = word(error, "message");
    let inner = message.strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']'));
    let answer = inner.and_then(|json| skim(json.as_bytes())).unwrap_or_default();
    let kind = [error, &answer["error"], &answer].iter().find_map(|fields| kind_of(fields));
    AgentEvent::Failed {
        kind: kind.unwrap_or(FailureKind::Other),
        message: text(&answer["error"], "message").unwrap_or_else(|| message.to_owned()),
        wait: retry_delay(&answer["error"]),
    }
}

fn kind_of(fields: &Value) -> Option<FailureKind> {
    let details = fields["details"].as_array().into_iter().flatten();
    let reasons = details.map(|detail| word(detail, "reason"));
    let codes = ["status", "type", "code"].map(|field| word(fields, field));
    let by_code = reasons.chain(codes).find_map(FailureKind::of_code);
    let status = ["code", "status"].iter().find_map(|field| fields.get(field)?.as_u64());
    by_code.or_else(|| status.map(FailureKind::of_status)).filter(|kind| *kind != FailureKind::Other)
}

/// `"retryDelay": "34s"` in the details of an error.
fn retry_delay(error: &Value) -> RetryWait {
    let mut details = error["details"].as_array().into_iter().flatten();
    let delay =
        details.find_map(|detail| detail.get("retryDelay")?.as_str()?.strip_suffix('s')?.parse().ok());
    delay.map_or(RetryWait::Unknown, RetryWait::for_seconds)
}
