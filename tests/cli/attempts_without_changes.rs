//! An implement step that adds nothing fails, and the next attempt is told so.

use crate::turn_scripts;
use arborist_testkit::TestRepo;
use serde_json::Value;

const PLAN: &str = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#;

fn repo(script: &str) -> TestRepo {
    TestRepo::planned("task-tree.json", PLAN, &format!("trap - EXIT\n{script}"))
}

fn statuses(repo: &TestRepo) -> Vec<String> {
    let log = repo.git(["log", "--reverse", "--format=%s"]).answer();
    let status = |line: &str| Some(line.strip_prefix("task(main@T1@")?.split_once(')')?.0.to_owned());
    log.lines().filter_map(status).collect()
}

const APPROVES: &str = "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\n";

#[test]
fn an_attempt_that_changes_nothing_fails_and_the_next_prompt_says_so() {
    for place in [[].as_slice(), &["--isolate"]] {
        let repo = repo(&format!("{APPROVES}[ $n = 0 ] || echo work > work.txt\necho all done"));
        repo.arborist(["gardener"].iter().chain(place)).succeeds();
        assert_eq!(repo.calls(), 3, "nothing was reviewed after the first attempt");
        let told = repo.prompt(1);
        assert!(told.contains("the agent changed no file") && told.contains("all done"), "{told}");
        assert!(repo.prompt(0).contains("NOTHING TO DO:"));
    }
}

#[test]
fn an_agent_that_never_changes_anything_uses_up_its_attempts() {
    let repo = repo(&format!("{APPROVES}echo all done"));
    repo.arborist(["gardener", "--max-retries", "2"]).exits(1);
    assert_eq!(statuses(&repo), ["implement-fail", "implement-fail", "failed"]);
}

#[test]
fn a_change_that_the_pre_commit_hook_refused_does_not_pass_if_the_agent_then_does_nothing() {
    let repo = repo(&format!("{APPROVES}[ $n != 0 ] || echo bad > work.txt\necho done"));
    repo.write_script(".git/hooks/pre-commit", "#!/bin/sh\n! grep -q bad work.txt\n");
    repo.arborist(["gardener", "--max-retries", "2"]).exits(1);
    assert_eq!(statuses(&repo), ["implement-fail", "implement-fail", "failed"]);
    let failed = repo.git(["log", "-1", "--skip=1", "--format=%B"]).answer();
    assert!(failed.contains("The pre-commit hook refused it"), "{failed}");
}

#[test]
fn an_attempt_that_changes_nothing_after_a_rejection_fails() {
    let script = "case \"$prompt\" in Review*) [ -e more.txt ] && echo APPROVED || echo 'REJECTED: more'; exit ;; esac\n\
                  case $n in 0) echo work > work.txt ;; 2) ;; *) echo more > more.txt ;; esac\necho done";
    let repo = repo(script);
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(
        statuses(&repo),
        [
            "implement-pass", "test-pass", "review-rejected", "implement-fail", "implement-pass",
            "test-pass", "review-approved", "complete"
        ]
    );
    assert!(
        repo.prompt(3).contains("changed nothing after the review rejected it (REJECTED: more)"),
        "{}",
        repo.prompt(3)
    );
}

#[test]
fn after_a_reset_the_reviewer_decides_again_about_the_same_work() {
    let script =
        "case \"$prompt\" in Review*) echo 'REJECTED: no'; exit ;; esac\necho work > work.txt\necho done";
    let repo = repo(script);
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    repo.write("theirs.txt", "of the user\n");
    repo.commit("of the user\n");
    repo.agent(&format!("trap - EXIT\n{APPROVES}echo done"));
    repo.arborist(["gardener", "--max-retries", "1", "--retry-failed"]).succeeds();
    assert_eq!(statuses(&repo)[4..], ["reset", "implement-pass", "test-pass", "review-approved", "complete"]);
}

#[test]
fn an_attempt_that_changes_nothing_after_failed_tests_fails() {
    let repo = repo(&format!(
        "{APPROVES}case $n in 0) echo a > a.txt ;; 1) ;; *) echo b > b.txt ;; esac\necho done"
    ));
    repo.arborist(["gardener", "--test-command", "test -e b.txt -o ! -e a.txt"]).succeeds();
    assert!(
        statuses(&repo).starts_with(
            &["implement-pass", "test-fail", "implement-fail", "implement-pass"].map(String::from)
        )
    );
    let why =
        "changed nothing after the tests failed ('test -e b.txt -o ! -e a.txt' failed with exit code 1)";
    assert!(repo.prompt(2).contains(why), "{}", repo.prompt(2));
}

/// A run whose test command is wrong, so that its only task has failed.
fn failed_by_wrong_test() -> TestRepo {
    let repo = repo(&format!("{APPROVES}echo work > work.txt\necho done"));
    let wrong = ["gardener", "--max-retries", "2", "--test-command", "test ! -e work.txt"];
    let said = repo.arborist(wrong).exits(1);
    said.err("changed nothing after the tests failed ('test ! -e work.txt' failed with exit code 1)");
    repo
}

#[test]
fn a_wrong_test_command_can_be_corrected() {
    for prepare in [[].as_slice(), &["reset", "T1"], &["reset", "--drop", "T1"]] {
        let repo = failed_by_wrong_test();
        let mut run = vec!["gardener", "--max-retries", "2", "--test-command", "test -e work.txt || true"];
        if prepare.is_empty() {
            run.push("--retry-failed");
        } else {
            repo.arborist(prepare).succeeds();
        }
        repo.arborist(run).succeeds();
    }
}

#[test]
fn a_corrected_test_command_also_runs_without_a_reset() {
    let repo = failed_by_wrong_test();
    repo.git(["reset", "-q", "--hard", "HEAD~1"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "4", "--test-command", "true"]).succeeds();
    assert_eq!(
        statuses(&repo)[2..],
        ["implement-fail", "implement-pass", "test-pass", "review-approved", "complete"]
    );
}

#[test]
fn an_agent_may_say_that_there_is_nothing_to_do_and_the_reviewer_decides() {
    let says = "echo 'I looked.'; echo '**NOTHING TO DO: the file is there**'";
    let repo = repo(&format!("{APPROVES}{says}"));
    repo.arborist(["gardener"]).succeeds();
    let asked = repo.prompt(1);
    assert!(asked.contains("the file is there") && asked.contains("(no file was changed)"), "{asked}");
    let refused =
        self::repo(&format!("case \"$prompt\" in Review*) echo 'REJECTED: it is not'; exit ;; esac\n{says}"));
    refused.arborist(["gardener", "--max-retries", "1"]).exits(1);
    assert_eq!(statuses(&refused), ["implement-pass", "test-pass", "review-rejected", "failed"]);
    // The reviewer is informed after a crash as well.
    let killed = self::repo(&format!(
        "case \"$prompt\" in Review*) [ $n -gt 1 ] || kill -9 $PPID; echo APPROVED; exit ;; esac\n{says}"
    ));
    assert_ne!(killed.arborist(["gardener"]).code(), 0);
    killed.arborist(["gardener"]).succeeds();
    assert!(killed.prompt(2).contains("the file is there"), "{}", killed.prompt(2));
}

#[test]
fn only_an_exact_nothing_to_do_line_with_a_reason_is_accepted() {
    for says in [
        "echo 'NOTHING TO DO'",
        "echo 'NOTHING TO DO:'",
        "echo 'NOTHING TO DO: x'; echo more",
        "echo 'nothing to do: x'",
    ] {
        let repo = repo(&format!("{APPROVES}{says}"));
        repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
        assert_eq!(statuses(&repo), ["implement-fail", "failed"], "{says}");
    }
}

#[test]
fn a_plan_command_that_changes_nothing_passes_by_its_exit_code() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "runner": "shell", "command": "true"}}, "root_ids": ["T1"]}"#;
    let repo = TestRepo::planned("task-tree.json", plan, APPROVES);
    repo.arborist(["gardener", "--yes"]).succeeds();
    assert_eq!(statuses(&repo), ["implement-pass", "test-pass", "review-approved", "complete"]);
}

#[test]
fn an_agent_that_undoes_its_own_turns_counts_as_changing_nothing() {
    let repo = turn_scripts::repo(
        "claude",
        "opens\ncalls 1 'I add a'; echo a > a; answers 1\ncalls 2 'I remove it'; rm a; answers 2\nends done\n",
    );
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let said: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    assert_eq!(said["tasks"][0]["state"], "failed");
}
