//! Whoever cleans up can be killed at every moment: the same command goes on, and nothing is lost.

use std::{
    fs,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{cleanup_repo::CleanupRepo, killing_git};
use arborist_testkit::{Run, call_stride};

/// Tasks that have landed, that were squashed, and that are nowhere else; some with work in their worktrees.
fn full() -> (CleanupRepo, PathBuf) {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.land("T1");
    repo.grow("T2", "main", &[("t2.txt", "2"), ("t2.txt", "two")]);
    repo.squash("T2");
    repo.branch("T3", "t3.txt", "3");
    let path = repo.worktree("T3");
    fs::write(path.join("new"), "new").unwrap();
    fs::write(path.join("t3.txt"), "changed").unwrap();
    let lane = repo.lane("T4");
    repo.arborist(["worktree", "recycle", "T4"]).succeeds();
    repo.git_in(&lane, ["commit", "-q", "--allow-empty", "-m", "on no branch"]).succeeds();
    repo.write("spec/logs/T1_test_20250216T143022.log", "x");
    killing_git::plant(&repo);
    (repo, path)
}

fn cleanup(repo: &CleanupRepo, args: &[&str]) -> Run {
    Run::of(repo.command("git-arborist-cleanup", &repo.path("")).args(args), b"")
}

fn assert_all_work_is_removed_and_saved(repo: &CleanupRepo, tip: &str, head: &str) {
    assert_eq!(repo.refs("refs/heads/arborist"), [""; 0]);
    assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 1);
    let base = repo.root().join("repo.arborist");
    let left =
        fs::read_dir(base).unwrap().flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let left: Vec<String> = left.filter(|name| !name.starts_with(".removed-")).collect();
    assert_eq!(left, [""; 0]);
    let saved = repo.refs("refs/arborist/saved");
    let of = |kind: &str| {
        saved.iter().find(|name| name.contains(kind)).unwrap_or_else(|| panic!("{kind} in {saved:?}"))
    };
    assert_eq!(repo.git(["rev-parse", of("T3/branch-")]).answer(), tip);
    assert_eq!(repo.git(["rev-parse", of("lane-1/head-")]).answer(), head);
    assert_eq!(repo.git(["show", &format!("{}:new", of("T3/worktree-"))]).answer(), "new");
    assert_eq!(repo.git(["show", &format!("{}:t3.txt", of("T3/worktree-"))]).answer(), "changed");
    assert_eq!(saved.len(), 4, "once each: {saved:?}");
    repo.git(["fsck", "--strict"]).succeeds();
}

/// A git that outlives the killed command for a moment still uses its worktree, which is kept until it has ended.
fn clean_up_again(repo: &CleanupRepo, args: &[&str]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        cleanup(repo, args).succeeds();
        let worktrees = repo.git(["worktree", "list"]).answer().lines().count();
        if worktrees == 1 || Instant::now() > deadline {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Kills at every n-th call; `ARBORIST_EVERY_CALL=1` for all of them.
fn kill_everywhere(how: &str) {
    const ARGS: [&str; 3] = ["--older-than", "0", "--force"];
    for n in (1..80).step_by(call_stride(4)) {
        let (repo, path) = full();
        let tip = repo.git(["rev-parse", "arborist/task/main/T3"]).answer();
        let head = repo.git_in(&repo.root().join("repo.arborist/lane-1"), ["rev-parse", "HEAD"]).answer();
        fs::write(repo.root().join("kill"), format!("{n} {how}\n")).unwrap();
        let killed = cleanup(&repo, &ARGS);
        fs::remove_file(repo.root().join("kill")).unwrap();
        let was_killed = killed.code() == 137;
        assert!(was_killed || killed.code() == 0, "{}", killed.report());
        clean_up_again(&repo, &ARGS);
        assert_all_work_is_removed_and_saved(&repo, &tip, &head);
        if !was_killed {
            assert!(n > 15, "hardly anything was killed");
            cleanup(&repo, &["restore", "T3"]).succeeds();
            assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "new");
            return;
        }
    }
    panic!("it never ended");
}

#[test]
fn cleanup_can_be_killed_before_any_git_call_without_loss() {
    kill_everywhere("before");
}

#[test]
fn cleanup_can_be_killed_after_any_git_call_without_loss() {
    kill_everywhere("after");
}

#[test]
fn a_second_cleanup_at_the_same_time_is_refused_but_a_dry_run_works() {
    let (repo, _) = full();
    repo.write(".git/arborist/locks/cleanup", "");
    let lock = fs::File::open(repo.path(".git/arborist/locks/cleanup")).unwrap();
    lock.lock().unwrap();
    cleanup(&repo, &["--older-than", "0"]).exits(3).matches_snapshot();
    cleanup(&repo, &["--older-than", "0", "--dry-run"]).succeeds();
}

/// A git that moves a branch when refs are about to be deleted.
const MOVER: &str = r#"#!/bin/sh
PATH=${PATH#*:}
case " $* " in
*" arborist: cleanup "*) [ -e "$ROOT/moved" ] || { touch "$ROOT/moved"; git update-ref refs/heads/arborist/task/main/T1 main~1; } ;;
esac
exec git "$@"
"#;

#[test]
fn a_branch_that_moves_during_cleanup_is_kept_and_all_others_are_removed() {
    let repo = CleanupRepo::new();
    for task in ["T1", "T2", "T3", "T4", "T5"] {
        repo.branch(task, task, task);
        repo.land(task);
    }
    repo.plant("git", &MOVER.replace("$ROOT", &repo.root().display().to_string()));
    let said = cleanup(&repo, &["--older-than", "0"]).succeeds().matches_snapshot();
    said.matches_snapshot();
    assert!(repo.has("T1") && !repo.has("T2") && !repo.has("T5"));
}

#[test]
fn a_stale_ref_lock_of_a_killed_git_does_not_stop_cleanup() {
    let repo = CleanupRepo::new();
    for task in ["T1", "T2"] {
        repo.branch(task, task, task);
        repo.land(task);
    }
    repo.write(".git/refs/heads/arborist/task/main/T1.lock", "");
    cleanup(&repo, &["--older-than", "0"]).succeeds();
    assert!(!repo.has("T1") && !repo.has("T2"));
}

#[test]
fn a_crashed_run_can_be_cleaned_up_and_then_continued() {
    let repo = CleanupRepo::new();
    repo.write("tasks.md", "- [ ] T1 one\n- [ ] T2 two\n");
    repo.commit("plan\n");
    repo.agent(
        "case $PWD in *lane*) kill -9 $(ps -o ppid= -p $PPID) $PPID 2>/dev/null;; esac; echo x > x.txt",
    );
    let run = repo.arborist(["gardener", "--new-run", "--isolate", "--jobs", "2"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    repo.agent(
        "case $prompt in Review*) echo APPROVED;; *) echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\";; esac",
    );
    let cleaned = cleanup(&repo, &["--older-than", "0", "--force"]);
    assert_eq!(cleaned.code(), 0, "{}", cleaned.report());
    repo.arborist(["gardener", "--isolate", "--jobs", "2"]).succeeds();
    assert!(
        repo.git(["show", "main:T1.txt"]).answer() == "T1"
            && repo.git(["show", "main:T2.txt"]).answer() == "T2"
    );
}
