//! Real programs work by the tools of 'git arborist tools'.

use std::fs;

use serde_json::{Value, json};

use crate::{
    Scene, TASKS,
    model::{Act, Model},
    program::{self, Agent, CLAUDE, CODEX, GEMINI, OPENCODE},
};

fn tool(tool: &'static str, input: Value) -> Act {
    Act::Tool { tool, input }
}

/// What `--tools` gives a program, it finds and can use.
fn works_with_our_tools(agent: Agent) {
    let acts = vec![
        tool("repo__write_file", json!({ "path": "TASK.txt", "content": "TASK\n" })),
        tool(
            "repo__edit_file",
            json!({ "path": "TASK.txt", "old_string": "TASK", "new_string": "TASK\nmore" }),
        ),
        tool("repo__search_code", json!({ "pattern": "^more", "glob": "TASK.txt" })),
    ];
    let Some(scene) = Scene::with(agent, Model::acting(acts)) else {
        return;
    };
    scene.gardener_with(&["--tools"]).succeeds().out("3 completed (T001, T002, T003)");
    for task in TASKS {
        assert_eq!(scene.repo.read(&format!("{task}.txt")), format!("{task}\nmore\n"));
    }
    assert_eq!(scene.repo.git(["status", "--porcelain"]).answer(), "", "nothing is left lying about");
}

#[test]
fn claude_works_with_our_tools() {
    works_with_our_tools(CLAUDE);
}

#[test]
fn codex_works_with_our_tools() {
    works_with_our_tools(CODEX);
}

#[test]
fn opencode_works_with_our_tools() {
    works_with_our_tools(OPENCODE);
}

#[test]
fn gemini_works_with_our_tools() {
    works_with_our_tools(GEMINI);
}

/// Claude Code, which is told of two repositories by a configuration of the user's own.
#[test]
fn claude_works_in_two_repositories() {
    let acts = vec![
        tool("app__write_file", json!({ "path": "TASK.txt", "content": "TASK\n" })),
        tool("backend__write_file", json!({ "path": "src/TASK.rs", "content": "// TASK\n" })),
        tool("backend__read_file", json!({ "path": "../secret" })),
        tool("backend__search_code", json!({ "pattern": "// TASK" })),
        tool("backend__run-tests", json!({})),
    ];
    let Some(scene) = Scene::with(CLAUDE, Model::acting(acts)) else {
        return;
    };
    let repo = &scene.repo;
    let backend = repo.root().join("backend");
    fs::create_dir(&backend).unwrap();
    repo.git_in(&backend, ["init", "-q"]).succeeds();
    let folder = backend.display().to_string();
    repo.git(["config", "arborist.runners.claude.sandbox.write", &folder]).succeeds();
    fs::write(repo.root().join("secret"), "for nobody").unwrap();
    let args = [
        "arborist".to_owned(),
        "tools".into(),
        "--root".into(),
        format!("app={}", repo.path("").display()),
        "--root".into(),
        format!("backend={}", backend.display()),
        "--command".into(),
        "backend:run-tests=ls src".into(),
    ];
    let servers = json!({ "mcpServers": { "arborist": { "command": "git", "args": args } } });
    program::write(repo, "servers.json", &servers.to_string());
    let file = repo.home().join("servers.json").display().to_string();
    let words = [
        "claude",
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
        "--mcp-config",
        &file,
        "--model",
        "{model}",
    ];
    let command = format!("[timeouts]\nrunner = 90\n[runners.claude]\ncommand = {words:?}\n");
    program::write(repo, ".config/git-arborist/config.toml", &command);
    scene.gardener_with(&["--json"]).succeeds().out("wrote T001.txt").out("wrote src/T001.rs");
    for task in TASKS {
        assert_eq!(repo.read(&format!("{task}.txt")), format!("{task}\n"));
        assert_eq!(
            fs::read_to_string(backend.join(format!("src/{task}.rs"))).unwrap(),
            format!("// {task}\n")
        );
        let heard = scene.model.conversations_about(task);
        assert!(heard.contains("leads upwards"), "{heard}");
        assert!(heard.contains(&format!("src/{task}.rs:1: // {task}")), "{heard}");
        assert!(heard.contains("'ls src' succeeded"), "{heard}");
        assert!(!heard.contains("for nobody"));
    }
}
