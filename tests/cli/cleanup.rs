//! `git arborist cleanup`: what goes, what stays, and what is told.

use std::fs;

use crate::cleanup_repo::{CleanupRepo, find};

const NOW: &[&str] = &["--older-than", "0"];
const WEEK: i64 = 8 * 86_400;

#[test]
fn cleanup_removes_a_landed_branch_and_keeps_an_unmerged_one() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.branch("T2", "t2.txt", "2");
    repo.land("T1");
    let said = repo.cleanup(NOW).succeeds();
    let said = said.matches_snapshot();
    let said = said.matches_snapshot();
    assert!(said.stdout().starts_with("Removed:\n"), "{}", said.stdout());
    assert!(!repo.has("T1") && repo.has("T2"));
    assert_eq!(repo.refs("refs/arborist/saved"), [""; 0]);
}

#[test]
fn cleanup_dry_run_shows_the_same_decisions_and_changes_nothing() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.land("T1");
    let path = repo.worktree("T2");
    fs::write(path.join("new"), "new").unwrap();
    let before = repo.everything();
    let said = repo.cleanup(&["--older-than", "0", "--dry-run"]).succeeds().matches_snapshot();
    said.matches_snapshot();
    assert_eq!(repo.everything(), before);
    let planned = repo.report(&["--older-than", "0", "--dry-run"]);
    let done = repo.report(NOW);
    let strip = |report: &serde_json::Value| -> Vec<String> {
        let items = report["items"].as_array().unwrap().iter();
        items
            .map(|item| format!("{} {} {} {}", item["kind"], item["name"], item["verdict"], item["reason"]))
            .collect()
    };
    assert_eq!(strip(&planned), strip(&done));
    assert_eq!(find(&planned, "branch", "main/T1")["outcome"], serde_json::Value::Null);
    assert_eq!(find(&done, "branch", "main/T1")["outcome"], "removed");
}

#[test]
fn a_landed_branch_younger_than_the_age_limit_is_kept() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.land("T1");
    assert_eq!(repo.verdict(&[], "branch", "main/T1"), ("keep".into(), "younger than 7d".into()));
    repo.age(WEEK);
    assert_eq!(repo.verdict(&["--older-than", "2w"], "branch", "main/T1").1, "younger than 2w");
    assert_eq!(repo.verdict(&["--older-than", "12h"], "branch", "main/T1").0, "remove");
    repo.cleanup(&[]).succeeds().matches_snapshot();
    assert!(!repo.has("T1"));
}

#[test]
fn cleanup_refuses_invalid_ages_kinds_and_task_names() {
    let repo = CleanupRepo::new();
    for age in ["7", "soon", "", "-1d"] {
        let said = repo.cleanup(&[&format!("--older-than={age}")]).exits(129);
        said.matches_snapshot();
    }
    repo.cleanup(&["--only", "everything"]).exits(129).matches_snapshot();
    repo.cleanup(&["T9"]).exits(1).matches_snapshot();
}

#[test]
fn cleanup_works_in_subfolders_with_detached_head_with_git_dir_and_in_bare_repositories() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.land("T1");
    repo.git(["checkout", "-q", "--detach"]).succeeds();
    fs::create_dir_all(repo.path("sub/folder")).unwrap();
    let bare = repo.root().join("bare.git");
    repo.git(["clone", "-q", "--mirror", repo.path("").to_str().unwrap(), bare.to_str().unwrap()]).succeeds();
    repo.arborist_in(&repo.path("sub/folder"), ["cleanup", "--older-than", "0"])
        .succeeds()
        .matches_snapshot();
    assert!(!repo.has("T1"));
    let mut command = repo.command("git", repo.root());
    command.env("GIT_DIR", &bare).args(["arborist", "cleanup", "--older-than", "0", "--dry-run"]);
    arborist_testkit::Run::of(&mut command, b"").succeeds().matches_snapshot();
    repo.arborist_in(&bare, ["cleanup", "--older-than", "0"]).succeeds().matches_snapshot();
    assert_eq!(repo.git_in(&bare, ["for-each-ref", "--format=%(refname)"]).answer(), "refs/heads/main");
    repo.arborist_in(&bare, ["cleanup"]).succeeds().matches_snapshot();
}

#[test]
fn cleanup_does_not_print_escape_sequences_in_file_names() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    fs::write(path.join("a\u{1b}[2Jb"), "x").unwrap();
    repo.cleanup(NOW).succeeds().never("\u{1b}[2J").matches_snapshot();
}
