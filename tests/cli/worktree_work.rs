//! Work in worktrees: it is held by one at a time, saved while it goes on, and brought back.

use std::{fs, path::PathBuf};

use arborist_testkit::{Garden, Run};
use serde_json::Value;

fn garden() -> (Garden, PathBuf) {
    let garden = Garden::sprout();
    garden.write(".gitignore", "cache\n");
    garden.write("a", "a");
    garden.commit("a\n");
    let path = PathBuf::from(garden.arborist(["worktree", "add", "T1"]).answer());
    (garden, path)
}

fn run(garden: &Garden, script: &str) -> Run {
    garden.arborist(["worktree", "run", "T1", "--", "sh", "-c", script])
}

const WIP: &str = "refs/arborist/wip/main/T1/tree";

#[test]
fn a_program_runs_in_the_worktree_with_its_environment_and_its_exit_code() {
    let (garden, path) = garden();
    let said = run(&garden, "echo $ARBORIST_TASK; pwd; git branch --show-current; exit 7").exits(7);
    assert_eq!(said.stdout(), format!("T1\n{}\narborist/task/main/T1\n", path.display()));
    let mut command = garden.command("git", garden.root());
    command.env("GIT_DIR", garden.path(".git")).env("GIT_WORK_TREE", garden.path(""));
    command.args(["arborist", "worktree", "run", "T1", "--", "git", "branch", "--show-current"]);
    assert_eq!(Run::of(&mut command, b"").answer(), "arborist/task/main/T1", "git finds the worktree");
    garden.arborist(["worktree", "run", "T2", "--", "true"]).exits(1).shows();
    garden.arborist(["worktree", "run", "T1"]).exits(129);
    garden.arborist(["worktree", "run", "T1", "--", "no-such-program"]).exits(128).shows();
}

#[test]
fn whoever_works_there_is_alone_and_is_listed() {
    let (garden, _) = garden();
    let said = run(&garden, "git arborist worktree list --json").succeeds();
    let list: Value = serde_json::from_str(&said.stdout()).unwrap();
    let holder = &list["worktrees"][0]["holder"];
    assert_eq!(holder["what"], "T1 of main", "{list:#}");
    assert!(holder["pid"].as_u64().unwrap() > 1);
    for verb in ["add", "remove"] {
        run(&garden, &format!("git arborist worktree {verb} T1")).exits(3).shows();
    }
    run(&garden, "git arborist worktree run T1 -- true").exits(3).shows();
    run(&garden, "git arborist worktree add T2 --scope main").succeeds();
    garden.arborist(["worktree", "list"]).succeeds().never("held by");
}

#[test]
fn what_a_program_did_is_saved_while_it_runs_and_at_its_end() {
    let (garden, path) = garden();
    garden.git(["config", "arborist.worktree.save-every", "1"]).succeeds();
    let wait = format!(
        "echo b > a; echo new > new; echo hot > cache; n=0; until git rev-parse -q --verify {WIP}; do sleep 0.1; n=$((n+1)); [ $n -lt 300 ] || exit 9; done; rm new"
    );
    run(&garden, &wait).succeeds();
    let saved = |revision: &str| garden.git(["show", &format!("{WIP}{revision}:new")]).code();
    assert_eq!(saved("@{1}"), 0, "while it ran");
    assert_ne!(saved(""), 0, "at its end");
    assert_eq!(garden.git(["show", &format!("{WIP}:a")]).answer(), "b");
    assert_ne!(garden.git(["show", &format!("{WIP}:cache")]).code(), 0, "what is ignored is no work");
    assert_eq!(
        garden.git_in(&path, ["status", "--porcelain"]).answer(),
        " M a",
        "its own index is untouched"
    );
    let reflog = || garden.git(["reflog", "show", "--format=%H", WIP]).answer();
    let before = reflog();
    run(&garden, "true").succeeds();
    assert_eq!(reflog(), before, "where nothing changed nothing is written");
}

#[test]
fn lost_work_is_brought_back() {
    let (garden, path) = garden();
    run(&garden, "echo b > a; mkdir d; echo new > d/new; git add d; echo hot > cache").succeeds();
    garden.git_in(&path, ["reset", "-q", "--hard"]).succeeds();
    garden.git_in(&path, ["clean", "-qfd"]).succeeds();
    fs::write(path.join("other"), "later").unwrap();
    let said = garden.arborist(["worktree", "restore", "T1"]).succeeds().shows();
    assert_eq!(said.stdout(), "a\nd/new\nother\n");
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "b\n");
    assert_eq!(fs::read_to_string(path.join("d/new")).unwrap(), "new\n");
    assert_eq!(fs::read_to_string(path.join("cache")).unwrap(), "hot\n");
    assert_eq!(garden.git_in(&path, ["diff", "--cached", "--name-only"]).answer(), "", "nothing is staged");
    garden.arborist(["worktree", "restore", "T1"]).succeeds().shows();
    garden.arborist(["worktree", "restore", "T2"]).exits(1).shows();
}

#[test]
fn lost_work_comes_back_without_its_worktree_but_not_over_newer_commits() {
    let (garden, path) = garden();
    run(&garden, "echo b > a").succeeds();
    fs::remove_dir_all(&path).unwrap();
    garden.arborist(["worktree", "restore", "T1"]).succeeds();
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "b\n");
    garden.git_in(&path, ["commit", "-qam", "written down"]).succeeds();
    garden.arborist(["worktree", "restore", "T1"]).exits(2).shows();
}

#[test]
fn a_crashed_run_of_the_checkout_is_not_confused_by_saved_work() {
    let (garden, _) = garden();
    run(&garden, "echo b > a").succeeds();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    garden.commit("a plan\n");
    garden.agent("case \"$prompt\" in Review*) echo APPROVED;; *) echo x > x; echo done;; esac");
    garden.arborist(["gardener"]).succeeds().shows().never("interrupted");
}
