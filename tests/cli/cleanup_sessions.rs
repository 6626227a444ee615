//! A run on a branch of its session, cleaned up: what landed on that branch is kept by it, and by what is saved of it.

use std::fs;

use crate::cleanup_repo::{CleanupRepo, find};

const NOW: &[&str] = &["--older-than", "0"];
const FORCED: &[&str] = &["--older-than", "0", "--force"];

/// A finished run of two tasks in lanes, on a branch of its session. Gives the session.
fn finished() -> (CleanupRepo, String) {
    let repo = CleanupRepo::new();
    repo.write("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n");
    repo.commit("a plan\n");
    repo.agent(
        "case $prompt in Review*) echo APPROVED;; *) echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\";; esac",
    );
    repo.arborist(["gardener", "--session-branch", "--jobs", "2"]).succeeds().out("2 completed");
    let sessions = repo.refs("refs/arborist/sessions");
    let session = sessions[0].rsplit('/').next().unwrap().to_owned();
    (repo, session)
}

#[test]
fn an_unmerged_session_branch_is_kept_unless_force_is_given_and_then_saved_first() {
    let (repo, session) = finished();
    let branch = format!("arborist/tasks/{session}");
    let tip = repo.git(["rev-parse", &branch]).answer();
    let place = repo.root().join(format!("repo.arborist/session-{session}"));
    assert_eq!(repo.verdict(&[], "session", &branch).1, "younger than 7d");
    fs::write(place.join("mine.txt"), "mine").unwrap();
    let report = repo.report(NOW);
    assert_eq!(find(&report, "worktree", &format!("session-{session}"))["reason"], "not committed: mine.txt");
    assert_eq!(find(&report, "session", &branch)["outcome"], "kept", "it is checked out there");
    for task in ["T001", "T002"] {
        let item = find(&report, "branch", &format!("{branch}/{task}"));
        assert_eq!(
            (&item["outcome"], &item["reason"]),
            (&"removed".into(), &"commits are in other refs".into())
        );
    }
    fs::remove_file(place.join("mine.txt")).unwrap();
    repo.cleanup(NOW).succeeds().out("not merged");
    assert!(!place.exists(), "nothing is in it that its branch does not have");
    assert_eq!(repo.git(["rev-parse", &branch]).answer(), tip);
    repo.cleanup(FORCED).succeeds().out("saved first");
    assert_eq!(repo.refs("refs/heads"), ["refs/heads/main"]);
    assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 1);
    let saved = repo.refs("refs/arborist/saved");
    assert_eq!((saved.len(), repo.git(["rev-parse", &saved[0]]).answer()), (1, tip.clone()));
    repo.cleanup(&["restore", &saved[0]]).succeeds().out(&format!("branch '{branch}' is at"));
    assert_eq!(repo.git(["rev-parse", &branch]).answer(), tip);
}

#[test]
fn branches_of_a_paused_session_are_kept_until_the_session_is_ended() {
    let (repo, session) = finished();
    let branch = format!("arborist/tasks/{session}");
    repo.session(&session, (&branch, "run"), r#""kind":"pause","why":"lunch""#);
    let before = repo.refs("refs/heads");
    let all = ["--older-than", "0", "--force"];
    let said = repo.cleanup(&all).succeeds().out("its session is paused");
    said.err(&format!("to continue it, run: git arborist session end --session {session}"));
    assert_eq!(repo.refs("refs/heads"), before);
    let end = ["session", "end", "--session", &session];
    repo.arborist(end.iter().chain(&["--result", "complete"]))
        .exits(1)
        .err("which decides itself when it is complete");
    repo.arborist(end).succeeds().err("ended session");
    repo.arborist(["session", "list"]).succeeds().out("complete");
    repo.arborist(end).exits(1).err("has ended");
    repo.cleanup(&all).succeeds().never("paused").never("unfinished session");
    assert_ne!(repo.refs("refs/heads"), before);
}

#[test]
fn session_records_are_removed_only_after_the_session_branch() {
    let (repo, session) = finished();
    repo.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    let name = format!("{session} (records)");
    let why = repo.verdict(&["--older-than", "0", "--force", "--only", "sessions"], "record", &name).1;
    assert_eq!(why, "the branch of its session still exists");
    assert_eq!(repo.verdict(FORCED, "record", &name).1, "the branch of its session must be removed first");
    repo.git(["config", "arborist.cleanup.keep-records", "90d"]).succeeds();
    let said = repo.cleanup(FORCED).succeeds().out("younger than 90d");
    said.never("the branch of its session still exists");
    repo.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    assert_eq!(repo.verdict(FORCED, "record", &name).0, "save");
}

/// A session that somebody else drives has this name, and a branch of the user ends in it.
fn with_own_branch() -> CleanupRepo {
    let repo = CleanupRepo::new();
    repo.git(["switch", "-q", "-c", "release/v1"]).succeeds();
    repo.write("mine.txt", "mine");
    repo.commit("mine\n");
    repo
}

#[test]
fn a_branch_of_the_user_that_ends_in_the_name_of_a_session_is_kept() {
    let repo = with_own_branch();
    repo.arborist(["session", "start", "--id", "v1"]).succeeds();
    repo.arborist(["session", "end", "--session", "v1"]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.cleanup(&["--older-than", "0", "--force"]).succeeds().never("release/v1");
    assert_eq!(repo.refs("refs/heads/release"), ["refs/heads/release/v1"]);
}

#[test]
fn a_forged_session_record_does_not_make_cleanup_remove_a_branch_of_the_user() {
    let repo = with_own_branch();
    repo.git(["branch", "arborist/tasks/v2"]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    let over = r#""kind":"end","result":"complete""#;
    repo.session("v1", ("release/v1", "run"), over);
    repo.session("v2", ("arborist/tasks/v2", "run"), over);
    let before = repo.refs("refs/heads");
    repo.cleanup(&["--older-than", "0", "--force"])
        .succeeds()
        .out("nothing proves that git arborist made it");
    assert_eq!(repo.refs("refs/heads"), before);
}

#[test]
fn without_a_reflog_the_run_start_proves_that_git_arborist_made_a_session_branch() {
    let (repo, session) = finished();
    fs::remove_dir_all(repo.path(".git/logs/refs/heads/arborist/tasks")).unwrap();
    let branch = format!("arborist/tasks/{session}");
    assert_eq!(repo.verdict(FORCED, "session", &branch).0, "save");
}

#[test]
fn locks_that_cannot_be_read_count_as_held() {
    let repo = CleanupRepo::new();
    repo.write("spec/logs/T1_test_20250216T143022.log", "x");
    fs::create_dir_all(repo.path(".git/arborist")).unwrap();
    let locks = repo.path(".git/arborist/locks");
    let _ = fs::remove_dir_all(&locks);
    fs::write(&locks, "no folder").unwrap();
    let why = repo.verdict(NOW, "log", "T1_test_20250216T143022.log").1;
    assert!(why.starts_with("not known: whether a process is still working on it: "), "{why}");
}
