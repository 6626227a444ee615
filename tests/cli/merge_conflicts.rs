//! Conflicts of `git arborist merge`: typed, told, and in nobody's way.

use std::fs;

use crate::queue_repo::{QueueRepo, conflicting_tasks, content};
use serde_json::Value;

fn ticket(repo: &QueueRepo) -> Value {
    let queue: Value = serde_json::from_str(&repo.merge(&["list", "--json"]).answer()).unwrap();
    queue["tickets"][0].clone()
}

#[test]
fn a_conflict_is_reported_with_its_file_its_kind_and_all_three_versions() {
    let repo = content();
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.merge(&["T2"]).exits(2).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    let conflict = &ticket(&repo)["conflicts"][0];
    assert_eq!((&conflict["kind"], &conflict["paths"][0]), (&"content".into(), &"a.txt".into()));
    let text = |side: &str| repo.git(["cat-file", "-p", conflict[side]["id"].as_str().unwrap()]).answer();
    assert_eq!([text("base"), text("ours"), text("theirs")], ["one", "ours", "theirs"]);
    repo.merge(&["status", "T2"]).exits(2).matches_snapshot();
    repo.merge(&["run"])
        .exits(2)
        .matches_snapshot()
        .err("resolve the conflict of T2 with: git arborist merge resolve T2");
}

#[test]
fn each_kind_of_conflict_is_named_in_the_ticket() {
    type Work = fn(&QueueRepo);
    let nothing: Work = |_| {};
    let file: Work = |repo| repo.write("a.txt", "1\n2\n3\n4\n5\n6\n");
    let table: [(&str, Work, Work, Work); 8] = [
        ("add/add", nothing, |o| o.write("a.txt", "x\n"), |o| o.write("a.txt", "y\n")),
        ("modify/delete", file, |o| o.write("a.txt", "x\n"), |o| fs::remove_file(o.path("a.txt")).unwrap()),
        (
            "rename/rename",
            file,
            |o| fs::rename(o.path("a.txt"), o.path("b.txt")).unwrap(),
            |o| fs::rename(o.path("a.txt"), o.path("c.txt")).unwrap(),
        ),
        (
            "rename/delete",
            file,
            |o| fs::rename(o.path("a.txt"), o.path("b.txt")).unwrap(),
            |o| fs::remove_file(o.path("a.txt")).unwrap(),
        ),
        ("file/directory", nothing, |o| o.write("d", "a file\n"), |o| o.write("d/e", "inside\n")),
        (
            "mode",
            nothing,
            |o| o.write("a.txt", "a file\n"),
            |o| std::os::unix::fs::symlink("kept.txt", o.path("a.txt")).unwrap(),
        ),
        (
            "binary",
            |o| o.write("a.txt", b"\0base"),
            |o| o.write("a.txt", b"\0ours"),
            |o| o.write("a.txt", b"\0theirs"),
        ),
        ("content", file, |o| o.write("a.txt", "x\n"), |o| o.write("a.txt", "y\n")),
    ];
    for (kind, base, ours, theirs) in table {
        let repo = conflicting_tasks(base, ours, theirs);
        repo.merge(&["T2"]).exits(2);
        let ticket = ticket(&repo);
        let kinds: Vec<&str> =
            ticket["conflicts"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
        assert!(!kinds.contains(&"unknown"), "{kind}: {kinds:?}");
        if kind == "binary" {
            assert_eq!(kinds, ["binary"]);
        }
    }
}

#[test]
fn a_submodule_that_both_sides_changed_is_a_conflict() {
    let repo = QueueRepo::empty_queue_repo();
    let link = |repo: &QueueRepo, id: &str| {
        repo.git(["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]).succeeds();
    };
    link(&repo, &"1".repeat(40));
    let tree = repo.git(["write-tree"]).answer();
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    let base = repo.commit_object(&tree, &[head], "sub\n");
    repo.git(["reset", "-q", "--soft", &base]).succeeds();
    fs::create_dir(repo.path("sub")).unwrap();
    let start = arborist_testkit::TaskCommit::run_start("main", "s1", &base).to_string();
    let start = repo.commit_object(&tree, &[base], start);
    repo.git(["reset", "-q", "--soft", &start]).succeeds();
    for (task, digit) in [("T1", "2"), ("T2", "3")] {
        link(&repo, &digit.repeat(40));
        let tree = repo.git(["write-tree"]).answer();
        let done = arborist_testkit::TaskCommit::new(task, "complete").trailer("Session", "s1");
        let mut commit = start.clone();
        for step in done.steps_before().iter().chain([&done]) {
            commit = repo.commit_object(&tree, &[commit], step.to_string());
        }
        repo.git(["branch", &format!("arborist/task/main/{task}"), &commit]).succeeds();
    }
    repo.git(["read-tree", "HEAD"]).succeeds();
    repo.elsewhere();
    repo.merge(&["T1", "T2"]).exits(2).matches_snapshot();
}

#[test]
fn a_conflict_does_not_block_other_tickets_of_the_queue() {
    let repo = content();
    repo.branch_off("T3", "complete");
    repo.merge(&["add", "T2", "T3"]).succeeds();
    repo.merge(&["run"]).exits(2).matches_snapshot();
    assert!(repo.git(["rev-parse", "-q", "--verify", "arborist/task/main/T2"]).code() == 0);
}

#[test]
fn with_policy_all_or_nothing_all_named_tasks_land_or_none() {
    let repo = content();
    repo.branch_off("T3", "complete");
    repo.branch_off("T4", "complete");
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.merge(&["T3", "T2", "T4", "--policy", "all-or-nothing"]).exits(1).matches_snapshot();
    repo.merge(&["T3", "T2", "--policy", "all-or-nothing"]).exits(1).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    repo.merge(&["T3", "T4", "--policy", "all-or-nothing"]).succeeds().matches_snapshot();

    repo.branch_off("T5", "complete");
    repo.branch_off("T6", "complete");
    repo.git(["config", "arborist.merge.gates.check.command", "! test -e T6.txt"]).succeeds();
    repo.merge(&["T5", "T6", "--policy", "all-or-nothing"]).exits(1).matches_snapshot();
    repo.merge(&["T5", "T6"]).exits(1).matches_snapshot();
}

#[test]
fn with_policy_first_only_the_first_task_that_can_land_does() {
    let repo = content();
    for task in ["T3", "T4", "T5"] {
        repo.branch_off(task, "complete");
    }
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2", "T3", "T4", "--policy", "first"]).exits(2).matches_snapshot();
    repo.merge(&["log"]).succeeds().matches_snapshot();
    repo.merge(&["T3", "T5", "--policy", "1"]).succeeds().matches_snapshot();
    repo.merge(&["T5", "--policy", "most"]).exits(129).matches_snapshot();
}

#[test]
fn paths_in_conflicts_print_no_escape_sequences() {
    let name = "a\u{1b}[31mb.txt";
    let repo = conflicting_tasks(
        |repo| repo.write(name, "one\n"),
        |repo| repo.write(name, "ours\n"),
        |repo| repo.write(name, "theirs\n"),
    );
    repo.merge(&["T2"]).exits(2).never("\u{1b}");
    repo.merge(&["status", "T2"]).exits(2).matches_snapshot().never("\u{1b}");
    repo.merge(&["resolve", "T2"]).succeeds();
    repo.merge(&["resolve", "T2"]).exits(1).matches_snapshot().never("\u{1b}");
}
