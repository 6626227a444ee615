//! Branches of the user that have the name of a folder of task branches: git cannot have both.

use arborist_testkit::{TestRepo, WORKER, pairs};

use crate::pasted_hints::hinted;

const PLAN: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n";

#[test]
fn a_branch_that_task_branches_need_as_a_folder_is_refused_and_kept() {
    let commands =
        [&["gardener"][..], &["gardener", "--jobs", "2"], &["garden", "T001"], &["worktree", "add", "T001"]];
    let names = ["arborist", "arborist/task", "arborist/task/main"];
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    for (command, name) in pairs(&commands, &names) {
        repo.git(["branch", name]).succeeds();
        let said = repo.arborist(command).exits(2).never("created while").err(&format!(
            "error: the branch '{name}' is in the way: branches of tasks are below arborist/task/main/\n"
        ));
        let rename = hinted(&said.stderr(), "rename it: ");
        assert_eq!(rename, format!("git branch -m {name} NEW-NAME"));
        assert_eq!(repo.git(["for-each-ref", "--format=%(refname)"]).answer().lines().count(), 2);
        repo.git(["branch", "-D", name]).succeeds();
    }
    assert_eq!(repo.calls(), 0);
    repo.git(["branch", "arborist/mine"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
}

#[test]
fn a_branch_in_the_way_of_a_new_session_is_refused() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.git(["branch", "arborist"]).succeeds();
    repo.arborist(["gardener", "--session-branch"])
        .exits(2)
        .err("error: the branch 'arborist' is in the way");
    assert_eq!(repo.calls(), 0);
}
