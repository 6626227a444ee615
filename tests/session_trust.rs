//! A record that was fetched is only somebody's word: nothing moves on it.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::Garden;

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
        refused.err("have not been approved").err("test -f mended");
        assert_eq!(standing(&garden, &clone), before);
    }
}

#[test]
fn the_users_own_checkout_follows_only_by_the_users_hand() {
    let (garden, clone) = fetched();
    let before = standing(&garden, &clone);
    let refused = garden.arborist_in(&clone, ["session", "resume", "--yes"]).exits(2);
    let refused = refused.err("'main' is behind the records").err("that checkout is yours");
    let said = refused.stderr();
    assert_eq!(standing(&garden, &clone), before);
    let (_, tip) = said.trim_end().rsplit_once("merge --ff-only ").unwrap();
    garden.git_in(&clone, ["merge", "-q", "--ff-only", tip]).succeeds();
    garden.agent(&EVIL.replace("echo evil > Makefile", "touch mended"));
    garden.arborist_in(&clone, ["session", "resume"]).succeeds().out("1 completed");
}
