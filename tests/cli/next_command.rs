//! The state of a task says in one sentence where it stands, and which command continues it. That command works as printed.

use arborist_testkit::{Run, TestRepo, WORKER};

const THREE: &str = "- [ ] T001 do a\n- [ ] T002 do b (depends on T001)\n- [ ] T003 do c (depends on T002)\n";
const TWO: &str = "- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";

/// Goes on once both tasks are at work.
const BOTH: &str = "touch \"$ROOT/at-$ARBORIST_TASK\"; until [ -e \"$ROOT/at-T001\" ] && [ -e \"$ROOT/at-T002\" ]; do sleep 0.02; done";

fn fact(repo: &TestRepo, task: &str, label: &str) -> Option<String> {
    let shown = repo.arborist(["state", task]).succeeds().stdout();
    let value = |line: &str| line.strip_prefix(&format!("  {label} ")).map(|value| value.trim().to_owned());
    shown.lines().find_map(value)
}

/// Types what `state` says is next for a task.
fn run_next_command(repo: &TestRepo, task: &str) -> Run {
    let next = fact(repo, task, "next").unwrap();
    repo.git(next.strip_prefix("git ").unwrap().split_whitespace())
}

#[test]
fn state_shows_a_task_as_ready_or_names_what_it_waits_for() {
    let repo = TestRepo::planned("tasks.md", THREE, WORKER);
    assert_eq!(fact(&repo, "T001", "state").unwrap(), "ready");
    assert_eq!(fact(&repo, "T002", "state").unwrap(), "pending: waits for T001");
    assert_eq!(fact(&repo, "T002", "next"), None);
    run_next_command(&repo, "T001").succeeds();
    assert_eq!(fact(&repo, "T001", "state").unwrap(), "complete, attempt 1");
    assert_eq!(fact(&repo, "T001", "next"), None);
}

#[test]
fn tasks_that_were_interrupted_in_lanes_are_continued_in_lanes() {
    let stop = format!("{BOTH}\n[ $ARBORIST_TASK != T001 ] || kill -INT $PPID; sleep 60");
    let repo = TestRepo::planned("tasks.md", TWO, &stop);
    let said =
        repo.arborist(["gardener", "--jobs", "2"]).exits(130).out("next   git arborist gardener --jobs 2");
    said.err("T001 attempt 1 was interrupted and does not count: stopped by Ctrl-C or SIGINT")
        .never("failed");
    let told = "on its own branch: paused; attempt 1 was interrupted while implementing";
    assert_eq!(fact(&repo, "T001", "state").unwrap(), told);
    assert_eq!(fact(&repo, "T001", "why").unwrap(), "stopped by Ctrl-C or SIGINT");
    repo.agent(WORKER);
    repo.arborist(["gardener"]).exits(2).err("to continue it there, run: git arborist gardener --jobs 2");
    run_next_command(&repo, "T001").succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_conflict_is_resolved_with_the_printed_command() {
    let clash = format!(
        "case \"$prompt\" in Review*) echo APPROVED ;; *) {BOTH}; echo \"$ARBORIST_TASK\" > same.txt ;; esac"
    );
    let repo = TestRepo::planned("tasks.md", TWO, &clash);
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    let said = repo.arborist(["gardener", "--jobs", "2"]).exits(2);
    let said = said.out("next       git arborist merge resolve T00").out("1 of 2 done");
    let said = said.err("it conflicts with main in same.txt");
    let task = if said.stdout().contains("merge resolve T001") { "T001" } else { "T002" };
    assert_eq!(fact(&repo, task, "state").unwrap(), "complete, but not landed");
    assert_eq!(fact(&repo, task, "why").unwrap(), "both sides added same.txt");
    repo.arborist(["state"]).succeeds().out("not landed (conflict)").out("1 of 2 done, 1 did not land");
    let said = repo.arborist(["merge", task]).exits(2);
    said.err("has a conflict that you have to resolve").out("1 in conflict");
    let resolving = run_next_command(&repo, task);
    assert!(resolving.stderr().contains("the conflict of"), "{}", resolving.report());
}

#[test]
fn a_failed_gate_and_its_commands_are_named() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.git(["config", "arborist.merge.gates.lint.command", "! test -e T002.txt"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).exits(1);
    assert!(fact(&repo, "T002", "why").unwrap().starts_with("the gate 'lint' failed (log: "));
    run_next_command(&repo, "T002").exits(1).err("git arborist worktree add T002");
    repo.arborist(["merge", "run"]).exits(1).err("after a fix, run: git arborist merge retry T002");
}

#[test]
fn a_task_whose_commits_were_reverted_starts_over() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    repo.git(["revert", "--no-edit", "HEAD"]).succeeds();
    assert_eq!(fact(&repo, "T001", "state").unwrap(), "ready: its commits were reverted, so it starts over");
    repo.arborist(["state"]).succeeds().out("ready         reverted").out("1 ready to start").never("paused");
    run_next_command(&repo, "T001").succeeds();
}

#[test]
fn a_selection_of_tasks_that_cannot_start_yet_is_refused() {
    let repo = TestRepo::planned("tasks.md", THREE, WORKER);
    repo.arborist(["gardener", "--only", "T003"]).exits(1).err("task 'T003' is not ready: it waits for T002");
    repo.arborist(["gardener", "--only", "T001", "--only", "T003"])
        .exits(1)
        .out("next   git arborist gardener\n");
    repo.arborist(["gardener", "--only", "T002", "--only", "T003"]).succeeds();
}

#[test]
fn a_finished_selection_names_the_tasks_that_are_left() {
    let repo = TestRepo::planned("tasks.md", THREE, WORKER);
    repo.arborist(["gardener", "--until", "T002"]).succeeds();
    repo.arborist(["gardener", "--until", "T002"])
        .succeeds()
        .out("nothing is left to do for the selected tasks; 1 other task is not done");
    repo.arborist(["state"]).succeeds().out("67%");
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["gardener"]).succeeds().out("nothing is left to do\n");
    let said = repo.arborist(["reset", "--drop", "T001"]).succeeds();
    said.err("complete tasks that depend on T001 stay complete: T002, T003");
}

#[test]
fn logs_that_do_not_exist_in_this_clone_are_not_named() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    assert!(fact(&repo, "T001", "review log").is_some());
    let clone = repo.root().join("clone");
    repo.git_in(repo.root(), ["clone", "-q", repo.path("").to_str().unwrap(), clone.to_str().unwrap()])
        .succeeds();
    repo.arborist_in(&clone, ["state", "T001"]).succeeds().never("log ");
    repo.agent("exit 1\n");
    repo.write("tasks.md", "- [ ] T002 do b\n- [ ] T001 do a (depends on T002)\n");
    repo.commit("another task\n");
    repo.arborist(["gardener", "--new-run", "--max-retries", "1"]).exits(1);
    assert_eq!(fact(&repo, "T001", "agent log"), None, "it has not started in this run");
}

#[test]
fn a_review_without_a_verdict_is_not_reported_as_a_rejection() {
    let mute = "case \"$prompt\" in Review*) echo 'Looks good to me' ;; *) echo work > work.txt ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", mute);
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let said = repo.arborist(["gardener", "--max-retries", "1", "--new-run"]).exits(1);
    said.err("T001 attempt 1: the reviewer gave no verdict; its last line must be").never("rejected");
    let why = fact(&repo, "T001", "why").unwrap();
    assert!(why.starts_with("the reviewer gave no verdict") && why.ends_with("Looks good to me"), "{why}");
}

#[test]
fn a_missing_git_identity_stops_a_run_before_an_agent_is_called() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    repo.git(["config", "user.useConfigOnly", "true"]).succeeds();
    let mut command = repo.command("git", &repo.path(""));
    for who in ["AUTHOR", "COMMITTER"] {
        command.env_remove(format!("GIT_{who}_NAME")).env_remove(format!("GIT_{who}_EMAIL"));
    }
    let said = Run::of(command.args(["arborist", "gardener"]), b"").exits(128);
    said.err("git does not know who you are").err("git config --global user.name").err("user.email");
    assert_eq!((repo.calls(), repo.git(["rev-list", "--count", "HEAD"]).answer()), (0, "2".into()));
}

#[test]
fn a_runner_command_in_one_string_is_split_into_words_in_the_hint() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    repo.git(["config", "arborist.runners.other.command", "sh agent.sh"]).succeeds();
    let said = repo.arborist(["gardener", "--runner", "other"]).exits(1);
    said.err("'sh agent.sh' is not installed").err(r#"command = ["sh", "agent.sh"]"#);
}

#[test]
fn a_budget_limit_of_zero_is_refused() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    for option in ["--max-cost", "--max-tokens", "--max-time", "--max-task-cost"] {
        repo.arborist(["gardener", option, "0"]).exits(129).err("must be ");
    }
}

#[test]
fn the_next_command_of_a_failed_task_has_the_options_of_the_run() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", "exit 3");
    repo.arborist(["gardener", "--max-retries", "1", "--keep-going"]).exits(1);
    let next = "git arborist garden T001 --retry-failed --max-retries 1";
    assert_eq!(fact(&repo, "T001", "next").unwrap(), next);
    repo.agent(WORKER);
    run_next_command(&repo, "T001").succeeds();
}

#[test]
fn a_mistyped_task_or_plan_file_gets_a_suggestion() {
    let repo = TestRepo::planned("tasks.md", THREE, WORKER);
    repo.arborist(["gardener", "--only", "T0003"]).exits(1).err("did you mean 'T003'?");
    repo.arborist(["garden", "T01"]).exits(1).err("did you mean 'T001'?");
    repo.arborist(["gardener", "--until", "phase-9"]).exits(1).err("the plan has no task or phase 'phase-9'");
    repo.arborist(["state", "T009"]).exits(1).never("did you mean");
    repo.arborist(["gardener", "--tree", "task.md"]).exits(1).err("there is no file 'task.md'");
    repo.arborist(["plan", "task.md"]).exits(1).err("did you mean 'tasks.md'?").never("os error");
}

#[test]
fn a_phase_is_shown_as_running_only_while_one_of_its_tasks_runs() {
    let plan = "## Phase 1: Data\n- [ ] T001 do a\n- [ ] T002 do b\n";
    let repo = TestRepo::planned("tasks.md", plan, WORKER);
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.arborist(["state"]).succeeds().out("started").never("implementing");
}

#[test]
fn a_complete_plan_needs_no_clean_checkout() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    repo.write("new.txt", "mine\n");
    repo.arborist(["gardener"]).succeeds().out("nothing is left to do");
    assert_eq!(repo.read("new.txt"), "mine\n");
}

#[test]
fn the_next_prompt_says_that_the_last_review_gave_no_verdict() {
    let mute = "case \"$prompt\" in
Review*) [ $n = 1 ] && echo 'Looks good to me' || echo APPROVED ;;
*) echo $n > work.txt ;;
esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", mute);
    repo.arborist(["gardener"]).succeeds();
    let prompt = std::fs::read_to_string(repo.root().join("prompts/2")).unwrap();
    assert!(prompt.contains("--- Previous review (no verdict) ---"), "{prompt}");
}
