//! A task branch that was deleted before its work landed: it is called lost, its commits are named, and no run does the
//! task again without a word.

use arborist_testkit::TestRepo;

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
fn a_queued_task_whose_branch_is_gone_is_lost_until_the_branch_is_back() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).exits(1);
    let (tip, calls) = (delete(&repo), repo.calls());
    let back = format!("git branch 'arborist/task/main/T001' {tip}");
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
fn a_lost_task_that_is_given_up_is_done_again() {
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
fn a_branch_that_was_deleted_below_a_lane_is_found_in_the_reflog_of_the_lane() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener", "--isolate", "--test-command", "false", "--allow-red"]).exits(1);
    repo.arborist(["reset", "T001"]).succeeds();
    repo.arborist(["worktree", "add", "T001"]).succeeds();
    let lane = repo.arborist(["worktree", "path", "T001"]).answer();
    repo.git(["-C", &lane, "commit", "-q", "--allow-empty", "-m", "own work"]).succeeds();
    let (tip, calls) = (delete(&repo), repo.calls());
    repo.arborist(["worktree", "list"]).succeeds().out("lost");
    for run in [&["gardener"][..], &["gardener", "--jobs", "2"]] {
        let said = repo.arborist(run).exits(2).err("the work of task 'T001' is lost");
        said.err("the reflog of ").err(&format!("git branch 'arborist/task/main/T001' {tip}"));
    }
    assert_eq!(repo.calls(), calls, "it is not done again");
    bring_back(&repo, &tip);
    repo.arborist(["worktree", "list"]).succeeds().never("lost");
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
