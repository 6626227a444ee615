//! Tasks that are landed by force: a queue entry does not carry `--force`, because any process can write one, so every hint
//! names the command that has it.

use std::{fs, path::PathBuf};

use arborist_testkit::{TestRepo, WORKER};

use crate::{
    pasted_hints::{hinted, paste},
    queue_repo::QueueRepo,
};

const ANYWAY: &str = "to land it anyway, run: ";

#[test]
fn a_queued_task_that_is_not_complete_lands_with_the_hints_of_add_and_retry() {
    for verb in [&["add", "T2", "--force"][..], &["retry", "T2"]] {
        let repo = QueueRepo::with_finished(&["T1"]);
        repo.branch_off("T2", "test-pass");
        repo.merge(&["add", "T2", "--force"]).succeeds();
        repo.merge(&["run"]).exits(1).out("1 waiting (T2)");
        let said = repo.merge(verb).succeeds().never("land what is queued");
        let said = said.err("T2 is not complete, so 'git arborist merge run' does not land it").stderr();
        assert_eq!(hinted(&said, ANYWAY), "git arborist merge T2 --force");
        paste(&repo, &hinted(&said, ANYWAY)).succeeds().out("1 landed (T2)");
    }
}

#[test]
fn a_forced_task_keeps_the_gate_that_it_failed() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    repo.git(["config", "arborist.merge.gates.check.command", "! test -e T2.txt"]).succeeds();
    repo.merge(&["T2", "--force"]).exits(1).out("1 failed a gate (T2)");
    for _ in 0..2 {
        let said = repo.merge(&["status", "T2"]).exits(1).never("withheld");
        let said = said.out("gate failed").out("the gate 'check' failed").stderr();
        assert_eq!(hinted(&said, "although it is not complete: "), "git arborist merge T2 --force");
        let run = repo.merge(&["run"]).exits(1).out("1 failed a gate earlier (T2)");
        run.err("after a fix, run: git arborist merge T2 --force\n").never("retry");
    }
    // It is tested again, and fails again.
    repo.merge(&["T2", "--force"]).exits(1).out("1 failed a gate (T2)");
    let said = repo.merge(&["status", "T2"]).exits(1).stderr();
    let opened = paste(&repo, &hinted(&said, "to fix it, open its worktree: ")).succeeds();
    let place = PathBuf::from(opened.stdout().trim_end());
    repo.git_in(&place, ["mv", "T2.txt", "fixed.txt"]).succeeds();
    repo.git_in(&place, ["commit", "-qm", "fix"]).succeeds();
    paste(&repo, &hinted(&said, "although it is not complete: ")).succeeds().out("1 landed (T2)");
    repo.git(["cat-file", "-e", "main:fixed.txt"]).succeeds();
}

#[test]
fn a_gate_that_fails_on_the_target_stays_the_reason_of_a_forced_task() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    repo.merge(&["T2", "--force", "--test-command", "false"]).exits(2).err("fails on the target too");
    let said = repo.merge(&["status", "T2"]).exits(2);
    said.out(
        "the gate 'test' fails on the target too; it is testing, not complete; to land it anyway, run: ",
    );
    paste(&repo, "git arborist merge T2 --force").succeeds().out("1 landed (T2)");
}

#[test]
fn a_failed_task_that_runs_fewer_tests_lands_with_the_hinted_permission() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    let result = "test result: ok. $n passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
    repo.write("test.sh", format!("n=5; test ! -e T002.txt || n=3; echo \"{result}\"\n"));
    repo.commit("Add tests\n");
    repo.git(["config", "arborist.test-command", "sh test.sh"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--max-retries", "1"]).exits(1).out("1 failed (T002)");
    repo.arborist(["merge", "T002", "--force"]).exits(1).err("ran 3 tests (5 before)");
    let said = repo.arborist(["merge", "status", "T002"]).exits(1).out("gate failed").stderr();
    paste(&repo, &hinted(&said, "or accept that fewer tests run: ")).succeeds().out("1 landed (T002)");
}

#[test]
fn neither_force_nor_its_failed_gate_is_remembered_for_a_reset_task() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n", WORKER);
    let test = "test ! -e T002.txt";
    repo.git(["config", "arborist.test-command", test]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--max-retries", "1"]).exits(1).out("1 failed (T002)");
    repo.arborist(["merge", "T002", "--force"]).exits(1).out("1 failed a gate (T002)");
    repo.arborist(["reset", "T002"]).succeeds();
    let status = repo.arborist(["merge", "status"]);
    assert!(!status.report().contains("gate failed"), "{}", status.report());
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.arborist(["merge", "run"]).succeeds().never("1 landed");
    assert!(!fs::exists(repo.path("T002.txt")).unwrap());
}

#[test]
fn retry_refuses_a_task_whose_branch_is_gone_and_names_the_command_that_brings_it_back() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    repo.git(["branch", "-q", "-D", "arborist/task/main/T1"]).succeeds();
    let refused = || {
        let said = repo.merge(&["retry", "T1"]).exits(2).never("queued").never("merge run");
        said.err("'T1' is lost: its branch 'arborist/task/main/T1' is gone").stderr()
    };
    refused();
    repo.merge(&["run"]).exits(2).out("1 lost (T1)");
    paste(&repo, &hinted(&refused(), "bring it back with: ")).succeeds();
    let said = repo.merge(&["retry", "T1"]).succeeds().stderr();
    paste(&repo, &hinted(&said, "land what is queued with: ")).succeeds().out("1 landed (T1)");
}
