//! `garden --json` and `gardener --json`: a run as a program sees it, an object on each line.

use arborist_testkit::TestRepo;
use serde_json::Value;

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form"},
    "T003": {"id": "T003", "name": "Wire it up", "depends_on": ["T002"]}
  },
  "root_ids": ["T001", "T002", "T003"]
}
"#;

/// Does T001, and fails at T002; it tells in claude's way what it says and costs.
const WORKER: &str = r#"
say() { printf '{"type":"assistant","message":{"content":[{"type":"text","text":"%s"}]}}\n' "$1"; }
end() { printf '{"type":"result","subtype":"success","is_error":%s,"result":"%s","total_cost_usd":0.25,"usage":{"input_tokens":100,"output_tokens":10}}\n' "$1" "$2"; }
echo '{"type":"system","subtype":"init","session_id":"s"}'
case "$prompt" in
  "Review"*) end false APPROVED ;;
  *T002:*) say 'I cannot'; end true 'the form is \u001b[31mtoo hard' ;;
  *) say 'I write \u001b[2Ja file'; echo x > T001.txt; end false done ;;
esac
"#;

fn repo() -> TestRepo {
    let repo = TestRepo::planned("task-tree.json", TREE, WORKER);
    let config = repo.home().join(".config/git-arborist/config.toml");
    let text = std::fs::read_to_string(&config).unwrap() + "events = \"claude\"\n";
    std::fs::write(config, text).unwrap();
    repo
}

fn events(said: &str) -> Vec<Value> {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/run-event.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        assert!(validator.is_valid(event), "{event:#} is not what is promised");
        let spoilt = |key: &str, value: Value| {
            let mut spoilt = event.clone();
            spoilt[key] = value;
            !validator.is_valid(&spoilt)
        };
        assert!(spoilt("more", 1.into()) && spoilt("event", "other".into()), "{event:#} could be anything");
    }
    events
}

fn kinds(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| format!("{} {}", event["event"], event["task"]).replace('"', "")).collect()
}

#[test]
fn every_line_of_json_output_is_an_event_of_the_schema() {
    let repo = repo();
    let said = repo
        .arborist(["gardener", "--json", "--keep-going", "--max-retries", "1", "--test-command", "true"])
        .exits(1);
    let events = events(&said.stdout());
    assert_eq!(said.stderr(), "", "what is told in events is told nowhere else");
    assert_eq!(
        kinds(&events),
        [
            "run-begins null",
            "step-begins T001",
            "said T001",
            "turn-ended T001",
            "turn-committed T001",
            "recorded T001",
            "checkpoint T001",
            "step-begins T001",
            "recorded T001",
            "step-begins T001",
            "recorded T001",
            "recorded T001",
            "task-ended T001",
            "checkpoint T001",
            "step-begins T002",
            "said T002",
            "turn-ended T002",
            "recorded T002",
            "recorded T002",
            "task-ended T002",
            "run-ended null",
        ]
    );
    let (begins, says, turn, recorded) = (&events[0], &events[2], &events[4], &events[5]);
    assert_eq!(
        (&begins["branch"], &begins["total"], &begins["done"]),
        (&"main".into(), &3.into(), &0.into())
    );
    assert_eq!(begins["time"], "2025-02-16T14:30:22Z");
    assert_eq!(says["words"], "I write a file", "nothing that a terminal would obey");
    assert_eq!((&recorded["status"], &recorded["spent"]["cost"]), (&"implement-pass".into(), &0.25.into()));
    assert_eq!(recorded["commit"], repo.git(["rev-parse", "HEAD~5"]).answer());
    assert_eq!((&turn["turn"], &turn["words"]), (&1.into(), &"Write a file".into()));
    assert_eq!(turn["commit"], repo.git(["rev-parse", "HEAD~6"]).answer());
    assert_eq!(events[17]["why"], "the form is too hard");
}

#[test]
fn the_last_event_contains_the_summary() {
    let repo = repo();
    let before = repo.git(["rev-parse", "HEAD"]).answer();
    let said = repo.arborist(["gardener", "--json", "--keep-going", "--max-retries", "2"]).exits(1);
    let events = events(&said.stdout());
    let summary = &events.last().unwrap()["summary"];
    let expected = serde_json::json!({
        "branch": "main",
        "session": events[2]["session"],
        "from": before,
        "to": repo.git(["rev-parse", "HEAD"]).answer(),
        "total": 3,
        "done": 1,
        "not_selected": 0,
        "completed": ["T001"],
        "unchanged": [],
        "failed": [{"task": "T002", "name": "Add the form", "attempts": 2, "why": "the form is too hard", "drop": null}],
        "left": [{"task": "T003", "name": "Wire it up", "state": "pending", "words": "pending: waits for T002", "waits_for": ["T002"]}],
        "unlanded": [],
        "resolved": [],
        "parked": null,
        "parked_because": null,
        "attempts": 3,
        "spent": {"tokens_in": 400, "tokens_out": 40, "cost": 1.0},
        "offline": false,
        "seconds": 0,
        "stopped": null,
        "next": "git arborist gardener --retry-failed --keep-going --max-retries 2",
        "worktree": null,
        "merge": null,
        "others": [],
        "unpushed": [],
        "foreign_commits": [],
        "moved_refs": [],
        "git_was_writable": true,
        "lacked_sandbox": true,
    });
    assert_eq!(summary, &expected);
    assert_eq!(kinds(&events)[..3], ["note null", "note null", "run-begins null"]);
    assert_eq!(events[0]["level"], "warning");
    let again = repo.arborist(["gardener", "--json"]).exits(1);
    let again = self::events(&again.stdout());
    let begins = again.iter().find(|event| event["event"] == "run-begins").unwrap();
    assert_eq!(
        (&begins["done"], &begins["failed"]),
        (&1.into(), &1.into()),
        "a run goes on from where it stands"
    );
    assert_eq!(begins["spent"]["cost"], 1.0);
}

#[test]
fn with_json_standard_output_contains_only_events_and_errors_keep_their_exit_codes() {
    let repo = repo();
    repo.write("dirt", "");
    let said = repo.arborist(["garden", "--json"]).exits(2).matches_snapshot();
    assert_eq!(events(&said.stdout()).len(), 0);
    repo.git(["clean", "-qf"]).succeeds();
    repo.arborist(["garden", "--json"]).succeeds();
    let said = repo.arborist(["garden", "--json", "T001"]).succeeds();
    assert_eq!(events(&said.stdout())[0]["words"], "T001 is complete");
    repo.arborist(["garden", "--json", "--dry-run"]).exits(129);
}

#[test]
fn the_words_of_a_note_about_a_step_do_not_repeat_the_task() {
    let agent = r#"case "$prompt" in "Review"*) echo APPROVED ;; *) echo x > x.txt; git add x.txt; git commit -qm mine ;; esac"#;
    let plan = "## Phase 1: Work\n\n- [ ] T001 a\n";
    let repo = TestRepo::planned("tasks.md", plan, agent);
    let events = events(&repo.arborist(["garden", "--json"]).succeeds().stdout());
    let is_of_task = |event: &&Value| event["event"] == "note" && event["task"] == "T001";
    let notes: Vec<&Value> = events.iter().filter(is_of_task).collect();
    let is_plain = |words: &str| ![" ", "T001", "warning:"].iter().any(|start| words.starts_with(start));
    assert!(!notes.is_empty(), "{events:?}");
    for note in notes {
        assert!(is_plain(note["words"].as_str().unwrap()), "{note}");
    }
    let repo = TestRepo::planned("tasks.md", plan, agent);
    repo.arborist(["garden"]).succeeds().err("\n  T001: ");
}
