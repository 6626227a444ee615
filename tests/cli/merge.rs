//! `git arborist merge`: finished tasks land in order, and nobody's checkout is harmed.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use crate::orchard::{Orchard, before_git};
use arborist_core::process::FileLock;
use arborist_testkit::{Run, TaskCommit, Terminal};
use serde_json::Value;

#[test]
fn what_is_done_lands_in_order_without_a_checkout() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.elsewhere();
    orchard.merge(&["add", "T1", "T2"]).succeeds().shows();
    orchard.merge(&["list"]).succeeds().shows();
    orchard.merge(&["run"]).succeeds().shows();
    assert_eq!(
        orchard.subjects("main"),
        ["task(main@T2@merge): land \"T2 does it\"", "task(main@T1@merge): land \"T1 does it\""]
    );
    assert_eq!(orchard.show("main", "T1.txt"), "T1");
    let trailers = orchard.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    let source = orchard.git(["rev-parse", "arborist/task/main/T2"]).answer();
    for line in [
        "Arborist-Step: merge",
        "Arborist-Result: pass",
        &format!("Arborist-Source: {source}"),
        "Arborist-Gate: none",
        "Arborist-Session: s1",
    ] {
        assert!(trailers.contains(line), "{line} in {trailers}");
    }
    assert_eq!(orchard.git(["rev-parse", "main^2"]).answer(), source, "a merge, never a fast-forward");
    orchard.arborist(["trailers", "check", "main~2..main"]).succeeds();
    orchard.arborist(["state", "--scope", "main", "--exit-code"]).succeeds().shows();
    orchard.merge(&["list"]).succeeds().silent();
    orchard.merge(&["log"]).succeeds().shows();
    orchard.merge(&["status", "T1"]).succeeds().shows();
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn a_task_is_queued_and_landed_by_one_command_and_only_once() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.merge(&["T1"]).succeeds().shows();
    orchard.merge(&["T1"]).succeeds().shows();
    assert_eq!(orchard.subjects("main").len(), 1);
    assert_eq!(orchard.read("T1.txt"), "T1", "the checkout of the target came along");
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn only_what_is_complete_is_taken_unless_it_is_forced() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.branch_off("T2", "test-pass");
    orchard.merge(&["add", "T2"]).exits(1).shows();
    orchard.merge(&["add", "T9", "--force"]).exits(1).shows();
    orchard.merge(&["statsu"]).exits(1).shows();
    orchard.merge(&["list"]).succeeds().silent();
    orchard.merge(&["add", "T2", "--force"]).succeeds();
    orchard.merge(&["run"]).exits(1).shows();
    orchard.merge(&["T2", "--force"]).succeeds().shows();
}

#[test]
fn a_task_that_is_complete_no_more_is_not_merged() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.on_branch("T1", |orchard| {
        orchard.commit(TaskCommit::new("T1", "reset").trailer("Session", "s1").to_string());
    });
    orchard.merge(&["run"]).exits(1).shows();
    orchard.merge(&["status"]).succeeds().shows();
    assert!(orchard.subjects("main").is_empty());
}

#[test]
fn a_branch_that_grew_is_landed_as_it_is_now_and_one_that_was_rewritten_is_not() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.merge(&["add", "T1", "T2"]).succeeds();
    orchard.on_branch("T1", |orchard| {
        orchard.write("more.txt", "more");
        orchard.finish("T1");
    });
    orchard.git(["update-ref", "refs/heads/arborist/task/main/T2", "main"]).succeeds();
    orchard.merge(&["run"]).exits(1).shows();
    assert_eq!(orchard.show("main", "more.txt"), "more");
    orchard.merge(&["status", "T2"]).succeeds().shows();
    orchard.git(["update-ref", "-d", "refs/heads/arborist/task/main/T2"]).succeeds();
    orchard.merge(&["run"]).exits(1);
    orchard.merge(&["status", "T2"]).succeeds().shows();
    orchard.merge(&["drop", "T2"]).succeeds().shows();
    orchard.merge(&["list"]).succeeds().silent();
}

#[test]
fn to_queue_it_twice_is_to_queue_it_once_and_new_work_supersedes() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.merge(&["add", "T1"]).succeeds().shows();
    orchard.on_branch("T1", |orchard| {
        orchard.write("more.txt", "more");
        orchard.finish("T1");
    });
    orchard.merge(&["add", "T1"]).succeeds().shows();
    let queue: Value = serde_json::from_str(&orchard.merge(&["list", "--json"]).answer()).unwrap();
    assert_eq!(queue["tickets"].as_array().unwrap().len(), 1);
    let tip = orchard.git(["rev-parse", "arborist/task/main/T1"]).answer();
    assert_eq!(queue["tickets"][0]["source"], tip.as_str());
}

#[test]
fn the_urgent_go_first_and_the_old_become_urgent() {
    let orchard = Orchard::grown(&["T1", "T2", "T3", "T4"]);
    let order = |orchard: &Orchard| -> Vec<String> {
        let queue: Value = serde_json::from_str(&orchard.merge(&["list", "--json"]).answer()).unwrap();
        let tickets = queue["tickets"].as_array().unwrap();
        tickets.iter().map(|ticket| ticket["task"].as_str().unwrap().to_owned()).collect()
    };
    orchard.merge(&["add", "T1", "T2", "--priority", "3"]).succeeds();
    orchard.merge(&["add", "T3", "--priority", "0"]).succeeds();
    assert_eq!(order(&orchard), ["T3", "T1", "T2"]);
    orchard.wait(1800);
    orchard.merge(&["add", "T4", "--priority", "0"]).succeeds();
    assert_eq!(order(&orchard), ["T1", "T2", "T3", "T4"], "after half an hour they are as urgent, and older");
    orchard.merge(&["add", "T4", "--priority", "urgent"]).exits(129);
}

#[test]
fn a_priority_that_is_none_is_the_lowest() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.merge(&["add", "T1", "--priority", "5"]).succeeds();
    orchard.merge(&["add", "T2", "--priority", "0"]).succeeds();
    let name = "refs/arborist/queue/tickets/main/T2";
    let message = orchard.git(["log", "-1", "--format=%B", name]).answer();
    let spoilt = message.replace("\"priority\":0", "\"priority\":\"now!\"");
    assert_ne!(message, spoilt);
    let tree = orchard.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let parent = orchard.git(["rev-parse", name]).answer();
    let commit = orchard.commit_object(&tree, &[parent], spoilt + "\n");
    orchard.git(["update-ref", name, &commit]).succeeds();
    let list = orchard.merge(&["list"]).answer();
    assert!(list.lines().nth(1).unwrap().starts_with("T1 "), "{list}");
}

#[test]
fn dependants_wait_for_what_they_need_and_may_land_with_it() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b", "depends_on": ["T1"]}}, "root_ids": ["T1", "T2"]}"#;
    let orchard = Orchard::planned(plan, &["T1", "T2"]);
    orchard.merge(&["add", "T2", "--priority", "0"]).succeeds();
    orchard.merge(&["run"]).exits(1).shows();
    orchard.merge(&["status"]).succeeds().shows();
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
    assert_eq!(
        orchard.subjects("main"),
        ["task(main@T2@merge): land \"b\"", "task(main@T1@merge): land \"a\""]
    );
}

#[test]
fn what_the_target_has_already_is_not_recorded_as_merged() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.git(["merge", "-q", "--ff-only", "arborist/task/main/T1"]).succeeds();
    orchard.git(["branch", "-f", "arborist/task/main/T3", "main"]).succeeds();
    orchard.merge(&["T3", "--force"]).succeeds().shows();
    orchard.merge(&["log"]).succeeds().shows();
    assert!(orchard.subjects("main").iter().all(|subject| !subject.contains("@merge")));
}

#[test]
fn another_target_is_asked_for_by_name_and_never_guessed() {
    let orchard = Orchard::grown(&["T1"]);
    let main = orchard.git(["rev-parse", "main"]).answer();
    orchard.merge(&["add", "T1", "--into", "develop"]).exits(128).shows();
    orchard.git(["branch", "develop"]).succeeds();
    orchard.merge(&["T1", "--into", "develop"]).succeeds().shows();
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(orchard.show("develop", "T1.txt"), "T1");
    orchard.git(["branch", "-D", "develop"]).succeeds();
    orchard.merge(&["add", "T1"]).succeeds();
}

#[test]
fn what_the_user_changed_is_never_touched() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.write("mine.txt", "mine");
    orchard.write("kept.txt", "changed");
    orchard.write("staged.txt", "staged");
    orchard.git(["add", "staged.txt"]).succeeds();
    let before = orchard.git(["status", "--porcelain"]).answer();
    orchard.merge(&["T1"]).succeeds();
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), before);
    assert_eq!(orchard.read("T1.txt"), "T1");
    assert_eq!((orchard.read("mine.txt"), orchard.read("kept.txt")), ("mine".into(), "changed".into()));
}

#[test]
fn untracked_attributes_do_not_change_what_a_merge_comes_to() {
    let orchard = Orchard::grown(&[]);
    orchard.write("list.txt", "a\n");
    orchard.commit("a list\n");
    for task in ["T1", "T2"] {
        orchard.git(["branch", &format!("arborist/task/main/{task}")]).succeeds();
        orchard.on_branch(task, |orchard| {
            orchard.write("list.txt", format!("a\n{task}\n"));
            orchard.finish(task);
        });
    }
    orchard.write(".gitattributes", "* merge=union\n");
    orchard.merge(&["add", "T1", "T2"]).succeeds();
    orchard.merge(&["run"]).exits(2).shows();
}

#[test]
fn what_waits_for_too_long_is_an_exit_code() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.merge(&["status"]).succeeds();
    orchard.wait(3601);
    orchard.merge(&["status"]).exits(1).shows();
    orchard.git(["config", "arborist.merge.wait-limit", "7200"]).succeeds();
    orchard.merge(&["status"]).succeeds();
}

#[test]
fn branches_go_when_that_is_wanted_and_proved() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.git(["config", "arborist.merge.delete-branches", "true"]).succeeds();
    let lane = orchard.root().join("lane");
    orchard.git(["worktree", "add", "-q", lane.to_str().unwrap(), "arborist/task/main/T2"]).succeeds();
    orchard.merge(&["T1", "T2"]).succeeds();
    let left = orchard.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist"]).answer();
    assert_eq!(left, "arborist/task/main/T2", "what is checked out stays");
    orchard.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn one_landing_at_a_time() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let lock = orchard.path(".git/arborist/locks/landing-main");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let file = std::fs::File::create(&lock).unwrap();
    file.lock().unwrap();
    orchard.merge(&["run"]).exits(3).shows();
    drop(file);
    orchard.merge(&["run"]).succeeds();
}

#[test]
fn it_works_in_repositories_of_every_kind() {
    for options in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        if arborist_testkit::Garden::sprout().git(["init", "-q", options[0], "probe"]).code() != 0 {
            continue;
        }
        let orchard = Orchard::on(options, &["T1", "T2"]);
        orchard.merge(&["add", "T1", "T2"]).succeeds();
        orchard.merge(&["run"]).succeeds().shows();
        orchard.merge(&["log"]).succeeds().shows();
    }
    let orchard = Orchard::grown(&["T1"]);
    let bare = orchard.root().join("bare.git");
    orchard.git(["clone", "-q", "--mirror", ".", bare.to_str().unwrap()]).succeeds();
    orchard.arborist_in(&bare, ["merge", "T1"]).succeeds().shows();
}

#[test]
fn a_checkout_that_changes_while_something_lands_does_not_come_along() {
    for asked in ["read-tree -m", "update-ref --create-reflog -m arborist: land"] {
        let orchard = Orchard::grown(&["T1"]);
        orchard.write("kept.txt", "mine");
        orchard.git(["branch", "other"]).succeeds();
        let other = orchard.git(["rev-parse", "other"]).answer();
        before_git(&orchard, asked, "git switch -q other");
        let mut command = orchard.command("git-arborist-merge", &orchard.path(""));
        let report = Run::of(command.args(["T1", "--scope", "main"]), b"");
        std::fs::remove_file(orchard.bin().join("git")).unwrap();
        assert!(orchard.root().join("done").exists(), "{}", report.report());
        assert_eq!(orchard.git(["rev-parse", "other"]).answer(), other, "{asked}: it was not asked for");
        report.succeeds().shows();
        assert_eq!(orchard.show("main", "T1.txt"), "T1");
        if asked.starts_with("read-tree") {
            assert_eq!(orchard.git(["status", "--porcelain"]).answer(), " M kept.txt");
        }
        assert_eq!(orchard.read("kept.txt"), "mine");
    }
}

#[test]
fn whoever_names_a_task_twice_means_it_once() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1", "T1"]).succeeds().shows();
    orchard.merge(&["retry", "T1", "T1"]).succeeds().shows().never("tried again");
    orchard.merge(&["drop", "T1", "T1"]).succeeds().shows();
    orchard.merge(&["T1", "T1"]).succeeds().shows();
}

#[test]
fn a_watch_goes_on_while_somebody_else_holds_the_lock() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.merge(&["add", "T1"]).succeeds();
    let path = orchard.path(".git/arborist/locks/run-main");
    let lock = FileLock::try_take(&path, "a test").unwrap();
    let mut command = orchard.command("git-arborist-merge", &orchard.path(""));
    command.args(["run", "--watch", "1"]).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut watch = command.spawn().unwrap();
    let mut lines = BufReader::new(watch.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("looking again in 1 s")), "it ended");
    drop(lock);
    assert!(lines.any(|line| line.contains("T1 landed as")), "it ended");
    let signal =
        orchard.command("kill", &orchard.path("")).args(["-s", "INT", &watch.id().to_string()]).status();
    assert!(signal.unwrap().success());
    lines.for_each(drop);
    watch.wait().unwrap();
}

#[test]
fn a_task_that_was_done_in_place_has_nothing_to_land() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write("T2.txt", "T2");
    orchard.finish("T2");
    orchard.merge(&["T2"]).succeeds().shows();
}

#[test]
fn a_run_that_is_not_there_is_an_error_and_not_an_empty_queue() {
    let orchard = Orchard::grown(&["T1"]);
    for verb in [&["list"][..], &["status"], &["log"], &["run"], &["add", "T1"]] {
        let said = orchard.merge(&[verb, &["--scope", "nope"]].concat()).exits(128);
        said.shows();
    }
    orchard.arborist(["worktree", "list", "--scope", "nope"]).exits(128).shows();
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.git(["branch", "-m", "main", "other"]).succeeds();
    orchard.merge(&["list", "--scope", "main"]).succeeds().shows();
}

#[test]
fn lists_have_headings_and_fit_on_a_terminal() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.git(["branch", "release/of-a-year-with-a-long-name"]).succeeds();
    orchard.merge(&["T1"]).succeeds();
    orchard.git(["config", "arborist.merge.gates.check.command", "false"]).succeeds();
    let _ = orchard.merge(&["T2", "--into", "release/of-a-year-with-a-long-name"]).exits(2);
    let _ = orchard.merge(&["T2"]).exits(2);
    for (verb, first) in [("list", "task  state"), ("log", "task  outcome")] {
        let piped = orchard.merge(&[verb]).succeeds().stdout();
        assert!(piped.starts_with(first), "{piped}");
        let mut command = orchard.command("git", &orchard.path(""));
        command.args(["arborist", "merge", verb, "--scope", "main"]);
        let (code, screen, _) = Terminal::start(command, 60).ends();
        assert_eq!(code, 0, "{screen}");
        assert!(screen.lines().take(1).all(|line| line.starts_with(first)), "{screen}");
        assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    }
}
