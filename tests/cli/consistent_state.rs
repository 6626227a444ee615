//! Every command that says where a task stands says the same.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::TestRepo;
use serde_json::Value;

const WORKER: &str = r#"
case "$prompt" in "Review"*) echo APPROVED ;; *) date +%N > "work-$n.txt"; echo done ;; esac
"#;

fn document(repo: &TestRepo, args: &[&str]) -> Value {
    let args = ["state", "--json"].iter().chain(args);
    serde_json::from_str(&repo.arborist(args).answer()).unwrap()
}

fn ready(repo: &TestRepo) -> Vec<String> {
    let document = document(repo, &["--ready"]);
    document["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_task_is_ready_after_a_phase_until_the_failed_tests_of_the_phase_pass() {
    let repo = TestRepo::planned(
        "task-tree.json",
        r#"{"nodes": {
          "P1": {"id": "P1", "name": "one", "children": ["T1"],
                 "test_commands": [{"type": "integration", "command": "test -e ../fixed"}]},
          "T1": {"id": "T1", "name": "a", "parent": "P1"},
          "T2": {"id": "T2", "name": "b", "depends_on": ["P1"]},
          "T3": {"id": "T3", "name": "c"}}, "root_ids": ["P1", "T2", "T3"]}"#,
        WORKER,
    );
    repo.arborist(["gardener", "--yes"]).exits(1);
    assert_eq!(ready(&repo), Vec::<String>::new(), "a run would stop at the tests");
    repo.arborist(["garden", "T2", "--yes"]).exits(1);
    repo.arborist(["garden", "--yes"]).exits(1);
    assert!(!repo.git(["log", "--format=%s"]).answer().contains("@T2@"));
    std::fs::write(repo.root().join("fixed"), "").unwrap();
    repo.arborist(["garden", "T2", "--yes"]).succeeds();
    assert_eq!(ready(&repo), ["T3"]);
}

#[test]
fn a_recorded_task_that_is_not_in_the_plan_is_neither_counted_nor_ready() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    repo.task("T999", "implement-fail");
    assert_eq!(ready(&repo), Vec::<String>::new());
    repo.arborist(["state"]).succeeds().matches_snapshot().never("ready to start");
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn the_progress_bar_and_the_summary_numbers_agree() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n- [-] T003 three\n", WORKER);
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).succeeds();
    let first = repo.git(["rev-list", "--max-parents=1", "--grep=@@run-start)", "HEAD"]).answer();
    repo.git(["reset", "-q", "--hard", &first]).succeeds();
    let shown = repo.arborist(["state"]).succeeds().matches_snapshot();
    shown.matches_snapshot();
    let summary = &document(&repo, &[])["summary"];
    assert_eq!((&summary["complete"], &summary["pending"]), (&1.into(), &1.into()), "{summary}");
}

#[test]
fn all_commands_agree_on_tasks_whose_commits_were_reset_off_the_branch() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let calls = repo.calls();
    let start = repo.git(["rev-list", "--grep=@@run-start)", "HEAD"]).answer();
    repo.git(["reset", "-q", "--hard", &start]).succeeds();
    let is_landed = |task: &Value| (task["state"].clone(), task["landed"].clone());
    for task in document(&repo, &[])["tasks"].as_array().unwrap() {
        assert_eq!(is_landed(task), ("complete".into(), false.into()), "{task}");
    }
    repo.arborist(["gardener", "--dry-run"]).exits(2);
    repo.arborist(["gardener", "--jobs", "1"]).exits(2);
    repo.arborist(["gardener", "--jobs", "2", "--dry-run"]).succeeds().matches_snapshot();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    assert_eq!(repo.calls(), calls, "nothing is done again");

    repo.git(["reset", "-q", "--hard", &base]).succeeds();
    for task in document(&repo, &[])["tasks"].as_array().unwrap() {
        assert_eq!(task["state"], "pending", "the run is gone: {task}");
    }
    assert_ne!(repo.arborist(["gardener", "--dry-run"]).succeeds().stdout(), "nothing is left to do\n");
    repo.arborist(["gardener", "--jobs", "1"]).succeeds();
    assert_eq!(repo.calls(), calls + 4, "both are done again");
}

#[test]
fn worktree_list_and_state_agree_while_an_agent_works() {
    let repo = TestRepo::planned(
        "tasks.md",
        "- [ ] T001 one\n",
        "echo $$ > \"$ROOT/pid.new\"; mv \"$ROOT/pid.new\" \"$ROOT/pid\"; sleep 600\n",
    );
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    let mut child = command.arg("--isolate").stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while !repo.root().join("pid").exists() {
        assert!(begun.elapsed() < Duration::from_secs(180), "the agent was not called");
        std::thread::sleep(Duration::from_millis(10));
    }
    let list = repo.arborist(["worktree", "list", "--json"]).answer();
    let shown = repo.arborist(["state"]).answer();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    child.wait().unwrap();
    assert!(list.contains("\"implementing\"") && !list.contains("\"pending\""), "{list}");
    assert!(shown.contains("implementing"), "{shown}");
}

#[test]
fn a_queued_task_whose_run_was_reset_away_is_withheld_and_every_command_says_why() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).exits(1);
    let start = repo.git(["rev-parse", "HEAD"]).answer();
    repo.arborist(["merge", "status"]).succeeds().out("waiting");
    repo.git(["reset", "-q", "--hard", &base]).succeeds();
    let why = "the run that completed it is no longer in 'main'";
    let back = format!("git merge {}", &start[..10]);
    repo.arborist(["state"]).succeeds().out("its commits are no longer in main").out("it is still queued");
    repo.arborist(["state", "T001"]).succeeds().out("its commits are no longer in main");
    repo.arborist(["merge", "status"]).exits(1).out("withheld").out(why).err(&back);
    repo.arborist(["merge", "run"]).exits(1).out("1 waiting (T001)").err(why).err(&back);
    repo.git(["merge", "-q", &start[..10]]).succeeds();
    repo.arborist(["merge", "status"]).succeeds().out("waiting");

    // A new run does the task again. The branch of the lost run would bring a second start of a run along.
    repo.git(["reset", "-q", "--hard", &base]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let drop = "git arborist merge drop T001";
    repo.arborist(["merge", "status"]).exits(1).out(why).err(drop).never("git merge ");
    repo.arborist(["merge", "run"]).exits(1).err(why).err(drop);
    repo.arborist(["state"]).succeeds().out("2 of 2 done");
    repo.arborist(["merge", "drop", "T001"]).succeeds();
    repo.arborist(["merge", "status"]).succeeds();
}

#[test]
fn a_queued_task_of_a_run_in_another_clone_can_only_be_dropped() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    // As in the other clone: an unknown commit before the start of its run.
    repo.write("unknown.txt", "never reviewed\n");
    repo.commit("unknown\n");
    repo.arborist(["gardener", "--isolate"]).exits(1);
    repo.git(["reset", "-q", "--hard", &base]).succeeds();
    repo.git(["reflog", "expire", "--expire=now", "refs/heads/main"]).succeeds();
    let drop = "git arborist merge drop T001";
    for _ in 0..2 {
        let why = "the commit that its run started from is not in 'main'";
        repo.arborist(["merge", "status"])
            .exits(1)
            .out(why)
            .err(drop)
            .never("git merge ")
            .never("git branch");
        repo.arborist(["merge", "run"]).exits(1).err(why).err(drop).never("git merge ").never("git branch");
        // The branches of another clone are fetched elsewhere.
        repo.git(["update-ref", "-d", "refs/heads/arborist/task/main/T001"]).succeeds();
    }
}

#[test]
fn a_dry_run_starts_with_the_tests_of_a_phase_if_the_run_does() {
    let repo = TestRepo::planned(
        "task-tree.json",
        r#"{"nodes": {
          "P1": {"id": "P1", "name": "one", "children": ["T1"],
                 "test_commands": [{"type": "integration", "command": "test -e ../fixed"}]},
          "T1": {"id": "T1", "name": "a", "parent": "P1"},
          "T2": {"id": "T2", "name": "b", "depends_on": ["P1"]}}, "root_ids": ["P1", "T2"]}"#,
        WORKER,
    );
    repo.arborist(["gardener", "--yes"]).exits(1);
    repo.arborist(["state", "--ready"]).succeeds().matches_snapshot();
    repo.arborist(["gardener", "--dry-run"]).succeeds().matches_snapshot();
    std::fs::write(repo.root().join("fixed"), "").unwrap();
    repo.arborist(["gardener", "--yes"]).succeeds();
    repo.arborist(["gardener", "--dry-run"]).succeeds().never("P1");
}

#[test]
fn a_run_that_refuses_a_task_does_not_announce_it_first() {
    let worker = "case \"$prompt\" in \"Review\"*) echo 'REJECTED: no' ;; *) date +%N > a.txt ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", worker);
    repo.agent("echo half > a.txt; kill -TERM $PPID; sleep 60");
    repo.arborist(["gardener", "--isolate"]).exits(143);
    repo.arborist(["gardener"]).exits(2).err("was started on its own branch").never("this run does T001");
}

#[test]
fn a_task_that_did_not_land_is_listed_once_in_the_summary() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.write("more.txt", "more\n");
    repo.commit("more\n");
    // The gate rewinds the target to before the run.
    let rewind = "git update-ref refs/heads/main main~2";
    repo.git(["config", "arborist.merge.gates.check.command", rewind]).succeeds();
    let said = repo.arborist(["gardener", "--isolate", "--only", "T001"]).exits(2);
    said.out("1 did not land (T001)\n").out("not landed T001").never("left");
}
