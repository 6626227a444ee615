//! Runs whose remotes are web servers: `git http-backend` serves them; and one that asks for a password, refuses, hangs or
//! vanishes costs a warning and no work.

use std::fs;

use crate::http_server::{HttpServer, MANNER, behave};
use crate::test_workspace::{TestWorkspace, remotes::WORKER};
use arborist_testkit::Terminal;

#[test]
fn a_web_server_serves_a_run_and_the_container_that_goes_on_with_it() {
    let workspace = TestWorkspace::of_remotes();
    let Some(server) = HttpServer::start(&workspace) else { return };
    workspace.use_remotes(|repo| server.url(repo), "on_checkpoint");
    fs::remove_dir_all(workspace.clone_of("repo")).unwrap();
    fs::remove_dir_all(workspace.clone_of("backend")).unwrap();
    workspace.git_in(workspace.root(), ["clone", "-q", &server.url("repo"), "repo"]).succeeds();
    let run = workspace.arborist(["gardener", "--max-retries", "1"]).exits(1);
    run.err("cloned 'backend' from http://127.0.0.1").never("warning: 'app' was not pushed");
    assert!(workspace.has("repo", "T001.txt") && workspace.has("backend", "T002.txt"));
    workspace.vanish();
    workspace.mend();
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
fn costs_a_warning(manner: &str, why: &str) -> Option<String> {
    let workspace = TestWorkspace::of_remotes();
    let server = HttpServer::start(&workspace)?;
    workspace.mend();
    workspace.use_remotes(|repo| server.url(repo), "on_completion");
    behave(workspace.root(), manner);
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
    behave(workspace.root(), "");
    workspace.set_network_timeout(60);
    workspace.arborist(["workspace", "push"]).succeeds();
    assert!(workspace.has("repo", "T003.txt") && workspace.has("backend", "T002.txt"));
    workspace.arborist(["state"]).succeeds().never("unpushed");
    Some(run.stderr())
}

#[test]
fn one_that_wants_a_password_costs_a_warning() {
    let said = costs_a_warning("401", "terminal prompts disabled");
    let hint = "hint: git is not allowed to ask on the terminal: sign in with a credential helper";
    assert!(said.is_none_or(|said| said.matches(hint).count() == 1));
}

#[test]
fn one_that_refuses_costs_a_warning() {
    costs_a_warning("403", "403");
}

#[test]
fn one_that_hangs_costs_a_warning() {
    costs_a_warning("hang", "no answer for 2 s");
}

/// Whoever sits at a terminal is not asked either.
#[test]
fn one_that_wants_a_password_asks_nobody_at_a_terminal() {
    let workspace = TestWorkspace::of_remotes();
    let Some(server) = HttpServer::start(&workspace) else { return };
    workspace.mend();
    workspace.use_remotes(|repo| server.url(repo), "on_checkpoint");
    behave(workspace.root(), "401");
    let mut command = workspace.command("git", &workspace.path(""));
    command.args(["arborist", "gardener"]);
    let (code, _, written) = Terminal::start(command, 120).ends();
    assert!(code == 0 && written.contains("3 completed"), "{written}");
    assert!(!written.lines().any(|line| line.starts_with("Username for")), "{written}");
}

#[test]
fn one_that_vanishes_between_fetch_and_push_costs_a_warning_and_no_work() {
    let workspace = TestWorkspace::of_remotes();
    let Some(server) = HttpServer::start(&workspace) else { return };
    workspace.mend();
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
    behave(workspace.root(), "");
    let again = HttpServer::start(&workspace).unwrap();
    workspace.use_remotes(|repo| again.url(repo), "on_completion");
    workspace.arborist(["workspace", "push"]).succeeds();
    assert!(workspace.has("repo", "T003.txt") && workspace.has("backend", "T002.txt"));
    workspace.arborist(["state"]).succeeds().never("unpushed");
}
