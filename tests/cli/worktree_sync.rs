//! `git arborist worktree sync`, and where a task begins when there is a remote.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::TestRepo;

/// A task with a commit of its own, and a run's branch that has gone on.
fn repo() -> (TestRepo, PathBuf) {
    let repo = TestRepo::init();
    repo.write(".gitignore", "ignored\n");
    for name in ["a", "b", "c"] {
        repo.write(name, format!("{name}\n"));
    }
    repo.commit("files\n");
    let path = PathBuf::from(repo.arborist(["worktree", "add", "T1"]).answer());
    fs::write(path.join("a"), "of T1\n").unwrap();
    repo.git_in(&path, ["commit", "-qam", "work"]).succeeds();
    repo.write("b", "of main\n");
    repo.write("new", "of main\n");
    repo.commit("main goes on\n");
    (repo, path)
}

fn state(repo: &TestRepo, path: &Path) -> [String; 4] {
    [
        repo.git_in(path, ["rev-parse", "HEAD"]).answer(),
        repo.git_in(path, ["ls-files", "-s"]).answer(),
        repo.git_in(path, ["status", "--porcelain", "--ignored"]).answer(),
        repo.git_in(path, ["diff"]).answer(),
    ]
}

#[test]
fn sync_merges_the_branch_of_the_run_and_keeps_uncommitted_changes() {
    let (repo, path) = repo();
    fs::write(path.join("c"), "changed\n").unwrap();
    fs::write(path.join("staged"), "staged\n").unwrap();
    repo.git_in(&path, ["add", "staged"]).succeeds();
    fs::write(path.join("staged"), "staged and changed\n").unwrap();
    fs::write(path.join("untracked"), "untracked\n").unwrap();
    fs::write(path.join("ignored"), "ignored\n").unwrap();
    let before = repo.git_in(&path, ["status", "--porcelain", "--ignored"]).answer();
    repo.arborist(["worktree", "sync", "T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.git_in(&path, ["status", "--porcelain", "--ignored"]).answer(), before);
    assert_eq!(fs::read_to_string(path.join("b")).unwrap(), "of main\n");
    assert_eq!(fs::read_to_string(path.join("new")).unwrap(), "of main\n");
    assert_eq!(fs::read_to_string(path.join("staged")).unwrap(), "staged and changed\n");
    assert_eq!(repo.git_in(&path, ["show", ":staged"]).answer(), "staged");
    assert_eq!(
        repo.git_in(&path, ["rev-parse", "HEAD^2"]).answer(),
        repo.git(["rev-parse", "main"]).answer()
    );
    assert_eq!(repo.git(["stash", "list"]).answer(), "");
    repo.arborist(["worktree", "sync", "T1"]).succeeds().matches_snapshot();
}

#[test]
fn sync_lists_conflicts_and_changes_nothing() {
    let (repo, path) = repo();
    repo.write("a", "of main\n");
    repo.commit("a conflict\n");
    fs::write(path.join("c"), "changed\n").unwrap();
    let before = state(&repo, &path);
    repo.arborist(["worktree", "sync", "T1"]).exits(2).matches_snapshot();
    assert_eq!(state(&repo, &path), before);
}

#[test]
fn control_characters_in_file_names_do_not_reach_the_terminal() {
    let repo = TestRepo::init();
    let odd = "a\u{1b}[2Jb\r";
    repo.write(odd, "base\n");
    repo.commit("a name\n");
    let path = PathBuf::from(repo.arborist(["worktree", "add", "T1"]).answer());
    fs::write(path.join(odd), "of T1\n").unwrap();
    let shown = r"a\x1b[2Jb\r";
    repo.arborist(["worktree", "remove", "T1"]).exits(1).err(shown).never("\u{1b}");
    repo.write(odd, "of main\n");
    repo.arborist(["worktree", "add", "T2"]).succeeds().err(shown).never("\u{1b}");
    repo.commit("main goes on\n");
    repo.arborist(["worktree", "sync", "T1"]).exits(2).err(shown).never("\u{1b}");
    repo.git_in(&path, ["commit", "-qam", "work"]).succeeds();
    repo.arborist(["worktree", "sync", "T1"]).exits(2).err(&format!("content: {shown}")).never("\u{1b}");
    repo.git(["config", "arborist.worktree.base", "../odd\u{1b}[7m"]).succeeds();
    repo.arborist(["worktree", "add", "T3"]).succeeds();
    for args in [["worktree", "list", "--long"], ["worktree", "show", "T3"], ["worktree", "remove", "T3"]] {
        repo.arborist(args).succeeds().matches_snapshot().never("\u{1b}");
    }
}

#[test]
fn sync_never_overwrites_uncommitted_files() {
    for (file, staged) in [("b", false), ("b", true), ("new", false), ("ignored", false)] {
        let (repo, path) = repo();
        if file == "ignored" {
            repo.write("ignored", "of main\n");
            repo.git(["add", "-f", "ignored"]).succeeds();
            repo.commit("tracked now\n");
        }
        fs::write(path.join(file), "mine\n").unwrap();
        if staged {
            repo.git_in(&path, ["add", file]).succeeds();
        }
        let before = state(&repo, &path);
        repo.arborist(["worktree", "sync", "T1"])
            .exits(2)
            .err(&format!("  {file}\n"))
            .err("nothing was changed");
        assert_eq!(state(&repo, &path), before, "{file}");
        assert_eq!(fs::read_to_string(path.join(file)).unwrap(), "mine\n");
    }
}

#[test]
fn a_killed_sync_can_be_repeated() {
    let (repo, path) = repo();
    fs::write(path.join("c"), "changed\n").unwrap();
    fs::write(path.join("b"), "of main\n").unwrap();
    repo.arborist(["worktree", "sync", "T1"]).succeeds();
    assert_eq!(repo.git_in(&path, ["status", "--porcelain"]).answer(), " M c");
    let (repo, path) = self::repo();
    repo.git_in(&path, ["read-tree", "-m", "-u", "HEAD", "main"]).succeeds();
    repo.git_in(&path, ["checkout", "-q", "HEAD", "--", "a"]).succeeds();
    repo.arborist(["worktree", "sync", "T1"]).succeeds();
    assert_eq!(repo.git_in(&path, ["status", "--porcelain"]).answer(), "");
}

#[test]
fn sync_updates_a_branch_without_a_worktree() {
    let (repo, _) = repo();
    repo.arborist(["worktree", "remove", "T1"]).succeeds();
    repo.arborist(["worktree", "sync", "T1"]).succeeds();
    let log = repo.git(["log", "-1", "--format=%s", "arborist/task/main/T1"]).answer();
    assert_eq!(log, "Merge branch 'main' into arborist/task/main/T1");
    repo.arborist(["worktree", "sync", "T9"]).exits(1).matches_snapshot();
}

#[test]
fn a_task_is_synced_again_only_after_the_cooldown_or_on_request() {
    let (repo, path) = repo();
    let tip = || repo.git_in(&path, ["rev-parse", "HEAD"]).answer();
    let move_main = |name: &str| {
        repo.write(name, "of main\n");
        repo.commit("main moves\n");
    };
    repo.arborist(["worktree", "sync", "T1"]).succeeds();
    move_main("one");
    let before = tip();
    repo.arborist(["worktree", "sync", "T1"])
        .succeeds()
        .err("nothing was done, because")
        .err("worktree sync --now T1");
    assert_eq!(tip(), before);
    repo.arborist(["worktree", "sync", "--now", "T1"]).succeeds();
    assert_ne!(tip(), before);
    move_main("two");
    let before = tip();
    repo.git(["config", "arborist.worktree.sync-cooldown", "0"]).succeeds();
    repo.arborist(["worktree", "sync", "T1"]).succeeds().never("nothing was done, because");
    assert_ne!(tip(), before);
}

/// A clone whose branch is behind its remote.
fn clone() -> (TestRepo, PathBuf) {
    let repo = TestRepo::init();
    let clone = repo.root().join("clone");
    repo.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
    repo.write("new", "of origin\n");
    repo.commit("origin goes on\n");
    (repo, clone)
}

#[test]
fn a_task_starts_from_the_remote_branch() {
    let (repo, clone) = clone();
    let before = repo.git_in(&clone, ["rev-parse", "HEAD"]).answer();
    let said = repo.arborist_in(&clone, ["worktree", "add", "T1"]).succeeds().matches_snapshot();
    let path = PathBuf::from(said.stdout().trim_end());
    assert_eq!(repo.git_in(&path, ["rev-parse", "HEAD"]).answer(), repo.git(["rev-parse", "HEAD"]).answer());
    assert_eq!(repo.git_in(&clone, ["rev-parse", "HEAD"]).answer(), before);
    let said = repo.arborist_in(&clone, ["worktree", "add", "T2", "--offline"]).succeeds().never("behind");
    let path = PathBuf::from(said.stdout().trim_end());
    assert_eq!(repo.git_in(&path, ["rev-parse", "HEAD"]).answer(), before);
    repo.arborist_in(&clone, ["worktree", "sync", "T2"]).succeeds().matches_snapshot();
    assert!(path.join("new").exists());
}

#[test]
fn an_unreachable_remote_causes_a_warning_with_the_local_base() {
    let (repo, clone) = clone();
    fs::rename(repo.path(".git"), repo.path(".gone")).unwrap();
    let at = repo.git_in(&clone, ["rev-parse", "--short=10", "HEAD"]).answer();
    let said = repo.arborist_in(&clone, ["worktree", "add", "T1"]).succeeds();
    said.err("warning: offline: 'origin' could not be reached")
        .err(&format!("the task starts from 'main', at {at}"));
    repo.arborist_in(&clone, ["worktree", "sync", "T1"]).succeeds().silent().matches_snapshot();
    repo.arborist_in(&clone, ["worktree", "sync", "T1", "--offline"]).succeeds().matches_snapshot();
}

#[test]
fn a_branch_that_diverged_from_its_remote_is_used_unchanged() {
    let (repo, clone) = clone();
    repo.git_in(&clone, ["commit", "-q", "--allow-empty", "-m", "mine"]).succeeds();
    repo.arborist_in(&clone, ["worktree", "add", "T1"]).succeeds().matches_snapshot();
}
