//! `git arborist garden` and `gardener`: agents driven through the pipeline, in the user's own checkout.

use std::{fs, process::Stdio, thread, time::Duration};

use arborist_testkit::TestRepo;

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

fn repo(agent: &str) -> TestRepo {
    TestRepo::planned("task-tree.json", TREE, agent)
}

fn subjects(repo: &TestRepo) -> Vec<String> {
    let log = repo.git(["log", "--reverse", "--format=%s"]).answer();
    log.lines().filter(|line| line.starts_with("task(")).map(str::to_owned).collect()
}

#[test]
fn a_plan_is_run_in_order_and_each_step_is_a_commit() {
    let repo = repo(WORKER);
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
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
    assert_eq!(subjects(&repo), expected);
    repo.arborist(["trailers", "check", "HEAD~9.."]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "nothing is left lying about");
    repo.arborist(["state", "--exit-code"]).succeeds();
    let report = repo.git(["show", "--name-only", "--format=", "HEAD"]).answer();
    let report: serde_json::Value = serde_json::from_str(&repo.read(&report)).unwrap();
    assert_eq!(
        (&report["task_id"], &report["result"], &report["retries"]),
        (&"T002".into(), &"pass".into(), &0.into())
    );
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    assert_eq!(repo.calls(), 4, "what is done is not done again");
}

#[test]
fn garden_runs_the_next_task_or_the_named_one() {
    let repo = repo(WORKER);
    repo.arborist(["garden", "T002"]).exits(1).matches_snapshot();
    repo.arborist(["garden", "T009"]).exits(1).matches_snapshot();
    repo.arborist(["garden", "--dry-run", "--review-runner", "codex", "--review-model", "o9"])
        .succeeds()
        .matches_snapshot();
    assert_eq!(repo.calls(), 0);
    repo.arborist(["garden"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "T001"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "T002"]).succeeds().matches_snapshot();
    repo.arborist(["garden"]).succeeds().matches_snapshot();
}

#[test]
fn a_failed_task_is_retried_with_the_option_from_the_hint() {
    let repo = repo(WORKER);
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["garden", "T001", "--test-command", "false", "--max-retries", "1"]).exits(1);
    repo.arborist(["garden", "T001"]).exits(1).matches_snapshot();
    repo.arborist(["garden", "T001", "--retry-failed", "--test-command", "true"]).succeeds();
}

#[test]
fn a_task_done_by_its_failed_first_attempt_is_not_reported_as_unchanged() {
    let repo = repo(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
if [ -e \"$ROOT/once\" ]; then echo 'NOTHING TO DO: it is done'; exit; fi
touch \"$ROOT/once\"; echo x > work.txt; exit 3",
    );
    let printed = repo.arborist(["garden", "T001", "--json", "--test-command", "true"]).succeeds().stdout();
    let ended: serde_json::Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    assert_eq!(ended["summary"]["completed"], serde_json::json!(["T001"]));
    assert_eq!(ended["summary"]["unchanged"], serde_json::json!([]));
}

#[test]
fn the_next_prompt_contains_the_rejected_review() {
    let repo = repo(&WORKER.replace(
        "\"Review\"*) echo fine; echo APPROVED ;;",
        "\"Review\"*) if [ -e \"$ROOT/again\" ]; then echo APPROVED; else touch \"$ROOT/again\"; echo 'REJECTED: no foreign key'; fi ;;",
    ));
    repo.arborist(["garden"]).succeeds().matches_snapshot();
    let second = repo.prompt(2);
    assert!(second.contains("Previous feedback from failed attempts"), "{second}");
    assert!(second.contains("--- Previous review (rejected) ---\nREJECTED: no foreign key"), "{second}");
    assert!(
        repo.prompt(0).starts_with("Implement task T001: Create the schema\n\nDescription: with users\n")
    );
    assert!(repo.prompt(1).contains("+T001"), "the reviewer sees the change");
    repo.arborist(["state", "T001"]).succeeds().matches_snapshot();
}

#[test]
fn failing_tests_become_feedback_and_a_task_fails_after_its_last_attempt() {
    let repo = repo(WORKER);
    let test = [
        "--test-command",
        "git log -1 --format=%s | grep -q implement-pass || exit 0; echo '1 failed, 2 passed in 0.1s'; echo broken >&2; exit 1",
        "--max-retries",
        "2",
    ];
    repo.arborist(["gardener"].iter().chain(&test)).exits(1).matches_snapshot();
    let states: Vec<String> =
        subjects(&repo).iter().map(|line| line.split_once("): ").unwrap().1.to_owned()).collect();
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
    assert!(repo.prompt(1).contains("--- Previous test failure ---"), "{}", repo.prompt(1));
    assert!(repo.prompt(1).contains("broken"));
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "HEAD~1"]).answer();
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
    assert!(repo.read(log).contains("broken"), "the whole output is kept");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "logs are hidden");
    repo.arborist(["gardener"]).exits(1).matches_snapshot();
    repo.arborist(["reset", "T01"]).exits(1).matches_snapshot();
    let said = repo.arborist(["reset", "T002"]).exits(1).matches_snapshot();
    said.never("did you mean");
    repo.arborist(["reset", "T001"]).succeeds().matches_snapshot();
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    repo.arborist(["reset", "T001"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), head, "once is enough");
    repo.arborist(["gardener", "--test-command", "true"]).succeeds().matches_snapshot();
}

#[test]
fn a_test_command_that_exits_with_0_passes_even_if_it_prints_failures() {
    let repo = repo(WORKER);
    repo.arborist(["garden", "--test-command", "echo '1 failed, 2 passed in 0.1s'"]).succeeds();
    assert!(!repo.git(["log", "--format=%(trailers)"]).answer().contains("Arborist-Test-Failed"));
}

#[test]
fn an_agent_that_fails_or_hangs_fails_the_attempt() {
    let repo = repo("echo oops >&2; exit 3");
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).matches_snapshot();
    let body = repo.git(["log", "-1", "--format=%b", "HEAD~1"]).answer();
    assert!(body.contains("> oops"), "{body}");

    let repo = self::repo("sleep 60");
    repo.git(["config", "arborist.timeouts.silence", "1"]).succeeds();
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).matches_snapshot();
}

#[test]
fn a_killed_run_continues_and_loses_nothing() {
    let repo = repo(&WORKER.replace("echo \"wrote", "if [ ! -e \"$ROOT/killed\" ]; then touch \"$ROOT/killed\"; kill -9 $PPID; sleep 30; fi; echo \"wrote"));
    let run = repo.arborist(["gardener"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    let subjects = subjects(&repo);
    assert_eq!(
        subjects[1], "task(main@T001@implement-fail): implement \"Create the schema\" (failed, attempt 1/5)",
        "{subjects:?}"
    );
    assert_eq!(repo.read("T001.txt"), "T001\nT001\n", "what the first attempt left was kept");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}

#[test]
fn a_second_run_on_the_same_branch_is_refused() {
    let repo = repo(&WORKER.replace(
        "echo \"wrote",
        "touch \"$ROOT/begun\"; while [ ! -e \"$ROOT/asked\" ]; do sleep 0.05; done; echo \"wrote",
    ));
    let mut first = repo.command("git-arborist-garden", &repo.path(""));
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !repo.root().join("begun").exists() {
        assert_eq!(first.try_wait().unwrap(), None, "the first run is at work");
        thread::sleep(Duration::from_millis(20));
    }
    let second = repo.arborist(["gardener"]);
    fs::write(repo.root().join("asked"), "").unwrap();
    assert!(first.wait().unwrap().success());
    second.exits(3).err("a run of 'main' is active");
}

#[test]
fn a_changed_plan_stops_the_run_until_it_is_accepted() {
    let repo = repo(WORKER);
    repo.arborist(["garden"]).succeeds();
    repo.write("task-tree.json", TREE.replace("Add the form", "Add a better form"));
    repo.arborist(["gardener"]).exits(2).matches_snapshot();
    repo.arborist(["gardener", "--accept-changes"]).succeeds().matches_snapshot();
    assert!(subjects(&repo).iter().any(|line| line.contains("@@plan): plan changed")));
    assert!(repo.prompt(2).contains("Add a better form"));
    repo.arborist(["gardener", "--new-run"]).succeeds().matches_snapshot();
}

#[test]
fn commands_from_tracked_files_run_only_after_approval() {
    let repo = repo(WORKER);
    let tested = TREE.replace(
        "\"description\": \"with users\"",
        "\"test_commands\": [{\"type\": \"unit\", \"command\": \"touch ../ran\"}]",
    );
    repo.write("task-tree.json", tested);
    repo.commit("tests\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("ran").exists());
    repo.arborist(["garden", "--yes"]).succeeds();
    assert!(repo.root().join("ran").exists());
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
}

#[test]
fn an_approval_applies_to_one_repository_only() {
    let repo = repo(WORKER);
    repo.write(".arborist/config.toml", "test-command = \"./check\"\n");
    repo.write_script("check", "touch \"$ROOT/ran-$(basename \"$PWD\")\"\n");
    repo.commit("tests\n");
    repo.arborist(["garden", "--yes"]).succeeds();
    let other = repo.root().join("other");
    repo.git(["clone", "-q", ".", "../other"]).succeeds();
    repo.arborist_in(&other, ["garden", "--new-run"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("ran-other").exists(), "the script of another repository has run");
}

#[test]
fn an_approval_from_an_earlier_version_is_requested_again_with_the_reason() {
    let repo = repo(WORKER);
    repo.write(".arborist/config.toml", "test-command = \"true\"\n");
    repo.commit("tests\n");
    let reason = "an approval now holds for one repository";
    repo.arborist(["garden"]).exits(2).never(reason);
    // The name of the file was the SHA-256 digest of the text, 'test: true'.
    let digest = "7fa52a0bd7923a33d2529807051276eb53385a91281866b39cbb47fd58c6bffc";
    let approved = repo.home().join(".local/state/git-arborist/approved");
    fs::create_dir_all(&approved).unwrap();
    fs::write(approved.join(digest), "").unwrap();
    repo.arborist(["garden"]).exits(2).err("test: true").err(reason);
    repo.arborist(["garden", "--yes"]).succeeds().err(reason);
    repo.arborist(["garden"]).succeeds().never(reason);
}

#[test]
fn a_tracked_file_that_names_a_folder_outside_the_repository_needs_approval() {
    let repo = repo(WORKER);
    repo.write(".arborist/config.toml", "worktree.base = \"../elsewhere\"\n");
    repo.commit("settings\n");
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("elsewhere").exists());
}

#[test]
fn the_tests_of_a_phase_run_when_its_last_task_is_done() {
    let repo = repo(WORKER);
    let phased = r#"{"nodes": {
      "P1": {"id": "P1", "name": "Phase", "children": ["T001"], "test_commands": [{"type": "integration", "command": "test -e ../ok"}]},
      "T001": {"id": "T001", "name": "a", "parent": "P1"}, "T002": {"id": "T002", "name": "b", "depends_on": ["P1"]}},
      "root_ids": ["P1", "T002"]}"#;
    repo.write("task-tree.json", phased);
    repo.commit("phases\n");
    repo.arborist(["gardener", "--yes"]).exits(1).matches_snapshot();
    assert!(subjects(&repo).last().unwrap().starts_with("task(main@P1@test-fail)"));
    std::fs::write(repo.root().join("ok"), "").unwrap();
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn secrets_do_not_reach_commits_or_logs() {
    let repo =
        repo(&WORKER.replace(
            "echo \"wrote",
            "echo \"the key is $MY_API_KEY\"; echo \"$MY_API_KEY\" >&2; echo \"wrote",
        ));
    let mut command = repo.command("git", &repo.path(""));
    command.env("MY_API_KEY", "hunter2-hunter2-hunter2").args(["arborist", "garden"]);
    arborist_testkit::Run::of(&mut command, b"").succeeds();
    assert!(!repo.git(["log", "--format=%B"]).answer().contains("hunter2"));
    for log in std::fs::read_dir(repo.path("spec/logs")).unwrap() {
        let text = std::fs::read_to_string(log.unwrap().path()).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[test]
fn the_last_error_line_of_an_agent_that_exits_at_once_is_quoted() {
    let repo = repo("echo starting >&2; echo 'this flag cannot be used by root' >&2; exit 1");
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).matches_snapshot().never("starting:");
    let told = repo.git(["log", "--format=%b", "--grep=T001@implement-fail"]).answer();
    assert!(told.contains("> the agent exited with code 1: this flag cannot be used by root"), "{told}");
}

#[test]
fn the_output_of_a_failed_agent_is_in_its_commit_and_in_the_next_prompt() {
    let repo = repo("echo 'I looked at the parser'; echo 'and gave up'; exit 3");
    repo.arborist(["garden", "--max-retries", "2"]).exits(1).matches_snapshot();
    let told = repo.git(["log", "-1", "--format=%b", "--grep=T001@implement-fail"]).answer();
    assert!(told.contains("> I looked at the parser\n> and gave up\n"), "{told}");
    assert!(repo.prompt(1).contains("I looked at the parser"), "{}", repo.prompt(1));
}

#[test]
fn a_run_that_cannot_start_reports_the_reason_and_a_hint() {
    let repo = TestRepo::init();
    repo.agent(WORKER);
    repo.arborist(["gardener"]).exits(1).matches_snapshot();
    repo.arborist(["gardener", "--runner", "cluade"]).exits(129).matches_snapshot();
    repo.git(["checkout", "-q", "--detach"]).succeeds();
    repo.arborist(["gardener"]).exits(128).matches_snapshot();
    let unborn = TestRepo::with_options(&[]);
    unborn.agent(WORKER);
    unborn.arborist(["gardener"]).exits(128).matches_snapshot();
}

#[test]
fn demo_creates_a_repository_with_a_finished_plan() {
    let repo = TestRepo::init();
    let folder = repo.root().join("demo");
    let said = repo.arborist_in(repo.root(), ["demo", "--into", folder.to_str().unwrap()]).succeeds();
    said.matches_snapshot();
    repo.arborist_in(&folder, ["state", "--exit-code"]).succeeds();
    repo.arborist_in(repo.root(), ["demo", "--into", folder.to_str().unwrap()]).exits(128).matches_snapshot();
}

#[test]
fn garden_accepts_an_unplanned_task_as_a_message() {
    let repo = TestRepo::init();
    repo.agent(WORKER);
    repo.arborist(["garden", "-m", "Add a health endpoint"]).succeeds().matches_snapshot();
    assert!(repo.prompt(0).starts_with("Implement task add-a-health-endpoint: Add a health endpoint\n"));
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "-m", "Add a health endpoint"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "-m", "Ü"]).succeeds().matches_snapshot();
}

#[test]
fn messages_with_the_same_beginning_are_different_tasks() {
    let repo = TestRepo::init();
    repo.agent(WORKER);
    for what in ["users", "orders"] {
        let words = format!("Fix the failing tests in the module for {what}");
        repo.arborist(["garden", "-m", &words]).succeeds().matches_snapshot();
        repo.arborist(["garden", "-m", &words]).succeeds().matches_snapshot();
    }
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "-m", " "]).exits(129).matches_snapshot();
}

#[test]
fn an_agent_that_changes_nothing_is_reported() {
    let repo = repo("case \"$prompt\" in Review*) echo APPROVED ;; *) echo done ;; esac");
    repo.arborist(["garden"]).succeeds().matches_snapshot();
    assert!(subjects(&repo).iter().any(|subject| subject.ends_with("(no file changed)")));
}
