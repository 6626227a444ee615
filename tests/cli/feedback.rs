//! What the next attempt is told about those that failed.

use arborist_testkit::TestRepo;

/// Writes something new in each attempt and approves of everything.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo more >> work.txt; echo done ;;
esac
"#;

/// A repository whose test command prints `output` and fails once there is work.
fn failing(output: &str) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 Create the users\n", WORKER);
    repo.write("output", output);
    repo.write_script("test.sh", "#!/bin/sh\n[ -e work.txt ] || exit 0\ncat output; exit 3\n");
    repo.commit("tests\n");
    repo
}

/// The feedback in the prompt of the second attempt, after the tests printed `output`.
fn feedback(output: &str) -> (TestRepo, String) {
    let repo = failing(output);
    repo.arborist(["garden", "--test-command", "./test.sh", "--max-retries", "2"]).exits(1);
    let prompt = repo.prompt(1);
    let (_, feedback) = prompt.split_once("Previous feedback from failed attempts:\n\n").unwrap_or_default();
    let feedback = feedback.to_owned();
    (repo, feedback)
}

#[test]
fn the_next_prompt_lists_the_failed_tests_with_their_messages() {
    let passing: String = (2..400).map(|n| format!("ok {n} - a test that passes\n")).collect();
    let output = format!(
        "TAP version 13\n1..399\nnot ok 1 - creates user\n  ---\n  message: no such column email\n  ...\n{passing}"
    );
    let (repo, feedback) = feedback(&output);
    let log =
        repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Test-Log,valueonly)", "HEAD~3"]).answer();
    assert_eq!(
        feedback.trim_end(),
        format!(
            "--- Previous test failure ---\n'./test.sh' failed with exit code 3\nFailed tests:\ncreates user\n      message: no such column email\nThe complete output is in {}",
            repo.path(&log).display()
        )
    );
}

#[test]
fn failed_tests_are_recognised_in_the_output_of_common_programs() {
    for (output, name, message) in [
        (
            "test a::c ... FAILED\n\nfailures:\n\n---- a::c stdout ----\nthread 'a::c' panicked at src/lib.rs:5:9:\nno email\n\n\nfailures:\n    a::c\n\ntest result: FAILED. 9 passed; 1 failed; 0 ignored\n",
            "a::c",
            "no email",
        ),
        (
            "=== FAILURES ===\n____ test_y ____\n>       assert 1 == 2\nE       no email\n=== short test summary info ===\nFAILED t/test_x.py::test_y - no email\n=== 1 failed, 3 passed in 0.12s ===\n",
            "t/test_x.py::test_y",
            "E       no email",
        ),
        (
            "  ● adds › two\n\n    no email\n\nTests:       1 failed, 1 passed, 2 total\n",
            "adds › two",
            "no email",
        ),
        (
            " FAIL  src/a.test.ts > adds > two\nAssertionError: no email\n⎯⎯⎯⎯[1/1]⎯\n      Tests  1 failed | 1 passed (2)\n",
            "src/a.test.ts > adds > two",
            "AssertionError: no email",
        ),
        (
            "  1 passing (5ms)\n  1 failing\n\n  1) adds\n       two:\n\n      no email\n",
            "adds two",
            "no email",
        ),
        ("--- FAIL: TestB (0.00s)\n    b_test.go:5: no email\nFAIL\n", "TestB", "b_test.go:5: no email"),
        (
            "<testsuite tests=\"2\" failures=\"1\"><testcase classname=\"A\" name=\"b\"><failure message=\"no email\"/></testcase></testsuite>",
            "A::b",
            "no email",
        ),
    ] {
        let (_, feedback) = feedback(output);
        let tests = feedback.split_once("\nFailed tests:\n").unwrap_or_default().1;
        assert!(tests.starts_with(&format!("{name}\n    ")) && tests.contains(message), "{feedback}");
    }
}

#[test]
fn output_after_the_last_failed_test_is_not_quoted_as_its_message() {
    let noise = "compiled one thing or another\n".repeat(100);
    for (failure, summary) in [
        (
            "  ● adds › two\n\n    no email\n\n      at a.test.js:5\n",
            "Tests:       1 failed, 1 passed, 2 total\n",
        ),
        (
            " FAIL  src/a.test.ts > adds > two\nAssertionError: no email\n\n- Expected\n+ Received\n",
            "      Tests  1 failed | 1 passed (2)\n",
        ),
        (
            "======================\nFAIL: test_b (m.A)\n----------------------\nTraceback (most recent call last):\nAssertionError: no email\n",
            "Ran 2 tests in 0.1s\n\nFAILED (failures=1)\n",
        ),
    ] {
        let (_, feedback) = feedback(&format!("{failure}\n{noise}\n{summary}"));
        let tests = feedback.split_once("\nFailed tests:\n").unwrap_or_default().1;
        assert!(tests.contains("no email") && !tests.contains("one thing or another"), "{feedback}");
    }
}

#[test]
fn output_of_an_unknown_program_is_quoted_where_it_names_an_error() {
    let noise = "compiled one thing or another\n".repeat(2000);
    let (_, feedback) = feedback(&format!("{noise}a.c:4: error: no such field\n  x.email\n{noise}the end\n"));
    assert!(feedback.contains("a.c:4: error: no such field\n  x.email\n"), "{feedback}");
    assert!(feedback.contains("the end\n") && feedback.len() < 5000, "{}", feedback.len());
}

#[test]
fn output_without_any_error_is_quoted_from_both_ends() {
    let noise = "one thing or another\n".repeat(2000);
    let (_, feedback) = feedback(&format!("the beginning\n{noise}the end\n"));
    assert!(feedback.contains("the beginning\n") && feedback.contains("\nthe end\n"), "{feedback}");
    assert!(feedback.contains("lines are left out"), "{feedback}");
}

#[test]
fn feedback_names_every_failed_test_command() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "test_commands": [
        {"type": "unit", "command": "echo one; exit 1"}, {"type": "e2e", "command": "echo two; exit 2"}]}},
        "root_ids": ["T1"]}"#;
    let repo = TestRepo::planned("task-tree.json", plan, WORKER);
    repo.arborist(["garden", "--yes", "--allow-red", "--max-retries", "2"]).exits(1);
    let prompt = repo.prompt(1);
    assert!(prompt.contains("'echo one; exit 1' failed with exit code 1\n"), "{prompt}");
    assert!(prompt.contains("'echo two; exit 2' failed with exit code 2\n"), "{prompt}");
}

#[test]
fn an_attempt_after_a_reset_gets_feedback_about_earlier_failures() {
    let repo = failing("before the reset\n");
    let run = ["garden", "--test-command", "./test.sh", "--max-retries", "1"];
    repo.arborist(run).exits(1);
    repo.arborist(["reset", "T001"]).succeeds();
    repo.write("output", "after the reset\n");
    repo.commit("other output\n");
    // What the first attempt has left makes the tests fail before the second begins.
    repo.arborist(["garden", "--allow-red", "--test-command", "./test.sh", "--max-retries", "2"]).exits(1);
    assert!(repo.prompt(1).contains("before the reset"), "{}", repo.prompt(1));
    let prompt = repo.prompt(2);
    let (new, old) = (prompt.find("after the reset"), prompt.find("before the reset"));
    assert!(new.is_some() && new < old, "the newest failure comes first: {prompt}");
}

#[test]
fn an_attempt_in_a_lane_after_a_reset_gets_feedback_about_earlier_failures() {
    for reset in [&["reset", "T001"][..], &["reset", "--drop", "T001"]] {
        let repo = failing("before the reset\n");
        let run = ["gardener", "--isolate", "--test-command", "./test.sh", "--max-retries", "1"];
        repo.arborist(run).exits(1);
        for (prompts, words) in [(1, "after the reset"), (2, "after the second reset")] {
            repo.wait(60);
            repo.arborist(reset).succeeds();
            repo.write("output", format!("{words}\n"));
            repo.commit("other output\n");
            let foretold = repo.arborist(run.iter().chain(&["--dry-run", "-v"])).succeeds();
            assert_eq!(foretold.stdout().matches("before the reset").count(), 1, "{}", foretold.stdout());
            repo.arborist(run).exits(1);
            let prompt = repo.prompt(prompts);
            assert_eq!(prompt.matches("before the reset").count(), 1, "{prompt}");
        }
        let prompt = repo.prompt(2);
        let (new, old) = (prompt.find("after the reset"), prompt.find("before the reset"));
        assert!(new.is_some() && new < old, "the newest failure comes first: {prompt}");
    }
}

#[test]
fn a_retried_task_gets_feedback_about_its_failure() {
    let repo = failing("no such column\n");
    let run = ["garden", "--test-command", "./test.sh", "--max-retries", "1"];
    repo.arborist(run).exits(1);
    repo.arborist(run.iter().chain(&["T001", "--retry-failed"])).exits(1);
    let prompt = repo.prompt(1);
    assert_eq!(prompt.matches("no such column").count(), 1, "{prompt}");
}

#[test]
fn the_oldest_failures_are_left_out_of_a_long_feedback() {
    let repo = failing("");
    repo.write_script(
        "test.sh",
        "#!/bin/sh\n[ -e work.txt ] || exit 0\nn=$(wc -l < work.txt); for i in $(seq 300); do echo \"failure $n in a line\"; done; exit 3\n",
    );
    repo.commit("tests\n");
    repo.arborist(["garden", "--test-command", "./test.sh", "--max-retries", "8"]).exits(1);
    let prompt = repo.prompt(7);
    assert!(prompt.contains("failure 7 ") && !prompt.contains("failure 1 "), "{prompt}");
    assert!(prompt.contains("older failures are left out]") && prompt.len() < 20_000, "{}", prompt.len());
}
