//! Tests first: a task that is marked red writes tests that must fail until a later task makes them pass.

use arborist_testkit::TestRepo;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 [red] write tests\n- [ ] T002 half\n- [ ] T003 the rest\n";

/// Runs every file in `tests`, and prints what pytest would.
const SUITE: &str = "failed=0; passed=0
for test in tests/*; do if sh \"$test\" >/dev/null 2>&1; then passed=$((passed+1))
else failed=$((failed+1)); echo \"FAILED $test::run - no\"; fi; done
echo \"== $failed failed, $passed passed in 0.01s ==\"
test $failed = 0
";

/// Does what the file of a task's name says.
const WORKER: &str =
    "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) . \"$ROOT/$ARBORIST_TASK.sh\" ;; esac";

fn repo(plan: &str, work: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", plan, WORKER);
    repo.write("tests/old", "true # run\n");
    repo.write_script("suite.sh", SUITE);
    repo.commit("tests\n");
    for (task, script) in work {
        std::fs::write(repo.root().join(format!("{task}.sh")), script).unwrap();
    }
    repo
}

const RED: &str = "echo 'test -e one.txt # run' > tests/one; echo 'test -e two.txt # run' > tests/two";

fn state(repo: &TestRepo, id: &str) -> String {
    let document: serde_json::Value =
        serde_json::from_str(&repo.arborist(["state", "--json"]).stdout()).unwrap();
    let tasks = document["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["id"] == id).unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn a_red_task_adds_failing_tests_that_pass_at_the_end_of_the_phase() {
    for args in [&["--jobs", "1"][..], &["--isolate"]] {
        let repo = repo(PLAN, &[("T001", RED), ("T002", "echo x > one.txt"), ("T003", "echo x > two.txt")]);
        let run = [&["gardener", "--max-retries", "1", "--test-command", "sh suite.sh"], args].concat();
        repo.arborist(run).succeeds();
        repo.arborist(["state", "--exit-code"]).succeeds();
        repo.arborist(["trailers", "check", "main"]).succeeds();
        if args == ["--isolate"] {
            let gates =
                repo.git(["log", "--merges", "--format=%(trailers:key=Arborist-Gate,valueonly,separator=)"]);
            assert_eq!(gates.answer(), "test\ntest\ntest");
        }
    }
}

#[test]
fn the_last_task_of_the_phase_must_make_all_red_tests_pass() {
    let repo = repo(PLAN, &[("T001", RED), ("T002", "echo x > one.txt"), ("T003", "echo x > three.txt")]);
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", "sh suite.sh"]).exits(1);
    assert_eq!((state(&repo, "T002"), state(&repo, "T003")), ("complete".into(), "failed".into()));
}

#[test]
fn a_task_after_red_tests_must_not_break_other_tests() {
    let breaks = "echo x > one.txt; echo 'false # run' > tests/old";
    let repo = repo(PLAN, &[("T001", RED), ("T002", breaks), ("T003", "true")]);
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", "sh suite.sh"]).exits(1);
    assert_eq!(state(&repo, "T002"), "failed");
}

#[test]
fn a_red_task_must_add_failing_tests_and_break_no_others() {
    for (work, why) in [
        ("echo 'true # run' > tests/one", "they pass"),
        ("echo x > note.txt", "there are none"),
        ("echo 'false # run' > tests/old; echo 'false # run' > tests/one", "an old one fails"),
        ("rm tests/old; echo 'false # run' > tests/one", "an old one is gone"),
    ] {
        let repo = repo(PLAN, &[("T001", work)]);
        repo.arborist(["garden", "T001", "--max-retries", "1", "--test-command", "sh suite.sh"]).exits(1);
        assert_eq!(state(&repo, "T001"), "failed", "{why}");
    }
}

#[test]
fn without_test_counts_a_red_task_needs_a_failing_exit_code() {
    let command = "for test in tests/*; do sh $test || exit 1; done";
    let repo = repo(PLAN, &[("T001", RED), ("T002", "echo x > one.txt"), ("T003", "echo x > two.txt")]);
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", command]).succeeds();
    let repo = self::repo(PLAN, &[("T001", "echo x > note.txt")]);
    repo.arborist(["garden", "T001", "--max-retries", "1", "--test-command", command]).exits(1);
    assert_eq!(state(&repo, "T001"), "failed");
}

#[test]
fn a_red_task_without_a_test_command_is_an_error() {
    let repo = repo(PLAN, &[]);
    repo.arborist(["gardener"]).exits(1).matches_snapshot();
    assert_eq!(repo.calls(), 0);
}
