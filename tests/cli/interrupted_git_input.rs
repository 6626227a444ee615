//! A driver that is killed after it has started git, and before git has read its standard input. What git is told to write
//! must not depend on a pipe that can be cut: an empty list of paths means "everything" to `git reset`.

use std::{
    fs,
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TestRepo, call_stride};

const TREE: &str = r#"{
  "nodes": {"T001": {"id": "T001", "name": "Create one"}, "T002": {"id": "T002", "name": "Create two"}},
  "root_ids": ["T001", "T002"]
}
"#;

const AGENT: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T001:*) echo one > one.txt; echo more >> shared.txt; echo done ;;
  *) echo two > two.txt; rm -f one.txt; echo done ;;
esac
"#;

/// A git that numbers the calls that read standard input, and kills who called it before it reads any. A pipe is empty then,
/// as if its writer had been killed before the first byte: that moment is too short to be met by killing alone.
fn plant_git(repo: &TestRepo) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let script = r#"#!/bin/sh
case " $* " in
*" --pathspec-from-file=- "* | *" --stdin "* | *" --stdin-paths "* | *" --index-info "* | *" -F - "* | *" --batch"*)
    set -C
    n=1; until { echo "$*" > "CALLS/$n"; } 2>/dev/null; do n=$((n+1)); done
    if [ "$n" = "$KILL_AT" ]; then
        kill -9 $PPID
        while kill -0 $PPID 2>/dev/null && [ "$(cut -d' ' -f3 /proc/$PPID/stat)" != Z ]; do :; done
        [ -p /dev/stdin ] && exec < /dev/null
        "GIT" "$@" > /dev/null 2>&1
        touch "ROOT/over"
        exit 1
    fi ;;
esac
exec "GIT" "$@"
"#;
    let calls = repo.root().join("calls");
    fs::create_dir_all(&calls).unwrap();
    let script =
        script.replace("CALLS", calls.to_str().unwrap()).replace("\"GIT\"", &format!("'{}'", git.display()));
    repo.plant("git", &script.replace("ROOT", repo.root().to_str().unwrap()));
}

/// The user has staged one change and made another, in files of their own and in one that an agent writes too.
fn repo() -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", TREE);
    repo.write("mine.txt", "first\n");
    repo.write("gone.txt", "gone\n");
    repo.write("shared.txt", "shared\n");
    repo.commit("files\n");
    repo.agent(AGENT);
    repo.write("mine.txt", "first\nstaged\n");
    repo.write("new.txt", "staged\n");
    repo.git(["rm", "-q", "gone.txt"]).succeeds();
    repo.git(["add", "mine.txt", "new.txt"]).succeeds();
    repo.write("mine.txt", "first\nstaged\nnot staged\n");
    repo
}

fn run(repo: &TestRepo, kill_at: usize) -> Run {
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    let command = command.args(["--test-command", "true", "--allow-dirty"]);
    Run::of(command.env("KILL_AT", kill_at.to_string()), b"")
}

/// What the user has staged and not staged.
fn work_of_user(repo: &TestRepo) -> (String, String, bool) {
    let staged = repo.git(["ls-files", "-s", "--", "mine.txt", "new.txt", "gone.txt"]).answer();
    (staged, repo.read("mine.txt"), repo.path("gone.txt").exists())
}

fn wait_for_git_to_end(repo: &TestRepo) {
    let end = Instant::now() + Duration::from_secs(60);
    while !repo.root().join("over").exists() {
        assert!(Instant::now() < end, "git never ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn killing_the_driver_before_git_reads_its_input_preserves_staged_changes_of_the_user() {
    let whole = repo();
    plant_git(&whole);
    run(&whole, 0).succeeds();
    let calls = fs::read_dir(whole.root().join("calls")).unwrap().count();
    let named = |n: usize| fs::read_to_string(whole.root().join(format!("calls/{n}"))).unwrap();
    let is_told_paths = |n: &usize| named(*n).contains("--pathspec-from-file=-");
    assert!((1..=calls).any(|n| is_told_paths(&n)), "no list of paths was ever given");
    let stride = call_stride(4);
    for kill_at in (1..=calls).filter(|n| n % stride == 0 || is_told_paths(n)) {
        let repo = repo();
        let before = work_of_user(&repo);
        plant_git(&repo);
        let killed = run(&repo, kill_at);
        assert_eq!(killed.code(), 137, "{kill_at}: {}", killed.report());
        wait_for_git_to_end(&repo);
        let call = fs::read_to_string(repo.root().join(format!("calls/{kill_at}"))).unwrap();
        assert_eq!(work_of_user(&repo), before, "killed at {kill_at}: {call}");
        run(&repo, 0).succeeds();
        assert_eq!(work_of_user(&repo), before, "killed at {kill_at}, run again: {call}");
        assert_eq!(repo.git(["show", "HEAD:two.txt"]).answer(), "two", "{call}");
    }
}
