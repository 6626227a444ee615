//! Agent Trace records, one for each commit of a turn: which lines a model wrote.

use arborist_core::name::digest;
use serde_json::{Value, json};

use super::export::ExportedTurn;
use crate::document::rfc3339;

/// The schema of the specification 0.1.0 accepts two components only.
const VERSION: &str = "0.1";
const LONGEST_MODEL: usize = 250;

/// The record of a turn's commit.
pub(super) fn record(written: &ExportedTurn<'_>) -> Value {
    let turn = written.turn;
    let contributor = json!({ "type": "ai", "model_id": model_of(&turn.provider, &turn.model) });
    let files: Vec<Value> = written
        .lines
        .iter()
        .map(|file| {
            let ranges: Vec<Value> = file
                .ranges
                .iter()
                .map(|(first, last)| json!({ "start_line": first, "end_line": last }))
                .collect();
            json!({
                "path": file.path,
                "conversations": [{ "contributor": contributor, "ranges": ranges }],
            })
        })
        .collect();
    json!({
        "version": VERSION,
        "id": uuid_of(written),
        "timestamp": rfc3339(turn.ended),
        "vcs": { "type": "git", "revision": written.commit.to_string() },
        "tool": { "name": "git-arborist", "version": env!("CARGO_PKG_VERSION") },
        "files": files,
        "metadata": {
            "git-arborist": {
                "session": written.session,
                "repository": written.repository,
                "node": turn.node.as_str(),
                "turn": turn.number,
                "runner": turn.runner,
                "agent_session": turn.agent_session,
            },
        },
    })
}

/// `provider/model`, as models.dev names them.
fn model_of(provider: &str, model: &str) -> String {
    let name = if model.contains('/') { model.to_owned() } else { format!("{provider}/{model}") };
    name.chars().take(LONGEST_MODEL).collect()
}

/// A stable id for a turn: a UUID of version 8, made from a digest.
fn uuid_of(written: &ExportedTurn<'_>) -> String {
    let hash = digest(format!("{} {} {}", written.session, written.turn.number, written.commit).as_bytes());
    format!("{}-{}-8{}-8{}-{}", &hash[..8], &hash[8..12], &hash[13..16], &hash[17..20], &hash[20..32])
}
