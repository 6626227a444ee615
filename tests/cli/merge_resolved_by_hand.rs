//! Conflicts of `git arborist merge` in the hands of a person: a worktree with the merge in it, and back into the queue.

use std::{fs, path::PathBuf};

use crate::{
    pasted_hints::{hinted, paste},
    queue_repo::{QueueRepo, content},
};
use arborist_testkit::{TaskCommit, TestRepo};

#[test]
fn with_merge_assist_off_no_agent_is_called_for_a_conflict() {
    let repo = content();
    repo.agent("echo both > a.txt");
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2).matches_snapshot();
    assert_eq!(repo.calls(), 0);
}

#[test]
fn a_resolution_by_hand_in_a_worktree_is_merged_and_tested() {
    let repo = content();
    repo.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    repo.merge(&["resolve", "T2"]).exits(1).matches_snapshot();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("<<<<<<<"));
    repo.merge(&["resolve", "T2"]).exits(1).matches_snapshot();
    repo.branch_off("T3", "complete");
    repo.merge(&["T3"]).succeeds();
    fs::write(place.join("a.txt"), "both\n").unwrap();
    repo.git_in(&place, ["add", "a.txt"]).succeeds();
    repo.merge(&["resolve", "T2"]).succeeds().matches_snapshot();
    assert!(!place.exists());
    assert_eq!(repo.show("main", "a.txt"), "both");
    assert_eq!(repo.show("main", "T3.txt"), "T3");
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Resolved-By: person"), "{trailers}");
    repo.merge(&["log"]).succeeds().matches_snapshot();
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn merge_resolve_can_be_completed_from_inside_its_worktree() {
    let repo = content();
    repo.merge(&["T2"]).exits(2);
    let opened = repo.merge(&["resolve", "T2"]).succeeds().matches_snapshot();
    let place = PathBuf::from(opened.stdout().trim_end());
    repo.arborist_in(&place, ["merge", "status", "T2"]).exits(2).matches_snapshot();
    fs::write(place.join("a.txt"), "both\n").unwrap();
    let said = repo.arborist_in(&place, ["merge", "resolve", "T2"]).succeeds();
    let main = repo.path("").canonicalize().unwrap();
    said.out("1 landed (T2)").err(&format!("cd '{}'", main.display())).never("still there");
    assert!(!place.exists());
    assert_eq!(repo.git(["worktree", "list", "--porcelain"]).answer().matches("worktree ").count(), 1);
    assert_eq!(repo.show("main", "a.txt"), "both");
}

#[test]
fn two_runs_with_the_same_task_get_separate_resolution_worktrees() {
    let repo = content();
    repo.git(["checkout", "-q", "-b", "other"]).succeeds();
    repo.run_start("other", "s2");
    repo.git(["checkout", "-q", "-b", "arborist/task/other/T2"]).succeeds();
    repo.write("a.txt", "their others\n");
    let done = TaskCommit::new("T2", "complete").branch("other").trailer("Session", "s2");
    repo.commit_complete(&done);
    repo.git(["checkout", "-q", "other"]).succeeds();
    repo.write("a.txt", "our others\n");
    repo.commit("meanwhile\n");
    repo.git(["checkout", "-q", "main"]).succeeds();
    repo.merge(&["T2", "--scope", "other"]).exits(2).matches_snapshot();
    repo.merge(&["resolve", "T2"]).exits(1).matches_snapshot();
    let other = |verb: &str| repo.merge(&[verb, "T2", "--scope", "other"]);
    repo.merge(&["T2"]).exits(2);
    other("status").exits(2).matches_snapshot();
    let first = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(first.join("a.txt"), "by hand\n").unwrap();
    let opened = other("resolve").succeeds().never("are kept as");
    let second = PathBuf::from(opened.stdout().trim_end());
    assert_ne!(first, second);
    assert_eq!(fs::read_to_string(first.join("a.txt")).unwrap(), "by hand\n");
    repo.merge(&["resolve", "T2"]).succeeds().matches_snapshot().never("still there");
    fs::write(second.join("a.txt"), "other hands\n").unwrap();
    repo.arborist_in(&second, ["merge", "resolve", "T2"]).succeeds().matches_snapshot();
    assert_eq!(repo.show("main", "a.txt"), "by hand");
    assert_eq!(repo.show("other", "a.txt"), "other hands");
}

#[test]
fn a_resolution_begun_by_hand_survives_an_attempt_of_an_agent() {
    let repo = content();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    repo.agent("echo more >> a.txt");
    repo.merge(&["retry", "T2"]).succeeds();
    repo.merge(&["run"]).exits(2).matches_snapshot();
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "by hand\n");
    repo.merge(&["resolve", "T2"]).succeeds().matches_snapshot();
    assert_eq!(repo.show("main", "a.txt"), "by hand");
}

#[test]
fn an_outdated_resolution_by_hand_is_saved_before_a_new_merge_replaces_it() {
    let repo = content();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    repo.on_branch("T2", |repo| {
        repo.write("a.txt", "theirs again\n");
        repo.finish("T2");
    });
    repo.merge(&["run"]).exits(2);
    repo.merge(&["resolve", "T2"]).succeeds().matches_snapshot();
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("theirs again"));
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(repo.show(&saved, "a.txt"), "by hand");
}

#[test]
fn an_unneeded_resolution_worktree_is_removed_unless_it_was_changed() {
    for is_touched in [false, true] {
        let repo = content();
        repo.merge(&["T2"]).exits(2);
        let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
        if is_touched {
            fs::write(place.join("a.txt"), "half\n").unwrap();
        }
        repo.agent("echo both > a.txt");
        repo.merge(&["retry", "T2"]).succeeds();
        let landed = repo.merge(&["run"]).succeeds().matches_snapshot();
        assert_eq!(place.exists(), is_touched);
        if is_touched {
            landed.matches_snapshot();
            assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "half\n");
        }
    }
}

#[test]
fn the_trailer_still_names_the_agent_if_a_person_resolves_the_next_conflict() {
    let repo = content();
    repo.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    let gate = "test -e \"$HOME/ready\" || exit 127";
    repo.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    repo.merge(&["T2"]).exits(2).matches_snapshot();
    repo.write("a.txt", "ours again\n");
    repo.commit("meanwhile\n");
    fs::write(repo.home().join("ready"), "").unwrap();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["run"]).exits(2).matches_snapshot();
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "all\n").unwrap();
    repo.merge(&["resolve", "T2"]).succeeds().matches_snapshot();
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Resolved-By: agent robot"), "{trailers}");
}

#[test]
fn a_resolution_by_hand_lands_with_one_command_and_without_a_review() {
    for reviewer in [None, Some("echo 'REJECTED: never'")] {
        let repo = content();
        reviewer.into_iter().for_each(|script| TestRepo::agent(&repo, script));
        repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
        repo.merge(&["T2"]).exits(2);
        let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
        fs::write(place.join("a.txt"), "by hand\n").unwrap();
        let document = repo.merge(&["resolve", "T2", "--json"]).answer();
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["state"], "taken");
        assert_eq!(document["landing"]["outcomes"][0]["outcome"], "landed");
        assert_eq!(repo.show("main", "a.txt"), "by hand");
        assert_eq!(repo.calls(), 0, "nobody else decides on it");
    }
}

#[test]
fn a_conflict_with_another_target_is_resolved_only_if_the_command_names_the_target() {
    let repo = content();
    repo.git(["branch", "release", "main"]).succeeds();
    repo.merge(&["add", "T2", "--into", "release"]).succeeds();
    repo.merge(&["run", "--into", "release"]).exits(2);
    repo.merge(&["resolve", "T2"]).exits(1);
    let place = PathBuf::from(repo.merge(&["resolve", "T2", "--into", "release"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    repo.merge(&["resolve", "T2"]).exits(1);
    repo.merge(&["resolve", "T2", "--into", "release"]).succeeds();
    assert_eq!(repo.show("release", "a.txt"), "by hand");
    assert_eq!(repo.show("main", "a.txt"), "ours");
}

#[test]
fn changes_to_files_without_conflict_land_with_a_resolution_only_if_approved() {
    let repo = content();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "both\n").unwrap();
    fs::write(place.join("kept.txt"), "changed\n").unwrap();
    fs::write(place.join("new.txt"), "new\n").unwrap();
    let before = repo.git(["rev-parse", "main"]).answer();
    let said = repo.merge(&["resolve", "T2"]).exits(1);
    said.err("kept.txt").err("new.txt").err("resolve T2 --yes");
    let document = repo.merge(&["resolve", "T2", "--json"]).exits(1).stdout();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["state"], "other-files");
    assert_eq!(document["other_files"], serde_json::json!(["kept.txt", "new.txt"]));
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), before);
    assert_eq!(fs::read_to_string(place.join("kept.txt")).unwrap(), "changed\n");
    repo.merge(&["resolve", "T2", "--yes"]).succeeds().err("kept.txt");
    assert_eq!(repo.show("main", "kept.txt"), "changed");
    assert_eq!(repo.show("main", "new.txt"), "new");
}

#[test]
fn a_resolution_lands_without_approval_once_the_other_files_are_restored() {
    let repo = content();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "both\n").unwrap();
    fs::write(place.join("new.txt"), "new\n").unwrap();
    repo.merge(&["resolve", "T2"]).exits(1);
    fs::remove_file(place.join("new.txt")).unwrap();
    repo.merge(&["resolve", "T2"]).succeeds();
    assert_eq!(repo.show("main", "a.txt"), "both");
}

/// Two tasks that conflict with one that has landed.
fn two_conflicts() -> QueueRepo {
    let repo = content();
    repo.git(["branch", "arborist/task/main/T3", "arborist/task/main/T2~4"]).succeeds();
    repo.on_branch("T3", |repo| {
        repo.write("a.txt", "others\n");
        repo.finish("T3");
    });
    repo.merge(&["T2", "T3"]).exits(2).out("T2").out("T3");
    repo
}

#[test]
fn a_conflict_of_another_task_does_not_fail_a_resolution() {
    let repo = two_conflicts();
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "both\n").unwrap();
    repo.merge(&["resolve", "T2"]).succeeds().out("1 landed (T2)").never("T3");
    repo.merge(&["status"]).exits(2).out("T3");
}

#[test]
fn a_task_that_is_reset_is_no_longer_queued() {
    let repo = two_conflicts();
    repo.arborist(["reset", "T2"]).succeeds().matches_snapshot();
    repo.merge(&["status"]).exits(2).out("T3").never("T2");
    repo.arborist(["reset", "T3"]).succeeds();
    repo.merge(&["status"]).succeeds().out("nothing is queued");
}

#[test]
fn a_resolution_by_hand_on_top_of_an_agents_is_kept_when_a_gate_fails() {
    let repo = content();
    repo.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    let gate = "test -e \"$HOME/ready\" || exit 127; ! grep -q bad a.txt";
    repo.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    repo.merge(&["T2"]).exits(2);
    repo.write("a.txt", "ours again\n");
    repo.commit("meanwhile\n");
    fs::write(repo.home().join("ready"), "").unwrap();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["run"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand, but bad\n").unwrap();
    let refused = repo.merge(&["resolve", "T2"]).exits(2);
    refused.err("the gate 'check' failed on your resolution of T2").err("correct it in");
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "by hand, but bad\n");
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    repo.merge(&["resolve", "T2"]).succeeds();
    assert_eq!(repo.show("main", "a.txt"), "by hand");
}

/// A conflict that is resolved in its worktree, with a new file that had no conflict.
fn resolved_with_new_file() -> (QueueRepo, PathBuf) {
    let repo = content();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "both\n").unwrap();
    fs::write(place.join("new.txt"), "new\n").unwrap();
    (repo, place)
}

#[test]
fn a_resolution_that_changes_other_files_is_not_taken_if_it_would_be_parked() {
    for changed in ["a.txt", "new.txt"] {
        let (repo, place) = resolved_with_new_file();
        repo.write(changed, "mine\n");
        let said = repo.merge(&["resolve", "T2", "--yes"]).exits(2).never("land too");
        let why = format!("in your checkout of main, changed files are in the way ({changed})");
        let said = said.err(&why).stderr();
        repo.merge(&["status"]).exits(2).out("T2    conflict");
        assert_eq!(fs::read_to_string(place.join("new.txt")).unwrap(), "new\n");
        assert_eq!(repo.git(["for-each-ref", "refs/arborist/landing"]).answer(), "");
        repo.git(["stash", "-qu"]).succeeds();
        paste(&repo, &hinted(&said, "commit or stash your changes, then run: "))
            .succeeds()
            .out("1 landed (T2)");
        assert_eq!(repo.show("main", "new.txt"), "new");
    }
}

#[test]
fn a_resolution_that_changes_other_files_is_not_taken_if_the_target_conflicts_with_it() {
    let (repo, place) = resolved_with_new_file();
    repo.write("a.txt", "mine\n");
    repo.commit("mine\n");
    let said = repo.merge(&["resolve", "T2", "--yes"]).exits(2).never("land too");
    said.err("error: 'main' has changed since you opened the conflict of 'T2'")
        .err("(delete new files): new.txt");
    assert_eq!(fs::read_to_string(place.join("new.txt")).unwrap(), "new\n");
    fs::remove_file(place.join("new.txt")).unwrap();
    repo.merge(&["resolve", "T2"]).exits(2).err("it is kept");
}
