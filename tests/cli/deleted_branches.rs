//! A task branch that was deleted before its work landed: it is called lost, its commits are named, and no run does the
//! task again without a word. And a branch that was reset below the work of its tasks: `state` says so.

use arborist_testkit::TestRepo;

use crate::test_workspace::TestWorkspace;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p'); echo "$task" > "$task.txt" ;;
esac
"#;
const BRANCH: &str = "refs/heads/arborist/task/main/T001";

/// Deletes the branch of T001, and returns its last commit.
fn delete(repo: &TestRepo) -> String {
    let tip = repo.git(["rev-parse", BRANCH]).answer();
    repo.git(["update-ref", "-d", BRANCH]).succeeds();
    tip
}

/// Runs the command of a hint.
fn bring_back(repo: &TestRepo, tip: &str) {
    repo.git(["branch", "arborist/task/main/T001", tip]).succeeds();
}

#[test]
fn a_queued_task_is_lost_until_its_deleted_branch_is_restored() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).exits(1);
    let (tip, calls) = (delete(&repo), repo.calls());
    let back = format!("git branch 'arborist/task/main/T001' {tip}");
    repo.arborist(["state"]).succeeds().out("'arborist/task/main/T001' is gone, but ").out(&tip[..10]);
    repo.arborist(["state", "--ready"]).succeeds().never("T001");
    repo.arborist(["merge", "status"]).exits(2).out("lost").out(&tip[..10]).err(&back);
    repo.arborist(["merge", "status", "--json"]).exits(2).out("\"state\": \"lost\"");
    repo.arborist(["merge", "run"]).exits(2).out("1 lost (T001)").err(&back);
    repo.arborist(["merge", "T001"]).exits(2).err("'T001' is lost").err(&back);
    for run in [&["gardener"][..], &["gardener", "--jobs", "2"], &["garden", "T001"]] {
        repo.arborist(run).exits(2).err("the work of task 'T001' is lost").err("the merge queue").err(&back);
    }
    assert_eq!(repo.calls(), calls, "it is not done again");
    bring_back(&repo, &tip);
    repo.arborist(["merge", "status"]).succeeds().out("waiting");
    repo.arborist(["merge", "run"]).succeeds().out("1 landed (T001)");
}

#[test]
fn a_lost_task_that_is_dropped_from_the_queue_is_done_again() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).exits(1);
    delete(&repo);
    repo.arborist(["merge", "status"]).exits(2).err("git arborist merge drop T001");
    repo.arborist(["merge", "drop", "T001"]).succeeds();
    repo.git(["config", "--unset", "arborist.merge.auto"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).succeeds().out("1 completed");
}

#[test]
fn commits_of_a_deleted_branch_of_a_lane_are_found_in_the_reflog_of_the_lane() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener", "--isolate", "--test-command", "false", "--allow-red"]).exits(1);
    repo.arborist(["reset", "T001"]).succeeds();
    repo.arborist(["worktree", "add", "T001"]).succeeds();
    let lane = repo.arborist(["worktree", "path", "T001"]).answer();
    repo.git(["-C", &lane, "commit", "-q", "--allow-empty", "-m", "own work"]).succeeds();
    let (tip, calls) = (delete(&repo), repo.calls());
    for (command, code) in [
        (&["gardener"][..], 2),
        (&["gardener", "--jobs", "2"], 2),
        (&["merge", "T001"], 2),
        (&["worktree", "show", "T001"], 2),
        (&["worktree", "list"], 0),
    ] {
        let said = repo.arborist(command).exits(code).err("the work of task 'T001' is lost");
        said.err("the reflog of ").err(&format!("git branch 'arborist/task/main/T001' {tip}"));
    }
    assert_eq!(repo.calls(), calls, "it is not done again");
    bring_back(&repo, &tip);
    repo.arborist(["worktree", "list"]).succeeds().never("lost");
}

#[test]
fn a_task_whose_branch_was_deleted_before_the_first_run_is_lost_too() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["worktree", "add", "T001"]).succeeds();
    let lane = repo.arborist(["worktree", "path", "T001"]).answer();
    repo.git(["-C", &lane, "commit", "-q", "--allow-empty", "-m", "own work"]).succeeds();
    let tip = delete(&repo);
    let back = format!("git branch 'arborist/task/main/T001' {tip}");
    repo.arborist(["merge", "T001"]).exits(2).err("the work of task 'T001' is lost").err(&back);
    repo.arborist(["worktree", "show", "T001"]).exits(2).out("lost").err(&back);
    repo.arborist(["state", "--ready"]).succeeds().out("nothing is ready");
}

#[test]
fn a_branch_that_was_merged_by_hand_and_deleted_is_not_lost() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).exits(1);
    repo.git(["merge", "-q", "--no-ff", "-m", "by hand", BRANCH]).succeeds();
    delete(&repo);
    repo.arborist(["merge", "status"]).succeeds();
    repo.arborist(["merge", "run"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
}

fn reset(repo: &TestRepo, commit: &str) {
    repo.git(["reset", "-q", "--hard", commit]).succeeds();
}

fn lost(repo: &TestRepo, task: &str) -> serde_json::Value {
    let document: serde_json::Value =
        serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    let tasks = document["tasks"].as_array().unwrap();
    tasks.iter().find(|found| found["id"] == task).unwrap()["lost"].clone()
}

#[test]
fn state_names_tasks_whose_commits_are_no_longer_on_the_branch() {
    let plan = "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n";
    let repo = TestRepo::planned("tasks.md", plan, WORKER);
    let start = repo.git(["rev-parse", "HEAD"]).answer();
    repo.arborist(["gardener", "--only", "T001", "--only", "T002"]).succeeds();
    let last = |task: &str| {
        repo.git(["log", "-1", "--format=%H", &format!("--grep=^task(main@{task}@complete)"), "main@{0}"])
            .answer()
    };
    let (one, two) = (last("T001"), last("T002"));
    repo.arborist(["state"]).succeeds().never("no longer");
    reset(&repo, &one);
    let words = format!("its commits are no longer in main, the last was {}", &two[..10]);
    repo.arborist(["state"]).succeeds().out("1 of 3 done").out(&words);
    repo.arborist(["state", "T002"]).succeeds().out(&words);
    repo.arborist(["state", "T003"]).succeeds().never("no longer");
    assert_eq!((lost(&repo, "T001"), lost(&repo, "T002")), (serde_json::Value::Null, two.clone().into()));
    // Before the run began.
    reset(&repo, &start);
    assert_eq!((lost(&repo, "T001"), lost(&repo, "T002")), (one.into(), two.clone().into()));
    // Back again, or rewritten with all commits.
    reset(&repo, &two);
    repo.arborist(["state"]).succeeds().never("no longer");
    repo.git(["commit", "-q", "--amend", "--no-edit", "--date=now", "--reset-author"]).succeeds();
    repo.arborist(["state"]).succeeds().out("2 of 3 done").never("no longer");
    // Done again.
    reset(&repo, &start);
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["state"]).succeeds().never("no longer");
}

#[test]
fn a_landing_that_was_reset_off_the_target_does_not_count_and_is_repeated() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["gardener", "--isolate"]).succeeds();
    let (calls, before) = (repo.calls(), repo.git(["rev-parse", "HEAD~1"]).answer());
    reset(&repo, &before);
    repo.arborist(["state", "--exit-code"]).exits(1).out("1 not landed");
    repo.arborist(["worktree", "list", "--branches"]).succeeds().out("+4 -0");
    repo.arborist(["cleanup", "--older-than", "0"]).succeeds().out("4 commits are not merged");
    repo.arborist(["gardener", "--isolate"]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds().never("not landed");
    assert_eq!(repo.calls(), calls, "it is landed again, and not done again");
    assert_eq!(repo.git(["show", "main:T002.txt"]).answer(), "T002");
}

const IN_BACKEND: &str = "- [ ] T001 [P] [repo:backend] one\n";

/// The branch of T001 in the repository 'backend'.
fn branch_in_backend(workspace: &TestWorkspace) -> String {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/task/*/T001"];
    workspace.git_in(&workspace.clone_of("backend"), list).answer()
}

#[test]
fn a_task_is_lost_until_its_deleted_branch_in_another_repository_is_restored() {
    let workspace = TestWorkspace::of(&["backend"], IN_BACKEND);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
    let (backend, scope) = (workspace.clone_of("backend"), workspace.session_branch("repo"));
    let branch = branch_in_backend(&workspace);
    let tip = workspace.git_in(&backend, ["rev-parse", &branch]).answer();
    workspace.git_in(&backend, ["update-ref", "-d", &format!("refs/heads/{branch}")]).succeeds();
    let merge = |verb: &[&str]| workspace.arborist([&["merge"], verb, &["--scope", &scope]].concat());
    let back = format!("branch '{branch}' {tip}");
    let words = format!("its branch '{branch}' in backend is gone; it was at {}", &tip[..10]);
    for _ in 0..2 {
        merge(&["status"]).exits(2).out("lost").out(&words).err(&back).err("merge drop T001");
        merge(&["status", "--json"]).exits(2).out("\"state\": \"lost\"");
        merge(&["run"]).exits(2).out("1 lost (T001)").err(&words).err(&back);
    }
    workspace.arborist(["state", "--scope", &scope]).succeeds().out("lost");
    workspace.git_in(&backend, ["branch", &branch, &tip]).succeeds();
    merge(&["status"]).succeeds().out("waiting");
    merge(&["run"]).succeeds().out("1 landed (T001)");
}

#[test]
fn state_and_run_summary_name_a_branch_deleted_in_another_repository_as_merge_does() {
    let workspace = TestWorkspace::of(&["backend"], IN_BACKEND);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
    let (backend, scope) = (workspace.clone_of("backend"), workspace.session_branch("repo"));
    let branch = branch_in_backend(&workspace);
    let tip = workspace.git_in(&backend, ["rev-parse", &branch]).answer();
    let next = format!("git arborist merge status T001 --scope {scope}");
    let words = format!("its branch '{branch}' in backend is gone; it was at {}", &tip[..10]);
    let state = |task: &[&str]| workspace.arborist([&["state", "--scope", &scope], task].concat()).succeeds();
    state(&[]).out("not landed").never("lost");
    let deleted = ["update-ref", "-d", &format!("refs/heads/{branch}")];
    workspace.git_in(&backend, deleted).succeeds();
    // Nothing has tried to land it since.
    state(&[]).out("not landed (lost)");
    state(&["T001"]).out(&words).out(&next);
    workspace.arborist(["gardener", "--jobs", "2"]).exits(2).out(&words).out(&next);
    // With a landing.
    let auto = ["-c", "arborist.merge.auto=true", "arborist", "gardener", "--jobs", "2"];
    workspace.git(auto).exits(2).out(&words).out(&next);
    // It is not called lost any longer when the branch is back, before anything lands.
    workspace.git_in(&backend, ["branch", &branch, &tip]).succeeds();
    state(&[]).out("not landed").never("lost");
    workspace.arborist(["gardener", "--jobs", "2"]).exits(1).out("merge.auto is off").never("gone");
}

#[test]
fn later_commits_on_a_landed_task_branch_in_another_repository_do_not_count_as_landed() {
    let workspace = TestWorkspace::of(&["backend"], IN_BACKEND);
    workspace.agent(WORKER);
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds();
    let (backend, scope) = (workspace.clone_of("backend"), workspace.session_branch("repo"));
    let merge =
        |options: &[&str]| workspace.arborist([&["merge", "T001", "--scope", &scope], options].concat());
    merge(&[]).succeeds().out("T001 has already landed");
    let branch = branch_in_backend(&workspace);
    let place = workspace.root().join("more");
    let place = place.to_str().unwrap();
    workspace.git_in(&backend, ["worktree", "add", "-q", "--force", place, &branch]).succeeds();
    workspace.git(["-C", place, "commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
    let words = format!("'T001' is already done, and '{branch}' in backend has 1 commit that ");
    for options in [&[][..], &["--force"]] {
        merge(options).exits(1).err(&words).err(&format!("merge {branch}"));
        let again = format!("git arborist reset T001 --scope {scope} && git arborist session resume ");
        merge(options).exits(1).err(&again);
    }
}
