//! Submodules in worktrees, and worktrees that were moved.

use std::{fs, path::PathBuf};

use arborist_testkit::Garden;

/// A repository with a submodule at `lib`.
fn garden() -> Garden {
    let garden = Garden::sprout();
    garden.git(["config", "--global", "protocol.file.allow", "always"]).succeeds();
    let origin = garden.root().join("origin");
    garden.git_in(garden.root(), ["init", "-q", "-b", "main", origin.to_str().unwrap()]).succeeds();
    fs::write(origin.join("f"), "f\n").unwrap();
    garden.git_in(&origin, ["add", "f"]).succeeds();
    garden.git_in(&origin, ["commit", "-qm", "f"]).succeeds();
    garden.git(["submodule", "--quiet", "add", origin.to_str().unwrap(), "lib"]).succeeds();
    garden.git(["commit", "-qam", "a submodule"]).succeeds();
    garden
}

fn add(garden: &Garden, task: &str) -> PathBuf {
    garden.arborist(["worktree", "add", task]).answer().into()
}

#[test]
fn submodules_are_there_and_on_a_branch() {
    let garden = garden();
    let lib = add(&garden, "T1").join("lib");
    assert_eq!(fs::read_to_string(lib.join("f")).unwrap(), "f\n");
    assert_eq!(garden.git_in(&lib, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert!(garden.git_in(&lib, ["rev-parse", "--git-path", "objects/info/alternates"]).answer().len() > 1);
    fs::write(lib.join("f"), "changed\n").unwrap();
    garden.arborist(["worktree", "remove", "T1"]).exits(1).shows();
    garden.arborist(["worktree", "remove", "--force", "T1"]).exits(2).shows();
    garden.git_in(&lib, ["commit", "-qam", "only here"]).succeeds();
    garden.arborist(["cleanup", "--older-than", "0", "--force"]).succeeds().shows();
    garden.arborist(["worktree", "remove", "--force", "T1"]).succeeds();
    let kept =
        garden.git_in(&garden.path("lib"), ["log", "-1", "--format=%s", "arborist/task/main/T1"]).answer();
    assert_eq!(kept, "only here");
}

#[test]
fn a_recycled_lane_has_the_submodules_of_the_next_task() {
    let garden = garden();
    let lane = PathBuf::from(garden.arborist(["worktree", "add", "--lane", "T1"]).answer());
    garden.git_in(&lane.join("lib"), ["commit", "-q", "--allow-empty", "-m", "of T1"]).succeeds();
    garden.git_in(&lane, ["commit", "-qam", "moved"]).succeeds();
    garden.arborist(["worktree", "recycle", "T1"]).succeeds();
    garden.arborist(["worktree", "add", "--lane", "T2"]).succeeds();
    assert_eq!(garden.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    let lib = lane.join("lib");
    assert_eq!(garden.git_in(&lib, ["branch", "--show-current"]).answer(), "arborist/task/main/T2");
    assert_eq!(garden.git_in(&lib, ["log", "-1", "--format=%s"]).answer(), "f");
    let kept =
        garden.git_in(&garden.path("lib"), ["log", "-1", "--format=%s", "arborist/task/main/T1"]).answer();
    assert_eq!(kept, "of T1");
}

#[test]
fn submodules_that_cannot_be_had_are_named() {
    let garden = garden();
    fs::rename(garden.root().join("origin"), garden.root().join("gone")).unwrap();
    garden.arborist(["worktree", "add", "T1"]).succeeds().shows();
    fs::remove_dir_all(garden.path(".git/modules")).unwrap();
    fs::remove_dir_all(garden.path("lib")).unwrap();
    garden.arborist(["worktree", "add", "T2", "--allow-dirty"]).succeeds().shows();
}

#[test]
fn worktrees_that_were_moved_are_found_again() {
    let garden = Garden::sprout();
    let path = add(&garden, "T1");
    fs::rename(garden.path(""), garden.root().join("moved")).unwrap();
    fs::rename(garden.root().join("repo.arborist"), garden.root().join("moved.arborist")).unwrap();
    let moved = garden.root().join("moved");
    garden.arborist_in(&moved, ["worktree", "path", "T1"]).exits(1).shows();
    garden.arborist_in(&moved, ["worktree", "repair"]).succeeds();
    let found = PathBuf::from(garden.arborist_in(&moved, ["worktree", "path", "T1"]).answer());
    assert_eq!(found.file_name(), path.file_name());
    assert_eq!(garden.git_in(&found, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
}

#[test]
fn what_an_agent_did_to_its_link_and_what_a_killed_git_left_is_mended() {
    let garden = Garden::sprout();
    let path = add(&garden, "T1");
    fs::write(path.join(".git"), "gitdir: /nowhere\n").unwrap();
    let lock = garden.path(".git/worktrees/T1/index.lock");
    fs::write(&lock, "").unwrap();
    garden.arborist(["worktree", "repair"]).succeeds();
    assert!(!lock.exists());
    assert_eq!(garden.git_in(&path, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
}
