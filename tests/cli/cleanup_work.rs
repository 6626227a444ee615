//! Nothing is lost: what was squashed or picked is known by its content, what is nowhere else is kept or saved first, and
//! what was saved comes back.

use std::{fs, path::Path};

use crate::cleanup_repo::{CleanupRepo, find};
use arborist_testkit::Terminal;

const NOW: &[&str] = &["--older-than", "0"];
const FORCE: &[&str] = &["--older-than", "0", "--force"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_squashed_branch_is_detected_by_its_files_and_its_commits_are_saved() {
    let repo = CleanupRepo::new();
    let tip = repo.grow("T1", "main", &[("t1.txt", "1"), ("t1.txt", "2"), ("u.txt", "u")]);
    repo.squash("T1");
    assert_eq!(repo.verdict(NOW, "branch", "main/T1"), ("save".into(), "its files are in main".into()));
    repo.cleanup(NOW).succeeds().matches_snapshot();
    assert!(!repo.has("T1"));
    let saved = repo.refs("refs/arborist/saved/2025-02-16/main/T1");
    assert_eq!(repo.git(["rev-parse", &saved[0]]).answer(), tip, "every step on the way is kept");
}

#[test]
fn a_squash_is_detected_even_if_its_file_changed_afterwards() {
    let repo = CleanupRepo::new();
    let text = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
    repo.grow("T1", "main", &[("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n7\n"), ("a.txt", text)]);
    repo.write("other.txt", "before");
    repo.commit("main goes on\n");
    repo.squash("T1");
    repo.write("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    repo.commit("and on\n");
    assert_eq!(repo.verdict(NOW, "branch", "main/T1"), ("save".into(), "squashed into main".into()));
}

#[test]
fn cherry_picked_commits_are_detected_one_by_one() {
    let repo = CleanupRepo::new();
    repo.grow("T1", "main", &[("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n"), ("b.txt", "b")]);
    repo.grow("T2", "main", &[("c.txt", "c"), ("d.txt", "d")]);
    for commit in ["arborist/task/main/T1~1", "arborist/task/main/T1", "arborist/task/main/T2"] {
        repo.git(["cherry-pick", "-n", commit]).succeeds();
        repo.git(["commit", "-q", "-m", "picked"]).succeeds();
    }
    repo.write("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    repo.write("b.txt", "bb");
    repo.commit("and on\n");
    assert_eq!(repo.verdict(NOW, "branch", "main/T1"), ("save".into(), "picked into main".into()));
    assert_eq!(repo.verdict(NOW, "branch", "main/T2").1, "2 commits are not merged", "only one was picked");
}

#[test]
fn a_commit_with_other_white_space_or_only_a_message_does_not_count_as_merged() {
    let repo = CleanupRepo::new();
    repo.grow("T1", "main", &[("t.py", "if x:\n\ty()\n")]);
    repo.write("t.py", "if x:\n    y()\n");
    repo.commit("nearly the same\n");
    repo.write("t.py", "z");
    repo.commit("and on\n");
    assert_eq!(repo.verdict(NOW, "branch", "main/T1").1, "1 commit is not merged");
    let tree = repo.git(["rev-parse", "main^{tree}"]).answer();
    let base = repo.git(["rev-parse", "main"]).answer();
    let empty = repo.commit_object(&tree, &[base], "task(main@T2@failed): words that are nowhere else\n");
    repo.git(["update-ref", "refs/heads/arborist/task/main/T2", &empty]).succeeds();
    assert_eq!(repo.verdict(NOW, "branch", "main/T2").1, "1 commit is not merged");
}

#[test]
fn commits_held_only_by_a_stash_saved_work_or_a_remote_branch_count_as_unmerged() {
    let repo = CleanupRepo::new();
    let tip = repo.branch("T1", "t1.txt", "1");
    for name in ["refs/arborist/saved/x/head-1", "refs/stash", "refs/remotes/origin/arborist/task/main/T1"] {
        repo.git(["update-ref", name, &tip]).succeeds();
    }
    repo.grow("T2", &tip, &[("t2.txt", "2")]);
    assert_eq!(repo.verdict(NOW, "branch", "main/T1").0, "keep");
    repo.git(["tag", "v1", &tip]).succeeds();
    assert_eq!(repo.verdict(NOW, "branch", "main/T1").0, "remove");
    repo.cleanup(&["--older-than", "0", "--force"]).succeeds();
    assert_eq!(repo.git(["rev-parse", "refs/stash"]).answer(), tip, "never a stash");
}

#[test]
fn a_worktree_with_uncommitted_changes_is_kept_with_the_reason() {
    let repo = CleanupRepo::new();
    let untracked = repo.worktree("T1");
    fs::write(untracked.join("new"), "new").unwrap();
    let changed = repo.worktree("T2");
    fs::write(changed.join("a.txt"), "changed").unwrap();
    let staged = repo.worktree("T3");
    fs::write(staged.join("s"), "staged").unwrap();
    repo.git_in(&staged, ["add", "s"]).succeeds();
    fs::remove_file(staged.join("s")).unwrap();
    let ignored = repo.worktree("T4");
    fs::write(ignored.join(".env"), "x").unwrap();
    let report = repo.report(NOW);
    for (task, reason) in
        [("T1", "not committed: new"), ("T2", "not committed: a.txt"), ("T3", "not committed: s")]
    {
        let item = find(&report, "worktree", task);
        assert_eq!((&item["outcome"], &item["reason"]), (&"kept".into(), &reason.into()), "{item:#}");
        assert_eq!(find(&report, "branch", &format!("main/{task}"))["outcome"], "kept");
    }
    assert_eq!(find(&report, "worktree", "T4")["outcome"], "trashed");
    assert!(untracked.join("new").exists() && !ignored.exists());
    assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 4);
}

#[test]
fn force_saves_commits_and_files_and_restore_brings_them_back() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    fs::write(path.join("done.txt"), "done").unwrap();
    repo.git_in(&path, ["add", "-A"]).succeeds();
    repo.git_in(&path, ["commit", "-q", "-m", "work"]).succeeds();
    let tip = repo.git(["rev-parse", "arborist/task/main/T1"]).answer();
    fs::write(path.join("done.txt"), "staged").unwrap();
    repo.git_in(&path, ["add", "done.txt"]).succeeds();
    fs::write(path.join("done.txt"), "changed").unwrap();
    fs::write(path.join("new é.txt"), "untracked").unwrap();
    repo.cleanup(NOW).succeeds().matches_snapshot();
    assert!(path.exists() && repo.has("T1"));
    repo.cleanup(FORCE).succeeds().matches_snapshot();
    assert!(!path.exists() && !repo.has("T1"));
    repo.cleanup(&["saved"]).succeeds().matches_snapshot();
    let piped = repo.cleanup(&["saved"]).succeeds().matches_snapshot().stdout();
    assert!(piped.starts_with("what"), "{piped}");
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "cleanup", "saved"]);
    let (_, screen, _) = Terminal::start(command, 60).ends();
    assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    assert!(screen.lines().any(|line| line.trim().starts_with("2025-02-16/main/T1/branch-")), "{screen}");
    let restored = repo.cleanup(&["restore", "T1"]).succeeds();
    restored.matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "arborist/task/main/T1"]).answer(), tip);
    assert_eq!(repo.git_in(&path, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert_eq!(
        (read(&path.join("done.txt")), read(&path.join("new é.txt"))),
        ("changed".into(), "untracked".into())
    );
    assert_eq!(repo.git_in(&path, ["show", ":done.txt"]).answer(), "staged");
    assert_eq!(repo.arborist(["worktree", "path", "T1"]).answer(), path.display().to_string());
}

#[test]
fn restore_overwrites_no_existing_branch_or_file() {
    let repo = CleanupRepo::new();
    let tip = repo.branch("T1", "t1.txt", "1");
    repo.cleanup(FORCE).succeeds();
    repo.branch("T1", "t1.txt", "another");
    repo.cleanup(&["restore", "T1"]).exits(2).matches_snapshot();
    repo.cleanup(&["restore", "T1", "--branch", "again/T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "again/T1"]).answer(), tip);
    repo.cleanup(&["restore", "T9"]).exits(1).matches_snapshot();
    repo.wait(86_400);
    repo.cleanup(FORCE).succeeds();
    repo.cleanup(&["restore", "T1"]).exits(1).matches_snapshot();
    repo.cleanup(&["restore", "2025-02-17/main/T1"]).succeeds();
    let path = repo.worktree("T2");
    fs::write(path.join("new"), "saved").unwrap();
    repo.cleanup(&["--older-than", "0", "--force", "T2"]).succeeds();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("new"), "mine").unwrap();
    repo.cleanup(&["restore", "T2"]).exits(2).matches_snapshot();
    assert_eq!(read(&path.join("new")), "mine");
    let other = repo.root().join("other place");
    repo.cleanup(&["restore", "T2", "--to", other.to_str().unwrap()]).succeeds();
    assert_eq!(read(&other.join("new")), "saved");
}

#[test]
fn commits_of_a_detached_head_and_folders_unknown_to_git_are_saved() {
    let repo = CleanupRepo::new();
    let lane = repo.lane("T1");
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    repo.git_in(&lane, ["commit", "-q", "--allow-empty", "-m", "on no branch"]).succeeds();
    let head = repo.git_in(&lane, ["rev-parse", "HEAD"]).answer();
    assert_eq!(repo.verdict(NOW, "worktree", "lane-1").1, "1 commit is not merged");
    let orphan = repo.worktree("T2");
    fs::write(orphan.join("new"), "new").unwrap();
    fs::remove_dir_all(repo.path(".git/worktrees/T2")).unwrap();
    assert_eq!(repo.verdict(NOW, "folder", "T2").0, "keep");
    repo.cleanup(FORCE).succeeds();
    assert!(!lane.exists() && !orphan.exists());
    repo.cleanup(&["restore", "lane-1"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "restored/lane-1"]).answer(), head);
    let folder = repo.refs("refs/arborist/saved/2025-02-16/T2");
    assert_eq!(repo.git(["show", &format!("{}:new", folder[0])]).answer(), "new");
    repo.cleanup(&["restore", "2025-02-16/T2"]).succeeds().matches_snapshot();
}

#[test]
fn a_worktree_that_contains_a_repository_is_never_removed() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    repo.git_in(&path, ["init", "-q", "inner"]).succeeds();
    assert_eq!(repo.verdict(FORCE, "worktree", "T1").1, "it contains a repository with unsaved work: inner");
    repo.cleanup(FORCE).succeeds();
    assert!(path.join("inner/.git").exists());
}

#[test]
fn deleted_or_broken_worktrees_are_removed() {
    let repo = CleanupRepo::new();
    let deleted = repo.worktree("T1");
    fs::remove_dir_all(&deleted).unwrap();
    let broken = repo.worktree("T2");
    fs::write(broken.join(".git"), "gitdir: /nowhere\n").unwrap();
    let linkless = repo.worktree("T3");
    fs::remove_file(linkless.join(".git")).unwrap();
    let staged = repo.worktree("T4");
    fs::write(staged.join("s"), "staged").unwrap();
    repo.git_in(&staged, ["add", "s"]).succeeds();
    fs::remove_dir_all(&staged).unwrap();
    let report = repo.report(NOW);
    for (task, outcome) in [("T1", "removed"), ("T2", "trashed"), ("T3", "trashed")] {
        assert_eq!(find(&report, "worktree", task)["outcome"], outcome, "{report:#}");
    }
    assert_eq!(find(&report, "worktree", "T4")["reason"], "not committed: s", "it is only in the index");
    assert!(!broken.exists() && !linkless.exists());
    repo.cleanup(FORCE).succeeds();
    repo.cleanup(&["restore", "T4"]).succeeds();
    assert_eq!(read(&staged.join("s")), "staged");
}

#[test]
fn cleanup_works_in_sha256_and_reftable_repositories() {
    for options in [["--object-format=sha256"], ["--ref-format=reftable"]] {
        let repo = CleanupRepo::on(&options);
        repo.branch("T1", "t1.txt", "1");
        repo.land("T1");
        repo.branch("T2", "t2.txt", "2");
        repo.cleanup(FORCE).succeeds();
        assert!(!repo.has("T1") && !repo.has("T2"));
        repo.cleanup(&["restore", "T2"]).succeeds();
        assert!(repo.has("T2"));
    }
}
