//! The four wire formats, just as much of each as the programs need: what is asked, and an answer as a stream.

use std::path::Path;

use serde_json::{Value, json};

use crate::model::{Act, Ask};

/// How a program speaks with its model.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wire {
    /// Anthropic's messages: claude.
    Messages,
    /// OpenAI's responses: codex.
    Responses,
    /// OpenAI's chat completions: opencode.
    Chat,
    /// Google's generateContent: gemini.
    Generate,
}

/// A server-sent event: its name, if it has one, and its data.
pub(crate) type Event = (Option<&'static str>, Value);

/// Events as they are sent.
pub(crate) fn stream(events: &[Event]) -> String {
    let line = |(name, data): &Event| {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        format!("{name}data: {data}\n\n")
    };
    events.iter().map(line).collect()
}

impl Wire {
    /// The format that is spoken at this path.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let ends = [
            ("/messages", Self::Messages),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Chat),
            (":streamGenerateContent", Self::Generate),
        ];
        ends.into_iter().find(|(end, _)| path.ends_with(end)).map(|(_, wire)| wire)
    }

    /// What a request asks.
    pub(crate) fn read(self, body: &Value) -> Ask {
        let messages = match self {
            Self::Messages | Self::Chat => &body["messages"],
            Self::Responses => &body["input"],
            Self::Generate => &body["contents"],
        };
        let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut words = String::new();
        messages.iter().filter(|message| message["role"] == "user").for_each(|said| gather(said, &mut words));
        let results = messages.iter().map(|message| self.results(message)).sum();
        Ask { words, results, has_tools: !tools(body).is_empty() }
    }

    /// How many results of tools stand in a message.
    fn results(self, message: &Value) -> usize {
        let parts = |key: &str, is_result: fn(&Value) -> bool| {
            message[key].as_array().into_iter().flatten().filter(|part| is_result(part)).count()
        };
        match self {
            Self::Messages => parts("content", |part| part["type"] == "tool_result"),
            Self::Generate => parts("parts", |part| part.get("functionResponse").is_some()),
            Self::Chat => usize::from(message["role"] == "tool"),
            Self::Responses => usize::from(message["type"] == "function_call_output"),
        }
    }

    /// What says that too much was asked.
    pub(crate) fn refusal(self) -> Value {
        let message = "too many requests";
        match self {
            Self::Messages => {
                json!({ "type": "error", "error": { "type": "rate_limit_error", "message": message } })
            }
            Self::Responses | Self::Chat => {
                json!({ "error": { "type": "rate_limit_error", "code": "rate_limit_exceeded", "message": message } })
            }
            Self::Generate => {
                json!({ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": message } })
            }
        }
    }

    /// An answer to the request `body` of a program that works in `dir`.
    pub(crate) fn answer(self, act: &Act, body: &Value, dir: &Path) -> Vec<Event> {
        let call = self.call(act, &tools(body), dir);
        let words = if let Act::Say(words) = act { words.as_str() } else { "" };
        let id = format!("call_{}", self.read(body).results);
        match self {
            Self::Messages => messages(call, words, &id),
            Self::Responses => responses(call, words, &id, body),
            Self::Chat => chat(call, words, &id),
            Self::Generate => generate(call, words),
        }
    }

    /// The tool that does an act, and its arguments.
    fn call(self, act: &Act, tools: &[&str], dir: &Path) -> Call {
        if let Act::Tool { tool, input } = act {
            let offered = tools.iter().find(|name| name.ends_with(tool));
            return Some((offered.unwrap_or(tool).to_string(), input.clone()));
        }
        let full = |path: &str| dir.join(path).display().to_string();
        let (name, input) = match (self, act) {
            (Self::Messages, Act::Write { path, text }) => {
                ("Write", json!({ "file_path": full(path), "content": text }))
            }
            (Self::Chat, Act::Write { path, text }) => {
                ("write", json!({ "filePath": full(path), "content": text }))
            }
            (Self::Generate, Act::Write { path, text }) => {
                ("write_file", json!({ "file_path": full(path), "content": text }))
            }
            (Self::Responses, Act::Write { path, text }) => {
                shell_of_codex(tools, &format!("printf '{text}' > {path}"))
            }
            (Self::Responses, Act::Shell(command)) => shell_of_codex(tools, command),
            (Self::Messages, Act::Shell(command)) => {
                ("Bash", json!({ "command": command, "description": "append a line" }))
            }
            (Self::Chat, Act::Shell(command)) => {
                ("bash", json!({ "command": command, "description": "append a line" }))
            }
            (Self::Generate, Act::Shell(command)) => ("run_shell_command", json!({ "command": command })),
            _ => return None,
        };
        Some((name.to_owned(), input))
    }
}

/// Codex names its shell differently from model to model.
fn shell_of_codex(tools: &[&str], command: &str) -> (&'static str, Value) {
    if tools.contains(&"exec_command") {
        ("exec_command", json!({ "cmd": command }))
    } else if tools.contains(&"shell_command") {
        ("shell_command", json!({ "command": command }))
    } else {
        ("shell", json!({ "command": ["bash", "-c", command] }))
    }
}

/// The names of the tools that a request offers.
fn tools(body: &Value) -> Vec<&str> {
    let mut names = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let declared = tool["functionDeclarations"].as_array().into_iter().flatten();
        names.extend(
            [tool, &tool["function"]].into_iter().chain(declared).filter_map(|tool| tool["name"].as_str()),
        );
    }
    names
}

/// Codex puts the tools of a server into a group.
fn namespace<'b>(body: &'b Value, name: &str) -> Option<&'b str> {
    let groups = body["tools"].as_array().into_iter().flatten();
    let has = |group: &&Value| {
        group["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
    };
    groups.filter(has).find_map(|group| group["name"].as_str())
}

/// Every string in a message.
fn gather(value: &Value, words: &mut String) {
    match value {
        Value::String(text) => {
            words.push_str(text);
            words.push('\n');
        }
        Value::Array(parts) => parts.iter().for_each(|part| gather(part, words)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, words)),
        _ => {}
    }
}

type Call = Option<(String, Value)>;

fn messages(call: Call, words: &str, id: &str) -> Vec<Event> {
    let stop = if call.is_some() { "tool_use" } else { "end_turn" };
    let (block, delta) = match call {
        Some((name, input)) => (
            json!({ "type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
        ),
        None => (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": words })),
    };
    let message = json!({ "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 100, "output_tokens": 1 } });
    let end = json!({ "stop_reason": stop, "stop_sequence": null });
    let events = [
        ("message_start", json!({ "message": message })),
        ("content_block_start", json!({ "index": 0, "content_block": block })),
        ("content_block_delta", json!({ "index": 0, "delta": delta })),
        ("content_block_stop", json!({ "index": 0 })),
        ("message_delta", json!({ "delta": end, "usage": { "output_tokens": 20 } })),
        ("message_stop", json!({})),
    ];
    events.map(|(name, data)| typed(name, data)).into()
}

fn responses(call: Call, words: &str, id: &str, body: &Value) -> Vec<Event> {
    let item = match call {
        Some((name, arguments)) => json!({ "type": "function_call", "id": format!("fc_{id}"), "call_id": id,
            "namespace": namespace(body, &name), "name": name, "arguments": arguments.to_string(), "status": "completed" }),
        None => {
            json!({ "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": words, "annotations": [] }] })
        }
    };
    let usage = json!({ "input_tokens": 100, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 20, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 120 });
    let done = json!({ "id": "resp", "object": "response", "status": "completed", "output": [item], "usage": usage });
    let events = [
        ("response.created", json!({ "response": { "id": "resp" } })),
        ("response.output_item.done", json!({ "output_index": 0, "item": item })),
        ("response.completed", json!({ "response": done })),
    ];
    events.map(|(name, data)| typed(name, data)).into()
}

fn chat(call: Call, words: &str, id: &str) -> Vec<Event> {
    let end = if call.is_some() { "tool_calls" } else { "stop" };
    let delta = match call {
        Some((name, arguments)) => {
            let function = json!({ "name": name, "arguments": arguments.to_string() });
            json!({ "role": "assistant", "tool_calls": [{ "index": 0, "id": id, "type": "function", "function": function }] })
        }
        None => json!({ "role": "assistant", "content": words }),
    };
    let chunk = |choice: Value| json!({ "id": "chat", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
    let mut last = chunk(json!({ "index": 0, "delta": {}, "finish_reason": end }));
    last["usage"] = json!({ "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120 });
    vec![
        (None, chunk(json!({ "index": 0, "delta": delta, "finish_reason": null }))),
        (None, last),
        (None, "[DONE]".into()),
    ]
}

fn generate(call: Call, words: &str) -> Vec<Event> {
    let part = match call {
        Some((name, args)) => json!({ "functionCall": { "name": name, "args": args } }),
        None => json!({ "text": words }),
    };
    let candidate =
        json!({ "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP" });
    let usage = json!({ "promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120 });
    vec![(None, json!({ "candidates": [candidate], "usageMetadata": usage }))]
}

/// An event whose name also stands in its data.
fn typed(name: &'static str, mut data: Value) -> Event {
    data["type"] = name.into();
    (Some(name), data)
}
