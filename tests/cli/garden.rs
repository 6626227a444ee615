//! `git arborist garden` and `gardener`: agents driven through the pipeline, in the user's own checkout.

use arborist_testkit::Garden;

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema", "description": "with users"},
    "T002": {"id": "T002", "name": "Add the form", "depends_on": ["T001"]}
  },
  "root_ids": ["T001", "T002"]
}
"#;

/// Writes a file for each task and approves of everything.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo fine; echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p'); echo "$task" >> "$task.txt"; echo "wrote $task.txt" ;;
esac
"#;

fn garden(agent: &str) -> Garden {
    Garden::planned("task-tree.json", TREE, agent)
}

fn subjects(garden: &Garden) -> Vec<String> {
    let log = garden.git(["log", "--reverse", "--format=%s"]).answer();
    log.lines().filter(|line| line.starts_with("task(")).map(str::to_owned).collect()
}

#[test]
fn a_plan_is_run_in_order_and_each_step_is_a_commit() {
    let garden = garden(WORKER);
    garden.arborist(["gardener"]).succeeds().shows();
    let expected = [
        "task(main@@run-start): run started",
        "task(main@T001@implement-pass): implement \"Create the schema\"",
        "task(main@T001@test-pass): tests pass for \"Create the schema\" (no test command)",
        "task(main@T001@review-approved): review approved for \"Create the schema\"",
        "task(main@T001@complete): complete \"Create the schema\"",
        "task(main@T002@implement-pass): implement \"Add the form\"",
        "task(main@T002@test-pass): tests pass for \"Add the form\" (no test command)",
        "task(main@T002@review-approved): review approved for \"Add the form\"",
        "task(main@T002@complete): complete \"Add the form\"",
    ];
    assert_eq!(subjects(&garden), expected);
    garden.arborist(["trailers", "check", "HEAD~9.."]).succeeds().shows();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "nothing is left lying about");
    garden.arborist(["state", "--exit-code"]).succeeds();
    let report = garden.git(["show", "--name-only", "--format=", "HEAD"]).answer();
    let report: serde_json::Value = serde_json::from_str(&garden.read(&report)).unwrap();
    assert_eq!(
        (&report["task_id"], &report["result"], &report["retries"]),
        (&"T002".into(), &"pass".into(), &0.into())
    );
    garden.arborist(["gardener"]).succeeds().shows();
    assert_eq!(garden.calls(), 4, "what is done is not done again");
}

#[test]
fn garden_takes_the_next_task_or_the_one_that_is_named() {
    let garden = garden(WORKER);
    garden.arborist(["garden", "T002"]).exits(1).shows();
    garden.arborist(["garden", "T009"]).exits(1).shows();
    garden
        .arborist(["garden", "--dry-run", "--review-runner", "codex", "--review-model", "o9"])
        .succeeds()
        .shows();
    assert_eq!(garden.calls(), 0);
    garden.arborist(["garden"]).succeeds().shows();
    garden.arborist(["garden", "T001"]).succeeds().shows();
    garden.arborist(["garden", "T002"]).succeeds().shows();
    garden.arborist(["garden"]).succeeds().shows();
}

#[test]
fn a_rejected_review_is_told_to_the_next_attempt() {
    let garden = garden(&WORKER.replace(
        "\"Review\"*) echo fine; echo APPROVED ;;",
        "\"Review\"*) if [ -e \"$ROOT/again\" ]; then echo APPROVED; else touch \"$ROOT/again\"; echo 'REJECTED: no foreign key'; fi ;;",
    ));
    garden.arborist(["garden"]).succeeds().shows();
    let second = garden.prompt(2);
    assert!(second.contains("Previous feedback from failed attempts"), "{second}");
    assert!(second.contains("--- Previous review (rejected) ---\nREJECTED: no foreign key"), "{second}");
    assert!(
        garden.prompt(0).starts_with("Implement task T001: Create the schema\n\nDescription: with users\n")
    );
    assert!(garden.prompt(1).contains("+T001"), "the reviewer sees the change");
    garden.arborist(["state", "T001"]).succeeds().shows();
}

#[test]
fn failing_tests_are_feedback_and_used_up_attempts_fail_the_task() {
    let garden = garden(WORKER);
    let test = [
        "--test-command",
        "git log -1 --format=%s | grep -q implement-pass || exit 0; echo '1 failed, 2 passed in 0.1s'; echo broken >&2; exit 1",
        "--max-retries",
        "2",
    ];
    garden.arborist(["gardener"].iter().chain(&test)).exits(1).shows();
    let states: Vec<String> =
        subjects(&garden).iter().map(|line| line.split_once("): ").unwrap().1.to_owned()).collect();
    assert_eq!(
        states[1..],
        [
            "implement \"Create the schema\"",
            "tests fail for \"Create the schema\" (attempt 1/2)",
            "implement \"Create the schema\"",
            "tests fail for \"Create the schema\" (attempt 2/2)",
            "failed \"Create the schema\" after 2 retries",
        ]
    );
    assert!(garden.prompt(1).contains("--- Previous test failure ---"), "{}", garden.prompt(1));
    assert!(garden.prompt(1).contains("broken"));
    let trailers = garden.git(["log", "-1", "--format=%(trailers)", "HEAD~1"]).answer();
    for line in [
        "Arborist-Test: fail",
        "Arborist-Retry: 1",
        "Arborist-Test-Failed: 1",
        "Arborist-Test-Passed: 2",
        "Arborist-Test-Type: unit",
    ] {
        assert!(trailers.contains(line), "{line} in {trailers}");
    }
    let log = trailers.lines().find_map(|line| line.strip_prefix("Arborist-Test-Log: ")).unwrap();
    assert!(garden.read(log).contains("broken"), "the whole output is kept");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "logs are hidden");
    garden.arborist(["gardener"]).exits(1).shows();
    garden.arborist(["reset", "T01"]).exits(1).shows();
    let said = garden.arborist(["reset", "T002"]).exits(1).shows();
    said.never("did you mean");
    garden.arborist(["reset", "T001"]).succeeds().shows();
    let head = garden.git(["rev-parse", "HEAD"]).answer();
    garden.arborist(["reset", "T001"]).succeeds().shows();
    assert_eq!(garden.git(["rev-parse", "HEAD"]).answer(), head, "once is enough");
    garden.arborist(["gardener", "--test-command", "true"]).succeeds().shows();
}

#[test]
fn a_test_command_that_succeeds_decides_whatever_it_printed() {
    let garden = garden(WORKER);
    garden.arborist(["garden", "--test-command", "echo '1 failed, 2 passed in 0.1s'"]).succeeds();
    assert!(!garden.git(["log", "--format=%(trailers)"]).answer().contains("Arborist-Test-Failed"));
}

#[test]
fn an_agent_that_fails_hangs_or_says_nothing_useful_fails_the_attempt() {
    let garden = garden("echo oops >&2; exit 3");
    garden.arborist(["garden", "--max-retries", "1"]).exits(1).shows();
    let body = garden.git(["log", "-1", "--format=%b", "HEAD~1"]).answer();
    assert!(body.contains("> oops"), "{body}");

    let garden = self::garden("sleep 60");
    garden.git(["config", "arborist.timeouts.silence", "1"]).succeeds();
    garden.arborist(["garden", "--max-retries", "1"]).exits(1).shows();
}

#[test]
fn a_run_that_was_killed_goes_on_and_loses_nothing() {
    let garden = garden(&WORKER.replace("echo \"wrote", "if [ ! -e \"$ROOT/killed\" ]; then touch \"$ROOT/killed\"; kill -9 $PPID; sleep 30; fi; echo \"wrote"));
    let run = garden.arborist(["gardener"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    garden.arborist(["gardener"]).succeeds().shows();
    let subjects = subjects(&garden);
    assert_eq!(
        subjects[1], "task(main@T001@implement-fail): implement \"Create the schema\" (failed, attempt 1/5)",
        "{subjects:?}"
    );
    assert_eq!(garden.read("T001.txt"), "T001\nT001\n", "what the first attempt left was kept");
    assert_eq!(garden.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_second_run_on_the_branch_is_told_who_holds_it() {
    let garden = garden(&WORKER.replace(
        "echo \"wrote",
        "git arborist gardener > \"$ROOT/second\" 2>&1; echo \"exit $?\" >> \"$ROOT/second\"; echo \"wrote",
    ));
    garden.arborist(["garden"]).succeeds();
    let second = std::fs::read_to_string(garden.root().join("second")).unwrap();
    assert!(second.contains("another run of 'main' is going on") && second.contains("exit 3"), "{second}");
}

#[test]
fn a_changed_plan_stops_the_run_until_it_is_accepted() {
    let garden = garden(WORKER);
    garden.arborist(["garden"]).succeeds();
    garden.write("task-tree.json", TREE.replace("Add the form", "Add a better form"));
    garden.arborist(["gardener"]).exits(2).shows();
    garden.arborist(["gardener", "--accept-changes"]).succeeds().shows();
    assert!(subjects(&garden).iter().any(|line| line.contains("@@plan): plan changed")));
    assert!(garden.prompt(2).contains("Add a better form"));
    garden.arborist(["gardener", "--new-run"]).succeeds().shows();
}

#[test]
fn commands_of_the_repository_run_only_once_they_are_approved() {
    let garden = garden(WORKER);
    let tested = TREE.replace(
        "\"description\": \"with users\"",
        "\"test_commands\": [{\"type\": \"unit\", \"command\": \"touch ../ran\"}]",
    );
    garden.write("task-tree.json", tested);
    garden.commit("tests\n");
    garden.arborist(["garden"]).exits(2).shows();
    assert!(!garden.root().join("ran").exists());
    garden.arborist(["garden", "--yes"]).succeeds();
    assert!(garden.root().join("ran").exists());
    garden.arborist(["gardener"]).succeeds().shows();
}

#[test]
fn an_approval_is_for_one_repository() {
    let garden = garden(WORKER);
    garden.write(".arborist/config.toml", "test-command = \"./check\"\n");
    garden.write_script("check", "touch \"$ROOT/ran-$(basename \"$PWD\")\"\n");
    garden.commit("tests\n");
    garden.arborist(["garden", "--yes"]).succeeds();
    let other = garden.root().join("other");
    garden.git(["clone", "-q", ".", "../other"]).succeeds();
    garden.arborist_in(&other, ["garden", "--new-run"]).exits(2).shows();
    assert!(!garden.root().join("ran-other").exists(), "the script of another repository has run");
}

#[test]
fn a_tracked_file_that_names_a_folder_outside_needs_approval() {
    for setting in ["worktree.base = \"../elsewhere\"", "log-dir = \"../elsewhere\""] {
        let garden = garden(WORKER);
        garden.write(".arborist/config.toml", setting.to_owned() + "\n");
        garden.commit("settings\n");
        garden.arborist(["garden"]).exits(2).shows();
        assert!(!garden.root().join("elsewhere").exists(), "{setting}");
    }
}

#[test]
fn the_tests_of_a_phase_run_when_its_last_task_is_done() {
    let garden = garden(WORKER);
    let phased = r#"{"nodes": {
      "P1": {"id": "P1", "name": "Phase", "children": ["T001"], "test_commands": [{"type": "integration", "command": "test -e ../ok"}]},
      "T001": {"id": "T001", "name": "a", "parent": "P1"}, "T002": {"id": "T002", "name": "b", "depends_on": ["P1"]}},
      "root_ids": ["P1", "T002"]}"#;
    garden.write("task-tree.json", phased);
    garden.commit("phases\n");
    garden.arborist(["gardener", "--yes"]).exits(1).shows();
    assert!(subjects(&garden).last().unwrap().starts_with("task(main@P1@test-fail)"));
    std::fs::write(garden.root().join("ok"), "").unwrap();
    garden.arborist(["gardener"]).succeeds().shows();
    garden.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn secrets_do_not_reach_commits_or_logs() {
    let garden =
        garden(&WORKER.replace(
            "echo \"wrote",
            "echo \"the key is $MY_API_KEY\"; echo \"$MY_API_KEY\" >&2; echo \"wrote",
        ));
    let mut command = garden.command("git", &garden.path(""));
    command.env("MY_API_KEY", "hunter2-hunter2-hunter2").args(["arborist", "garden"]);
    arborist_testkit::Run::of(&mut command, b"").succeeds();
    assert!(!garden.git(["log", "--format=%B"]).answer().contains("hunter2"));
    for log in std::fs::read_dir(garden.path("spec/logs")).unwrap() {
        let text = std::fs::read_to_string(log.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn a_program_that_gives_up_at_once_is_quoted_with_its_reason() {
    let garden = garden("echo starting >&2; echo 'this flag cannot be used by root' >&2; exit 1");
    garden.arborist(["garden", "--max-retries", "1"]).exits(1).shows().never("starting:");
    let told = garden.git(["log", "--format=%b", "--grep=T001@implement-fail"]).answer();
    assert!(told.contains("> it exited with code 1: this flag cannot be used by root"), "{told}");
}

#[test]
fn the_words_of_an_agent_that_failed_are_in_its_commit_and_told_to_the_next_one() {
    let garden = garden("echo 'I looked at the parser'; echo 'and gave up'; exit 3");
    garden.arborist(["garden", "--max-retries", "2"]).exits(1).shows();
    let told = garden.git(["log", "-1", "--format=%b", "--grep=T001@implement-fail"]).answer();
    assert!(told.contains("> I looked at the parser\n> and gave up\n"), "{told}");
    assert!(garden.prompt(1).contains("I looked at the parser"), "{}", garden.prompt(1));
}

#[test]
fn where_a_run_cannot_begin_it_says_why_and_what_to_do() {
    let garden = Garden::sprout();
    garden.agent(WORKER);
    garden.arborist(["gardener"]).exits(128).shows();
    garden.arborist(["gardener", "--runner", "cluade"]).exits(129).shows();
    garden.git(["checkout", "-q", "--detach"]).succeeds();
    garden.arborist(["gardener"]).exits(128).shows();
    let unborn = Garden::bare_ground(&[]);
    unborn.agent(WORKER);
    unborn.arborist(["gardener"]).exits(128).shows();
}

#[test]
fn the_demo_shows_a_finished_plan() {
    let garden = Garden::sprout();
    let folder = garden.root().join("demo");
    let said = garden.arborist_in(garden.root(), ["demo", "--into", folder.to_str().unwrap()]).succeeds();
    said.shows();
    garden.arborist_in(&folder, ["state", "--exit-code"]).succeeds();
    garden.arborist_in(garden.root(), ["demo", "--into", folder.to_str().unwrap()]).exits(128).shows();
}

#[test]
fn one_task_can_be_given_in_words() {
    let garden = Garden::sprout();
    garden.agent(WORKER);
    garden.arborist(["garden", "-m", "Add a health endpoint"]).succeeds().shows();
    assert!(garden.prompt(0).starts_with("Implement task add-a-health-endpoint: Add a health endpoint\n"));
    garden.arborist(["state"]).succeeds().shows();
    garden.arborist(["garden", "-m", "Add a health endpoint"]).succeeds().shows();
    garden.arborist(["garden", "-m", "Ü"]).succeeds().shows();
}

#[test]
fn other_words_are_another_task_however_they_begin() {
    let garden = Garden::sprout();
    garden.agent(WORKER);
    for what in ["users", "orders"] {
        let words = format!("Fix the failing tests in the module for {what}");
        garden.arborist(["garden", "-m", &words]).succeeds().shows();
        garden.arborist(["garden", "-m", &words]).succeeds().shows();
    }
    garden.arborist(["state"]).succeeds().shows();
    garden.arborist(["garden", "-m", " "]).exits(129).shows();
}

#[test]
fn an_agent_that_changes_nothing_is_told_of() {
    let garden = garden("case \"$prompt\" in Review*) echo APPROVED ;; *) echo done ;; esac");
    garden.arborist(["garden"]).succeeds().shows();
    assert!(subjects(&garden).iter().any(|subject| subject.ends_with("(no file changed)")));
}
