//! Conflicts of `git arborist merge` in the hands of a person: a worktree with the merge in it, and back into the queue.

use std::{fs, path::PathBuf};

use crate::orchard::content;
use arborist_testkit::{Garden, TaskCommit};

#[test]
fn people_may_want_to_resolve_everything_themselves() {
    let orchard = content();
    orchard.agent("echo both > a.txt");
    orchard.git(["config", "arborist.merge.assist", "false"]).succeeds();
    orchard.merge(&["T2"]).exits(2).shows();
    assert_eq!(orchard.calls(), 0);
}

#[test]
fn a_person_resolves_it_in_a_worktree_and_the_result_is_merged_and_tested() {
    let orchard = content();
    orchard.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    orchard.merge(&["resolve", "T2"]).exits(1).shows();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("<<<<<<<"));
    orchard.merge(&["resolve", "T2"]).exits(1).shows();
    orchard.branch_off("T3", "complete");
    orchard.merge(&["T3"]).succeeds();
    fs::write(place.join("a.txt"), "both\n").unwrap();
    orchard.git_in(&place, ["add", "a.txt"]).succeeds();
    orchard.merge(&["resolve", "T2"]).succeeds().shows();
    assert!(!place.exists());
    assert_eq!(orchard.show("main", "a.txt"), "both");
    assert_eq!(orchard.show("main", "T3.txt"), "T3");
    let trailers = orchard.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Resolved-By: person"), "{trailers}");
    orchard.merge(&["log"]).succeeds().shows();
    orchard.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn what_was_resolved_is_taken_back_where_it_was_resolved() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let opened = orchard.merge(&["resolve", "T2"]).succeeds().shows();
    let place = PathBuf::from(opened.stdout().trim_end());
    orchard.arborist_in(&place, ["merge", "status", "T2"]).exits(2).shows();
    fs::write(place.join("a.txt"), "both\n").unwrap();
    let said = orchard.arborist_in(&place, ["merge", "resolve", "T2"]).succeeds();
    let main = orchard.path("").canonicalize().unwrap();
    said.out("1 landed (T2)").err(&format!("cd '{}'", main.display())).never("still there");
    assert!(!place.exists());
    assert_eq!(orchard.git(["worktree", "list", "--porcelain"]).answer().matches("worktree ").count(), 1);
    assert_eq!(orchard.show("main", "a.txt"), "both");
}

#[test]
fn runs_that_both_have_the_task_have_a_place_each() {
    let orchard = content();
    orchard.git(["checkout", "-q", "-b", "other"]).succeeds();
    orchard.run_start("other", "s2");
    orchard.git(["checkout", "-q", "-b", "arborist/task/other/T2"]).succeeds();
    orchard.write("a.txt", "their others\n");
    let done = TaskCommit::new("T2", "complete").branch("other").trailer("Session", "s2");
    orchard.commit_complete(&done);
    orchard.git(["checkout", "-q", "other"]).succeeds();
    orchard.write("a.txt", "our others\n");
    orchard.commit("meanwhile\n");
    orchard.git(["checkout", "-q", "main"]).succeeds();
    orchard.merge(&["T2", "--scope", "other"]).exits(2).shows();
    orchard.merge(&["resolve", "T2"]).exits(1).shows();
    let other = |verb: &str| orchard.merge(&[verb, "T2", "--scope", "other"]);
    orchard.merge(&["T2"]).exits(2);
    other("status").exits(2).shows();
    let first = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(first.join("a.txt"), "by hand\n").unwrap();
    let opened = other("resolve").succeeds().never("is kept under");
    let second = PathBuf::from(opened.stdout().trim_end());
    assert_ne!(first, second);
    assert_eq!(fs::read_to_string(first.join("a.txt")).unwrap(), "by hand\n");
    orchard.merge(&["resolve", "T2"]).succeeds().shows().never("still there");
    fs::write(second.join("a.txt"), "other hands\n").unwrap();
    orchard.arborist_in(&second, ["merge", "resolve", "T2"]).succeeds().shows();
    assert_eq!(orchard.show("main", "a.txt"), "by hand");
    assert_eq!(orchard.show("other", "a.txt"), "other hands");
}

#[test]
fn what_a_person_began_stays_while_an_agent_tries() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    orchard.agent("echo more >> a.txt");
    orchard.merge(&["retry", "T2"]).succeeds();
    orchard.merge(&["run"]).exits(2).shows();
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "by hand\n");
    orchard.merge(&["resolve", "T2"]).succeeds().shows();
    assert_eq!(orchard.show("main", "a.txt"), "by hand");
}

#[test]
fn what_a_person_left_is_saved_before_another_merge_takes_its_place() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    orchard.on_branch("T2", |orchard| {
        orchard.write("a.txt", "theirs again\n");
        orchard.finish("T2");
    });
    orchard.merge(&["run"]).exits(2);
    orchard.merge(&["resolve", "T2"]).succeeds().shows();
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("theirs again"));
    let saved = orchard.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(orchard.show(&saved, "a.txt"), "by hand");
}

#[test]
fn a_place_for_a_person_goes_when_nobody_needs_it_any_more() {
    for is_touched in [false, true] {
        let orchard = content();
        orchard.merge(&["T2"]).exits(2);
        let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
        if is_touched {
            fs::write(place.join("a.txt"), "half\n").unwrap();
        }
        orchard.agent("echo both > a.txt");
        orchard.merge(&["retry", "T2"]).succeeds();
        let landed = orchard.merge(&["run"]).succeeds().shows();
        assert_eq!(place.exists(), is_touched);
        if is_touched {
            landed.shows();
            assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "half\n");
        }
    }
}

#[test]
fn what_an_agent_resolved_stays_called_so_when_a_person_resolves_the_next_conflict() {
    let orchard = content();
    orchard.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    let gate = "test -e \"$HOME/ready\" || exit 127";
    orchard.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    orchard.merge(&["T2"]).exits(2).shows();
    orchard.write("a.txt", "ours again\n");
    orchard.commit("meanwhile\n");
    fs::write(orchard.home().join("ready"), "").unwrap();
    orchard.git(["config", "arborist.merge.assist", "false"]).succeeds();
    orchard.merge(&["run"]).exits(2).shows();
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "all\n").unwrap();
    orchard.merge(&["resolve", "T2"]).succeeds().shows();
    let trailers = orchard.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Resolved-By: agent robot"), "{trailers}");
}

#[test]
fn a_resolution_by_hand_lands_with_one_command_and_without_a_review() {
    for reviewer in [None, Some("echo 'REJECTED: never'")] {
        let orchard = content();
        reviewer.into_iter().for_each(|script| Garden::agent(&orchard, script));
        orchard.git(["config", "arborist.merge.assist", "false"]).succeeds();
        orchard.merge(&["T2"]).exits(2);
        let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
        fs::write(place.join("a.txt"), "by hand\n").unwrap();
        let document = orchard.merge(&["resolve", "T2", "--json"]).answer();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["state"], "taken");
        assert_eq!(document["landing"]["outcomes"][0]["outcome"], "landed");
        assert_eq!(orchard.show("main", "a.txt"), "by hand");
        assert_eq!(orchard.calls(), 0, "nobody else decides on it");
    }
}

#[test]
fn a_conflict_with_another_branch_than_the_runs_own_is_resolved_only_if_the_command_names_it() {
    let orchard = content();
    orchard.git(["branch", "release", "main"]).succeeds();
    orchard.merge(&["add", "T2", "--into", "release"]).succeeds();
    orchard.merge(&["run", "--into", "release"]).exits(2);
    orchard.merge(&["resolve", "T2"]).exits(1);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2", "--into", "release"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    orchard.merge(&["resolve", "T2"]).exits(1);
    orchard.merge(&["resolve", "T2", "--into", "release"]).succeeds();
    assert_eq!(orchard.show("release", "a.txt"), "by hand");
    assert_eq!(orchard.show("main", "a.txt"), "ours");
}

#[test]
fn files_that_were_not_in_conflict_land_with_a_resolution_only_if_that_is_approved() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "both\n").unwrap();
    fs::write(place.join("kept.txt"), "changed\n").unwrap();
    fs::write(place.join("new.txt"), "new\n").unwrap();
    let before = orchard.git(["rev-parse", "main"]).answer();
    let said = orchard.merge(&["resolve", "T2"]).exits(1);
    said.err("kept.txt").err("new.txt").err("resolve T2 --yes");
    let document = orchard.merge(&["resolve", "T2", "--json"]).exits(1).stdout();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["state"], "other-files");
    assert_eq!(document["other_files"], serde_json::json!(["kept.txt", "new.txt"]));
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), before);
    assert_eq!(fs::read_to_string(place.join("kept.txt")).unwrap(), "changed\n");
    orchard.merge(&["resolve", "T2", "--yes"]).succeeds().err("kept.txt");
    assert_eq!(orchard.show("main", "kept.txt"), "changed");
    assert_eq!(orchard.show("main", "new.txt"), "new");
}

#[test]
fn a_resolution_lands_without_approval_once_the_other_files_are_put_back() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "both\n").unwrap();
    fs::write(place.join("new.txt"), "new\n").unwrap();
    orchard.merge(&["resolve", "T2"]).exits(1);
    fs::remove_file(place.join("new.txt")).unwrap();
    orchard.merge(&["resolve", "T2"]).succeeds();
    assert_eq!(orchard.show("main", "a.txt"), "both");
}
