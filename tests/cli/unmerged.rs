//! A checkout with conflicts that are not resolved, as `git stash pop` leaves them.

use arborist_testkit::{TestRepo, WORKER};

use crate::pasted_hints::{hinted, paste};

/// A repository in which README has conflicts.
fn conflicted() -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", WORKER);
    repo.write("README", "old\n");
    repo.commit("a text\n");
    repo.write("README", "mine\n");
    repo.git(["stash", "-q"]).succeeds();
    repo.write("README", "theirs\n");
    repo.commit("another text\n");
    repo.git(["stash", "pop", "-q"]).exits(1);
    repo
}

#[test]
fn a_run_in_the_checkout_waits_until_they_are_resolved() {
    let repo = conflicted();
    for more in [&[][..], &["--allow-dirty"]] {
        let said = repo.arborist(["gardener"].iter().chain(more)).exits(2).never("stash").never("write-tree");
        said.err("error: README has unresolved conflicts\n").err("own branch: --session-branch");
    }
    assert_eq!(repo.calls(), 0);
    let said = repo.arborist(["gardener"]).exits(2).stderr();
    repo.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds().never("not saved");
    repo.write("README", "both\n");
    paste(&repo, &hinted(&said, "then commit: ")).succeeds();
    repo.arborist(["gardener"]).succeeds().out("2 completed (T001, T002)");
    assert_eq!(repo.git(["show", "HEAD:README"]).answer(), "both");
}

#[test]
fn a_landing_is_parked_until_they_are_resolved() {
    let repo = conflicted();
    let said = repo.arborist(["gardener", "--jobs", "2"]).exits(2).never("You need").never("add -A");
    said.out("main: not updated yet, README has unresolved conflicts;")
        .out("next   git arborist merge run\n");
    let status = repo.arborist(["merge", "status"]).exits(2).never("stash");
    let stderr = status.out("README has unresolved conflicts").stderr();
    repo.arborist(["merge", "run"]).exits(2).never("stash").err("README has unresolved conflicts");
    repo.arborist(["state", "T001"]).succeeds().never("stash").out("git arborist merge run");
    repo.arborist(["gardener"]).exits(2).never("stash").err("README has unresolved conflicts");
    repo.write("README", "both\n");
    paste(&repo, &hinted(&stderr, "then commit: ")).succeeds();
    paste(&repo, &hinted(&stderr, "then run: ")).succeeds();
    assert_eq!(repo.git(["show", "HEAD:README"]).answer(), "both");
    assert_eq!(repo.read("T002.txt"), "T002\n");
}
