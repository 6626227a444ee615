//! Logs can be read: as text, by task, step and attempt, and while they are written.

use std::{
    fs,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::turn_scripts;
use arborist_testkit::{TestRepo, WORKER};

const SECRET: &str = "sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Speaks as Claude Code does; a tool answers with many lines, another fails.
const TALKER: &str = r#"
waits() { tries=0; while [ "$(noted)" -le "$1" ] && [ $tries -lt 600 ]; do sleep 0.02; tries=$((tries+1)); done; }
opens
before=$(noted)
calls 1 "Let me read."
printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"%s"}]}}\n' "$(seq -s '\n' 1 30)"
waits $before
calls 2 "I'll add a file"; echo one > one.txt
printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"no such command"}]}]}}\n'
ends "All is done."
"#;

/// Fails its first review, and its first test.
fn rejected() -> TestRepo {
    let worker = "case \"$prompt\" in\n  Review*) once said && echo 'REJECTED: again' || echo APPROVED ;;\n  *) echo \"$n\" >> T001.txt; echo \"work $n\" ;;\nesac";
    let once = "once() { [ ! -e \"$ROOT/$1\" ] && : > \"$ROOT/$1\"; }";
    let plan = r#"{"nodes": {"T001": {"id": "T001", "name": "the work", "test_commands": [
        {"type": "unit", "command": "printf 'PASSED OUTPUT'"},
        {"type": "integration", "command": "echo FAILED OUTPUT; [ $(wc -l < T001.txt) -gt 1 ]"}]}},
        "root_ids": ["T001"]}"#;
    let repo = TestRepo::planned("task-tree.json", plan, &format!("{once}\n{worker}"));
    repo.arborist(["gardener", "--yes"]).succeeds();
    repo
}

fn names(repo: &TestRepo, step: &str) -> Vec<String> {
    let files = fs::read_dir(repo.path("spec/logs")).unwrap().flatten();
    let names = files.map(|file| file.file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(&format!("T001_{step}_"))).collect();
    names.sort();
    names
}

#[test]
fn the_newest_attempt_is_shown_as_text() {
    let repo = turn_scripts::repo("claude", TALKER);
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["logs", "T001"]).succeeds().matches_snapshot().never("{\"type\"");
    repo.arborist(["logs", "T001", "--step", "review"]).succeeds().matches_snapshot();
}

#[test]
fn event_streams_of_all_agent_programs_are_shown_as_text() {
    for program in ["claude", "codex", "gemini", "opencode"] {
        let repo = turn_scripts::recorded(program);
        repo.arborist(["logs", "T001", "--step", "implement"]).succeeds().matches_snapshot().never("{\"");
    }
}

#[test]
fn logs_can_be_selected_by_attempt_and_step() {
    let repo = rejected();
    repo.arborist(["logs", "T001", "--attempt", "1"]).succeeds().matches_snapshot();
    let newest = repo.arborist(["logs", "T001"]).succeeds().out("T001 implement, attempt 3");
    newest.never("T001 implement, attempt 1").never("T001 review, attempt 2");
    repo.arborist(["logs", "T001", "--attempt", "2", "--step", "review"]).succeeds().matches_snapshot();
}

#[test]
fn every_test_command_has_a_heading_and_all_of_its_output_in_the_log() {
    let repo = rejected();
    for attempt in ["1", "2"] {
        let shown = repo.arborist(["logs", "T001", "--step", "test", "--attempt", attempt]).succeeds();
        shown.matches_snapshot().out("PASSED OUTPUT").out("FAILED OUTPUT");
    }
}

#[test]
fn attempts_in_the_same_second_have_separate_logs() {
    let repo = rejected();
    let logs = names(&repo, "implement");
    assert_eq!(logs.len(), 3, "{logs:?}");
    for (at, log) in ["", "-2", "-3"].iter().enumerate() {
        let text = repo.read(&format!("spec/logs/T001_implement_20250216T143022{log}.log"));
        assert!(text.starts_with(&format!("=== T001 implement, attempt {}, ", at + 1)), "{text}");
        assert_eq!(text.matches("\nwork ").count(), 1, "{text}");
    }
    let trailer = "--format=%(trailers:key=Arborist-Test-Log,valueonly)";
    let failed = repo.git(["log", "-1", trailer, "--grep=@T001@test-fail)"]).answer();
    assert!(repo.read(failed.trim()).contains("FAILED OUTPUT"), "{failed}");
}

#[test]
fn without_an_argument_the_task_with_the_newest_log_is_shown() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["logs"]).exits(1).matches_snapshot();
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["logs", "--step", "review"]).succeeds().matches_snapshot();
    let below = repo.path("below");
    fs::create_dir(&below).unwrap();
    repo.arborist_in(&below, ["logs", "--step", "review"]).succeeds().out("T002 review");
}

#[test]
fn a_missing_log_is_explained() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["garden", "T001"]).succeeds();
    repo.arborist(["logs", "T002"]).exits(1).matches_snapshot();
    repo.arborist(["logs", "T01"]).exits(1).matches_snapshot();
    repo.arborist(["logs", "T001", "--attempt", "2"]).exits(1).matches_snapshot();
    fs::remove_file(repo.path("spec/logs").join(&names(&repo, "review")[0])).unwrap();
    repo.arborist(["logs", "T001", "--step", "review"]).exits(1).matches_snapshot();
    repo.arborist(["logs", "T001", "--attempt", "0"]).exits(129);
}

#[test]
fn after_a_reset_the_logs_of_the_new_attempt_are_shown() {
    let repo = rejected();
    repo.arborist(["reset", "T001"]).succeeds();
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED ;; *) echo new >> T001.txt; echo new work ;; esac",
    );
    repo.arborist(["gardener"]).succeeds();
    let shown = repo.arborist(["logs", "T001"]).succeeds();
    shown.out("T001 implement, attempt 1").out("new work").never("T001 test, attempt 2").never("work 0");
}

#[test]
fn prompts_are_in_logs_and_transcripts_without_secrets() {
    let repo = turn_scripts::repo("claude", TALKER);
    repo.write("tasks.md", format!("- [ ] T001 the work with {SECRET}\n"));
    repo.commit("a plan with a key\n");
    repo.arborist(["gardener"]).succeeds();
    assert!(repo.prompt(0).contains(SECRET));
    repo.arborist(["logs", "T001"]).succeeds().out("> Implement task T001").never(SECRET);
    for step in ["implement", "review"] {
        let log = repo.read(&format!("spec/logs/{}", names(&repo, step)[0]));
        assert!(log.contains("> ") && !log.contains(SECRET), "{log}");
    }
    let said = repo.git(["log", "--format=%B", "--glob=refs/arborist/transcripts"]).answer();
    assert!(said.contains(r#""voice":"prompt""#) && !said.contains(SECRET), "{said}");
    assert!(said.contains("Implement task T001") && said.contains("Review"), "{said}");
}

#[test]
fn the_transcript_of_a_turn_is_shown_with_its_prompt() {
    let repo = turn_scripts::repo("claude", TALKER);
    repo.arborist(["gardener"]).succeeds();
    let id = repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)"]).answer();
    let id = id.trim();
    repo.arborist(["session", "show", id, "--turn", "1", "--transcript"]).succeeds().matches_snapshot();
    let shown = repo.arborist(["session", "show", id, "--turn", "1", "--transcript", "--json"]).answer();
    let document: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let said = document["transcript"].as_array().unwrap();
    let voices: Vec<&str> = said.iter().map(|line| line["voice"].as_str().unwrap()).collect();
    assert_eq!(voices, ["prompt", "agent", "call", "tool"]);
    repo.arborist(["session", "show", id, "--transcript"]).exits(129);
    repo.git(["update-ref", "-d", &format!("refs/arborist/transcripts/{id}")]).succeeds();
    repo.arborist(["session", "show", id, "--turn", "1", "--transcript"]).exits(1).matches_snapshot();
}

#[test]
fn step_logs_that_are_too_large_are_cut_with_a_warning() {
    let worker = "case \"$prompt\" in Review*) echo APPROVED ;; *) yes 'a line of output' | head -c 1300000; echo x > x ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", worker);
    repo.git(["config", "arborist.log-limit", "1"]).succeeds();
    repo.git(["config", "arborist.test-command", "yes 'of a test' | head -c 1300000"]).succeeds();
    let run = repo.arborist(["gardener"]).succeeds();
    let words = "the log has reached its size limit (log-limit), and the rest was left out";
    run.err(&format!("the log of robot is incomplete: {words}"))
        .err(&format!("the log of the tests is incomplete: {words}"));
    for step in ["implement", "test"] {
        let log = repo.read(&format!("spec/logs/{}", names(&repo, step)[0]));
        assert!((1_000_000..1_001_000).contains(&log.len()), "{}", log.len());
        assert!(log.contains(words));
    }
}

#[test]
fn gate_logs_and_baseline_logs_that_are_too_large_are_cut_with_a_warning() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.log-limit", "1"]).succeeds();
    repo.git(["config", "arborist.test-command", "yes 'of a test' | head -c 1300000"]).succeeds();
    repo.git(["config", "arborist.merge.gates.noisy.command", "yes 'of a gate' | head -c 1300000"])
        .succeeds();
    let run = repo.arborist(["gardener", "--isolate"]).succeeds();
    let words = "is incomplete: the log has reached its size limit (log-limit), and the rest was left out";
    run.err(&format!("the log of the tests before the first task {words}"))
        .err(&format!("the log of the gate 'noisy' {words}"));
}

#[test]
fn lock_files_of_tasks_are_removed_when_they_are_released() {
    let plan: String = (1..=6).map(|n| format!("- [ ] T00{n} [P] do {n}\n")).collect();
    let repo = TestRepo::planned("tasks.md", &plan, WORKER);
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let locks = fs::read_dir(repo.path(".git/arborist/locks")).unwrap().flatten();
    let names: Vec<String> = locks.map(|lock| lock.file_name().into_string().unwrap()).collect();
    assert!(names.contains(&"run-main".to_owned()), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("task-")), "{names:?}");
}

/// A child process that is killed if the test fails.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(repo: &TestRepo, args: &[&str], output: &str) -> Background {
    let file = fs::File::create(repo.root().join(output)).unwrap();
    let mut command = repo.command("git", &repo.path("."));
    command.arg("arborist").args(args).stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    Background(command.spawn().unwrap())
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < end, "{what} did not come");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn logs_of_a_running_task_are_followed_until_the_run_is_done_with_it() {
    let worker = "case \"$prompt\" in
      Review*) echo APPROVED ;;
      *) echo a warning >&2; echo first words; until [ -e \"$ROOT/go\" ]; do sleep 0.02; done; echo x > x; echo last words ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", worker);
    let mut run = start(&repo, &["gardener"], "run");
    let log = || fs::read_dir(repo.path("spec/logs")).is_ok_and(|logs| logs.flatten().count() > 0);
    wait_for("a log", log);
    let mut followed = start(&repo, &["logs", "-f"], "followed");
    let text = || fs::read_to_string(repo.root().join("followed")).unwrap();
    wait_for("what the agent says first", || text().contains("first words"));
    assert!(followed.0.try_wait().unwrap().is_none() && !text().contains("last words"));
    fs::write(repo.root().join("go"), "").unwrap();
    assert!(followed.0.wait().unwrap().success());
    assert!(run.0.wait().unwrap().success());
    let text = text();
    assert!(text.contains("last words") && text.contains("=== T001 review, attempt 1"), "{text}");
    assert!(text.contains("a warning") && text.matches("first words").count() == 1, "{text}");
}

#[test]
fn logs_of_a_task_are_those_of_the_run_on_the_checked_out_branch() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["gardener", "--test-command", "! test -e T001.txt", "--max-retries", "1"]).exits(1);
    let run = ["gardener", "--session-branch", "--new-run", "--test-command", "true"];
    repo.arborist(run).succeeds();
    let branch = repo.git(["branch", "--list", "arborist/tasks/*", "--format=%(refname:short)"]).answer();
    let branch = branch.trim();
    let [second, first] = &names(&repo, "implement")[..] else { panic!("two logs") };
    let own = repo.arborist(["logs", "T001"]).succeeds();
    own.out(first).never(second).out("unit test: ! test").never("unit test: true").never("note: ");
    repo.arborist(["state", "T001"]).succeeds().out(&format!("agent log    spec/logs/{first}"));
    repo.arborist(["logs", "T001", "--scope", branch]).succeeds().out(second).never(first).never("note: ");
    repo.arborist(["state", "T001", "--scope", branch]).succeeds().out(second).never(first);
    // The run here has not reached this task.
    let other = repo.arborist(["logs", "T002"]).succeeds().out("T002 implement, attempt 1");
    other.err("note: the log is of session '").err("', not of the run of 'main'");
    repo.arborist(["logs"]).succeeds().out("T002 implement").err("note: the log is of session '");
    repo.arborist(["logs", "T002", "--scope", "main"]).exits(1).err("task 'T002' has no log in 'spec/logs'");
    repo.arborist(["logs", "T001", "--scope", "nowhere"]).exits(1).err("there is no branch 'nowhere'");
}

#[test]
fn a_task_that_is_not_in_the_plan_is_unknown_before_the_first_run() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    for command in ["logs", "reset", "merge"] {
        repo.arborist([command, "X7"]).exits(1).err("the plan has no task or phase 'X7'");
    }
    repo.arborist(["logs", "T001"]).exits(1).err("because it has not run yet");
}

#[test]
fn the_newest_of_two_logs_of_one_second_is_shown() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 the work\n", WORKER);
    repo.arborist(["gardener", "--test-command", "echo AAA; false"]).exits(1);
    repo.arborist(["gardener", "--test-command", "echo BBB; false"]).exits(1);
    repo.arborist(["logs"]).succeeds().out("BBB").never("AAA");
}

#[test]
fn a_task_of_the_plan_that_has_not_run_is_not_called_unknown() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 the work\n", WORKER);
    repo.arborist(["gardener", "--test-command", "false"]).exits(1);
    repo.arborist(["logs", "T001"])
        .exits(1)
        .err("error: there is no log of 'T001', because it has not run yet");
}
