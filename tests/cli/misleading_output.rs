//! Situations in which people who are new to git-arborist were misled: hints that failed as printed, statements that were
//! wrong, and warnings that were missing.

use arborist_testkit::{Run, TestRepo, WORKER};

use crate::pasted_hints::{hinted, paste};

fn planned(plan: &str) -> TestRepo {
    TestRepo::planned("tasks.md", plan, WORKER)
}

/// An agent that does this in each task, and approves all.
fn works(deed: &str) -> String {
    format!("case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) {deed} ;;\nesac")
}

#[test]
fn a_second_plan_with_the_same_ids_is_not_shown_or_ticked_as_done() {
    let repo = TestRepo::planned("a.md", "- [ ] T001 Alpha\n", WORKER);
    repo.write("b.md", "- [ ] T001 Other\n");
    repo.commit("another plan\n");
    repo.arborist(["gardener", "--tree", "a.md"]).succeeds();
    let refused = "this run is of the plan 'a.md', not of 'b.md'";
    repo.arborist(["gardener", "--tree", "b.md"]).exits(2).err(refused);
    let said = repo.arborist(["state", "--tree", "b.md"]).exits(2);
    said.err(refused).err("hint: leave --tree out to see the run: git arborist state\n").never("complete");
    let said = repo.arborist(["plan", "--tick", "b.md"]).exits(2);
    said.err(refused).err("git arborist plan --tick a.md");
    assert_eq!(repo.read("b.md"), "- [ ] T001 Other\n");
    repo.arborist(["state", "--tree", "a.md"]).succeeds().out("1 of 1 done");
    repo.arborist(["plan", "--tick", "a.md"]).succeeds().out("ticked T001 (a.md:1)");
}

#[test]
fn plan_tick_ticks_tasks_of_the_run_in_another_file_with_the_same_tasks() {
    let repo = TestRepo::planned("a.md", "- [ ] T001 Alpha\n- [ ] T002 Beta\n", WORKER);
    repo.write("b.md", "- [ ] T001 Alpha\n- [ ] T002 Other\n");
    repo.commit("another plan\n");
    repo.arborist(["gardener", "--tree", "a.md"]).succeeds();
    let said = repo.arborist(["plan", "--tick", "b.md"]).succeeds();
    said.out("ticked T001 (b.md:1)").err("'T002' is complete in the run, but is another task there");
    assert_eq!(repo.read("b.md"), "- [x] T001 Alpha\n- [ ] T002 Other\n");
}

#[test]
fn an_empty_test_command_counts_as_none_and_causes_a_warning() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    let warning = "warning: no test command for 1 task: the test step always passes";
    let run = ["gardener", "--only", "T001", "--test-command", ""];
    repo.arborist(run).succeeds().err(warning);
    repo.arborist(["gardener", "--dry-run", "--test-command", " "]).succeeds().out("test       no command");
    repo.arborist(["gardener", "--test-command", ""]).succeeds().err(warning);
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(log.contains("tests pass for \"two\" (no test command)"), "{log}");
}

#[test]
fn a_run_that_had_tests_warns_when_they_are_turned_off() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener", "--only", "T001", "--test-command", "true"])
        .succeeds()
        .never("no test command");
    repo.arborist(["gardener", "--test-command", ""]).succeeds().err("no test command for 1 task");
}

#[test]
fn a_tested_run_does_not_continue_without_tests_in_another_clone() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n");
    repo.arborist(["gardener", "--only", "T001", "--test-command", "true"]).succeeds();
    repo.git_in(repo.root(), ["clone", "-q", "repo", "clone"]).succeeds();
    let (clone, calls) = (repo.root().join("clone"), repo.calls());
    let refused = repo.arborist_in(&clone, ["gardener"]).exits(2);
    refused
        .err("error: no test command is known here, but T001 was tested in this run, so T002 would be complete without tests\n")
        .err("hint: give the same one again with --test-command; to continue without tests, add --test-command ''\n");
    assert_eq!(repo.calls(), calls);
    let again = ["gardener", "--only", "T002", "--test-command", "true"];
    repo.arborist_in(&clone, again).succeeds().never("no test command");
    repo.arborist_in(&clone, ["gardener", "--test-command", ""]).succeeds().err("no test command for 1 task");
    let log = repo.git_in(&clone, ["log", "--format=%s"]).answer();
    assert!(log.contains("tests pass for \"two\"\n"), "{log}");
    assert!(log.contains("tests pass for \"three\" (no test command)\n"), "{log}");
}

#[test]
fn a_run_does_not_continue_without_the_configured_test_command_that_is_gone() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.git(["config", "--unset", "arborist.test-command"]).succeeds();
    repo.arborist(["gardener"])
        .exits(2)
        .err("no test command is known here, but T001 was tested in this run");
}

#[test]
fn a_run_without_tests_warns_once_in_each_clone() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n");
    let warning = "warning: no test command for";
    repo.arborist(["gardener", "--only", "T001"]).succeeds().err(warning);
    repo.arborist(["gardener", "--only", "T002"]).succeeds().never(warning);
    repo.git_in(repo.root(), ["clone", "-q", "repo", "clone"]).succeeds();
    repo.arborist_in(&repo.root().join("clone"), ["gardener"]).succeeds().err(warning);
}

#[test]
fn a_skipped_commit_msg_hook_is_reported_once() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.write_script(".git/hooks/commit-msg", "exit 1");
    let note = "your commit-msg hook is not run";
    repo.arborist(["gardener", "--only", "T001"]).succeeds().err(note);
    repo.arborist(["gardener"]).succeeds().never(note);
}

#[test]
fn the_merge_of_a_session_branch_works_as_printed_although_the_plan_was_not_committed() {
    let repo = TestRepo::planned("README.md", "an app\n", WORKER);
    repo.write("tasks.md", "- [ ] T001 one\n");
    let said = repo.arborist(["gardener", "--session-branch"]).succeeds();
    let merge = said.stdout();
    let (_, merge) = merge.split_once("  merge  ").unwrap();
    paste(&repo, merge.trim()).succeeds();
    assert_eq!(repo.read("T001.txt"), "T001\n");
    repo.git(["status", "--porcelain"]).succeeds().silent();
}

#[test]
fn the_hint_for_a_dirty_checkout_does_not_stash_the_plan() {
    let repo = TestRepo::planned("README.md", "an app\n", WORKER);
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write("notes.txt", "mine\n");
    let said = repo.arborist(["gardener"]).exits(2);
    let said = said.err("there are uncommitted new files: notes.txt").stderr();
    paste(&repo, &hinted(&said, "or stash them with: ")).succeeds();
    assert!(!repo.path("notes.txt").exists());
    repo.arborist(["gardener"]).succeeds().out("1 completed");
    repo.git(["stash", "pop", "-q"]).succeeds();
    assert_eq!(repo.read("notes.txt"), "mine\n");
}

#[test]
fn a_run_warns_if_its_agents_have_changed_the_plan() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.agent(&works("echo x > \"$ARBORIST_TASK.txt\"; echo \"- [ ] T009 more\" >> tasks.md"));
    let said = repo.arborist(["gardener"]).succeeds();
    let said =
        said.err("warning: agents have changed 'tasks.md'").err("2 commits changed tasks.md: git log -p ");
    let said = said.stderr();
    repo.arborist(["gardener"]).exits(2).err("the plan 'tasks.md' has changed");
    paste(&repo, &hinted(&said, "to restore tasks.md, run: ")).succeeds();
    repo.arborist(["gardener"]).succeeds().out("nothing is left to do");
    let said = repo.arborist(["reset", "T002"]).succeeds().never("tasks.md").stderr();
    paste(&repo, &hinted(&said, "to undo them, run: ")).succeeds().err("removed T002.txt").never("tasks.md");
}

#[test]
fn an_agent_that_ticks_its_box_causes_no_warning_about_the_plan() {
    let repo = planned("- [ ] T001 one\n");
    repo.agent(&works("echo x > x.txt; echo '- [x] T001 one' > tasks.md"));
    repo.arborist(["gardener"]).succeeds().never("agents have changed");
}

#[test]
fn a_plan_that_an_agent_deletes_is_reported_as_deleted() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.agent(&works("echo x > x.txt; rm -f tasks.md"));
    let said = repo.arborist(["gardener", "--only", "T001"]).succeeds();
    said.err("agents have changed 'tasks.md'").err(" of T001 deleted tasks.md: git show ");
}

#[test]
fn list_items_that_are_not_tasks_are_named_with_their_lines() {
    let repo = TestRepo::init();
    repo.write(
        "c.md",
        "# Plan\n1. Make the thing\n2. Make the other thing\n\n| id | task |\n|----|----|\n| T001 | Foo |\n",
    );
    repo.arborist(["plan", "c.md"])
        .succeeds()
        .out("2 list items without a box are not tasks: c.md:2, c.md:3");
    repo.write("f.md", "## Todo\n- Make the thing\n- Make the other\n## Phase 2\n- [ ] Third\n");
    repo.arborist(["plan", "f.md"])
        .succeeds()
        .out("2 list items without a box are not tasks: f.md:2, f.md:3");
    repo.arborist(["plan", "--check", "f.md"]).succeeds().out("f.md:2:1: warning: this looks like a task");
    repo.write("g.md", "## Notes\n- Be careful\n- Be quick\n## Phase 2\n- [ ] Third\n- a remark\n");
    repo.arborist(["plan", "g.md"]).succeeds().never("without a box");
}

#[test]
fn a_misspelt_tag_at_the_end_of_a_task_is_reported() {
    let repo = TestRepo::init();
    repo.write("t.md", "- [ ] T001 Alpha\n- [ ] T003 Gamma [dependson:T001] [alow:x]\n");
    repo.arborist(["plan", "t.md"]).succeeds().err("the tag '[alow:x]' of 'T003' has no meaning");
    let said = repo.arborist(["plan", "--check", "t.md"]).succeeds();
    said.out("did you mean '[allow:x]'?").out("did you mean '[depends:T001]'?");
}

#[test]
fn a_reset_task_that_the_plan_skips_is_not_announced_for_the_next_run() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener"]).succeeds();
    repo.write("tasks.md", "- [-] T001 one\n- [ ] T002 two\n");
    repo.commit("skip one\n");
    repo.arborist(["gardener", "--accept-changes"]).succeeds();
    let said = repo.arborist(["reset", "T001"]).succeeds();
    said.out("the plan skips it, because its box is [-]").never("the next run starts it again");
}

#[test]
fn the_hint_about_protected_files_allows_all_of_them() {
    let repo = planned("- [ ] T001 one\n");
    for file in ["tests/a.sh", "tests/b c.sh"] {
        repo.write(file, "true\n");
    }
    repo.commit("tests\n");
    repo.git(["config", "arborist.protect", "tests/**"]).succeeds();
    repo.agent("rm -r tests; echo x > x.txt");
    let said = repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    said.err(
        "to allow this: --allow tests/a.sh --allow 'tests/b c.sh', or [allow:tests/a.sh] [allow:tests/b c.sh]",
    )
    .out("see all of it with: git arborist state T001");
}

#[test]
fn without_history_state_shows_only_the_output_of_the_last_attempt() {
    let repo = planned("- [ ] T001 one\n");
    let test = "test ! -e T001.txt || { cat count; false; }";
    repo.agent(
        "echo x > T001.txt; echo \"attempt $(date +%N)\" >> count; echo \"line $(wc -l < count)\" >> count",
    );
    repo.arborist(["gardener", "--max-retries", "2", "--test-command", test]).exits(1);
    let heading = "Output of the tests (stdout):";
    let brief = repo.arborist(["state", "T001"]).succeeds();
    let brief = brief.err("run: git arborist state T001 --history").stdout();
    assert_eq!(brief.matches(heading).count(), 1, "{brief}");
    let all = repo.arborist(["state", "T001", "--history"]).succeeds().stdout();
    assert_eq!(all.matches(heading).count(), 2, "{all}");
}

#[test]
fn the_first_mistake_of_a_configuration_file_is_reported_first() {
    let repo = planned("- [ ] T001 one\n");
    repo.write(".arborist/config.toml", "unknown = 1\nmax-retries = 0\njobs = \"many\"\n");
    repo.arborist(["gardener"]).exits(1).err("config.toml:1: ").never("config.toml:3");
    repo.write(".arborist/config.toml", "max-retries = 0\njobs = \"many\"\n");
    repo.arborist(["gardener"]).exits(1).err("config.toml:1: ");
}

#[test]
fn an_error_in_gits_configuration_does_not_suggest_quotes() {
    let repo = planned("- [ ] T001 one\n");
    repo.git(["config", "arborist.cleanup.older-than", "3x"]).succeeds();
    let said = repo.arborist(["cleanup"]).exits(1);
    said.err("must be an age such as 12h, 7d or 2w, but").never("in quotes");
}

#[test]
fn the_message_about_a_time_limit_names_its_setting() {
    let repo = planned("- [ ] T001 one\n");
    repo.agent("sleep 30");
    repo.git(["config", "arborist.timeouts.silence", "1"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "1"])
        .exits(1)
        .err("wrote nothing for 1 s (timeouts.silence)");
}

#[test]
fn the_printed_next_command_keeps_options_that_choose_agents() {
    let repo = planned("- [ ] T001 one\n");
    repo.agent("exit 1");
    let mut trusting = repo.command("git", &repo.path(""));
    trusting
        .args(["arborist", "gardener", "--max-retries", "1", "--runner", "robot", "--review-runner", "demo"]);
    let run = Run::of(trusting.env("ARBORIST_TRUST", "1"), b"");
    run.exits(1);
    let said = repo.arborist(["state", "T001"]).succeeds();
    said.out("--review-runner <the same as before>").out("--runner <the same as before>");
}

#[test]
fn hints_about_ids_name_the_file() {
    let repo = TestRepo::init();
    repo.write("c.md", "- [ ] T001 Alpha\n- [ ] t001 Again\n");
    let said = repo.arborist(["plan", "--check", "c.md"]).succeeds();
    said.out("write 'T001', unless another task has this id, or run: git arborist plan --assign-ids c.md");
}

#[test]
fn the_hint_about_a_stray_trailer_does_not_ask_to_change_the_subject() {
    let repo = TestRepo::init();
    repo.write("message", "x\n\nArborist-Step: implement\n");
    let said = repo.arborist(["hooks", "run", "commit-msg", "message"]).exits(1);
    said.err("if the commit is not about a task, remove the Arborist- lines").never("change its subject");
}

#[test]
fn a_session_that_is_ended_is_recorded_as_failed_only_if_tasks_are_left() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener", "--session-branch", "--only", "T001"]).succeeds();
    let session =
        repo.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/arborist/sessions"]).answer();
    let said = repo.arborist(["session", "end", "--session", &session]).succeeds();
    said.err("not all of its tasks are done, so it is recorded as failed");
}

#[test]
fn a_task_without_changes_is_not_landed_by_force() {
    let repo = planned("- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.agent("exit 3");
    repo.arborist(["gardener", "--isolate", "--max-retries", "1", "--only", "T001"]).exits(1);
    repo.arborist(["merge", "T001"]).exits(1).err("'T001' has failed").never("--force");
    repo.agent("case \"$prompt\" in\n \"Review\"*) echo REJECTED: no ;;\n *) echo x > work.txt ;;\nesac");
    repo.arborist(["gardener", "--isolate", "--max-retries", "1", "--only", "T002"]).exits(1);
    let said = repo.arborist(["merge", "T002"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "if the gates pass: ")).succeeds().out("1 landed (T002)");
}

#[test]
fn a_run_that_a_task_needs_to_land_has_worktrees() {
    let repo = planned("- [ ] T001 one\n");
    let said =
        repo.arborist(["merge", "T001"]).exits(1).err("'T001' has not run yet, because 'main' has no run");
    paste(&repo, &hinted(&said.stderr(), "start a run with: ")).succeeds().out("1 completed (T001)");
}

#[test]
fn a_refusal_of_the_hook_is_named_where_the_task_is_shown() {
    let repo = planned("- [ ] T001 one\n");
    repo.agent(&works("echo x >> work.txt"));
    for (said, why) in [
        ("", "refused the change and gave no reason"),
        ("echo lint: no tabs", "refused the change: lint: no tabs"),
    ] {
        repo.write_script(".git/hooks/pre-commit", &format!("#!/bin/sh\n{said}\nexit 1\n"));
        repo.arborist(["gardener", "--max-retries", "1", "--new-run"]).exits(1);
        let words = format!("why          the pre-commit hook {why}");
        repo.arborist(["state", "T001"]).succeeds().out(&words).never("why          it");
    }
}

#[test]
fn an_agent_that_switched_to_another_branch_is_the_first_that_is_named() {
    let repo = planned("- [ ] T001 one\n");
    repo.git(["branch", "other"]).succeeds();
    repo.agent(&works("git checkout -q other; echo x > work.txt"));
    let said = repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    said.out("after 1 attempt: the agent switched to another branch");
}

#[test]
fn plans_with_slips_say_what_to_write() {
    let repo = TestRepo::init();
    let child = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "children": ["T1"]}}, "root_ids": ["T1"]}"#;
    repo.write("p.json", child);
    let said = repo.arborist(["plan", "p.json"]).exits(1).err("'T1' is its own ancestor");
    said.err("hint: remove 'T1' from its own 'children' and 'parent'");
    let command =
        r#"{"nodes": {"T1": {"id": "T1", "name": "a", "test_commands": ["false"]}}, "root_ids": ["T1"]}"#;
    repo.write("p.json", command);
    let said = repo.arborist(["plan", "p.json"]).exits(1).err("'test_commands' of T1 must be an object");
    said.err(r#"hint: write it as {"command": "npm test"}"#);
    repo.write("p.json", command.replace("\"false\"", "{\"command\": \"npm test\"}"));
    repo.arborist(["plan", "p.json"]).succeeds();
    let plan = "- [ ] T001 a (depends on T009) [allow:**]\n- [ ] T002 b (depends on T002)\n- [~] T003 c\n- [!] T004 d\n";
    repo.write("p.md", plan);
    let said = repo.arborist(["plan", "--check", "p.md"]).exits(1).never("permitted for");
    said.out("a dependency names 'T009', which is not in the plan; it is ignored")
        .out("'T002' depends on itself; this is ignored")
        .out("4 tasks: 4 to do (1 marked partial, 1 marked blocked)");
}

#[test]
fn hints_about_missing_commits_fit_the_name() {
    let repo = planned("- [ ] T001 one\n");
    let said = repo.arborist(["verify", "HEAD~100..HEAD"]).exits(1).never("git fetch").stderr();
    paste(&repo, &hinted(&said, "see it with: ")).succeeds().out("a plan");
    repo.arborist(["verify", "nowhere..HEAD"]).exits(1).err("hint: get other branches with: git fetch\n");
    let said = repo.arborist(["trailers", "check"]).exits(129).stderr();
    paste(&repo, &hinted(&said, "for example: ")).succeeds().err("1 message checked");
}

#[test]
fn nobody_is_told_to_create_files_in_a_bare_repository() {
    let repo = planned("- [ ] T001 one\n");
    let bare = repo.root().join("bare.git");
    repo.git(["clone", "-q", "--bare", ".", bare.to_str().unwrap()]).succeeds();
    let said = repo.arborist_in(&bare, ["state"]).succeeds().never("create one of these files");
    said.err("hint: this repository is bare, so plans are found only in a clone of it");
}

#[test]
fn reset_and_reset_drop_do_not_propose_each_other_in_a_circle() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.agent(&works("echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\""));
    repo.arborist(["gardener"]).succeeds();
    repo.write("T001.txt", "T001\nmine\n");
    repo.commit("my own change\n");
    let refused =
        "the changes of T001 cannot be undone, because later commits have changed the same lines: T001.txt";
    let said = repo.arborist(["reset", "--drop", "T001"]).exits(2).err(refused).stderr();
    let said = paste(&repo, &hinted(&said, "run the task again: ")).succeeds();
    said.out("T001 is reset").err("later commits have changed the same lines of T001.txt").never("--drop");
    let said = repo.arborist(["reset", "--drop", "T001"]).exits(2).err(refused);
    let said = said.err("hint: 'T001' is already reset").never("git arborist reset").stderr();
    let later = "see them with: ";
    paste(&repo, &hinted(&said, later)).succeeds().out("my own change");
    // When the later commit is reverted, the changes can be undone.
    repo.git(["revert", "--no-edit", "HEAD~1"]).succeeds();
    repo.arborist(["reset", "--drop", "T001"]).succeeds().err("undid the changes of T001: removed T001.txt");
    // Without such commits, the hint of a reset works.
    let said = repo.arborist(["reset", "T002"]).succeeds().stderr();
    paste(&repo, &hinted(&said, "to undo them, run: ")).succeeds().err("undid the changes of T002");
}

#[test]
fn the_hint_of_a_reset_phase_leaves_out_tasks_that_are_reset() {
    let repo = planned("## Phase 1: Data\n- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["reset", "T001"]).succeeds();
    let said = repo.arborist(["reset", "phase-1"]).exits(1).stderr();
    let again = hinted(&said, "to reset its tasks that have started: ");
    assert_eq!(again, "git arborist reset T002");
    paste(&repo, &again).succeeds().out("T002 is reset");
    let said = repo.arborist(["reset", "phase-1"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "see its tasks with: ")).succeeds().out("T001");
}

#[test]
fn logs_that_were_removed_are_not_taken_for_tasks_that_have_not_run() {
    let repo = planned("- [ ] T001 one\n");
    repo.arborist(["gardener"]).succeeds();
    std::fs::remove_dir_all(repo.path("spec/logs")).unwrap();
    let said = repo.arborist(["logs"]).exits(1);
    let said = said.err("no task has run in this checkout, or its logs were removed\n").stderr();
    paste(&repo, &hinted(&said, "see which tasks have run with: ")).succeeds().out("1 of 1 done");
}

#[test]
fn tests_that_fail_after_a_task_are_not_said_to_fail_before_the_first_one() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    let run = |command| ["gardener", "--until", "T001", "--test-command", command];
    repo.arborist(run("false")).exits(1).err("the tests fail before the first task: 'false'");
    repo.arborist(run("true")).succeeds();
    let run = ["gardener", "--test-command", "false"];
    repo.arborist(run).exits(1).err("the tests fail before the next task: 'false'").never("first task");
    repo.arborist(run.into_iter().chain(["--new-run"])).exits(1).err("before the first task: 'false'");
}

#[test]
fn the_hint_after_three_interruptions_fits_session_resume() {
    let repo = planned("- [ ] T001 one\n");
    repo.agent("kill -INT $PPID; sleep 60\n");
    repo.arborist(["gardener"]).exits(130).err("run the same command again to continue");
    let command = |stderr: &str| {
        let hint = stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.split_once("run '"));
        hint.and_then(|(_, rest)| rest.split_once('\'')).expect("a command in a hint").0.to_owned()
    };
    let said = repo.arborist(["session", "resume"]).exits(130).stderr();
    let again = command(&said);
    assert!(again.starts_with("git arborist session resume ") && !again.contains("--"), "{again}");
    let said = paste(&repo, &again).exits(130).stderr();
    let retry = command(&said);
    let refused = "task 'T001' was interrupted 3 times in a row";
    let said = repo.arborist(["session", "resume"]).exits(2).err(refused).stderr();
    assert_eq!(command(&said), retry);
    assert_eq!(retry, format!("{again} -- --retry-failed"));
    repo.agent(WORKER);
    paste(&repo, &retry).succeeds().out("1 completed (T001)");
}

#[test]
fn the_hints_after_a_forced_landing_of_a_reset_task_settle_its_fork() {
    let by_plan = "to leave it as it is, change its box to [-] in the plan, then run: ";
    for label in [by_plan, "or let an agent do it: "] {
        let repo = planned("- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
        let fails = "if [ $ARBORIST_TASK = T002 ]; then echo a > a.txt; exit 4; fi; echo b > b.txt";
        repo.agent(&works(fails));
        let run = ["gardener", "--jobs", "2", "--max-retries", "1", "--test-command", "true"];
        repo.arborist(run).exits(1);
        repo.arborist(["reset", "T002"]).succeeds();
        let said = repo.arborist(["merge", "T002", "--force"]).succeeds().out("1 landed (T002)").stderr();
        let command = hinted(&said, label);
        assert!(command.starts_with("git arborist reset T002 && git arborist garden"), "{command}");
        if label == by_plan {
            let plan = repo.read("tasks.md").replace("[ ] T002", "[-] T002");
            repo.write("tasks.md", plan);
        } else {
            repo.agent(WORKER);
        }
        paste(&repo, &command).succeeds();
        repo.arborist(["state", "--exit-code"]).succeeds();
    }
}

#[test]
fn a_turn_before_the_plan_was_used_brings_back_the_plan_of_that_time() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.agent(&works("echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\""));
    repo.arborist(["garden", "-m", "Add x"]).succeeds();
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.write("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n- [ ] T005 more\n");
    repo.arborist(["gardener", "--accept-changes", "--until", "T002"]).succeeds();
    let list: serde_json::Value =
        serde_json::from_str(&repo.arborist(["session", "list", "--json"]).answer()).unwrap();
    let session = list["sessions"][0]["id"].as_str().unwrap();
    let said = repo.arborist(["session", "resume", session, "--turn", "1"]).succeeds();
    said.out("2 completed (T001, T002)").err("the plan of turn 1 is in force again").err("  - T005 more\n");
    repo.arborist(["gardener"]).succeeds().out("nothing is left to do");
}

#[test]
fn plans_can_name_phases_by_the_ids_that_plan_prints() {
    let repo = planned(
        "## Phase 1: A\n- [ ] T001 A\n## Phase 2: B\n- [ ] T002 B (depends on phase-1)\n\
         - [ ] T003 C (depends on T002, phase-1)\n## Data model\n- [ ] T004 D\n## Screens\n\
         - [ ] T005 E (depends on data-model)\n## End\n- [ ] T006 F (depends on screens)\n\
         - [ ] T007 G (depends on phase-1 and phase-9)\n- [ ] T008 H (depends on Phase 8)\n",
    );
    let plan = repo.arborist(["plan"]).succeeds().never("could not be understood");
    for (task, waits_for) in [
        ("T002 B (depends on phase-1)", "phase-1"),
        ("T003 C (depends on T002, phase-1)", "T002, phase-1"),
        ("T005 E (depends on data-model)", "data-model"),
        ("T006 F (depends on screens)", "screens"),
        ("T007 G (depends on phase-1 and phase-9)", "phase-1, T006"),
    ] {
        assert!(plan.stdout().contains(&format!("{task}  (waits for {waits_for})")), "{}", plan.stdout());
    }
    plan.err("tasks.md:12:44: a dependency names 'phase-9', which is not in the plan; it is ignored")
        .err("tasks.md:13:32: a dependency names 'Phase 8', which is not in the plan; it is ignored");
}

#[test]
fn the_number_of_an_issue_in_the_heading_of_a_phase_is_no_missing_phase() {
    let repo = planned("## Phase 1: A (after #189 merges)\n- [ ] T001 A\n");
    repo.arborist(["plan"]).succeeds().never("189', which is not in the plan");
}

#[test]
fn the_state_of_a_phase_is_named_as_in_the_overview() {
    let repo = planned(
        "## Phase 1: A\n- [ ] T001 one\n- [ ] T002 two\n## Phase 2: B\n- [ ] T003 three (depends on phase-1)\n",
    );
    repo.agent(&works("echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\""));
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.arborist(["state"]).succeeds().out("Phase 1: A  started");
    repo.arborist(["state", "phase-1"]).succeeds().out("  state        started\n").never("implementing");
    repo.arborist(["state", "phase-2"]).succeeds().out("  state        pending").never("implementing");
    let said = repo.arborist(["state", "T003"]).succeeds();
    said.out("depends on   phase-1 (started)").never("implementing");
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["state", "phase-1"]).succeeds().out("  state        complete");
}

#[test]
fn lines_that_were_read_as_steps_are_called_steps() {
    let repo = planned("- [ ] T001 A\n  - [ ] sub a\n  - [ ] sub b\n");
    let said = repo.arborist(["plan"]).succeeds();
    let words = "2 lines look like tasks but were read as steps of tasks, first at tasks.md:2";
    assert!(said.stdout().contains(words) || said.stderr().contains(words), "{}", said.stderr());
}

#[test]
fn reset_names_the_files_that_cannot_be_undone_for_the_user() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.agent(&works("echo \"$ARBORIST_TASK\" >> work.txt"));
    repo.arborist(["gardener"]).succeeds();
    let said = repo.arborist(["reset", "T001"]).succeeds();
    said.err("hint: later commits have changed the same lines of work.txt; to undo the changes of T001 there, edit it by hand\n");
}

#[test]
fn several_tasks_in_one_only_option_are_told_to_be_given_one_by_one() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n");
    let said = repo.arborist(["gardener", "--only", "T002,T003"]).exits(129);
    said.err("hint: give the option once for each task: --only T002 --only T003\n");
}
