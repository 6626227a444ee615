//! An agent program that no longer has the session it is to continue is called once more without it.

use crate::{
    session_repo::can_resume,
    turn_scripts::{agent, repo},
};
use arborist_testkit::TestRepo;

const WORK: &str = "opens\ncalls 1 \"I add b\"; echo b > b; answers 1\nends done\n";

/// A session whose driver was killed, resumed by an agent that runs `lost` when it is given a session id.
fn resumed(lost: &str) -> (TestRepo, arborist_testkit::Run) {
    let repo = repo("claude", "opens\ncalls 1 \"I add a\"; echo a > a; answers 1\nkill -9 $PPID\nexit 1\n");
    assert_ne!(repo.arborist(["gardener"]).code(), 0);
    let list = repo.arborist(["session", "list", "--json"]).answer();
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
    agent(
        &repo,
        "claude",
        &format!("echo \"call $1\" >> \"$ROOT/calls\"\n[ -z \"$1\" ] || {{ {lost}\n}}\n{WORK}"),
    );
    can_resume(&repo);
    let run = repo.arborist(["session", "resume", &id, "--", "--max-retries", "1"]);
    (repo, run)
}

#[test]
fn a_lost_agent_session_uses_up_no_attempt_for_any_error_of_the_program() {
    for lost in [
        "echo 'No conversation found with session ID: s-1' >&2; exit 1",
        r#"printf '{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s-2","errors":["No conversation found with session ID: s-1"]}\n'; exit 1"#,
        "echo 'Error: no rollout found for thread id s-1' >&2; exit 1",
        "echo 'Error resuming session: Invalid session identifier \"s-1\"' >&2; exit 42",
        "echo 'session does not exist' >&2; exit 1",
        "exit 1",
    ] {
        let (repo, run) = resumed(lost);
        run.succeeds();
        assert_eq!(repo.read("../calls"), "call s-1\ncall \n", "{lost}");
        let log = repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@implement-fail").count(), 1, "only the kill is recorded: {log}");
        assert!(log.starts_with("task(main@T001@complete)"), "{log}");
    }
}

#[test]
fn an_agent_that_continued_its_session_and_failed_uses_up_an_attempt() {
    let (repo, run) = resumed("opens; calls 1 'I try'; echo c > c; answers 1; exit 1");
    run.exits(1);
    assert_eq!(repo.read("../calls"), "call s-1\n");
    assert!(repo.git(["log", "-1", "--format=%s"]).answer().contains("@failed)"));
}

#[test]
fn a_program_that_fails_without_its_session_too_is_not_called_a_third_time() {
    let (repo, run) =
        resumed("echo 'No conversation found with session ID: s-1' >&2; exit 1; }\nfalse || {\nexit 1");
    run.exits(1);
    assert_eq!(repo.read("../calls"), "call s-1\ncall \n");
}
