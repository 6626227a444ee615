//! `git arborist hooks install --agent claude`: an interactive agent records its turns, and never notices.

use arborist_testkit::{Run, TestRepo};
use serde_json::{Value, json};

const SETTINGS: &str = ".claude/settings.local.json";

fn settings(repo: &TestRepo) -> Value {
    serde_json::from_str(&repo.read(SETTINGS)).unwrap()
}

/// Fires a hook as Claude Code does: by the command in the settings, through a shell, with JSON on standard input.
fn fire(repo: &TestRepo, event: &str, more: &Value) {
    let command = settings(repo)["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let mut told = json!({
        "session_id": "c-1",
        "cwd": repo.path("").display().to_string(),
        "hook_event_name": event,
    });
    told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let run = Run::of(repo.command("sh", repo.root()).args(["-c", &command]), told.to_string().as_bytes());
    assert_eq!((run.stdout().as_str(), run.stderr().as_str(), run.code()), ("", "", 0));
}

fn session(repo: &TestRepo) -> Value {
    let list: Value = serde_json::from_str(&repo.arborist(["session", "list", "--json"]).answer()).unwrap();
    list["sessions"][0].clone()
}

#[test]
fn turns_of_an_interactive_agent_are_recorded_without_changes_of_the_user() {
    let repo = TestRepo::init();
    repo.write("mine", "before\n");
    repo.commit("files\n");
    let said = repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    said.out("claude: wrote '")
        .out(SETTINGS)
        .err("each turn that writes files is committed to the branch that is checked out");
    repo.arborist(["hooks", "status"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "a run can begin");
    repo.write("mine", "my own change\n");
    fire(&repo, "UserPromptSubmit", &json!({ "prompt": "add a" }));
    repo.write("a", "a\n");
    let line = json!({ "type": "assistant", "message": { "role": "assistant", "model": "claude-9",
        "content": [{ "type": "text", "text": "I add a." }] } });
    repo.write("../transcript.jsonl", format!("{{}}\nnoise\n{line}\n"));
    let transcript = repo.path("../transcript.jsonl").display().to_string();
    let more = json!({ "transcript_path": transcript, "tool_name": "Write" });
    fire(&repo, "PostToolUse", &more);
    fire(&repo, "PostToolUse", &more);
    let log = |format: &str| repo.git(["log", "-1", &format!("--format={format}")]).answer();
    assert_eq!(log("%an"), "interactive (claude-9)");
    assert_eq!(log("%s"), "task(main@interactive@turn): Add a");
    assert_eq!(repo.git(["show", "--name-only", "--format="]).answer(), "a");
    assert!(repo.git(["status", "--porcelain"]).answer().contains(" M mine"), "the user's change stays");
    fire(&repo, "Stop", &json!({ "transcript_path": transcript, "last_assistant_message": "All done." }));
    fire(&repo, "SessionEnd", &json!({ "reason": "exit" }));
    let shown = session(&repo);
    assert_eq!(
        (&shown["turns"], &shown["commits"], &shown["state"]),
        (&2.into(), &1.into(), &"complete".into())
    );
    let id = shown["id"].as_str().unwrap();
    repo.arborist(["session", "show", id, "--turn", "2"]).succeeds().matches_snapshot();
    repo.arborist(["session", "which", "HEAD"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_turn_during_a_merge_of_the_user_has_no_commit_and_says_why() {
    let repo = TestRepo::init();
    repo.write("f", "base\n");
    repo.commit("base\n");
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    repo.git(["switch", "-q", "-c", "theirs"]).succeeds();
    repo.write("f", "theirs\n");
    repo.git(["commit", "-q", "-a", "-m", "theirs"]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.write("f", "ours\n");
    repo.git(["commit", "-q", "-a", "-m", "ours"]).succeeds();
    fire(&repo, "UserPromptSubmit", &json!({}));
    repo.git(["merge", "theirs"]).exits(1);
    let before = (repo.git(["ls-files", "-s"]).answer(), repo.git(["rev-parse", "HEAD"]).answer());
    fire(&repo, "PostToolUse", &json!({}));
    let after = (repo.git(["ls-files", "-s"]).answer(), repo.git(["rev-parse", "HEAD"]).answer());
    assert_eq!(before, after);
    repo.git(["rev-parse", "MERGE_HEAD"]).succeeds();
    let id = session(&repo)["id"].as_str().unwrap().to_owned();
    let shown = repo.arborist(["session", "show", &id, "--turn", "1"]).succeeds();
    shown.matches_snapshot();
}

#[test]
fn files_that_were_already_changed_are_reported_and_a_stop_without_message_is_no_turn() {
    let repo = TestRepo::init();
    repo.write("a", "a\n");
    repo.commit("files\n");
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    repo.write("a", "mine\n");
    fire(&repo, "UserPromptSubmit", &json!({}));
    repo.write("a", "mine and the agent's\n");
    fire(&repo, "PostToolUse", &json!({}));
    fire(&repo, "Stop", &json!({}));
    let shown = session(&repo);
    assert_eq!((&shown["turns"], &shown["commits"]), (&1.into(), &0.into()));
    let id = shown["id"].as_str().unwrap();
    let shown = repo.arborist(["session", "show", id, "--turn", "1"]).succeeds();
    shown.matches_snapshot();
    fire(&repo, "Stop", &json!({ "last_assistant_message": "I only read." }));
    repo.arborist(["session", "turns", id]).succeeds().matches_snapshot().never("0 files");
}

#[test]
fn failures_to_record_do_not_disturb_the_interactive_agent() {
    let repo = TestRepo::init();
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    repo.git(["switch", "-q", "--detach"]).succeeds();
    fire(&repo, "UserPromptSubmit", &json!({}));
    assert!(repo.read(".git/arborist/session-hook.log").contains("UserPromptSubmit: a run needs a branch"));
    fire(&repo, "Stop", &json!({ "cwd": repo.root().display().to_string() }));
    let command = settings(&repo)["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap().to_owned();
    let run = Run::of(repo.command("sh", repo.root()).args(["-c", &command]), b"no JSON");
    assert_eq!(run.code(), 0);
    repo.arborist(["session", "list"]).succeeds().silent();
}

#[test]
fn an_agent_of_a_run_is_recorded_by_the_run_alone() {
    let repo = TestRepo::init();
    let told = json!({ "session_id": "c", "hook_event_name": "UserPromptSubmit" }).to_string();
    let mut command = repo.command("git", &repo.path(""));
    command.env("ARBORIST_TASK", "T1").args(["arborist", "session", "hook", "claude"]);
    Run::of(&mut command, told.as_bytes()).succeeds().silent();
    repo.arborist(["session", "list"]).succeeds().silent();
}

#[test]
fn existing_agent_settings_survive_repeated_install_and_uninstall() {
    let repo = TestRepo::init();
    let theirs = json!({
        "permissions": { "allow": ["Bash(ls)"] },
        "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }] },
        "model": "opus",
    });
    repo.write(SETTINGS, theirs.to_string());
    repo.arborist(["hooks", "install", "--agent", "claude", "--dry-run"]).succeeds().matches_snapshot();
    assert_eq!(settings(&repo), theirs);
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    let with_ours = settings(&repo);
    assert_eq!(with_ours["hooks"]["Stop"][0], theirs["hooks"]["Stop"][0]);
    assert_eq!(with_ours["hooks"]["Stop"].as_array().unwrap().len(), 2);
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    assert_eq!(settings(&repo)["hooks"]["Stop"].as_array().unwrap().len(), 2, "once is enough");
    repo.arborist(["hooks", "uninstall", "--agent", "claude"]).succeeds();
    assert_eq!(settings(&repo), theirs);
    repo.arborist(["hooks", "uninstall", "--agent", "claude"]).succeeds().matches_snapshot();
    repo.write(SETTINGS, "{ broken");
    repo.arborist(["hooks", "install", "--agent", "claude"]).exits(2).matches_snapshot();
    assert_eq!(repo.read(SETTINGS), "{ broken");
    std::fs::remove_file(repo.path(SETTINGS)).unwrap();
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    repo.arborist(["hooks", "uninstall"]).succeeds().out("claude: ");
    assert!(!repo.path(SETTINGS).exists() || settings(&repo)["hooks"].is_null(), "nothing of ours is left");
    repo.arborist(["hooks", "install", "--agent", "claude", "-q"]).succeeds().silent();
    repo.arborist(["hooks", "uninstall", "--agent", "claude"]).succeeds().matches_snapshot();
    assert!(!repo.path(SETTINGS).exists());
    repo.arborist(["hooks", "install", "--agent", "claude", "commit-msg"]).exits(129);
}

#[test]
fn uninstall_removes_everything_that_install_added() {
    let repo = TestRepo::init();
    repo.write(".git/info/exclude", "# mine\n*.tmp\n");
    for uninstall in [&["hooks", "uninstall"][..], &["hooks", "uninstall", "--agent", "claude"]] {
        repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
        assert!(repo.read(".git/info/exclude").contains("/.claude/settings.local.json\n"));
        repo.arborist(uninstall).succeeds();
        assert_eq!(repo.read(".git/info/exclude"), "# mine\n*.tmp\n");
        assert!(!repo.path(".claude").exists(), "{uninstall:?}");
    }
    // Other files of the agent stay, and the settings in another worktree stay hidden.
    repo.write(".claude/notes.md", "mine\n");
    let other = repo.root().join("other");
    repo.git(["worktree", "add", "-q", other.to_str().unwrap()]).succeeds();
    for place in [&repo.path(""), &other] {
        repo.arborist_in(place, ["hooks", "install", "--agent", "claude"]).succeeds();
    }
    repo.arborist(["hooks", "uninstall"]).succeeds();
    assert!(repo.path(".claude/notes.md").exists() && !repo.path(SETTINGS).exists());
    assert_eq!(repo.git_in(&other, ["status", "--porcelain"]).answer(), "");
    repo.arborist_in(&other, ["hooks", "uninstall", "--agent", "claude"]).succeeds();
    assert_eq!(repo.read(".git/info/exclude"), "# mine\n*.tmp\n");
}

#[test]
fn uninstall_restores_the_exclude_file_and_keeps_lines_of_the_user() {
    let repo = TestRepo::init();
    let mine = "{\n  \"model\": \"opus\"\n}\n";
    repo.write(SETTINGS, mine);
    for uninstall in [&["hooks", "uninstall"][..], &["hooks", "uninstall", "--agent", "claude"]] {
        repo.write(".git/info/exclude", "# mine\n*.tmp\n");
        repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
        repo.arborist(uninstall).succeeds();
        assert_eq!(repo.read(".git/info/exclude"), "# mine\n*.tmp\n", "{uninstall:?}");
        assert_eq!(repo.read(SETTINGS), mine);
        // The user had hidden the settings before.
        let hidden = format!("/{SETTINGS}\n*.tmp\n");
        repo.write(".git/info/exclude", &hidden);
        repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
        repo.arborist(uninstall).succeeds();
        assert_eq!(repo.read(".git/info/exclude"), hidden, "{uninstall:?}");
    }
    // The line goes although the user has already removed the settings.
    repo.write(".git/info/exclude", "*.tmp\n");
    repo.arborist(["hooks", "install", "--agent", "claude"]).succeeds();
    std::fs::remove_file(repo.path(SETTINGS)).unwrap();
    repo.arborist(["hooks", "uninstall"]).succeeds();
    assert_eq!(repo.read(".git/info/exclude"), "*.tmp\n");
}
