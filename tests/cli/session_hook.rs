//! `git arborist hooks install --agent claude`: an interactive agent records its turns, and never notices.

use arborist_testkit::{Garden, Run};
use serde_json::{Value, json};

const SETTINGS: &str = ".claude/settings.local.json";

fn settings(garden: &Garden) -> Value {
    serde_json::from_str(&garden.read(SETTINGS)).unwrap()
}

/// Fires a hook as Claude Code does: by the command in the settings, through a shell, with JSON on standard input.
fn fire(garden: &Garden, event: &str, more: &Value) {
    let command = settings(garden)["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let mut told = json!({
        "session_id": "c-1",
        "cwd": garden.path("").display().to_string(),
        "hook_event_name": event,
    });
    told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let run =
        Run::of(garden.command("sh", garden.root()).args(["-c", &command]), told.to_string().as_bytes());
    assert_eq!((run.stdout().as_str(), run.stderr().as_str(), run.code()), ("", "", 0));
}

fn session(garden: &Garden) -> Value {
    let list: Value = serde_json::from_str(&garden.arborist(["session", "list", "--json"]).answer()).unwrap();
    list["sessions"][0].clone()
}

#[test]
fn what_an_interactive_agent_does_is_recorded_turn_by_turn_without_what_the_user_had() {
    let garden = Garden::sprout();
    garden.write("mine", "before\n");
    garden.commit("files\n");
    let said = garden.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    said.out("claude: wrote '").out(SETTINGS).err("becomes a commit on the branch that is checked out");
    garden.arborist(["hooks", "status"]).succeeds().shows();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "a run can begin");
    garden.write("mine", "my own change\n");
    fire(&garden, "UserPromptSubmit", &json!({ "prompt": "add a" }));
    garden.write("a", "a\n");
    let line = json!({ "type": "assistant", "message": { "role": "assistant", "model": "claude-9",
        "content": [{ "type": "text", "text": "I add a." }] } });
    garden.write("../transcript.jsonl", format!("{{}}\nnoise\n{line}\n"));
    let transcript = garden.path("../transcript.jsonl").display().to_string();
    let more = json!({ "transcript_path": transcript, "tool_name": "Write" });
    fire(&garden, "PostToolUse", &more);
    fire(&garden, "PostToolUse", &more);
    let log = |format: &str| garden.git(["log", "-1", &format!("--format={format}")]).answer();
    assert_eq!(log("%an"), "interactive (claude-9)");
    assert_eq!(log("%s"), "task(main@interactive@turn): Add a");
    assert_eq!(garden.git(["show", "--name-only", "--format="]).answer(), "a");
    assert!(garden.git(["status", "--porcelain"]).answer().contains(" M mine"), "the user's change stays");
    fire(&garden, "Stop", &json!({ "transcript_path": transcript, "last_assistant_message": "All done." }));
    fire(&garden, "SessionEnd", &json!({ "reason": "exit" }));
    let shown = session(&garden);
    assert_eq!(
        (&shown["turns"], &shown["commits"], &shown["state"]),
        (&2.into(), &1.into(), &"complete".into())
    );
    let id = shown["id"].as_str().unwrap();
    garden.arborist(["session", "show", id, "--turn", "2"]).succeeds().shows();
    garden.arborist(["session", "which", "HEAD"]).succeeds().shows();
    assert_eq!(garden.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_merge_of_the_user_is_left_alone_and_the_turn_says_why_it_has_no_commit() {
    let garden = Garden::sprout();
    garden.write("f", "base\n");
    garden.commit("base\n");
    garden.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    garden.git(["switch", "-q", "-c", "theirs"]).succeeds();
    garden.write("f", "theirs\n");
    garden.git(["commit", "-q", "-a", "-m", "theirs"]).succeeds();
    garden.git(["switch", "-q", "main"]).succeeds();
    garden.write("f", "ours\n");
    garden.git(["commit", "-q", "-a", "-m", "ours"]).succeeds();
    fire(&garden, "UserPromptSubmit", &json!({}));
    garden.git(["merge", "theirs"]).exits(1);
    let before = (garden.git(["ls-files", "-s"]).answer(), garden.git(["rev-parse", "HEAD"]).answer());
    fire(&garden, "PostToolUse", &json!({}));
    let after = (garden.git(["ls-files", "-s"]).answer(), garden.git(["rev-parse", "HEAD"]).answer());
    assert_eq!(before, after);
    garden.git(["rev-parse", "MERGE_HEAD"]).succeeds();
    let id = session(&garden)["id"].as_str().unwrap().to_owned();
    let shown = garden.arborist(["session", "show", &id, "--turn", "1"]).succeeds();
    shown.shows();
}

#[test]
fn a_file_that_was_already_changed_is_named_and_an_end_without_a_word_is_no_turn() {
    let garden = Garden::sprout();
    garden.write("a", "a\n");
    garden.commit("files\n");
    garden.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    garden.write("a", "mine\n");
    fire(&garden, "UserPromptSubmit", &json!({}));
    garden.write("a", "mine and the agent's\n");
    fire(&garden, "PostToolUse", &json!({}));
    fire(&garden, "Stop", &json!({}));
    let shown = session(&garden);
    assert_eq!((&shown["turns"], &shown["commits"]), (&1.into(), &0.into()));
    let id = shown["id"].as_str().unwrap();
    let shown = garden.arborist(["session", "show", id, "--turn", "1"]).succeeds();
    shown.shows();
    fire(&garden, "Stop", &json!({ "last_assistant_message": "I only read." }));
    garden.arborist(["session", "turns", id]).succeeds().shows().never("0 files");
}

#[test]
fn what_cannot_be_recorded_disturbs_nobody() {
    let garden = Garden::sprout();
    garden.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    garden.git(["switch", "-q", "--detach"]).succeeds();
    fire(&garden, "UserPromptSubmit", &json!({}));
    assert!(garden.read(".git/arborist/session-hook.log").contains("UserPromptSubmit: HEAD is detached"));
    fire(&garden, "Stop", &json!({ "cwd": garden.root().display().to_string() }));
    let command = settings(&garden)["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let run = Run::of(garden.command("sh", garden.root()).args(["-c", &command]), b"no JSON");
    assert_eq!(run.code(), 0);
    garden.arborist(["session", "list"]).succeeds().silent();
}

#[test]
fn an_agent_of_a_run_is_recorded_by_the_run_alone() {
    let garden = Garden::sprout();
    let told = json!({ "session_id": "c", "hook_event_name": "UserPromptSubmit" }).to_string();
    let mut command = garden.command("git", &garden.path(""));
    command.env("ARBORIST_TASK", "T1").args(["arborist", "session", "hook", "claude"]);
    Run::of(&mut command, told.as_bytes()).succeeds().silent();
    garden.arborist(["session", "list"]).succeeds().silent();
}

#[test]
fn settings_of_others_stay_and_ours_come_and_go_once() {
    let garden = Garden::sprout();
    let theirs = json!({
        "permissions": { "allow": ["Bash(ls)"] },
        "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }] },
        "model": "opus",
    });
    garden.write(SETTINGS, theirs.to_string());
    garden.arborist(["hooks", "install", "--agent", "claude", "--dry-run"]).succeeds().shows();
    assert_eq!(settings(&garden), theirs);
    garden.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    let with_ours = settings(&garden);
    assert_eq!(with_ours["hooks"]["Stop"][0], theirs["hooks"]["Stop"][0]);
    assert_eq!(with_ours["hooks"]["Stop"].as_array().unwrap().len(), 2);
    garden.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    assert_eq!(settings(&garden)["hooks"]["Stop"].as_array().unwrap().len(), 2, "once is enough");
    garden.arborist(["hooks", "uninstall", "--agent", "claude"]).succeeds();
    assert_eq!(settings(&garden), theirs);
    garden.arborist(["hooks", "uninstall", "--agent", "claude"]).succeeds().shows();
    garden.write(SETTINGS, "{ broken");
    garden.arborist(["hooks", "install", "--agent", "claude"]).exits(2).shows();
    assert_eq!(garden.read(SETTINGS), "{ broken");
    std::fs::remove_file(garden.path(SETTINGS)).unwrap();
    garden.arborist(["hooks", "install", "--agent", "claude", "-q"]).succeeds().silent();
    garden.arborist(["hooks", "uninstall", "--agent", "claude"]).succeeds().shows();
    assert!(!garden.path(SETTINGS).exists());
    garden.arborist(["hooks", "install", "--agent", "claude", "commit-msg"]).exits(129);
}
