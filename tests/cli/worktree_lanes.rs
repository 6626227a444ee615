//! Lanes: worktrees that are given to one task after another, with what builds left in them.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use arborist_testkit::TestRepo;

fn repo() -> TestRepo {
    let repo = TestRepo::init();
    repo.write(".gitignore", "target/\n.env\n");
    repo.write("a", "a");
    repo.write("b", "b");
    repo.commit("a and b\n");
    repo
}

fn take_lane(repo: &TestRepo, task: &str) -> PathBuf {
    repo.arborist(["worktree", "add", "--lane", task]).answer().into()
}

fn commit(repo: &TestRepo, path: &Path, message: &str) {
    repo.git_in(path, ["add", "-A"]).succeeds();
    repo.git_in(path, ["commit", "-q", "-m", message]).succeeds();
}

fn branch_in(repo: &TestRepo, path: &Path) -> String {
    repo.git_in(path, ["branch", "--show-current"]).answer()
}

#[test]
fn the_next_task_reuses_the_lane_and_only_different_files_are_written() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    assert!(lane.ends_with("repo.arborist/lane-1"));
    fs::write(lane.join("a"), "of T1").unwrap();
    fs::create_dir(lane.join("target")).unwrap();
    fs::write(lane.join("target/cache"), "warm").unwrap();
    commit(&repo, &lane, "T1\n");
    let unchanged = lane.join("b").metadata().unwrap().ino();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds().out("lane-1 is free");
    assert_eq!(take_lane(&repo, "T2"), lane);
    assert_eq!(branch_in(&repo, &lane), "arborist/task/main/T2");
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    assert_eq!(fs::read_to_string(lane.join("a")).unwrap(), "a", "T2 begins at the run's branch");
    assert_eq!(fs::read_to_string(lane.join("target/cache")).unwrap(), "warm");
    assert_eq!(lane.join("b").metadata().unwrap().ino(), unchanged);
    commit_nothing(&repo, &lane);
    let log = repo.git(["log", "--format=%s", "arborist/task/main/T1"]).answer();
    assert!(!log.contains("nothing"), "T2 never commits on T1's branch");
}

fn commit_nothing(repo: &TestRepo, path: &Path) {
    repo.git_in(path, ["commit", "-q", "--allow-empty", "-m", "nothing"]).succeeds();
}

#[test]
fn all_changes_in_a_lane_are_undone_for_the_next_task() {
    assert_lane_is_restored(|_| ());
}

#[test]
fn ignored_files_do_not_block_tracked_files_of_the_next_task() {
    assert_lane_is_restored(|lane| {
        fs::create_dir_all(lane.join("file/target")).unwrap();
        fs::write(lane.join("file/target/ignored"), "stands in the way of the file").unwrap();
    });
}

/// A lane whose task changed each path in its own way, and what else lies there, is as the next task has to find it.
fn assert_lane_is_restored(left_behind: impl Fn(&Path)) {
    let repo = repo();
    for (path, content) in [
        ("file", "a file"),
        ("folder/deep/one", "1"),
        ("gone", "x"),
        ("*", "star"),
        ("mode", "x"),
        (":(top)odd", "o"),
        ("link", "no link"),
        ("hidden", "h"),
        ("skipped", "s"),
    ] {
        repo.write(path, content);
    }
    repo.commit("many kinds\n");
    let lane = take_lane(&repo, "T1");
    fs::remove_file(lane.join("file")).unwrap();
    fs::create_dir(lane.join("file")).unwrap();
    fs::write(lane.join("file/inner"), "was a file").unwrap();
    fs::remove_dir_all(lane.join("folder")).unwrap();
    fs::write(lane.join("folder"), "was a folder").unwrap();
    for path in ["gone", ":(top)odd", "link"] {
        fs::remove_file(lane.join(path)).unwrap();
    }
    fs::write(lane.join("*"), "another star").unwrap();
    fs::create_dir(lane.join("new")).unwrap();
    fs::write(lane.join("new/only here"), "n").unwrap();
    std::os::unix::fs::symlink("a", lane.join("link")).unwrap();
    fs::set_permissions(lane.join("mode"), fs::Permissions::from_mode(0o755)).unwrap();
    for path in ["hidden", "skipped"] {
        fs::write(lane.join(path), "of T1").unwrap();
    }
    commit(&repo, &lane, "all of it\n");
    repo.git_in(&lane, ["update-index", "--assume-unchanged", "hidden"]).succeeds();
    repo.git_in(&lane, ["update-index", "--skip-worktree", "skipped"]).succeeds();
    left_behind(&lane);
    let unchanged = lane.join("b").metadata().unwrap().ino();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();

    assert_eq!(take_lane(&repo, "T2"), lane);
    assert_eq!(branch_in(&repo, &lane), "arborist/task/main/T2");
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    for mark in ["--no-assume-unchanged", "--no-skip-worktree"] {
        repo.git_in(&lane, ["update-index", mark, "hidden", "skipped"]).succeeds();
    }
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    assert_eq!(fs::read_to_string(lane.join("file")).unwrap(), "a file");
    assert_eq!(fs::read_to_string(lane.join("folder/deep/one")).unwrap(), "1");
    assert!(!lane.join("new").exists(), "an empty folder does not stay");
    assert_eq!(lane.join("b").metadata().unwrap().ino(), unchanged);
}

/// git takes attributes from what lies there already, unless it checks everything out.
#[test]
fn removed_gitattributes_do_not_affect_files_of_the_next_task() {
    let repo = repo();
    repo.write(".gitattributes", "a text eol=crlf\n");
    repo.write("a", "one\r\n");
    repo.commit("attributes\n");
    let lane = take_lane(&repo, "T1");
    assert_eq!(fs::read_to_string(lane.join("a")).unwrap(), "one\r\n");
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    repo.git(["rm", "-q", ".gitattributes"]).succeeds();
    repo.write("a", "two\n");
    repo.commit("no attributes\n");
    assert_eq!(take_lane(&repo, "T2"), lane);
    assert_eq!(fs::read_to_string(lane.join("a")).unwrap(), "two\n");
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
}

#[test]
fn an_unfinished_merge_in_a_lane_does_not_affect_the_next_task() {
    let repo = repo();
    repo.git(["branch", "side"]).succeeds();
    let lane = take_lane(&repo, "T1");
    commit_nothing(&repo, &lane);
    repo.git(["switch", "-q", "side"]).succeeds();
    commit_nothing(&repo, &repo.path(""));
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    repo.git_in(&lane, ["merge", "-q", "--no-commit", "-s", "ours", "side"]).succeeds();
    assert_eq!(take_lane(&repo, "T2"), lane);
    let said = repo.git_in(&lane, ["status"]).answer();
    assert!(said.ends_with("nothing to commit, working tree clean"), "{said}");
}

#[test]
fn files_of_a_force_removed_lane_are_restored_by_task_id() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    fs::write(lane.join("a"), "precious").unwrap();
    repo.arborist(["worktree", "remove", "--force", "T1"]).succeeds().err("files in 'T1' were saved as");
    repo.arborist(["worktree", "restore", "T1"]).exits(1).err("git arborist cleanup saved");
    repo.arborist(["cleanup", "restore", "T1"]).succeeds();
    let path = repo.arborist(["worktree", "path", "T1"]).answer();
    assert_eq!(fs::read_to_string(Path::new(&path).join("a")).unwrap(), "precious");
}

#[test]
fn a_task_gets_its_existing_lane_again() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    fs::write(lane.join("unfinished"), "x").unwrap();
    let other = take_lane(&repo, "T2");
    assert_ne!(lane, other);
    repo.arborist(["worktree", "add", "--lane", "T1"]).succeeds().err("already has a worktree, at");
    assert_eq!(take_lane(&repo, "T1"), lane);
    assert_eq!(fs::read_to_string(lane.join("unfinished")).unwrap(), "x");
}

#[test]
fn uncommitted_files_in_a_free_lane_are_saved_before_the_next_task_uses_it() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    fs::write(lane.join("a"), "changed").unwrap();
    fs::write(lane.join("left"), "behind").unwrap();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    let said =
        repo.arborist(["worktree", "add", "--lane", "T2"]).succeeds().err("files in 'lane-1' were saved");
    let said = said.stderr();
    let saved = said.split_whitespace().find(|word| word.starts_with("refs/")).unwrap();
    assert_eq!(repo.git(["show", &format!("{saved}:left")]).answer(), "behind");
    assert_eq!(repo.git(["show", &format!("{saved}:a")]).answer(), "changed");
    assert!(!lane.join("left").exists());
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
}

#[test]
fn commits_on_no_branch_in_a_free_lane_are_saved_before_the_next_task_uses_it() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    fs::write(lane.join("a"), "mine").unwrap();
    commit(&repo, &lane, "on no branch\n");
    let work = repo.git_in(&lane, ["rev-parse", "HEAD"]).answer();
    repo.arborist(["worktree", "add", "--lane", "T2"])
        .succeeds()
        .err("commits of 'lane-1' that are on no branch were saved as refs/arborist/saved/main/lane-1/head-");
    assert_eq!(fs::read_to_string(lane.join("a")).unwrap(), "a");
    let saved = repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved/"]).answer();
    assert_eq!(saved, work);
    repo.arborist(["worktree", "recycle", "T2"]).succeeds();
    repo.arborist(["worktree", "add", "--lane", "T3"]).succeeds().never("saved");
}

#[test]
fn a_lane_that_contains_a_repository_is_not_reused() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    let inner = lane.join("inner");
    repo.git_in(repo.root(), ["init", "-q", inner.to_str().unwrap()]).succeeds();
    repo.git_in(&inner, ["commit", "-q", "--allow-empty", "-m", "only here"]).succeeds();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    assert_ne!(take_lane(&repo, "T2"), lane);
    assert_eq!(repo.git_in(&inner, ["log", "--format=%s"]).answer(), "only here");
}

#[test]
fn side_branches_conflicts_and_a_broken_git_file_do_not_affect_the_next_task() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    fs::write(lane.join("a"), "mine").unwrap();
    commit(&repo, &lane, "one\n");
    repo.git_in(&lane, ["checkout", "-q", "-b", "side", "HEAD~1"]).succeeds();
    fs::write(lane.join("a"), "theirs").unwrap();
    commit(&repo, &lane, "other\n");
    let _ = repo.git_in(&lane, ["merge", "arborist/task/main/T1"]).exits(1);
    repo.arborist(["worktree", "recycle", "lane-1"]).succeeds();
    fs::write(lane.join(".git"), "gitdir: /nowhere\n").unwrap();
    assert_eq!(take_lane(&repo, "T2"), lane);
    assert_eq!(branch_in(&repo, &lane), "arborist/task/main/T2");
    assert_eq!(repo.git_in(&lane, ["status", "--porcelain"]).answer(), "");
    repo.git_in(&lane, ["rev-parse", "-q", "--verify", "MERGE_HEAD"]).exits(1).silent();
    let side = repo.git(["log", "-1", "--format=%s", "side"]).answer();
    assert_eq!(side, "other", "nothing is lost");
}

#[test]
fn worktree_keep_decides_which_ignored_files_stay_in_a_lane() {
    for (keep, stays) in [("*", ["target", ".env"].as_slice()), ("", &[]), ("/target/", &["target"])] {
        let repo = repo();
        repo.git(["config", "arborist.worktree.keep", keep]).succeeds();
        let lane = take_lane(&repo, "T1");
        fs::create_dir(lane.join("target")).unwrap();
        fs::write(lane.join("target/cache"), "warm").unwrap();
        fs::write(lane.join(".env"), "secret").unwrap();
        repo.arborist(["worktree", "recycle", "T1"]).succeeds();
        assert_eq!(take_lane(&repo, "T2"), lane);
        let there: Vec<&str> =
            ["target", ".env"].into_iter().filter(|name| lane.join(name).exists()).collect();
        assert_eq!(there, stays, "{keep}");
    }
}

#[test]
fn a_repository_in_ignored_files_of_a_lane_is_not_deleted() {
    let repo = repo();
    repo.git(["config", "arborist.worktree.keep", ""]).succeeds();
    let lane = take_lane(&repo, "T1");
    repo.git_in(&lane, ["init", "-q", "target/inner"]).succeeds();
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    let other = take_lane(&repo, "T2");
    assert_ne!(other, lane, "the lane with a repository in it was taken");
    assert!(lane.join("target/inner/.git").exists());
}

#[test]
fn a_manually_created_worktree_is_no_lane() {
    let repo = repo();
    repo.arborist(["worktree", "add", "T1"]).succeeds();
    repo.arborist(["worktree", "recycle", "T1"]).exits(1).err("'T1' has no lane");
    let path = repo.arborist(["worktree", "add", "lane-7"]).answer();
    assert!(path.ends_with("/task-lane-7"), "{path}");
}

#[test]
fn free_lanes_are_listed_and_can_be_removed() {
    let repo = repo();
    let lane = take_lane(&repo, "T1");
    repo.arborist(["worktree", "recycle", "T1"]).succeeds();
    repo.arborist(["worktree", "list"]).succeeds().out("(lane-1)").out("free");
    repo.arborist(["worktree", "remove", "lane-1"]).succeeds();
    assert!(!lane.exists());
    repo.arborist(["worktree", "list"]).succeeds().silent();
}
