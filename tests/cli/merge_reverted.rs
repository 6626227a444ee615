//! A task branch that a person merged, and whose changes are not on the run's branch all the same: every command calls
//! it merged and reverted.

use std::path::PathBuf;

use arborist_testkit::Run;
use serde_json::Value;

use crate::{queue_repo::QueueRepo, test_workspace::TestWorkspace};

const PLAN: &str = r#"{"nodes": {"T1": {"id": "T1", "name": "one"}, "T2": {"id": "T2", "name": "two", "depends_on": ["T1"]}},
  "root_ids": ["T1", "T2"]}"#;

/// A repository whose task T1 is finished and queued.
fn queued() -> QueueRepo {
    let repo = QueueRepo::planned(PLAN, &["T1"]);
    repo.agent("echo done > work.txt");
    repo.merge(&["add", "T1"]).succeeds();
    repo
}

fn merge_by_hand(repo: &QueueRepo, options: &[&str]) -> String {
    let options = ["merge", "-q", "--no-ff", "-m", "by hand"].iter().chain(options);
    repo.git(options.chain(&["arborist/task/main/T1"])).succeeds();
    repo.git(["rev-parse", "HEAD"]).answer()
}

fn task(repo: &QueueRepo, id: &str) -> Value {
    let document: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    let tasks = document["tasks"].as_array().unwrap();
    tasks.iter().find(|task| task["id"] == id).unwrap().clone()
}

/// Every command gives the same answer.
fn is_reverted(repo: &QueueRepo, words: &str) {
    let found = task(repo, "T1");
    assert_eq!((&found["state"], &found["landed"]), (&"reverted".into(), &false.into()));
    assert_eq!(task(repo, "T2")["waits_for"], serde_json::json!(["T1"]), "its changes are not there");
    let says = |run: Run, code| run.exits(code).err(words).err("git arborist reset T1");
    repo.arborist(["state"]).succeeds().out("merged and reverted").out(words);
    repo.arborist(["state", "T1"]).succeeds().out(words).out("git arborist reset T1");
    repo.arborist(["state", "--exit-code"]).exits(1);
    says(repo.merge(&["T1"]), 2);
    says(repo.merge(&["T1", "--force"]), 2);
    repo.merge(&["status"]).exits(2).out("reverted").out(words).err("git arborist reset T1");
    says(repo.merge(&["run"]), 2).out("1 reverted (T1)");
    repo.arborist(["worktree", "list", "--branches"]).succeeds().out("reverted");
    says(repo.arborist(["gardener"]), 2);
    says(repo.arborist(["gardener", "--jobs", "2"]), 2);
    says(repo.arborist(["garden", "T1"]), 2);
    assert_eq!(repo.calls(), 0, "nothing was done again");
    repo.merge(&["drop", "T1"]).succeeds();
    says(repo.merge(&["status"]), 0);
    repo.arborist(["cleanup", "--older-than", "0"]).succeeds().out(words);
    repo.git(["rev-parse", "arborist/task/main/T1"]).succeeds();
}

#[test]
fn a_task_merged_by_hand_and_reverted_counts_as_reverted_until_the_revert_is_reverted() {
    let repo = queued();
    let merge = merge_by_hand(&repo, &[]);
    assert_eq!(task(&repo, "T1")["landed"], true);
    repo.git(["revert", "--no-edit", "-m", "1", &merge]).succeeds();
    let revert = repo.git(["rev-parse", "HEAD"]).answer();
    repo.write("other.txt", "later\n");
    repo.commit("main goes on\n");
    is_reverted(&repo, &format!("{} merged it, and {} reverted it", &merge[..10], &revert[..10]));
    repo.arborist(["state", "T1"]).succeeds().out(&format!("git revert {}", &revert[..10]));
    repo.git(["revert", "--no-edit", &revert]).succeeds();
    assert_eq!(task(&repo, "T1")["landed"], true, "the revert was reverted");
    repo.merge(&["T1"]).succeeds();
    repo.arborist(["cleanup", "--older-than", "0"]).succeeds().never("reverted");
}

#[test]
fn a_merge_without_the_changes_of_the_task_does_not_count_as_a_landing() {
    let repo = queued();
    let merge = merge_by_hand(&repo, &["-s", "ours"]);
    is_reverted(&repo, &format!("{} merged it without its changes", &merge[..10]));
    repo.arborist(["reset", "T1"]).succeeds();
    assert_eq!(task(&repo, "T1")["state"], "pending", "it can be done again");
}

#[test]
fn merged_changes_that_were_removed_without_git_revert_count_as_reverted() {
    let repo = queued();
    let merge = merge_by_hand(&repo, &[]);
    repo.git(["rm", "-q", "T1.txt"]).succeeds();
    let removed = repo.commit("not wanted\n");
    is_reverted(&repo, &format!("{} merged it, and {} reverted it", &merge[..10], &removed[..10]));
}

#[test]
fn a_remaining_report_file_does_not_hide_that_the_changes_were_reverted() {
    let repo = QueueRepo::planned(PLAN, &[]);
    repo.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo one > T1.txt ;; esac");
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--only", "T1"]).exits(1);
    let merge = merge_by_hand(&repo, &[]);
    assert_eq!(task(&repo, "T1")["landed"], true);
    repo.git(["rm", "-q", "T1.txt"]).succeeds();
    let removed = repo.commit("not wanted\n");
    let words = format!("{} merged it, and {} reverted it", &merge[..10], &removed[..10]);
    assert_eq!(task(&repo, "T1")["state"], "reverted");
    assert!(repo.path("spec/reports").exists(), "the report is still there");
    repo.arborist(["state"]).succeeds().out(&words);
    repo.merge(&["T1"]).exits(2).err(&words);
    repo.merge(&["run"]).exits(2).out("1 reverted (T1)");
}

#[test]
fn later_work_on_the_same_files_does_not_count_as_a_revert() {
    let repo = queued();
    merge_by_hand(&repo, &[]);
    repo.write("T1.txt", "changed later\n");
    repo.commit("main goes on\n");
    assert_eq!(task(&repo, "T1")["landed"], true);
    repo.git(["branch", "arborist/task/main/T2"]).succeeds();
    repo.on_branch("T2", |repo| {
        repo.git(["rm", "-q", "T1.txt"]).succeeds();
        repo.finish("T2");
    });
    repo.merge(&["T2"]).succeeds();
    assert_eq!(task(&repo, "T1")["landed"], true, "another task removed the file");
    assert_eq!(task(&repo, "T2")["landed"], true);
}

#[test]
fn a_file_that_was_only_renamed_does_not_count_as_a_revert() {
    let repo = queued();
    merge_by_hand(&repo, &[]);
    repo.git(["mv", "T1.txt", "renamed.txt"]).succeeds();
    repo.commit("another name\n");
    assert_eq!(task(&repo, "T1")["landed"], true);
    repo.merge(&["status"]).succeeds();
    repo.merge(&["T1"]).succeeds().out("T1 was merged into main by ").never("taken back");
    repo.git(["rm", "-q", "renamed.txt"]).succeeds();
    repo.commit("not wanted\n");
    assert_eq!(task(&repo, "T1")["state"], "reverted", "the renamed file is followed");
}

#[test]
fn a_squash_merge_that_was_reverted_is_not_landed_again() {
    let repo = queued();
    repo.git(["merge", "-q", "--squash", "arborist/task/main/T1"]).succeeds();
    let squash = repo.commit("as one commit\n");
    assert_ne!(task(&repo, "T1")["state"], "reverted");
    repo.git(["revert", "--no-edit", &squash]).succeeds();
    let revert = repo.git(["rev-parse", "HEAD"]).answer();
    repo.write("other.txt", "later\n");
    let tip = repo.commit("main goes on\n");
    is_reverted(&repo, &format!("{} merged it, and {} reverted it", &squash[..10], &revert[..10]));
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), tip, "nothing landed");
    repo.git(["revert", "--no-edit", &revert]).succeeds();
    repo.merge(&["T1"]).succeeds().out("1 unchanged (T1)");
    assert_eq!(repo.read("T1.txt").trim(), "T1");
}

#[test]
fn a_partly_reverted_task_stays_landed_and_is_reported_with_the_reverted_files() {
    let repo = QueueRepo::planned(PLAN, &[]);
    let work = "echo one > T1.txt; echo changed > both.txt";
    repo.agent(&format!("case \"$prompt\" in Review*) echo APPROVED ;; *) {work} ;; esac"));
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--only", "T1"]).exits(1);
    merge_by_hand(&repo, &[]);
    repo.merge(&["T1"]).succeeds().never("taken back");
    repo.git(["rm", "-q", "both.txt"]).succeeds();
    repo.commit("not this one\n");
    assert_eq!(task(&repo, "T1")["landed"], true);
    let words = "a part of it was reverted later: both.txt";
    repo.arborist(["state"]).succeeds().out(words);
    repo.arborist(["state", "T1"]).succeeds().out(words);
    repo.merge(&["T1"]).succeeds().out("T1 was merged into main by ").out(words);
    repo.merge(&["run"]).succeeds().err(words);
}

/// The session's worktree in a repository of a workspace.
fn session_worktree(workspace: &TestWorkspace, repo: &str) -> PathBuf {
    let branch = workspace.session_branch(repo);
    let name = format!("session-{}", branch.rsplit_once('/').unwrap().1);
    workspace.root().join(format!("{repo}.arborist")).join(name)
}

const WORKER: &str = "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n\
    *) echo x >> \"$ARBORIST_TASK.txt\"; echo y >> both.txt ;;\nesac";
const IN_BACKEND: &str = "- [ ] T001 [repo:backend] one\n- [ ] T002 two (depends on T001)\n";

/// Reverts the last commit of the session in 'backend', and returns that commit and the revert.
fn revert_in_backend(workspace: &TestWorkspace, options: &[&str]) -> (String, String) {
    let place = session_worktree(workspace, "backend");
    let head = || workspace.git_in(&place, ["rev-parse", "HEAD"]).answer();
    let merge = head();
    let revert = [&["revert", "--no-edit"], options, &["HEAD"]].concat();
    workspace.git_in(&place, revert).succeeds();
    (merge, head())
}

#[test]
fn a_task_reverted_in_another_repository_counts_as_reverted_until_the_revert_is_reverted() {
    let workspace = TestWorkspace::of(&["backend"], IN_BACKEND);
    workspace.agent(WORKER);
    workspace.arborist(["gardener", "--jobs", "2", "--only", "T001"]).succeeds();
    let (scope, calls) = (workspace.session_branch("repo"), workspace.calls());
    let (merge, revert) = revert_in_backend(&workspace, &["-m", "1"]);
    let words = format!("in backend, {} merged it, and {} reverted it", &merge[..10], &revert[..10]);
    let state = |options: &[&str]| workspace.arborist([&["state", "--scope", &scope], options].concat());
    state(&[]).succeeds().out("merged and reverted").out(&words);
    state(&["T001"]).succeeds().out(&words).out(&format!("revert {}", &revert[..10]));
    state(&["--ready"]).succeeds().out("nothing is ready");
    workspace.arborist(["merge", "T001", "--scope", &scope]).exits(2).err(&words);
    workspace.arborist(["merge", "status", "--scope", &scope]).succeeds().err(&words);
    workspace.arborist(["gardener"]).exits(2).err(&words);
    workspace.arborist(["gardener", "--jobs", "2"]).exits(2).err(&words);
    assert_eq!(workspace.calls(), calls, "nothing was done again");
    revert_in_backend(&workspace, &[]);
    state(&[]).succeeds().never("reverted");
    workspace.arborist(["merge", "T001", "--scope", &scope]).succeeds().out("T001 has already landed");
}

#[test]
fn a_task_that_was_merged_by_hand_and_reverted_in_another_repository_is_not_closed_as_landed() {
    let workspace = TestWorkspace::of(&["backend"], IN_BACKEND);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2", "--only", "T001"]).exits(1);
    let scope = workspace.session_branch("repo");
    for repo in ["repo", "backend"] {
        let branch = workspace.session_branch(repo).replace('/', "%2F");
        let branch = format!("arborist/task/{branch}/T001");
        let merge = ["merge", "-q", "--no-ff", "-m", "by hand", &branch];
        workspace.git_in(&session_worktree(&workspace, repo), merge).succeeds();
    }
    let (merge, revert) = revert_in_backend(&workspace, &["-m", "1"]);
    let words = format!("in backend, {} merged it, and {} reverted it", &merge[..10], &revert[..10]);
    workspace.arborist(["merge", "status", "--scope", &scope]).exits(2).out("reverted").out(&words);
    workspace.arborist(["merge", "run", "--scope", &scope]).exits(2).out("1 reverted (T001)").err(&words);
}
