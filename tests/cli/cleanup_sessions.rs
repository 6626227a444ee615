//! A run on a branch of its session, cleaned up: what landed on that branch is kept by it, and by what is saved of it.

use std::fs;

use crate::compost::{Compost, find};
use crate::town::Town;

const NOW: &[&str] = &["--older-than", "0"];

/// A finished run of two tasks in lanes, on a branch of its session. Gives the session.
fn finished() -> (Compost, String) {
    let compost = Compost::new();
    compost.write("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n");
    compost.commit("a plan\n");
    compost.agent("echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\"; echo APPROVED");
    compost.arborist(["gardener", "--session-branch", "--jobs", "2"]).succeeds().out("2 completed");
    let sessions = compost.refs("refs/arborist/sessions");
    let session = sessions[0].rsplit('/').next().unwrap().to_owned();
    (compost, session)
}

#[test]
fn everything_of_a_session_that_is_over_goes_and_its_tip_is_saved() {
    let (compost, session) = finished();
    let branch = format!("arborist/tasks/{session}");
    let tip = compost.git(["rev-parse", &branch]).answer();
    let place = compost.root().join(format!("repo.arborist/session-{session}"));
    assert_eq!(compost.verdict(&[], "session", &branch).1, "younger than 7d");
    fs::write(place.join("mine.txt"), "mine").unwrap();
    let report = compost.report(NOW);
    assert_eq!(find(&report, "worktree", &format!("session-{session}"))["reason"], "not committed: mine.txt");
    assert_eq!(find(&report, "session", &branch)["outcome"], "kept", "it is checked out there");
    for task in ["T001", "T002"] {
        let item = find(&report, "branch", &format!("{branch}/{task}"));
        assert_eq!(
            (&item["outcome"], &item["reason"]),
            (&"removed".into(), &"all of it is elsewhere".into())
        );
    }
    fs::remove_file(place.join("mine.txt")).unwrap();
    compost.cleanup(NOW).succeeds().out("is saved first");
    assert!(!place.exists());
    assert_eq!(compost.refs("refs/heads"), ["refs/heads/main"]);
    assert_eq!(compost.git(["worktree", "list"]).answer().lines().count(), 1);
    let saved = compost.refs("refs/arborist/saved");
    assert_eq!((saved.len(), compost.git(["rev-parse", &saved[0]]).answer()), (1, tip.clone()));
    compost.cleanup(&["restore", &saved[0]]).succeeds().out(&format!("branch '{branch}' is at"));
    assert_eq!(compost.git(["rev-parse", &branch]).answer(), tip);
}

#[test]
fn a_session_that_rests_keeps_all_that_is_its_own() {
    let (compost, session) = finished();
    let branch = format!("arborist/tasks/{session}");
    compost.session(&session, (&branch, "run"), r#""kind":"pause","why":"lunch""#);
    let before = compost.refs("refs/heads");
    let all = ["--older-than", "0", "--force"];
    let said = compost.cleanup(&all).succeeds().out("its session is paused");
    said.err(&format!("to give it up: git arborist session end --session {session}"));
    assert_eq!(compost.refs("refs/heads"), before);
    let end = ["session", "end", "--session", &session];
    compost.arborist(end.iter().chain(&["--result", "complete"])).exits(1).err("which alone says when");
    compost.arborist(end).succeeds().err("is given up");
    compost.arborist(["session", "list"]).succeeds().out("failed");
    compost.arborist(end).exits(1).err("has ended");
    compost.cleanup(&all).succeeds().never("paused").never("give it up");
    assert_ne!(compost.refs("refs/heads"), before);
}

#[test]
fn in_another_repository_of_the_workspace_nobody_can_tell_whether_it_is_over() {
    let town = Town::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n");
    town.agent("echo x > x.txt; echo APPROVED");
    town.arborist(["gardener"]).succeeds();
    let (clone, branch) = (town.clone_of("backend"), town.session_branch("backend"));
    let before = town.git_in(&clone, ["for-each-ref"]).answer();
    let said = town.arborist_in(&clone, ["cleanup", "--older-than", "0", "--force"]).succeeds();
    said.out(&branch)
        .out("cannot be told: whether its session is over: it is recorded in another repository");
    assert_eq!(town.git_in(&clone, ["for-each-ref"]).answer(), before);
    assert_eq!(town.git_in(&clone, ["worktree", "list"]).answer().lines().count(), 2);
}

#[test]
fn records_outlive_the_branch_of_their_session() {
    let (compost, session) = finished();
    compost.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    let name = format!("{session} (records)");
    let why = compost.verdict(&["--older-than", "0", "--only", "sessions"], "record", &name).1;
    assert_eq!(why, "the branch of its session is still there");
    assert_eq!(compost.verdict(NOW, "record", &name).1, "the branch of its session goes first");
    compost.git(["config", "arborist.cleanup.keep-records", "90d"]).succeeds();
    let said = compost.cleanup(NOW).succeeds().out("younger than 90d");
    said.never("the branch of its session is still there");
    compost.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    assert_eq!(compost.verdict(NOW, "record", &name).0, "save");
}

/// A session that somebody else drives has this name, and a branch of the user ends in it.
fn with_own_branch() -> Compost {
    let compost = Compost::new();
    compost.git(["switch", "-q", "-c", "release/v1"]).succeeds();
    compost.write("mine.txt", "mine");
    compost.commit("mine\n");
    compost
}

#[test]
fn a_branch_of_the_user_is_not_the_branch_of_a_session_that_has_its_name() {
    let compost = with_own_branch();
    compost.arborist(["session", "start", "--id", "v1"]).succeeds();
    compost.arborist(["session", "end", "--session", "v1"]).succeeds();
    compost.git(["switch", "-q", "main"]).succeeds();
    compost.cleanup(&["--older-than", "0", "--force"]).succeeds().never("release/v1");
    assert_eq!(compost.refs("refs/heads/release"), ["refs/heads/release/v1"]);
}

#[test]
fn nor_is_it_on_the_word_of_a_record_that_a_stranger_wrote() {
    let compost = with_own_branch();
    compost.git(["branch", "arborist/tasks/v2"]).succeeds();
    compost.git(["switch", "-q", "main"]).succeeds();
    let over = r#""kind":"end","result":"complete""#;
    compost.session("v1", ("release/v1", "run"), over);
    compost.session("v2", ("arborist/tasks/v2", "run"), over);
    let before = compost.refs("refs/heads");
    compost
        .cleanup(&["--older-than", "0", "--force"])
        .succeeds()
        .out("nothing proves that git arborist made it");
    assert_eq!(compost.refs("refs/heads"), before);
}

#[test]
fn where_its_log_is_gone_the_start_of_its_run_proves_it() {
    let (compost, session) = finished();
    fs::remove_dir_all(compost.path(".git/logs/refs/heads/arborist/tasks")).unwrap();
    let branch = format!("arborist/tasks/{session}");
    assert_eq!(compost.verdict(NOW, "session", &branch).0, "save");
}

#[test]
fn locks_that_cannot_be_read_count_as_held() {
    let compost = Compost::new();
    compost.write("spec/logs/T1_test_20250216T143022.log", "x");
    fs::create_dir_all(compost.path(".git/arborist")).unwrap();
    let locks = compost.path(".git/arborist/locks");
    let _ = fs::remove_dir_all(&locks);
    fs::write(&locks, "no folder").unwrap();
    let why = compost.verdict(NOW, "log", "T1_test_20250216T143022.log").1;
    assert!(why.starts_with("cannot be told: whether somebody is still at work: "), "{why}");
}
