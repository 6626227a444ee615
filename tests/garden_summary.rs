//! The end of a run: what it came to, in lines that a person can paste into a message.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use arborist_testkit::Garden;

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form"},
    "T003": {"id": "T003", "name": "Wire it up", "depends_on": ["T002"]}
  },
  "root_ids": ["T001", "T002", "T003"]
}
"#;

/// Fails at T002 as long as there is no file `mended`.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T002:*) [ -e "$ROOT/mended" ] || { echo 'the form is too hard' >&2; exit 4; } ;;
  *) echo fine; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn garden() -> Garden {
    Garden::planned("task-tree.json", TREE, WORKER)
}

fn short(garden: &Garden, revision: &str) -> String {
    garden.git(["rev-parse", revision]).answer()[..10].to_owned()
}

#[test]
fn it_says_what_failed_and_why_what_waits_for_it_and_what_to_type_next() {
    let garden = garden();
    let from = short(&garden, "HEAD");
    let said = garden.arborist(["gardener", "--keep-going", "--max-retries", "2"]).exits(1);
    let to = short(&garden, "HEAD");
    let expected = format!(
        "1 completed (T001), 1 failed (T002), 1 left (T003)
  failed T002 \"Add the form\" after 2 attempts: it exited with code 4: the form is too hard
  left   T003 \"Wire it up\": waits for T002
  run    main, 1 of 3 done, 3 attempts in 0s
  log    git log {from}..{to}
  next   git arborist gardener --retry-failed --keep-going --max-retries 2
"
    );
    assert_eq!(said.stdout(), expected);
    std::fs::write(garden.root().join("mended"), "").unwrap();
    let said = garden
        .arborist(["gardener", "--retry-failed"])
        .succeeds()
        .out("2 completed (T002, T003)\n  run    main, 3 of 3 done");
    assert!(!said.stdout().contains("next"), "{}", said.stdout());
}

#[test]
fn what_was_not_taken_up_is_left_with_its_state() {
    let garden = garden();
    let said = garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    said.out("left   T003 \"Wire it up\": waits for T002");
    let said = garden.arborist(["gardener"]).exits(1).out("2 left (T002, T003)\n");
    said.out("left   T002 \"Add the form\": failed").out("next   git arborist gardener --retry-failed");
}

#[test]
fn a_run_that_is_stopped_tells_what_was_done_until_then() {
    let garden = garden();
    garden.agent(&WORKER.replace("*T002:*)", "*T002:*) kill -INT $PPID; sleep 30;;\n  *never*)"));
    let said = garden.arborist(["gardener"]).exits(130).err("error: ").out("1 completed (T001)\n");
    said.out("run    main, 1 of 3 done").out("next   git arborist gardener\n");
}

#[test]
fn quiet_says_only_what_went_wrong() {
    let garden = garden();
    let said = garden.arborist(["garden", "--quiet", "--test-command", "true"]).succeeds().silent();
    assert_eq!(said.stderr(), "");
    let said = garden.arborist(["gardener", "-q", "--test-command", "true", "--max-retries", "1"]).exits(1);
    assert_eq!(said.stderr().lines().count(), 1, "{}", said.stderr());
    said.out("1 failed (T002), 1 left (T003)");
}

#[test]
fn attempts_that_were_killed_are_counted() {
    let garden = Garden::planned("task-tree.json", TREE, "kill -9 $PPID; sleep 30");
    let run = || garden.arborist(["gardener", "--max-retries", "2"]);
    assert_ne!((run().code(), run().code()), (0, 0));
    run().exits(1).out("failed T001 \"Create the schema\" after 2 attempts");
}
