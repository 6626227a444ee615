//! `git arborist session`: sessions are recorded, listed and shown.

use arborist_testkit::{TaskCommit, TestRepo};
use serde_json::Value;

fn begin(repo: &TestRepo) -> String {
    repo.arborist(["session", "start", "--pipeline", "mine"]).answer()
}

fn json(repo: &TestRepo, args: &[&str]) -> Value {
    let args = ["session"].iter().chain(args).chain(&["--json"]);
    serde_json::from_str(&repo.arborist(args).answer()).unwrap()
}

#[test]
fn an_external_driver_records_a_session_from_start_to_end() {
    let repo = TestRepo::init();
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    let id = begin(&repo);
    assert_eq!(json(&repo, &["list"])["sessions"][0]["state"], "open");
    repo.wait(60);
    repo.write("a", "a");
    let commit = repo.commit("a\n");
    repo.arborist(["session", "checkpoint", "--session", &id, "--node", "T1"]).succeeds().silent();
    let shown = json(&repo, &["show", &id]);
    assert_eq!(shown["checkpoint"]["node"], "T1");
    assert_eq!(shown["checkpoint"]["snapshot"]["repo"], commit.as_str());
    assert_eq!(shown["repositories"][0]["base"], base.as_str());
    repo.arborist(["session", "checkpoint", "--session", &id, "--node", "T1"]).succeeds();
    let shown = json(&repo, &["show", &id]);
    assert_eq!(shown["checkpoint"]["snapshot"], serde_json::json!({}), "only where something changed");
    repo.arborist(["session", "end", "--session", &id, "-m", "that was it"]).succeeds();
    let list = repo.arborist(["session", "list"]).succeeds().out(&id).out("complete").out("session ");
    assert!(list.stdout().contains("main"), "{}", list.stdout());
    repo.arborist(["session", "show", &id]).succeeds().matches_snapshot();
    repo.arborist(["session", "checkpoint", "--session", &id]).exits(1).matches_snapshot();
}

#[test]
fn a_record_keeps_the_commit_that_it_is_about_reachable() {
    let repo = TestRepo::init();
    let id = begin(&repo);
    repo.write("a", "a");
    let commit = repo.commit("a\n");
    repo.arborist(["session", "checkpoint", "--session", &id]).succeeds();
    let name = format!("refs/arborist/sessions/{id}");
    assert_eq!(repo.git(["rev-parse", &format!("{name}^2")]).answer(), commit);
    assert_eq!(repo.git(["ls-tree", &name]).answer(), "", "it has no files");
    let body = repo.git(["log", "-1", "--format=%b", &name]).answer();
    let record: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&record["kind"], &record["sequence"]), (&Value::from("checkpoint"), &Value::from(1)));
}

#[test]
fn session_ids_may_be_abbreviated_and_wrong_ids_are_explained() {
    let repo = TestRepo::init();
    for id in ["ab12", "ab34"] {
        assert_eq!(repo.arborist(["session", "start", "--id", id]).answer(), id);
    }
    repo.arborist(["session", "show", "ab1"]).succeeds().matches_snapshot();
    repo.arborist(["session", "show", "ab"]).exits(1).matches_snapshot();
    repo.arborist(["session", "show", "x"]).exits(1).matches_snapshot();
    repo.arborist(["session", "start", "--id", "ab12"]).exits(1).matches_snapshot();
    repo.arborist(["session", "show", "ab1", "--turn", "1"]).exits(1).matches_snapshot();
    repo.arborist(["session", "show", "ab1", "--patch"]).exits(129);
}

#[test]
fn commands_say_so_if_no_session_is_recorded() {
    let repo = TestRepo::init();
    repo.arborist(["session", "list"]).succeeds().silent().matches_snapshot();
    assert_eq!(json(&repo, &["list"])["sessions"], serde_json::json!([]));
    repo.arborist(["session", "which", "HEAD"]).exits(1).matches_snapshot();
    repo.arborist(["session", "which", "nonsense"]).exits(1).matches_snapshot();
}

#[test]
fn session_which_ignores_a_commit_that_names_a_missing_session() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.commit(TaskCommit::new("T1", "implement-pass").trailer("Session", "s1").to_string());
    repo.arborist(["session", "which", "HEAD"]).exits(1).matches_snapshot();
    repo.arborist(["session", "start", "--id", "s1"]).succeeds();
    repo.arborist(["session", "which", "HEAD"]).succeeds().matches_snapshot();
}

#[test]
fn records_are_written_only_on_the_branch_of_their_session() {
    let repo = TestRepo::init();
    let id = begin(&repo);
    repo.git(["switch", "-q", "-c", "other"]).succeeds();
    repo.arborist(["session", "end", "--session", &id]).exits(2).matches_snapshot();
    repo.git(["switch", "-q", "--detach"]).succeeds();
    repo.arborist(["session", "start"]).exits(128).matches_snapshot();
}

#[test]
fn invalid_refs_among_the_session_records_are_reported_and_not_read() {
    let repo = TestRepo::init();
    let id = begin(&repo);
    repo.git(["update-ref", "refs/arborist/sessions/fake", "HEAD"]).succeeds();
    repo.git(["update-ref", "refs/arborist/sessions/copy", &format!("refs/arborist/sessions/{id}")])
        .succeeds();
    repo.arborist(["session", "list"])
        .succeeds()
        .out(&id)
        .err("refs/arborist/sessions/fake' cannot be read")
        .err(&format!("it belongs to session '{id}'"));
}
