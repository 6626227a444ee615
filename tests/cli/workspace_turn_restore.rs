//! Going back to a turn of a session that works in several repositories: all of them stand as they stood then.

use crate::test_workspace::TestWorkspace;
use serde_json::Value;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(echo "$prompt" | sed -n 's/^Implement task \([^:]*\):.*/\1/p')
     echo "$task $n" > "$task.txt"; echo "$task" >> all.txt; echo done ;;
esac
"#;

const PLAN: &str = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] an endpoint\n- [ ] T002 [repo:backend] another\n- [ ] T003 a page\n";

/// A session that is done, and the number of the turn in which the first task was approved.
fn worked() -> (TestWorkspace, String, String) {
    let workspace = TestWorkspace::of(&["backend"], PLAN);
    workspace.agent(WORKER);
    workspace.arborist(["gardener"]).succeeds();
    let branch = workspace.session_branch("backend");
    let id = branch.rsplit_once('/').unwrap().1.to_owned();
    let turns: Value =
        serde_json::from_str(&workspace.arborist(["session", "turns", &id, "--json"]).answer()).unwrap();
    let is_it = |turn: &&Value| turn["node"] == "T001" && turn["step"] == "review";
    let number = turns["turns"].as_array().unwrap().iter().find(is_it).unwrap()["number"].to_string();
    (workspace, id, number)
}

fn files(workspace: &TestWorkspace, commit: &str) -> String {
    workspace.git_in(&workspace.clone_of("backend"), ["ls-tree", "--name-only", commit]).answer()
}

#[test]
fn resume_at_a_turn_restores_every_repository() {
    let (workspace, id, turn) = worked();
    let (backend, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    let before = workspace.git_in(&backend, ["rev-parse", &branch]).answer();
    let calls = workspace.calls();
    workspace.arborist(["session", "resume", &id, "--turn", &turn]).succeeds().matches_snapshot();
    assert_eq!(workspace.calls(), calls + 4, "T002 and T003 are done and reviewed again");
    let reset = workspace.git_in(&backend, ["log", "-1", "--format=%H", "--grep=@reset)", &branch]).answer();
    let then = files(&workspace, &reset);
    assert!(then.contains("T001.txt") && !then.contains("T002.txt"), "{then}");
    assert_eq!(
        workspace.git_in(&backend, ["log", "-1", "--format=%P", &reset]).answer(),
        before,
        "nothing is lost"
    );
    assert!(files(&workspace, &branch).contains("T002.txt"));
    let all = workspace.git_in(&backend, ["show", &format!("{branch}:all.txt")]).answer();
    assert_eq!(all, "T001\nT002", "it went on from what was there then");
    let house = backend.with_file_name("backend.arborist").join(format!("session-{id}"));
    assert_eq!(workspace.git_in(&house, ["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_replay_from_a_turn_starts_every_repository_at_that_turn() {
    let (workspace, id, turn) = worked();
    let (backend, old) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    let before = workspace.git_in(&backend, ["rev-parse", &old]).answer();
    let said = workspace.arborist(["session", "replay", &id, "--turn", &turn]).succeeds();
    let new = said.stdout().lines().next().unwrap().to_owned();
    let branch = format!("arborist/tasks/{new}");
    assert_eq!(workspace.git_in(&backend, ["rev-parse", &old]).answer(), before, "the original is as it was");
    let start =
        workspace.git_in(&backend, ["log", "-1", "--format=%H", "--grep=@run-start)", &branch]).answer();
    let then = files(&workspace, &start);
    assert!(then.contains("T001.txt") && !then.contains("T002.txt"), "{then}");
    let all = workspace.git_in(&backend, ["show", &format!("{branch}:all.txt")]).answer();
    assert_eq!(all, "T001\nT002");
    let shown: Value =
        serde_json::from_str(&workspace.arborist(["session", "show", &new, "--json"]).answer()).unwrap();
    let base = workspace.git_in(&backend, ["rev-parse", &format!("{start}^")]).answer();
    assert_eq!(
        (&shown["repositories"][1]["name"], &shown["repositories"][1]["base"]),
        (&"backend".into(), &base.into())
    );
}

#[test]
fn resume_and_replay_are_refused_if_a_repository_is_missing() {
    let (workspace, id, turn) = worked();
    std::fs::rename(workspace.clone_of("backend"), workspace.root().join("elsewhere")).unwrap();
    let refs = workspace.git(["for-each-ref"]).answer();
    for verb in ["resume", "replay"] {
        let said = workspace.arborist(["session", verb, &id, "--turn", &turn]).exits(2);
        said.matches_snapshot();
        assert_eq!(workspace.git(["for-each-ref"]).answer(), refs);
    }
}
