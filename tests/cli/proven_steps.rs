//! A completion counts only after its steps, a landing only with the completion, and an object only as what it is.

use std::fs;

use arborist_testkit::{Garden, TaskCommit};
use serde_json::Value;

fn document(garden: &Garden) -> Value {
    serde_json::from_str(&garden.arborist(["state", "--json"]).answer()).unwrap()
}

fn state(garden: &Garden, task: &str) -> String {
    let document = document(garden);
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
        let garden = Garden::sprout();
        garden.run_start("main", "s1");
        for (status, attempt) in steps {
            garden.commit(step("T1", status, attempt));
        }
        let was = state(&garden, "T1");
        garden.commit(TaskCommit::new("T1", "complete").to_string());
        assert_eq!(state(&garden, "T1"), was, "{steps:?}");
        assert_eq!(document(&garden)["ignored"], 1, "{steps:?}");
    }
}

#[test]
fn a_completion_after_its_steps_counts_also_with_interruptions_between_them() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    let interrupted =
        TaskCommit::new("T1", "implement-fail").trailer("Interrupted", "power loss").to_string();
    for message in [step("T1", "implement-pass", "0"), step("T1", "test-pass", "0"), interrupted] {
        garden.commit(message);
    }
    garden.commit(step("T1", "review-approved", "0"));
    garden.commit(TaskCommit::new("T1", "complete").to_string());
    assert_eq!(state(&garden, "T1"), "complete");
}

#[test]
fn a_landing_counts_only_if_its_source_holds_the_completion() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.git(["switch", "-q", "-c", "side"]).succeeds();
    garden.write("a", "a");
    let half = garden.task("T1", "implement-pass");
    garden.git(["switch", "-q", "main"]).succeeds();
    garden.git(["merge", "-q", "--no-ff", "-m", &garden.landing("T1", &half), "side"]).succeeds();
    assert_eq!(state(&garden, "T1"), "implementing", "nothing was complete");
    garden.git(["switch", "-q", "side"]).succeeds();
    garden.task("T1", "complete");
    garden.git(["switch", "-q", "main"]).succeeds();
    let elsewhere = TaskCommit::new("T1", "merge").to_string();
    garden.git(["merge", "-q", "--no-ff", "-m", &elsewhere, "side"]).succeeds();
    assert_eq!(document(&garden)["ignored"], 2, "a source that nobody has proves nothing");
}

#[test]
fn an_object_whose_content_is_not_its_own_is_an_error() {
    for cached in [false, true] {
        let garden = Garden::sprout();
        garden.run_start("main", "s1");
        let failed = garden.task("T1", "failed");
        if cached {
            garden.arborist(["state"]).succeeds();
            fs::remove_dir_all(garden.path(".git/arborist/cache")).unwrap();
        }
        let parent = garden.git(["rev-parse", "HEAD~1"]).answer();
        let tree = garden.git(["rev-parse", "HEAD^{tree}"]).answer();
        let forged = garden.commit_object(&tree, &[parent], TaskCommit::new("T1", "reset").to_string());
        let path = |id: &str| garden.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        let content = fs::read(path(&forged)).unwrap();
        fs::remove_file(path(&failed)).unwrap();
        fs::write(path(&failed), content).unwrap();
        garden.arborist(["state"]).exits(128).err("corrupt");
    }
}

#[test]
fn a_commit_of_others_that_leads_elsewhere_is_an_error() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.task("T1", "failed");
    let plain = garden.commit("somebody's work\n");
    let tree = garden.git(["rev-parse", "HEAD^{tree}"]).answer();
    let start = garden.git(["rev-parse", "HEAD~2"]).answer();
    let forged = garden.commit_object(&tree, &[start], "somebody's work\n");
    let path = |id: &str| garden.path(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    let content = fs::read(path(&forged)).unwrap();
    fs::remove_file(path(&plain)).unwrap();
    fs::write(path(&plain), content).unwrap();
    garden.arborist(["state"]).exits(128).err("corrupt");
}
