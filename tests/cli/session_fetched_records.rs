//! A record that was fetched is only somebody's word: nothing moves on it, and nothing is approved by it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use arborist_testkit::{Run, TestRepo};

const EVIL: &str =
    "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo evil > Makefile; echo done ;; esac\n";

fn fetched() -> (TestRepo, PathBuf) {
    fetched_with(&[])
}

/// A run in place on `main`, with these options, failed its tests, and only its records were pushed; and another clone.
fn fetched_with(options: &[&str]) -> (TestRepo, PathBuf) {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", EVIL);
    repo.write("Makefile", "all:\n");
    repo.commit("a makefile\n");
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
    repo.git_in(repo.root(), ["clone", "-q", "origin.git", "clone"]).succeeds();
    let clone = repo.root().join("clone");
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    let run = ["gardener", "--max-retries", "1", "--test-command", "test -f mended"];
    repo.arborist(run.iter().chain(options)).exits(1);
    repo.git(["push", "-q", "../origin.git", "refs/arborist/sessions/*"]).succeeds();
    (repo, clone)
}

/// Everything that is the user's: branches, what is checked out, and the files.
fn state_of_clone(repo: &TestRepo, clone: &Path) -> (String, String, String) {
    let heads = repo.git_in(clone, ["for-each-ref", "refs/heads"]).answer();
    let status = repo.git_in(clone, ["status", "--porcelain", "--branch"]).answer();
    let places = repo.git_in(clone, ["worktree", "list"]).answer();
    (heads, format!("{status}{}", fs::read_to_string(clone.join("Makefile")).unwrap()), places)
}

#[test]
fn resume_of_fetched_records_changes_nothing_without_approval() {
    for branch in ["main", "aside"] {
        let (repo, clone) = fetched();
        repo.git_in(&clone, ["switch", "-q", "-C", branch]).succeeds();
        let before = state_of_clone(&repo, &clone);
        let refused = repo.arborist_in(&clone, ["session", "resume"]).exits(2);
        refused.matches_snapshot();
        assert_eq!(state_of_clone(&repo, &clone), before);
    }
}

#[test]
fn resume_does_not_move_the_checked_out_branch_to_fetched_records() {
    let (repo, clone) = fetched();
    let before = state_of_clone(&repo, &clone);
    let test = ["--", "--test-command", "test -f mended"];
    let resume = || ["session", "resume"].into_iter().chain(test);
    let refused = repo.arborist_in(&clone, resume()).exits(2);
    let refused = refused.matches_snapshot();
    let said = refused.stderr();
    assert_eq!(state_of_clone(&repo, &clone), before);
    let (_, tip) = said.trim_end().rsplit_once("merge --ff-only ").unwrap();
    repo.git_in(&clone, ["merge", "-q", "--ff-only", tip]).succeeds();
    repo.agent(&EVIL.replace("echo evil > Makefile", "touch mended"));
    repo.arborist_in(&clone, resume()).succeeds().matches_snapshot();
}

fn approvals(repo: &TestRepo) -> Vec<PathBuf> {
    let dir = repo.home().join(".local/state/git-arborist/approved");
    fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn trusting_a_repository_does_not_approve_commands_of_fetched_records() {
    let (repo, clone) = fetched();
    repo.git_in(&clone, ["switch", "-q", "-c", "aside"]).succeeds();
    let before = approvals(&repo);
    let mut trusting = repo.command("git", &clone);
    trusting.args(["arborist", "session", "resume"]).env("ARBORIST_TRUST", "1");
    Run::of(&mut trusting, b"").exits(2).matches_snapshot();
    assert_eq!(approvals(&repo), before);
    repo.arborist_in(&clone, ["session", "resume"]).exits(2).matches_snapshot();
}

#[test]
fn a_stored_approval_does_not_contain_the_approved_command() {
    let (repo, _) = fetched();
    let kept = approvals(&repo);
    assert_eq!(kept.len(), 1, "the test command that the user has given");
    assert_eq!(fs::read(&kept[0]).unwrap(), b"");
    assert_eq!(fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn options_of_a_record_that_choose_the_reviewer_need_approval() {
    let (repo, clone) = fetched_with(&["--review-runner", "demo"]);
    repo.git_in(&clone, ["switch", "-q", "-c", "aside"]).succeeds();
    let before = state_of_clone(&repo, &clone);
    let refused =
        repo.arborist_in(&clone, ["session", "resume", "--", "--test-command", "test -f mended"]).exits(2);
    refused.err("--review-runner=demo (an option recorded with the session)");
    assert_eq!(state_of_clone(&repo, &clone), before);
}

#[test]
fn a_branch_of_the_user_moves_to_fetched_records_only_after_approval() {
    let (repo, clone) = fetched();
    repo.git_in(&clone, ["switch", "-q", "-c", "aside"]).succeeds();
    let before = state_of_clone(&repo, &clone);
    let test = ["--", "--test-command", "test -f mended"];
    let refused = repo.arborist_in(&clone, ["session", "resume"].into_iter().chain(test)).exits(2);
    refused.err("move 'main' forward, to the records of session");
    assert_eq!(state_of_clone(&repo, &clone), before);
    repo.agent(&EVIL.replace("echo evil > Makefile", "touch mended"));
    repo.arborist_in(&clone, ["session", "resume", "--yes"].into_iter().chain(test)).succeeds();
}
