//! A task must not pass its test step because tests were removed or skipped.

use arborist_testkit::{TestRepo, pairs};

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
    repo.write("tests/a", "test\n");
    repo.write("tests/b", "test\n");
    repo.write_script("suite.sh", SUITE);
    repo.write("one.sh", "echo '== 1 passed in 0.01s =='\n");
    repo.write("plain.sh", "echo all is well\n");
    repo.commit("tests\n");
    for (task, script) in work {
        std::fs::write(repo.root().join(format!("{task}.sh")), script).unwrap();
    }
    repo
}

const RUN: [&str; 5] = ["gardener", "--max-retries", "1", "--test-command", "sh suite.sh"];

fn run<'a>(args: &[&'a str]) -> Vec<&'a str> {
    RUN.iter().chain(args).copied().collect()
}

#[test]
fn fewer_skipped_or_no_tests_fail_the_test_step() {
    let deeds = [
        ("rm tests/b", "'sh suite.sh' ran 1 test (2 before)"),
        ("echo skip > tests/b", "'sh suite.sh' ran 1 test (2 before) and skipped 1 test (0 before)"),
        ("echo skip > tests/c", "'sh suite.sh' skipped 1 test (0 before)"),
        ("rm tests/*", "'sh suite.sh' ran no tests (2 before)"),
    ];
    for ((script, why), args) in pairs(&deeds, &[&["--jobs", "1"][..], &["--jobs", "2"]]) {
        let repo = repo(PLAN, &[("T001", script)]);
        let ended = repo.arborist(run(args)).exits(1);
        assert!(ended.stderr().contains(why), "{script}: {}", ended.stderr());
    }
}

#[test]
fn the_next_attempt_is_told_and_can_bring_the_tests_back() {
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
        repo.arborist(run(args)).succeeds();
        let review = repo.prompt(1);
        assert!(review.contains("1 passed, 0 failed, 0 skipped (before: 2 passed"), "{review}");
    }
}

#[test]
fn tests_of_the_last_completed_task_count() {
    for args in [&["--jobs", "1"][..], &["--isolate"]] {
        let repo = repo(PLAN, &[("T001", "echo test > tests/c"), ("T002", "rm tests/c")]);
        let ended = repo.arborist(run(args)).exits(1);
        let why = "'sh suite.sh' ran 2 tests (3 before)";
        assert!(ended.stderr().contains(why), "{}", ended.stderr());
    }
    let allowed = "- [ ] T001 [allow:fewer-tests] do it\n- [ ] T002 do more\n";
    let repo = repo(allowed, &[("T001", "rm tests/b"), ("T002", "true")]);
    repo.arborist(run(&[])).succeeds();
}

#[test]
fn an_attempt_is_compared_with_the_base_of_its_task() {
    let script = "echo test > tests/c; if test -e tests/d; then rm tests/d; else echo test > tests/d; fi";
    let repo = repo("- [ ] T001 do it\n", &[("T001", script)]);
    std::fs::write(repo.root().join("reject"), "").unwrap();
    repo.arborist(["garden", "--test-command", "sh suite.sh"]).succeeds();
    assert_eq!(repo.calls(), 4, "two attempts, each with a review");
}

#[test]
fn tests_that_the_user_removed_are_not_missed() {
    let repo = repo(PLAN, &[("T001", "true"), ("T002", "true")]);
    repo.arborist(["garden", "T001", "--test-command", "sh suite.sh"]).succeeds();
    repo.git(["rm", "-q", "tests/b"]).succeeds();
    repo.git(["commit", "-qm", "Remove a test"]).succeeds();
    repo.arborist(["garden", "T002", "--test-command", "sh suite.sh"]).succeeds();
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
}

#[test]
fn a_new_run_knows_the_tests_of_the_run_before_it() {
    for args in [&["--jobs", "1"][..], &["--isolate"]] {
        let repo = repo("- [ ] T001 do it\n", &[("T001", "echo test > tests/c")]);
        repo.arborist(run(args)).succeeds();
        std::fs::write(repo.root().join("T001.sh"), "rm tests/c").unwrap();
        let ended = repo.arborist([run(args), vec!["--new-run"]].concat()).exits(1);
        assert!(ended.stderr().contains("ran 2 tests (3 before)"), "{}", ended.stderr());
    }
}

#[test]
fn a_command_is_compared_only_with_itself() {
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
fn a_command_that_selects_tests_by_task_is_not_compared() {
    let command = "test \"$ARBORIST_TASK\" = T002 && sh one.sh || sh suite.sh";
    let repo = repo(PLAN, &[("T001", "true"), ("T002", "true")]);
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", command]).succeeds();
}

#[test]
fn output_that_is_not_recognised_is_not_compared() {
    let repo = repo("- [ ] T001 do it\n", &[("T001", "rm tests/b")]);
    repo.arborist(["garden", "--test-command", "sh plain.sh"]).succeeds();
    assert!(!repo.prompt(1).contains("Tests that ran"), "{}", repo.prompt(1));
}

#[test]
fn the_reviewer_is_told_if_the_output_no_longer_has_counts() {
    let repo = repo("- [ ] T001 do it\n", &[("T001", "echo 'echo fine' > suite.sh")]);
    repo.arborist(["garden", "--test-command", "sh suite.sh"]).succeeds();
    let told = "its output does not say how many tests ran (before: 2 passed, 0 failed, 0 skipped)";
    assert!(repo.prompt(1).contains(told), "{}", repo.prompt(1));
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
fn a_task_that_may_remove_tests_may_do_so_in_its_phase() {
    let allow = "\"allow\": [\"fewer-tests\"],";
    let repo = repo(&phased(allow), &[("T001", "true"), ("T002", "rm tests/b")]);
    repo.arborist(["gardener", "--yes"]).succeeds();
    let told = repo.git(["log", "--format=%b", "--grep=P2@test-pass"]).answer();
    assert!(told.contains("Fewer tests ran, with permission:"), "{told}");
}
