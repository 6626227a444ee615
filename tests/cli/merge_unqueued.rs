//! Finished tasks that are not in the queue of `git arborist merge` are told of, with what brings them there.

use arborist_testkit::{TestRepo, WORKER};

use crate::{
    pasted_hints::{hinted, paste},
    queue_repo::QueueRepo,
};

#[test]
fn complete_tasks_that_are_not_queued_are_named() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    for verb in ["run", "status"] {
        let said = repo.merge(&[verb]).succeeds().matches_snapshot();
        let said = said.matches_snapshot();
        said.matches_snapshot();
    }
    repo.elsewhere();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    repo.merge(&["T2"]).succeeds().matches_snapshot();
    repo.merge(&["run"]).succeeds().matches_snapshot().never("finished");
}

#[test]
fn a_dropped_task_is_named_until_it_is_queued_again() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let back = "to queue it again, run: git arborist merge add T1";
    repo.merge(&["drop", "T1"]).succeeds().err(back);
    repo.merge(&["status"]).succeeds().matches_snapshot();
    repo.merge(&["status", "T1"]).succeeds().out("dropped").err(back);
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["status"]).succeeds().never("finished");
}

#[test]
fn a_task_that_changes_nothing_on_the_target_is_not_reported_as_unqueued() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "T1");
    repo.commit("the same by hand\n");
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    repo.merge(&["run"]).succeeds().matches_snapshot().never("finished");
}

#[test]
fn a_task_that_the_policy_did_not_choose_is_reported_as_not_queued() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    let said = repo.arborist(["gardener", "--jobs", "2", "--policy", "first"]).exits(1).stdout();
    let left = if said.contains("T002: the policy") { "T002" } else { "T001" };
    is_reported_as_left(&repo, left);
}

#[test]
fn a_task_whose_landing_was_undone_is_reported_as_not_queued() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    repo.git(["branch", "release"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let last = repo.git(["log", "-1", "--format=%s"]).answer();
    let left = if last.contains("@T002@") { "T002" } else { "T001" };
    repo.git(["reset", "-q", "--hard", "HEAD~1"]).succeeds();
    is_reported_as_left(&repo, left);
}

/// Checks that one of two tasks is complete and reported as left, and that the hint lands it.
fn is_reported_as_left(repo: &TestRepo, task: &str) {
    repo.arborist(["state"]).succeeds().out("1 of 2 done, 1 not landed").never("waiting to land");
    let note = format!("note: 1 finished task is not in the queue: {task}\n");
    repo.arborist(["merge", "run"]).succeeds().err(&note);
    let said = repo.arborist(["merge", "status"]).succeeds().out("nothing is queued").err(&note).stderr();
    paste(repo, &hinted(&said, "land it with: ")).succeeds().out(&format!("1 landed ({task})"));
    repo.arborist(["merge", "status"]).succeeds().never("not in the queue");
}
