//! Every turn of a run is a record of its session, with a commit or without.

use std::fs;

use crate::turn_scripts::repo;
use arborist_testkit::TestRepo;
use serde_json::Value;

const WORK: &str = r#"
opens
calls 1 "Let me read."; reads 1
calls 2 "I'll add a file"; echo one > one.txt; answers 2
ends "All is done, token sk-ant-api03-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA."
"#;

fn session(repo: &TestRepo) -> String {
    repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)"]).answer().trim().to_owned()
}

/// The records of the newest session, oldest first, as they stand in git.
fn records(repo: &TestRepo) -> Vec<Value> {
    let name = format!("refs/arborist/sessions/{}", session(repo));
    let log = repo.git(["log", "--first-parent", "--reverse", "--format=%b%x00", &name]).answer();
    let records = log.split('\0').map(str::trim).filter(|record| record.starts_with('{'));
    records.map(|record| serde_json::from_str(record).unwrap()).collect()
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["kind"].as_str().unwrap()).collect()
}

#[test]
fn a_run_is_a_session_with_a_record_for_each_turn() {
    let repo = repo("claude", WORK);
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    repo.arborist(["gardener", "--model", "big"]).succeeds();
    let records = records(&repo);
    let expected = ["start", "turn", "turn", "turn", "checkpoint", "turn", "checkpoint", "end"];
    assert_eq!(kinds(&records), expected);
    let start = &records[0];
    assert_eq!(start["repositories"][0]["base"], base);
    assert_eq!((&start["options"]["model"], &start["pipeline"]), (&"big".into(), &"tasks".into()));
    assert!(start["plan"].as_str().unwrap().starts_with("tasks.md@"));
    let commit = repo.git(["log", "-1", "--format=%H", "--grep=@turn)"]).answer();
    let (read, wrote, said) = (&records[1], &records[2], &records[3]);
    assert_eq!((&read["number"], &read["commit"]), (&1.into(), &Value::Null));
    assert_eq!((&wrote["number"], &wrote["commit"]), (&2.into(), &commit.clone().into()));
    assert_eq!(wrote["files"], serde_json::json!(["one.txt"]));
    assert_eq!(wrote["tools"][0]["name"], "Bash");
    assert_eq!((&wrote["tokens"]["read"], &wrote["agent_session"]), (&10.into(), &"s-1".into()));
    assert_eq!((&wrote["node"], &wrote["step"]), (&"T001".into(), &"implement".into()));
    assert_eq!((&said["number"], &said["commit"]), (&3.into(), &Value::Null));
    assert_eq!(records[4]["status"], "implement-pass");
    assert_eq!((&records[5]["step"], &records[5]["commit"]), (&"review".into(), &Value::Null));
    assert_eq!(records[7]["result"], "complete");
    assert_eq!(records[7]["context"]["tip"], repo.git(["rev-parse", "HEAD"]).answer());
    repo.arborist(["session", "which", &commit]).succeeds().matches_snapshot();
    repo.arborist(["state"]).succeeds().out(&session(&repo));
}

#[test]
fn transcripts_are_stored_redacted_unless_turned_off() {
    let repo = repo("claude", WORK);
    repo.arborist(["gardener"]).succeeds();
    let name = format!("refs/arborist/transcripts/{}", session(&repo));
    let said = repo.git(["log", "--format=%B", &name]).answer();
    assert!(said.contains("Let me read.") && said.contains("tool_result"), "{said}");
    assert!(said.contains("All is done") && !said.contains("sk-ant-api03-AAAA"), "{said}");
    let repo = crate::turn_scripts::repo("claude", WORK);
    repo.git(["config", "arborist.session.transcripts", "off"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/transcripts"]).answer(), "");
    assert_eq!(records(&repo).len(), 8);
}

#[test]
fn a_run_that_stops_records_a_pause_and_a_continued_run_records_a_resume() {
    let repo = repo("claude", WORK);
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n");
    repo.commit("more\n");
    repo.arborist(["garden", "T001"]).succeeds();
    let first = records(&repo);
    assert_eq!(first.last().unwrap()["why"], "1 of 2 tasks are done");
    let failing = fs::read_to_string(repo.root().join("agent.sh")).unwrap();
    fs::write(repo.root().join("agent.sh"), "exit 1\n").unwrap();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    fs::write(repo.root().join("agent.sh"), failing).unwrap();
    let all = records(&repo);
    assert_eq!(kinds(&all[first.len()..]), ["resume", "end"], "nothing was changed by the task that failed");
    assert_eq!(all.last().unwrap()["result"], "failed");
    let numbers: Vec<u64> = all.iter().filter_map(|record| record["number"].as_u64()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[test]
fn a_call_of_an_agent_without_turns_is_one_turn_with_the_commit_of_its_step() {
    let repo = repo("text", "echo one > one.txt\nprintf 'I added one'");
    repo.arborist(["gardener"]).succeeds();
    let records = records(&repo);
    assert_eq!(kinds(&records), ["start", "turn", "checkpoint", "turn", "checkpoint", "end"]);
    let commit = repo.git(["rev-parse", "main^{/T001@implement-pass}"]).answer();
    let (work, review) = (&records[1], &records[3]);
    assert_eq!((&work["commit"], &work["step"]), (&commit.into(), &"implement".into()));
    assert_eq!((&work["files"][0], &work["message"]), (&"one.txt".into(), &"Add one\n\nI added one".into()));
    assert_eq!((&review["commit"], &review["runner"]), (&Value::Null, &"judge".into()));
    let said = repo.git(["log", "--format=%B", &format!("refs/arborist/transcripts/{}", session(&repo))]);
    let said = said.answer();
    assert!(said.contains("I added one") && said.contains("APPROVED"), "{said}");
}

#[test]
fn the_commit_of_an_agent_without_turns_has_the_author_and_trailers_of_a_turn() {
    let repo = repo("text", "echo one > one.txt\nprintf 'I added one'");
    repo.arborist(["gardener", "--model", "openai/gpt-5"]).succeeds();
    let format = "--format=%an <%ae>%n%(trailers:only)";
    let commit = repo.git(["log", "-1", format, "main^{/T001@implement-pass}"]).answer();
    assert!(commit.starts_with("T001 (openai/gpt-5) <arborist@local>\n"), "{commit}");
    for trailer in ["Model: openai/gpt-5", "Provider: openai", "Node: T001", "Pipeline: tasks", "Turn: 1"] {
        assert!(commit.contains(&format!("Arborist-{trailer}\n")), "{trailer}: {commit}");
    }
    let test = repo.git(["log", "-1", "--format=%an", "main^{/T001@test-pass}"]).answer();
    assert_eq!(test, "Ada", "the driver's own commits are the user's");
    repo.arborist(["trailers", "check", "main"]).succeeds();
}

#[test]
fn work_of_a_task_command_is_committed_as_the_user() {
    let repo = TestRepo::init();
    let plan = r#"{"nodes": {"T001": {"id": "T001", "name": "a", "runner": "shell", "command": "echo a > a"}}, "root_ids": ["T001"]}"#;
    repo.write("task-tree.json", plan);
    repo.commit("a plan\n");
    crate::turn_scripts::agent(&repo, "text", "");
    repo.arborist(["gardener", "--yes"]).succeeds();
    let commit = repo.git(["log", "-1", "--format=%an%n%(trailers:only)", "main^{/T001@implement-pass}"]);
    let commit = commit.answer();
    assert!(commit.starts_with("Ada\n") && !commit.contains("Arborist-Model"), "{commit}");
}

#[test]
fn live_output_of_agents_is_redacted() {
    let repo = repo("claude", WORK);
    let said = repo.arborist(["gardener", "--json"]).succeeds();
    said.matches_snapshot().never("sk-ant-api03-AAAA");
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END PRIVATE KEY-----";
    let repo = crate::turn_scripts::repo("text", &format!("cat <<'KEY'\n{key}\nKEY\necho bye\n"));
    let said = repo.arborist(["gardener", "--json"]).succeeds();
    said.matches_snapshot().never("MIIEvQIBADANBgkqhkiG9w0");
}
