//! Finished tasks that are not in the queue of `git arborist merge` are told of, with what brings them there.

use crate::orchard::Orchard;

#[test]
fn finished_tasks_that_nobody_has_queued_are_named() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    for verb in ["run", "status"] {
        let said = orchard.merge(&[verb]).succeeds().shows();
        let said = said.shows();
        said.shows();
    }
    orchard.elsewhere();
    orchard.merge(&["run"]).succeeds().shows();
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
    orchard.merge(&["T2"]).succeeds().shows();
    orchard.merge(&["run"]).succeeds().shows().never("finished");
}

#[test]
fn a_task_that_was_taken_out_is_named_until_it_is_back() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let back = "back into the queue with: git arborist merge add T1";
    orchard.merge(&["drop", "T1"]).succeeds().err(back);
    orchard.merge(&["status"]).succeeds().shows();
    orchard.merge(&["status", "T1"]).succeeds().out("dropped").err(back);
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.merge(&["status"]).succeeds().never("finished");
}

#[test]
fn what_changes_nothing_needs_no_place_in_the_queue() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write("T1.txt", "T1");
    orchard.commit("the same by hand\n");
    orchard.merge(&["T1"]).succeeds().shows();
    orchard.merge(&["run"]).succeeds().shows().never("finished");
}
