//! State on the tasks' own branches: everything that holds on the run's branch holds there too.

use arborist_testkit::{Garden, TaskCommit};
use serde_json::Value;

const OWN: &str = "arborist/task/main/T1";

fn task(garden: &Garden) -> Value {
    let document: Value = serde_json::from_str(&garden.arborist(["state", "--json"]).answer()).unwrap();
    document["tasks"].as_array().unwrap().iter().find(|task| task["id"] == "T1").cloned().unwrap_or_default()
}

fn switch(garden: &Garden, branch: &str) {
    garden.git(["switch", "-q", branch]).succeeds();
}

/// A run on main whose T1 works on its own branch, which is checked out.
fn on_own_branch() -> Garden {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.git(["switch", "-q", "-c", OWN]).succeeds();
    garden
}

#[test]
fn bytes_that_git_hides_forge_nothing_there_either() {
    let garden = on_own_branch();
    garden.task("T1", "test-fail");
    let complete = TaskCommit::new("T1", "complete").to_string();
    garden.commit([complete.as_bytes(), b"\0Arborist-Result: fail\n"].concat());
    garden.commit(format!("\n\n{complete}"));
    switch(&garden, "main");
    assert_eq!(task(&garden)["state"], "testing");
    garden.arborist(["state"]).succeeds().shows();
}

#[test]
fn a_revert_there_takes_back_and_attempts_count_anew() {
    let garden = on_own_branch();
    garden.commit(TaskCommit::new("T1", "implement-fail").trailer("Retry", "4").to_string());
    let failed = garden.task("T1", "failed");
    garden.commit(format!("Revert it\n\nThis reverts commit {failed}.\n"));
    switch(&garden, "main");
    let undone = task(&garden);
    assert_eq!(
        (&undone["state"], &undone["attempt"], &undone["ready"]),
        (&"implementing".into(), &Value::Null, &true.into())
    );
}

#[test]
fn a_fork_there_is_a_fork() {
    let garden = on_own_branch();
    garden.task("T1", "implement-pass");
    garden.git(["branch", "side"]).succeeds();
    garden.task("T1", "test-fail");
    switch(&garden, "side");
    garden.task("T1", "test-pass");
    switch(&garden, OWN);
    garden.git(["merge", "-q", "--no-ff", "-m", "both", "side"]).succeeds();
    switch(&garden, "main");
    assert_eq!(task(&garden)["state"], "forked");
}

#[test]
fn the_branch_of_an_earlier_run_says_nothing() {
    let garden = on_own_branch();
    garden.task("T1", "complete");
    switch(&garden, "main");
    garden.run_start("main", "s2");
    assert_eq!(task(&garden), Value::Null);
}

#[test]
fn a_branch_whose_landing_was_reverted_says_nothing() {
    let garden = on_own_branch();
    garden.write("a", "a");
    garden.task("T1", "complete");
    switch(&garden, "main");
    garden.git(["merge", "-q", "--no-ff", "-m", &garden.landing("T1", OWN), OWN]).succeeds();
    garden.git(["revert", "--no-edit", "-m", "1", "HEAD"]).succeeds();
    switch(&garden, OWN);
    garden.task("T1", "test-fail");
    switch(&garden, "main");
    assert_eq!(task(&garden)["state"], "pending");
}

#[test]
fn a_shallow_edge_there_is_told() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.task("T1", "implement-fail");
    garden.git(["switch", "-q", "-c", OWN]).succeeds();
    for _ in 0..3 {
        garden.task("T1", "implement-fail");
    }
    switch(&garden, "main");
    let (source, clone) = (format!("file://{}", garden.path("").display()), garden.root().join("clone"));
    let clone_args = ["clone", "-q", "--depth", "2", "--no-single-branch", &source, clone.to_str().unwrap()];
    garden.git_in(garden.root(), clone_args).succeeds();
    garden.git_in(&clone, ["branch", "-q", OWN, &format!("origin/{OWN}")]).succeeds();
    garden.arborist_in(&clone, ["state"]).exits(128).shows().silent();
}

#[test]
fn a_shallow_clone_that_begins_at_the_start_of_a_run_with_a_merge_is_enough() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.git(["switch", "-q", "-c", "side"]).succeeds();
    garden.task("T2", "complete");
    switch(&garden, "main");
    garden.task("T1", "complete");
    garden.git(["merge", "-q", "--no-ff", "-m", "both", "side"]).succeeds();
    let (source, clone) = (format!("file://{}", garden.path("").display()), garden.root().join("clone"));
    garden
        .git_in(garden.root(), ["clone", "-q", "--depth", "6", &source, clone.to_str().unwrap()])
        .succeeds();
    garden.arborist_in(&clone, ["state"]).succeeds().shows().never("grafts");
}

#[test]
fn a_run_on_a_branch_with_a_very_long_name_is_found_from_its_tasks_branch() {
    let garden = Garden::sprout();
    let long = format!("{}end", "x/".repeat(60).repeat(2));
    garden.git(["switch", "-q", "-c", &long]).succeeds();
    garden.run_start(&long, "s1");
    garden.commit_complete(&TaskCommit::new("T1", "complete").branch(&long));
    let escaped = long.replace('/', "%2F");
    garden.write("name", &long);
    let sum = garden.git(["hash-object", "name"]).answer();
    assert_eq!(sum.len(), 40);
    let digest = sha256(&garden, &long);
    let own = format!("arborist/task/{}%%{digest}/T2", &escaped[..134]);
    garden.git(["switch", "-q", "-c", &own]).succeeds();
    garden.arborist(["state"]).succeeds().shows();
}

fn sha256(garden: &Garden, text: &str) -> String {
    let mut command = garden.command("sha256sum", garden.root());
    arborist_testkit::Run::of(&mut command, text.as_bytes()).answer().split(' ').next().unwrap().to_owned()
}

#[test]
fn a_revert_of_a_plan_change_brings_the_old_plan_back() {
    let garden = Garden::sprout();
    let plan = |id: &str| {
        garden.write(
            "plan",
            format!(r#"{{"nodes": {{"{id}": {{"id": "{id}", "name": "a"}}}}, "root_ids": ["{id}"]}}"#),
        );
        format!("plan@{}", garden.git(["hash-object", "-w", "plan"]).answer())
    };
    let (old, new) = (plan("OLD"), plan("NEW"));
    std::fs::remove_file(garden.path("plan")).unwrap();
    garden.commit(TaskCommit::run_start("main", "s1", &"0".repeat(40)).trailer("Plan", &old).to_string());
    let message = format!(
        "task(main@@plan): plan changed: x\n\nArborist-Step: plan\nArborist-Plan: {new}\nArborist-Session: s1\n"
    );
    let changed = garden.commit(&message);
    garden.arborist(["state"]).succeeds().shows();
    garden.commit(format!("Revert it\n\nThis reverts commit {changed}.\n"));
    garden.arborist(["state"]).succeeds().shows().never("NEW");
}

#[test]
fn a_clone_of_a_branched_off_branch_does_not_call_it_renamed() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.git(["branch", "feature"]).succeeds();
    let clone = garden.root().join("clone");
    garden.git(["clone", "-q", "-b", "feature", ".", clone.to_str().unwrap()]).succeeds();
    garden.arborist_in(&clone, ["state"]).succeeds();
}

#[test]
fn a_landing_that_is_no_merge_does_not_count() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    garden.task("T1", "merge");
    assert_eq!(task(&garden), Value::Null);
}

#[test]
fn many_task_branches_and_many_reverts_are_read_in_one_walk() {
    let garden = Garden::sprout();
    garden.run_start("main", "s1");
    let base = garden.git(["rev-parse", "HEAD"]).answer();
    let mut stream = String::new();
    for n in 0..300 {
        let mut from = format!("from {base}\n");
        for status in ["implement-pass", "test-pass", "review-approved", "complete"] {
            let message = TaskCommit::new(&format!("T{n}"), status).to_string();
            stream += &format!(
                "commit refs/heads/arborist/task/main/T{n}\ncommitter A <a@b> {} +0000\ndata {}\n{message}\n{from}\n",
                1_739_716_300 + n,
                message.len()
            );
            from.clear();
        }
    }
    let mut import = garden.command("git", &garden.path(""));
    arborist_testkit::Run::of(import.args(["fast-import", "--quiet"]), stream.as_bytes()).succeeds();
    garden.arborist(["state", "--short"]).succeeds().shows();
}
