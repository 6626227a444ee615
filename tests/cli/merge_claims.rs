//! Claims of `git arborist merge`: one drains a target at a time, and what the dead claimed is taken over.

use std::{
    fs,
    process::{Child, Stdio},
    time::Duration,
};

use crate::queue_repo::{QueueRepo, before_git};
use arborist_testkit::Run;
use serde_json::{Value, json};

const CLAIM: &str = "refs/arborist/claims/main";

/// What somebody on another machine has claimed, as the message of a commit.
fn claim_of_another_machine() -> String {
    let holder = json!({ "pid": 7, "host": "elsewhere", "started": "1", "boot": "another" });
    let claim = json!({ "into": "main", "holder": holder, "since": 1739716222, "until": 1739716822 });
    format!("claim: main\n\n{claim}\n")
}

fn claims(repo: &QueueRepo) -> String {
    repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/claims"]).answer()
}

/// A drain that waits in its gate until `go` is there.
fn drain_that_waits(repo: &QueueRepo) -> Child {
    let root = repo.root().display().to_string();
    let gate = format!("touch '{root}/there'; until test -e '{root}/go'; do sleep 0.05; done");
    repo.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    let mut command = repo.command("git-arborist-merge", &repo.path(""));
    let quiet = command.args(["run", "--scope", "main"]).stdin(Stdio::null()).stdout(Stdio::null());
    let child = quiet.stderr(Stdio::null()).spawn().unwrap();
    while !repo.root().join("there").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn a_claim_of_another_machine_is_respected_until_it_expires() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let claim = repo.commit_object(&tree, &[], claim_of_another_machine());
    repo.git(["update-ref", CLAIM, &claim]).succeeds();
    repo.merge(&["run"]).exits(3).matches_snapshot();
    repo.merge(&["list"]).succeeds().matches_snapshot();
    let status: Value = serde_json::from_str(&repo.merge(&["status", "--json"]).answer()).unwrap();
    assert_eq!((&status["drains"][0]["into"], &status["drains"][0]["process"]), (&"main".into(), &7.into()));
    assert!(repo.subjects("main").is_empty());
    repo.wait(601);
    repo.merge(&["list"]).succeeds().never("landed on by");
    repo.merge(&["run"]).succeeds().matches_snapshot();
    assert_eq!(claims(&repo), "", "it is given back");
}

#[test]
fn a_claim_that_was_written_just_before_ours_wins() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let claim = repo.commit_object(&tree, &[], claim_of_another_machine());
    before_git(&repo, "update-ref", &format!("git update-ref {CLAIM} {claim}"));
    let mut command = repo.command("git-arborist-merge", &repo.path(""));
    let run = Run::of(command.args(["run", "--scope", "main"]), b"");
    fs::remove_file(repo.bin().join("git")).unwrap();
    run.exits(3).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", CLAIM]).answer(), claim, "it is not theirs to take away");
    assert!(repo.subjects("main").is_empty());
}

#[test]
fn the_claim_of_a_dead_process_is_taken_over_at_once() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let mut child = drain_that_waits(&repo);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(claims(&repo), CLAIM, "it could not give it back");
    repo.merge(&["list"]).succeeds().never("landed on by");
    fs::write(repo.root().join("go"), "").unwrap();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    assert_eq!(claims(&repo), "");
}

#[test]
fn a_live_process_keeps_its_claim_even_if_its_locks_are_deleted() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let mut child = drain_that_waits(&repo);
    let who = format!("process {} on ", child.id());
    repo.merge(&["status"]).succeeds().out(&who);
    fs::remove_dir_all(repo.path(".git/arborist/locks")).unwrap();
    repo.merge(&["run"])
        .exits(3)
        .err(&format!("another process is already landing on 'main': process {} on ", child.id()));
    fs::write(repo.root().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(repo.subjects("main").len(), 1);
    assert_eq!(claims(&repo), "");
}
