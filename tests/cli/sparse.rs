//! A checkout that leaves out `.arborist/`: the tracked configuration is read from the commit.

use arborist_testkit::Garden;

use crate::orchard::Orchard;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n";
const WORKER: &str =
    "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\" ;;\nesac";
const GATES: &str = "[[merge.gates]]\nname = \"check\"\ncommand = \"! test -e T001.txt\"\n";

/// Leaves the folder with the configuration out of the checkout.
fn leave_out(garden: &Garden) {
    garden.git(["sparse-checkout", "set", "--no-cone", "/*", "!/.arborist/"]).succeeds();
    assert!(!garden.path(".arborist").exists());
}

fn landed(garden: &Garden, task: &str) -> bool {
    garden.git(["cat-file", "-e", &format!("main:{task}.txt")]).code() == 0
}

#[test]
fn a_run_in_a_sparse_checkout_asks_the_tracked_gates() {
    let garden = Garden::planned("tasks.md", PLAN, WORKER);
    garden.write(".arborist/config.toml", GATES);
    garden.commit("gates\n");
    leave_out(&garden);
    assert_ne!(garden.arborist(["gardener", "--jobs", "2", "--keep-going"]).code(), 0);
    assert_eq!(garden.calls(), 0, "the gate has to be approved first");
    garden.arborist(["gardener", "--jobs", "2", "--keep-going", "--yes"]).exits(1);
    assert_eq!((landed(&garden, "T001"), landed(&garden, "T002")), (false, true));
    let gates = garden.git(["log", "-1", "--merges", "--format=%(trailers:key=Arborist-Gate,valueonly)"]);
    assert_eq!(gates.answer().trim(), "check");
    // Nothing has changed, so a second call does not ask to accept anything.
    garden.arborist(["gardener", "--jobs", "2", "--keep-going", "--yes"]).exits(1).never("--accept-changes");
}

#[test]
fn a_landing_by_hand_in_a_sparse_checkout_asks_the_tracked_gates() {
    let orchard = Orchard::bare_orchard();
    orchard.write(".arborist/config.toml", GATES);
    orchard.commit("gates\n");
    orchard.run_start("main", "s1");
    orchard.branch_off("T001", "complete");
    leave_out(&orchard);
    orchard.merge(&["T001", "--yes"]).exits(1);
    assert!(!landed(&orchard, "T001"));
}

#[test]
fn a_configuration_that_is_missing_in_the_checkout_is_that_of_the_commit() {
    let garden = Garden::planned("tasks.md", PLAN, WORKER);
    garden.write(".arborist/config.toml", "test-command = \"false\"\nmax-retries = 1\n");
    garden.commit("configuration\n");
    std::fs::remove_file(garden.path(".arborist/config.toml")).unwrap();
    garden.arborist(["gardener", "--jobs", "2", "--yes"]).exits(1);
    assert!(!landed(&garden, "T001") && !landed(&garden, "T002"), "the test command of the commit is red");
}

#[test]
fn a_new_configuration_in_the_checkout_is_frozen_with_the_start() {
    let garden = Garden::planned("tasks.md", PLAN, WORKER);
    garden.write(".arborist/config.toml", GATES);
    garden.arborist(["gardener", "--jobs", "2", "--keep-going", "--yes"]).exits(1);
    assert_eq!((landed(&garden, "T001"), landed(&garden, "T002")), (false, true));
    assert_eq!(garden.git(["show", "main:.arborist/config.toml"]).answer(), GATES.trim_end());
}

#[test]
fn a_task_in_words_stops_too_if_the_configuration_has_changed() {
    let garden = Garden::planned("tasks.md", PLAN, WORKER);
    garden.write(".arborist/config.toml", "max-retries = 2\n");
    garden.commit("configuration\n");
    garden.arborist(["garden", "-m", "one"]).succeeds();
    garden.write(".arborist/config.toml", "max-retries = 3\n");
    let refused = garden.arborist(["garden", "-m", "two"]);
    assert_ne!(refused.code(), 0);
    assert!(refused.report().contains("--accept-changes"), "{}", refused.report());
}
