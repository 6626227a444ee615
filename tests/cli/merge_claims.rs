//! Claims of `git arborist merge`: one drains a target at a time, and what the dead claimed is taken over.

use std::{
    fs,
    process::{Child, Stdio},
    time::Duration,
};

use crate::orchard::{Orchard, before_git};
use arborist_testkit::Run;
use serde_json::{Value, json};

const CLAIM: &str = "refs/arborist/claims/main";

/// What somebody on another machine has claimed, as the message of a commit.
fn foreign_claim() -> String {
    let holder = json!({ "pid": 7, "host": "elsewhere", "started": "1", "boot": "another" });
    let claim = json!({ "into": "main", "holder": holder, "since": 1739716222, "until": 1739716822 });
    format!("claim: main\n\n{claim}\n")
}

fn claims(orchard: &Orchard) -> String {
    orchard.git(["for-each-ref", "--format=%(refname)", "refs/arborist/claims"]).answer()
}

/// A drain that waits in its gate until `go` is there.
fn drain_that_waits(orchard: &Orchard) -> Child {
    let root = orchard.root().display().to_string();
    let gate = format!("touch '{root}/there'; until test -e '{root}/go'; do sleep 0.05; done");
    orchard.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    let mut command = orchard.command("git-arborist-merge", &orchard.path(""));
    let quiet = command.args(["run", "--scope", "main"]).stdin(Stdio::null()).stdout(Stdio::null());
    let child = quiet.stderr(Stdio::null()).spawn().unwrap();
    while !orchard.root().join("there").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[test]
fn what_somebody_elsewhere_claims_is_theirs_until_their_lease_runs_out() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let tree = orchard.git(["rev-parse", "HEAD^{tree}"]).answer();
    let claim = orchard.commit_object(&tree, &[], foreign_claim());
    orchard.git(["update-ref", CLAIM, &claim]).succeeds();
    orchard.merge(&["run"]).exits(3).shows();
    orchard.merge(&["list"]).succeeds().shows();
    let status: Value = serde_json::from_str(&orchard.merge(&["status", "--json"]).answer()).unwrap();
    assert_eq!((&status["drains"][0]["into"], &status["drains"][0]["process"]), (&"main".into(), &7.into()));
    assert!(orchard.subjects("main").is_empty());
    orchard.wait(601);
    orchard.merge(&["list"]).succeeds().never("landed on by");
    orchard.merge(&["run"]).succeeds().shows();
    assert_eq!(claims(&orchard), "", "it is given back");
}

#[test]
fn whoever_claims_in_between_is_first() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let tree = orchard.git(["rev-parse", "HEAD^{tree}"]).answer();
    let claim = orchard.commit_object(&tree, &[], foreign_claim());
    before_git(&orchard, "update-ref", &format!("git update-ref {CLAIM} {claim}"));
    let mut command = orchard.command("git-arborist-merge", &orchard.path(""));
    let run = Run::of(command.args(["run", "--scope", "main"]), b"");
    fs::remove_file(orchard.bin().join("git")).unwrap();
    run.exits(3).shows();
    assert_eq!(orchard.git(["rev-parse", CLAIM]).answer(), claim, "it is not theirs to take away");
    assert!(orchard.subjects("main").is_empty());
}

#[test]
fn what_the_dead_claimed_is_taken_over_at_once() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let mut child = drain_that_waits(&orchard);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(claims(&orchard), CLAIM, "it could not give it back");
    orchard.merge(&["list"]).succeeds().never("landed on by");
    fs::write(orchard.root().join("go"), "").unwrap();
    orchard.merge(&["run"]).succeeds().shows();
    assert_eq!(claims(&orchard), "");
}

#[test]
fn a_living_one_keeps_its_claim_even_if_its_locks_are_deleted() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let mut child = drain_that_waits(&orchard);
    let who = format!("main is landed on by process {} on ", child.id());
    orchard.merge(&["status"]).succeeds().out(&who);
    fs::remove_dir_all(orchard.path(".git/arborist/locks")).unwrap();
    orchard.merge(&["run"]).exits(3).err(&format!("'main' is drained by process {} on ", child.id()));
    fs::write(orchard.root().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(orchard.subjects("main").len(), 1);
    assert_eq!(claims(&orchard), "");
}
