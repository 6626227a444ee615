//! A landing that is interrupted while it updates the user's checkout. The next one recognises what it has written itself,
//! and never touches what is the user's.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use arborist_testkit::{Run, TaskCommit};

use crate::queue_repo::QueueRepo;

/// A `git read-tree` that does what a killed one leaves: some files of the new commit, no index, and a dead driver.
const KILLED: &str = r#"#!/bin/sh
case " $* " in
*" read-tree "*" -u "*)
    for to; do :; done
    WRITES
    kill -9 $PPID
    exit 1 ;;
esac
exec REAL_GIT "$@"
"#;

fn plant(repo: &QueueRepo, script: &str, writes: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let script = script.replace("WRITES", writes).replace("REAL_GIT", git.to_str().unwrap());
    repo.plant("git", &script.replace("GIT_ ", &format!("{} ", git.display())));
}

fn merge(repo: &QueueRepo) -> Run {
    let mut command = repo.command("git-arborist-merge", &repo.path(""));
    Run::of(command.args(["run", "--scope", "main"]), b"")
}

/// A task that adds, changes, deletes, links and makes executable, queued for a target that is checked out.
fn repo() -> QueueRepo {
    repo_with(|repo| drop(repo.run_start("main", "s1")))
}

/// The same in a run that is started by `start`.
fn repo_with(start: impl FnOnce(&QueueRepo)) -> QueueRepo {
    let repo = QueueRepo::empty_queue_repo();
    repo.write("changed.txt", "old\n");
    repo.write("gone.txt", "gone\n");
    repo.write("tool.sh", "echo\n");
    repo.write("user.txt", "first\n");
    repo.commit("files\n");
    start(&repo);
    repo.git(["branch", "arborist/task/main/T1"]).succeeds();
    repo.on_branch("T1", |repo| {
        repo.write("new/added.txt", "added by the task\n".repeat(100));
        repo.write("changed.txt", "new\n");
        fs::remove_file(repo.path("gone.txt")).unwrap();
        symlink("changed.txt", repo.path("link")).unwrap();
        fs::set_permissions(repo.path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        repo.finish("T1");
    });
    repo.merge(&["add", "T1"]).succeeds();
    repo.write("user.txt", "first\nstaged\n");
    repo.git(["add", "user.txt"]).succeeds();
    repo.write("user.txt", "first\nstaged\nnot staged\n");
    repo
}

fn has_landed(repo: &QueueRepo, what: &str) {
    let run = merge(repo);
    assert_eq!(run.code(), 0, "{what}: {}", run.report());
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "MM user.txt", "{what}");
    assert_eq!(repo.read("user.txt"), "first\nstaged\nnot staged\n", "{what}");
    assert_eq!(repo.read("changed.txt"), "new\n", "{what}");
    assert!(!repo.path("gone.txt").exists() && repo.path("link").is_symlink(), "{what}");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "{what}");
}

#[test]
fn a_landing_killed_during_the_checkout_update_is_completed_by_the_next_merge_run() {
    for (what, writes) in [
        ("nothing", "true"),
        ("an added file", "mkdir new; GIT_ show $to:new/added.txt > new/added.txt"),
        ("a part of an added file", "mkdir new; GIT_ show $to:new/added.txt | head -c 70 > new/added.txt"),
        ("an empty file", "mkdir new; true > new/added.txt"),
        ("a changed file", "GIT_ show $to:changed.txt > changed.txt"),
        ("a changed file that is removed first", "GIT_ show $to:changed.txt > changed.txt; rm tool.sh"),
        ("a deleted file", "rm gone.txt; GIT_ show $to:changed.txt > changed.txt"),
        ("a link and a mode", "ln -s changed.txt link; chmod +x tool.sh"),
        ("all files and the index", "GIT_ \"$@\""),
        ("all files, the index as it was", "cp .git/index saved; GIT_ \"$@\"; mv saved .git/index"),
    ] {
        let repo = repo();
        plant(&repo, KILLED, writes);
        merge(&repo).exits(137);
        fs::remove_file(repo.bin().join("git")).unwrap();
        has_landed(&repo, what);
    }
}

/// A landing that was killed when it had written some files of the checkout, and no index.
fn killed(repo: &QueueRepo) {
    plant(repo, KILLED, "GIT_ show $to:changed.txt > changed.txt");
    merge(repo).exits(137);
    fs::remove_file(repo.bin().join("git")).unwrap();
    assert_eq!(repo.read("changed.txt"), "new\n");
}

/// The landing wrote nothing that is still there.
fn is_undone(repo: &QueueRepo, what: &str) {
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "MM user.txt", "{what}");
    assert_eq!(repo.read("user.txt"), "first\nstaged\nnot staged\n", "{what}");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "{what}");
}

/// Commands that are the first to find the dead driver, without the lock of its branch.
const OTHERS: [(&[&str], i32); 2] = [(&["cleanup"], 0), (&["reset", "T1", "--scope", "other"], 1)];

#[test]
fn a_landing_killed_during_the_checkout_update_is_undone_before_a_reset_moves_the_branch() {
    for first in [None, Some(OTHERS[0]), Some(OTHERS[1])] {
        let repo = repo();
        repo.git(["branch", "other"]).succeeds();
        killed(&repo);
        if let Some((first, code)) = first {
            repo.arborist(first).exits(code);
        }
        repo.arborist(["reset", "T1"]).succeeds();
        is_undone(&repo, &format!("{first:?}"));
    }
}

#[test]
fn a_landing_killed_during_the_checkout_update_is_undone_by_a_run_after_other_commands() {
    for (first, code) in OTHERS {
        let repo = repo_with(|repo| {
            let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b"}}, "root_ids": ["T1", "T2"]}"#;
            repo.write("task-tree.json", plan);
            let base = repo.commit("a plan\n");
            let blob = repo.git(["rev-parse", "HEAD:task-tree.json"]).answer();
            let start = TaskCommit::run_start("main", "s1", &base);
            repo.commit(start.trailer("Plan", &format!("task-tree.json@{blob}")).to_string());
        });
        repo.git(["branch", "other"]).succeeds();
        killed(&repo);
        repo.arborist(first).exits(code);
        repo.agent("echo two > two.txt");
        repo.arborist(["garden", "T2", "--allow-dirty", "--test-command", "true"]).succeeds();
        is_undone(&repo, &format!("{first:?}"));
        assert_eq!(repo.show("main", "two.txt"), "two");
    }
}

#[test]
fn files_of_the_user_are_not_removed_or_overwritten_after_an_interrupted_landing() {
    let repo = repo();
    plant(&repo, KILLED, "GIT_ show $to:changed.txt > changed.txt; mkdir new; echo mine > new/added.txt");
    merge(&repo).exits(137);
    fs::remove_file(repo.bin().join("git")).unwrap();
    merge(&repo).exits(2);
    assert_eq!(repo.read("new/added.txt"), "mine\n");
    assert_eq!(repo.read("changed.txt"), "old\n", "what was written is taken back");
    fs::remove_dir_all(repo.path("new")).unwrap();
    has_landed(&repo, "once the user's file is out of the way");
}

#[test]
fn a_full_disk_during_a_landing_leaves_the_checkout_unchanged() {
    let repo = repo();
    let full = KILLED.replace("kill -9 $PPID\n", "echo 'error: unable to write file new/added.txt' >&2\n");
    plant(&repo, &full, "[ -e changed.new ] || GIT_ show $to:changed.txt > changed.txt");
    merge(&repo).exits(2);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "MM user.txt");
    fs::remove_file(repo.bin().join("git")).unwrap();
    has_landed(&repo, "once there is space");
}
