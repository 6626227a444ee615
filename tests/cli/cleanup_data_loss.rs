//! What a first user lost or was not told: repositories among ignored files, saved work, folders that were moved.

use std::{fs, path::Path};

use crate::cleanup_repo::{CleanupRepo, find};
use arborist_testkit::Terminal;

const NOW: &[&str] = &["--older-than", "0"];
const FORCE: &[&str] = &["--older-than", "0", "--force"];

/// A repository of its own with a commit that is nowhere else.
fn init_nested_repo(repo: &CleanupRepo, path: &Path) {
    fs::create_dir_all(path).unwrap();
    repo.git_in(path, ["init", "-q"]).succeeds();
    repo.git_in(path, ["commit", "-q", "--allow-empty", "-m", "only here"]).succeeds();
}

#[test]
fn a_worktree_with_a_nested_repository_in_ignored_files_is_kept_even_with_force() {
    let repo = CleanupRepo::new();
    for (task, inner) in [("T1", "target"), ("T2", "src/target/a/b"), ("T3", "new/deep/er")] {
        let path = repo.worktree(task);
        init_nested_repo(&repo, &path.join(inner));
        for args in [NOW, FORCE] {
            let reason = format!("it contains a repository with unsaved work: {inner}");
            assert_eq!(repo.verdict(args, "worktree", task), ("keep".into(), reason));
            repo.cleanup(args).succeeds();
            let log = repo.git_in(&path.join(inner), ["log", "--format=%s"]);
            assert_eq!(log.answer(), "only here");
        }
        for args in [&["worktree", "remove", task][..], &["worktree", "remove", "--force", task]] {
            assert_ne!(repo.arborist(args).code(), 0);
            assert!(path.join(inner).join(".git").exists());
        }
    }
    let bare = repo.worktree("T4");
    repo.git_in(&bare, ["init", "-q", "--bare", "target/x.git"]).succeeds();
    assert_eq!(repo.verdict(FORCE, "worktree", "T4").0, "keep");
    fs::remove_dir_all(bare.join("target")).unwrap();
    std::os::unix::fs::symlink(repo.path(""), bare.join("target")).unwrap();
    repo.cleanup(FORCE).succeeds();
    assert!(repo.path(".git").exists(), "a link is not followed");
}

#[test]
fn saved_work_is_removed_before_it_expires_only_with_force_and_only_saved() {
    let repo = CleanupRepo::new();
    let tips: Vec<String> =
        ["T1", "T2", "T3", "T4", "T5"].iter().map(|task| repo.branch(task, task, task)).collect();
    repo.cleanup(FORCE).succeeds();
    let saved = repo.refs("refs/arborist/saved");
    assert_eq!(saved.len(), 5);
    let only = ["--only", "saved", "--older-than", "0", "--force"];
    repo.cleanup(&only[..4]).succeeds().matches_snapshot();
    assert_eq!(repo.refs("refs/arborist/saved"), saved);
    let would = repo.cleanup(&[&only[..], &["--dry-run"]].concat()).succeeds();
    let gone = repo.cleanup(&only).succeeds().matches_snapshot();
    for (name, tip) in saved.iter().zip(&tips) {
        for shown in [would.stdout(), gone.stdout()] {
            assert!(shown.contains(&format!("{name} at {tip}")), "{shown}");
        }
    }
    assert_eq!(repo.refs("refs/arborist/saved"), [""; 0]);
    repo.git(["update-ref", &saved[0], &tips[0]]).succeeds();
    repo.cleanup(&["restore", "T1"]).succeeds();
}

#[test]
fn a_worktree_with_a_moved_folder_is_kept_and_one_with_a_missing_folder_is_removed() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    fs::write(path.join("new"), "new").unwrap();
    let moved = path.with_file_name("moved");
    fs::rename(&path, &moved).unwrap();
    let gone = repo.worktree("T2");
    fs::remove_dir_all(gone).unwrap();
    let reason = format!("its folder was moved to {}", moved.display());
    assert_eq!(repo.verdict(FORCE, "worktree", "T1"), ("keep".into(), reason));
    assert_eq!(repo.verdict(NOW, "worktree", "T2"), ("remove".into(), "its folder is missing".into()));
    repo.arborist(["worktree", "prune"]).succeeds();
    repo.cleanup(NOW).succeeds().matches_snapshot();
    assert!(repo.has("T1") && moved.join("new").exists());
    repo.arborist(["worktree", "repair"]).succeeds();
    assert_eq!(repo.git_in(&moved, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert_eq!(repo.verdict(NOW, "worktree", "moved").1, "not committed: new");
}

#[test]
fn ignored_files_that_are_removed_with_a_worktree_are_listed() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    fs::write(path.join(".env"), "x").unwrap();
    fs::create_dir_all(path.join("target")).unwrap();
    fs::write(path.join("target/x"), "x").unwrap();
    let told = "and 2 ignored files: .env, target/";
    repo.cleanup(&["--older-than", "0", "--dry-run"]).succeeds().out(told);
    assert_eq!(
        find(&repo.report(&["--dry-run", "--older-than", "0"]), "worktree", "T1")["ignored"][0],
        ".env"
    );
    repo.cleanup(NOW).succeeds().out(told);
    assert!(!path.exists());
}

#[test]
fn a_named_task_that_is_too_young_for_cleanup_is_kept_with_a_hint() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.cleanup(&["--force", "T1"]).succeeds().matches_snapshot();
    repo.cleanup(&["saved"]).succeeds().matches_snapshot();
    repo.cleanup(&["restor", "T1"]).exits(1).matches_snapshot();
}

#[test]
fn long_names_with_different_ends_stay_distinguishable_in_a_narrow_terminal() {
    let repo = CleanupRepo::new();
    for task in ["a-rather-long-name-of-a-task-1", "a-rather-long-name-of-a-task-2"] {
        repo.branch(task, task, task);
    }
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "cleanup", "--older-than", "0"]);
    let (_, _, shown) = Terminal::start(command, 60).ends();
    assert!(shown.contains("task-1") && shown.contains("task-2"), "{shown}");
}
