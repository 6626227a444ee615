//! Finished tasks that are not in the queue of `git arborist merge` are told of, with what brings them there.

use crate::queue_repo::QueueRepo;

#[test]
fn complete_tasks_that_are_not_queued_are_named() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    for verb in ["run", "status"] {
        let said = repo.merge(&[verb]).succeeds().shows();
        let said = said.shows();
        said.shows();
    }
    repo.elsewhere();
    repo.merge(&["run"]).succeeds().shows();
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["run"]).succeeds().shows();
    repo.merge(&["T2"]).succeeds().shows();
    repo.merge(&["run"]).succeeds().shows().never("finished");
}

#[test]
fn a_dropped_task_is_named_until_it_is_queued_again() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let back = "to queue it again, run: git arborist merge add T1";
    repo.merge(&["drop", "T1"]).succeeds().err(back);
    repo.merge(&["status"]).succeeds().shows();
    repo.merge(&["status", "T1"]).succeeds().out("dropped").err(back);
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["status"]).succeeds().never("finished");
}

#[test]
fn a_task_that_changes_nothing_on_the_target_is_not_reported_as_unqueued() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "T1");
    repo.commit("the same by hand\n");
    repo.merge(&["T1"]).succeeds().shows();
    repo.merge(&["run"]).succeeds().shows().never("finished");
}
