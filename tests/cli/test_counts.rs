//! A task must not pass its test step because tests were removed or skipped.

use arborist_testkit::{TestRepo, pairs};

use crate::shared_plan::SharedPlan;

const PLAN: &str = "- [ ] T001 do it\n- [ ] T002 do more\n";

/// Counts the files in `tests`, as pytest would. It succeeds even if there is none.
const SUITE: &str = "passed=0; skipped=0
for test in tests/*; do test -e \"$test\" || continue
if grep -q skip \"$test\"; then skipped=$((skipped+1)); else passed=$((passed+1)); fi; done
if test $((passed+skipped)) = 0; then echo 'no tests ran in 0.01s'
else echo \"== $passed passed, $skipped skipped in 0.01s ==\"; fi
";

/// Does what the file of a task's name says. The reviewer rejects once if there is a file `reject`.
const WORKER: &str = "case \"$prompt\" in
 \"Review\"*) if test -e \"$ROOT/reject\"; then rm \"$ROOT/reject\"; echo 'REJECTED: no'; else echo APPROVED; fi ;;
 *) echo $ARBORIST_TASK >> work.txt; . \"$ROOT/$ARBORIST_TASK.sh\" ;;
esac";

fn repo(plan: &str, work: &[(&str, &str)]) -> TestRepo {
    let file = if plan.starts_with('{') { "task-tree.json" } else { "tasks.md" };
    let repo = TestRepo::planned(file, plan, WORKER);
    fixture(&repo);
    for (task, script) in work {
        std::fs::write(repo.root().join(format!("{task}.sh")), script).unwrap();
    }
    repo
}

/// Two tests, and commands that count them, count something else, or do not count.
fn fixture(repo: &TestRepo) {
    repo.write("tests/a", "test\n");
    repo.write("tests/b", "test\n");
    repo.write_script("suite.sh", SUITE);
    repo.write("one.sh", "echo '== 1 passed in 0.01s =='\n");
    repo.write("plain.sh", "echo all is well\n");
    repo.commit("tests\n");
}

const RUN: [&str; 5] = ["gardener", "--max-retries", "1", "--test-command", "sh suite.sh"];

fn gardener_args<'a>(args: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().chain(args).copied().collect()
}

#[test]
fn the_test_step_fails_if_tests_were_removed_or_skipped_or_none_ran() {
    let deeds = [
        ("rm tests/b", "'sh suite.sh' ran 1 test (2 before)"),
        ("echo skip > tests/b", "'sh suite.sh' ran 1 test (2 before) and skipped 1 test (0 before)"),
        ("echo skip > tests/c", "'sh suite.sh' skipped 1 test (0 before)"),
        ("rm tests/*", "'sh suite.sh' ran no tests (2 before)"),
    ];
    for ((script, why), args) in pairs(&deeds, &[&["--jobs", "1"][..], &["--jobs", "2"]]) {
        let repo = repo(PLAN, &[("T001", script)]);
        let ended = repo.arborist(gardener_args(args)).exits(1);
        assert!(ended.stderr().contains(why), "{script}: {}", ended.stderr());
    }
}

#[test]
fn the_next_attempt_learns_of_removed_tests_and_can_restore_them() {
    let script =
        "if test -e \"$ROOT/again\"; then echo test > tests/b; else touch \"$ROOT/again\"; rm tests/b; fi";
    let repo = repo("- [ ] T001 do it\n", &[("T001", script)]);
    repo.arborist(["garden", "--test-command", "sh suite.sh"]).succeeds();
    let feedback = repo.prompt(1);
    assert!(feedback.contains("ran 1 test (2 before)"), "{feedback}");
    let review = repo.prompt(2);
    let line = "- 'sh suite.sh': 2 passed, 0 failed, 0 skipped (before: 2 passed, 0 failed, 0 skipped)";
    assert!(review.contains(line), "{review}");
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
}

#[test]
fn fewer_tests_can_be_allowed() {
    let marked = "- [ ] T001 [allow:fewer-tests] do it\n";
    let plain = "- [ ] T001 do it\n";
    for (plan, args, setting) in [
        (marked, &[][..], false),
        (marked, &["--jobs", "2"], false),
        (plain, &["--allow", "fewer-tests"], false),
        (plain, &[], true),
    ] {
        let repo = repo(plan, &[("T001", "rm tests/b")]);
        if setting {
            repo.git(["config", "arborist.test.allow-fewer", "true"]).succeeds();
        }
        repo.arborist(gardener_args(args)).succeeds();
        let review = repo.prompt(1);
        assert!(review.contains("1 passed, 0 failed, 0 skipped (before: 2 passed"), "{review}");
    }
}

#[test]
fn test_counts_are_compared_with_the_last_completed_task() {
    for args in [&["--jobs", "1"][..], &["--isolate"]] {
        let repo = repo(PLAN, &[("T001", "echo test > tests/c"), ("T002", "rm tests/c")]);
        let ended = repo.arborist(gardener_args(args)).exits(1);
        let why = "'sh suite.sh' ran 2 tests (3 before)";
        assert!(ended.stderr().contains(why), "{}", ended.stderr());
    }
    let allowed = "- [ ] T001 [allow:fewer-tests] do it\n- [ ] T002 do more\n";
    let repo = repo(allowed, &[("T001", "rm tests/b"), ("T002", "true")]);
    repo.arborist(gardener_args(&[])).succeeds();
}

#[test]
fn test_counts_of_an_attempt_are_compared_with_the_base_of_its_task() {
    let script = "echo test > tests/c; if test -e tests/d; then rm tests/d; else echo test > tests/d; fi";
    let repo = repo("- [ ] T001 do it\n", &[("T001", script)]);
    std::fs::write(repo.root().join("reject"), "").unwrap();
    repo.arborist(["garden", "--test-command", "sh suite.sh"]).succeeds();
    assert_eq!(repo.calls(), 4, "two attempts, each with a review");
}

#[test]
fn tests_that_the_user_removed_may_be_missing() {
    let repo = repo(PLAN, &[("T001", "true"), ("T002", "true")]);
    repo.arborist(["garden", "T001", "--test-command", "sh suite.sh"]).succeeds();
    repo.git(["rm", "-q", "tests/b"]).succeeds();
    repo.git(["commit", "-qm", "Remove a test"]).succeeds();
    repo.arborist(["garden", "T002", "--test-command", "sh suite.sh"]).succeeds();
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
}

#[test]
fn a_new_run_compares_test_counts_with_the_previous_run() {
    for args in [&["--jobs", "1"][..], &["--isolate"]] {
        let repo = repo("- [ ] T001 do it\n", &[("T001", "echo test > tests/c")]);
        repo.arborist(gardener_args(args)).succeeds();
        std::fs::write(repo.root().join("T001.sh"), "rm tests/c").unwrap();
        let ended = repo.arborist([gardener_args(args), vec!["--new-run"]].concat()).exits(1);
        assert!(ended.stderr().contains("ran 2 tests (3 before)"), "{}", ended.stderr());
    }
}

#[test]
fn test_counts_are_compared_per_command() {
    let plan = r#"{"nodes": {
        "T001": {"name": "a", "test_commands": [{"command": "sh suite.sh"}, {"command": "sh one.sh"}]},
        "T002": {"name": "b", "depends_on": ["T001"], "test_commands": [{"command": "sh one.sh"}]},
        "T003": {"name": "c", "depends_on": ["T002"], "test_commands": [{"command": "sh one.sh"}, {"command": "sh suite.sh"}]}
    }}"#;
    let repo = repo(plan, &[("T001", "true"), ("T002", "rm tests/b"), ("T003", "true")]);
    let ended = repo.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    let why = "'sh suite.sh' ran 1 test (2 before)";
    assert!(ended.stderr().contains(why), "{}", ended.stderr());
}

#[test]
fn counts_of_a_command_that_selects_tests_by_task_are_not_compared() {
    let command = "test \"$ARBORIST_TASK\" = T002 && sh one.sh || sh suite.sh";
    let repo = repo(PLAN, &[("T001", "true"), ("T002", "true")]);
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", command]).succeeds();
}

#[test]
fn unrecognised_test_output_is_not_compared() {
    let repo = repo("- [ ] T001 do it\n", &[("T001", "rm tests/b")]);
    repo.arborist(["garden", "--test-command", "sh plain.sh"]).succeeds();
    assert!(!repo.prompt(1).contains("Tests that ran"), "{}", repo.prompt(1));
}

#[test]
fn the_test_step_fails_if_a_command_no_longer_reports_test_counts() {
    for (args, script) in
        pairs(&[&["--jobs", "1"][..], &["--isolate"]], &["echo 'echo fine' > suite.sh", ": > suite.sh"])
    {
        let work = [("T001", script), ("T002", "true")];
        let repo = repo(PLAN, &work);
        let why = "'sh suite.sh' does not say how many tests ran (2 before); to allow that, add [allow:fewer-tests] to the task";
        repo.arborist(gardener_args(args)).exits(1).err(why);
        // Once it is allowed, the next task has nothing to be compared with.
        let repo = self::repo(&PLAN.replace("T001", "T001 [allow:fewer-tests]"), &work);
        repo.arborist(gardener_args(args)).succeeds();
        let told = "its output does not say how many tests ran (before: 2 passed, 0 failed, 0 skipped)";
        assert!(repo.prompt(1).contains(told), "{}", repo.prompt(1));
        repo.arborist(["trailers", "check", "HEAD"]).succeeds();
    }
}

#[test]
fn the_user_may_remove_all_tests_or_the_reported_counts() {
    for removes in [true, false] {
        let repo = repo(PLAN, &[("T001", "true"), ("T002", "true")]);
        repo.arborist(["garden", "T001", "--test-command", "sh suite.sh"]).succeeds();
        if removes {
            repo.git(["rm", "-rq", "tests"]).succeeds();
        } else {
            repo.write("suite.sh", "echo fine\n");
        }
        repo.git(["commit", "-qam", "Change the tests"]).succeeds();
        repo.arborist(["garden", "T002", "--test-command", "sh suite.sh"]).succeeds();
    }
}

#[test]
fn counts_of_many_test_programs_are_compared() {
    for (before, after, why) in [
        (
            "ok  \tm\t0.01s\nok  \tm/b\t(cached)\n",
            "ok  \tm\t0.01s\n?   \tm/b\t[no test files]\n",
            "tested 1 package (2 before)",
        ),
        ("ok  \tm\t0.01s\n", "?   \tm\t[no test files]\n", "ran no tests (1 package before)"),
        ("  5 passing (8ms)\n", "  5 passing (8ms)\n  2 pending\n", "skipped 2 tests (0 before)"),
        ("10 examples, 0 failures\n", "8 examples, 0 failures\n", "ran 8 tests (10 before)"),
        ("OK (5 tests, 9 assertions)\n", "OK (3 tests, 9 assertions)\n", "ran 3 tests (5 before)"),
        (
            "Tests run: 5, Failures: 0, Errors: 0, Skipped: 0\n",
            "Tests run: 5, Failures: 0, Errors: 0, Skipped: 2\n",
            "ran 3 tests (5 before) and skipped 2 tests (0 before)",
        ),
        (
            "test result: ok. 3 passed\nTests:  9 passed, 9 total\n",
            "test result: ok. 3 passed\n",
            "ran 3 tests (12 before)",
        ),
        (
            "5 passed in 0.1s\nTests:  5 passed, 5 total\n",
            "10 passed in 0.1s\n",
            "ran 0 jest tests (5 before)",
        ),
        ("3 passed in 0.1s\n", "make: Nothing to be done.\n", "does not say how many tests ran (3 before)"),
    ] {
        let repo = repo("- [ ] T001 do it\n", &[("T001", "cp after before")]);
        repo.write("before", before);
        repo.write("after", after);
        repo.commit("numbers\n");
        let args = ["gardener", "--max-retries", "1", "--test-command", "cat before"];
        repo.arborist(args).exits(1).err(&format!("'cat before' {why}"));
    }
}

#[test]
fn more_tests_of_one_program_do_not_replace_those_of_another() {
    let both = "5 passed in 0.1s\nTests:  5 passed, 5 total\n";
    let why = "'cat numbers' ran 1 jest test (5 before)";
    for args in [&["--jobs", "1"][..], &["--jobs", "2"]] {
        // The second task is compared with what the commits of the first one say.
        let work = [("T001", "true"), ("T002", "cp fewer numbers")];
        let repo = repo("- [ ] T001 do it\n- [ ] T002 do more\n", &work);
        repo.write("numbers", both);
        repo.write("fewer", "9 passed in 0.1s\nTests:  1 passed, 1 total\n");
        repo.commit("numbers\n");
        let mut command = vec!["gardener", "--max-retries", "1", "--test-command", "cat numbers"];
        command.extend(args);
        repo.arborist(&command).exits(1).err(why);
        let told = repo.git(["log", "-1", "--format=%b", "--grep=T001@test-pass"]).answer();
        for line in ["10 passed, 0 failed, 0 skipped: cat", "jest alone: 5 passed, 0 failed, 0 skipped: cat"]
        {
            assert!(told.contains(line), "{told}");
        }
        command.extend(["--allow", "fewer-tests", "--retry-failed"]);
        repo.arborist(&command).succeeds();
        repo.arborist(["trailers", "check", "HEAD"]).succeeds();
        repo.arborist(["verify"]).succeeds();
    }
    // One program that takes the place of the only other one is compared by the sum.
    let repo = repo("- [ ] T001 do it\n", &[("T001", "cp other numbers")]);
    repo.write("numbers", "Tests:  5 passed, 5 total\n");
    repo.write("other", "      Tests  5 passed (5)\n");
    repo.commit("numbers\n");
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", "cat numbers"]).succeeds();
}

#[test]
fn a_task_specific_command_without_tests_fails_if_an_earlier_task_ran_tests() {
    let plan = r#"{"nodes": {
        "T001": {"name": "a", "test_commands": [{"command": "sh suite.sh"}]},
        "T002": {"name": "b", "depends_on": ["T001"], "test_commands": [COMMANDS]}
    }}"#;
    let none = r#"{"command": "echo 'test result: ok. 0 passed; 0 failed'"}"#;
    let run = ["gardener", "--yes", "--max-retries", "1", "--jobs"];
    for jobs in ["1", "2"] {
        let repo = repo(&plan.replace("COMMANDS", none), &[("T001", "true"), ("T002", "true")]);
        let why = "ran no tests ('sh suite.sh' ran 2 before); to allow that, add [allow:fewer-tests]";
        repo.arborist(run.iter().chain([&jobs])).exits(1).err(why);
        repo.arborist(["gardener", "--yes", "--jobs", jobs, "--retry-failed", "--allow", "fewer-tests"])
            .succeeds();
        // Another command of the task has run some.
        let both = format!(r#"{none}, {{"command": "sh one.sh"}}"#);
        let repo = self::repo(&plan.replace("COMMANDS", &both), &[("T001", "true"), ("T002", "true")]);
        repo.arborist(run.iter().chain([&jobs])).succeeds();
    }
}

/// Two tasks; the second has its own test command, so that only its landing is tested by the usual one.
const LANDING: &str = r#"{"nodes": {
    "T001": {"name": "a"},
    "T002": {"name": "b", "depends_on": ["T001"], "test_commands": [{"command": "sh one.sh"}]}
}}"#;
const LAND: [&str; 6] = ["gardener", "--yes", "--jobs", "2", "--test-command", "sh suite.sh"];

#[test]
fn fewer_tests_fail_the_gate_of_a_landing() {
    let work = [("T001", "echo test > tests/c"), ("T002", "rm tests/b tests/c")];
    let why = "the gate 'test' failed: 'sh suite.sh' ran 1 test (3 before); to allow that, add [allow:fewer-tests] to T002 in the plan, or use --allow fewer-tests";
    let repo = repo(LANDING, &work);
    repo.arborist(LAND).exits(1).err(why);
    assert_eq!(repo.git(["ls-files", "tests"]).answer(), "tests/a\ntests/b\ntests/c");
    repo.arborist(["merge", "run"]).exits(1);
    repo.arborist(LAND).exits(1);
    repo.arborist(LAND.iter().chain(&["--allow", "fewer-tests"])).succeeds();
    assert_eq!(repo.git(["ls-files", "tests"]).answer(), "tests/a");
    let told = repo.git(["log", "-1", "--format=%b", "--grep=T002@merge"]).answer();
    assert!(told.contains("1 passed, 0 failed, 0 skipped: sh suite.sh"), "{told}");
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
    repo.arborist(["verify"]).succeeds();

    let repo = self::repo(LANDING, &work);
    repo.arborist(LAND).exits(1).err(why);
    repo.arborist(["merge", "run", "--yes", "--allow", "fewer-tests"]).succeeds().out("1 landed (T002)");

    let repo = self::repo(&LANDING.replace("\"b\",", "\"b\", \"allow\": [\"fewer-tests\"],"), &work);
    repo.arborist(LAND).succeeds();
}

#[test]
fn fewer_tests_fail_configured_gates() {
    let work = [("T001", "true"), ("T002", "echo skip > tests/c")];
    let repo = repo(LANDING, &work);
    repo.git(["config", "arborist.merge.gates.all.command", "sh suite.sh"]).succeeds();
    let why = "the gate 'all' failed: 'sh suite.sh' skipped 1 test (0 before)";
    repo.arborist(LAND).exits(1).err(why);
}

#[test]
fn the_first_landing_is_compared_with_the_target_if_only_a_gate_counts_tests() {
    let repo = repo("- [ ] T001 do it\n", &[("T001", "rm tests/b")]);
    repo.git(["config", "arborist.merge.gates.all.command", "sh suite.sh"]).succeeds();
    let run = ["gardener", "--jobs", "2"];
    repo.arborist(run).exits(1).err("the gate 'all' failed: 'sh suite.sh' ran 1 test (2 before)");
    assert_eq!(repo.git(["ls-files", "tests"]).answer(), "tests/a\ntests/b");
    repo.arborist(run.iter().chain(&["--allow", "fewer-tests"])).succeeds();
    assert_eq!(repo.git(["ls-files", "tests"]).answer(), "tests/a");
}

#[test]
fn a_landing_may_remove_tests_if_its_task_was_allowed_to() {
    let repo = repo("- [ ] T001 do it\n", &[("T001", "rm tests/b")]);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    let run = ["gardener", "--jobs", "2", "--test-command", "sh suite.sh", "--allow", "fewer-tests"];
    repo.arborist(run).exits(1);
    assert_eq!(repo.git(["ls-files", "tests"]).answer(), "tests/a\ntests/b");
    repo.arborist(["merge", "run"]).succeeds().out("1 landed (T001)");
    assert_eq!(repo.git(["ls-files", "tests"]).answer(), "tests/a");
}

#[test]
fn a_landing_passes_without_tests_that_the_user_removed() {
    let repo = repo(LANDING, &[("T001", "true"), ("T002", "true")]);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(LAND).exits(1);
    repo.git(["rm", "-q", "tests/b"]).succeeds();
    repo.git(["commit", "-qm", "Remove a test"]).succeeds();
    repo.arborist(["merge", "run"]).succeeds().out("1 landed (T001)");
}

/// Adds a line for each task, so that parallel tasks conflict. What a resolver does is in a file.
const CONFLICTING: &str = "case \"$prompt\" in
 \"Review\"*) echo APPROVED ;;
 \"Resolve\"*) . \"$ROOT/resolve.sh\" ;;
 *) touch \"$ROOT/did-$ARBORIST_TASK\"; until test -e \"$ROOT/did-T001\" && test -e \"$ROOT/did-T002\"; do sleep 0.05; done
    echo $ARBORIST_TASK >> suite.txt ;;
esac";
const CONFLICTS: &str = "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";
/// Each line is a test.
const LINES: &str = "echo \"== $(wc -l < suite.txt) passed in 0.1s ==\"";

fn conflicting(resolve: &str) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", CONFLICTS, CONFLICTING);
    repo.write("suite.txt", "a\nb\nc\n");
    repo.commit("tests\n");
    std::fs::write(repo.root().join("resolve.sh"), resolve).unwrap();
    repo
}

#[test]
fn a_resolver_cannot_drop_tests() {
    let run = ["gardener", "--jobs", "2", "--test-command", LINES];
    let why = "ran 1 test (4 before)";
    let repo = conflicting("echo a > suite.txt");
    repo.arborist(run).exits(2).err(" is not used: the gate 'test' failed: ").err(why);
    let left = repo.git(["show", "main:suite.txt"]).answer();
    assert_eq!(left.lines().count(), 4, "one of the tasks has landed: {left}");
    let task = if left.contains("T001") { "T002" } else { "T001" };
    repo.arborist(["merge", "status", task]).exits(2).out(why);

    // The resolver is called again, and keeps all tests.
    let again = "if test -e \"$ROOT/again\"; then printf 'a\\nb\\nc\\nT001\\nT002\\n' > suite.txt; else touch \"$ROOT/again\"; echo a > suite.txt; fi";
    let repo = conflicting(again);
    repo.arborist(run).succeeds();
    assert_eq!(repo.git(["show", "main:suite.txt"]).answer().lines().count(), 5);
    assert!((0..repo.calls()).any(|call| repo.prompt(call).contains(why)), "the reason is in a prompt");
}

#[test]
fn a_resolver_in_a_shared_plan_cannot_drop_tests() {
    let shared = SharedPlan::of(CONFLICTS, 0, CONFLICTING);
    shared.repo.write("suite.txt", "a\nb\nc\n");
    shared.repo.commit("tests\n");
    std::fs::write(shared.repo.root().join("resolve.sh"), "echo a > suite.txt").unwrap();
    shared.repo.git_in(&shared.repo.path(""), ["push", "-q", "../origin.git", "main"]).succeeds();
    shared.repo.git_in(shared.repo.root(), ["clone", "-q", "origin.git", "clone0"]).succeeds();
    shared.work(0, &["--jobs", "2", "--test-command", LINES]).exits(2);
    assert_eq!(
        shared.at_origin(["show", "main:suite.txt"]).lines().count(),
        4,
        "one of the tasks has landed"
    );
}

#[test]
fn test_counts_of_phase_gates_in_a_shared_plan_are_compared_on_all_machines() {
    // The first machine fails with the second task, so that another one does it.
    let worker = r#"
case "$prompt $PWD" in
  "Review"*) echo APPROVED ;;
  *clone0*) case $ARBORIST_TASK in T001) echo x > T001.txt ;; *) exit 1 ;; esac ;;
  *) rm tests/b ;;
esac
"#;
    let shared = SharedPlan::of(&phased(""), 0, worker);
    fixture(&shared.repo);
    shared.repo.git_in(&shared.repo.path(""), ["push", "-q", "../origin.git", "main"]).succeeds();
    for clone in ["clone0", "clone1"] {
        shared.repo.git_in(shared.repo.root(), ["clone", "-q", "origin.git", clone]).succeeds();
    }
    shared.work(0, &["--yes", "--max-retries", "1"]).exits(1);
    assert_eq!(shared.landings(), ["T001"]);
    let why = "the gate 'unit of P2' failed: 'sh suite.sh' ran 1 test (2 before); to allow that, add [allow:fewer-tests] to a task of the phase";
    shared.work(1, &["--yes", "--retry-failed"]).exits(1).err(why);
    assert_eq!(shared.landings(), ["T001"]);
    shared.work(1, &["--yes", "--retry-failed", "--allow", "fewer-tests"]).succeeds();
    assert_eq!(shared.landings(), ["T001", "T002"]);
}

/// Two phases that are tested by the same command. Their tasks are tested by another one, which does not count.
fn phased(allow: &str) -> String {
    format!(
        r#"{{"nodes": {{
        "P1": {{"id": "P1", "name": "One", "children": ["T001"], "test_commands": [{{"command": "sh suite.sh"}}]}},
        "T001": {{"id": "T001", "name": "a", "parent": "P1", "test_commands": [{{"command": "sh plain.sh"}}]}},
        "P2": {{"id": "P2", "name": "Two", "children": ["T002"], "depends_on": ["P1"], "test_commands": [{{"command": "sh suite.sh"}}]}},
        "T002": {{"id": "T002", "name": "b", "parent": "P2", {allow} "test_commands": [{{"command": "sh plain.sh"}}]}}
        }}, "root_ids": ["P1", "P2"]}}"#
    )
}

#[test]
fn fewer_or_skipped_tests_fail_the_tests_of_a_phase() {
    let deeds = [
        ("rm tests/b", "'sh suite.sh' ran 1 test (2 before)"),
        ("echo skip > tests/c", "'sh suite.sh' skipped 1 test (0 before)"),
    ];
    for ((script, why), jobs) in pairs(&deeds, &["1", "2"]) {
        let repo = repo(&phased(""), &[("T001", "true"), ("T002", script)]);
        let ended = repo.arborist(["gardener", "--yes", "--jobs", jobs]).exits(1);
        assert!(ended.stderr().contains(why), "{jobs} {script}: {}", ended.stderr());
        let advice = "add [allow:fewer-tests] to a task of the phase in the plan";
        assert!(ended.stderr().contains(advice), "{}", ended.stderr());
        repo.arborist(["gardener", "--yes", "--jobs", jobs, "--allow", "fewer-tests"]).succeeds();
        repo.arborist(["state", "--exit-code"]).succeeds();
    }
}

#[test]
fn test_counts_of_a_phase_gate_are_compared_with_those_before_its_first_task() {
    let plan = |command: &str| {
        let tasks = r#""T002": {"id": "T002", "name": "b", "parent": "P2", "test_commands": [{"command": "sh plain.sh"}]},
            "T003": {"id": "T003", "name": "c", "parent": "P2", "depends_on": ["T002"], "test_commands": [{"command": "sh plain.sh"}]}"#;
        format!(
            r#"{{"nodes": {{
            "P1": {{"id": "P1", "name": "One", "children": ["T001"], "test_commands": [{{"command": "sh suite.sh"}}]}},
            "T001": {{"id": "T001", "name": "a", "parent": "P1", "test_commands": [{{"command": "sh plain.sh"}}]}},
            "P2": {{"id": "P2", "name": "Two", "children": ["T002", "T003"], "depends_on": ["P1"], "test_commands": [{{"command": "{command}"}}]}},
            {tasks}}}, "root_ids": ["P1", "P2"]}}"#
        )
    };
    for (command, why) in [
        ("sh suite.sh", "'sh suite.sh' ran 1 test (2 before)"),
        (
            "echo no tests ran in 0.1s",
            "'echo no tests ran in 0.1s' ran no tests ('sh suite.sh' ran 2 before)",
        ),
    ] {
        let work = [("T001", "true"), ("T002", "rm tests/b"), ("T003", "true")];
        let repo = repo(&plan(command), &work);
        let ended = repo.arborist(["gardener", "--yes", "--jobs", "2"]).exits(1);
        ended.err(&format!("T003 did not land: the gate 'unit of P2' failed: {why}"));
        repo.arborist(["gardener", "--yes", "--jobs", "2", "--allow", "fewer-tests"]).succeeds();
        repo.arborist(["state", "--exit-code"]).succeeds();
    }
}

#[test]
fn a_task_that_may_remove_tests_does_not_fail_the_gate_of_its_phase() {
    let allow = "\"allow\": [\"fewer-tests\"],";
    let repo = repo(&phased(allow), &[("T001", "true"), ("T002", "rm tests/b")]);
    repo.arborist(["gardener", "--yes"]).succeeds();
    let told = repo.git(["log", "--format=%b", "--grep=P2@test-pass"]).answer();
    assert!(told.contains("Fewer tests ran, with permission:"), "{told}");
}
