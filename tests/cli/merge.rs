//! `git arborist merge`: finished tasks land in order, and nobody's checkout is harmed.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::{
    pasted_hints::{hinted, paste},
    queue_repo::{QueueRepo, before_git},
};
use arborist_core::process::FileLock;
use arborist_testkit::{Run, TaskCommit, Terminal, TestRepo, WORKER};
use serde_json::Value;

#[test]
fn complete_tasks_land_in_order_while_the_target_is_not_checked_out() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.elsewhere();
    repo.merge(&["add", "T1", "T2"]).succeeds().matches_snapshot();
    repo.merge(&["list"]).succeeds().matches_snapshot();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    assert_eq!(
        repo.subjects("main"),
        ["task(main@T2@merge): land \"T2 does it\"", "task(main@T1@merge): land \"T1 does it\""]
    );
    assert_eq!(repo.show("main", "T1.txt"), "T1");
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    let source = repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
    for line in [
        "Arborist-Step: merge",
        "Arborist-Result: pass",
        &format!("Arborist-Source: {source}"),
        "Arborist-Gate: none",
        "Arborist-Session: s1",
    ] {
        assert!(trailers.contains(line), "{line} in {trailers}");
    }
    assert_eq!(repo.git(["rev-parse", "main^2"]).answer(), source, "a merge, never a fast-forward");
    repo.arborist(["trailers", "check", "main~2..main"]).succeeds();
    repo.arborist(["state", "--scope", "main", "--exit-code"]).succeeds().matches_snapshot();
    repo.merge(&["list"]).succeeds().silent();
    repo.merge(&["log"]).succeeds().matches_snapshot();
    repo.merge(&["status", "T1"]).succeeds().matches_snapshot();
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn a_task_is_queued_and_landed_by_one_command_and_only_once() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.subjects("main").len(), 1);
    assert_eq!(repo.read("T1.txt"), "T1", "the checkout of the target came along");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn later_commits_on_a_landed_task_branch_do_not_count_as_landed() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["T1"]).succeeds();
    let branch = "arborist/task/main/T1";
    let tree = repo.git(["rev-parse", &format!("{branch}^{{tree}}")]).answer();
    let later = repo.git(["commit-tree", &tree, "-p", branch, "-m", "later"]).answer();
    repo.git(["update-ref", &format!("refs/heads/{branch}"), &later]).succeeds();
    for force in [&["T1"][..], &["T1", "--force"]] {
        let said = repo.merge(force).exits(1);
        said.err(
            "'T1' is already done on the target, and 'arborist/task/main/T1' has 1 commit that 'main' lacks",
        )
        .err("git log main..arborist/task/main/T1");
    }
}

#[test]
fn state_reports_a_task_that_landed_without_a_review_as_not_done() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n");
    repo.commit("a plan\n");
    let path = repo.arborist(["worktree", "add", "T001"]).answer();
    std::fs::write(std::path::Path::new(&path).join("own.txt"), "own").unwrap();
    repo.git_in(std::path::Path::new(&path), ["add", "."]).succeeds();
    repo.git_in(std::path::Path::new(&path), ["commit", "-qm", "work by hand"]).succeeds();
    repo.arborist(["merge", "--force", "T001"]).succeeds();
    let words = "T001 landed without an approved review, and counts as not done";
    repo.arborist(["state"]).succeeds().err(words).err("tick its box").never("trailers check");
    repo.write("tasks.md", "- [x] T001 a\n- [ ] T002 b\n");
    repo.arborist(["state"]).succeeds().never(words);
}

const THREE: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 three\n";

/// A failed task whose work a person has corrected and landed, and the hints about it.
fn landed_after_failure() -> (TestRepo, String) {
    let repo = TestRepo::planned("tasks.md", THREE, WORKER);
    let test = "test ! -e T001.txt -o -e ok";
    let run = ["gardener", "--jobs", "2", "--max-retries", "1", "--keep-going", "--test-command", test];
    repo.arborist(run).exits(1).out("1 failed (T001)");
    let worktrees = repo.git(["worktree", "list", "--porcelain"]).answer();
    let lane = worktrees.split("\n\n").find(|lines| lines.contains("task/main/T001")).unwrap();
    let lane =
        lane.lines().find_map(|line| line.strip_prefix("worktree ")).map(std::path::Path::new).unwrap();
    std::fs::write(lane.join("ok"), "ok").unwrap();
    repo.git_in(lane, ["add", "ok"]).succeeds();
    repo.git_in(lane, ["commit", "-qm", "correct it"]).succeeds();
    let said = repo.arborist(["merge", "T001", "--force"]).succeeds().never("tick its box").stderr();
    repo.arborist(["state"]).succeeds().err("change its box to [-]").never("tick its box");
    (repo, said)
}

#[test]
fn a_failed_task_that_was_landed_by_force_can_be_skipped_in_the_plan() {
    let (repo, said) = landed_after_failure();
    let calls = repo.calls();
    repo.write("tasks.md", THREE.replace("[ ] T001", "[-] T001"));
    paste(&repo, &hinted(&said, "change its box to [-] in the plan, then run: "))
        .succeeds()
        .out("1 completed (T003)")
        .never("T001");
    assert_eq!(repo.calls(), calls + 2, "one call for T003, and its review");
}

#[test]
fn a_failed_task_that_was_landed_by_force_can_be_given_to_an_agent() {
    let (repo, said) = landed_after_failure();
    paste(&repo, &hinted(&said, "or let an agent do it: ")).succeeds().out("1 completed (T001)");
}

#[test]
fn a_reset_task_cannot_land_again_before_it_has_run() {
    let repo = TestRepo::planned("tasks.md", THREE, WORKER);
    repo.arborist(["gardener", "--jobs", "2", "--until", "T002"]).succeeds();
    repo.arborist(["reset", "T001"]).succeeds();
    let tip = repo.git(["rev-parse", "main"]).answer();
    let refused = repo.arborist(["merge", "T001"]).exits(1);
    let refused = refused.err("'T001' has been reset and has not run again").never("anyway").stderr();
    let said = repo.arborist(["merge", "T001", "--force"]).succeeds();
    let said =
        said.out("T001 has already landed, as ").never("T001 landed as").never("tick its box").stderr();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), tip);
    repo.arborist(["merge", "list"]).succeeds().err("nothing is queued");
    let calls = repo.calls();
    repo.write("tasks.md", THREE.replace("[ ] T001", "[-] T001"));
    paste(&repo, &hinted(&said, "change its box to [-] in the plan, then run: "))
        .succeeds()
        .out("1 completed (T003)");
    assert_eq!(repo.calls(), calls + 2, "one call for T003, and its review");
    repo.write("tasks.md", THREE);
    repo.arborist(["gardener", "--accept-changes", "--only", "T002"]).succeeds();
    paste(&repo, &hinted(&refused, "run it first: ")).succeeds().out("1 completed (T001)");
}

#[test]
fn without_force_only_complete_tasks_can_be_queued() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.branch_off("T2", "test-pass");
    repo.merge(&["add", "T2"]).exits(1).matches_snapshot();
    repo.merge(&["add", "T9", "--force"]).exits(1).matches_snapshot();
    repo.merge(&["statsu"]).exits(1).matches_snapshot();
    repo.merge(&["list"]).succeeds().silent();
    repo.merge(&["add", "T2", "--force"]).succeeds();
    repo.merge(&["run"]).exits(1).matches_snapshot();
    repo.merge(&["T2", "--force"]).succeeds().matches_snapshot();
}

#[test]
fn a_queued_task_that_was_reset_on_its_branch_does_not_land() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    repo.on_branch("T1", |repo| {
        repo.commit(TaskCommit::new("T1", "reset").trailer("Session", "s1").to_string());
    });
    repo.merge(&["run"]).exits(1).matches_snapshot();
    repo.merge(&["status"]).succeeds().matches_snapshot();
    assert!(repo.subjects("main").is_empty());
}

#[test]
fn a_queued_branch_lands_with_its_new_commits_but_a_rewritten_one_does_not() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.merge(&["add", "T1", "T2"]).succeeds();
    repo.on_branch("T1", |repo| {
        repo.write("more.txt", "more");
        repo.finish("T1");
    });
    repo.git(["update-ref", "refs/heads/arborist/task/main/T2", "main"]).succeeds();
    repo.merge(&["run"]).exits(1).matches_snapshot();
    assert_eq!(repo.show("main", "more.txt"), "more");
    repo.merge(&["status", "T2"]).succeeds().matches_snapshot();
    repo.git(["update-ref", "-d", "refs/heads/arborist/task/main/T2"]).succeeds();
    repo.merge(&["run"]).exits(2);
    repo.merge(&["status", "T2"]).exits(2).matches_snapshot();
    repo.merge(&["drop", "T2"]).succeeds().matches_snapshot();
    repo.merge(&["list"]).succeeds().silent();
}

#[test]
fn queueing_a_task_twice_keeps_one_ticket_which_new_work_updates() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["add", "T1"]).succeeds().matches_snapshot();
    repo.on_branch("T1", |repo| {
        repo.write("more.txt", "more");
        repo.finish("T1");
    });
    repo.merge(&["add", "T1"]).succeeds().matches_snapshot();
    let queue: Value = serde_json::from_str(&repo.merge(&["list", "--json"]).answer()).unwrap();
    assert_eq!(queue["tickets"].as_array().unwrap().len(), 1);
    let tip = repo.git(["rev-parse", "arborist/task/main/T1"]).answer();
    assert_eq!(queue["tickets"][0]["source"], tip.as_str());
}

#[test]
fn tickets_are_ordered_by_priority_which_rises_with_age() {
    let repo = QueueRepo::with_finished(&["T1", "T2", "T3", "T4"]);
    let order = |repo: &QueueRepo| -> Vec<String> {
        let queue: Value = serde_json::from_str(&repo.merge(&["list", "--json"]).answer()).unwrap();
        let tickets = queue["tickets"].as_array().unwrap();
        tickets.iter().map(|ticket| ticket["task"].as_str().unwrap().to_owned()).collect()
    };
    repo.merge(&["add", "T1", "T2", "--priority", "3"]).succeeds();
    repo.merge(&["add", "T3", "--priority", "0"]).succeeds();
    assert_eq!(order(&repo), ["T3", "T1", "T2"]);
    repo.wait(1800);
    repo.merge(&["add", "T4", "--priority", "0"]).succeeds();
    assert_eq!(order(&repo), ["T1", "T2", "T3", "T4"], "after half an hour they are as urgent, and older");
    repo.merge(&["add", "T4", "--priority", "urgent"]).exits(129);
}

#[test]
fn an_invalid_priority_in_a_ticket_counts_as_the_lowest() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.merge(&["add", "T1", "--priority", "5"]).succeeds();
    repo.merge(&["add", "T2", "--priority", "0"]).succeeds();
    let name = "refs/arborist/queue/tickets/main/T2";
    let message = repo.git(["log", "-1", "--format=%B", name]).answer();
    let spoilt = message.replace("\"priority\":0", "\"priority\":\"now!\"");
    assert_ne!(message, spoilt);
    let tree = repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let parent = repo.git(["rev-parse", name]).answer();
    let commit = repo.commit_object(&tree, &[parent], spoilt + "\n");
    repo.git(["update-ref", name, &commit]).succeeds();
    let list = repo.merge(&["list"]).answer();
    assert!(list.lines().nth(1).unwrap().starts_with("T1 "), "{list}");
}

#[test]
fn a_queued_task_waits_for_its_dependency_and_can_land_together_with_it() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b", "depends_on": ["T1"]}}, "root_ids": ["T1", "T2"]}"#;
    let repo = QueueRepo::planned(plan, &["T1", "T2"]);
    repo.merge(&["add", "T2", "--priority", "0"]).succeeds();
    repo.merge(&["run"]).exits(1).matches_snapshot();
    repo.merge(&["status"]).succeeds().matches_snapshot();
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    assert_eq!(repo.subjects("main"), ["task(main@T2@merge): land \"b\"", "task(main@T1@merge): land \"a\""]);
}

#[test]
fn a_task_whose_work_the_target_already_has_is_not_recorded_as_merged() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.git(["merge", "-q", "--ff-only", "arborist/task/main/T1"]).succeeds();
    repo.git(["branch", "-f", "arborist/task/main/T3", "main"]).succeeds();
    repo.merge(&["T3", "--force"]).succeeds().matches_snapshot();
    repo.merge(&["log"]).succeeds().matches_snapshot();
    assert!(repo.subjects("main").iter().all(|subject| !subject.contains("@merge")));
}

#[test]
fn another_target_is_used_only_if_an_option_names_an_existing_branch() {
    let repo = QueueRepo::with_finished(&["T1"]);
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.merge(&["add", "T1", "--into", "develop"]).exits(1).matches_snapshot();
    repo.git(["branch", "develop"]).succeeds();
    repo.merge(&["T1", "--into", "develop"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(repo.show("develop", "T1.txt"), "T1");
    repo.git(["branch", "-D", "develop"]).succeeds();
    repo.merge(&["add", "T1"]).succeeds();
}

#[test]
fn uncommitted_changes_of_the_user_survive_a_landing() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.write("mine.txt", "mine");
    repo.write("kept.txt", "changed");
    repo.write("staged.txt", "staged");
    repo.git(["add", "staged.txt"]).succeeds();
    let before = repo.git(["status", "--porcelain"]).answer();
    repo.merge(&["T1"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), before);
    assert_eq!(repo.read("T1.txt"), "T1");
    assert_eq!((repo.read("mine.txt"), repo.read("kept.txt")), ("mine".into(), "changed".into()));
}

#[test]
fn an_untracked_gitattributes_file_does_not_change_the_result_of_a_merge() {
    let repo = QueueRepo::with_finished(&[]);
    repo.write("list.txt", "a\n");
    repo.commit("a list\n");
    for task in ["T1", "T2"] {
        repo.git(["branch", &format!("arborist/task/main/{task}")]).succeeds();
        repo.on_branch(task, |repo| {
            repo.write("list.txt", format!("a\n{task}\n"));
            repo.finish(task);
        });
    }
    repo.write(".gitattributes", "* merge=union\n");
    repo.merge(&["add", "T1", "T2"]).succeeds();
    repo.merge(&["run"]).exits(2).matches_snapshot();
}

#[test]
fn merge_status_exits_with_1_if_a_ticket_waits_longer_than_the_limit() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    repo.merge(&["status"]).succeeds();
    repo.wait(3601);
    repo.merge(&["status"]).exits(1).matches_snapshot();
    repo.git(["config", "arborist.merge.wait-limit", "7200"]).succeeds();
    repo.merge(&["status"]).succeeds();
}

#[test]
fn delete_branches_removes_landed_branches_that_are_not_checked_out() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.git(["config", "arborist.merge.delete-branches", "true"]).succeeds();
    let lane = repo.root().join("lane");
    repo.git(["worktree", "add", "-q", lane.to_str().unwrap(), "arborist/task/main/T2"]).succeeds();
    repo.merge(&["T1", "T2"]).succeeds();
    let left = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist"]).answer();
    assert_eq!(left, "arborist/task/main/T2", "what is checked out stays");
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn only_one_process_lands_on_a_target_at_a_time() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let lock = repo.path(".git/arborist/locks/landing-main");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let file = std::fs::File::create(&lock).unwrap();
    file.lock().unwrap();
    repo.merge(&["run"]).exits(3).matches_snapshot();
    // A child that another test is just starting may have a copy of the descriptor.
    file.unlock().unwrap();
    repo.merge(&["run"]).succeeds();
}

#[test]
fn tasks_land_in_sha256_reftable_and_bare_repositories() {
    for options in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        if arborist_testkit::TestRepo::init().git(["init", "-q", options[0], "probe"]).code() != 0 {
            continue;
        }
        let repo = QueueRepo::on(options, &["T1", "T2"]);
        repo.merge(&["add", "T1", "T2"]).succeeds();
        repo.merge(&["run"]).succeeds().matches_snapshot();
        repo.merge(&["log"]).succeeds().matches_snapshot();
    }
    let repo = QueueRepo::with_finished(&["T1"]);
    let bare = repo.root().join("bare.git");
    repo.git(["clone", "-q", "--mirror", ".", bare.to_str().unwrap()]).succeeds();
    repo.arborist_in(&bare, ["merge", "T1"]).succeeds().matches_snapshot();
}

#[test]
fn a_checkout_that_is_switched_during_a_landing_keeps_its_branch_and_files() {
    for asked in ["read-tree -m", "update-ref -m arborist: land"] {
        let repo = QueueRepo::with_finished(&["T1"]);
        repo.write("kept.txt", "mine");
        repo.git(["branch", "other"]).succeeds();
        let other = repo.git(["rev-parse", "other"]).answer();
        before_git(&repo, asked, "git switch -q other");
        let mut command = repo.command("git-arborist-merge", &repo.path(""));
        let report = Run::of(command.args(["T1", "--scope", "main"]), b"");
        std::fs::remove_file(repo.bin().join("git")).unwrap();
        assert!(repo.root().join("done").exists(), "{}", report.report());
        assert_eq!(repo.git(["rev-parse", "other"]).answer(), other, "{asked}: it was not asked for");
        report.succeeds().matches_snapshot();
        assert_eq!(repo.show("main", "T1.txt"), "T1");
        if asked.starts_with("read-tree") {
            assert_eq!(repo.git(["status", "--porcelain"]).answer(), " M kept.txt");
        }
        assert_eq!(repo.read("kept.txt"), "mine");
    }
}

#[test]
fn a_task_named_twice_in_a_command_counts_once() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1", "T1"]).succeeds().matches_snapshot();
    repo.merge(&["retry", "T1", "T1"]).succeeds().matches_snapshot().never("tried again");
    repo.merge(&["drop", "T1", "T1"]).succeeds().matches_snapshot();
    repo.merge(&["T1", "T1"]).succeeds().matches_snapshot();
}

#[test]
fn merge_run_watch_continues_while_another_process_holds_the_lock() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.merge(&["add", "T1"]).succeeds();
    let path = repo.path(".git/arborist/locks/run-main");
    let lock = FileLock::try_take(&path, "a test").unwrap();
    let mut command = repo.command("git-arborist-merge", &repo.path(""));
    command.args(["run", "--watch", "1"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut watch = command.spawn().unwrap();
    let mut lines = BufReader::new(watch.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("the queue is checked again in 1 s")), "it ended");
    drop(lock);
    assert!(lines.any(|line| line.contains("T1 landed as")), "it ended");
    let signal = repo.command("kill", &repo.path("")).args(["-s", "INT", &watch.id().to_string()]).status();
    assert!(signal.unwrap().success());
    lines.for_each(drop);
    watch.wait().unwrap();
}

#[test]
fn a_task_that_was_done_in_the_checkout_has_nothing_to_land() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T2.txt", "T2");
    repo.finish("T2");
    repo.merge(&["T2"]).succeeds().matches_snapshot();
}

#[test]
fn a_missing_run_is_an_error_and_not_an_empty_queue() {
    let repo = QueueRepo::with_finished(&["T1"]);
    for verb in [&["list"][..], &["status"], &["log"], &["run"], &["add", "T1"]] {
        let said = repo.merge(&[verb, &["--scope", "nope"]].concat()).exits(1);
        said.matches_snapshot();
    }
    repo.arborist(["worktree", "list", "--scope", "nope"]).exits(1).matches_snapshot();
    repo.merge(&["add", "T1"]).succeeds();
    repo.git(["branch", "-m", "main", "other"]).succeeds();
    repo.merge(&["list", "--scope", "main"]).succeeds().matches_snapshot();
}

#[test]
fn lists_have_headings_and_fit_on_a_terminal() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.git(["branch", "release/of-a-year-with-a-long-name"]).succeeds();
    repo.merge(&["T1"]).succeeds();
    repo.git(["config", "arborist.merge.gates.check.command", "false"]).succeeds();
    let _ = repo.merge(&["T2", "--into", "release/of-a-year-with-a-long-name"]).exits(2);
    let _ = repo.merge(&["T2"]).exits(2);
    for (verb, first) in [("list", "task  state"), ("log", "task  outcome")] {
        let piped = repo.merge(&[verb]).succeeds().stdout();
        assert!(piped.starts_with(first), "{piped}");
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "merge", verb, "--scope", "main"]);
        let (code, screen, _) = Terminal::start(command, 60).ends();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.lines().take(1).all(|line| line.starts_with(first)), "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    }
}

#[test]
fn an_unreadable_ticket_is_reported_and_blocks_no_other_ticket() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.elsewhere();
    repo.merge(&["add", "T1", "T2"]).succeeds();
    repo.write("garbage", "garbage");
    let blob = repo.git(["hash-object", "-w", "garbage"]).answer();
    repo.git(["update-ref", "refs/arborist/queue/tickets/main/T2", &blob]).succeeds();
    repo.merge(&["status"]).succeeds().matches_snapshot();
    repo.merge(&["list", "--json"]).succeeds().err("which could not be read");
    repo.merge(&["run"]).succeeds().out("1 landed (T1)").err("which could not be read");
    let again = repo.merge(&["T2"]).succeeds().out("1 landed (T2)").never("update-ref -d");
    again.err("'refs/arborist/queue/tickets/main/T2' could not be read").err(&blob);
}

#[test]
fn a_pending_task_without_a_branch_cannot_be_queued_by_force() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n", WORKER);
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    let said = repo.arborist(["merge", "add", "T002", "--force"]).exits(1);
    said.err("error: 'T002' has not run in its own worktree, so there is nothing to land");
}
