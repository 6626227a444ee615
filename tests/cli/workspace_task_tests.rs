//! A task that works in several repositories is tested in each one that it changes, before it is complete and before it lands.

use std::fs;

use serde_json::{Map, Value, json};

use crate::test_workspace::TestWorkspace;

/// Fails where there are two of these files. Notes where it ran.
const TEST: &str =
    "basename \"$(dirname \"$PWD\")\" >> \"$HOME/tested\"; test \"$(ls | grep -c ^bad)\" -lt 2";

/// Writes `files` into the worktree of `repo` that belongs to the same task, and a file of its own where it works.
fn agent(repo: &str, files: &str) -> String {
    format!(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n\
         *) touch \"own-$ARBORIST_TASK\"; (cd \"../../{repo}.arborist/$(basename \"$PWD\")\" && touch {files}); echo done ;;\nesac"
    )
}

fn workspace(plan: &str, agent: &str) -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend", "web"], plan);
    workspace.agent(agent);
    workspace.git(["config", "arborist.test-command", TEST]).succeeds();
    workspace.git(["config", "arborist.max-retries", "1"]).succeeds();
    workspace
}

/// A plan of these tasks, which may run at the same time and name both repositories.
fn plan(tasks: &[&str]) -> String {
    let node = |task: &&str| json!({ "id": task, "name": "Change both", "parent": "P1", "parallel": true, "repo": ["backend", "web"] });
    let mut nodes: Map<String, Value> = tasks.iter().map(|task| (String::from(*task), node(task))).collect();
    nodes.insert("P1".into(), json!({ "id": "P1", "name": "Work", "children": tasks }));
    json!({ "nodes": nodes, "root_ids": ["P1"] }).to_string()
}

#[test]
fn changes_in_the_plan_repository_are_tested_although_the_task_names_another() {
    for jobs in ["1", "2"] {
        let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n";
        let workspace = workspace(plan, &agent("repo", "bad1 bad2"));
        let said = workspace.arborist(["gardener", "--session-branch", "--jobs", jobs]).exits(1);
        said.err("in the repository of the plan failed");
    }
}

#[test]
fn a_repository_that_the_task_does_not_change_is_not_tested_for_it() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n";
    let workspace =
        workspace(plan, "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n*) touch own ;;\nesac");
    workspace.arborist(["gardener", "--session-branch"]).succeeds();
    let tested = fs::read_to_string(workspace.home().join("tested")).unwrap();
    assert_eq!(tested, "backend.arborist\n");
}

#[test]
fn a_task_is_tested_in_every_repository_that_it_names_and_changes() {
    for jobs in ["1", "2"] {
        let workspace = workspace(&plan(&["T001"]), &agent("web", "bad1 bad2"));
        workspace.arborist(["gardener", "--session-branch", "--jobs", jobs]).exits(1).err("in web failed");
    }
}

#[test]
fn of_two_tasks_that_fail_together_in_their_second_repository_one_lands() {
    let workspace = workspace(&plan(&["T001", "T002"]), &agent("web", "bad-$ARBORIST_TASK"));
    let said = workspace.arborist(["gardener", "--session-branch", "--jobs", "2"]).exits(1);
    said.out("1 completed").err("did not land: the gate");
}
