//! A completion counts only after its steps, a landing only with the completion, and an object only as what it is.

use std::fs;

use arborist_testkit::{TaskCommit, TestRepo};
use serde_json::Value;

fn document(repo: &TestRepo) -> Value {
    serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap()
}

fn state(repo: &TestRepo, task: &str) -> String {
    let document = document(repo);
    let found = document["tasks"].as_array().unwrap().iter().find(|found| found["id"] == task).cloned();
    found.map_or_else(|| "unknown".into(), |found| found["state"].as_str().unwrap().to_owned())
}

fn step(task: &str, status: &str, attempt: &str) -> String {
    TaskCommit::new(task, status).trailer("Retry", attempt).text("x").to_string()
}

#[test]
fn a_completion_without_the_steps_of_its_attempt_does_not_count() {
    let before: [&[(&str, &str)]; 6] = [
        &[],
        &[("implement-pass", "0")],
        &[("implement-pass", "0"), ("test-pass", "0")],
        &[("review-approved", "0")],
        &[("implement-pass", "0"), ("test-pass", "0"), ("review-approved", "1")],
        &[("implement-pass", "0"), ("test-pass", "0"), ("review-approved", "0"), ("test-fail", "1")],
    ];
    for steps in before {
        let repo = TestRepo::init();
        repo.run_start("main", "s1");
        for (status, attempt) in steps {
            repo.commit(step("T1", status, attempt));
        }
        let was = state(&repo, "T1");
        repo.commit(TaskCommit::new("T1", "complete").to_string());
        assert_eq!(state(&repo, "T1"), was, "{steps:?}");
        assert_eq!(document(&repo)["ignored"], 1, "{steps:?}");
    }
}

#[test]
fn a_completion_after_its_steps_counts_even_with_interruptions_between_them() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    let interrupted =
        TaskCommit::new("T1", "implement-fail").trailer("Interrupted", "power loss").to_string();
    for message in [step("T1", "implement-pass", "0"), step("T1", "test-pass", "0"), interrupted] {
        repo.commit(message);
    }
    repo.commit(step("T1", "review-approved", "0"));
    repo.commit(TaskCommit::new("T1", "complete").to_string());
    assert_eq!(state(&repo, "T1"), "complete");
}

#[test]
fn a_landing_counts_only_if_its_source_contains_the_completion() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "side"]).succeeds();
    repo.write("a", "a");
    let half = repo.task("T1", "implement-pass");
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--no-ff", "-m", &repo.landing("T1", &half), "side"]).succeeds();
    assert_eq!(state(&repo, "T1"), "implementing", "nothing was complete");
    repo.git(["switch", "-q", "side"]).succeeds();
    repo.task("T1", "complete");
    repo.git(["switch", "-q", "main"]).succeeds();
    let elsewhere = TaskCommit::new("T1", "merge").to_string();
    repo.git(["merge", "-q", "--no-ff", "-m", &elsewhere, "side"]).succeeds();
    assert_eq!(document(&repo)["ignored"], 2, "a source that nobody has proves nothing");
}

#[test]
fn a_commit_object_whose_content_does_not_match_its_id_is_an_error() {
    for cached in [false, true] {
        let repo = TestRepo::init();
        repo.run_start("main", "s1");
        let failed = repo.task("T1", "failed");
        if cached {
            repo.arborist(["state"]).succeeds();
            fs::remove_dir_all(repo.path(".git/arborist/cache")).unwrap();
        }
        let parent = repo.git(["rev-parse", "HEAD~1"]).answer();
        let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
        let forged = repo.commit_object(&tree, &[parent], TaskCommit::new("T1", "reset").to_string());
        let path = |id: &str| repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        let content = fs::read(path(&forged)).unwrap();
        fs::remove_file(path(&failed)).unwrap();
        fs::write(path(&failed), content).unwrap();
        repo.arborist(["state"]).exits(128).err("corrupt");
    }
}

#[test]
fn a_user_commit_whose_object_has_another_parent_than_its_id_says_is_an_error() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "failed");
    let plain = repo.commit("somebody's work\n");
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let start = repo.git(["rev-parse", "HEAD~2"]).answer();
    let forged = repo.commit_object(&tree, &[start], "somebody's work\n");
    let path = |id: &str| repo.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    let content = fs::read(path(&forged)).unwrap();
    fs::remove_file(path(&plain)).unwrap();
    fs::write(path(&plain), content).unwrap();
    repo.arborist(["state"]).exits(128).err("corrupt");
}

#[test]
fn an_approved_review_without_the_steps_before_it_does_not_complete_a_task() {
    let agent = r#"case "$prompt" in "Review"*) echo APPROVED ;; *) echo x > "$ARBORIST_TASK.txt" ;; esac"#;
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", agent);
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    let trailer = "--format=%(trailers:key=Arborist-Session,valueonly,separator=)";
    let session = repo.git(["log", "-1", trailer, "--grep=@@run-start"]).answer();
    repo.commit(TaskCommit::new("T002", "review-approved").trailer("Session", &session).to_string());
    repo.arborist(["gardener"]).succeeds();
    assert!(repo.path("T002.txt").exists(), "the task was implemented");
    assert_eq!(state(&repo, "T002"), "complete");
}
