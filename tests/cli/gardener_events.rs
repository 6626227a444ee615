//! `gardener --json` with worktrees and several repositories: what is made, what lands, what conflicts, what is kept.

use crate::test_workspace::TestWorkspace;
use arborist_testkit::TestRepo;
use serde_json::Value;

const TWO: &str = "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";

/// Both tasks are begun before one of them goes on; both write the same file.
const CLASH: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  "Resolve"*) echo both > same.txt ;;
  *) touch "$ROOT/began-$ARBORIST_TASK"
     until [ -e "$ROOT/began-T001" ] && [ -e "$ROOT/began-T002" ]; do sleep 0.05; done
     echo "$ARBORIST_TASK" > same.txt ;;
esac
"#;

/// All events of a run, each as the schema has it.
fn events(said: &str) -> Vec<Value> {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/run-event.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let events: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for event in &events {
        assert!(validator.is_valid(event), "{event:#} is not what is promised");
    }
    events
}

fn of<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["event"] == kind).collect()
}

#[test]
fn worktrees_conflicts_and_their_resolutions_are_reported_as_events() {
    let test_repo = TestRepo::planned("tasks.md", TWO, CLASH);
    let events = events(&test_repo.arborist(["gardener", "--jobs", "2", "--json"]).succeeds().stdout());
    let places = of(&events, "worktree-created");
    assert_eq!(places.len(), 2, "{places:?}");
    for place in &places {
        let task = place["task"].as_str().unwrap();
        assert_eq!(place["branch"], format!("arborist/task/main/{task}"));
        assert!(place["path"].as_str().unwrap().contains("repo.arborist/lane-"), "{place}");
        assert_eq!((&place["recycled"], &place["repo"]), (&false.into(), &Value::Null));
    }
    let [conflict] = of(&events, "conflict")[..] else { panic!("{events:#?}") };
    let second = conflict["task"].as_str().unwrap();
    assert_eq!(conflict["branch"], format!("arborist/task/main/{second}"));
    assert_eq!(
        (&conflict["target"], &conflict["conflicts"], &conflict["paths"][0]),
        (&"main".into(), &1.into(), &"same.txt".into())
    );
    let merged = of(&events, "merged");
    let autos: Vec<bool> = merged.iter().map(|event| event["auto"].as_bool().unwrap()).collect();
    assert_eq!(autos, [true, false], "{merged:#?}");
    assert_eq!((&merged[1]["task"], &merged[1]["target"]), (&second.into(), &"main".into()));
    assert_eq!((&merged[0]["resolved_by"], &merged[1]["resolved_by"]), (&Value::Null, &"agent robot".into()));
    let resolved = &of(&events, "run-ended")[0]["summary"]["resolved"];
    assert_eq!((&resolved[0]["task"], &resolved[0]["by"]), (&second.into(), &"agent robot".into()));
    assert_eq!(merged[1]["commit"], test_repo.git(["rev-parse", "main"]).answer());
    assert!(of(&events, "escalated").is_empty());
}

#[test]
fn an_unresolved_conflict_is_reported_as_escalated() {
    let test_repo = TestRepo::planned("tasks.md", TWO, CLASH);
    test_repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    let run = test_repo.arborist(["gardener", "--jobs", "2", "--json", "--keep-going"]).exits(2);
    let events = events(&run.stdout());
    let ([conflict], [escalated]) = (&of(&events, "conflict")[..], &of(&events, "escalated")[..]) else {
        panic!("{events:#?}")
    };
    for key in ["task", "branch", "target", "conflicts"] {
        assert_eq!(conflict[key], escalated[key], "{key}");
    }
    assert_eq!(escalated["conflicts"], 1);
    assert_eq!(of(&events, "merged").len(), 1);
}

#[test]
fn a_checkpoint_event_contains_the_head_of_every_repository() {
    let workspace = TestWorkspace::of(
        &["backend", "web"],
        "## Phase 1: Work\n- [ ] T001 [repo:backend] a\n- [ ] T002 b\n",
    );
    workspace.agent("case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\" ;;\nesac");
    let events = events(&workspace.arborist(["gardener", "--json"]).succeeds().stdout());
    let places = of(&events, "worktree-created");
    let repos: Vec<&Value> = places.iter().map(|place| &place["repo"]).collect();
    assert_eq!(repos, ["repo", "backend", "web"]);
    let made = of(&events, "branch-created");
    assert_eq!(
        made.iter().map(|event| &event["branch"]).collect::<Vec<_>>(),
        places.iter().map(|place| &place["branch"]).collect::<Vec<_>>()
    );
    let snapshots = of(&events, "checkpoint");
    let last = &snapshots.last().unwrap()["snapshot"];
    for repo in ["backend", "web"] {
        let head = workspace
            .git_in(&workspace.clone_of(repo), ["rev-parse", &workspace.session_branch(repo)])
            .answer();
        assert_eq!(last[repo], head, "{last}");
    }
    assert_eq!(last["repo"], snapshots.last().unwrap()["commit"]);
    let first = of(&events, "checkpoint")[0];
    assert_eq!(first["task"], "T001", "what changed elsewhere is a checkpoint too: {first}");
    let record = workspace.git(["log", "-1", "--format=%b", first["record"].as_str().unwrap()]).answer();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["snapshot"], first["snapshot"]);
}
