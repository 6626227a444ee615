//! `hooks status`: where each hook stands, for people and for machines.

use std::fs;

use arborist_testkit::TestRepo;
use serde_json::Value;

fn status(repo: &TestRepo) -> Value {
    let printed = repo.arborist(["hooks", "status", "--json"]).answer();
    serde_json::from_str(&printed).unwrap()
}

fn commit_msg(repo: &TestRepo) -> Value {
    status(repo)["hooks"][0].clone()
}

#[test]
fn status_names_each_state_of_a_hook() {
    let repo = TestRepo::init();
    assert_eq!(commit_msg(&repo)["state"], "missing");

    repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\n");
    repo.arborist(["hooks", "install", "commit-msg"]).succeeds();
    let hook = commit_msg(&repo);
    assert_eq!(hook["state"], "installed");
    assert!(hook["chained"].as_str().unwrap().ends_with("commit-msg.pre-arborist"));
    assert!(hook["binary"].as_str().unwrap().ends_with("/git-arborist-hooks"));

    repo.git(["config", "core.hooksPath", "elsewhere"]).succeeds();
    let hook = commit_msg(&repo);
    assert_eq!(hook["state"], "shadowed");
    assert!(hook["note"].as_str().unwrap().contains("(core.hooksPath, local), so this one does not run"));
    assert_eq!(status(&repo)["hooks_path_scope"], "local");
    repo.git(["config", "--unset", "core.hooksPath"]).succeeds();

    fs::set_permissions(
        repo.path(".git/hooks/commit-msg"),
        std::os::unix::fs::PermissionsExt::from_mode(0o644),
    )
    .unwrap();
    let hook = commit_msg(&repo);
    assert_eq!(hook["state"], "shadowed");
    assert!(hook["note"].as_str().unwrap().contains("is not executable, so git ignores it"));
    repo.arborist(["hooks", "install", "commit-msg"]).succeeds();
    assert_eq!(commit_msg(&repo)["state"], "installed");

    repo.write(".git/hooks/commit-msg", repo.read(".git/hooks/commit-msg") + "true\n");
    assert_eq!(commit_msg(&repo)["state"], "edited");
}

#[test]
fn a_hooks_path_set_for_one_command_is_reported() {
    let repo = TestRepo::init();
    repo.git(["-c", "core.hooksPath=/x", "arborist", "hooks", "status"])
        .succeeds()
        .out("'/x' (core.hooksPath, command)");
}

#[test]
fn hooks_status_runs_no_hook_or_program_of_the_repository() {
    let repo = TestRepo::init();
    let trap = format!("#!/bin/sh\ntouch '{}'\n", repo.path("sprung").display());
    for hook in ["commit-msg", "pre-push", "update", "post-index-change", "reference-transaction"] {
        repo.write_script(&format!(".git/hooks/{hook}"), &trap);
    }
    repo.write_script("trap", &trap);
    let here = repo.path("trap").display().to_string();
    repo.git(["config", "core.fsmonitor", &here]).succeeds();
    repo.arborist(["hooks", "status"]).succeeds();
    repo.arborist(["hooks", "install", "-n"]).succeeds();
    assert!(!repo.path("sprung").exists());
    assert!(repo.git(["hook", "run", "commit-msg"]).code() == 0 && repo.path("sprung").exists());
}

#[test]
fn hooks_status_outside_of_a_repository_reports_one_clear_error() {
    let repo = TestRepo::init();
    repo.arborist_in(repo.root(), ["hooks", "status"]).exits(128).err("not a git repository").silent();
}

#[test]
fn hooks_test_reports_another_hook_that_refuses_before_ours() {
    let repo = TestRepo::init();
    repo.write_script(".git/hooks/commit-msg", "#!/bin/sh\necho 'I never agree' >&2\nexit 1\n");
    repo.arborist(["hooks", "install"]).succeeds();
    repo.arborist(["hooks", "test"])
        .exits(1)
        .out("commit-msg: another hook refused before the hook of git arborist ran")
        .out("pre-push: git runs it")
        .err("I never agree");
}
