//! State on the tasks' own branches: everything that holds on the run's branch holds there too.

use arborist_testkit::{TaskCommit, TestRepo};
use serde_json::Value;

const OWN: &str = "arborist/task/main/T1";

fn task(repo: &TestRepo) -> Value {
    let document: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    document["tasks"].as_array().unwrap().iter().find(|task| task["id"] == "T1").cloned().unwrap_or_default()
}

fn switch(repo: &TestRepo, branch: &str) {
    repo.git(["switch", "-q", branch]).succeeds();
}

/// A run on main whose T1 works on its own branch, which is checked out.
fn on_own_branch() -> TestRepo {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", OWN]).succeeds();
    repo
}

#[test]
fn hidden_bytes_in_messages_on_a_task_branch_do_not_change_the_state() {
    let repo = on_own_branch();
    repo.task("T1", "test-fail");
    let complete = TaskCommit::new("T1", "complete").to_string();
    repo.commit([complete.as_bytes(), b"\0Arborist-Result: fail\n"].concat());
    repo.commit(format!("\n\n{complete}"));
    switch(&repo, "main");
    assert_eq!(task(&repo)["state"], "testing");
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

#[test]
fn a_revert_on_a_task_branch_undoes_the_failure_and_restarts_the_attempt_count() {
    let repo = on_own_branch();
    repo.commit(TaskCommit::new("T1", "implement-fail").trailer("Retry", "4").to_string());
    let failed = repo.task("T1", "failed");
    repo.commit(format!("Revert it\n\nThis reverts commit {failed}.\n"));
    switch(&repo, "main");
    let undone = task(&repo);
    assert_eq!(
        (&undone["state"], &undone["attempt"], &undone["ready"]),
        (&"implementing".into(), &Value::Null, &true.into())
    );
}

#[test]
fn a_fork_on_a_task_branch_is_reported_as_forked() {
    let repo = on_own_branch();
    repo.task("T1", "implement-pass");
    repo.git(["branch", "side"]).succeeds();
    repo.task("T1", "test-fail");
    switch(&repo, "side");
    repo.task("T1", "test-pass");
    switch(&repo, OWN);
    repo.git(["merge", "-q", "--no-ff", "-m", "both", "side"]).succeeds();
    switch(&repo, "main");
    assert_eq!(task(&repo)["state"], "forked");
}

#[test]
fn a_task_branch_of_an_earlier_run_is_ignored() {
    let repo = on_own_branch();
    repo.task("T1", "complete");
    switch(&repo, "main");
    repo.run_start("main", "s2");
    assert_eq!(task(&repo), Value::Null);
}

#[test]
fn a_task_branch_whose_landing_was_reverted_is_ignored() {
    let repo = on_own_branch();
    repo.write("a", "a");
    repo.task("T1", "complete");
    switch(&repo, "main");
    repo.git(["merge", "-q", "--no-ff", "-m", &repo.landing("T1", OWN), OWN]).succeeds();
    repo.git(["revert", "--no-edit", "-m", "1", "HEAD"]).succeeds();
    switch(&repo, OWN);
    repo.task("T1", "test-fail");
    switch(&repo, "main");
    assert_eq!(task(&repo)["state"], "pending");
}

#[test]
fn a_task_branch_cut_off_by_a_shallow_clone_is_an_error() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "implement-fail");
    repo.git(["switch", "-q", "-c", OWN]).succeeds();
    for _ in 0..3 {
        repo.task("T1", "implement-fail");
    }
    switch(&repo, "main");
    let (source, clone) = (format!("file://{}", repo.path("").display()), repo.root().join("clone"));
    let clone_args = ["clone", "-q", "--depth", "2", "--no-single-branch", &source, clone.to_str().unwrap()];
    repo.git_in(repo.root(), clone_args).succeeds();
    repo.git_in(&clone, ["branch", "-q", OWN, &format!("origin/{OWN}")]).succeeds();
    repo.arborist_in(&clone, ["state"]).exits(128).matches_snapshot().silent();
}

#[test]
fn a_shallow_clone_that_begins_at_the_run_start_suffices_despite_a_merge() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "side"]).succeeds();
    repo.task("T2", "complete");
    switch(&repo, "main");
    repo.task("T1", "complete");
    repo.git(["merge", "-q", "--no-ff", "-m", "both", "side"]).succeeds();
    let (source, clone) = (format!("file://{}", repo.path("").display()), repo.root().join("clone"));
    repo.git_in(repo.root(), ["clone", "-q", "--depth", "6", &source, clone.to_str().unwrap()]).succeeds();
    repo.arborist_in(&clone, ["state"]).succeeds().matches_snapshot().never("grafts");
}

#[test]
fn a_run_on_a_branch_with_a_very_long_name_is_found_from_its_tasks_branch() {
    let repo = TestRepo::init();
    let long = format!("{}end", "x/".repeat(60).repeat(2));
    repo.git(["switch", "-q", "-c", &long]).succeeds();
    repo.run_start(&long, "s1");
    repo.commit_complete(&TaskCommit::new("T1", "complete").branch(&long));
    let escaped = long.replace('/', "%2F");
    repo.write("name", &long);
    let sum = repo.git(["hash-object", "name"]).answer();
    assert_eq!(sum.len(), 40);
    let digest = sha256(&repo, &long);
    let own = format!("arborist/task/{}%%{digest}/T2", &escaped[..134]);
    repo.git(["switch", "-q", "-c", &own]).succeeds();
    repo.arborist(["state"]).succeeds().matches_snapshot();
}

fn sha256(repo: &TestRepo, text: &str) -> String {
    let mut command = repo.command("sha256sum", repo.root());
    arborist_testkit::Run::of(&mut command, text.as_bytes()).answer().split(' ').next().unwrap().to_owned()
}

#[test]
fn a_revert_of_a_plan_change_brings_the_old_plan_back() {
    let repo = TestRepo::init();
    let plan = |id: &str| {
        repo.write(
            "plan",
            format!(r#"{{"nodes": {{"{id}": {{"id": "{id}", "name": "a"}}}}, "root_ids": ["{id}"]}}"#),
        );
        format!("plan@{}", repo.git(["hash-object", "-w", "plan"]).answer())
    };
    let (old, new) = (plan("OLD"), plan("NEW"));
    std::fs::remove_file(repo.path("plan")).unwrap();
    repo.commit(TaskCommit::run_start("main", "s1", &"0".repeat(40)).trailer("Plan", &old).to_string());
    let message = format!(
        "task(main@@plan): plan changed: x\n\nArborist-Step: plan\nArborist-Plan: {new}\nArborist-Session: s1\n"
    );
    let changed = repo.commit(&message);
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.commit(format!("Revert it\n\nThis reverts commit {changed}.\n"));
    repo.arborist(["state"]).succeeds().matches_snapshot().never("NEW");
}

#[test]
fn a_branch_that_forked_off_a_run_is_not_reported_as_renamed_in_a_clone() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["branch", "feature"]).succeeds();
    let clone = repo.root().join("clone");
    repo.git(["clone", "-q", "-b", "feature", ".", clone.to_str().unwrap()]).succeeds();
    repo.arborist_in(&clone, ["state"]).succeeds();
}

#[test]
fn a_landing_commit_that_is_not_a_merge_does_not_count() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "merge");
    assert_eq!(task(&repo), Value::Null);
}

#[test]
fn many_task_branches_and_many_reverts_are_read_in_one_walk() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    let base = repo.git(["rev-parse", "HEAD"]).answer();
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
    let mut import = repo.command("git", &repo.path(""));
    arborist_testkit::Run::of(import.args(["fast-import", "--quiet"]), stream.as_bytes()).succeeds();
    repo.arborist(["state", "--short"]).succeeds().matches_snapshot();
}
