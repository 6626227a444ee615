//! Session branches where it is not plain which session is meant, and what lay where one goes on.

use std::fs;

use crate::test_workspace::TestWorkspace;
use arborist_testkit::{TestRepo, WORKER};

const APART: [&str; 2] = ["gardener", "--session-branch"];

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n", WORKER)
}

fn branches(repo: &TestRepo) -> Vec<String> {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/tasks"];
    repo.git(list).answer().lines().map(str::to_owned).collect()
}

#[track_caller]
fn only_branch(repo: &TestRepo) -> (String, String) {
    let branches = branches(repo);
    assert_eq!(branches.len(), 1, "{branches:?}");
    let id = branches[0].rsplit_once('/').unwrap().1.to_owned();
    (branches[0].clone(), id)
}

#[test]
fn the_state_of_a_branch_does_not_include_sessions_started_elsewhere() {
    for is_configured in [false, true] {
        let repo = repo();
        repo.arborist(APART).succeeds();
        if is_configured {
            repo.git(["config", "arborist.session.branch", "true"]).succeeds();
            repo.arborist(["state", "--exit-code"]).succeeds().out("2 of 2 done");
        }
        repo.git(["switch", "-q", "-c", "feature/new"]).succeeds();
        repo.write("tasks.md", "- [ ] T009 something else\n");
        repo.commit("another plan\n");
        repo.arborist(["state", "--exit-code"]).exits(1).out("0 of 1 done");
    }
}

#[test]
fn the_next_run_continues_the_original_session_and_not_its_replay() {
    let repo = crate::turn_scripts::repo(
        "claude",
        "opens\ncalls 1 \"I add a\"; echo a$n > a; answers 1\nends done\n",
    );
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["gardener", "--session-branch", "--test-command", "false", "--max-retries", "1"]).exits(1);
    let (branch, id) = only_branch(&repo);
    repo.wait(5);
    let replay =
        ["session", "replay", &id, "--turn", "1", "--", "--test-command", "false", "--max-retries", "1"];
    repo.arborist(replay).exits(1);
    assert_eq!(branches(&repo).len(), 2);
    repo.wait(5);
    let again = ["gardener", "--session-branch", "--retry-failed", "--test-command", "true"];
    repo.arborist(again).succeeds().out(&format!("git merge {branch}"));
}

#[test]
fn a_session_continues_after_its_worktree_was_removed() {
    let workspace = TestWorkspace::of(&[], "- [ ] T001 do a\n- [ ] T002 do b\n");
    workspace.agent(&format!("case \"$prompt\" in *T002:*) exit 1 ;; esac\n{WORKER}"));
    workspace.git_in(workspace.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
    workspace.git(["config", "--global", "arborist.workspace.repos.app.path", "."]).succeeds();
    workspace.set("app", "remote", workspace.root().join("repo.git").to_str().unwrap());
    workspace.set("app", "push", "on_checkpoint");
    workspace.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let (branch, id) = only_branch(&workspace);
    let place = workspace.root().join(format!("repo.arborist/session-{id}"));
    workspace.git(["worktree", "remove", "-f", "-f", place.to_str().unwrap()]).succeeds();
    workspace.arborist(["state"]).succeeds().out("1 of 2 done").never("unpushed");
    workspace.agent(WORKER);
    let calls = workspace.calls();
    workspace.arborist(["gardener", "--retry-failed"]).succeeds().out("1 completed (T002)");
    assert_eq!((only_branch(&workspace).0, workspace.calls()), (branch, calls + 2), "T001 is not done again");
}

/// A colleague's session that was fetched is theirs.
#[test]
fn a_session_of_another_user_is_not_continued() {
    let repo = repo();
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "gardener", "--session-branch", "--until", "T001"]);
    command.env("GIT_COMMITTER_EMAIL", "bob@example.com");
    arborist_testkit::Run::of(&mut command, b"").succeeds();
    repo.wait(5);
    repo.arborist(APART).succeeds().out("2 completed");
    assert_eq!(branches(&repo).len(), 2);
}

#[test]
fn plan_changes_of_a_killed_agent_are_committed_before_the_users_plan_is_taken() {
    let repo = repo();
    repo.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f work.txt ]; then echo done; else echo \"- [ ] T001 of the agent\" > tasks.md; echo w > work.txt; kill -9 $PPID; sleep 60; fi ;;\nesac",
    );
    repo.arborist(APART).exits(137);
    repo.write("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n- [ ] T003 do c\n");
    repo.arborist(["gardener", "--session-branch", "--accept-changes"]).succeeds().out("3 completed");
    let (branch, _) = only_branch(&repo);
    let failed = repo.git(["log", "-1", "--format=%H", "--grep=@implement-fail)", &branch]).answer();
    assert_eq!(repo.git(["show", &format!("{failed}:tasks.md")]).answer(), "- [ ] T001 of the agent");
    assert!(repo.git(["show", &format!("{branch}:tasks.md")]).answer().contains("T003 do c"));
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error() {
    let repo = repo();
    repo.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds();
    fs::create_dir_all(repo.path(".arborist/config.toml")).unwrap();
    let run = repo.arborist(["gardener", "--session-branch", "--accept-changes"]).exits(128);
    run.err(".arborist/config.toml");
}

#[test]
fn a_new_run_started_on_a_session_branch_gets_its_own_session() {
    let repo = repo();
    repo.arborist(APART).succeeds();
    let (branch, id) = only_branch(&repo);
    let place = repo.path(&format!("../repo.arborist/session-{id}"));
    repo.wait(5);
    repo.arborist_in(&place, ["gardener", "--new-run"]).succeeds();
    assert_eq!(branches(&repo).len(), 2, "on its own branch");
    for name in branches(&repo) {
        let starts =
            ["log", "--format=%(trailers:key=Arborist-Session,valueonly,separator=)", "--grep=@run-start)"];
        let found = repo.git(starts.iter().copied().chain([name.as_str()])).answer();
        let mut sessions: Vec<&str> = found.lines().collect();
        let all = sessions.len();
        sessions.dedup();
        assert_eq!(sessions.len(), all, "no session begins twice: {found}");
    }
    assert!(branches(&repo).contains(&branch));
}

#[test]
fn a_renamed_session_branch_is_reported() {
    let repo = repo();
    repo.arborist(APART).succeeds();
    let (branch, id) = only_branch(&repo);
    let place = repo.path(&format!("../repo.arborist/session-{id}"));
    repo.git(["worktree", "remove", "-f", "-f", place.to_str().unwrap()]).succeeds();
    repo.git(["branch", "-m", &branch, "feature/renamed"]).succeeds();
    repo.git(["switch", "-q", "feature/renamed"]).succeeds();
    let said = repo.arborist(["state"]).exits(2).err("which does not exist (was it renamed?)");
    said.err(&format!("--scope {branch}")).err("--new-run");
}

#[test]
fn a_plan_outside_the_repository_is_refused_before_anything_is_created() {
    let repo = repo();
    let outside = repo.root().join("plan.md");
    fs::write(&outside, "- [ ] T001 do a\n").unwrap();
    let run = ["gardener", "--session-branch", "--tree", outside.to_str().unwrap()];
    repo.arborist(run).exits(1).err("plan.md' is outside of the repository");
    assert_eq!(branches(&repo), [""; 0]);
    assert_eq!(repo.git(["for-each-ref", "refs/arborist", "refs/heads/arborist"]).answer(), "");
    repo.arborist(["gardener", "--session-branch", "--tree", "./tasks.md"]).succeeds().out("2 completed");
}
