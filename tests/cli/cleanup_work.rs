//! Nothing is lost: what was squashed or picked is known by its content, what is nowhere else is kept or saved first, and
//! what was saved comes back.

use std::{fs, path::Path};

use crate::compost::{Compost, find};
use arborist_testkit::Terminal;

const NOW: &[&str] = &["--older-than", "0"];
const FORCE: &[&str] = &["--older-than", "0", "--force"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_squashed_branch_is_known_by_its_files_and_its_commits_are_saved() {
    let compost = Compost::new();
    let tip = compost.grow("T1", "main", &[("t1.txt", "1"), ("t1.txt", "2"), ("u.txt", "u")]);
    compost.squash("T1");
    assert_eq!(compost.verdict(NOW, "branch", "main/T1"), ("save".into(), "its files are in main".into()));
    compost.cleanup(NOW).succeeds().shows();
    assert!(!compost.has("T1"));
    let saved = compost.refs("refs/arborist/saved/2025-02-16/main/T1");
    assert_eq!(compost.git(["rev-parse", &saved[0]]).answer(), tip, "every step on the way is kept");
}

#[test]
fn a_squash_is_found_although_the_file_went_on() {
    let compost = Compost::new();
    let text = "one\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n";
    compost.grow("T1", "main", &[("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n7\n"), ("a.txt", text)]);
    compost.write("other.txt", "before");
    compost.commit("main goes on\n");
    compost.squash("T1");
    compost.write("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    compost.commit("and on\n");
    assert_eq!(compost.verdict(NOW, "branch", "main/T1"), ("save".into(), "squashed into main".into()));
}

#[test]
fn picked_commits_are_known_one_by_one() {
    let compost = Compost::new();
    compost.grow("T1", "main", &[("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nseven\n"), ("b.txt", "b")]);
    compost.grow("T2", "main", &[("c.txt", "c"), ("d.txt", "d")]);
    for commit in ["arborist/task/main/T1~1", "arborist/task/main/T1", "arborist/task/main/T2"] {
        compost.git(["cherry-pick", "-n", commit]).succeeds();
        compost.git(["commit", "-q", "-m", "picked"]).succeeds();
    }
    compost.write("a.txt", "ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\n");
    compost.write("b.txt", "bb");
    compost.commit("and on\n");
    assert_eq!(compost.verdict(NOW, "branch", "main/T1"), ("save".into(), "picked into main".into()));
    assert_eq!(
        compost.verdict(NOW, "branch", "main/T2").1,
        "2 commits are nowhere else",
        "only one was picked"
    );
}

#[test]
fn white_space_modes_and_messages_are_no_proof() {
    let compost = Compost::new();
    compost.grow("T1", "main", &[("t.py", "if x:\n\ty()\n")]);
    compost.write("t.py", "if x:\n    y()\n");
    compost.commit("nearly the same\n");
    compost.write("t.py", "z");
    compost.commit("and on\n");
    assert_eq!(compost.verdict(NOW, "branch", "main/T1").1, "1 commit is nowhere else");
    let tree = compost.git(["rev-parse", "main^{tree}"]).answer();
    let base = compost.git(["rev-parse", "main"]).answer();
    let empty = compost.commit_object(&tree, &[base], "task(main@T2@failed): words that are nowhere else\n");
    compost.git(["update-ref", "refs/heads/arborist/task/main/T2", &empty]).succeeds();
    assert_eq!(compost.verdict(NOW, "branch", "main/T2").1, "1 commit is nowhere else");
}

#[test]
fn what_is_held_only_by_refs_that_go_is_not_held() {
    let compost = Compost::new();
    let tip = compost.branch("T1", "t1.txt", "1");
    for name in ["refs/arborist/saved/x/head-1", "refs/stash", "refs/remotes/origin/arborist/task/main/T1"] {
        compost.git(["update-ref", name, &tip]).succeeds();
    }
    compost.grow("T2", &tip, &[("t2.txt", "2")]);
    assert_eq!(compost.verdict(NOW, "branch", "main/T1").0, "keep");
    compost.git(["tag", "v1", &tip]).succeeds();
    assert_eq!(compost.verdict(NOW, "branch", "main/T1").0, "remove");
    compost.cleanup(&["--older-than", "0", "--force"]).succeeds();
    assert_eq!(compost.git(["rev-parse", "refs/stash"]).answer(), tip, "never a stash");
}

#[test]
fn a_worktree_with_work_in_it_stays_with_the_reason() {
    let compost = Compost::new();
    let untracked = compost.worktree("T1");
    fs::write(untracked.join("new"), "new").unwrap();
    let changed = compost.worktree("T2");
    fs::write(changed.join("a.txt"), "changed").unwrap();
    let staged = compost.worktree("T3");
    fs::write(staged.join("s"), "staged").unwrap();
    compost.git_in(&staged, ["add", "s"]).succeeds();
    fs::remove_file(staged.join("s")).unwrap();
    let ignored = compost.worktree("T4");
    fs::write(ignored.join(".env"), "x").unwrap();
    let report = compost.report(NOW);
    for (task, reason) in
        [("T1", "not committed: new"), ("T2", "not committed: a.txt"), ("T3", "not committed: s")]
    {
        let item = find(&report, "worktree", task);
        assert_eq!((&item["outcome"], &item["reason"]), (&"kept".into(), &reason.into()), "{item:#}");
        assert_eq!(find(&report, "branch", &format!("main/{task}"))["outcome"], "kept");
    }
    assert_eq!(find(&report, "worktree", "T4")["outcome"], "removed");
    assert!(untracked.join("new").exists() && !ignored.exists());
    assert_eq!(compost.git(["worktree", "list"]).answer().lines().count(), 4);
}

#[test]
fn force_saves_commits_and_files_and_restore_brings_them_back() {
    let compost = Compost::new();
    let path = compost.worktree("T1");
    fs::write(path.join("done.txt"), "done").unwrap();
    compost.git_in(&path, ["add", "-A"]).succeeds();
    compost.git_in(&path, ["commit", "-q", "-m", "work"]).succeeds();
    let tip = compost.git(["rev-parse", "arborist/task/main/T1"]).answer();
    fs::write(path.join("done.txt"), "staged").unwrap();
    compost.git_in(&path, ["add", "done.txt"]).succeeds();
    fs::write(path.join("done.txt"), "changed").unwrap();
    fs::write(path.join("new é.txt"), "untracked").unwrap();
    compost.cleanup(NOW).succeeds().shows();
    assert!(path.exists() && compost.has("T1"));
    compost.cleanup(FORCE).succeeds().shows();
    assert!(!path.exists() && !compost.has("T1"));
    compost.cleanup(&["saved"]).succeeds().shows();
    let piped = compost.cleanup(&["saved"]).succeeds().shows().stdout();
    assert!(piped.starts_with("what"), "{piped}");
    let mut command = compost.command("git", &compost.path(""));
    command.args(["arborist", "cleanup", "saved"]);
    let (_, screen, _) = Terminal::start(command, 60).ends();
    assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    assert!(screen.lines().any(|line| line.trim().starts_with("2025-02-16/main/T1/branch-")), "{screen}");
    let restored = compost.cleanup(&["restore", "T1"]).succeeds();
    restored.shows();
    assert_eq!(compost.git(["rev-parse", "arborist/task/main/T1"]).answer(), tip);
    assert_eq!(compost.git_in(&path, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert_eq!(
        (read(&path.join("done.txt")), read(&path.join("new é.txt"))),
        ("changed".into(), "untracked".into())
    );
    assert_eq!(compost.git_in(&path, ["show", ":done.txt"]).answer(), "staged");
    assert_eq!(compost.arborist(["worktree", "path", "T1"]).answer(), path.display().to_string());
}

#[test]
fn nothing_is_restored_over_what_is_there() {
    let compost = Compost::new();
    let tip = compost.branch("T1", "t1.txt", "1");
    compost.cleanup(FORCE).succeeds();
    compost.branch("T1", "t1.txt", "another");
    compost.cleanup(&["restore", "T1"]).exits(2).shows();
    compost.cleanup(&["restore", "T1", "--branch", "again/T1"]).succeeds().shows();
    assert_eq!(compost.git(["rev-parse", "again/T1"]).answer(), tip);
    compost.cleanup(&["restore", "T9"]).exits(1).shows();
    compost.wait(86_400);
    compost.cleanup(FORCE).succeeds();
    compost.cleanup(&["restore", "T1"]).exits(1).shows();
    compost.cleanup(&["restore", "2025-02-17/main/T1"]).succeeds();
    let path = compost.worktree("T2");
    fs::write(path.join("new"), "saved").unwrap();
    compost.cleanup(&["--older-than", "0", "--force", "T2"]).succeeds();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("new"), "mine").unwrap();
    compost.cleanup(&["restore", "T2"]).exits(2).shows();
    assert_eq!(read(&path.join("new")), "mine");
    let other = compost.root().join("other place");
    compost.cleanup(&["restore", "T2", "--to", other.to_str().unwrap()]).succeeds();
    assert_eq!(read(&other.join("new")), "saved");
}

#[test]
fn commits_on_no_branch_and_folders_that_git_forgot_are_saved_too() {
    let compost = Compost::new();
    let lane = compost.lane("T1");
    compost.arborist(["worktree", "recycle", "T1"]).succeeds();
    compost.git_in(&lane, ["commit", "-q", "--allow-empty", "-m", "on no branch"]).succeeds();
    let head = compost.git_in(&lane, ["rev-parse", "HEAD"]).answer();
    assert_eq!(compost.verdict(NOW, "worktree", "lane-1").1, "1 commit is nowhere else");
    let orphan = compost.worktree("T2");
    fs::write(orphan.join("new"), "new").unwrap();
    fs::remove_dir_all(compost.path(".git/worktrees/T2")).unwrap();
    assert_eq!(compost.verdict(NOW, "folder", "T2").0, "keep");
    compost.cleanup(FORCE).succeeds();
    assert!(!lane.exists() && !orphan.exists());
    compost.cleanup(&["restore", "lane-1"]).succeeds().shows();
    assert_eq!(compost.git(["rev-parse", "restored/lane-1"]).answer(), head);
    let folder = compost.refs("refs/arborist/saved/2025-02-16/T2");
    assert_eq!(compost.git(["show", &format!("{}:new", folder[0])]).answer(), "new");
    compost.cleanup(&["restore", "2025-02-16/T2"]).succeeds().shows();
}

#[test]
fn a_repository_inside_a_worktree_is_never_thrown_away() {
    let compost = Compost::new();
    let path = compost.worktree("T1");
    compost.git_in(&path, ["init", "-q", "inner"]).succeeds();
    assert_eq!(compost.verdict(FORCE, "worktree", "T1").1, "a repository with work in it: inner");
    compost.cleanup(FORCE).succeeds();
    assert!(path.join("inner/.git").exists());
}

#[test]
fn worktrees_that_were_deleted_by_hand_or_broken_go() {
    let compost = Compost::new();
    let deleted = compost.worktree("T1");
    fs::remove_dir_all(&deleted).unwrap();
    let broken = compost.worktree("T2");
    fs::write(broken.join(".git"), "gitdir: /nowhere\n").unwrap();
    let linkless = compost.worktree("T3");
    fs::remove_file(linkless.join(".git")).unwrap();
    let staged = compost.worktree("T4");
    fs::write(staged.join("s"), "staged").unwrap();
    compost.git_in(&staged, ["add", "s"]).succeeds();
    fs::remove_dir_all(&staged).unwrap();
    let report = compost.report(NOW);
    for task in ["T1", "T2", "T3"] {
        assert_eq!(find(&report, "worktree", task)["outcome"], "removed", "{report:#}");
    }
    assert_eq!(find(&report, "worktree", "T4")["reason"], "not committed: s", "it is only in the index");
    assert!(!broken.exists() && !linkless.exists());
    compost.cleanup(FORCE).succeeds();
    compost.cleanup(&["restore", "T4"]).succeeds();
    assert_eq!(read(&staged.join("s")), "staged");
}

#[test]
fn a_sha256_repository_and_one_with_reftables_are_cleaned_too() {
    for options in [["--object-format=sha256"], ["--ref-format=reftable"]] {
        let compost = Compost::on(&options);
        compost.branch("T1", "t1.txt", "1");
        compost.land("T1");
        compost.branch("T2", "t2.txt", "2");
        compost.cleanup(FORCE).succeeds();
        assert!(!compost.has("T1") && !compost.has("T2"));
        compost.cleanup(&["restore", "T2"]).succeeds();
        assert!(compost.has("T2"));
    }
}
