//! The JSON documents match their published schemas, and these match the code. `BLESS=1` writes them anew.

use std::fs;

use crate::queue_repo::QueueRepo;
use arborist_core::{event::RunEvent, plan::TreeDocument, session::Record, verify::Verification};
use arborist_testkit::{TaskCommit, TestRepo};
use git_arborist::{
    cleanup::document::{CleanupDocument, SavedDocument},
    hooks::HooksStatus,
    merge::{
        document::{MergeLogDocument, QueueDocument, RunDocument},
        resolve::ResolveDocument,
    },
    plan::{ExplainDocument, WavesDocument},
    sandbox::document::SandboxDocument,
    session::document::{
        DiffDocument, ExportDocument, RecordedDocument, SessionListDocument, SessionShowDocument,
        TurnDocument, TurnsDocument, WhichDocument,
    },
    state::{document::StateDocument, remote::RemoteStateDocument},
    trailers::{log::LogDocument, parse::ParseDocument},
    workspace::document::{PushDocument, StatusDocument, SyncDocument},
    worktree::document::{ListDocument, RowDocument},
};
use schemars::{Schema, schema_for};
use serde_json::Value;

fn schemas() -> Vec<(&'static str, Schema)> {
    vec![
        ("task-tree", schema_for!(TreeDocument)),
        ("plan-waves", schema_for!(WavesDocument)),
        ("plan-explain", schema_for!(ExplainDocument)),
        ("state", schema_for!(StateDocument)),
        ("state-remote", schema_for!(RemoteStateDocument)),
        ("trailers-parse", schema_for!(ParseDocument)),
        ("trailers-log", schema_for!(LogDocument)),
        ("hooks-status", schema_for!(HooksStatus)),
        ("run-event", schema_for!(RunEvent)),
        ("worktree-list", schema_for!(ListDocument)),
        ("worktree-show", schema_for!(RowDocument)),
        ("workspace-status", schema_for!(StatusDocument)),
        ("workspace-sync", schema_for!(SyncDocument)),
        ("workspace-push", schema_for!(PushDocument)),
        ("session-record", schema_for!(Record)),
        ("session-list", schema_for!(SessionListDocument)),
        ("session-show", schema_for!(SessionShowDocument)),
        ("session-turn", schema_for!(TurnDocument)),
        ("session-turns", schema_for!(TurnsDocument)),
        ("session-which", schema_for!(WhichDocument)),
        ("session-recorded", schema_for!(RecordedDocument)),
        ("session-diff", schema_for!(DiffDocument)),
        ("session-export", schema_for!(ExportDocument)),
        ("merge-queue", schema_for!(QueueDocument)),
        ("merge-run", schema_for!(RunDocument)),
        ("merge-log", schema_for!(MergeLogDocument)),
        ("merge-resolve", schema_for!(ResolveDocument)),
        ("verify", schema_for!(Verification)),
        ("sandbox-check", schema_for!(SandboxDocument)),
        ("cleanup", schema_for!(CleanupDocument)),
        ("cleanup-saved", schema_for!(SavedDocument)),
    ]
}

fn file_of(name: &str) -> String {
    format!("{}/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn published_schemas_match_the_code() {
    for (name, schema) in schemas() {
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let read = || fs::read_to_string(file_of(name)).unwrap_or_default();
        // The core includes one of these files and is built again if it is written.
        if std::env::var_os("BLESS").is_some() && read() != text {
            fs::write(file_of(name), &text).unwrap();
        }
        assert_eq!(read(), text, "run with BLESS=1: {name}");
    }
}

fn published(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(file_of(name)).unwrap()).unwrap()
}

pub(crate) fn validate(name: &str, document: &str) {
    let document: Value = serde_json::from_str(document).unwrap();
    if let Err(error) = jsonschema::validate(&published(name), &document) {
        panic!("{name}: {error} in {document:#}");
    }
}

#[test]
fn json_output_of_commands_matches_the_schemas() {
    let repo = TestRepo::with_options(&[]);
    validate("state", &repo.arborist(["state", "--json"]).answer());
    validate("sandbox-check", &repo.arborist(["sandbox", "check", "--json"]).exits(1).stdout());
    repo.commit("begin\n");
    repo.run_start("main", "s1");
    repo.commit(TaskCommit::new("T1", "test-fail").trailer("Cost", "0.5").body("Test:\n> no\n").to_string());
    repo.task("T2", "complete");
    validate("state", &repo.arborist(["state", "--json", "--history"]).answer());
    validate("state", &repo.arborist(["state", "--json", "T1"]).answer());
    validate("trailers-log", &repo.arborist(["trailers", "log", "--json"]).answer());
    validate("trailers-parse", &repo.arborist(["trailers", "parse", "--json", "HEAD"]).answer());
    validate("hooks-status", &repo.arborist(["hooks", "status", "--json"]).answer());
    repo.arborist(["hooks", "install", "-q"]).succeeds();
    validate("hooks-status", &repo.arborist(["hooks", "status", "--json"]).answer());
    repo.write(
        "tasks.md",
        "## Phase 1: a\n- [x] T1 [P] [US1] a in `a.rs`\n- [-] T2 [P] b\n- [~] T3 c (after T2)\n",
    );
    repo.write("Cargo.toml", "");
    validate("task-tree", &repo.arborist(["plan", "--format", "json"]).answer());
    validate("plan-waves", &repo.arborist(["plan", "--waves", "--format", "json"]).answer());
    validate("plan-explain", &repo.arborist(["plan", "--explain", "T3", "--format", "json"]).answer());
    repo.arborist(["worktree", "add", "T1", "--allow-dirty"]).succeeds();
    validate("worktree-list", &repo.arborist(["worktree", "list", "--json"]).answer());
    validate(
        "worktree-list",
        &repo.arborist(["worktree", "list", "--json", "--long", "--branches"]).answer(),
    );
    validate("worktree-show", &repo.arborist(["worktree", "show", "--json", "T1"]).answer());
    let unsound = b"x\n\nArborist-Step: complete\n";
    validate("trailers-parse", &repo.arborist_with(["trailers", "parse", "--json"], unsound).answer());
}

#[test]
fn json_output_about_sessions_matches_the_schemas() {
    let repo = TestRepo::init();
    let session = |args: &[&str]| repo.arborist(["session"].iter().chain(args)).answer();
    validate("session-recorded", &session(&["start", "--id", "s1", "--json"]));
    validate("session-recorded", &session(&["checkpoint", "--session", "s1", "--node", "T1", "--json"]));
    repo.write("a", "a");
    let turn = ["turn", "--session", "s1", "--node", "T1", "--model", "m", "--json"];
    validate("session-turn", &session(&turn));
    validate("session-turn", &session(&turn));
    validate("session-turn", &session(&["show", "s1", "--turn", "1", "--patch", "--json"]));
    validate("session-which", &session(&["which", "HEAD", "--json"]));
    validate("session-diff", &session(&["diff", "s1", "0", "1", "--json"]));
    validate("session-export", &session(&["export", "s1"]));
    repo.commit_complete(&TaskCommit::new("T1", "complete").trailer("Session", "s1"));
    let record = repo.git(["log", "-1", "--format=%b", "refs/arborist/sessions/s1"]).answer();
    validate("session-record", &record);
    validate("session-list", &session(&["list", "--json"]));
    repo.write(".git/refs/arborist/sessions/s2", [0; 41]);
    let listed = session(&["list", "--json"]);
    assert!(listed.contains("\"damaged\": \""), "{listed}");
    validate("session-list", &listed);
    validate("session-show", &session(&["show", "s1", "--json"]));
    validate("session-turns", &session(&["turns", "s1", "--json"]));
    validate("session-which", &session(&["which", "HEAD", "--json"]));
}

#[test]
fn json_output_about_the_merge_queue_matches_the_schemas() {
    let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
    queue_repo.on_branch("T2", |queue_repo| {
        queue_repo.write("T1.txt", "mine");
        queue_repo.finish("T2");
    });
    validate("merge-queue", &queue_repo.merge(&["add", "T1", "T2", "--json"]).answer());
    let ran = queue_repo.merge(&["run", "--json"]).exits(2);
    validate("merge-run", &ran.stdout());
    let queue = queue_repo.merge(&["list", "--json"]).answer();
    assert!(queue.contains("\"kind\": \"add/add\""), "{queue}");
    validate("merge-queue", &queue);
    validate("merge-queue", &queue_repo.merge(&["status", "--json", "T2"]).exits(2).stdout());
    validate("merge-log", &queue_repo.merge(&["log", "--json"]).answer());
    validate("merge-log", &queue_repo.merge(&["status", "--json", "T1"]).answer());
    validate("merge-resolve", &queue_repo.merge(&["resolve", "--json", "T2"]).answer());
    validate("merge-resolve", &queue_repo.merge(&["resolve", "--json", "T2"]).exits(1).stdout());
    validate("merge-queue", &queue_repo.merge(&["retry", "--json", "T2"]).answer());
    validate("merge-queue", &queue_repo.merge(&["drop", "--json", "T2"]).answer());
}

#[test]
fn json_output_of_cleanup_matches_the_schemas() {
    let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
    queue_repo.merge(&["add", "T1"]).succeeds();
    queue_repo.merge(&["run"]).succeeds();
    let path = queue_repo.arborist(["worktree", "add", "T3", "--allow-dirty"]).answer();
    fs::write(format!("{path}/new"), "new").unwrap();
    queue_repo.write("spec/logs/T1_test_20250216T143022.log", "x");
    let clean =
        |args: &[&str]| queue_repo.arborist(["cleanup", "--older-than", "0", "--json"].iter().chain(args));
    for args in [&["--dry-run", "--reclaim"][..], &[], &["--force"]] {
        validate("cleanup", &clean(args).answer());
    }
    validate("cleanup-saved", &queue_repo.arborist(["cleanup", "saved", "--json"]).answer());
}

#[test]
fn schemas_require_every_key() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(file_of("state")).unwrap()).unwrap();
    for key in ["scope", "head", "session", "summary", "tasks"] {
        let required = schema["required"].as_array().unwrap();
        let is_nullable = schema["properties"][key]["type"].to_string().contains("null");
        assert!(required.iter().any(|name| name == key) || is_nullable, "{key}");
    }
}

#[test]
fn schemas_reject_unknown_fields_and_values() {
    let repo = TestRepo::init();
    repo.task("T1", "complete");
    let answer = repo.arborist(["trailers", "log", "--json"]).answer();
    let document: Value = serde_json::from_str(&answer).unwrap();
    let schema = published("trailers-log");
    let refuses = |spoil: fn(&mut Value)| {
        let mut document = document.clone();
        spoil(&mut document);
        assert_ne!(document, serde_json::from_str::<Value>(&answer).unwrap());
        assert!(!jsonschema::is_valid(&schema, &document), "{document:#}");
    };
    assert!(jsonschema::is_valid(&schema, &document));
    refuses(|document| document["more"] = 1.into());
    refuses(|document| document["commits"][0]["more"] = 1.into());
    refuses(|document| document["commits"][0]["status"] = "compleet".into());
    refuses(|document| document["commits"][0]["step"] = "compleet".into());
    refuses(|document| document["commits"][0]["result"] = "passed".into());
    refuses(|document| document["commits"][0]["trailers"]["Arborist-Stop"] = "x".into());
    refuses(|document| document["commits"][0]["trailers"]["Arborist-Step"] = 1.into());
}

#[test]
fn schemas_allow_no_additional_properties() {
    for name in [
        "trailers-parse", "trailers-log", "hooks-status", "worktree-list", "merge-queue", "merge-run",
        "merge-log", "cleanup", "cleanup-saved", "verify",
    ] {
        let schema = published(name);
        let definitions = schema["$defs"].as_object().unwrap().values();
        for object in definitions.chain([&schema]).filter(|schema| schema["type"] == "object") {
            assert_eq!(object["additionalProperties"], false, "{name}: {object:#}");
        }
    }
}
