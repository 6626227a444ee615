//! An implement step that adds nothing fails, and the next attempt is told so.

use crate::turning;
use arborist_testkit::Garden;
use serde_json::Value;

const PLAN: &str = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#;

fn garden(script: &str) -> Garden {
    Garden::planned("task-tree.json", PLAN, &format!("trap - EXIT\n{script}"))
}

fn statuses(garden: &Garden) -> Vec<String> {
    let log = garden.git(["log", "--reverse", "--format=%s"]).answer();
    let status = |line: &str| Some(line.strip_prefix("task(main@T1@")?.split_once(')')?.0.to_owned());
    log.lines().filter_map(status).collect()
}

const APPROVES: &str = "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\n";

#[test]
fn an_agent_that_changes_nothing_fails_and_is_told_so() {
    for place in [[].as_slice(), &["--isolate"]] {
        let garden = garden(&format!("{APPROVES}[ $n = 0 ] || echo work > work.txt\necho all done"));
        garden.arborist(["gardener"].iter().chain(place)).succeeds();
        assert_eq!(garden.calls(), 3, "nothing was reviewed after the first attempt");
        let told = garden.prompt(1);
        assert!(told.contains("has not changed any file") && told.contains("all done"), "{told}");
        assert!(garden.prompt(0).contains("NOTHING TO DO:"));
    }
}

#[test]
fn an_agent_that_never_changes_anything_uses_up_its_attempts() {
    let garden = garden(&format!("{APPROVES}echo all done"));
    garden.arborist(["gardener", "--max-retries", "2"]).exits(1);
    assert_eq!(statuses(&garden), ["implement-fail", "implement-fail", "failed"]);
}

#[test]
fn nothing_that_changed_since_a_rejection_is_no_new_attempt() {
    let script = "case \"$prompt\" in Review*) [ -e more.txt ] && echo APPROVED || echo 'REJECTED: more'; exit ;; esac\n\
                  case $n in 0) echo work > work.txt ;; 2) ;; *) echo more > more.txt ;; esac\necho done";
    let garden = garden(script);
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(
        statuses(&garden),
        [
            "implement-pass",
            "test-pass",
            "review-rejected",
            "implement-fail",
            "implement-pass",
            "test-pass",
            "review-approved",
            "complete"
        ]
    );
    assert!(garden.prompt(3).contains("since the review rejected it"), "{}", garden.prompt(3));
}

#[test]
fn what_was_rejected_in_an_earlier_run_must_change_too_whatever_others_commit() {
    let script =
        "case \"$prompt\" in Review*) echo 'REJECTED: no'; exit ;; esac\necho work > work.txt\necho done";
    let garden = garden(script);
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    garden.write("theirs.txt", "of the user\n");
    garden.commit("of the user\n");
    garden.agent(&format!("trap - EXIT\n{APPROVES}echo done"));
    garden.arborist(["gardener", "--max-retries", "1", "--retry-failed"]).exits(1);
    assert_eq!(statuses(&garden)[4..], ["reset", "implement-fail", "failed"]);
}

#[test]
fn a_failed_test_must_be_followed_by_a_change() {
    let garden = garden(&format!(
        "{APPROVES}case $n in 0) echo a > a.txt ;; 1) ;; *) echo b > b.txt ;; esac\necho done"
    ));
    garden.arborist(["gardener", "--test-command", "test -e b.txt -o ! -e a.txt"]).succeeds();
    assert!(
        statuses(&garden).starts_with(
            &["implement-pass", "test-fail", "implement-fail", "implement-pass"].map(String::from)
        )
    );
    assert!(garden.prompt(2).contains("since the tests failed"), "{}", garden.prompt(2));
}

#[test]
fn an_agent_may_say_that_there_is_nothing_to_do_and_the_reviewer_decides() {
    let says = "echo 'I looked.'; echo '**NOTHING TO DO: the file is there**'";
    let garden = garden(&format!("{APPROVES}{says}"));
    garden.arborist(["gardener"]).succeeds();
    let asked = garden.prompt(1);
    assert!(asked.contains("the file is there") && asked.contains("(no file was changed)"), "{asked}");
    let refused = self::garden(&format!(
        "case \"$prompt\" in Review*) echo 'REJECTED: it is not'; exit ;; esac\n{says}"
    ));
    refused.arborist(["gardener", "--max-retries", "1"]).exits(1);
    assert_eq!(statuses(&refused), ["implement-pass", "test-pass", "review-rejected", "failed"]);
    // The reviewer is informed after a crash as well.
    let killed = self::garden(&format!(
        "case \"$prompt\" in Review*) [ $n -gt 1 ] || kill -9 $PPID; echo APPROVED; exit ;; esac\n{says}"
    ));
    assert_ne!(killed.arborist(["gardener"]).code(), 0);
    killed.arborist(["gardener"]).succeeds();
    assert!(killed.prompt(2).contains("the file is there"), "{}", killed.prompt(2));
}

#[test]
fn words_that_only_look_like_it_are_no_excuse() {
    for says in [
        "echo 'NOTHING TO DO'",
        "echo 'NOTHING TO DO:'",
        "echo 'NOTHING TO DO: x'; echo more",
        "echo 'nothing to do: x'",
    ] {
        let garden = garden(&format!("{APPROVES}{says}"));
        garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
        assert_eq!(statuses(&garden), ["implement-fail", "failed"], "{says}");
    }
}

#[test]
fn a_command_of_the_plan_passes_by_its_exit_code() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "runner": "shell", "command": "true"}}, "root_ids": ["T1"]}"#;
    let garden = Garden::planned("task-tree.json", plan, APPROVES);
    garden.arborist(["gardener", "--yes"]).succeeds();
    assert_eq!(statuses(&garden), ["implement-pass", "test-pass", "review-approved", "complete"]);
}

#[test]
fn an_agent_that_takes_its_own_turns_back_has_added_nothing() {
    let garden = turning::garden(
        "claude",
        "opens\ncalls 1 'I add a'; echo a > a; answers 1\ncalls 2 'I remove it'; rm a; answers 2\nends done\n",
    );
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let said: Value = serde_json::from_str(&garden.arborist(["state", "--json"]).answer()).unwrap();
    assert_eq!(said["tasks"][0]["state"], "failed");
}
