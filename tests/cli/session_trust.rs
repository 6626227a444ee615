//! A record that was fetched is only somebody's word: nothing moves on it, and nothing is approved by it.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use arborist_testkit::{Garden, Run};

const EVIL: &str =
    "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo evil > Makefile; echo done ;; esac\n";

/// Somebody's run in place on `main` failed its tests, and of that only the records were pushed; and another clone.
fn fetched() -> (Garden, PathBuf) {
    let garden = Garden::planned("tasks.md", "- [ ] T001 do a\n", EVIL);
    garden.write("Makefile", "all:\n");
    garden.commit("a makefile\n");
    garden.git_in(garden.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
    garden.git_in(garden.root(), ["clone", "-q", "origin.git", "clone"]).succeeds();
    let clone = garden.root().join("clone");
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    garden.arborist(["gardener", "--max-retries", "1", "--test-command", "test -f mended"]).exits(1);
    garden.git(["push", "-q", "../origin.git", "refs/arborist/sessions/*"]).succeeds();
    (garden, clone)
}

/// Everything that is the user's: branches, what is checked out, and the files.
fn standing(garden: &Garden, clone: &Path) -> (String, String, String) {
    let heads = garden.git_in(clone, ["for-each-ref", "refs/heads"]).answer();
    let status = garden.git_in(clone, ["status", "--porcelain", "--branch"]).answer();
    let places = garden.git_in(clone, ["worktree", "list"]).answer();
    (heads, format!("{status}{}", fs::read_to_string(clone.join("Makefile")).unwrap()), places)
}

#[test]
fn what_is_not_approved_moves_nothing() {
    for branch in ["main", "aside"] {
        let (garden, clone) = fetched();
        garden.git_in(&clone, ["switch", "-q", "-C", branch]).succeeds();
        let before = standing(&garden, &clone);
        let refused = garden.arborist_in(&clone, ["session", "resume"]).exits(2);
        refused.shows();
        assert_eq!(standing(&garden, &clone), before);
    }
}

#[test]
fn the_users_own_checkout_follows_only_by_the_users_hand() {
    let (garden, clone) = fetched();
    let before = standing(&garden, &clone);
    let test = ["--", "--test-command", "test -f mended"];
    let resume = || ["session", "resume"].into_iter().chain(test);
    let refused = garden.arborist_in(&clone, resume()).exits(2);
    let refused = refused.shows();
    let said = refused.stderr();
    assert_eq!(standing(&garden, &clone), before);
    let (_, tip) = said.trim_end().rsplit_once("merge --ff-only ").unwrap();
    garden.git_in(&clone, ["merge", "-q", "--ff-only", tip]).succeeds();
    garden.agent(&EVIL.replace("echo evil > Makefile", "touch mended"));
    garden.arborist_in(&clone, resume()).succeeds().shows();
}

fn approvals(garden: &Garden) -> Vec<PathBuf> {
    let dir = garden.home().join(".local/state/git-arborist/approved");
    fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn to_trust_a_repository_is_not_to_trust_a_record() {
    let (garden, clone) = fetched();
    garden.git_in(&clone, ["switch", "-q", "-c", "aside"]).succeeds();
    let before = approvals(&garden);
    let mut trusting = garden.command("git", &clone);
    trusting.args(["arborist", "session", "resume"]).env("ARBORIST_TRUST", "1");
    Run::of(&mut trusting, b"").exits(2).shows();
    assert_eq!(approvals(&garden), before);
    garden.arborist_in(&clone, ["session", "resume"]).exits(2).shows();
}

#[test]
fn an_approval_tells_nobody_what_was_approved() {
    let (garden, _) = fetched();
    let kept = approvals(&garden);
    assert_eq!(kept.len(), 1, "the test command that the user has given");
    assert_eq!(fs::read(&kept[0]).unwrap(), b"");
    assert_eq!(fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o777, 0o600);
}
