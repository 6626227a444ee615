//! A session on the user's own branch that goes on in a worktree: the branch is given back when the run ends.

use std::{fs, path::PathBuf};

use arborist_testkit::TestRepo;
use serde_json::Value;

const WORKER: &str = "echo done > \"$ARBORIST_TASK.txt\"; echo APPROVED\n";

/// A run on `main` of which one task is left, while the user is on `other`. Gives its session and where that would work.
fn paused() -> (TestRepo, String, PathBuf) {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n", WORKER);
    repo.arborist(["gardener", "--only", "T001", "--test-command", "true"]).succeeds();
    repo.git(["switch", "-q", "-c", "other"]).succeeds();
    let id = state_of(&repo).1;
    let place = repo.path(&format!("../repo.arborist/session-{id}")).canonicalize();
    let place = place.unwrap_or_else(|_| repo.path(&format!("../repo.arborist/session-{id}")));
    (repo, id, place)
}

fn state_of(repo: &TestRepo) -> (String, String) {
    let list = repo.arborist(["session", "list", "--json"]).answer();
    let list: Value = serde_json::from_str(&list).unwrap();
    let text = |key: &str| list["sessions"][0][key].as_str().unwrap().to_owned();
    (text("state"), text("id"))
}

/// Worktrees but for the scratch ones of reviewers.
fn worktrees(repo: &TestRepo) -> usize {
    let listed = repo.git(["worktree", "list"]).answer();
    listed.lines().filter(|line| !line.contains("/review-")).count()
}

#[test]
fn the_user_can_check_out_the_branch_again_after_the_run() {
    let (repo, _, place) = paused();
    repo.arborist(["session", "resume", "--", "-q"]).succeeds();
    assert_eq!(state_of(&repo).0, "complete");
    assert!(!place.exists(), "nothing was in it");
    assert_eq!(worktrees(&repo), 1);
    repo.git(["switch", "-q", "main"]).succeeds();
    assert_eq!(repo.read("T002.txt"), "done\n");
    let logs = fs::read_dir(repo.path("spec/logs")).unwrap().flatten();
    let of_last = logs.filter(|log| log.file_name().to_string_lossy().starts_with("T002_implement"));
    assert_ne!(of_last.count(), 0, "logs are where all others are");
}

#[test]
fn the_branch_is_released_if_the_run_fails_is_interrupted_or_cannot_start() {
    let (repo, _, place) = paused();
    repo.agent("exit 1\n");
    repo.arborist(["session", "resume", "--", "--max-retries", "1"]).exits(1);
    assert!(!place.exists() && worktrees(&repo) == 1);
    repo.agent("echo half > half; kill -INT $PPID; sleep 60\n");
    repo.arborist(["session", "resume"]).exits(130);
    assert!(!place.exists() && worktrees(&repo) == 1);
    repo.write("tasks.md", "- [ ] T001 a\n- [ ] T002 another\n");
    repo.arborist(["session", "resume"]).exits(2).matches_snapshot();
    assert!(!place.exists() && worktrees(&repo) == 1);
    repo.git(["checkout", "-q", "tasks.md"]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.agent(WORKER);
    repo.arborist(["session", "resume", "--", "--max-retries", "3"]).succeeds();
    let branch = repo.git(["branch", "--show-current"]).answer();
    assert_eq!(branch, "main", "a checkout of the user's stays as it is");
}

#[test]
fn uncommitted_files_in_the_worktree_stay_and_are_saved_when_it_is_used_again() {
    let (repo, id, place) = paused();
    // The task itself works in a lane.
    repo.agent(&format!("echo left > '{}/left.txt'\n{WORKER}", place.display()));
    let said = repo.arborist(["session", "resume", "--", "--isolate", "-q"]).succeeds();
    said.err("no longer has 'main' checked out: it has uncommitted files")
        .err(&format!("git arborist worktree remove session-{id}"));
    repo.git(["switch", "-q", "main"]).succeeds();
    assert_eq!(repo.read("T002.txt"), "done\n");
    repo.git(["switch", "-q", "other"]).succeeds();
    repo.agent(WORKER);
    let said = repo.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    said.err(&format!("refs/arborist/saved/main/session-{id}/"));
    assert!(!place.exists());
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(repo.git(["show", &format!("{saved}:left.txt")]).answer(), "left");
}

/// The worktree as a run leaves it that is killed with `-9`.
fn killed() -> (TestRepo, String, PathBuf) {
    let (repo, id, place) = paused();
    repo.agent("echo half > half; kill -9 $PPID; exit 1\n");
    assert_ne!(repo.arborist(["session", "resume"]).code(), 0);
    assert!(place.is_dir(), "nobody was left to see to it");
    assert_eq!(state_of(&repo).0, "crashed");
    repo.agent(WORKER);
    (repo, id, place)
}

#[test]
fn the_next_resume_after_a_kill_releases_the_branch() {
    let (repo, id, place) = killed();
    repo.arborist(["session", "resume", &id]).succeeds();
    assert!(!place.exists());
    repo.git(["switch", "-q", "main"]).succeeds();
}

#[test]
fn the_worktree_of_a_killed_resume_is_listed_and_can_be_removed() {
    let (repo, id, place) = killed();
    let name = format!("session-{id}");
    repo.arborist(["worktree", "list"]).succeeds().out(&format!("({name})")).out("main");
    let list: Value = serde_json::from_str(&repo.arborist(["worktree", "list", "--json"]).answer()).unwrap();
    let row = &list["worktrees"][0];
    assert_eq!((&row["kind"], &row["state"]), (&"session".into(), &"session".into()));
    repo.arborist(["worktree", "remove", &name]).exits(1).matches_snapshot();
    let said = repo.arborist(["worktree", "remove", "--force", &name]).succeeds();
    said.matches_snapshot();
    assert!(!place.exists());
    repo.git(["switch", "-q", "main"]).succeeds();
}

#[test]
fn cleanup_recognises_the_worktree_of_a_killed_resume() {
    let (repo, id, place) = killed();
    let said = repo.arborist(["cleanup", "--older-than", "0", "--only", "worktrees"]).succeeds();
    said.matches_snapshot().never("recorded in another repository");
    fs::remove_file(place.join("half")).unwrap();
    let said = repo.arborist(["cleanup", "--older-than", "0", "--only", "worktrees"]).succeeds();
    said.out(&format!("session-{id}"));
    assert!(!place.exists());
    repo.git(["switch", "-q", "main"]).succeeds();
}
