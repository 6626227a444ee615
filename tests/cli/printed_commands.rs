//! Commands that errors, summaries and states print do what the text around them says.

use std::fs;

use arborist_testkit::{Run, TestRepo, WORKER};

use crate::{
    pasted_hints::{hinted, paste},
    queue_repo::QueueRepo,
    shared_plan::{SharedPlan, WORKER as SHARED_WORKER},
};

const PHASES: &str = "# Phase 1: Model\n\n- [ ] T001 one\n- [ ] T002 two\n";

/// The command after a label of the summary or of `state`.
fn next(stdout: &str) -> String {
    let line = stdout.lines().find_map(|line| line.trim_start().strip_prefix("next "));
    line.unwrap_or_else(|| panic!("no next command in {stdout}")).trim().to_owned()
}

#[test]
fn a_failed_task_given_as_a_message_is_continued_with_the_printed_command() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", "exit 3");
    let run = repo.arborist(["garden", "-m", "Add x", "--max-retries", "1"]).exits(1);
    let command = next(&run.stdout());
    assert_eq!(command, "git arborist garden -m 'Add x' --retry-failed --max-retries 1");
    assert_eq!(next(&repo.arborist(["state", "add-x"]).succeeds().stdout()), command);
    let again = repo.arborist(["garden", "-m", "Add x"]).exits(1).stderr();
    assert_eq!(hinted(&again, "to try it again, run: "), "git arborist garden -m 'Add x' --retry-failed");
    repo.agent(WORKER);
    paste(&repo, &command).succeeds().out("1 completed (add-x)");
    assert!(!repo.path("T001.txt").exists(), "no task of the plan was run");
}

#[test]
fn a_failed_task_that_was_run_alone_is_continued_alone() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", "exit 3");
    let run = repo.arborist(["garden", "--max-retries", "1"]).exits(1);
    let command = next(&run.stdout());
    assert_eq!(command, "git arborist garden T001 --retry-failed --max-retries 1");
    repo.agent(WORKER);
    paste(&repo, &command).succeeds();
    assert!(repo.path("T001.txt").exists() && !repo.path("T002.txt").exists());
}

#[test]
fn uncommitted_changes_to_the_configuration_are_not_blamed_on_a_commit() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.write(".arborist/config.toml", "# a comment\n");
    repo.commit("configuration\n");
    repo.write(".arborist/config.toml", "max-retries = 2\n");
    let run = repo.arborist(["gardener"]).exits(2).never("hint: commit ");
    let said = run.stderr();
    let shown = paste(&repo, &hinted(&said, "the changes to .arborist/config.toml with: "));
    shown.succeeds().out("+max-retries = 2");
    paste(&repo, &hinted(&said, "to remove the new file .arborist/config.toml, run: ")).succeeds();
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn an_untracked_file_is_restored_by_the_hinted_commands_after_a_parked_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "the user's own\n");
    repo.write("other.txt", "untracked\n");
    let said = repo.merge(&["T1"]).exits(2).stderr();
    paste(&repo, &hinted(&said, "to land it, run: ")).succeeds();
    paste(&repo, &hinted(&said, "the same lines): ")).exits(1);
    assert!(repo.read("T1.txt").contains("the user's own"), "it is merged with what landed");
    assert_eq!(repo.read("other.txt"), "untracked\n");
}

#[test]
fn landings_that_the_user_merged_are_recorded_with_the_command_that_verify_prints() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.write("T001.txt", "mine\n");
    let run = repo.arborist(["gardener", "--jobs", "2"]).exits(2);
    paste(&repo, &next(&run.stdout())).succeeds();
    let run = repo.arborist(["verify", "HEAD"]).succeeds();
    let run =
        run.out("(records): the merge queue's log has no entry for the landings of T001").never("git fetch");
    paste(&repo, &hinted(&run.stderr(), "record them with: ")).succeeds();
    repo.arborist(["verify", "HEAD"]).succeeds().never("merge queue's log");
}

#[test]
fn a_phase_given_instead_of_a_task_is_reported_as_a_phase() {
    let repo = TestRepo::planned("tasks.md", PHASES, WORKER);
    let phase = "phase-1";
    let said = repo.arborist(["garden", phase]).exits(1).err("'phase-1' is a phase, not a task").stderr();
    assert_eq!(hinted(&said, "to run its tasks: "), "git arborist gardener --only phase-1");
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    let said = repo.arborist(["reset", phase]).exits(1).err("'phase-1' is a phase, not a task").stderr();
    paste(&repo, &hinted(&said, "that have started: ")).succeeds();
}

#[test]
fn wrong_arguments_get_a_hint_that_fits_them() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener", "tasks.md"]).exits(129).err("hint: name the plan with: --tree tasks.md\n");
    repo.arborist(["gardener", "T001"]).exits(129).err("hint: name tasks with: --only T001\n");
    repo.arborist(["hooks", "run", "foo"])
        .exits(129)
        .err("hint: see the commands with: git arborist hooks run -h\n");
    repo.arborist(["hooks", "install", "claude"]).exits(129).err("--agent claude\n");
    for command in ["merge", "work", "cleanup"] {
        let said = repo.arborist([command, "--bogus"]).exits(129).stderr();
        let second = said.lines().nth(1).unwrap_or_default();
        assert!(second.starts_with("hint: "), "{said}");
    }
}

#[test]
fn untracked_files_are_called_untracked_and_can_be_stashed_as_printed() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.write("notes", "mine\n");
    let said =
        repo.arborist(["gardener"]).exits(2).err("error: there are uncommitted new files: notes\n").stderr();
    paste(&repo, &hinted(&said, "stash them with: ")).succeeds();
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn cancel_expects_a_job_without_a_host_on_the_only_named_host() {
    let shared = SharedPlan::new(1, 1, SHARED_WORKER);
    shared.repo.plant("ssh", "#!/bin/sh\nprintf '%s\\n' \"$*\" > \"$ROOT/called\"\n");
    let root = shared.repo.root().to_owned();
    let cancel = |args: &[&str]| {
        let mut command = shared.repo.command("git-arborist-work", &shared.clone(0));
        Run::of(command.env("ROOT", &root).arg("cancel").args(args), b"")
    };
    cancel(&["--on", "ssh:one", "123"]).succeeds();
    assert!(fs::read_to_string(root.join("called")).unwrap().contains("-- one kill 123"));
    cancel(&["--on", "ssh:one,two", "123"])
        .exits(129)
        .err("job '123' names no host")
        .err("hint: give it as it was printed, such as one/123");
}

#[test]
fn a_runner_command_with_a_placeholder_in_one_string_is_split_by_the_hinted_command() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let command = format!("sh '{}/agent.sh' {{prompt}}", repo.root().display());
    repo.git(["config", "arborist.runners.other.command", &command]).succeeds();
    let said =
        repo.arborist(["gardener", "--runner", "other"]).exits(1).err("must be a list of words").stderr();
    paste(&repo, &hinted(&said, "a line for each word: ")).succeeds();
    let said = repo.arborist(["gardener", "--runner", "other"]).stderr();
    assert!(!said.contains("list of words"), "{said}");
}

#[test]
fn a_changed_gate_is_accepted_with_the_printed_command() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).exits(1);
    repo.write(".arborist/config.toml", "[merge.gates.all]\ncommand = \"true\"\n");
    let said = repo.arborist(["merge", "run"]).exits(2).stderr();
    hinted(&said, "to remove the new file .arborist/config.toml, run: ");
    let command = hinted(&said, "which also continues the run: ");
    assert!(!paste(&repo, &command).stderr().contains("you have not approved them"));
    repo.arborist(["merge", "run"]).succeeds();
}

#[test]
fn a_target_that_does_not_exist_is_refused() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["run", "--into", "nob"]).exits(1).err("there is no branch 'nob' to land on");
    let empty = TestRepo::with_options(&[]);
    for command in ["reset", "merge"] {
        let said = empty.arborist([command, "T001"]).exits(128).err("'main' has no commits yet");
        said.err("git commit --allow-empty");
    }
}

#[test]
fn errors_in_the_configuration_name_the_mistake_and_its_line() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    for (text, expected) in [
        ("test-command = ./t.sh\n", "config.toml:1: the value of 'test-command' must be in quotes"),
        ("runner = \"demo\"\n\nrunner = \"demo\"\n", "'runner' is set twice (first on line 1)"),
        ("\njobs = 0\n", "config.toml:2"),
    ] {
        repo.write(".arborist/config.toml", text);
        let said = repo.arborist(["gardener"]).stderr();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_task_that_was_dropped_from_the_queue_does_not_wait_to_land() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    repo.arborist(["state"]).succeeds().out("1 waiting to land");
    repo.merge(&["drop", "T1"]).succeeds();
    repo.arborist(["state"]).succeeds().out("1 not landed").never("waiting to land");
    repo.merge(&["add", "T1"]).succeeds();
    repo.arborist(["state"]).succeeds().out("1 waiting to land");
}
