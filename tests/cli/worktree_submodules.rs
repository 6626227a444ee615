//! Submodules in worktrees, and worktrees that were moved.

use std::{fs, path::PathBuf};

use arborist_testkit::TestRepo;

/// A repository with a submodule at `lib`.
fn repo() -> TestRepo {
    let repo = TestRepo::init();
    repo.git(["config", "--global", "protocol.file.allow", "always"]).succeeds();
    let origin = repo.root().join("origin");
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", origin.to_str().unwrap()]).succeeds();
    fs::write(origin.join("f"), "f\n").unwrap();
    repo.git_in(&origin, ["add", "f"]).succeeds();
    repo.git_in(&origin, ["commit", "-qm", "f"]).succeeds();
    repo.git(["submodule", "--quiet", "add", origin.to_str().unwrap(), "lib"]).succeeds();
    repo.git(["commit", "-qam", "a submodule"]).succeeds();
    repo
}

fn add(repo: &TestRepo, task: &str) -> PathBuf {
    repo.arborist(["worktree", "add", task]).answer().into()
}

#[test]
fn a_worktree_has_its_submodules_on_a_task_branch() {
    let repo = repo();
    let lib = add(&repo, "T1").join("lib");
    assert_eq!(fs::read_to_string(lib.join("f")).unwrap(), "f\n");
    assert_eq!(repo.git_in(&lib, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert!(repo.git_in(&lib, ["rev-parse", "--git-path", "objects/info/alternates"]).answer().len() > 1);
    fs::write(lib.join("f"), "changed\n").unwrap();
    repo.arborist(["worktree", "remove", "T1"]).exits(1).matches_snapshot();
    repo.arborist(["worktree", "remove", "--force", "T1"]).exits(2).matches_snapshot();
    repo.git_in(&lib, ["commit", "-qam", "only here"]).succeeds();
    repo.arborist(["cleanup", "--older-than", "0", "--force"]).succeeds().matches_snapshot();
    repo.arborist(["worktree", "remove", "--force", "T1"]).succeeds();
    let kept = repo.git_in(&repo.path("lib"), ["log", "-1", "--format=%s", "arborist/task/main/T1"]).answer();
    assert_eq!(kept, "only here");
}

#[test]
fn a_recycled_lane_has_the_submodules_of_the_next_task() {
    let repo = repo();
    let lane = PathBuf::from(repo.arborist(["worktree", "add", "--lane", "T1"]).answer());
    repo.git_in(&lane.join("lib"), ["commit", "-q", "--allow-empty", "-m", "of T1"]).succeeds();
    repo.git_in(&lane, ["commit", "-qam", "moved"]).succeeds();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    repo.arborist(["worktree", "add", "--lane", "T2"]).succeeds();
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    let lib = lane.join("lib");
    assert_eq!(repo.git_in(&lib, ["branch", "--show-current"]).answer(), "arborist/task/main/T2");
    assert_eq!(repo.git_in(&lib, ["log", "-1", "--format=%s"]).answer(), "f");
    let kept = repo.git_in(&repo.path("lib"), ["log", "-1", "--format=%s", "arborist/task/main/T1"]).answer();
    assert_eq!(kept, "of T1");
}

#[test]
fn submodules_that_cannot_be_fetched_are_reported() {
    let repo = repo();
    fs::rename(repo.root().join("origin"), repo.root().join("gone")).unwrap();
    repo.arborist(["worktree", "add", "T1"]).succeeds().matches_snapshot();
    fs::remove_dir_all(repo.path(".git/modules")).unwrap();
    fs::remove_dir_all(repo.path("lib")).unwrap();
    repo.arborist(["worktree", "add", "T2", "--allow-dirty"]).succeeds().matches_snapshot();
}

#[test]
fn worktrees_that_were_moved_are_found_again() {
    let repo = TestRepo::init();
    let path = add(&repo, "T1");
    fs::rename(repo.path(""), repo.root().join("moved")).unwrap();
    fs::rename(repo.root().join("repo.arborist"), repo.root().join("moved.arborist")).unwrap();
    let moved = repo.root().join("moved");
    repo.arborist_in(&moved, ["worktree", "path", "T1"]).exits(1).matches_snapshot();
    repo.arborist_in(&moved, ["worktree", "repair"]).succeeds();
    let found = PathBuf::from(repo.arborist_in(&moved, ["worktree", "path", "T1"]).answer());
    assert_eq!(found.file_name(), path.file_name());
    assert_eq!(repo.git_in(&found, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
}

#[test]
fn repair_restores_a_changed_git_file_and_removes_a_stale_index_lock() {
    let repo = TestRepo::init();
    let path = add(&repo, "T1");
    fs::write(path.join(".git"), "gitdir: /nowhere\n").unwrap();
    let lock = repo.path(".git/worktrees/T1/index.lock");
    fs::write(&lock, "").unwrap();
    repo.arborist(["worktree", "repair"]).succeeds();
    assert!(!lock.exists());
    assert_eq!(repo.git_in(&path, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
}
