//! The baseline: the test command on the untouched tree, before an agent is paid.

use std::fs;

use arborist_testkit::TestRepo;

use crate::pasted_hints::{hinted, paste};

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 a\n- [ ] T002 b\n";
/// Writes a file of the task's name.
const WORKER: &str =
    "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\" ;;\nesac";

fn repo() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.write(".gitignore", "deps/\n");
    repo.commit("ignore\n");
    repo
}

/// A test command that counts how often it runs, and then does this.
fn counted(repo: &TestRepo, command: &str) -> String {
    format!("echo run >> '{}/runs'; {command}", repo.root().display())
}

fn runs(repo: &TestRepo) -> usize {
    fs::read_to_string(repo.root().join("runs")).map_or(0, |text| text.lines().count())
}

/// What `pytest` would print of these tests.
fn suite(repo: &TestRepo) -> String {
    repo.write_script(
        "suite.sh",
        "failed=0; passed=0\n\
         for test in tests/*; do if sh \"$test\" >/dev/null 2>&1; then passed=$((passed+1));\n\
         else failed=$((failed+1)); echo \"FAILED $test::run - no\"; fi; done\n\
         echo \"== $failed failed, $passed passed in 0.01s ==\"\n\
         test $failed = 0\n",
    );
    "sh suite.sh".to_owned()
}

#[test]
fn a_failing_baseline_stops_the_run_before_an_agent_is_called() {
    for jobs in ["1", "2"] {
        for command in ["echo the roof leaks; false", "no-such-program-here", "exit 127"] {
            let repo = repo();
            let head = repo.git(["rev-parse", "HEAD"]).answer();
            let command = counted(&repo, command);
            repo.arborist(["gardener", "--jobs", jobs, "--test-command", &command])
                .exits(1)
                .matches_snapshot();
            assert_eq!((repo.calls(), runs(&repo)), (0, 1), "{jobs} {command}");
            assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), head, "nothing is written");
        }
    }
}

#[test]
fn a_new_run_after_a_change_of_the_configured_test_command_checks_the_baseline_again() {
    let repo = repo();
    repo.write(".arborist/config.toml", "test-command = \"true\"\n");
    repo.commit("a configuration\n");
    repo.arborist(["gardener", "--yes", "--until", "T001"]).succeeds();
    let calls = repo.calls();
    repo.write(".arborist/config.toml", "test-command = \"false\"\n");
    repo.arborist(["gardener", "--yes", "--new-run", "--allow-dirty"]).exits(1).err("'false'");
    assert_eq!(repo.calls(), calls, "no agent is called");
}

#[test]
fn garden_checks_the_baseline_too() {
    for args in [&["garden", "T001"][..], &["garden", "-m", "do it"]] {
        let repo = repo();
        repo.arborist([args, &["--test-command", "false"]].concat()).exits(1);
        assert_eq!(repo.calls(), 0);
    }
}

#[test]
fn the_baseline_is_skipped_on_a_commit_that_has_passed_its_tests() {
    let repo = repo();
    let command = counted(&repo, "true");
    repo.arborist(["garden", "T001", "--test-command", &command]).succeeds();
    assert_eq!(runs(&repo), 2, "the baseline and the task");
    repo.arborist(["garden", "T002", "--test-command", &command]).succeeds();
    assert_eq!(runs(&repo), 3, "the task");
    repo.arborist(["gardener", "--new-run", "--test-command", &command]).succeeds();
    assert_eq!(runs(&repo), 5, "two tasks: the last commit has passed its tests");
}

#[test]
fn a_landing_replaces_the_baseline_only_if_its_gate_is_the_test_command() {
    for (gate, baselines) in [("exit 0", 2), ("true", 1)] {
        let repo = repo();
        repo.git(["config", "arborist.merge.gates.test.command", gate]).succeeds();
        let run = ["gardener", "--isolate", "--test-command", "true", "--only"];
        repo.arborist([&run[..], &["T001"]].concat()).succeeds();
        repo.arborist([&run[..], &["T001", "--new-run"]].concat()).succeeds();
        let logs = fs::read_dir(repo.path("spec/logs")).unwrap().map(|entry| entry.unwrap().file_name());
        let names = logs.map(|name| name.into_string().unwrap());
        assert_eq!(names.filter(|name| name.starts_with("baseline_")).count(), baselines, "{gate}");
    }
}

#[test]
fn changes_of_an_unfinished_task_are_not_tested_as_a_baseline() {
    let repo = repo();
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x >> bad.txt ;; esac");
    let command = "! test -e bad.txt";
    let run = ["gardener", "--max-retries", "2", "--test-command", command];
    repo.arborist(run).exits(1);
    assert_eq!(repo.calls(), 2, "two attempts");
    repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) rm -f bad.txt; echo $ARBORIST_TASK > $ARBORIST_TASK.txt ;; esac");
    repo.arborist([&run[..], &["--retry-failed"]].concat()).succeeds();
}

#[test]
fn commits_of_the_user_between_tasks_are_tested_as_a_new_baseline() {
    let repo = repo();
    let command = "! test -e broken.txt";
    repo.arborist(["garden", "T001", "--test-command", command]).succeeds();
    let calls = repo.calls();
    repo.write("broken.txt", "");
    repo.commit("break it\n");
    repo.arborist(["garden", "T002", "--test-command", command]).exits(1);
    assert_eq!(repo.calls(), calls);
    repo.git(["rm", "-q", "broken.txt"]).succeeds();
    repo.git(["commit", "-qm", "mend it"]).succeeds();
    repo.arborist(["garden", "T002", "--test-command", command]).succeeds();
}

#[test]
fn a_run_starts_in_a_repository_without_tests() {
    for (command, finds) in [
        ("cargo test", "Cargo.toml"),
        ("npm test", "package.json"),
        ("echo 'no tests ran in 0.01s'; test -e T001.txt || exit 5", "no tests"),
    ] {
        let repo = repo();
        for (program, message) in [
            ("cargo", "error: could not find \\`Cargo.toml\\` in '/x' or any parent directory"),
            ("npm", "npm error enoent Could not read package.json: Error: ENOENT"),
        ] {
            let script = format!("#!/bin/sh\ntest -e T001.txt || {{ echo \"{message}\" >&2; exit 101; }}\n");
            repo.plant(program, &script);
        }
        let said = repo.arborist(["gardener", "--test-command", command]).succeeds();
        assert!(said.stderr().contains(finds), "{}", said.stderr());
    }
}

#[test]
fn a_failed_cd_of_the_test_command_is_a_failure_of_the_tests() {
    for command in ["cd wbe && npm test", "npm --prefix wbe test"] {
        let repo = repo();
        repo.write("web/package.json", "{}");
        repo.commit("a package\n");
        repo.plant("npm", "#!/bin/sh\necho 'npm error: no such folder' >&2\nexit 1\n");
        let said = repo.arborist(["gardener", "--test-command", command]).exits(1);
        said.err("error: the tests fail before the first task").never("finds no package.json");
        assert_eq!(repo.calls(), 0, "{command}");
    }
}

#[test]
fn a_folder_that_the_tasks_of_a_new_project_can_create_does_not_stop_the_run() {
    let repo = TestRepo::planned(
        "tasks.md",
        PLAN,
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) mkdir -p web; echo x > \"web/$ARBORIST_TASK\" ;;\nesac",
    );
    let said = repo.arborist(["gardener", "--test-command", "cd web && ls"]).succeeds();
    said.err("the folder 'web' does not exist").never("finds no");
}

#[test]
fn with_allow_red_a_run_starts_despite_a_failing_baseline() {
    let repo = repo();
    let command = "test -e T001.txt";
    repo.arborist(["garden", "T001", "--test-command", command, "--allow-red"]).succeeds();
    let repo = self::repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["garden", "T001", "--test-command", command]).succeeds();
}

#[test]
fn with_allow_red_only_newly_failing_tests_fail_a_task() {
    for jobs in ["1", "2"] {
        let repo = repo();
        repo.write("tests/old", "false");
        repo.write("tests/good", "true");
        let command = suite(&repo);
        repo.commit("tests\n");
        repo.arborist(["gardener", "--jobs", jobs, "--test-command", &command]).exits(1);
        assert_eq!(repo.calls(), 0);
        // The second task breaks a test that was good.
        repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > $ARBORIST_TASK.txt; test $ARBORIST_TASK = T001 || echo false > tests/good ;; esac");
        let run = ["gardener", "--jobs", jobs, "--max-retries", "1", "--test-command", &command];
        repo.arborist([&run[..], &["--allow-red"]].concat()).exits(1);
        let states = repo.arborist(["state"]).stdout();
        assert!(states.contains("1 complete") || states.contains("complete"), "{states}");
        repo.git(["cat-file", "-e", "main:T001.txt"]).succeeds();
        let document: serde_json::Value =
            serde_json::from_str(&repo.arborist(["state", "--json"]).stdout()).unwrap();
        let state = |id: &str| {
            let tasks = document["tasks"].as_array().unwrap();
            tasks.iter().find(|task| task["id"] == id).unwrap()["state"].as_str().unwrap().to_owned()
        };
        assert_eq!((state("T001"), state("T002")), ("complete".to_owned(), "failed".to_owned()));
        // What was red before is known from history: the next call needs no flag.
        repo.agent("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo true > tests/good; echo y > $ARBORIST_TASK.txt ;; esac");
        repo.arborist([&run[..], &["--retry-failed"]].concat()).succeeds();
    }
}

#[test]
fn missing_dependencies_in_a_lane_use_up_no_attempt() {
    let repo = repo();
    repo.write("deps/lib", "installed here only");
    let command = "test -e deps/lib";
    repo.arborist(["gardener", "--jobs", "2", "--test-command", command]).exits(1).matches_snapshot();
    assert_eq!(repo.calls(), 0);
    repo.git(["config", "arborist.worktree.copy", "deps/lib"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--test-command", command]).succeeds();
}

#[test]
fn missing_dependencies_in_a_lane_of_a_continued_run_use_up_no_attempt() {
    let repo = repo();
    repo.write("deps/lib", "installed here only");
    repo.git(["config", "arborist.worktree.copy", "deps/lib"]).succeeds();
    let command = "test -e deps/lib";
    repo.arborist(["gardener", "--isolate", "--only", "T001", "--test-command", command]).succeeds();
    // Another machine, on which nothing is installed: the history says that tests passed, so there is no baseline.
    repo.git(["config", "--unset", "arborist.worktree.copy"]).succeeds();
    fs::remove_dir_all(repo.path("../repo.arborist")).unwrap();
    repo.git(["worktree", "prune"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--test-command", command]).exits(1).matches_snapshot();
    let log = repo.git(["log", "--all", "--format=%s"]).answer();
    assert!(!log.contains("@T002@test-fail"), "{log}");
    repo.git(["config", "arborist.worktree.copy", "deps/lib"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--test-command", command]).succeeds();
    let log =
        repo.git(["log", "--format=%(trailers:key=Arborist-Retry,valueonly,separator=)", "--grep=@T002@"]);
    assert!(log.answer().lines().all(|retry| retry.is_empty() || retry == "0"), "one attempt");
}

#[test]
fn a_run_continued_with_another_test_command_checks_the_baseline_again() {
    for place in [&["gardener"][..], &["gardener", "--isolate"]] {
        let repo = repo();
        let first = counted(&repo, "true");
        repo.arborist(["garden", "T001", "--test-command", &first]).succeeds();
        let (calls, before) = (repo.calls(), runs(&repo));
        let main = repo.git(["rev-parse", "main"]).answer();
        let other = counted(&repo, "exit 7");
        repo.arborist(place.iter().chain(&["--test-command", &other])).exits(1).matches_snapshot();
        assert_eq!((repo.calls(), runs(&repo)), (calls, before + 1), "{place:?}: no agent was started");
        assert_eq!(repo.git(["rev-parse", "main"]).answer(), main, "{place:?}");
        repo.arborist(place.iter().chain(&["--test-command", &first])).succeeds();
    }
}

#[test]
fn a_new_run_with_another_test_command_option_checks_the_baseline_again() {
    let repo = repo();
    let first = counted(&repo, "true");
    repo.arborist(["gardener", "--test-command", &first]).succeeds();
    let (calls, before) = (repo.calls(), runs(&repo));
    let other = counted(&repo, "exit 7");
    repo.arborist(["gardener", "--new-run", "--test-command", &other]).exits(1);
    assert_eq!((repo.calls(), runs(&repo)), (calls, before + 1), "no agent is called");
}

#[test]
fn a_missing_test_program_stops_a_run_in_a_new_project_before_an_agent_is_called() {
    for jobs in ["1", "2"] {
        // A wrapper that is only ever in a project: it is not on PATH, and there is no pom.xml either.
        for command in ["mvnw test", "cd . && CI=1 mvnw test"] {
            let repo = repo();
            let said = repo.arborist(["gardener", "--jobs", jobs, "--test-command", command]).exits(1);
            said.matches_snapshot();
            assert_eq!(repo.calls(), 0, "{jobs} {command}");
        }
    }
}

#[test]
fn a_missing_test_script_can_be_written_by_the_plan_of_a_new_project() {
    const WRITER: &str = "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\"; \
         mkdir -p bin; printf '#!/bin/sh\\n' > bin/tests.sh; chmod +x bin/tests.sh ;;\nesac";
    for jobs in ["1", "2"] {
        let repo = repo();
        repo.agent(WRITER);
        let run = ["gardener", "--jobs", jobs, "--test-command", "./bin/tests.sh"];
        repo.arborist(run).succeeds().err("because './bin/tests.sh' does not exist");
        // In a project with code, the name is more likely wrong.
        let repo = self::repo();
        repo.agent(WRITER);
        repo.write("src/main.c", "int main(void) { return 0; }\n");
        repo.commit("code\n");
        repo.arborist(run).exits(1).matches_snapshot();
        assert_eq!(repo.calls(), 0);
        repo.arborist([&run[..], &["--allow-red"]].concat()).succeeds();
    }
}

#[test]
fn a_time_limit_of_the_tests_is_named_with_its_setting() {
    let repo = repo();
    repo.git(["config", "arborist.timeouts.test", "1"]).succeeds();
    let said = repo.arborist(["gardener", "--test-command", "sleep 30"]).exits(1).never("--allow-red");
    let said = said.err("'sleep 30' timed out after 1 s (setting timeouts.test)").stderr();
    paste(&repo, &hinted(&said, "allow more seconds: ")).succeeds();
    repo.arborist(["gardener", "--test-command", "sleep 1.5"]).succeeds();
}

#[test]
fn each_baseline_has_its_own_log() {
    // The clock stands still here.
    let repo = repo();
    for command in ["echo the first; false", "echo the second; false"] {
        repo.arborist(["gardener", "--test-command", command]).exits(1);
    }
    let log = |name: &str| fs::read_to_string(repo.path("spec/logs").join(name)).unwrap();
    assert_eq!(log("baseline_test_20250216T143022.log").trim(), "the first");
    assert_eq!(log("baseline_test_20250216T143022-2.log").trim(), "the second");
}
