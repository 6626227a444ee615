//! The notes of git-ai, according to its standard 3.0.0: the lines of a commit that a session wrote, then JSON.

use arborist_core::name::digest;
use serde_json::json;

use super::export::ExportedTurn;

/// The name of the notes ref, `refs/notes/ai`.
pub(super) const NOTES: &str = "ai";

/// The note of a turn's commit.
pub(super) fn note(written: &ExportedTurn<'_>) -> String {
    let turn = written.turn;
    let conversation = turn.agent_session.as_deref().unwrap_or(written.session);
    let session = format!("s_{}", &digest(format!("{}:{conversation}", turn.runner).as_bytes())[..14]);
    let trace = &digest(format!("{}:{}", written.session, turn.number).as_bytes())[..14];
    let mut text = String::new();
    for file in &written.lines {
        let ranges: Vec<String> = file.ranges.iter().map(|range| range_of(*range)).collect();
        text.push_str(&format!("{}\n  {session}::t_{trace} {}\n", path_of(&file.path), ranges.join(",")));
    }
    let metadata = json!({
        "schema_version": "authorship/3.0.0",
        "base_commit_sha": written.commit.to_string(),
        "prompts": {},
        "sessions": {
            session: {
                "agent_id": { "tool": turn.runner, "id": conversation, "model": turn.model },
                "custom_attributes": {
                    "arborist-session": written.session,
                    "arborist-node": turn.node.as_str(),
                    "arborist-turn": turn.number.to_string(),
                },
            },
        },
    });
    format!("{text}---\n{metadata:#}")
}

fn range_of((first, last): (u64, u64)) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// Names with white space are quoted.
fn path_of(path: &str) -> String {
    if path.contains([' ', '\t', '\n']) { format!("\"{path}\"") } else { path.to_owned() }
}
