//! What a person reads about the merge queue, and the commands that are proposed: they work as printed, in the state in which
//! they are printed, and nothing is lost on the way.

use std::{fs, path::PathBuf};

use arborist_core::process::FileLock;
use arborist_testkit::{TestRepo, WORKER};

use crate::{
    pasted_hints::{hinted, paste},
    queue_repo::{QueueRepo, content},
};

const ABREAST: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n";

/// A repository with two tasks that were done on their own branches and are queued.
fn queued() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
    repo.git(["branch", "release"]).succeeds();
    repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).exits(1);
    repo.git(["config", "--unset", "arborist.merge.auto"]).succeeds();
    repo
}

#[test]
fn the_commits_of_a_lost_task_are_saved_before_its_ticket_is_dropped() {
    for is_restored in [false, true] {
        let repo = QueueRepo::with_finished(&["T1"]);
        repo.merge(&["add", "T1"]).succeeds();
        let tip = repo.git(["rev-parse", "arborist/task/main/T1"]).answer();
        repo.git(["update-ref", "-d", "refs/heads/arborist/task/main/T1"]).succeeds();
        let said = repo.merge(&["drop", "T1"]).succeeds().never("its branch is kept");
        said.out("its commits are saved as refs/arborist/saved/main/T1/branch-");
        let saved = repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
        assert_eq!(saved, tip);
        let said = repo.merge(&["status", "T1"]).succeeds().stderr();
        if is_restored {
            repo.arborist(["cleanup", "restore", "main/T1"]).succeeds().out("arborist/task/main/T1");
            repo.merge(&["T1"]).succeeds();
        } else {
            paste(&repo, &hinted(&said, "to queue it again, run: ")).succeeds().out("T1 is queued for main");
            repo.merge(&["run"]).succeeds().out("1 landed (T1)");
        }
    }
}

#[test]
fn a_dropped_task_is_queued_again_with_the_options_that_it_needs() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    repo.git(["branch", "release"]).succeeds();
    repo.merge(&["add", "T2", "--force"]).succeeds();
    repo.merge(&["add", "T1", "--into", "release"]).succeeds();
    let said = repo.merge(&["drop", "T2"]).succeeds().out("its branch is kept").stderr();
    paste(&repo, &hinted(&said, "to queue it again, run: ")).succeeds().out("T2 is queued for main");
    let said = repo.merge(&["drop", "T1"]).succeeds().stderr();
    paste(&repo, &hinted(&said, "to queue it again, run: ")).succeeds().out("T1 is queued for release");
}

#[test]
fn a_resolution_that_fails_a_gate_is_kept_for_the_person_who_made_it() {
    let repo = content();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.git(["config", "arborist.merge.gates.check.command", "! grep -q bad a.txt"]).succeeds();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "bad\n").unwrap();
    let said = repo.merge(&["resolve", "T2"]).exits(2);
    said.err("the gate 'check' failed on your resolution of T2: ")
        .err(&format!("; correct it in '{}'", place.display()))
        .err("T2 did not land: on your resolution, the gate 'check' failed")
        .err("  correct it, then run: git arborist merge resolve T2\n")
        .out("1 failed a gate (T2)")
        .never("in conflict");
    repo.merge(&["log"]).succeeds().out("your resolution of a.txt: the gate 'check' failed");
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "bad\n");
    // The same again, unless it is corrected.
    repo.merge(&["resolve", "T2"]).exits(2).err("on your resolution of T2");
    fs::write(place.join("a.txt"), "good\n").unwrap();
    repo.merge(&["resolve", "T2"]).succeeds().out("1 landed (T2)");
    assert_eq!(repo.show("main", "a.txt"), "good");
    assert!(!place.exists());
}

#[test]
fn a_resolution_that_conflicts_with_a_newer_commit_is_refused_with_the_reason() {
    let repo = content();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    repo.write("a.txt", "meanwhile\n");
    repo.commit("meanwhile\n");
    let said = repo.merge(&["resolve", "T2"]).exits(2);
    let said = said
        .err("'main' has changed since you opened this conflict, and your resolution conflicts with that");
    let said = said.stderr();
    assert_eq!(said.matches("T2 is in conflict").count(), 1, "{said}");
    let opened = paste(&repo, &hinted(&said, "open the new conflict with: ")).succeeds();
    let place = PathBuf::from(opened.stdout().trim_end());
    fs::write(place.join("a.txt"), "all of it\n").unwrap();
    repo.merge(&["resolve", "T2"]).succeeds().out("1 landed (T2)");
}

#[test]
fn no_task_lands_on_a_branch_that_lacks_the_start_of_its_run() {
    let refused = |repo: &TestRepo| {
        let said = repo.arborist(["merge", "T001", "--into", "release"]).exits(1);
        said.err("'T001' cannot land on 'release', which lacks the commit that it started from").stderr()
    };
    let repo = queued();
    let said = refused(&repo);
    repo.arborist(["merge", "list"]).succeeds().never("release");
    paste(&repo, &hinted(&said, "to land it on 'main', run: ")).succeeds().out("1 landed (T001)");
    let repo = queued();
    let said = refused(&repo);
    paste(&repo, &hinted(&said, "or merge 'main' into 'release' first: ")).succeeds();
    let into = ["merge", "T001", "--into", "release", "--scope", "main"];
    repo.arborist(into).succeeds().out("1 landed (T001)");
}

#[test]
fn a_task_queued_by_force_for_another_branch_gets_a_hint_to_land_on_its_own_branch() {
    let repo = queued();
    repo.arborist(["merge", "add", "T001", "--into", "release", "--force"]).succeeds();
    let home = "to land it on 'main' instead, run: ";
    let said = repo.arborist(["merge", "run"]).exits(1).never("--into release").stderr();
    hinted(&said, home);
    let said = repo.arborist(["gardener", "--jobs", "2"]).exits(1);
    said.out("it was queued for 'release', not for 'main'");
    let said = repo.arborist(["merge", "status", "T001"]).exits(1).stderr();
    paste(&repo, &hinted(&said, home)).succeeds().out("1 landed (T001)");
}

#[test]
fn an_incomplete_task_is_not_queued_while_a_run_is_active() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    let lock =
        FileLock::try_take(&repo.path(".git/arborist/locks/run-main"), "git arborist gardener").unwrap();
    for options in [&["T2"][..], &["T2", "--force"], &["add", "T2", "--force"]] {
        let said = repo.merge(options).exits(3).err("'T2' is not complete, and a run of 'main' is active");
        said.err("hint: wait until the run ends, then see the task with: git arborist state T2\n")
            .never("--force")
            .never("run it first");
    }
    repo.merge(&["list"]).succeeds().silent();
    drop(lock);
    repo.merge(&["T2", "--force"]).succeeds().out("1 landed (T2)");
}

#[test]
fn the_hint_to_land_by_force_repeats_the_whole_command() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    let said = repo.merge(&["T2", "T1", "--policy", "all-or-nothing"]).exits(1).stderr();
    let forced = hinted(&said, "or land it although it is not complete, if the gates pass: ");
    assert_eq!(forced, "git arborist merge T2 T1 --policy all-or-nothing --force");
    paste(&repo, &forced).succeeds().out("2 landed (T1, T2)");
}

#[test]
fn a_session_is_complete_when_a_later_run_has_landed_its_last_task() {
    let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
    let said = repo.arborist(["gardener", "--jobs", "2", "--policy", "first"]).exits(1);
    said.err("T002 did not land: the policy 'first' lands only the first task that passes")
        .never("--policy landed");
    let shown = repo.arborist(["merge", "status", "T002"]).succeeds();
    shown
        .out("T002 was not chosen: by the policy of the run, other tasks landed instead")
        .err("git arborist merge T002");
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    repo.arborist(["session", "list"]).succeeds().out("complete").never("paused");
}

#[test]
fn a_task_that_the_policy_did_not_choose_lands_with_the_hinted_command() {
    let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
    repo.arborist(["gardener", "--jobs", "2", "--policy", "first"]).exits(1);
    let said = repo.arborist(["merge", "status", "T002"]).succeeds().stderr();
    paste(&repo, &hinted(&said, "to land it too, run: ")).succeeds().out("1 landed (T002)");
}

#[test]
fn cleanup_keeps_logs_of_unmerged_tasks_and_branches_of_failed_ones() {
    let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
    let test = "test ! -e T002.txt";
    repo.arborist(["gardener", "--jobs", "2", "--max-retries", "1", "--test-command", test]).exits(1);
    let logs = || {
        let names = fs::read_dir(repo.path("spec/logs")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.to_string_lossy()[..4].to_owned()).collect();
        names.retain(|name| name.starts_with('T'));
        names.sort();
        names.dedup();
        names
    };
    assert_eq!(logs(), ["T001", "T002"]);
    repo.wait(60);
    repo.arborist(["cleanup", "--older-than", "0"]).succeeds().out("its task is not merged");
    assert_eq!(logs(), ["T002"]);
    let said = repo.arborist(["cleanup", "--older-than", "0", "--force"]).succeeds();
    let said = said.out("its task has failed, which is recorded only there").stderr();
    repo.arborist(["state"]).succeeds().out("failed");
    let calls = repo.calls();
    repo.arborist(["gardener", "--jobs", "2", "--test-command", test]).exits(1);
    assert_eq!(repo.calls(), calls, "it is not done again");
    let named = hinted(&said, "to remove it, name it: ");
    let said = paste(&repo, &format!("{named} --older-than 0")).succeeds().stderr();
    paste(&repo, &hinted(&said, "if you do not want to continue it, run: ")).succeeds();
    paste(&repo, &format!("{named} --older-than 0")).succeeds();
    repo.arborist(["state"]).succeeds().never("failed");
}

#[test]
fn commands_in_the_worktree_of_a_task_hint_at_the_checkout_of_its_run() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.merge.gates.check.command", "test ! -e T001.txt"]).succeeds();
    repo.arborist(["gardener", "--isolate"]).exits(1);
    repo.arborist(["worktree", "add", "T001"]).succeeds();
    let lane = PathBuf::from(repo.arborist(["worktree", "path", "T001"]).answer());
    let main = repo.path("").canonicalize().unwrap();
    let cd = format!("cd '{}' && git arborist gardener", main.display().to_string().trim_end_matches('/'));
    repo.arborist_in(&lane, ["merge", "status"]).exits(1).err(&cd);
    let said = repo.arborist_in(&lane, ["gardener"]).exits(2);
    said.err("'arborist/task/main/T001' is the branch of a task of the run of 'main'")
        .err(&cd)
        .never("--tick");
}

#[test]
fn merge_names_the_branch_whose_run_has_the_task() {
    let repo = queued();
    repo.git(["switch", "-q", "-c", "feature", "release"]).succeeds();
    repo.git(["merge", "-q", "main"]).succeeds();
    let said = repo.arborist(["merge", "T001"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "the run of 'main' has it: ")).succeeds().out("1 landed (T001)");
}

#[test]
fn a_task_done_in_the_checkout_reaches_another_branch_by_merging_the_whole_run() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["branch", "release"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let said = repo.arborist(["merge", "T001", "--into", "release", "--force"]).exits(1);
    let said = said.err("'T001' was done on 'main' itself").never("has not run").stderr();
    paste(&repo, &hinted(&said, "merge 'main' into 'release': ")).succeeds();
    assert!(repo.path("T001.txt").exists());
}

#[test]
fn a_gate_that_times_out_is_reported_with_its_limit() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.git(["config", "arborist.merge.gates.slow.command", "sleep 30"]).succeeds();
    repo.git(["config", "arborist.merge.gates.slow.timeout", "1"]).succeeds();
    repo.merge(&["T1"]).exits(2).err("the gate 'slow' took too long: 'sleep 30' timed out after 1 s");
    repo.merge(&["status"]).exits(2).err("raise its limit (merge.gates.*.timeout)");
}

#[test]
fn a_mistyped_task_is_reported_as_unknown_while_a_run_is_active() {
    let repo = QueueRepo::with_finished(&["schema"]);
    let _lock =
        FileLock::try_take(&repo.path(".git/arborist/locks/run-main"), "git arborist gardener").unwrap();
    for options in [&["shema"][..], &["shema", "--force"], &["add", "shema"]] {
        repo.merge(options).exits(1).err("there is no task 'shema'").err("did you mean 'schema'?");
    }
}

#[test]
fn checking_whether_a_run_is_active_does_not_take_its_lock() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    repo.merge(&["add", "T2", "--force"]).succeeds();
    repo.merge(&["drop", "T2"]).succeeds();
    assert!(!repo.path(".git/arborist/locks/run-main").exists(), "the lock of the run was not taken");
}

#[test]
fn an_unplanned_branch_is_recognised_before_the_first_run_and_lands_with_the_hinted_commands() {
    for has_run in [false, true] {
        let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
        if has_run {
            repo.arborist(["gardener", "--until", "T001"]).succeeds();
        }
        repo.arborist(["worktree", "add", "--unplanned", "spike"]).succeeds();
        let refused = repo.arborist(["merge", "spike"]).exits(1).never("run it first");
        let said = refused.err("'spike' is not in the plan, so no run completes it").stderr();
        let opened = paste(&repo, &hinted(&said, "to commit some, open its worktree: ")).succeeds();
        let place = PathBuf::from(opened.stdout().trim_end());
        fs::write(place.join("spike.txt"), "spike\n").unwrap();
        repo.git_in(&place, ["add", "."]).succeeds();
        repo.git_in(&place, ["commit", "-qm", "spike"]).succeeds();
        assert_eq!(hinted(&said, "then land it: "), "git arborist merge spike --force");
        let said = repo.arborist(["merge", "spike"]).exits(1).never("run it first").stderr();
        let land = hinted(&said, "land it although it is not complete, if the gates pass: ");
        paste(&repo, &land).succeeds().out("1 landed (spike)");
    }
}

#[test]
fn a_run_in_the_checkout_says_why_a_finished_task_could_not_land() {
    let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
    repo.git(["config", "arborist.merge.gates.lint.command", "nosuchprog"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--until", "T001"]).exits(2);
    let said = repo.arborist(["gardener"]).exits(2);
    let said = said.err("has not landed: the gate 'lint' could not run").stderr();
    let said = paste(&repo, &hinted(&said, "see what can be done with: ")).exits(2).stderr();
    repo.git(["config", "arborist.merge.gates.lint.command", "true"]).succeeds();
    let land = hinted(&said, "correct the command of the gate, then run: ");
    paste(&repo, &land).succeeds().out("1 landed (T001)");
}

#[test]
fn a_parked_landing_that_the_branch_has_left_behind_is_merged_again_by_the_hinted_command() {
    for deed in ["commit", "reset"] {
        let repo = queued();
        repo.write("T002.txt", "T002\n");
        repo.arborist(["merge", "run"]).exits(2).out("2 parked (T001, T002)");
        let landed = if deed == "commit" {
            repo.git(["add", "-A"]).succeeds();
            repo.git(["commit", "-qm", "mine"]).succeeds();
            let said = repo.arborist(["gardener"]).exits(2);
            said.err("'main' has moved since its landing was parked").never("in the way");
            "2 landed (T001, T002)"
        } else {
            repo.arborist(["reset", "T002"]).succeeds();
            "1 landed (T001)"
        };
        let said = repo.arborist(["merge", "status"]).exits(2).never("parked  ").never("stash");
        let said = said.out("'main' has moved since its landing was parked").stderr();
        let run = paste(&repo, &hinted(&said, "merge and test it again: "));
        if deed == "commit" {
            run.succeeds().out(landed);
        } else {
            run.exits(1).out(landed);
        }
    }
}

#[test]
fn a_task_that_waits_for_all_others_names_the_conflict_and_the_policy() {
    let agent = WORKER.replace("echo done", "echo \"$ARBORIST_TASK\" > shared.txt");
    let repo = TestRepo::planned("tasks.md", ABREAST, &agent);
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    let why = "T002 conflicts with T001 in shared.txt";
    repo.arborist(["gardener", "--jobs", "2", "--policy", "all-or-nothing"]).exits(1).out(why);
    let tip = || repo.git(["rev-parse", "main"]).answer();
    let main = tip();
    for task in ["T001", "T002"] {
        repo.arborist(["state", task]).succeeds().out(why);
        let said = repo.arborist(["merge", "status", task]).exits(1).out(why).stderr();
        let all = paste(&repo, &hinted(&said, "to land all of them or none, run: "));
        all.exits(1).err(why).out("2 waiting (T001, T002)");
        assert_eq!(tip(), main);
    }
    let said = repo.arborist(["merge", "status"]).exits(1).stderr();
    let rest = paste(&repo, &hinted(&said, "or land those that can land: "));
    let said = rest.exits(2).out("1 landed (T001), 1 in conflict (T002)").stderr();
    // No agent tries, so the conflict is reported once, also if the drain ends there.
    assert_eq!(said.matches("T002 is in conflict").count(), 1, "{said}");
    assert!(!said.contains("has a conflict that you must resolve"), "{said}");
    let repo = content();
    repo.branch_off("T3", "complete");
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    let said = repo.merge(&["T2", "T3", "--policy", "all-or-nothing"]).exits(1).stderr();
    assert_eq!(said.matches("T2 is in conflict: both sides changed a.txt").count(), 1, "{said}");
}

#[test]
fn a_task_with_unresolved_conflicts_in_its_worktree_is_not_queued_again() {
    let repo = content();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.arborist(["worktree", "add", "T2"]).answer());
    repo.git_in(&place, ["merge", "main"]).exits(1);
    let said = repo.merge(&["retry", "T2"]).exits(2).never("queued again");
    let said = said.err(&format!("error: '{}' has unresolved conflicts: a.txt\n", place.display())).stderr();
    repo.merge(&["status"]).exits(2).out("conflict");
    fs::write(place.join("a.txt"), "both\n").unwrap();
    paste(&repo, &hinted(&said, "resolve the conflicts, then commit: ")).succeeds();
    repo.merge(&["retry", "T2"]).succeeds().never("not committed");
    repo.merge(&["run"]).succeeds().out("1 landed (T2)");
    assert_eq!(repo.show("main", "a.txt"), "both");
}

#[test]
fn the_hint_to_commit_before_a_retry_includes_untracked_files() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let place = PathBuf::from(repo.arborist(["worktree", "add", "T1"]).answer());
    fs::write(place.join("new.txt"), "new\n").unwrap();
    fs::write(place.join("T1.txt"), "changed\n").unwrap();
    let said = repo.merge(&["retry", "T1"]).succeeds().err("not committed").stderr();
    let commit = hinted(&said, "commit them first: ");
    paste(&repo, &format!("export GIT_EDITOR='echo more >'; {commit}")).succeeds();
    repo.merge(&["retry", "T1"]).succeeds().never("not committed");
    assert_eq!(repo.show("arborist/task/main/T1", "new.txt"), "new");
    assert_eq!(repo.show("arborist/task/main/T1", "T1.txt"), "changed");
}

#[test]
fn hints_of_merge_select_the_run_that_was_named() {
    let repo = queued();
    repo.git(["checkout", "-q", "-b", "feature"]).succeeds();
    for verb in ["resolve", "retry", "drop", "status"] {
        let said = repo.arborist(["merge", verb, "T009", "--scope", "main"]).exits(1).stderr();
        paste(&repo, &hinted(&said, "see the queue with: ")).succeeds().out("T001");
        let said = repo.arborist(["merge", verb, "T002"]).exits(1).never("see the queue");
        let command = hinted(&said.stderr(), "the run of 'main' has queued it: ");
        assert_eq!(command, format!("git arborist merge {verb} T002 --scope main"));
    }
    let said = repo.arborist(["merge", "resolve", "T001", "--scope", "main"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "land it with: ")).succeeds().out("2 landed (T001, T002)");
}

#[test]
fn changed_settings_that_are_not_valid_are_reported_instead_of_accepted() {
    let repo = queued();
    repo.write(".arborist/config.toml", "[[merge.gates]]\nname = \"x\"\ncomand = \"true\"\n");
    let said = repo.arborist(["merge", "run"]).exits(1).never("--accept-changes");
    said.err("config.toml:3: unknown key 'merge.gates.x.comand'");
}
