//! A session on the user's own branch that goes on in a worktree: the branch is given back when the run ends.

use std::{fs, path::PathBuf};

use arborist_testkit::Garden;
use serde_json::Value;

const WORKER: &str = "echo done > \"$ARBORIST_TASK.txt\"; echo APPROVED\n";

/// A run on `main` of which one task is left, while the user is on `other`. Gives its session and where that would work.
fn rests() -> (Garden, String, PathBuf) {
    let garden = Garden::planned("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n", WORKER);
    garden.arborist(["gardener", "--only", "T001", "--test-command", "true"]).succeeds();
    garden.git(["switch", "-q", "-c", "other"]).succeeds();
    let id = state_of(&garden).1;
    let place = garden.path(&format!("../repo.arborist/session-{id}")).canonicalize();
    let place = place.unwrap_or_else(|_| garden.path(&format!("../repo.arborist/session-{id}")));
    (garden, id, place)
}

fn state_of(garden: &Garden) -> (String, String) {
    let list = garden.arborist(["session", "list", "--json"]).answer();
    let list: Value = serde_json::from_str(&list).unwrap();
    let text = |key: &str| list["sessions"][0][key].as_str().unwrap().to_owned();
    (text("state"), text("id"))
}

/// Worktrees but for the scratch ones of reviewers.
fn worktrees(garden: &Garden) -> usize {
    let listed = garden.git(["worktree", "list"]).answer();
    listed.lines().filter(|line| !line.contains("/review-")).count()
}

#[test]
fn the_user_has_the_branch_again_when_the_run_is_done() {
    let (garden, _, place) = rests();
    garden.arborist(["session", "resume", "--", "-q"]).succeeds();
    assert_eq!(state_of(&garden).0, "complete");
    assert!(!place.exists(), "nothing was in it");
    assert_eq!(worktrees(&garden), 1);
    garden.git(["switch", "-q", "main"]).succeeds();
    assert_eq!(garden.read("T002.txt"), "done\n");
    let logs = fs::read_dir(garden.path("spec/logs")).unwrap().flatten();
    let of_last = logs.filter(|log| log.file_name().to_string_lossy().starts_with("T002_implement"));
    assert_ne!(of_last.count(), 0, "logs are where all others are");
}

#[test]
fn and_when_it_failed_or_was_stopped_or_never_began() {
    let (garden, _, place) = rests();
    garden.agent("exit 1\n");
    garden.arborist(["session", "resume", "--", "--max-retries", "1"]).exits(1);
    assert!(!place.exists() && worktrees(&garden) == 1);
    garden.agent("echo half > half; kill -INT $PPID; sleep 60\n");
    garden.arborist(["session", "resume"]).exits(130);
    assert!(!place.exists() && worktrees(&garden) == 1);
    garden.write("tasks.md", "- [ ] T001 a\n- [ ] T002 another\n");
    garden.arborist(["session", "resume"]).exits(2).shows();
    assert!(!place.exists() && worktrees(&garden) == 1);
    garden.git(["checkout", "-q", "tasks.md"]).succeeds();
    garden.git(["switch", "-q", "main"]).succeeds();
    garden.agent(WORKER);
    garden.arborist(["session", "resume", "--", "--max-retries", "3"]).succeeds();
    let branch = garden.git(["branch", "--show-current"]).answer();
    assert_eq!(branch, "main", "a checkout of the user's stays as it is");
}

#[test]
fn what_no_commit_holds_stays_there_and_is_saved_when_the_place_is_used_again() {
    let (garden, id, place) = rests();
    // The task itself works in a lane.
    garden.agent(&format!("echo left > '{}/left.txt'\n{WORKER}", place.display()));
    let said = garden.arborist(["session", "resume", "--", "--isolate", "-q"]).succeeds();
    said.err("stays without 'main': it holds what no commit holds")
        .err(&format!("git arborist worktree remove session-{id}"));
    garden.git(["switch", "-q", "main"]).succeeds();
    assert_eq!(garden.read("T002.txt"), "done\n");
    garden.git(["switch", "-q", "other"]).succeeds();
    garden.agent(WORKER);
    let said = garden.arborist(["session", "resume", &id, "--turn", "1"]).succeeds();
    said.err(&format!("refs/arborist/saved/main/session-{id}/"));
    assert!(!place.exists());
    let saved = garden.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(garden.git(["show", &format!("{saved}:left.txt")]).answer(), "left");
}

/// The worktree as a run leaves it that is killed with `-9`.
fn killed() -> (Garden, String, PathBuf) {
    let (garden, id, place) = rests();
    garden.agent("echo half > half; kill -9 $PPID; exit 1\n");
    assert_ne!(garden.arborist(["session", "resume"]).code(), 0);
    assert!(place.is_dir(), "nobody was left to see to it");
    assert_eq!(state_of(&garden).0, "crashed");
    garden.agent(WORKER);
    (garden, id, place)
}

#[test]
fn after_a_kill_the_next_resume_gives_it_back() {
    let (garden, id, place) = killed();
    garden.arborist(["session", "resume", &id]).succeeds();
    assert!(!place.exists());
    garden.git(["switch", "-q", "main"]).succeeds();
}

#[test]
fn after_a_kill_the_worktree_is_listed_and_can_be_removed() {
    let (garden, id, place) = killed();
    let name = format!("session-{id}");
    garden.arborist(["worktree", "list"]).succeeds().out(&format!("({name})")).out("main");
    let list: Value =
        serde_json::from_str(&garden.arborist(["worktree", "list", "--json"]).answer()).unwrap();
    let row = &list["worktrees"][0];
    assert_eq!((&row["kind"], &row["state"]), (&"session".into(), &"session".into()));
    garden.arborist(["worktree", "remove", &name]).exits(1).shows();
    let said = garden.arborist(["worktree", "remove", "--force", &name]).succeeds();
    said.shows();
    assert!(!place.exists());
    garden.git(["switch", "-q", "main"]).succeeds();
}

#[test]
fn after_a_kill_cleanup_knows_whose_it_is() {
    let (garden, id, place) = killed();
    let said = garden.arborist(["cleanup", "--older-than", "0", "--only", "worktrees"]).succeeds();
    said.shows().never("recorded in another repository");
    fs::remove_file(place.join("half")).unwrap();
    let said = garden.arborist(["cleanup", "--older-than", "0", "--only", "worktrees"]).succeeds();
    said.out(&format!("session-{id}"));
    assert!(!place.exists());
    garden.git(["switch", "-q", "main"]).succeeds();
}
