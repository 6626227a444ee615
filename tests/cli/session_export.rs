//! `git arborist session export`: other tools of attribution can read what a session wrote.

use arborist_testkit::TestRepo;
use serde_json::{Value, json};

/// A session of two turns: one writes two files, one nothing.
fn repo() -> (TestRepo, String, String) {
    let repo = TestRepo::init();
    repo.write("kept", "1\n2\n3\n4\n");
    repo.commit("files\n");
    let id = repo.arborist(["session", "start", "--pipeline", "mine"]).answer();
    let turn = |more: &[&str]| {
        let args = ["session", "turn", "--session", &id, "--node", "T1", "--model", "claude-9"];
        repo.arborist(args.iter().chain(more)).answer()
    };
    repo.write("kept", "one\n2\n3\nfour\nfive\n");
    repo.write("a file", "new\n");
    let commit = turn(&["--runner", "claude", "--agent-session", "c-1"]);
    assert_eq!(turn(&[]), "-");
    (repo, id, commit)
}

#[test]
fn the_default_export_contains_all_records() {
    let (repo, id, commit) = repo();
    let export: Value = serde_json::from_str(&repo.arborist(["session", "export", &id]).answer()).unwrap();
    let kinds: Vec<&str> =
        export["records"].as_array().unwrap().iter().map(|record| record["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["start", "turn", "turn"]);
    assert_eq!(export["records"][1]["commit"], commit.as_str());
    assert_eq!(export["session"]["turns"], 2);
}

#[test]
fn git_ai_notes_list_the_lines_that_a_session_wrote() {
    let (repo, id, commit) = repo();
    let export = ["session", "export", &id, "--format", "git-ai"];
    repo.arborist(export).succeeds().out(&format!("commit {commit}\n"));
    assert_ne!(
        repo.git(["rev-parse", "-q", "--verify", "refs/notes/ai"]).code(),
        0,
        "nothing is written unasked"
    );
    let written = repo.arborist(export.iter().chain(&["--write"])).answer();
    assert_eq!(written, commit);
    let note = repo.git(["notes", "--ref=ai", "show", &commit]).answer();
    let (lines, metadata) = note.split_once("\n---\n").unwrap();
    let key = lines.lines().nth(1).unwrap().trim_start().split(' ').next().unwrap();
    assert_eq!(lines, format!("\"a file\"\n  {key} 1\nkept\n  {key} 1,4-5"));
    let (session, trace) = key.split_once("::").unwrap();
    let is_hex = |text: &str| text.len() == 14 && text.chars().all(|c| c.is_ascii_hexdigit());
    assert!(
        is_hex(session.strip_prefix("s_").unwrap()) && is_hex(trace.strip_prefix("t_").unwrap()),
        "{key}"
    );
    let metadata: Value = serde_json::from_str(metadata).unwrap();
    assert_eq!(metadata["schema_version"], "authorship/3.0.0");
    assert_eq!(metadata["base_commit_sha"], commit.as_str());
    assert_eq!(metadata["prompts"], json!({}));
    let agent = json!({ "tool": "claude", "id": "c-1", "model": "claude-9" });
    assert_eq!(metadata["sessions"][session]["agent_id"], agent);
    let again = repo.arborist(export.iter().chain(&["--write"])).succeeds().silent();
    again.matches_snapshot();
}

/// What the published schema of Agent Trace asks for, as far as our records go.
fn schema() -> Value {
    let closed = |required: Value, properties: Value| json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false });
    let line = json!({ "type": "integer", "minimum": 1 });
    let range = closed(json!(["start_line", "end_line"]), json!({ "start_line": line, "end_line": line }));
    let kinds = json!({ "enum": ["human", "ai", "mixed", "unknown"] });
    let model = json!({ "type": "string", "maxLength": 250 });
    let contributor = closed(json!(["type"]), json!({ "type": kinds, "model_id": model }));
    let ranges = json!({ "type": "array", "items": range });
    let conversation = closed(json!(["ranges"]), json!({ "contributor": contributor, "ranges": ranges }));
    let conversations = json!({ "type": "array", "items": conversation });
    let file = closed(
        json!(["path", "conversations"]),
        json!({ "path": { "type": "string" }, "conversations": conversations }),
    );
    let uuid = "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";
    closed(
        json!(["version", "id", "timestamp", "files"]),
        json!({
            "version": { "type": "string", "pattern": "^[0-9]+\\.[0-9]+$" },
            "id": { "type": "string", "pattern": uuid },
            "timestamp": { "type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ$" },
            "vcs": closed(
                json!(["type", "revision"]),
                json!({ "type": { "const": "git" }, "revision": { "type": "string" } }),
            ),
            "tool": closed(
                json!(["name", "version"]),
                json!({ "name": { "type": "string" }, "version": { "type": "string" } }),
            ),
            "files": { "type": "array", "items": file },
            "metadata": { "type": "object" },
        }),
    )
}

#[test]
fn agent_trace_records_match_their_schema() {
    let (repo, id, commit) = repo();
    let export = ["session", "export", &id, "--format", "agent-trace"];
    let printed = repo.arborist(export).answer();
    assert_eq!(printed.lines().count(), 1, "a line for each commit");
    let record: Value = serde_json::from_str(&printed).unwrap();
    if let Err(error) = jsonschema::validate(&schema(), &record) {
        panic!("{error} in {record:#}");
    }
    assert_eq!(record["vcs"]["revision"], commit.as_str());
    let kept = &record["files"][1];
    assert_eq!(kept["path"], "kept");
    let conversation = &kept["conversations"][0];
    assert_eq!(conversation["contributor"], json!({ "type": "ai", "model_id": "anthropic/claude-9" }));
    let ranges = json!([{ "start_line": 1, "end_line": 1 }, { "start_line": 4, "end_line": 5 }]);
    assert_eq!(conversation["ranges"], ranges);
    assert_eq!(repo.arborist(export).answer(), printed, "the same whenever it is told");
    repo.arborist(export.iter().chain(&["--write"])).exits(129).matches_snapshot();
}
