//! Which tasks `git arborist gardener` takes up: `--only`, `--until`, `--keep-going`, `--retry-failed`.

use arborist_testkit::TestRepo;

const PLAN: &str = "\
## Phase 1: Ground

- [ ] T001 lay the ground
- [ ] T002 fence it in

## Phase 2: House

- [ ] T003 build the house
- [ ] T004 paint the house
";

/// Writes a file for each task, fails for those that `$ROOT/broken` names, and approves of everything.
pub(crate) const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p')
     if grep -qs "$task" "$ROOT/broken"; then echo "cannot do $task" >&2; exit 1; fi
     echo "$task" >> "$task.txt" ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, WORKER)
}

fn done(repo: &TestRepo) -> String {
    let mut names: Vec<String> = repo
        .git(["ls-files", "T*.txt"])
        .answer()
        .lines()
        .map(|line| line.trim_end_matches(".txt").to_owned())
        .collect();
    names.sort();
    names.join(" ")
}

#[test]
fn the_only_option_runs_the_named_tasks_and_all_tasks_of_a_named_phase() {
    let repo = repo();
    repo.arborist(["gardener", "--only", "T009"]).exits(1).matches_snapshot();
    repo.arborist(["gardener", "--only", "T001", "--only", "T002", "--dry-run"]).succeeds().never("T003");
    repo.arborist(["gardener", "--only", "T001"]).succeeds().matches_snapshot();
    assert_eq!(done(&repo), "T001");
    let state = repo.arborist(["state", "--json"]).succeeds().stdout();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let phase = state["tasks"][0]["id"].as_str().unwrap();
    repo.arborist(["gardener", "--only", phase]).succeeds().matches_snapshot();
    assert_eq!(done(&repo), "T001 T002");
}

#[test]
fn the_until_option_runs_tasks_up_to_the_named_one() {
    let repo = repo();
    repo.arborist(["gardener", "--until", "T003", "--dry-run"]).succeeds().matches_snapshot().never("T004");
    repo.arborist(["gardener", "--until", "T003"]).succeeds().matches_snapshot();
    assert_eq!(done(&repo), "T001 T002 T003");
    repo.arborist(["gardener", "--until", "T003"]).succeeds().matches_snapshot();
}

#[test]
fn failed_tasks_stay_failed_until_retry_failed_is_given() {
    let repo = repo();
    repo.write("../broken", "T002\n");
    let flags = ["gardener", "--max-retries", "1", "--keep-going"];
    repo.arborist(flags).exits(1).matches_snapshot();
    repo.arborist(flags).exits(1).matches_snapshot().never("completed");
    repo.write("../broken", "");
    repo.arborist(flags).exits(1).never("completed");
    repo.arborist(["gardener", "--retry-failed"]).succeeds().matches_snapshot();
    assert_eq!(done(&repo), "T001 T002 T003 T004");
    repo.arborist(["state", "--exit-code"]).succeeds();
    repo.arborist(["trailers", "log", "--task", "T002"]).succeeds().matches_snapshot();
}

#[test]
fn without_keep_going_no_task_is_started_after_a_failure() {
    let repo = repo();
    repo.write("../broken", "T001\n");
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1).matches_snapshot();
    assert_eq!(repo.calls(), 1);
}

#[test]
fn a_checkbox_without_an_id_gets_an_id_made_from_its_text() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] [P] two\n", WORKER);
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
    repo.arborist(["gardener"]).succeeds().never("completed");
}

#[test]
fn a_new_run_chooses_its_plan_file_again() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    let tree = r#"{"nodes": {"T009": {"id": "T009", "name": "nine"}}, "root_ids": ["T009"]}"#;
    repo.write("task-tree.json", tree);
    repo.commit("another plan\n");
    repo.arborist(["gardener", "--new-run"]).succeeds().matches_snapshot();
}

#[test]
fn gardener_warns_once_about_a_missing_test_command_and_says_when_nothing_is_left() {
    let repo = TestRepo::planned("tasks.md", "## Phase 1: A\n- [ ] T001 a\n- [ ] T002 b\n", WORKER);
    let phase = repo.arborist(["garden", "phase-1"]).exits(1);
    phase.matches_snapshot();
    let warning = "the test step always passes";
    repo.arborist(["gardener", "--until", "T001"]).succeeds().err(warning);
    repo.arborist(["gardener", "--dry-run"]).succeeds().matches_snapshot().never("nothing is left");
    repo.arborist(["gardener"]).succeeds().never(warning);
    repo.arborist(["gardener", "--dry-run"]).succeeds().matches_snapshot();
    repo.arborist(["gardener", "--new-run", "--dry-run"]).succeeds().out("T001 a\n").out("T002 b\n");
    repo.arborist(["gardener", "--new-run"]).succeeds().err(warning);
    let reports = repo.git(["ls-tree", "--name-only", "HEAD", "spec/reports/"]).answer();
    let names: Vec<&str> = reports.lines().filter(|name| name.contains("T001_run_")).collect();
    assert_eq!(names.len(), 2, "runs of one second have a report each: {reports}");
    repo.arborist(["state", "T001"]).succeeds().matches_snapshot();
}

#[test]
fn a_task_as_a_plain_argument_is_refused_with_the_needed_option() {
    let repo = repo();
    let said = repo.arborist(["gardener", "T001"]).exits(129).matches_snapshot();
    said.matches_snapshot();
    repo.arborist(["gardener", "--ony"]).exits(129).never("name tasks with");
}

/// A plan of two tasks that was run on `feature`, which was then merged into `main`.
fn merged() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.git(["switch", "-q", "-c", "feature"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--no-ff", "--no-edit", "feature"]).succeeds();
    repo
}

#[test]
fn tasks_that_a_merged_run_completed_are_not_done_again() {
    let repo = merged();
    let calls = repo.calls();
    repo.arborist(["gardener"]).exits(2).matches_snapshot();
    repo.arborist(["gardener", "--session-branch"]).exits(2).err("in the run of 'feature'");
    repo.git(["switch", "-q", "-c", "other"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).exits(2).err("in the run of 'feature'");
    repo.arborist(["state"]).succeeds().err("the run of 'feature' is not shown here");
    assert_eq!(repo.calls(), calls);
    repo.arborist(["gardener", "--new-run"]).succeeds().out("2 completed");
}

#[test]
fn after_the_tasks_of_a_merged_run_are_ticked_only_new_ones_run() {
    let repo = merged();
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 another\n- [ ] T003 three\n");
    repo.arborist(["plan", "--tick"]).succeeds();
    assert_eq!(repo.read("tasks.md"), "- [x] T001 one\n- [ ] T002 another\n- [ ] T003 three\n");
    repo.commit("more\n");
    repo.arborist(["gardener"]).succeeds().out("2 completed (T002, T003)");
}

#[test]
fn no_agent_is_called_for_later_tasks_while_changes_of_a_failed_task_break_the_tests() {
    let plan = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 [P] three\n";
    let breaks = "case \"$ARBORIST_TASK\" in T001) echo x > red; exit ;; esac\n";
    let repo = TestRepo::planned("tasks.md", plan, &format!("{breaks}{WORKER}"));
    let run = ["gardener", "--keep-going", "--max-retries", "1", "--test-command", "! test -e red"];
    repo.arborist(run).exits(1).matches_snapshot();
    assert_eq!(repo.calls(), 1, "no agent is paid for the others");
    repo.arborist(&run[..1]).exits(1).err("because the changes of 'T001'");
    repo.arborist(["reset", "--drop", "T001"]).succeeds();
    repo.agent(WORKER);
    repo.arborist(run).succeeds().out("3 completed");
}

#[test]
fn a_failed_task_whose_changes_pass_the_tests_does_not_stop_other_tasks() {
    let plan = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 [P] three\n";
    let repo = TestRepo::planned("tasks.md", plan, WORKER);
    repo.write("../broken", "T001\n");
    let tests = format!("echo x >> '{}'", repo.root().join("tests").display());
    let run = ["gardener", "--keep-going", "--max-retries", "1", "--test-command", &tests];
    repo.arborist(run).exits(1).out("2 completed (T002, T003), 1 failed (T001)");
    assert_eq!(repo.read("../tests").lines().count(), 4, "the baseline, after the failure, and two tasks");
}

#[test]
fn changes_of_a_rejected_task_are_listed_in_the_summary_and_for_later_reviewers() {
    for session in [false, true] {
        let repo = TestRepo::init();
        repo.write("tasks.md", "- [ ] T001 [P] first\n- [ ] T002 [P] second\n");
        repo.commit("a plan\n");
        repo.agent(
            "case \"$prompt\" in\n\
             *'Review the changes for task T001'*) echo 'REJECTED: evil' ;;\n\
             Review*) echo \"$prompt\" > \"$ROOT/prompt\"; echo APPROVED ;;\n\
             *T001*) echo EVIL > evil.txt ;;\n\
             *) echo good > good.txt ;; esac",
        );
        let options = if session { &["--session-branch"][..] } else { &[] };
        let run =
            [&["gardener", "--keep-going", "--max-retries", "1", "--test-command", "true"], options].concat();
        let said = repo.arborist(run).exits(1).stdout();
        let refs = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]).answer();
        let branch = refs.lines().find(|branch| branch.starts_with("arborist/") == session).unwrap();
        let scope = if session { format!(" --scope {branch}") } else { String::new() };
        let drop = format!("git arborist reset --drop T001{scope}");
        let wanted = format!("T001's changes on {branch}; to remove them: {drop}");
        assert!(said.contains(&wanted), "{said}");
        let prompt = std::fs::read_to_string(repo.root().join("prompt")).unwrap();
        assert!(prompt.contains("changed by task T001, which was rejected"), "{prompt}");
        assert!(prompt.contains("- evil.txt"), "{prompt}");
        let words: Vec<&str> = drop.split(' ').skip(2).collect();
        repo.arborist(words).succeeds();
        assert_eq!(repo.git(["ls-tree", "--name-only", branch, "evil.txt", "good.txt"]).answer(), "good.txt");
    }
}

#[test]
fn only_the_selected_tasks_are_counted_as_untested() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n", WORKER);
    let said = repo.arborist(["gardener", "--only", "T001"]).succeeds();
    said.err("no test command for 1 task:");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["garden", "T001"]).succeeds().err("no test command for 1 task:");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["gardener"]).succeeds().err("no test command for 2 tasks:");
}

#[test]
fn tasks_that_failed_in_an_earlier_call_are_counted_as_failed_not_as_left() {
    let repo = repo();
    repo.write("../broken", "T002\n");
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1).out("1 failed (T002), 2 left (T003, T004)");
    let again = repo.arborist(["gardener"]).exits(1).out("1 failed earlier (T002), 2 left (T003, T004)");
    again.out("failed T002 \"fence it in\" earlier, after 1 attempt");
    repo.arborist(["trailers", "log", "--task", "T002"]).succeeds().out("after 1 attempt").never("retries");
    // A task that waits for a failed one cannot run alone.
    let hint = "git arborist gardener --retry-failed";
    repo.arborist(["merge", "T003"]).exits(1).err("which failed").err(hint).never("--only");
}

#[test]
fn only_and_until_without_a_common_task_are_refused() {
    let repo = repo();
    let both = ["gardener", "--only", "T003", "--until", "T002"];
    repo.arborist(both).exits(1).err("--only T003 and --until T002 have no task in common");
    repo.arborist(["gardener", "--only", "T001", "--until", "T002"]).succeeds();
}

#[test]
fn an_unknown_option_is_reported_with_the_usage_line_of_the_help_at_the_end() {
    let repo = repo();
    for (args, usage) in [
        (&["logs", "--bogus"][..], "usage: git arborist logs [OPTIONS] [TASK]"),
        (&["gardener", "--jobz", "2"], "usage: git arborist gardener [OPTIONS]"),
        (&["merge", "log", "--bogus"], "usage: git arborist merge log [OPTIONS]"),
    ] {
        let said = repo.arborist(args).exits(129).err("error: ").err("\nhint: ");
        let stderr = said.stderr();
        assert_eq!(stderr.lines().last(), Some(usage), "{stderr}");
        assert!(!stderr.contains("\n\n"), "{stderr}");
    }
}

#[test]
fn hints_for_a_detached_head_name_a_branch_and_only_options_that_exist() {
    let repo = repo();
    repo.git(["switch", "-q", "--detach"]).succeeds();
    let tick = repo.arborist(["plan", "--tick", "tasks.md"]).exits(128);
    tick.err("check out the run's branch: git switch main").never("--scope");
    let state = repo.arborist(["state"]).exits(128).err("git switch main");
    state.err("or name the branch of the run with: --scope main");
}

#[test]
fn a_dry_run_names_the_failed_task_and_those_that_wait_for_it() {
    let repo = repo();
    std::fs::write(repo.root().join("broken"), "T002").unwrap();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    repo.arborist(["gardener", "--dry-run"]).succeeds().matches_snapshot();
    repo.arborist(["gardener", "--dry-run", "--retry-failed"]).succeeds().out("T002 fence it in").out("T004");
}

#[test]
fn the_hint_to_retry_a_failed_task_keeps_the_runner_option() {
    let repo = repo();
    std::fs::write(repo.root().join("broken"), "T001").unwrap();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let said = repo.arborist(["garden", "--runner", "robot"]).exits(1);
    said.err("hint: try it again with: git arborist garden T001 --retry-failed --runner robot");
}

#[test]
fn json_and_quiet_cannot_be_combined() {
    repo().arborist(["gardener", "--json", "--quiet"]).exits(129).err("cannot be used with '--quiet'");
}
