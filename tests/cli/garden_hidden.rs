//! Files that git is told not to look at, that a sparse checkout leaves out, or that belong to a submodule: what an agent does
//! there is committed or said to be not, and what the user has there stays out.

use arborist_testkit::Garden;

/// A garden with `d/g` and `e/f`, and an agent that does this.
fn garden(deed: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    garden.write("d/g", "old\n");
    garden.write("e/f", "old\n");
    garden.commit("a plan\n");
    garden.agent(&format!("case \"$prompt\" in Review*) echo APPROVED ;; *) {deed} ;; esac"));
    garden
}

#[test]
fn work_in_files_that_git_is_told_not_to_look_at_is_committed_and_the_users_own_is_not() {
    for mark in ["--skip-worktree", "--assume-unchanged"] {
        let garden = garden("echo new > d/g");
        garden.git(["update-index", mark, "d/g", "e/f"]).succeeds();
        garden.write("e/f", "mine\n");
        garden.arborist(["gardener"]).succeeds();
        assert_eq!(garden.git(["show", "HEAD:d/g"]).answer(), "new", "{mark}");
        assert_eq!(garden.git(["show", "HEAD:e/f"]).answer(), "old", "{mark}");
        assert_eq!(garden.read("e/f"), "mine\n", "{mark}");
    }
}

#[test]
fn work_outside_of_a_sparse_checkout_is_committed() {
    let garden = garden("mkdir -p d; echo new > d/g; echo new > d/h");
    garden.git(["sparse-checkout", "set", "--cone", "e"]).succeeds();
    assert!(!garden.path("d/g").exists());
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(garden.git(["show", "HEAD:d/g", "HEAD:d/h"]).answer(), "new\nnew");
    assert_eq!(garden.git(["show", "HEAD:e/f"]).answer(), "old");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn work_in_a_submodule_fails_the_attempt_and_names_it() {
    let garden = garden("echo new > sm/g");
    let other = Garden::sprout();
    other.write("g", "old\n");
    other.commit("a module\n");
    let url = other.path("").display().to_string();
    garden.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sm"]).succeeds();
    garden.commit("a submodule\n");
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1).shows();
    assert_eq!(garden.read("sm/g"), "new\n", "nothing is lost");
}

#[test]
fn a_worktree_with_such_work_is_not_removed() {
    let garden = garden("true");
    for (mark, task) in [("--skip-worktree", "A"), ("--assume-unchanged", "B")] {
        garden.arborist(["worktree", "add", "--unplanned", task]).succeeds();
        let place = garden.arborist(["worktree", "path", task]).answer();
        garden.git(["-C", &place, "update-index", mark, "d/g"]).succeeds();
        std::fs::write(format!("{place}/d/g"), "mine\n").unwrap();
        garden.arborist(["worktree", "remove", task]).exits(1).shows();
        garden.arborist(["cleanup", "--older-than", "0"]).succeeds().shows();
        assert_eq!(std::fs::read_to_string(format!("{place}/d/g")).unwrap(), "mine\n", "{mark}");
    }
}
