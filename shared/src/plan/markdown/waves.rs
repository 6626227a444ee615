//! Waves of tasks as JSON in a fence, as Kiro writes them: `{"waves": [{"id": 0, "tasks": ["1.1", "1.2"]}, …]}`.

use std::collections::HashMap;

use serde_json::Value;

use super::{Line, Offset, lines::Kind};

/// The tasks of a wave, each with the line that names it.
pub(super) type Wave = Vec<(String, Offset)>;

/// The waves that a fence holds, in their order; `None` if it holds something else.
pub(super) fn read(lines: &[Line<'_>]) -> Option<Vec<Wave>> {
    let is_body =
        |line: &&Line<'_>| line.kind == Kind::Code && !line.text.trim_start().starts_with(['`', '~']);
    let body: Vec<&Line<'_>> = lines.iter().filter(is_body).collect();
    // Other code is not looked at twice.
    if !body.iter().take(3).any(|line| line.text.contains("\"waves\"")) {
        return None;
    }
    let text: Vec<&str> = body.iter().map(|line| line.text).collect();
    let document: Value = serde_json::from_str(&text.join("\n")).ok()?;
    let places = places(&body);
    let start = lines.first()?.at;
    let wave = |wave: &Value| -> Wave {
        let tasks = wave.get("tasks").unwrap_or(wave).as_array();
        let ids = tasks.into_iter().flatten().filter_map(id);
        ids.map(|id| (id.clone(), places.get(id.as_str()).copied().unwrap_or(start))).collect()
    };
    Some(document.get("waves")?.as_array()?.iter().map(wave).filter(|wave| !wave.is_empty()).collect())
}

/// An id is a text, or a number where somebody left out the quotes.
fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The line of each text in quotes.
fn places<'a>(lines: &[&Line<'a>]) -> HashMap<&'a str, Offset> {
    let mut places = HashMap::new();
    for line in lines {
        for text in line.text.split('"').skip(1).step_by(2) {
            places.entry(text).or_insert(line.at);
        }
    }
    places
}
