//! Runs whose remotes are web servers: `git http-backend` serves them; and one that asks for a password, refuses, hangs or
//! vanishes costs a warning and no work.

use std::fs;

use crate::town::{Town, remotes::WORKER};
use crate::web::{MANNER, Web, behave};
use arborist_testkit::Terminal;

#[test]
fn a_web_server_serves_a_run_and_the_container_that_goes_on_with_it() {
    let town = Town::of_remotes();
    let Some(web) = Web::start(&town) else { return };
    town.use_remotes(|repo| web.url(repo), "on_checkpoint");
    fs::remove_dir_all(town.clone_of("repo")).unwrap();
    fs::remove_dir_all(town.clone_of("backend")).unwrap();
    town.git_in(town.root(), ["clone", "-q", &web.url("repo"), "repo"]).succeeds();
    let run = town.arborist(["gardener", "--max-retries", "1"]).exits(1);
    run.err("cloned 'backend' from http://127.0.0.1").never("warning: 'app' was not pushed");
    assert!(town.has("repo", "T001.txt") && town.has("backend", "T002.txt"));
    town.vanish();
    town.mend();
    town.git_in(town.root(), ["clone", "-q", &web.url("repo"), "repo"]).succeeds();
    let resumed = town.arborist(["session", "resume"]).succeeds().out("1 completed (T003)");
    resumed.err("refs of sessions from").err("cloned 'backend' from http://127.0.0.1");
    assert!(town.has("repo", "T003.txt"));
    town.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
    town.arborist(["workspace", "sync"]).succeeds().out("app: fetched from").out("backend: fetched from");
}

/// All the time from the first fetch to the last push. Gives what the run said.
#[track_caller]
fn costs_a_warning(manner: &str, why: &str) -> Option<String> {
    let town = Town::of_remotes();
    let web = Web::start(&town)?;
    town.mend();
    town.use_remotes(|repo| web.url(repo), "on_completion");
    behave(town.root(), manner);
    let run = town.arborist(["gardener", "--until", "T001"]).succeeds().out("1 completed");
    let run = run
        .err("offline: the remote of 'app' could not be reached")
        .err(why)
        .err("'backend' was not pushed: 'http");
    let resumed = town.arborist(["session", "resume"]).succeeds().out("2 completed (T002, T003)");
    resumed.err("offline: what the remote has of sessions is not known").err(why);
    town.arborist(["state"]).succeeds().out("app: unpushed by ").out("backend: unpushed by ");
    assert_eq!((town.pushed("repo"), town.pushed("backend")), (Vec::new(), Vec::new()));
    town.arborist(["workspace", "push"]).exits(1).err("'app' was not pushed").err(why);
    behave(town.root(), "");
    town.arborist(["workspace", "push"]).succeeds();
    assert!(town.has("repo", "T003.txt") && town.has("backend", "T002.txt"));
    town.arborist(["state"]).succeeds().never("unpushed");
    Some(run.stderr())
}

#[test]
fn one_that_wants_a_password_costs_a_warning() {
    let said = costs_a_warning("401", "terminal prompts disabled");
    let hint = "hint: nothing is asked on the terminal: sign in with a credential helper";
    assert!(said.is_none_or(|said| said.matches(hint).count() == 1));
}

#[test]
fn one_that_refuses_costs_a_warning() {
    costs_a_warning("403", "403");
}

#[test]
fn one_that_hangs_costs_a_warning() {
    costs_a_warning("hang", "it said nothing for 2 s");
}

/// Whoever sits at a terminal is not asked either.
#[test]
fn one_that_wants_a_password_asks_nobody_at_a_terminal() {
    let town = Town::of_remotes();
    let Some(web) = Web::start(&town) else { return };
    town.mend();
    town.use_remotes(|repo| web.url(repo), "on_checkpoint");
    behave(town.root(), "401");
    let mut command = town.command("git", &town.path(""));
    command.args(["arborist", "gardener"]);
    let (code, _, written) = Terminal::start(command, 120).ends();
    assert!(code == 0 && written.contains("3 completed"), "{written}");
    assert!(!written.lines().any(|line| line.starts_with("Username for")), "{written}");
}

#[test]
fn one_that_vanishes_between_fetch_and_push_costs_a_warning_and_no_work() {
    let town = Town::of_remotes();
    let Some(web) = Web::start(&town) else { return };
    town.mend();
    town.use_remotes(|repo| web.url(repo), "on_completion");
    let vanish = format!("case \"$prompt\" in *T002:*) printf gone > \"$ROOT/{MANNER}\" ;; esac");
    town.agent(&format!("{vanish}\n{WORKER}"));
    let run = town.arborist(["gardener"]).succeeds().out("3 completed").never("offline");
    run.err("warning: 'app' was not pushed").err("warning: 'backend' was not pushed");
    town.arborist(["state", "--exit-code"]).succeeds().out("app: unpushed by ").out("backend: unpushed by ");
    behave(town.root(), "");
    let again = Web::start(&town).unwrap();
    town.use_remotes(|repo| again.url(repo), "on_completion");
    town.arborist(["workspace", "push"]).succeeds();
    assert!(town.has("repo", "T003.txt") && town.has("backend", "T002.txt"));
    town.arborist(["state"]).succeeds().never("unpushed");
}
