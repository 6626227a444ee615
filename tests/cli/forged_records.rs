//! Records are refs, and whoever can write a ref can write a record: no command, no verdict and no exception is taken from
//! one.

use std::{fs, path::PathBuf};

use arborist_testkit::{TaskCommit, TestRepo, WORKER, pairs};
use serde_json::Value;

use crate::queue_repo::{QueueRepo, content};

const TICKET: &str = "refs/arborist/queue/tickets/main/";

/// Changes the ticket of a task as anybody could who can write refs.
fn forge_ticket(queue_repo: &QueueRepo, task: &str, change: impl Fn(&mut Value)) {
    let name = format!("{TICKET}{task}");
    let message = queue_repo.git(["log", "-1", "--format=%B", &name]).answer();
    let (head, json) = message.split_once("\n\n").unwrap();
    let mut ticket: Value = serde_json::from_str(json.trim()).unwrap();
    change(&mut ticket);
    let tree = queue_repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let parent = queue_repo.git(["rev-parse", &name]).answer();
    let commit = queue_repo.commit_object(&tree, &[parent], format!("{head}\n\n{ticket}\n"));
    queue_repo.git(["update-ref", &name, &commit]).succeeds();
}

#[test]
fn a_command_in_a_ticket_is_not_run() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    let mark = queue_repo.root().join("was-here");
    queue_repo.merge(&["add", "T1"]).succeeds();
    let gate = serde_json::json!([{
        "name": "g", "command": format!("touch '{}'", mark.display()), "timeout": 9, "foreign": false, "own": true
    }]);
    forge_ticket(&queue_repo, "T1", |ticket| ticket["gates"] = gate.clone());
    queue_repo.merge(&["run"]).succeeds().out("1 landed (T1)");
    assert!(!mark.exists(), "the ticket's command was run");
}

#[test]
fn a_ticket_that_names_a_phase_missing_from_the_plan_lands_nothing() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    queue_repo.merge(&["add", "T1"]).succeeds();
    forge_ticket(&queue_repo, "T1", |ticket| ticket["phases"] = serde_json::json!(["P1"]));
    queue_repo.merge(&["run"]).exits(1).out("1 waiting (T1)");
    assert!(queue_repo.subjects("main").is_empty());
}

#[test]
fn tests_of_a_phase_named_in_a_ticket_are_taken_from_the_frozen_plan() {
    let plan = r#"{"nodes": {
        "P1": {"id": "P1", "name": "p", "children": ["T1"],
               "test_commands": [{"type": "integration", "command": "test -f needed"}]},
        "T1": {"id": "T1", "name": "a", "parent": "P1"}}, "root_ids": ["P1"]}"#;
    let queue_repo = QueueRepo::planned(plan, &["T1"]);
    queue_repo.merge(&["add", "T1"]).succeeds();
    forge_ticket(&queue_repo, "T1", |ticket| ticket["phases"] = serde_json::json!(["P1"]));
    queue_repo.merge(&["run"]).exits(2).err("test -f needed");
    queue_repo.merge(&["run", "--yes"]).exits(1).out("1 failed a gate (T1)");
    assert!(queue_repo.subjects("main").is_empty());
}

#[test]
fn the_last_task_of_a_phase_must_pass_the_phase_tests_even_if_its_ticket_omits_them() {
    let plan = r#"{"nodes": {
        "P1": {"id": "P1", "name": "p", "children": ["T1", "T2"],
               "test_commands": [{"type": "integration", "command": "! test -f T2.txt"}]},
        "T1": {"id": "T1", "name": "a", "parent": "P1"}, "T2": {"id": "T2", "name": "b", "parent": "P1"}},
        "root_ids": ["P1"]}"#;
    let queue_repo = QueueRepo::planned(plan, &["T1", "T2"]);
    // The first of two tasks completes nothing.
    queue_repo.merge(&["T1"]).succeeds().out("1 landed (T1)");
    queue_repo.merge(&["add", "T2"]).succeeds();
    forge_ticket(&queue_repo, "T2", |ticket| ticket["phases"] = serde_json::json!([]));
    queue_repo.merge(&["run", "--yes"]).exits(1).out("1 failed a gate (T2)");
    assert!(queue_repo.subjects("main").iter().all(|subject| !subject.contains("@T2@merge")));
}

#[test]
fn a_forged_ticket_cannot_force_an_unfinished_task() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    queue_repo.merge(&["add", "T1"]).succeeds();
    queue_repo.on_branch("T1", |queue_repo| {
        queue_repo.commit(TaskCommit::new("T1", "reset").trailer("Session", "s1").to_string());
    });
    forge_ticket(&queue_repo, "T1", |ticket| ticket["forced"] = Value::Bool(true));
    queue_repo.merge(&["run"]).exits(1).out("1 waiting (T1)");
    assert!(queue_repo.subjects("main").is_empty());
}

#[test]
fn a_forged_ticket_cannot_change_the_target_of_its_task() {
    let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
    queue_repo.git(["branch", "release"]).succeeds();
    let release = queue_repo.git(["rev-parse", "release"]).answer();
    queue_repo.merge(&["add", "T1", "T2"]).succeeds();
    forge_ticket(&queue_repo, "T1", |ticket| ticket["into"] = Value::String("release".into()));
    queue_repo.merge(&["run"]).exits(1).out("1 landed (T2)").out("1 waiting (T1)").err("release");
    assert_eq!(queue_repo.git(["rev-parse", "release"]).answer(), release);
    assert!(queue_repo.subjects("main").iter().all(|subject| !subject.contains("main@T1@merge")));
    let list: Value =
        serde_json::from_str(&queue_repo.merge(&["list", "--json"]).succeeds().stdout()).unwrap();
    assert!(list.to_string().contains("withheld"), "{list}");
    // Whoever is asked for by name lands where the command line says.
    queue_repo.merge(&["T1"]).succeeds().out("1 landed (T1)");
    assert_eq!(queue_repo.git(["rev-parse", "release"]).answer(), release);
    assert_eq!(queue_repo.show("main", "T1.txt"), "T1");
}

#[test]
fn a_task_queued_for_another_branch_lands_there_if_the_command_line_names_it() {
    let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
    queue_repo.git(["branch", "release"]).succeeds();
    let main = queue_repo.git(["rev-parse", "main"]).answer();
    queue_repo.merge(&["add", "T1", "--into", "release"]).succeeds();
    queue_repo.merge(&["add", "T2"]).succeeds();
    queue_repo.merge(&["run", "--into", "release"]).succeeds().out("1 landed (T1)");
    assert_eq!(queue_repo.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(queue_repo.show("release", "T1.txt"), "T1");
}

#[test]
fn a_ticket_that_names_another_task_or_run_lands_nothing() {
    for (key, value) in [("task", "T2"), ("scope", "release")] {
        let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
        queue_repo.merge(&["add", "T1"]).succeeds();
        forge_ticket(&queue_repo, "T1", |ticket| ticket[key] = Value::String(value.into()));
        queue_repo
            .merge(&["run"])
            .succeeds()
            .err("refs/arborist/queue/tickets/main/T1', which could not be read");
        assert!(queue_repo.subjects("main").is_empty(), "{key}");
    }
}

#[test]
fn a_resolution_in_a_ticket_that_adds_unrelated_files_is_not_used() {
    let queue_repo = content();
    queue_repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    queue_repo.merge(&["T2"]).exits(2);
    let source = queue_repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
    let main = queue_repo.git(["rev-parse", "main"]).answer();
    let blob = queue_repo.git(["rev-parse", "main:a.txt"]).answer();
    // The conflict is resolved, and a file comes along that nobody has seen.
    queue_repo.git(["read-tree", "--index-output=.git/forged", "main"]).succeeds();
    queue_repo.git(["update-index", "--add", "--cacheinfo", &format!("100644,{blob},evil.txt")]).succeeds();
    let tree = queue_repo.git(["write-tree"]).answer();
    queue_repo.git(["reset", "-q", "--hard"]).succeeds();
    let forged = queue_repo.commit_object(&tree, &[main.clone(), source], "resolved\n");
    forge_ticket(&queue_repo, "T2", |ticket| {
        ticket["resolved"] = Value::String(forged.clone());
        ticket["resolved_by"] = Value::String("person".into());
        ticket["standing"] = serde_json::json!({"is": "waiting"});
    });
    queue_repo.merge(&["run"]).exits(2);
    assert_eq!(queue_repo.git(["rev-parse", "main"]).answer(), main);
    let saved = queue_repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
    assert!(saved.contains(&forged), "the forged resolution is kept: {saved}");
}

/// A repository whose task T2 conflicts and waits for a person, and a resolution that nobody has seen. Where there is a
/// reviewer, it answers so.
fn forged_resolution(verdict: Option<&str>) -> (QueueRepo, String) {
    let queue_repo = content();
    queue_repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    queue_repo.merge(&["T2"]).exits(2);
    if let Some(verdict) = verdict {
        let script = format!("case \"$prompt\" in Review*) echo '{verdict}' ;; *) exit 1 ;; esac");
        TestRepo::agent(&queue_repo, &script);
    }
    queue_repo.write("a.txt", "evil()\n");
    queue_repo.git(["add", "-A"]).succeeds();
    let tree = queue_repo.git(["write-tree"]).answer();
    queue_repo.git(["reset", "-q", "--hard"]).succeeds();
    (queue_repo, tree)
}

#[test]
fn a_resolution_in_a_ticket_is_reviewed_before_it_lands() {
    let verdicts = [("REJECTED: no", false), ("APPROVED", true)];
    for ((verdict, is_used), assist) in pairs(&verdicts, &["true", "false"]) {
        let (queue_repo, tree) = forged_resolution(Some(verdict));
        queue_repo.git(["config", "arborist.merge.assist", assist]).succeeds();
        queue_repo.git(["config", "arborist.merge.resolve-attempts", "0"]).succeeds();
        let main = forge_resolved_ticket(&queue_repo, &tree);
        let _ = queue_repo.merge(&["run"]);
        assert!(queue_repo.prompt(0).starts_with("Review the resolution"), "{}", queue_repo.prompt(0));
        assert_eq!(queue_repo.git(["rev-parse", "main"]).answer() != main, is_used, "{assist} {verdict}");
    }
}

#[test]
fn a_resolution_in_a_ticket_does_not_land_without_a_reviewer() {
    let (queue_repo, tree) = forged_resolution(None);
    let main = forge_resolved_ticket(&queue_repo, &tree);
    queue_repo.merge(&["run"]).exits(2);
    assert_eq!(queue_repo.git(["rev-parse", "main"]).answer(), main);
    let saved = queue_repo.git(["for-each-ref", "--format=%(tree)", "refs/arborist/saved"]).answer();
    assert!(saved.contains(&tree), "it is kept: {saved}");
    // The person is given the conflict, and not the resolution that is not theirs.
    let place = PathBuf::from(queue_repo.merge(&["resolve", "T2"]).answer());
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("<<<<<<<"));
}

#[test]
fn a_parked_resolution_is_reviewed_before_it_lands() {
    for (verdict, is_used) in [(None, false), (Some("REJECTED: no"), false), (Some("APPROVED"), true)] {
        let (queue_repo, tree) = forged_resolution(verdict);
        let main = queue_repo.git(["rev-parse", "main"]).answer();
        let source = queue_repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
        let message = format!(
            "task(main@T2@merge): land \"T2\"\n\nArborist-Step: merge\nArborist-Result: pass\n\
             Arborist-Source: {source}\nArborist-Gate: none\nArborist-Session: s1\n"
        );
        let parked = queue_repo.commit_object(&tree, &[main.clone(), source], message);
        queue_repo.git(["update-ref", "refs/arborist/landing/main", &parked]).succeeds();
        let _ = queue_repo.merge(&["run"]);
        let landed = if is_used { &parked } else { &main };
        assert_eq!(queue_repo.git(["rev-parse", "main"]).answer(), *landed, "{verdict:?}");
    }
}

/// Says in the ticket of T2 that a person has made this of its conflict. Gives the target as it is.
fn forge_resolved_ticket(queue_repo: &QueueRepo, tree: &str) -> String {
    let main = queue_repo.git(["rev-parse", "main"]).answer();
    let source = queue_repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
    let forged = queue_repo.commit_object(tree, &[main.clone(), source], "resolved\n");
    forge_ticket(queue_repo, "T2", |ticket| {
        ticket["resolved"] = Value::String(forged.clone());
        ticket["resolved_by"] = Value::String("person".into());
        ticket["standing"] = serde_json::json!({"is": "waiting"});
    });
    main
}

#[test]
fn a_forged_gate_result_does_not_skip_the_gate() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    queue_repo.git(["config", "arborist.merge.gates.check.command", "! test -e T1.txt"]).succeeds();
    queue_repo.merge(&["T1"]).exits(1).out("1 failed a gate (T1)");
    let names = queue_repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/gates"]).answer();
    for name in names.lines() {
        let message = queue_repo.git(["log", "-1", "--format=%B", name]).answer();
        let forged = message.replace("\"answer\":\"red\"", "\"answer\":\"green\"");
        let tree = queue_repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
        let commit = queue_repo.commit_object(&tree, &[], forged + "\n");
        queue_repo.git(["update-ref", name, &commit]).succeeds();
    }
    forge_ticket(&queue_repo, "T1", |ticket| ticket["standing"] = serde_json::json!({"is": "waiting"}));
    queue_repo.merge(&["run"]).exits(1).out("1 failed a gate (T1)");
    assert!(queue_repo.subjects("main").is_empty());
}

#[test]
fn an_option_in_a_session_record_never_becomes_an_option_of_an_agent() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    let run = ["gardener", "--session-branch", "--test-command", "false", "--max-retries", "1"];
    repo.arborist(run).exits(1);
    let name = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/sessions"]).answer();
    let id = name.rsplit('/').next().unwrap().to_owned();
    // A record that was asked for something else follows the newest.
    let message = repo.git(["log", "-1", "--format=%B", &name]).answer();
    let (head, json) = message.split_once("\n\n").unwrap();
    let mut record: Value = serde_json::from_str(json.trim()).unwrap();
    let tip = repo.git(["rev-parse", &name]).answer();
    let asked = serde_json::json!({"options": {"model": "--share", "test-command": "touch was-here"}});
    record["kind"] = Value::String("resume".into());
    record["commit"] = Value::String(repo.git(["rev-parse", "HEAD"]).answer());
    record["turn"] = Value::Null;
    record["asked"] = asked;
    let tree = repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let commit = repo.commit_object(&tree, &[tip], format!("{head}\n\n{record}\n"));
    repo.git(["update-ref", &name, &commit]).succeeds();
    let calls = repo.calls();
    let code = repo.arborist(["session", "resume", &id, "--yes"]).code();
    assert_ne!(code, 0);
    assert_eq!(
        repo.calls(),
        calls,
        "the change was undone, and no agent was called; see the output of the test command with: cat"
    );
    assert!(!repo.path("was-here").exists());
}

#[test]
fn no_command_accepts_task_commits_that_the_session_records_do_not_name() {
    let agent = "case \"$ARBORIST_TASK$prompt\" in T002*) exit 1 ;; *Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n", agent);
    repo.arborist(["gardener", "--isolate", "--max-retries", "1"]).exits(1);
    let session =
        repo.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/arborist/sessions"]).answer();
    let blob = repo.git(["hash-object", "-w", "tasks.md"]).answer();
    let base = repo.git(["ls-tree", "main"]).answer();
    let listed = format!("{base}\n100644 blob {blob}\tevil.txt\n");
    let tree =
        arborist_testkit::Run::of(repo.command("git", &repo.path("")).arg("mktree"), listed.as_bytes())
            .answer();
    let complete = TaskCommit::new("T002", "complete").trailer("Session", &session);
    let mut tip = repo.git(["rev-parse", "main"]).answer();
    for step in complete.steps_before().into_iter().chain([complete]) {
        tip = repo.commit_object(&tree, &[tip], step.to_string());
    }
    repo.git(["update-ref", "refs/heads/arborist/task/main/T002", &tip]).succeeds();

    let state: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).succeeds().stdout()).unwrap();
    let task = state["tasks"].as_array().unwrap().iter().find(|task| task["id"] == "T002").unwrap();
    assert_eq!((&task["state"], &task["ready"]), (&"pending".into(), &true.into()), "{task}");
    repo.arborist(["state", "--exit-code"]).exits(1).err("records of the session do not name");
    repo.arborist(["merge", "T002"]).exits(1).err("has not run yet");
    let list = repo.arborist(["worktree", "list"]).succeeds().stdout();
    let row = list.lines().find(|line| line.contains("T002")).unwrap_or_default().to_owned();
    assert!(!row.contains("complete"), "{list}");
    let told = repo.arborist(["gardener", "--isolate", "--dry-run"]).succeeds().stdout();
    assert!(told.contains("T002") && !told.contains("would be landed"), "{told}");
    repo.arborist(["garden", "--dry-run", "T002"]).succeeds();
    repo.arborist(["merge", "run"]).succeeds();
    assert!(!repo.git(["ls-tree", "--name-only", "main"]).answer().contains("evil"));
}
