//! Session branches: a run works on a branch of its own, in a worktree beside the user's checkout, which is left alone.

use std::{fs, path::PathBuf};

use arborist_testkit::Garden;
use serde_json::Value;

const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n";

/// Writes a file for each task.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) pwd > "$ROOT/place"; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt"; echo done ;;
esac
"#;

const APART: [&str; 2] = ["gardener", "--session-branch"];

fn garden() -> Garden {
    let garden = Garden::sprout();
    garden.write("tasks.md", PLAN);
    garden.write("kept.txt", "kept\n");
    garden.commit("a plan\n");
    garden.agent(WORKER);
    garden
}

/// The branches of sessions.
fn branches(garden: &Garden) -> Vec<String> {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist", "refs/heads/bot"];
    let found = garden.git(list).answer();
    found.lines().filter(|name| !name.contains("/task/")).map(str::to_owned).collect()
}

#[track_caller]
fn only_branch(garden: &Garden) -> String {
    let branches = branches(garden);
    assert_eq!(branches.len(), 1, "{branches:?}");
    branches[0].clone()
}

fn id_of(branch: &str) -> &str {
    branch.rsplit_once('/').unwrap().1
}

fn house(garden: &Garden, branch: &str) -> PathBuf {
    garden.path(&format!("../repo.arborist/session-{}", id_of(branch)))
}

fn files(garden: &Garden, revision: &str) -> String {
    garden.git(["ls-tree", "--name-only", "-r", revision]).answer()
}

/// What of the user's checkout must not change.
fn checkout(garden: &Garden) -> [String; 4] {
    [
        garden.git(["rev-parse", "HEAD", "main"]).answer(),
        garden.git(["rev-parse", "--symbolic-full-name", "HEAD"]).answer(),
        garden.git(["status", "--porcelain"]).answer(),
        garden.git(["diff", "HEAD"]).answer(),
    ]
}

#[test]
fn a_run_works_on_a_branch_of_its_own_and_leaves_the_checkout_alone() {
    let garden = garden();
    garden.write("kept.txt", "changed\n");
    garden.write("staged.txt", "staged\n");
    garden.git(["add", "staged.txt"]).succeeds();
    garden.write("mine.txt", "mine\n");
    let (before, base) = (checkout(&garden), garden.git(["rev-parse", "HEAD"]).answer());
    let run = garden.arborist(APART).succeeds().shows();
    assert_eq!(checkout(&garden), before);
    let branch = only_branch(&garden);
    assert!(branch.starts_with("arborist/tasks/"), "{branch}");
    let run = run.out(&format!("merge  git merge {branch}")).err(&format!("'{branch}' begins at "));
    assert!(run.stdout().contains("session-"), "{}", run.stdout());
    let place = house(&garden, &branch);
    assert_eq!(garden.git_in(&place, ["branch", "--show-current"]).answer(), branch);
    assert_eq!(garden.git_in(&place, ["status", "--porcelain"]).answer(), "");
    assert_eq!(garden.read("../place").trim_end(), place.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(files(&garden, &branch).matches("T00").count(), 4, "two files, two reports");
    assert!(!files(&garden, &branch).contains("staged.txt"));
    assert_eq!(garden.git(["show", &format!("{branch}:kept.txt")]).answer(), "kept");
    let shown = garden.arborist(["session", "show", id_of(&branch), "--json"]).answer();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["repositories"][0]["base"], base.as_str());
    assert_eq!(shown["repositories"][0]["branch"], branch.as_str());
    assert_eq!(shown["session"]["state"], "complete");
    let short = garden.git(["rev-parse", "--short=10", &base]).answer();
    garden.arborist(["session", "show", id_of(&branch)]).succeeds().out(&format!("base       {short}"));
    garden.git(["stash", "-q", "-u"]).succeeds();
    garden.git(["merge", "-q", &branch]).succeeds();
    assert!(garden.path("T001.txt").is_file() && garden.path("T002.txt").is_file());
}

#[test]
fn it_begins_at_any_branch_and_without_one() {
    for detached in [false, true] {
        let garden = garden();
        garden.git(["switch", "-q", "-c", "other"]).succeeds();
        garden.write("other.txt", "other\n");
        garden.commit("on another branch\n");
        if detached {
            garden.git(["checkout", "-q", "--detach"]).succeeds();
        }
        let before = checkout(&garden);
        garden.arborist(APART).succeeds();
        assert_eq!(checkout(&garden), before);
        let branch = only_branch(&garden);
        assert!(files(&garden, &branch).contains("other.txt"), "it begins where the user is");
        let state = garden.arborist(["state", "--exit-code"]);
        if detached {
            state.exits(128).err("--scope <branch>").err(&format!("--scope {branch}"));
            garden.arborist(["state", "--scope", &branch, "--exit-code"]).succeeds();
        } else {
            state.exits(1).out("0 of 2 done").err(&format!("state --scope {branch}"));
            garden.arborist(["state", "--scope", &branch, "--exit-code"]).succeeds();
        }
    }
}

#[test]
fn the_same_command_goes_on_with_the_session_and_only_a_new_run_begins_another() {
    let garden = garden();
    garden.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds();
    let branch = only_branch(&garden);
    assert!(!files(&garden, &branch).contains("T002.txt"));
    garden.git(["switch", "-q", "-c", "elsewhere"]).succeeds();
    garden.arborist(APART).succeeds().shows();
    assert_eq!(only_branch(&garden), branch);
    garden.arborist(APART).succeeds().out("nothing was left to do").out(&format!("git merge {branch}"));
    garden.wait(5);
    garden.arborist(["gardener", "--session-branch", "--new-run"]).succeeds().shows();
    assert_eq!(branches(&garden).len(), 2);
    let new = branches(&garden).into_iter().find(|name| *name != branch).unwrap();
    garden.arborist(["state"]).succeeds().err(&new);
    garden.arborist(["state", "--scope", &branch, "--exit-code"]).succeeds();
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let garden = garden();
    garden.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f half.txt ]; then echo done; else echo half > half.txt; kill -9 $PPID; sleep 60; fi ;;\nesac",
    );
    let before = checkout(&garden);
    garden.arborist(APART).exits(137);
    let branch = only_branch(&garden);
    garden.arborist(["session", "list"]).succeeds().out(&branch).out("crashed");
    garden.arborist(APART).succeeds().shows();
    assert_eq!(only_branch(&garden), branch);
    assert_eq!(garden.git(["show", &format!("{branch}:half.txt")]).answer(), "half");
    assert_eq!(checkout(&garden), before);
}

#[test]
fn a_session_that_was_stopped_goes_on_by_its_own_name() {
    let garden = garden();
    garden.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    garden
        .arborist(["gardener", "--session-branch", "--test-command", "false", "--max-retries", "1"])
        .exits(1);
    let branch = only_branch(&garden);
    let (before, id) = (checkout(&garden), id_of(&branch).to_owned());
    let again = garden.arborist(APART).exits(1);
    again.out(&format!("next   git arborist session resume {id}\n"));
    garden.arborist(["reset", "T001"]).exits(1).shows();
    garden.arborist(["reset", "T001", "--scope", "nowhere"]).exits(1).shows();
    garden.arborist(["reset", "T001", "--scope", &branch]).succeeds().shows();
    fs::remove_dir_all(garden.path("../repo.arborist")).unwrap();
    // Resumed, it stays where it is, whatever is configured for new runs.
    garden.git(["config", "arborist.session.branch", "true"]).succeeds();
    let resume = ["session", "resume", &id, "--", "--test-command", "true"];
    garden.arborist(resume).succeeds().out(&format!("git merge {branch}"));
    assert_eq!((only_branch(&garden), checkout(&garden)), (branch.clone(), before));
    garden.arborist(["session", "list"]).succeeds().out("complete").out(&branch);
}

#[test]
fn tasks_at_once_land_on_the_session_branch() {
    let garden = garden();
    let before = checkout(&garden);
    garden.arborist(["gardener", "--session-branch", "--jobs", "2"]).succeeds().shows();
    let branch = only_branch(&garden);
    assert_eq!(checkout(&garden), before);
    let (place, files) = (house(&garden, &branch), files(&garden, &branch));
    assert!(files.contains("T001.txt") && files.contains("T002.txt"), "{files}");
    assert_eq!(garden.git_in(&place, ["status", "--porcelain"]).answer(), "");
    assert!(place.join("T002.txt").is_file(), "its worktree follows");
    let log = garden.git(["log", "--format=%s", &branch]).answer();
    assert_eq!(log.matches("@merge): land").count(), 2, "{log}");
    garden.arborist(["gardener", "--session-branch", "--jobs", "2"]).succeeds().shows();
}

#[test]
fn the_configuration_says_so_too_and_events_tell_of_the_branch() {
    let garden = garden();
    garden.git(["config", "arborist.session.branch", "true"]).succeeds();
    let base = garden.git(["rev-parse", "HEAD"]).answer();
    let run = garden.arborist(["gardener", "--json"]).succeeds().stdout();
    let branch = only_branch(&garden);
    let events: Vec<Value> = run.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let made = events.iter().find(|event| event["event"] == "branch-created").unwrap();
    assert_eq!((&made["branch"], &made["base"]), (&branch.as_str().into(), &base.as_str().into()));
    assert_eq!(made["repo"], "repo");
    let summary = &events.last().unwrap()["summary"];
    assert_eq!(summary["merge"], format!("git merge {branch}"));
    let place = house(&garden, &branch).canonicalize().unwrap();
    assert_eq!(summary["worktree"], place.to_str().unwrap());
    garden.git(["config", "arborist.session.branch", "false"]).succeeds();
    garden.arborist(["gardener"]).succeeds().shows().never("git merge");
    assert!(garden.path("T001.txt").is_file());
}

#[test]
fn one_task_can_have_a_branch_too() {
    let garden = garden();
    let before = checkout(&garden);
    garden.arborist(["garden", "--session-branch"]).succeeds().shows();
    garden.arborist(["garden", "T002", "--session-branch"]).succeeds();
    let branch = only_branch(&garden);
    garden.arborist(["garden", "--session-branch", "-m", "A word of my own"]).succeeds();
    assert_eq!(checkout(&garden), before);
    let own = branches(&garden).into_iter().find(|name| *name != branch).unwrap();
    assert!(own.starts_with("arborist/adhoc/"), "{own}");
    assert!(files(&garden, &own).contains("a-word-of-my-own.txt"));
}

#[test]
fn each_plan_has_its_own_session() {
    let garden = garden();
    garden.arborist(APART).succeeds();
    let first = only_branch(&garden);
    garden.write("other/tasks.md", "- [ ] T101 do x\n");
    garden.write("tasks/tasks.md", "- [ ] T102 do y\n");
    for (plan, task) in [("other/tasks.md", "T101"), ("tasks/tasks.md", "T102")] {
        garden.wait(5);
        let run = ["gardener", "--session-branch", "--tree", plan];
        garden.arborist(run).succeeds().out(&format!("1 completed ({task})"));
    }
    assert_eq!(branches(&garden).len(), 3, "also where two plans are called the same");
    garden.arborist(APART).succeeds().out("nothing was left to do").out(&format!("git merge {first}"));
    garden.arborist(["state"]).succeeds().err(&first);
}

#[test]
fn looking_first_makes_nothing() {
    let garden = garden();
    garden.arborist(["gardener", "--session-branch", "--dry-run"]).succeeds().shows();
    assert_eq!(branches(&garden), [""; 0]);
    assert!(!garden.path("../repo.arborist").exists());
    garden.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds();
    garden.arborist(["gardener", "--session-branch", "--dry-run"]).succeeds().shows().never("T001");
}

#[test]
fn a_plan_and_a_configuration_that_are_not_tracked_are_frozen_in_the_session_only() {
    let garden = garden();
    garden.write("tasks.md", format!("{PLAN}- [ ] T003 do c\n"));
    garden.write(".arborist/config.toml", "max-retries = 2\n");
    let before = checkout(&garden);
    garden.arborist(APART).succeeds().shows().never("the tasks do not see it");
    assert_eq!(checkout(&garden), before);
    let branch = only_branch(&garden);
    assert!(garden.git(["show", &format!("{branch}:tasks.md")]).answer().contains("T003"));
    assert!(files(&garden, &branch).contains(".arborist/config.toml"));
    garden.write("tasks.md", format!("{PLAN}- [ ] T003 do c\n- [ ] T004 do d\n"));
    garden.arborist(APART).exits(2).shows();
    garden.arborist(["gardener", "--session-branch", "--accept-changes"]).succeeds().shows();
    assert!(garden.git(["show", &format!("{branch}:tasks.md")]).answer().contains("T004"));
}

#[test]
fn branches_are_called_as_it_is_configured() {
    let garden = garden();
    garden.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.branch-prefix", "bot/"]).succeeds();
    // A workspace has session branches without being asked.
    garden.arborist(["gardener"]).succeeds();
    let branch = only_branch(&garden);
    assert!(branch.starts_with("bot/tasks/"), "{branch}");
    assert!(!garden.path("T001.txt").exists());
    garden.arborist(["session", "show", id_of(&branch)]).succeeds().out(&branch);
}

#[test]
fn the_branch_of_a_replay_is_called_so_too() {
    let garden =
        crate::turning::garden("claude", "opens\ncalls 1 \"I add a\"; echo a$n > a; answers 1\nends done\n");
    garden.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.branch-prefix", "bot/"]).succeeds();
    garden.arborist(["gardener"]).succeeds();
    let branch = only_branch(&garden);
    garden.arborist(["session", "replay", id_of(&branch), "--turn", "1"]).succeeds();
    let names = branches(&garden);
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("bot/tasks/")), "{names:?}");
}

#[test]
fn what_was_merged_and_deleted_was_not_renamed() {
    let garden = garden();
    garden.arborist(APART).succeeds();
    let branch = only_branch(&garden);
    garden.git(["merge", "-q", &branch]).succeeds();
    garden.arborist(["cleanup", "--older-than", "0d"]).succeeds();
    let place = house(&garden, &branch);
    if place.exists() {
        garden.git(["worktree", "remove", "--force", "--force", place.to_str().unwrap()]).succeeds();
    }
    let _ = garden.git(["branch", "-D", &branch]);
    assert_eq!(branches(&garden), [""; 0]);
    garden.arborist(["state"]).succeeds().never("was it renamed");
    garden.wait(5);
    garden.arborist(APART).succeeds();
    assert_ne!(only_branch(&garden), branch);
}

#[test]
fn who_starts_it_twice_has_one_run() {
    let garden = garden();
    garden.agent(&format!(
        "case \"$prompt\" in \"Review\"*) ;; *) cd '{}' && git arborist gardener --session-branch >\"$ROOT/second\" 2>&1; echo $? > \"$ROOT/code\"; cd - >/dev/null ;; esac\n{WORKER}",
        garden.path("").display()
    ));
    garden.arborist(APART).succeeds();
    let said = fs::read_to_string(garden.root().join("second")).unwrap();
    assert_eq!(fs::read_to_string(garden.root().join("code")).unwrap().trim(), "3", "{said}");
    assert!(said.contains("another run of 'arborist/tasks/"), "{said}");
    only_branch(&garden);
}
