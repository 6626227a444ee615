//! `hooks status`: where each hook stands, for people and for machines.

use std::fs;

use arborist_testkit::Garden;
use serde_json::Value;

fn status(garden: &Garden) -> Value {
    let printed = garden.arborist(["hooks", "status", "--json"]).answer();
    serde_json::from_str(&printed).unwrap()
}

fn commit_msg(garden: &Garden) -> Value {
    status(garden)["hooks"][0].clone()
}

#[test]
fn every_situation_has_its_word() {
    let garden = Garden::sprout();
    assert_eq!(commit_msg(&garden)["state"], "missing");

    garden.write_script(".git/hooks/commit-msg", "#!/bin/sh\n");
    garden.arborist(["hooks", "install", "commit-msg"]).succeeds();
    let hook = commit_msg(&garden);
    assert_eq!(hook["state"], "installed");
    assert!(hook["chained"].as_str().unwrap().ends_with("commit-msg.pre-arborist"));
    assert!(hook["binary"].as_str().unwrap().ends_with("/git-arborist-hooks"));

    garden.git(["config", "core.hooksPath", "elsewhere"]).succeeds();
    let hook = commit_msg(&garden);
    assert_eq!(hook["state"], "shadowed");
    assert!(hook["note"].as_str().unwrap().contains("core.hooksPath (local) makes git look in"));
    assert_eq!(status(&garden)["hooks_path_scope"], "local");
    garden.git(["config", "--unset", "core.hooksPath"]).succeeds();

    fs::set_permissions(
        garden.path(".git/hooks/commit-msg"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    let hook = commit_msg(&garden);
    assert_eq!(hook["state"], "shadowed");
    assert!(hook["note"].as_str().unwrap().contains("may not be executed"));
    garden.arborist(["hooks", "install", "commit-msg"]).succeeds();
    assert_eq!(commit_msg(&garden)["state"], "installed");

    garden.write(".git/hooks/commit-msg", garden.read(".git/hooks/commit-msg") + "true\n");
    assert_eq!(commit_msg(&garden)["state"], "edited");
}

#[test]
fn a_hooks_path_of_one_command_is_seen() {
    let garden = Garden::sprout();
    garden
        .git(["-c", "core.hooksPath=/x", "arborist", "hooks", "status"])
        .succeeds()
        .out("'/x' (core.hooksPath, command)");
}

#[test]
fn asking_runs_nothing_that_the_repository_brings_along() {
    let garden = Garden::sprout();
    let trap = format!("#!/bin/sh\ntouch '{}'\n", garden.path("sprung").display());
    for hook in ["commit-msg", "pre-push", "update", "post-index-change", "reference-transaction"] {
        garden.write_script(&format!(".git/hooks/{hook}"), &trap);
    }
    garden.write_script("trap", &trap);
    let here = garden.path("trap").display().to_string();
    garden.git(["config", "core.fsmonitor", &here]).succeeds();
    garden.arborist(["hooks", "status"]).succeeds();
    garden.arborist(["hooks", "install", "-n"]).succeeds();
    assert!(!garden.path("sprung").exists());
    assert!(garden.git(["hook", "run", "commit-msg"]).code() == 0 && garden.path("sprung").exists());
}

#[test]
fn outside_of_a_repository_there_is_one_clear_line() {
    let garden = Garden::sprout();
    garden.arborist_in(garden.root(), ["hooks", "status"]).exits(128).err("not a git repository").silent();
}

#[test]
fn a_hook_that_refuses_before_ours_is_named_by_the_test() {
    let garden = Garden::sprout();
    garden.write_script(".git/hooks/commit-msg", "#!/bin/sh\necho 'I never agree' >&2\nexit 1\n");
    garden.arborist(["hooks", "install"]).succeeds();
    garden
        .arborist(["hooks", "test"])
        .exits(1)
        .out("commit-msg: another hook refused before ours was asked")
        .out("pre-push: fires")
        .err("I never agree");
}
