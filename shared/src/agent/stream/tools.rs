//! What several formats share: summaries of tool calls, files that tools write, and typed field access.

use serde_json::Value;

use super::super::AgentEvent;
use crate::message::plain_text;

/// The longest summary of a call, in characters.
const SUMMARY: usize = 120;

/// The longest answer of a tool, in lines and in characters.
const ANSWER_LINES: usize = 12;
const ANSWER: usize = 1000;

/// The fields that describe a call best, in this order.
const SUMMARY_FIELDS: [&str; 10] = [
    "command", "file_path", "filePath", "path", "notebook_path", "pattern", "query", "url", "description",
    "prompt",
];

/// Tools that write the file that they name.
const WRITING_TOOLS: [&str; 12] = [
    "Write", "Edit", "MultiEdit", "NotebookEdit", "write", "edit", "write_file", "replace", "create_file",
    "edit_file", "writeToolCall", "editToolCall",
];

/// The event for a tool call.
pub(super) fn tool_call(name: &str, input: &Value) -> AgentEvent {
    let telling = SUMMARY_FIELDS.iter().find_map(|field| input.get(field)?.as_str()).unwrap_or_default();
    AgentEvent::ToolCall { name: line(name), summary: line(telling) }
}

/// The event for the answer of a tool; `None` if it succeeded without text. `answer` is a text, or a list of parts with
/// texts.
pub(super) fn tool_answer(answer: &Value, is_failure: bool) -> Option<AgentEvent> {
    let text = match answer {
        Value::Array(parts) => parts.iter().map(|part| word(part, "text")).collect::<Vec<_>>().join("\n"),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let text = excerpt(&text);
    (is_failure || !text.is_empty()).then_some(AgentEvent::ToolAnswer { text, is_failure })
}

/// The beginning of a text, and how many lines were left out.
fn excerpt(text: &str) -> String {
    let text = text.trim();
    let head: String = text.lines().take(ANSWER_LINES).collect::<Vec<_>>().join("\n");
    let head: String = head.chars().take(ANSWER).collect();
    let left = text.lines().count() - head.lines().count();
    match left {
        _ if head.len() == text.len() => head,
        0 => format!("{head}..."),
        1 => format!("{head}\n... 1 more line"),
        left => format!("{head}\n... {left} more lines"),
    }
}

/// The file that a call writes.
pub(super) fn written_file(name: &str, input: &Value) -> Option<String> {
    let fields = ["file_path", "filePath", "notebook_path", "path"];
    // Tools of MCP servers have a prefix, as in mcp__arborist__backend__write_file.
    let own = name.rsplit("__").next().unwrap_or(name);
    WRITING_TOOLS.contains(&own).then(|| fields.iter().find_map(|field| text(input, field))).flatten()
}

/// The first line, plain and short.
fn line(text: &str) -> String {
    let head: String = text.trim_start().chars().take(SUMMARY * 4).collect();
    let plain = plain_text(&head);
    plain.lines().next().unwrap_or_default().trim().chars().take(SUMMARY).collect()
}

/// A string field, if it is not empty.
pub(super) fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A string field; empty if it is missing.
pub(super) fn word<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A count; 0 for anything else.
pub(super) fn count(value: &Value, field: &str) -> u64 {
    value.get(field).and_then(Value::as_u64).unwrap_or(0)
}

/// A plausible amount of money.
pub(super) fn money(value: &Value, field: &str) -> Option<f64> {
    value.get(field)?.as_f64().filter(|sum| sum.is_finite() && *sum >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_written_by_mcp_tools_are_recognised() {
        let input = json!({ "path": "src/a.rs", "content": "x" });
        let names = [
            "write_file",
            "mcp__arborist__backend__write_file",
            "mcp_arborist_backend__edit_file",
            "arborist_backend__write_file",
            "backend__edit_file",
        ];
        for name in names {
            assert_eq!(written_file(name, &input).as_deref(), Some("src/a.rs"), "{name}");
        }
        for name in ["mcp__arborist__backend__read_file", "backend__search_code", "backend__run-tests"] {
            assert_eq!(written_file(name, &input), None, "{name}");
        }
    }
}
