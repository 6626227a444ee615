//! What a session takes up again when it is resumed, which one is meant, and what is refused before anything is written.

use std::fs;

use crate::session_repo::sessions;
use arborist_testkit::{TestRepo, WORKER};
use serde_json::Value;

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER)
}

fn id(session: &Value) -> String {
    session["id"].as_str().unwrap().to_owned()
}

fn records(repo: &TestRepo, id: &str) -> String {
    repo.git(["rev-list", "--count", &format!("refs/arborist/sessions/{id}")]).answer()
}

/// A session on a branch of its own whose test command fails.
fn failed(more: &[&str]) -> (TestRepo, String) {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let run = ["gardener", "--session-branch", "--test-command", "test -f mended", "--max-retries", "1"];
    repo.arborist(run.iter().chain(more)).exits(1);
    let id = id(&sessions(&repo)[0]);
    (repo, id)
}

#[test]
fn resume_uses_the_test_command_that_failed_before() {
    let (repo, id) = failed(&[]);
    repo.arborist(["session", "resume", &id]).exits(1);
    assert_eq!(sessions(&repo)[0]["state"], "failed");
    repo.arborist(["session", "resume", &id, "--", "--test-command", "true"]).succeeds();
    assert_eq!(sessions(&repo)[0]["state"], "complete");
}

#[test]
fn resume_uses_the_recorded_review_runner_and_limits() {
    let (repo, id) = failed(&[
        "--review-runner", "demo", "--max-tokens", "900", "--max-task-time", "80", "--max-cost", "2",
    ]);
    let start = repo.git(["log", "--format=%B", &format!("refs/arborist/sessions/{id}")]).answer();
    for (name, value) in [
        ("review-runner", "demo"),
        ("max-tokens", "900"),
        ("max-task-time", "80"),
        ("max-cost", "2"),
        ("test-command", "test -f mended"),
    ] {
        assert!(start.contains(&format!("\"{name}\":\"{value}\"")), "{name}: {start}");
    }
    // Nobody but the demo approves: it is asked again.
    repo.agent("case \"$prompt\" in \"Review\"*) echo REJECTED: no ;; *) touch mended; echo done ;; esac\n");
    repo.arborist(["session", "resume", &id]).succeeds();
}

#[test]
fn a_recorded_test_command_runs_only_if_it_was_approved_on_this_machine() {
    let (repo, id) = failed(&[]);
    fs::remove_dir_all(repo.home().join(".local/state/git-arborist/approved")).unwrap();
    let before = records(&repo, &id);
    repo.arborist(["session", "resume", &id]).exits(2).matches_snapshot();
    assert_eq!(records(&repo, &id), before);
    repo.arborist(["session", "replay", &id, "--turn", "0"]).exits(2).matches_snapshot();
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n");
    repo.arborist(["session", "resume", &id, "--yes"]).exits(2).matches_snapshot();
    let given = ["session", "resume", &id, "--", "--test-command", "test -f mended"];
    repo.arborist(given).succeeds();
}

#[test]
fn resume_refuses_wrong_options_before_it_writes_anything() {
    let (repo, id) = failed(&[]);
    let before = records(&repo, &id);
    repo.arborist(["session", "resume", &id, "--", "--nonsense"]).exits(129).matches_snapshot();
    assert_eq!(records(&repo, &id), before);
    assert_eq!(sessions(&repo)[0]["state"], "failed");
    repo.arborist(["session", "resume", &id, "--", "--retry-failed", "--isolate"]).exits(1);
}

#[test]
fn resume_without_an_id_needs_exactly_one_unfinished_session() {
    let (repo, first) = failed(&[]);
    repo.arborist(["session", "resume"]).exits(1).err(&format!("continuing session '{first}'"));
    let again =
        ["gardener", "--session-branch", "--new-run", "--test-command", "false", "--max-retries", "1"];
    repo.arborist(again).exits(1);
    let second = sessions(&repo).iter().map(id).find(|id| *id != first).unwrap();
    let said = repo.arborist(["session", "resume"]).exits(2).matches_snapshot();
    said.err(&first).err(&second);
    repo.arborist(["session", "resume", &second, "--", "--test-command=true"]).succeeds();
    repo.arborist(["session", "resume", "--", "--test-command=true"]).succeeds();
}

#[test]
fn a_session_that_may_run_in_another_clone_is_resumed_only_by_id() {
    let repo = repo();
    repo.agent("touch half; kill -9 $PPID; sleep 60\n");
    repo.arborist(["gardener", "--session-branch"]).exits(137);
    let id = id(&sessions(&repo)[0]);
    repo.agent(WORKER);
    let clone = repo.path("../clone");
    let from = repo.path("");
    repo.git_in(repo.root(), ["clone", "-q", from.to_str().unwrap(), clone.to_str().unwrap()]).succeeds();
    let fetch = [
        "fetch",
        "-q",
        "origin",
        "refs/arborist/*:refs/arborist/*",
        "refs/heads/arborist/*:refs/heads/arborist/*",
    ];
    repo.git_in(&clone, fetch).succeeds();
    let said = repo.arborist_in(&clone, ["session", "resume"]).exits(2);
    said.err("may be running on another machine").err(&format!("session resume {id}"));
    repo.arborist_in(&clone, ["session", "resume", &id]).succeeds();
}

/// The records of the clone begin with T002, but T001 belongs to the same run.
#[test]
fn a_replay_in_a_clone_keeps_the_tasks_that_were_complete_before_its_records_begin() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n", WORKER);
    repo.arborist(["gardener", "--until", "T001", "--test-command=true"]).succeeds();
    let (clone, from) = (repo.path("../clone"), repo.path(""));
    repo.git_in(repo.root(), ["clone", "-q", from.to_str().unwrap(), clone.to_str().unwrap()]).succeeds();
    repo.arborist_in(&clone, ["gardener", "--test-command=true"]).succeeds();
    let id = id(&sessions(&repo)[0]);
    for turn in ["0", "1"] {
        let replay = ["session", "replay", &id, "--turn", turn, "--", "--test-command=true"];
        let said = repo.arborist_in(&clone, replay).succeeds();
        said.out("1 completed (T002)").never("T001 ").never("begins again");
    }
}

/// A session that is complete, and merged into `main`.
fn merged() -> (TestRepo, String) {
    let repo = repo();
    repo.arborist(["gardener", "--session-branch"]).succeeds();
    let branch = sessions(&repo)[0]["branch"].as_str().unwrap().to_owned();
    repo.git(["merge", "-q", &branch]).succeeds();
    (repo, branch)
}

#[test]
fn a_plan_whose_session_was_merged_is_repeated_only_with_new_run() {
    let (repo, branch) = merged();
    let (head, calls) = (repo.git(["rev-parse", "HEAD"]).answer(), repo.calls());
    let said = repo.arborist(["gardener"]).succeeds().out("nothing is left to do").err("--new-run");
    said.out(&format!("the run of '{branch}' completed all tasks"));
    assert_eq!((repo.git(["rev-parse", "HEAD"]).answer(), repo.calls()), (head, calls));
    repo.arborist(["garden", "T001"]).exits(2);
    repo.arborist(["gardener", "--session-branch"]).succeeds().matches_snapshot();
    repo.arborist(["gardener", "--new-run"]).succeeds().matches_snapshot();
}

#[test]
fn a_run_stops_if_the_plan_grew_after_its_session_was_merged() {
    let (repo, branch) = merged();
    repo.write("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n");
    repo.commit("another task\n");
    let said = repo.arborist(["gardener"]).exits(2);
    said.err(&branch).err("plan --tick").err("--new-run");
    repo.arborist(["state"]).succeeds().out("main: 0 of 2 done");
}

#[test]
fn a_branch_shows_the_state_of_a_merged_session_until_it_has_its_own_run() {
    let (repo, branch) = merged();
    let said = repo.arborist(["state"]).succeeds().matches_snapshot();
    said.out("1 of 1 done").out("merged into main").never("hint");
    repo.arborist(["state", "--exit-code"]).succeeds();
    assert_eq!(
        repo.arborist(["state", "--json"]).answer(),
        repo.arborist(["state", "--json", "--scope", &branch]).answer()
    );
    // Its worktree still has it checked out.
    repo.git(["update-ref", "-d", &format!("refs/heads/{branch}")]).succeeds();
    repo.arborist(["state"]).succeeds().out("merged into main");
    repo.arborist(["gardener", "--new-run", "--dry-run"]).succeeds();
    repo.agent("exit 1\n");
    repo.arborist(["gardener", "--new-run", "--max-retries", "1"]).exits(1);
    repo.arborist(["state"]).succeeds().out("main: 0 of 1 done").never("merged into");
}

#[test]
fn session_which_finds_a_turn_for_commits_of_agents_that_report_none() {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    let commit = repo.git(["log", "-1", "--format=%H", "--", "T001.txt"]).answer();
    repo.arborist(["session", "which", &commit]).succeeds().matches_snapshot();
    let start = repo.git(["log", "-1", "--format=%H", "--grep=run-start"]).answer();
    repo.arborist(["session", "which", &start]).succeeds().never("turn");
}

#[test]
fn an_interrupted_new_run_prints_the_command_that_continues_it() {
    let repo = repo();
    repo.agent("echo half > half; kill -INT $PPID; sleep 60\n");
    let said = repo.arborist(["gardener", "--session-branch", "--new-run"]).exits(130);
    let id = id(&sessions(&repo)[0]);
    said.err(&format!("hint: run 'git arborist session resume {id}' to continue")).never("same command");
    repo.agent(WORKER);
    let said = repo.arborist(["gardener", "--session-branch"]).succeeds();
    said.err(&format!("continuing session '{id}'"));
}

/// Killed between the first record and the start of the run.
#[test]
fn a_session_killed_before_its_run_start_is_continued_by_gardener() {
    let (repo, id) = failed(&[]);
    let branch = sessions(&repo)[0]["branch"].as_str().unwrap().to_owned();
    let place = repo.path(&format!("../repo.arborist/session-{id}"));
    repo.git(["worktree", "remove", "-f", "-f", place.to_str().unwrap()]).succeeds();
    let records = format!("refs/arborist/sessions/{id}");
    let first = format!("--grep=^session {id}: start");
    let start = repo.git(["log", "-1", "--first-parent", "--format=%H", &first, &records]).answer();
    repo.git(["update-ref", &records, &start]).succeeds();
    repo.git(["branch", "-f", &branch, "main"]).succeeds();
    repo.arborist(["session", "resume", &id]).exits(2).matches_snapshot();
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) touch mended; echo done ;; esac\n");
    repo.arborist(["gardener", "--session-branch"]).succeeds().err(&format!("continuing session '{id}'"));
}

#[test]
fn the_recorded_test_command_takes_precedence_over_the_configured_one() {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let begin = ["gardener", "--max-retries", "1", "--test-command", "test -f mended"];
    repo.arborist(begin).exits(1);
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    let again = repo.arborist(["gardener", "--retry-failed", "--max-retries", "1"]).exits(1);
    again.matches_snapshot();
    assert_eq!(sessions(&repo)[0]["state"], "failed");
}
