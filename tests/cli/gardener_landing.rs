//! What `git arborist gardener --jobs N` lands, what it does not, and what it asks before.

use arborist_testkit::TestRepo;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p'); echo "$task" > "$task.txt" ;;
esac
"#;

fn repo(plan: &str) -> TestRepo {
    let repo = TestRepo::init();
    let name = if plan.starts_with('{') { "task-tree.json" } else { "tasks.md" };
    repo.write(name, plan);
    repo.commit("a plan\n");
    repo.agent(WORKER);
    repo
}

const TWO: &str = "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";

/// Two tasks of a phase whose own test needs both.
const PHASE: &str = r#"{"nodes": {
  "P1": {"id": "P1", "name": "Phase", "children": ["T001", "T002"],
         "test_commands": [{"type": "integration", "command": "test -e T001.txt && test -e T002.txt"}]},
  "T001": {"id": "T001", "name": "a", "parent": "P1"},
  "T002": {"id": "T002", "name": "b", "parent": "P1"}},
  "root_ids": ["P1"]}"#;

#[test]
fn an_edit_that_changes_neither_the_size_nor_the_second_of_a_file_is_committed() {
    let repo = TestRepo::init();
    let plan: String = (1..=4).map(|n| format!("- [ ] T00{n} [P] change f{n}\n")).collect();
    repo.write("tasks.md", plan);
    (1..=4).for_each(|n| repo.write(&format!("f{n}"), "A\n"));
    repo.commit("a plan\n");
    repo.agent(
        r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) n=$(printf '%s' "$prompt" | sed -n '1s/Implement task T00\([^:]*\):.*/\1/p'); printf 'B\n' > "f$n"; sleep 1.2 ;;
esac
"#,
    );
    repo.arborist(["gardener", "--jobs", "4"]).succeeds().out("4 completed");
    (1..=4).for_each(|n| assert_eq!(repo.git(["show", &format!("HEAD:f{n}")]).answer(), "B"));
}

#[test]
fn gates_of_a_tracked_configuration_need_approval() {
    let repo = repo(TWO);
    repo.write(
        ".arborist/config.toml",
        "[merge]\ngates = [{ name = \"g\", command = \"touch ../../ran; true\" }]\n",
    );
    repo.commit("a configuration\n");
    repo.arborist(["gardener", "--jobs", "2"]).exits(2).err("touch ../../ran").err("--yes");
    assert_eq!(repo.calls(), 0);
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).succeeds().out("2 completed");
}

#[test]
fn tests_of_a_plan_need_approval_as_gates_too() {
    let repo = repo(PHASE);
    let mut trusted = repo.command("git-arborist-gardener", &repo.path(""));
    let _ = trusted.args(["--jobs", "2", "--until", "T001"]).env("ARBORIST_TRUST", "1").output().unwrap();
    repo.arborist(["gardener", "--jobs", "2"]).exits(2).err("not approved");
}

#[test]
fn two_tasks_that_complete_a_phase_together_are_tested_together() {
    for batch in ["1", "4"] {
        let repo = repo(PHASE);
        repo.git(["config", "arborist.merge.batch", batch]).succeeds();
        repo.arborist(["gardener", "--jobs", "2", "--yes"]).succeeds().out("2 completed");
        repo.arborist(["state", "--exit-code"]).succeeds();
    }
}

#[test]
fn a_branch_of_the_user_with_the_name_of_a_phase_is_not_changed() {
    let repo = repo(PHASE);
    repo.git(["branch", "arborist/task/main/P1"]).succeeds();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let parent = repo.git(["rev-parse", "HEAD"]).answer();
    let commit = repo.commit_object(&tree, &[parent], "mine\n");
    repo.git(["update-ref", "refs/heads/arborist/task/main/P1", &commit]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).succeeds();
    assert_eq!(repo.git(["rev-parse", "arborist/task/main/P1"]).answer(), commit);
}

#[test]
fn tasks_that_did_not_land_are_reported_by_every_run() {
    let repo = repo(TWO);
    let gates = "[{ name = \"g\", command = \"! test -e T001.txt\" }]";
    let config = format!("[merge]\nassist = false\ngates = {gates}\n");
    repo.write(".arborist/config.toml", &config);
    repo.commit("a configuration\n");
    let flags = ["gardener", "--jobs", "2", "--yes", "--keep-going"];
    repo.arborist(flags).exits(1).out("T001").out("did not land");
    repo.arborist(flags).exits(1).out("T001").out("did not land").never("nothing is left to do");
}

#[test]
fn a_task_dropped_from_the_queue_is_not_queued_again() {
    let repo = repo(TWO);
    repo.write(
        ".arborist/config.toml",
        "[merge]\ngates = [{ name = \"g\", command = \"! test -e T001.txt\" }]\n",
    );
    repo.commit("a configuration\n");
    let flags = ["gardener", "--jobs", "2", "--yes", "--keep-going"];
    repo.arborist(flags).exits(1).out("did not land");
    repo.arborist(["merge", "drop", "T001"]).succeeds();
    repo.arborist(flags).exits(1).out("taken out of the queue");
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(!log.contains("T001@merge"), "{log}");
}

#[test]
fn landed_branches_are_deleted_if_configured() {
    let repo = repo(TWO);
    repo.git(["config", "arborist.merge.delete-branches", "true"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    assert_eq!(repo.git(["branch", "--list", "arborist/*"]).answer(), "");
}

#[test]
fn with_policy_all_or_nothing_no_task_lands_if_one_failed() {
    let repo = repo(TWO);
    repo.agent(&WORKER.replace(
        "echo \"$task\" >",
        "if grep -qs $task \"$ROOT/broken\"; then exit 1; fi; echo \"$task\" >",
    ));
    repo.write("../broken", "T002\n");
    let flags =
        ["gardener", "--jobs", "2", "--policy", "all-or-nothing", "--max-retries", "1", "--keep-going"];
    let said = repo.arborist(flags).exits(1).out("1 failed (T002)").out("did not land");
    said.out("not landed T001: T002 failed, and the policy is all-or-nothing")
        .out("next       git arborist merge T001\n");
    assert_eq!(repo.git(["ls-files", "T*.txt"]).answer(), "");
    repo.write("../broken", "");
    repo.arborist(["gardener", "--jobs", "2", "--policy", "all-or-nothing", "--retry-failed"]).succeeds();
    assert_eq!(repo.git(["ls-files", "T*.txt"]).answer(), "T001.txt\nT002.txt");
}

#[test]
fn with_policy_first_only_one_task_lands() {
    let repo = repo(TWO);
    repo.agent(&WORKER.replace("$task.txt", "same.txt"));
    repo.arborist(["gardener", "--jobs", "2", "--policy", "first", "--keep-going"]).exits(1);
    let log = repo.git(["log", "--merges", "--format=%s"]).answer();
    assert_eq!(log.lines().filter(|line| line.contains("@merge)")).count(), 1, "{log}");
}

#[test]
fn a_run_continues_on_top_of_a_parked_landing() {
    let repo = repo("- [ ] T001 [P] do a\n- [ ] T002 do b (depends on T001)\n");
    repo.write("T001.txt", "mine\n");
    repo.arborist(["gardener", "--jobs", "2", "--until", "T001"]).exits(2).out("parked");
    let calls = repo.calls();
    repo.arborist(["gardener", "--jobs", "2"]).exits(2).out("1 completed (T002)");
    assert_eq!(repo.calls(), calls + 2, "what is parked is not done again");
    assert_eq!(repo.read("T001.txt"), "mine\n");
}

#[test]
fn a_gate_that_runs_again_for_a_parked_landing_is_not_reported_as_a_failure() {
    let repo = repo("- [ ] T001 [P] do a\n- [ ] T002 do b (depends on T001)\n");
    let runs = repo.root().join("gate-runs");
    let command = format!("echo yes >> '{}'", runs.display());
    repo.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
    repo.write("T001.txt", "mine\n");
    repo.arborist(["gardener", "--jobs", "2", "--until", "T001"]).exits(2).out("parked");
    std::fs::remove_file(&runs).unwrap();
    repo.arborist(["gardener", "--jobs", "2", "--quiet"]).exits(2).never("testing ");
    let count = std::fs::read_to_string(&runs).unwrap().lines().count();
    assert_eq!(count, 2, "for what is parked and for T002");
}

#[test]
fn the_selected_runner_resolves_a_conflict_and_gets_the_descriptions_of_both_tasks() {
    let repo = repo(
        r#"{"nodes": {
  "T001": {"id": "T001", "name": "a", "description": "the first of both"},
  "T002": {"id": "T002", "name": "b", "description": "the second of both"}},
  "root_ids": ["T001", "T002"]}"#,
    );
    repo.agent(
        r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  "Resolve"*) echo both > same.txt ;;
  *) touch "$ROOT/began-$ARBORIST_TASK"
     until [ -e "$ROOT/began-T001" ] && [ -e "$ROOT/began-T002" ]; do sleep 0.05; done
     printf '%s' "$prompt" | head -1 > same.txt ;;
esac
"#,
    );
    repo.git(["config", "arborist.runner", "demo"]).succeeds();
    let ran = repo.arborist(["gardener", "--jobs", "2", "--runner", "robot"]).succeeds();
    let said = ran.out("2 completed").err("was resolved by the agent robot").stdout();
    let landing = repo.git(["rev-parse", "main"]).answer();
    let told = |line: &&str| line.trim_start().starts_with("resolved conflict of T00");
    let told = said.lines().find(told).unwrap_or_else(|| panic!("{said}"));
    let (what, shown) = told.split_once(": git show ").unwrap();
    assert!(what.ends_with("by agent robot") && landing.starts_with(shown), "{told}");
    assert_eq!(repo.git(["show", "HEAD:same.txt"]).answer(), "both");
    let session =
        repo.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/arborist/sessions"]).answer();
    let turns = repo.arborist(["session", "turns", &session, "--json"]).answer();
    let turns: serde_json::Value = serde_json::from_str(&turns).unwrap();
    let of_resolving = |turn: &&serde_json::Value| turn["step"] == "resolve";
    let turn = turns["turns"].as_array().unwrap().iter().find(of_resolving).unwrap();
    assert_eq!((&turn["runner"], &turn["files"][0]), (&"robot".into(), &"same.txt".into()), "{turn}");
    let number = turn["number"].to_string();
    repo.arborist(["session", "show", &session, "--turn", &number])
        .succeeds()
        .out("it is queued again, to be merged and tested");
    let prompts = (0..repo.calls()).map(|call| repo.prompt(call));
    let asked: Vec<String> = prompts.filter(|prompt| prompt.starts_with("Resolve")).collect();
    assert_eq!(asked.len(), 1);
    for words in ["Description: the first of both", "Description: the second of both"] {
        assert!(asked[0].contains(words), "{}", asked[0]);
    }
}

/// Both tasks are begun before one of them goes on; each adds a line to the same file.
const CLASH: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) touch "$ROOT/began-$ARBORIST_TASK"
     until [ -e "$ROOT/began-T001" ] && [ -e "$ROOT/began-T002" ]; do sleep 0.05; done
     echo "$ARBORIST_TASK" >> same.txt ;;
esac
"#;

#[test]
fn with_on_conflict_reimplement_a_conflicting_task_is_done_again_on_the_new_target() {
    let repo = repo(TWO);
    repo.agent(CLASH);
    repo.git(["config", "arborist.merge.on-conflict", "reimplement"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"])
        .succeeds()
        .out("2 completed")
        .err("it conflicts with tasks that have landed, and is done again");
    let mut lines: Vec<String> =
        repo.git(["show", "HEAD:same.txt"]).answer().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["T001", "T002"], "the second was done on top of the first");
    assert_eq!(repo.calls(), 6, "two calls for each, and two more for the one that was done anew");
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(saved.lines().count(), 1, "{saved}");
    let lanes = repo.git(["worktree", "list"]).answer();
    let lanes = lanes.lines().filter(|line| line.contains("/lane-")).count();
    assert_eq!(lanes, 2, "no lane is made for it");
    repo.arborist(["state", "--exit-code"]).succeeds();
    repo.arborist(["merge", "log"]).succeeds().out("withdrawn");
}

#[test]
fn a_conflicting_task_is_not_done_again_if_resolve_attempts_is_0() {
    let repo = repo(TWO);
    for (key, value) in [("on-conflict", "reimplement"), ("resolve-attempts", "0")] {
        repo.git(["config", &format!("arborist.merge.{key}"), value]).succeeds();
    }
    repo.agent(&CLASH.replace(">> same.txt", "> same.txt"));
    repo.arborist(["gardener", "--jobs", "2"]).exits(2).out("it conflicts in same.txt");
}

#[test]
fn an_unfinished_merge_in_the_checkout_is_reported_before_the_first_task() {
    let repo = repo(TWO);
    repo.agent(CLASH);
    repo.git(["checkout", "-q", "-b", "other"]).succeeds();
    repo.write("other.txt", "other");
    repo.commit("other\n");
    repo.git(["checkout", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--no-ff", "--no-commit", "other"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"])
        .exits(2)
        .err("warning: finished tasks cannot land on 'main' until the merge in this checkout is finished")
        .err("hint: finish or cancel it, as 'git status' says");
}

#[test]
fn the_runner_configured_for_the_resolve_step_resolves_conflicts() {
    let repo = repo(TWO);
    repo.agent(CLASH);
    let config = repo.home().join(".config/git-arborist/config.toml");
    let solver = "[steps.resolve]\nrunner = \"solver\"\n[runners.solver]\ncommand = [\"sh\", \"-c\", \"echo both > same.txt\"]\n";
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + solver).unwrap();
    let run = repo.arborist(["gardener", "--jobs", "2", "--runner", "robot"]).succeeds();
    run.err("was resolved by the agent solver");
    assert_eq!(repo.git(["show", "HEAD:same.txt"]).answer(), "both");
}

#[test]
fn a_run_says_why_no_agent_resolves_a_conflict() {
    let why = "the runner 'demo' is not an agent program";
    for (option, words) in [
        (
            &["--review-runner", "demo"][..],
            "an agent's resolution must be reviewed, and the reviewer cannot be called: ",
        ),
        (&["--runner", "robot"], "no agent can resolve it: "),
    ] {
        let repo = repo(TWO);
        repo.agent(CLASH);
        repo.git(["config", "arborist.steps.resolve.runner", "demo"]).succeeds();
        let run = repo.arborist([&["gardener", "--jobs", "2"], option].concat()).exits(2);
        let said = run.stderr();
        let line = said.lines().find(|line| line.contains("the conflict of T00"));
        assert!(line.is_some_and(|line| line.contains(&format!("because {words}{why}"))), "{said}");
    }
    let repo = repo(TWO);
    repo.agent(CLASH);
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).exits(2).never("is left to you");
}

#[test]
fn a_landing_parked_by_an_earlier_run_is_not_reported_again_as_merged() {
    let repo = repo("- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 [P] do c\n");
    repo.write("T001.txt", "mine\n");
    let only = |task: &'static str| ["gardener", "--isolate", "--allow-dirty", "--json", "--only", task];
    repo.arborist(only("T001")).exits(2);
    std::fs::remove_file(repo.path("T001.txt")).unwrap();
    let events = repo.arborist(only("T002")).succeeds().stdout();
    let merged: Vec<&str> = events.lines().filter(|line| line.contains("\"merged\"")).collect();
    assert!(merged.len() == 1 && merged[0].contains("T002"), "{merged:?}");
    // T003 is left.
    let sessions = repo.arborist(["session", "list"]).answer();
    assert!(sessions.contains("paused") && !sessions.contains("complete"), "{sessions}");
    repo.arborist(["gardener", "--isolate"]).succeeds();
    let sessions = repo.arborist(["session", "list"]).answer();
    assert!(sessions.contains("complete"), "{sessions}");
}

#[test]
fn a_session_whose_phase_fails_its_tests_is_not_complete() {
    let repo = repo(&PHASE.replace("T001.txt &&", "T009.txt &&"));
    repo.arborist(["gardener", "--yes"]).exits(1);
    let session = repo.arborist(["session", "list"]).answer();
    let id = session.lines().nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    repo.arborist(["session", "end", "--session", &id]).succeeds().never("recorded as complete");
}

#[test]
fn the_test_of_a_phase_that_gates_a_landing_has_the_time_limit_of_tests() {
    let repo = repo(&PHASE.replace("test -e T001.txt && test -e T002.txt", "sleep 300"));
    repo.git(["config", "arborist.timeouts.test", "1"]).succeeds();
    let ended = repo.arborist(["gardener", "--isolate", "--yes"]).exits(2);
    ended.err("the gate 'integration of P1' took too long: 'sleep 300' timed out after 1 s");
}

#[test]
fn the_tests_of_a_phase_run_again_when_a_task_of_it_is_done_again() {
    for place in [&["--jobs", "1"][..], &["--isolate"]] {
        for how in ["reset", "revert"] {
            let repo = repo(&PHASE.replace("test -e T001.txt &&", "test ! -e broken &&"));
            let gardener = || repo.arborist(["gardener", "--yes"].iter().chain(place));
            gardener().succeeds();
            repo.write("broken", "by the user\n");
            repo.commit("broken\n");
            if how == "reset" {
                repo.agent(&WORKER.replace("echo \"$task\" >", "date +%N >>"));
                repo.arborist(["reset", "T002"]).succeeds();
            } else {
                let step = if place[0] == "--isolate" { "T002@merge" } else { "T002@implement-pass" };
                let done = repo.git(["log", "-1", "--format=%H", "--grep", step]).answer();
                let parent: &[&str] = if place[0] == "--isolate" { &["-m", "1"] } else { &[] };
                repo.git(["revert", "--no-edit"].iter().chain(parent).chain(&[done.as_str()])).succeeds();
            }
            let ended = gardener();
            assert_ne!(ended.code(), 0, "{place:?} {how}: {}", ended.report());
            repo.arborist(["state", "--exit-code"]).exits(1);
            repo.git(["rm", "-q", "broken"]).succeeds();
            repo.commit("repaired\n");
            if place[0] == "--isolate" {
                repo.arborist(["merge", "retry", "T002"]).succeeds();
            }
            gardener().succeeds();
            repo.arborist(["state", "--exit-code"]).succeeds();
        }
    }
}
