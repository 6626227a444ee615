//! What `git arborist workspace` says is so: what is not pushed is not called pushed, and one bad repository hides no other.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::{fs, os::unix::fs::symlink};

use arborist_testkit::Garden;
use serde_json::Value;

/// A repository with a remote that has its first commit and lacks two more.
fn ahead() -> Garden {
    let garden = Garden::sprout();
    garden.git_in(garden.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
    garden.git(["remote", "add", "origin", "../origin.git"]).succeeds();
    garden.git(["fetch", "-q"]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.remote", "origin"]).succeeds();
    for _ in 0..2 {
        garden.git(["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
    }
    garden
}

#[test]
fn commits_that_no_push_of_ours_takes_along_are_told() {
    let garden = ahead();
    garden.arborist(["workspace", "status"]).succeeds().out("main is 2 ahead of origin").never("pushed");
    let printed = garden.arborist(["workspace", "status", "--json"]).answer();
    let row = &serde_json::from_str::<Value>(&printed).unwrap()["repositories"][0];
    assert_eq!((&row["pushed"], &row["unpushed_checkout"]), (&Value::Bool(false), &Value::from(2)));
    let words =
        "app: nothing of ours to push: no session or task branches; 2 commits of 'main' are not at origin";
    garden.arborist(["workspace", "push"]).succeeds().out(words).never("everything");
    garden.git(["push", "-q", "origin", "main"]).succeeds();
    garden.arborist(["workspace", "status"]).succeeds().out("pushed").never("ahead of");
    garden.arborist(["workspace", "push"]).succeeds().out("no session or task branches\n");
}

#[test]
fn a_remote_that_is_gone_is_not_said_to_have_everything() {
    let garden = ahead();
    fs::rename(garden.root().join("origin.git"), garden.root().join("gone")).unwrap();
    let push =
        garden.arborist(["workspace", "push"]).exits(1).err("'app' was not pushed: 'origin' could not be");
    assert_eq!(push.stdout(), "");
}

#[test]
fn a_bad_repository_hides_no_other() {
    let garden = Garden::sprout();
    garden.git_in(garden.root(), ["init", "-q", "-b", "main", "zoo"]).succeeds();
    garden.git_in(&garden.root().join("zoo"), ["commit", "-q", "--allow-empty", "-m", "first"]).succeeds();
    symlink("nowhere", garden.root().join("link")).unwrap();
    for (name, path) in [("link", "../link"), ("zoo", "../zoo")] {
        garden.git(["config", &format!("arborist.workspace.repos.{name}.path"), path]).succeeds();
    }
    let words = "is a link to nothing, so 'link' cannot be used";
    garden.arborist(["workspace", "status"]).exits(1).err(words).out("link  unusable").out("zoo   main");
    let shown = garden.arborist(["workspace", "status", "--json"]).exits(1);
    let document: Value = serde_json::from_str(&shown.stdout()).unwrap();
    assert!(document["repositories"][1]["error"].as_str().unwrap().contains("link to nothing"));
    garden.arborist(["workspace", "sync"]).exits(1).err(words).out("zoo: no remote");
    garden.arborist(["workspace", "foreach", "pwd"]).exits(1).err(words).out("/zoo\n");
}

#[test]
fn a_mistyped_key_is_told_with_the_one_that_was_meant() {
    let garden = Garden::sprout();
    let write = |key: &str| {
        garden.write(".arborist/config.toml", format!("[workspace.repos.a-long-name]\n{key} = \"x\"\n"));
    };
    write("pth");
    garden
        .arborist(["workspace", "status"])
        .exits(128)
        .err("did you mean 'workspace.repos.a-long-name.path'?");
    write("elsewhere");
    let told = garden.arborist(["workspace", "status"]).exits(128).err("workspace.repos.a-long-name.remote");
    assert!(!told.stderr().contains("timeouts."), "only those beside it: {}", told.stderr());
}
