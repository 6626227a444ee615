//! Shallow clones: work and landings need no more history than there is; where a merge does, it is fetched, and said so.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::{TaskCommit, TestRepo};

/// So many commits more.
fn go_on(repo: &TestRepo, count: usize) {
    for n in 0..count {
        repo.git(["commit", "-q", "--allow-empty", "-m", &format!("{n}")]).succeeds();
    }
}

/// A remote whose `main` has so many commits before and behind the one where the branch of a finished task left it. The run
/// began after that.
fn remote(before: usize, behind: usize) -> TestRepo {
    let repo = TestRepo::init();
    go_on(&repo, before);
    repo.git(["checkout", "-q", "-b", "arborist/task/main/T1"]).succeeds();
    repo.write("t1.txt", "t1\n");
    repo.commit_complete(&TaskCommit::new("T1", "complete").trailer("Session", "s1"));
    repo.git(["checkout", "-q", "main"]).succeeds();
    go_on(&repo, behind);
    repo.run_start("main", "s1");
    repo
}

/// A clone of it with the newest commits of `main`, and the last one of the task.
fn shallow(repo: &TestRepo, depth: &str) -> PathBuf {
    let clone = repo.root().join("clone");
    let source = format!("file://{}", repo.path("").display());
    let place = clone.to_str().unwrap();
    repo.git_in(repo.root(), ["clone", "-q", "--depth", depth, &source, place]).succeeds();
    let branch = "refs/heads/arborist/task/main/T1";
    let spec = format!("{branch}:{branch}");
    repo.git_in(&clone, ["fetch", "-q", "--depth", "1", "origin", &spec]).succeeds();
    clone
}

fn count(repo: &TestRepo, clone: &Path) -> usize {
    repo.git_in(clone, ["rev-list", "--count", "HEAD"]).answer().parse().unwrap()
}

#[test]
fn a_merge_reports_that_it_fetched_all_history_if_one_step_is_not_enough() {
    let repo = remote(1, 70);
    let clone = shallow(&repo, "2");
    let said = repo
        .arborist_in(&clone, ["worktree", "sync", "--offline", "T1"])
        .succeeds()
        .out("T1 is now based on main at");
    said.err("this clone was shallow and a merge needed more history");
    let base = repo.git_in(&clone, ["merge-base", "main", "arborist/task/main/T1"]).answer();
    assert_eq!(base, repo.git_in(&clone, ["rev-parse", "main"]).answer(), "it is merged");
}

#[test]
fn a_merge_fetches_only_one_step_of_history_if_that_is_enough() {
    let repo = remote(70, 60);
    repo.git(["branch", "other"]).succeeds();
    let clone = shallow(&repo, "20");
    let refs = repo.git_in(&clone, ["for-each-ref", "refs/remotes"]).answer();
    assert_eq!(count(&repo, &clone), 20);
    repo.git(["commit", "-q", "--allow-empty", "-m", "elsewhere"]).succeeds();
    let said = repo.arborist_in(&clone, ["worktree", "sync", "--offline", "T1"]).succeeds();
    said.err("this clone is shallow and a merge needed more history");
    assert_eq!(repo.git_in(&clone, ["for-each-ref", "refs/remotes"]).answer(), refs, "no ref is written");
}

#[test]
fn the_error_says_that_history_is_missing_if_no_remote_is_available() {
    let repo = remote(1, 10);
    let clone = shallow(&repo, "2");
    let tip = repo.git_in(&clone, ["rev-parse", "arborist/task/main/T1"]).answer();
    fs::rename(repo.path(""), repo.root().join("gone")).unwrap();
    let sync = ["worktree", "sync", "--offline", "T1"];
    let said = repo.arborist_in(&clone, sync).exits(128);
    let said =
        said.err("have no commit in common in this shallow clone, and more history could not be fetched:");
    said.err("'origin' could not be reached").err("hint: when the remote can be reached");
    repo.git_in(&clone, ["remote", "remove", "origin"]).succeeds();
    repo.arborist_in(&clone, sync).exits(128).err("it has no remote");
    assert_eq!(repo.git_in(&clone, ["rev-parse", "arborist/task/main/T1"]).answer(), tip);
}

/// The run began long ago, and a task was finished on its branch since.
fn long_run(behind: usize) -> TestRepo {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["checkout", "-q", "-b", "arborist/task/main/T1"]).succeeds();
    repo.write("t1.txt", "t1\n");
    repo.commit_complete(&TaskCommit::new("T1", "complete").trailer("Session", "s1"));
    repo.git(["checkout", "-q", "main"]).succeeds();
    go_on(&repo, behind);
    repo
}

#[test]
fn a_landing_fetches_missing_history_and_read_only_commands_do_not() {
    let repo = long_run(70);
    let clone = shallow(&repo, "2");
    repo.arborist_in(&clone, ["state"]).exits(128).err("this is a shallow clone").err("--unshallow");
    repo.arborist_in(&clone, ["merge", "list"]).succeeds();
    assert_eq!(count(&repo, &clone), 2);
    let said = repo.arborist_in(&clone, ["merge", "T1"]).succeeds();
    said.err("a merge needed more history").err("from 'origin'").err("T1 landed as");
    assert_eq!(fs::read_to_string(clone.join("t1.txt")).unwrap(), "t1\n");
    repo.arborist_in(&clone, ["state", "T1"]).succeeds().out("complete");
}

#[test]
fn a_landing_that_cannot_fetch_changes_nothing() {
    let repo = long_run(10);
    let clone = shallow(&repo, "2");
    let refs = repo.git_in(&clone, ["for-each-ref"]).answer();
    fs::rename(repo.path(""), repo.root().join("gone")).unwrap();
    let said = repo.arborist_in(&clone, ["merge", "T1"]).exits(128);
    said.err("more history of this shallow clone could not be fetched: 'origin' could not be reached")
        .err("--unshallow");
    assert_eq!(repo.git_in(&clone, ["for-each-ref"]).answer(), refs);
}

#[test]
fn a_new_run_and_its_landings_need_only_the_newest_commit() {
    let worker = "case \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n", worker);
    let source = format!("file://{}", repo.path("").display());
    for (name, begin) in [("in-place", "--new-run"), ("apart", "--session-branch")] {
        let clone = repo.root().join(name);
        let place = clone.to_str().unwrap();
        repo.git_in(repo.root(), ["clone", "-q", "--depth", "1", &source, place]).succeeds();
        let jobs = ["gardener", "--jobs", "2", begin];
        repo.arborist_in(&clone, jobs).succeeds().out("2 completed").never("fetched");
        assert_eq!(repo.git_in(&clone, ["rev-parse", "--is-shallow-repository"]).answer(), "true");
        repo.arborist_in(&clone, ["session", "list"]).succeeds().out("complete");
    }
    repo.arborist_in(&repo.root().join("in-place"), ["state", "--exit-code"]).succeeds();
    repo.arborist_in(&repo.root().join("in-place"), ["gardener"]).succeeds().out("nothing is left to do");
}

#[test]
fn a_run_works_in_a_clone_of_depth_1_without_options() {
    let worker = "case \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n", worker);
    let source = format!("file://{}", repo.path("").display());
    let clone = repo.root().join("clone");
    let place = clone.to_str().unwrap();
    repo.git_in(repo.root(), ["clone", "-q", "--depth", "1", &source, place]).succeeds();
    let said = repo.arborist_in(&clone, ["gardener"]).succeeds().out("2 completed").never("fetched");
    said.err("shallow clone without a run of this branch").err("git fetch --unshallow");
    assert_eq!(repo.git_in(&clone, ["rev-parse", "--is-shallow-repository"]).answer(), "true");
    repo.arborist_in(&clone, ["state", "--exit-code"]).succeeds();
    repo.arborist_in(&clone, ["gardener"]).succeeds().out("nothing is left to do").never("shallow");
}

#[test]
fn a_run_is_refused_in_a_shallow_clone_that_has_only_a_part_of_it() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", "exit 1");
    repo.run_start("main", "s1");
    repo.commit_complete(&TaskCommit::new("T001", "complete").trailer("Session", "s1"));
    let source = format!("file://{}", repo.path("").display());
    let clone = repo.root().join("clone");
    let place = clone.to_str().unwrap();
    repo.git_in(repo.root(), ["clone", "-q", "--depth", "1", &source, place]).succeeds();
    repo.arborist_in(&clone, ["gardener"]).exits(128).err("shallow").err("git fetch --unshallow");
}

#[test]
fn a_workspace_of_shallow_clones_is_shown_fetched_and_pushed() {
    let repo = long_run(10);
    let clone = shallow(&repo, "2");
    let set = |key: &str, value: &str| {
        repo.git_in(&clone, ["config", &format!("arborist.workspace.repos.app.{key}"), value]).succeeds();
    };
    set("path", ".");
    set("remote", "origin");
    repo.git_in(&clone, ["update-ref", "refs/arborist/sessions/s1", "HEAD"]).succeeds();
    repo.arborist_in(&clone, ["workspace", "status"]).succeeds().out("unpushed: 1 ref");
    repo.arborist_in(&clone, ["workspace", "push"]).succeeds().out("pushed refs/arborist/sessions/s1");
    repo.arborist_in(&clone, ["workspace", "sync"]).succeeds().out("app: fetched from origin");
}
