//! `git arborist merge` killed at every call of git: whoever runs it again finds each task landed once, or still queued.

use std::fs;

use crate::orchard::Orchard;
use arborist_testkit::Run;

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

fn deadly(orchard: &Orchard, at: usize, when: When) -> Run {
    let count = orchard.root().join("count");
    let _ = fs::remove_file(&count);
    let mut command = orchard.command("git-arborist-merge", &orchard.path(""));
    command
        .env("DEADLY_COUNT", count)
        .env("DEADLY_AT", at.to_string())
        .env("DEADLY_WHEN", if when == When::After { "after" } else { "before" })
        .args(["run", "--scope", "main", "-q"]);
    Run::of(&mut command, b"")
}

/// Everything as it was before the first landing.
fn begin_anew(orchard: &Orchard, start: &str) {
    let refs = orchard.git(["for-each-ref", "--format=delete %(refname)", "refs/arborist"]).answer();
    let refs: String = refs.lines().map(|line| format!("{line}\n")).collect();
    let mut update = orchard.command("git", &orchard.path(""));
    Run::of(update.args(["update-ref", "--stdin"]), refs.as_bytes()).succeeds();
    if orchard.git(["symbolic-ref", "--short", "HEAD"]).answer() == "main" {
        orchard.git(["stash", "-q", "-u"]).succeeds();
        orchard.git(["reset", "-q", "--hard", start]).succeeds();
        orchard.git(["stash", "pop", "-q", "--index"]).succeeds();
    } else {
        orchard.git(["update-ref", "refs/heads/main", start]).succeeds();
    }
    orchard.merge(&["add", "T1", "T2", "T3"]).succeeds();
    let _ = fs::remove_file(orchard.root().join("tested"));
}

fn tested(orchard: &Orchard) -> String {
    fs::read_to_string(orchard.root().join("tested")).unwrap_or_default()
}

/// Kills it at every call, one after the other, until it survives.
fn kill_at_each_step(orchard: &Orchard, when: When) {
    let tested_by = format!("git rev-parse HEAD >> '{}/tested'", orchard.root().display());
    orchard.git(["config", "arborist.merge.gates.check.command", &tested_by]).succeeds();
    let git = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|dir| dir.join("git"))
        .find(|git| git.is_file())
        .unwrap();
    let start = orchard.git(["rev-parse", "main"]).answer();
    let dirt = || orchard.git(["status", "--porcelain"]).answer();
    let before = (dirt(), orchard.read("kept.txt"));
    for at in 1.. {
        begin_anew(orchard, &start);
        orchard.plant("git", &DEADLY.replace("REAL_GIT", git.to_str().unwrap()));
        let run = deadly(orchard, at, when);
        fs::remove_file(orchard.bin().join("git")).unwrap();
        let main = orchard.git(["rev-parse", "main"]).answer();
        assert!(main == start || tested(orchard).contains(&main), "{at}: at a commit that was not tested");
        if run.code() == 0 {
            assert!(at > 20, "it ended too soon to have been killed: {}", run.report());
            return;
        }
        orchard.merge(&["run"]).succeeds();
        assert_eq!(orchard.subjects("main").len(), 3, "{at}: {:?}", orchard.subjects("main"));
        let main = orchard.git(["rev-parse", "main"]).answer();
        assert!(tested(orchard).contains(&main), "{at}");
        orchard.merge(&["list"]).succeeds().silent();
        let log = orchard.merge(&["log"]).answer();
        assert_eq!(log.matches("landed").count(), 3, "{at}: {log}");
        assert_eq!((dirt(), orchard.read("kept.txt")), before, "{at}: the checkout is as it was");
    }
}

#[test]
fn killed_before_each_call_while_the_target_is_checked_out_and_dirty() {
    let orchard = Orchard::grown(&["T1", "T2", "T3"]);
    orchard.write("kept.txt", "changed");
    orchard.write("mine.txt", "mine");
    orchard.write("staged.txt", "staged");
    orchard.git(["add", "staged.txt"]).succeeds();
    kill_at_each_step(&orchard, When::Before);
}

#[test]
fn killed_after_each_call_while_the_target_is_checked_out_nowhere() {
    let orchard = Orchard::grown(&["T1", "T2", "T3"]);
    orchard.elsewhere();
    kill_at_each_step(&orchard, When::After);
}
