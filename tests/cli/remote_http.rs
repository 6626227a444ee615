//! Runs whose remotes are web servers: `git http-backend` serves them; and one that asks for a password, refuses, hangs or
//! vanishes costs a warning and no work.

use std::fs;

use crate::http_server::{HttpServer, MANNER, set_server_behavior};
use crate::test_workspace::{TestWorkspace, remotes::WORKER};
use arborist_testkit::Terminal;

#[test]
fn a_run_with_http_remotes_can_be_resumed_from_a_new_clone() {
    let workspace = TestWorkspace::of_remotes();
    let Some(server) = HttpServer::start(&workspace) else { return };
    workspace.use_remotes(|repo| server.url(repo), "on_checkpoint");
    fs::remove_dir_all(workspace.clone_of("repo")).unwrap();
    fs::remove_dir_all(workspace.clone_of("backend")).unwrap();
    workspace.git_in(workspace.root(), ["clone", "-q", &server.url("repo"), "repo"]).succeeds();
    let run = workspace.arborist(["gardener", "--max-retries", "1"]).exits(1);
    run.err("cloned 'backend' from http://127.0.0.1").never("warning: 'app' was not pushed");
    assert!(workspace.has("repo", "T001.txt") && workspace.has("backend", "T002.txt"));
    workspace.delete_container();
    workspace.let_tests_pass();
    workspace.git_in(workspace.root(), ["clone", "-q", &server.url("repo"), "repo"]).succeeds();
    let resumed = workspace.arborist(["session", "resume"]).succeeds().out("1 completed (T003)");
    resumed.err("session refs from").err("cloned 'backend' from http://127.0.0.1");
    assert!(workspace.has("repo", "T003.txt"));
    workspace.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
    workspace
        .arborist(["workspace", "sync"])
        .succeeds()
        .out("app: fetched from")
        .out("backend: fetched from");
}

/// All the time from the first fetch to the last push. Gives what the run said.
#[track_caller]
fn expect_warning_and_later_push(manner: &str, why: &str) -> Option<String> {
    let workspace = TestWorkspace::of_remotes();
    let server = HttpServer::start(&workspace)?;
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| server.url(repo), "on_completion");
    set_server_behavior(workspace.root(), manner);
    if manner == "hang" {
        workspace.set_network_timeout(2);
    }
    let run = workspace.arborist(["gardener", "--until", "T001"]).succeeds().out("1 completed");
    let run = run
        .err("offline: the remote of 'app' could not be reached")
        .err(why)
        .err("'backend' was not pushed: 'http");
    let resumed = workspace.arborist(["session", "resume"]).succeeds().out("2 completed (T002, T003)");
    resumed.err("offline: could not ask the remote for sessions (").err(why);
    workspace.arborist(["state"]).succeeds().out("app: unpushed by ").out("backend: unpushed by ");
    assert_eq!((workspace.pushed("repo"), workspace.pushed("backend")), (Vec::new(), Vec::new()));
    workspace.arborist(["workspace", "push"]).exits(1).err("'app' was not pushed").err(why);
    set_server_behavior(workspace.root(), "");
    workspace.set_network_timeout(60);
    workspace.arborist(["workspace", "push"]).succeeds();
    assert!(workspace.has("repo", "T003.txt") && workspace.has("backend", "T002.txt"));
    workspace.arborist(["state"]).succeeds().never("unpushed");
    Some(run.stderr())
}

#[test]
fn a_web_server_that_asks_for_a_password_causes_a_warning() {
    let said = expect_warning_and_later_push("401", "terminal prompts disabled");
    let hint = "hint: git is not allowed to ask on the terminal: sign in with a credential helper";
    assert!(said.is_none_or(|said| said.matches(hint).count() == 1));
}

#[test]
fn a_web_server_that_refuses_requests_causes_a_warning() {
    expect_warning_and_later_push("403", "403");
}

#[test]
fn a_web_server_that_hangs_causes_a_warning() {
    expect_warning_and_later_push("hang", "no answer for 2 s");
}

/// Whoever sits at a terminal is not asked either.
#[test]
fn a_web_server_that_asks_for_a_password_causes_no_prompt_on_a_terminal() {
    let workspace = TestWorkspace::of_remotes();
    let Some(server) = HttpServer::start(&workspace) else { return };
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| server.url(repo), "on_checkpoint");
    set_server_behavior(workspace.root(), "401");
    let mut command = workspace.command("git", &workspace.path(""));
    command.args(["arborist", "gardener"]);
    let (code, _, written) = Terminal::start(command, 120).ends();
    assert!(code == 0 && written.contains("3 completed"), "{written}");
    assert!(!written.lines().any(|line| line.starts_with("Username for")), "{written}");
}

#[test]
fn a_web_server_that_ends_between_fetch_and_push_causes_a_warning_and_loses_no_work() {
    let workspace = TestWorkspace::of_remotes();
    let Some(server) = HttpServer::start(&workspace) else { return };
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| server.url(repo), "on_completion");
    let vanish = format!("case \"$prompt\" in *T002:*) printf gone > \"$ROOT/{MANNER}\" ;; esac");
    workspace.agent(&format!("{vanish}\n{WORKER}"));
    let run = workspace.arborist(["gardener"]).succeeds().out("3 completed").never("offline");
    run.err("warning: 'app' was not pushed").err("warning: 'backend' was not pushed");
    workspace
        .arborist(["state", "--exit-code"])
        .succeeds()
        .out("app: unpushed by ")
        .out("backend: unpushed by ");
    set_server_behavior(workspace.root(), "");
    let again = HttpServer::start(&workspace).unwrap();
    workspace.use_remotes(|repo| again.url(repo), "on_completion");
    workspace.arborist(["workspace", "push"]).succeeds();
    assert!(workspace.has("repo", "T003.txt") && workspace.has("backend", "T002.txt"));
    workspace.arborist(["state"]).succeeds().never("unpushed");
}
