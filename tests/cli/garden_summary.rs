//! The end of a run: what it came to, in lines that a person can paste into a message.

use arborist_testkit::TestRepo;

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form"},
    "T003": {"id": "T003", "name": "Wire it up", "depends_on": ["T002"]}
  },
  "root_ids": ["T001", "T002", "T003"]
}
"#;

/// Fails at T002 as long as there is no file `mended`.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T002:*) [ -e "$ROOT/mended" ] || { echo 'the form is too hard' >&2; exit 4; }
           echo 'NOTHING TO DO: the form is there' ;;
  *) echo fine; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned("task-tree.json", TREE, WORKER)
}

fn short(repo: &TestRepo, revision: &str) -> String {
    repo.git(["rev-parse", revision]).answer()[..10].to_owned()
}

#[test]
fn the_summary_lists_failed_and_waiting_tasks_and_the_next_command() {
    let repo = repo();
    let from = short(&repo, "HEAD");
    let said = repo.arborist(["gardener", "--keep-going", "--max-retries", "2"]).exits(1);
    let to = short(&repo, "HEAD");
    let expected = format!(
        "1 completed (T001), 1 failed (T002), 1 left (T003)
  failed T002 \"Add the form\" after 2 attempts: the agent exited with code 4: the form is too hard
  left   T003 \"Wire it up\": waits for T002
  note   agents, or tests of their code, ran without a sandbox: they could change .git and every file of your account
  run    main, 1 of 3 done, 3 attempts in 0s
  log    git log {from}..{to}
  next   git arborist gardener --retry-failed --keep-going --max-retries 2
"
    );
    assert_eq!(said.stdout(), expected);
    std::fs::write(repo.root().join("mended"), "").unwrap();
    let said = repo.arborist(["gardener", "--retry-failed"]).succeeds().matches_snapshot();
    assert!(!said.stdout().contains("next"), "{}", said.stdout());
}

#[test]
fn the_summary_lists_tasks_that_were_not_started_with_their_state() {
    let repo = repo();
    let said = repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    said.matches_snapshot();
    let said = repo.arborist(["gardener"]).exits(1).matches_snapshot();
    said.matches_snapshot();
}

#[test]
fn the_summary_of_a_stopped_run_lists_what_was_done() {
    let repo = repo();
    repo.agent(&WORKER.replace("*T002:*)", "*T002:*) kill -INT $PPID; sleep 30;;\n  *never*)"));
    let said = repo.arborist(["gardener"]).exits(130).matches_snapshot();
    said.matches_snapshot();
}

#[test]
fn quiet_prints_only_errors() {
    let repo = repo();
    let said = repo.arborist(["garden", "--quiet", "--test-command", "true"]).succeeds().silent();
    assert_eq!(said.stderr(), "");
    let said = repo.arborist(["gardener", "-q", "--test-command", "true", "--max-retries", "1"]).exits(1);
    assert_eq!(said.stderr().lines().count(), 1, "{}", said.stderr());
    said.matches_snapshot();
}

#[test]
fn killed_attempts_do_not_count_but_the_run_stops_after_three() {
    let repo = TestRepo::planned("task-tree.json", TREE, "kill -9 $PPID; sleep 30");
    let run = || repo.arborist(["gardener", "--max-retries", "2"]);
    for _ in 0..3 {
        assert!(![0, 2].contains(&run().code()));
    }
    run().exits(2).matches_snapshot();
}

/// What the summary says is to be typed next, typed.
fn run_command_from_summary(repo: &TestRepo, summary: &str) -> arborist_testkit::Run {
    let next = summary.lines().find_map(|line| line.trim().strip_prefix("next   git ")).unwrap();
    repo.git(next.split_whitespace())
}

#[test]
fn the_next_command_in_the_summary_keeps_the_selected_tasks_and_options() {
    let repo = repo();
    repo.write("notes.txt", "mine\n");
    let options = ["gardener", "--only", "T002", "--max-retries", "2", "--allow-dirty"];
    let said = repo.arborist(options).exits(1);
    let said = said.matches_snapshot();
    std::fs::write(repo.root().join("mended"), "").unwrap();
    run_command_from_summary(&repo, &said.stdout()).succeeds().matches_snapshot().never("T001");
}

#[test]
fn the_next_command_in_the_summary_raises_a_used_up_budget() {
    let repo = repo();
    let spend = r#"printf '{"type":"result","subtype":"success","is_error":false,"result":"APPROVED","total_cost_usd":0.5,"usage":{"input_tokens":1,"output_tokens":1}}\n'"#;
    repo.agent(&format!("echo x > \"$ARBORIST_TASK.txt\"; {spend}"));
    let file = repo.home().join(".config/git-arborist/config.toml");
    let known = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{known}events = \"claude\"\n")).unwrap();
    let said = repo.arborist(["gardener", "--max-cost", "0.6", "--max-retries", "1"]).exits(1);
    let said = said.matches_snapshot();
    let said = run_command_from_summary(&repo, &said.stdout()).exits(1).matches_snapshot();
    run_command_from_summary(&repo, &said.stdout()).succeeds().matches_snapshot();
}

#[test]
fn the_summary_counts_changed_files_and_lists_tasks_without_changes() {
    let repo = repo();
    std::fs::write(repo.root().join("mended"), "").unwrap();
    let said = repo.arborist(["gardener"]).succeeds();
    let said = said.matches_snapshot();
    said.matches_snapshot();
}

#[test]
fn the_summary_of_a_run_stopped_by_a_failing_reviewer_lists_what_is_left() {
    let repo = repo();
    repo.write("../mended", "");
    repo.agent(&format!(
        "case \"$prompt\" in \"Review\"*) [ $ARBORIST_TASK = T001 ] || exit 3 ;; esac\n{WORKER}"
    ));
    repo.arborist(["gardener"]).exits(2).out("1 completed (T001), 2 left (T002, T003)");
    repo.arborist(["state"]).succeeds().matches_snapshot();
}
