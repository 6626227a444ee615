//! Work in worktrees: it is held by one at a time, saved while it goes on, and brought back.

use std::{fs, path::PathBuf};

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

fn repo() -> (TestRepo, PathBuf) {
    let repo = TestRepo::init();
    repo.write(".gitignore", "cache\n");
    repo.write("a", "a");
    repo.commit("a\n");
    let path = PathBuf::from(repo.arborist(["worktree", "add", "T1"]).answer());
    (repo, path)
}

fn run(repo: &TestRepo, script: &str) -> Run {
    repo.arborist(["worktree", "run", "T1", "--", "sh", "-c", script])
}

const WIP: &str = "refs/arborist/wip/main/T1/tree";

#[test]
fn a_program_runs_in_the_worktree_with_its_environment_and_its_exit_code() {
    let (repo, path) = repo();
    let said = run(&repo, "echo $ARBORIST_TASK; pwd; git branch --show-current; exit 7").exits(7);
    assert_eq!(said.stdout(), format!("T1\n{}\narborist/task/main/T1\n", path.display()));
    let mut command = repo.command("git", repo.root());
    command.env("GIT_DIR", repo.path(".git")).env("GIT_WORK_TREE", repo.path(""));
    command.args(["arborist", "worktree", "run", "T1", "--", "git", "branch", "--show-current"]);
    assert_eq!(Run::of(&mut command, b"").answer(), "arborist/task/main/T1", "git finds the worktree");
    repo.arborist(["worktree", "run", "T2", "--", "true"]).exits(1).matches_snapshot();
    repo.arborist(["worktree", "run", "T1"]).exits(129);
    repo.arborist(["worktree", "run", "T1", "--", "no-such-program"]).exits(128).matches_snapshot();
}

#[test]
fn a_running_program_holds_its_worktree_exclusively_and_is_listed() {
    let (repo, _) = repo();
    let said = run(&repo, "git arborist worktree list --json").succeeds();
    let list: Value = serde_json::from_str(&said.stdout()).unwrap();
    let holder = &list["worktrees"][0]["holder"];
    assert_eq!(holder["what"], "T1 of main", "{list:#}");
    assert!(holder["pid"].as_u64().unwrap() > 1);
    for verb in ["add", "remove"] {
        run(&repo, &format!("git arborist worktree {verb} T1")).exits(3).matches_snapshot();
    }
    run(&repo, "git arborist worktree run T1 -- true").exits(3).matches_snapshot();
    run(&repo, "git arborist worktree add T2 --scope main").succeeds();
    repo.arborist(["worktree", "list"]).succeeds().never("held by");
}

#[test]
fn work_of_a_program_is_saved_while_it_runs_and_at_its_end() {
    let (repo, path) = repo();
    repo.git(["config", "arborist.worktree.save-every", "1"]).succeeds();
    let wait = format!(
        "echo b > a; echo new > new; echo hot > cache; n=0; until git cat-file -e {WIP}:new 2>/dev/null; do sleep 0.1; n=$((n+1)); [ $n -lt 1200 ] || exit 9; done; rm new"
    );
    run(&repo, &wait).succeeds();
    let saved = |revision: &str| repo.git(["show", &format!("{WIP}{revision}:new")]).code();
    assert_eq!(saved("@{1}"), 0, "while it ran");
    assert_ne!(saved(""), 0, "at its end");
    assert_eq!(repo.git(["show", &format!("{WIP}:a")]).answer(), "b");
    assert_ne!(repo.git(["show", &format!("{WIP}:cache")]).code(), 0, "what is ignored is no work");
    assert_eq!(repo.git_in(&path, ["status", "--porcelain"]).answer(), " M a", "its own index is untouched");
    let reflog = || repo.git(["reflog", "show", "--format=%H", WIP]).answer();
    let before = reflog();
    run(&repo, "true").succeeds();
    assert_eq!(reflog(), before, "where nothing changed nothing is written");
}

#[test]
fn restore_brings_back_lost_work() {
    let (repo, path) = repo();
    run(&repo, "echo b > a; mkdir d; echo new > d/new; git add d; echo hot > cache").succeeds();
    repo.git_in(&path, ["reset", "-q", "--hard"]).succeeds();
    repo.git_in(&path, ["clean", "-qfd"]).succeeds();
    fs::write(path.join("other"), "later").unwrap();
    let said = repo.arborist(["worktree", "restore", "T1"]).succeeds().matches_snapshot();
    assert_eq!(said.stdout(), "a\nd/new\nother\n");
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "b\n");
    assert_eq!(fs::read_to_string(path.join("d/new")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(path.join("cache")).unwrap(), "hot\n");
    assert_eq!(repo.git_in(&path, ["diff", "--cached", "--name-only"]).answer(), "", "nothing is staged");
    repo.arborist(["worktree", "restore", "T1"]).succeeds().matches_snapshot();
    repo.arborist(["worktree", "restore", "T2"]).exits(1).matches_snapshot();
}

#[test]
fn restore_works_without_the_worktree_but_not_over_newer_commits() {
    let (repo, path) = repo();
    run(&repo, "echo b > a").succeeds();
    fs::remove_dir_all(&path).unwrap();
    repo.arborist(["worktree", "restore", "T1"]).succeeds();
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "b\n");
    repo.git_in(&path, ["commit", "-qam", "written down"]).succeeds();
    repo.arborist(["worktree", "restore", "T1"]).exits(2).matches_snapshot();
}

#[test]
fn saved_work_of_a_worktree_is_not_mistaken_for_a_crashed_run() {
    let (repo, _) = repo();
    run(&repo, "echo b > a").succeeds();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.commit("a plan\n");
    repo.agent("case \"$prompt\" in Review*) echo APPROVED;; *) echo x > x; echo done;; esac");
    repo.arborist(["gardener"]).succeeds().matches_snapshot().never("interrupted");
}

#[test]
fn changes_of_a_program_to_the_git_directory_are_undone() {
    let (repo, path) = repo();
    let plant = "g=$(git rev-parse --git-common-dir); echo '#' > \"$g/hooks/post-checkout\"; git config core.fsmonitor evil";
    for (end, code) in [("true", 1), ("exit 7", 7)] {
        run(&repo, &format!("{plant}; {end}"))
            .exits(code)
            .err("warning: the command changed the git directory: ")
            .err("the hook post-checkout was added while an agent or a command ran");
        assert!(!repo.path(".git/hooks/post-checkout").exists());
        assert_eq!(repo.git(["config", "core.fsmonitor"]).code(), 1);
    }
    run(&repo, "echo b > b; git add b; git -c user.name=a -c user.email=a@b commit -qm mine")
        .succeeds()
        .never("warning");
    assert_eq!(repo.git_in(&path, ["log", "-1", "--format=%s"]).answer(), "mine");
}
