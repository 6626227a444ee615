//! Session branches where it is not plain which session is meant, and what lay where one goes on.

use std::fs;

use crate::town::Town;
use arborist_testkit::{Garden, WORKER};

const APART: [&str; 2] = ["gardener", "--session-branch"];

fn garden() -> Garden {
    Garden::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n", WORKER)
}

fn branches(garden: &Garden) -> Vec<String> {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/tasks"];
    garden.git(list).answer().lines().map(str::to_owned).collect()
}

#[track_caller]
fn only_branch(garden: &Garden) -> (String, String) {
    let branches = branches(garden);
    assert_eq!(branches.len(), 1, "{branches:?}");
    let id = branches[0].rsplit_once('/').unwrap().1.to_owned();
    (branches[0].clone(), id)
}

#[test]
fn what_another_branch_holds_is_not_the_state_of_this_one() {
    for is_configured in [false, true] {
        let garden = garden();
        garden.arborist(APART).succeeds();
        if is_configured {
            garden.git(["config", "arborist.session.branch", "true"]).succeeds();
            garden.arborist(["state", "--exit-code"]).succeeds().out("2 of 2 done");
        }
        garden.git(["switch", "-q", "-c", "feature/new"]).succeeds();
        garden.write("tasks.md", "- [ ] T009 something else\n");
        garden.commit("another plan\n");
        garden.arborist(["state", "--exit-code"]).exits(1).out("0 of 1 done");
    }
}

#[test]
fn a_replay_is_not_what_the_next_run_goes_on_with() {
    let garden =
        crate::turning::garden("claude", "opens\ncalls 1 \"I add a\"; echo a$n > a; answers 1\nends done\n");
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    garden
        .arborist(["gardener", "--session-branch", "--test-command", "false", "--max-retries", "1"])
        .exits(1);
    let (branch, id) = only_branch(&garden);
    garden.wait(5);
    let replay =
        ["session", "replay", &id, "--turn", "1", "--", "--test-command", "false", "--max-retries", "1"];
    garden.arborist(replay).exits(1);
    assert_eq!(branches(&garden).len(), 2);
    garden.wait(5);
    let again = ["gardener", "--session-branch", "--retry-failed", "--test-command", "true"];
    garden.arborist(again).succeeds().out(&format!("git merge {branch}"));
}

#[test]
fn a_session_is_known_without_its_worktree() {
    let town = Town::of(&[], "- [ ] T001 do a\n- [ ] T002 do b\n");
    town.agent(&format!("case \"$prompt\" in *T002:*) exit 1 ;; esac\n{WORKER}"));
    town.git_in(town.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
    town.git(["config", "--global", "arborist.workspace.repos.app.path", "."]).succeeds();
    town.set("app", "remote", town.root().join("repo.git").to_str().unwrap());
    town.set("app", "push", "on_checkpoint");
    town.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let (branch, id) = only_branch(&town);
    let place = town.root().join(format!("repo.arborist/session-{id}"));
    town.git(["worktree", "remove", "-f", "-f", place.to_str().unwrap()]).succeeds();
    town.arborist(["state"]).succeeds().out("1 of 2 done").never("unpushed");
    town.agent(WORKER);
    let calls = town.calls();
    town.arborist(["gardener", "--retry-failed"]).succeeds().out("1 completed (T002)");
    assert_eq!((only_branch(&town).0, town.calls()), (branch, calls + 2), "T001 is not done again");
}

/// A colleague's session that was fetched is theirs.
#[test]
fn a_session_of_somebody_else_is_not_gone_on_with() {
    let garden = garden();
    let mut command = garden.command("git", &garden.path(""));
    command.args(["arborist", "gardener", "--session-branch", "--until", "T001"]);
    command.env("GIT_COMMITTER_EMAIL", "bob@example.com");
    arborist_testkit::Run::of(&mut command, b"").succeeds();
    garden.wait(5);
    garden.arborist(APART).succeeds().out("2 completed");
    assert_eq!(branches(&garden).len(), 2);
}

#[test]
fn what_a_killed_agent_left_in_the_plan_is_committed_before_the_users_plan_comes() {
    let garden = garden();
    garden.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f work.txt ]; then echo done; else echo \"- [ ] T001 of the agent\" > tasks.md; echo w > work.txt; kill -9 $PPID; sleep 60; fi ;;\nesac",
    );
    garden.arborist(APART).exits(137);
    garden.write("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n- [ ] T003 do c\n");
    garden.arborist(["gardener", "--session-branch", "--accept-changes"]).succeeds().out("3 completed");
    let (branch, _) = only_branch(&garden);
    let failed = garden.git(["log", "-1", "--format=%H", "--grep=@implement-fail)", &branch]).answer();
    assert_eq!(garden.git(["show", &format!("{failed}:tasks.md")]).answer(), "- [ ] T001 of the agent");
    assert!(garden.git(["show", &format!("{branch}:tasks.md")]).answer().contains("T003 do c"));
}

#[test]
fn a_configuration_that_cannot_be_read_is_an_error() {
    let garden = garden();
    garden.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds();
    fs::create_dir_all(garden.path(".arborist/config.toml")).unwrap();
    let run = garden.arborist(["gardener", "--session-branch", "--accept-changes"]).exits(128);
    run.err(".arborist/config.toml");
}

#[test]
fn a_new_run_on_the_branch_of_a_session_is_another_session() {
    let garden = garden();
    garden.arborist(APART).succeeds();
    let (branch, id) = only_branch(&garden);
    let place = garden.path(&format!("../repo.arborist/session-{id}"));
    garden.wait(5);
    garden.arborist_in(&place, ["gardener", "--new-run"]).succeeds();
    assert_eq!(branches(&garden).len(), 2, "on a branch of its own");
    for name in branches(&garden) {
        let starts =
            ["log", "--format=%(trailers:key=Arborist-Session,valueonly,separator=)", "--grep=@run-start)"];
        let found = garden.git(starts.iter().copied().chain([name.as_str()])).answer();
        let mut sessions: Vec<&str> = found.lines().collect();
        let all = sessions.len();
        sessions.dedup();
        assert_eq!(sessions.len(), all, "no session begins twice: {found}");
    }
    assert!(branches(&garden).contains(&branch));
}

#[test]
fn a_session_branch_that_was_renamed_is_told() {
    let garden = garden();
    garden.arborist(APART).succeeds();
    let (branch, id) = only_branch(&garden);
    let place = garden.path(&format!("../repo.arborist/session-{id}"));
    garden.git(["worktree", "remove", "-f", "-f", place.to_str().unwrap()]).succeeds();
    garden.git(["branch", "-m", &branch, "feature/renamed"]).succeeds();
    garden.git(["switch", "-q", "feature/renamed"]).succeeds();
    let said = garden.arborist(["state"]).exits(2).err("was it renamed?");
    said.err(&format!("--scope {branch}")).err("--new-run");
}

#[test]
fn a_plan_outside_of_the_repository_is_refused_before_anything_is_made() {
    let garden = garden();
    let outside = garden.root().join("plan.md");
    fs::write(&outside, "- [ ] T001 do a\n").unwrap();
    let run = ["gardener", "--session-branch", "--tree", outside.to_str().unwrap()];
    garden.arborist(run).exits(128).err("it leads out of the repository");
    assert_eq!(branches(&garden), [""; 0]);
    assert_eq!(garden.git(["for-each-ref", "refs/arborist", "refs/heads/arborist"]).answer(), "");
    garden.arborist(["gardener", "--session-branch", "--tree", "./tasks.md"]).succeeds().out("2 completed");
}
