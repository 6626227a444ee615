//! `git arborist session`: sessions are recorded, listed and shown.

use arborist_testkit::{Garden, TaskCommit};
use serde_json::Value;

fn begin(garden: &Garden) -> String {
    garden.arborist(["session", "start", "--pipeline", "mine"]).answer()
}

fn json(garden: &Garden, args: &[&str]) -> Value {
    let args = ["session"].iter().chain(args).chain(&["--json"]);
    serde_json::from_str(&garden.arborist(args).answer()).unwrap()
}

#[test]
fn a_session_of_another_driver_is_recorded_from_its_start_to_its_end() {
    let garden = Garden::sprout();
    let base = garden.git(["rev-parse", "HEAD"]).answer();
    let id = begin(&garden);
    assert_eq!(json(&garden, &["list"])["sessions"][0]["state"], "open");
    garden.wait(60);
    garden.write("a", "a");
    let commit = garden.commit("a\n");
    garden.arborist(["session", "checkpoint", "--session", &id, "--node", "T1"]).succeeds().silent();
    let shown = json(&garden, &["show", &id]);
    assert_eq!(shown["checkpoint"]["node"], "T1");
    assert_eq!(shown["checkpoint"]["snapshot"]["repo"], commit.as_str());
    assert_eq!(shown["repositories"][0]["base"], base.as_str());
    garden.arborist(["session", "checkpoint", "--session", &id, "--node", "T1"]).succeeds();
    let shown = json(&garden, &["show", &id]);
    assert_eq!(shown["checkpoint"]["snapshot"], serde_json::json!({}), "only where something changed");
    garden.arborist(["session", "end", "--session", &id, "-m", "that was it"]).succeeds();
    let list = garden.arborist(["session", "list"]).succeeds().out(&id).out("complete").out("session ");
    assert!(list.stdout().contains("main"), "{}", list.stdout());
    garden.arborist(["session", "show", &id]).succeeds().shows();
    garden.arborist(["session", "checkpoint", "--session", &id]).exits(1).shows();
}

#[test]
fn a_record_holds_the_code_that_it_is_about() {
    let garden = Garden::sprout();
    let id = begin(&garden);
    garden.write("a", "a");
    let commit = garden.commit("a\n");
    garden.arborist(["session", "checkpoint", "--session", &id]).succeeds();
    let name = format!("refs/arborist/sessions/{id}");
    assert_eq!(garden.git(["rev-parse", &format!("{name}^2")]).answer(), commit);
    assert_eq!(garden.git(["ls-tree", &name]).answer(), "", "it has no files");
    let body = garden.git(["log", "-1", "--format=%b", &name]).answer();
    let record: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&record["kind"], &record["sequence"]), (&Value::from("checkpoint"), &Value::from(1)));
}

#[test]
fn an_id_may_be_given_in_part_and_what_is_wrong_with_it_is_said() {
    let garden = Garden::sprout();
    for id in ["ab12", "ab34"] {
        assert_eq!(garden.arborist(["session", "start", "--id", id]).answer(), id);
    }
    garden.arborist(["session", "show", "ab1"]).succeeds().shows();
    garden.arborist(["session", "show", "ab"]).exits(1).shows();
    garden.arborist(["session", "show", "x"]).exits(1).shows();
    garden.arborist(["session", "start", "--id", "ab12"]).exits(1).shows();
    garden.arborist(["session", "show", "ab1", "--turn", "1"]).exits(1).shows();
    garden.arborist(["session", "show", "ab1", "--patch"]).exits(129);
}

#[test]
fn where_nothing_is_recorded_that_is_said() {
    let garden = Garden::sprout();
    garden.arborist(["session", "list"]).succeeds().silent().shows();
    assert_eq!(json(&garden, &["list"])["sessions"], serde_json::json!([]));
    garden.arborist(["session", "which", "HEAD"]).exits(1).shows();
    garden.arborist(["session", "which", "nonsense"]).exits(128).shows();
}

#[test]
fn a_commit_that_names_a_session_that_is_not_here_is_not_believed() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.commit(TaskCommit::new("T1", "implement-pass").trailer("Session", "s1").to_string());
    garden.arborist(["session", "which", "HEAD"]).exits(1).shows();
    garden.arborist(["session", "start", "--id", "s1"]).succeeds();
    garden.arborist(["session", "which", "HEAD"]).succeeds().shows();
}

#[test]
fn records_are_written_only_where_their_session_works() {
    let garden = Garden::sprout();
    let id = begin(&garden);
    garden.git(["switch", "-q", "-c", "other"]).succeeds();
    garden.arborist(["session", "end", "--session", &id]).exits(2).shows();
    garden.git(["switch", "-q", "--detach"]).succeeds();
    garden.arborist(["session", "start"]).exits(128).shows();
}

#[test]
fn what_others_put_among_the_records_is_told_and_not_read() {
    let garden = Garden::sprout();
    let id = begin(&garden);
    garden.git(["update-ref", "refs/arborist/sessions/fake", "HEAD"]).succeeds();
    garden
        .git(["update-ref", "refs/arborist/sessions/copy", &format!("refs/arborist/sessions/{id}")])
        .succeeds();
    garden
        .arborist(["session", "list"])
        .succeeds()
        .out(&id)
        .err("refs/arborist/sessions/fake' cannot be read")
        .err(&format!("it is of session '{id}'"));
}
