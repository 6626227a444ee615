//! Going back to a turn that changed only one of several repositories, also more than once.

use crate::test_workspace::TestWorkspace;
use serde_json::Value;

/// What a commit of a repository holds, without reports, which tell of the session.
fn files(workspace: &TestWorkspace, repo: &str, commit: &str) -> Vec<String> {
    let listed = workspace.git_in(&workspace.clone_of(repo), ["ls-tree", "-r", commit]).answer();
    listed.lines().filter(|line| !line.contains("spec/reports/")).map(str::to_owned).collect()
}

/// The newest commit of the session in a repository with this in its subject.
fn newest(workspace: &TestWorkspace, repo: &str, subject: &str) -> String {
    let branch = workspace.session_branch(repo);
    let log = ["log", "-1", "--format=%H", &format!("--grep={subject}"), &branch];
    workspace.git_in(&workspace.clone_of(repo), log).answer()
}

/// Goes back to a turn, and gives what each repository held then, here and there.
#[track_caller]
fn go_back(workspace: &TestWorkspace, id: &str, turn: &Value) -> [Vec<String>; 2] {
    workspace.arborist(["session", "resume", id, "--turn", &turn["number"].to_string()]).succeeds();
    ["repo", "backend"].map(|repo| files(workspace, repo, &newest(workspace, repo, "@reset)")))
}

#[test]
fn going_back_to_a_turn_in_one_repository_restores_both() {
    let (workspace, id) = TestWorkspace::of_session();
    let turn = workspace.turn(&id, "Write there");
    let there = turn["others"][0]["commit"].as_str().unwrap().to_owned();
    let here = workspace.turn(&id, "Write here")["commit"].as_str().unwrap().to_owned();
    let before = ["repo", "backend"].map(|repo| newest(&workspace, repo, "."));
    assert_eq!(
        go_back(&workspace, &id, &turn),
        [files(&workspace, "repo", &here), files(&workspace, "backend", &there)]
    );
    for (repo, before) in ["repo", "backend"].iter().zip(before) {
        let branch = workspace.session_branch(repo);
        workspace
            .git_in(&workspace.clone_of(repo), ["merge-base", "--is-ancestor", &before, &branch])
            .succeeds();
        let house = workspace.root().join(format!("{repo}.arborist/session-{id}"));
        assert_eq!(workspace.git_in(&house, ["status", "--porcelain"]).answer(), "");
    }
    workspace.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn going_back_works_for_turns_made_after_an_earlier_going_back() {
    let (workspace, id) = TestWorkspace::of_session();
    let turns = workspace.turns(&id);
    let is_review = |turn: &&Value| turn["node"] == "T001" && turn["step"] == "review";
    let before = files(&workspace, "backend", &newest(&workspace, "backend", "T001@implement-pass"));
    // Here only what came later begins anew; there, nothing of T001 was taken back.
    let [_, there] = go_back(&workspace, &id, turns.iter().find(is_review).unwrap());
    assert_eq!(there, before);
    let again: Vec<Value> = workspace.turns(&id).split_off(turns.len());
    let second = again.iter().find(|turn| turn["node"] == "T002" && turn["step"] == "implement").unwrap();
    let commit = |turn: &Value| turn["others"][0]["commit"].as_str().unwrap().to_owned();
    let then = files(&workspace, "backend", &commit(second));
    assert_eq!(go_back(&workspace, &id, second)[1], then);
    // And before the first time that it was gone back.
    let first = workspace.turn(&id, "Add T002.txt");
    let then = files(&workspace, "backend", &commit(&first));
    assert_eq!(go_back(&workspace, &id, &first)[1], then);
}

#[test]
fn a_task_reset_by_the_user_is_not_treated_as_a_restored_turn() {
    let (workspace, id) = TestWorkspace::of_session();
    let count = workspace.turns(&id).len();
    workspace
        .arborist_in(&workspace.root().join(format!("repo.arborist/session-{id}")), ["reset", "T002"])
        .succeeds();
    workspace.arborist(["gardener"]).succeeds();
    let again: Vec<Value> = workspace.turns(&id).split_off(count);
    let second = again.iter().find(|turn| turn["node"] == "T002" && turn["step"] == "implement").unwrap();
    let then = files(&workspace, "backend", second["others"][0]["commit"].as_str().unwrap());
    assert!(then.iter().any(|line| line.ends_with("T003.txt")), "{then:?}");
    let said =
        workspace.arborist(["session", "diff", &id, "0", &second["number"].to_string(), "--json"]).answer();
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["others"][0]["to"], second["others"][0]["commit"]);
}
