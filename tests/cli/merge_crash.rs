//! `git arborist merge` killed at every call of git: whoever runs it again finds each task landed once, or still queued.

use std::fs;

use crate::queue_repo::QueueRepo;
use arborist_testkit::{Run, call_stride};

/// When the process dies, seen from the call of git that kills it.
#[derive(Clone, Copy, PartialEq)]
enum When {
    Before,
    After,
}

/// A `git` that kills its parent at the n-th call. One that stays and is told of one object after the other is called
/// as often as it is told, and so is one that moves refs, transaction by transaction.
const DEADLY: &str = r#"#!/bin/sh
step() {
    n=$(($(cat "$DEADLY_COUNT" 2>/dev/null || echo 0) + 1))
    echo $n > "$DEADLY_COUNT"
    [ "$n" = "$DEADLY_AT" ] || return 0
    [ "$DEADLY_WHEN" = after ] && "$@" >/dev/null 2>&1
    kill -9 $PPID
    exit 1
}
tell() { printf '%s\n' "$line" | REAL_GIT "$@"; }
move() { printf '%s' "$batch" | REAL_GIT "$@"; }
case " $* " in
*" --stdin-paths "*)
    while IFS= read -r line; do
        step tell "$@"
        tell "$@"
    done
    exit
    ;;
*" update-ref "*" --stdin ")
    batch=
    while IFS= read -r line; do
        batch="$batch$line
"
        [ "$line" = commit ] || continue
        step move "$@"
        move "$@" || exit
        batch=
    done
    [ -n "$batch" ] || exit 0
    step move "$@"
    move "$@"
    exit
    ;;
*" --batch"* | *" diff-tree "*" --stdin "*) step true ;;
*) step REAL_GIT "$@" ;;
esac
exec REAL_GIT "$@"
"#;

fn run_with_deadly_git(repo: &QueueRepo, at: usize, when: When) -> Run {
    let count = repo.root().join("count");
    let _ = fs::remove_file(&count);
    let mut command = repo.command("git-arborist-merge", &repo.path(""));
    command
        .env("DEADLY_COUNT", count)
        .env("DEADLY_AT", at.to_string())
        .env("DEADLY_WHEN", if when == When::After { "after" } else { "before" })
        .args(["run", "--scope", "main", "-q"]);
    Run::of(&mut command, b"")
}

/// Everything as it was before the first landing.
fn restore_start(repo: &QueueRepo, start: &str) {
    let refs = repo.git(["for-each-ref", "--format=delete %(refname)", "refs/arborist"]).answer();
    let refs: String = refs.lines().map(|line| format!("{line}\n")).collect();
    let mut update = repo.command("git", &repo.path(""));
    Run::of(update.args(["update-ref", "--stdin"]), refs.as_bytes()).succeeds();
    if repo.git(["symbolic-ref", "--short", "HEAD"]).answer() == "main" {
        repo.git(["stash", "-q", "-u"]).succeeds();
        repo.git(["reset", "-q", "--hard", start]).succeeds();
        repo.git(["stash", "pop", "-q", "--index"]).succeeds();
    } else {
        repo.git(["update-ref", "refs/heads/main", start]).succeeds();
    }
    repo.merge(&["add", "T1", "T2", "T3"]).succeeds();
    let _ = fs::remove_file(repo.root().join("tested"));
}

fn tested(repo: &QueueRepo) -> String {
    fs::read_to_string(repo.root().join("tested")).unwrap_or_default()
}

/// Kills it at every third call, until it survives; `ARBORIST_EVERY_CALL=1` for all calls.
fn kill_at_each_step(repo: &QueueRepo, when: When) {
    let tested_by = format!("git rev-parse HEAD >> '{}/tested'", repo.root().display());
    repo.git(["config", "arborist.merge.gates.check.command", &tested_by]).succeeds();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let start = repo.git(["rev-parse", "main"]).answer();
    let dirt = || repo.git(["status", "--porcelain"]).answer();
    let before = (dirt(), repo.read("kept.txt"));
    for at in (1..).step_by(call_stride(3)) {
        restore_start(repo, &start);
        repo.plant("git", &DEADLY.replace("REAL_GIT", git.to_str().unwrap()));
        let run = run_with_deadly_git(repo, at, when);
        fs::remove_file(repo.bin().join("git")).unwrap();
        let main = repo.git(["rev-parse", "main"]).answer();
        assert!(main == start || tested(repo).contains(&main), "{at}: at a commit that was not tested");
        if run.code() == 0 {
            assert!(at > 20, "it ended too soon to have been killed: {}", run.report());
            return;
        }
        repo.merge(&["run"]).succeeds();
        assert_eq!(repo.subjects("main").len(), 3, "{at}: {:?}", repo.subjects("main"));
        let main = repo.git(["rev-parse", "main"]).answer();
        assert!(tested(repo).contains(&main), "{at}");
        repo.merge(&["list"]).succeeds().silent();
        let log = repo.merge(&["log"]).answer();
        assert_eq!(log.matches("landed").count(), 3, "{at}: {log}");
        assert_eq!((dirt(), repo.read("kept.txt")), before, "{at}: the checkout is as it was");
    }
}

#[test]
fn landings_survive_a_kill_before_each_git_call_with_a_dirty_checkout_of_the_target() {
    let repo = QueueRepo::with_finished(&["T1", "T2", "T3"]);
    repo.write("kept.txt", "changed");
    repo.write("mine.txt", "mine");
    repo.write("staged.txt", "staged");
    repo.git(["add", "staged.txt"]).succeeds();
    kill_at_each_step(&repo, When::Before);
}

#[test]
fn landings_survive_a_kill_after_each_git_call_without_a_checkout_of_the_target() {
    let repo = QueueRepo::with_finished(&["T1", "T2", "T3"]);
    repo.elsewhere();
    kill_at_each_step(&repo, When::After);
}
