//! `git arborist worktree sync`, and where a task begins when there is a remote.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::Garden;

/// A task with a commit of its own, and a run's branch that has gone on.
fn garden() -> (Garden, PathBuf) {
    let garden = Garden::sprout();
    garden.write(".gitignore", "ignored\n");
    for name in ["a", "b", "c"] {
        garden.write(name, format!("{name}\n"));
    }
    garden.commit("files\n");
    let path = PathBuf::from(garden.arborist(["worktree", "add", "T1"]).answer());
    fs::write(path.join("a"), "of T1\n").unwrap();
    garden.git_in(&path, ["commit", "-qam", "work"]).succeeds();
    garden.write("b", "of main\n");
    garden.write("new", "of main\n");
    garden.commit("main goes on\n");
    (garden, path)
}

fn state(garden: &Garden, path: &Path) -> [String; 4] {
    [
        garden.git_in(path, ["rev-parse", "HEAD"]).answer(),
        garden.git_in(path, ["ls-files", "-s"]).answer(),
        garden.git_in(path, ["status", "--porcelain", "--ignored"]).answer(),
        garden.git_in(path, ["diff"]).answer(),
    ]
}

#[test]
fn the_runs_branch_is_merged_and_what_is_not_committed_stays_as_it_is() {
    let (garden, path) = garden();
    fs::write(path.join("c"), "changed\n").unwrap();
    fs::write(path.join("staged"), "staged\n").unwrap();
    garden.git_in(&path, ["add", "staged"]).succeeds();
    fs::write(path.join("staged"), "staged and changed\n").unwrap();
    fs::write(path.join("untracked"), "untracked\n").unwrap();
    fs::write(path.join("ignored"), "ignored\n").unwrap();
    let before = garden.git_in(&path, ["status", "--porcelain", "--ignored"]).answer();
    garden.arborist(["worktree", "sync", "T1"]).succeeds().shows();
    assert_eq!(garden.git_in(&path, ["status", "--porcelain", "--ignored"]).answer(), before);
    assert_eq!(fs::read_to_string(path.join("b")).unwrap(), "of main\n");
    assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "of main\n");
    assert_eq!(fs::read_to_string(path.join("staged")).unwrap(), "staged and changed\n");
    assert_eq!(garden.git_in(&path, ["show", ":staged"]).answer(), "staged");
    assert_eq!(
        garden.git_in(&path, ["rev-parse", "HEAD^2"]).answer(),
        garden.git(["rev-parse", "main"]).answer()
    );
    assert_eq!(garden.git(["stash", "list"]).answer(), "");
    garden.arborist(["worktree", "sync", "T1"]).succeeds().shows();
}

#[test]
fn conflicts_are_listed_and_nothing_is_changed() {
    let (garden, path) = garden();
    garden.write("a", "of main\n");
    garden.commit("a conflict\n");
    fs::write(path.join("c"), "changed\n").unwrap();
    let before = state(&garden, &path);
    garden.arborist(["worktree", "sync", "T1"]).exits(2).shows();
    assert_eq!(state(&garden, &path), before);
}

#[test]
fn names_of_files_do_not_reach_the_terminal_as_commands() {
    let garden = Garden::sprout();
    let odd = "a\u{1b}[2Jb\r";
    garden.write(odd, "base\n");
    garden.commit("a name\n");
    let path = PathBuf::from(garden.arborist(["worktree", "add", "T1"]).answer());
    fs::write(path.join(odd), "of T1\n").unwrap();
    let shown = r"a\x1b[2Jb\r";
    garden.arborist(["worktree", "remove", "T1"]).exits(1).err(shown).never("\u{1b}");
    garden.write(odd, "of main\n");
    garden.arborist(["worktree", "add", "T2"]).succeeds().err(shown).never("\u{1b}");
    garden.commit("main goes on\n");
    garden.arborist(["worktree", "sync", "T1"]).exits(2).err(shown).never("\u{1b}");
    garden.git_in(&path, ["commit", "-qam", "work"]).succeeds();
    garden.arborist(["worktree", "sync", "T1"]).exits(2).err(&format!("content: {shown}")).never("\u{1b}");
    garden.git(["config", "arborist.worktree.base", "../odd\u{1b}[7m"]).succeeds();
    garden.arborist(["worktree", "add", "T3"]).succeeds();
    for args in [["worktree", "list", "--long"], ["worktree", "show", "T3"], ["worktree", "remove", "T3"]] {
        garden.arborist(args).succeeds().shows().never("\u{1b}");
    }
}

#[test]
fn what_is_not_committed_is_never_written_over() {
    for (file, staged) in [("b", false), ("b", true), ("new", false), ("ignored", false)] {
        let (garden, path) = garden();
        if file == "ignored" {
            garden.write("ignored", "of main\n");
            garden.git(["add", "-f", "ignored"]).succeeds();
            garden.commit("tracked now\n");
        }
        fs::write(path.join(file), "mine\n").unwrap();
        if staged {
            garden.git_in(&path, ["add", file]).succeeds();
        }
        let before = state(&garden, &path);
        garden
            .arborist(["worktree", "sync", "T1"])
            .exits(2)
            .err(&format!("  {file}\n"))
            .err("nothing was changed");
        assert_eq!(state(&garden, &path), before, "{file}");
        assert_eq!(fs::read_to_string(path.join(file)).unwrap(), "mine\n");
    }
}

#[test]
fn a_sync_that_was_killed_goes_on() {
    let (garden, path) = garden();
    fs::write(path.join("c"), "changed\n").unwrap();
    fs::write(path.join("b"), "of main\n").unwrap();
    garden.arborist(["worktree", "sync", "T1"]).succeeds();
    assert_eq!(garden.git_in(&path, ["status", "--porcelain"]).answer(), " M c");
    let (garden, path) = self::garden();
    garden.git_in(&path, ["read-tree", "-m", "-u", "HEAD", "main"]).succeeds();
    garden.git_in(&path, ["checkout", "-q", "HEAD", "--", "a"]).succeeds();
    garden.arborist(["worktree", "sync", "T1"]).succeeds();
    assert_eq!(garden.git_in(&path, ["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_branch_without_a_worktree_is_synced_too() {
    let (garden, _) = garden();
    garden.arborist(["worktree", "remove", "T1"]).succeeds();
    garden.arborist(["worktree", "sync", "T1"]).succeeds();
    let log = garden.git(["log", "-1", "--format=%s", "arborist/task/main/T1"]).answer();
    assert_eq!(log, "Merge branch 'main' into arborist/task/main/T1");
    garden.arborist(["worktree", "sync", "T9"]).exits(1).shows();
}

/// A clone whose branch is behind its remote.
fn clone() -> (Garden, PathBuf) {
    let garden = Garden::sprout();
    let clone = garden.root().join("clone");
    garden.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
    garden.write("new", "of origin\n");
    garden.commit("origin goes on\n");
    (garden, clone)
}

#[test]
fn a_task_begins_at_what_the_remote_has() {
    let (garden, clone) = clone();
    let before = garden.git_in(&clone, ["rev-parse", "HEAD"]).answer();
    let said = garden.arborist_in(&clone, ["worktree", "add", "T1"]).succeeds().shows();
    let path = PathBuf::from(said.stdout().trim_end());
    assert_eq!(
        garden.git_in(&path, ["rev-parse", "HEAD"]).answer(),
        garden.git(["rev-parse", "HEAD"]).answer()
    );
    assert_eq!(garden.git_in(&clone, ["rev-parse", "HEAD"]).answer(), before);
    let said = garden.arborist_in(&clone, ["worktree", "add", "T2", "--offline"]).succeeds().never("behind");
    let path = PathBuf::from(said.stdout().trim_end());
    assert_eq!(garden.git_in(&path, ["rev-parse", "HEAD"]).answer(), before);
    garden.arborist_in(&clone, ["worktree", "sync", "T2"]).succeeds().shows();
    assert!(path.join("new").exists());
}

#[test]
fn without_the_remote_it_is_said_aloud() {
    let (garden, clone) = clone();
    fs::rename(garden.path(".git"), garden.path(".gone")).unwrap();
    let at = garden.git_in(&clone, ["rev-parse", "--short=10", "HEAD"]).answer();
    let said = garden.arborist_in(&clone, ["worktree", "add", "T1"]).succeeds();
    said.err("warning: offline: 'origin' could not be reached").err(&format!("taking 'main' at {at}"));
    garden.arborist_in(&clone, ["worktree", "sync", "T1"]).succeeds().silent().shows();
    garden.arborist_in(&clone, ["worktree", "sync", "T1", "--offline"]).succeeds().shows();
}

#[test]
fn a_branch_that_has_diverged_from_its_remote_is_taken_as_it_is() {
    let (garden, clone) = clone();
    garden.git_in(&clone, ["commit", "-q", "--allow-empty", "-m", "mine"]).succeeds();
    garden.arborist_in(&clone, ["worktree", "add", "T1"]).succeeds().shows();
}
