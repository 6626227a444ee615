//! Session branches: a run works on a branch of its own, in a worktree beside the user's checkout, which is left alone.

use std::{fs, path::PathBuf};

use arborist_testkit::TestRepo;
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

fn repo() -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", PLAN);
    repo.write("kept.txt", "kept\n");
    repo.commit("a plan\n");
    repo.agent(WORKER);
    repo
}

/// The branches of sessions.
fn branches(repo: &TestRepo) -> Vec<String> {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist", "refs/heads/bot"];
    let found = repo.git(list).answer();
    found.lines().filter(|name| !name.contains("/task/")).map(str::to_owned).collect()
}

#[track_caller]
fn only_branch(repo: &TestRepo) -> String {
    let branches = branches(repo);
    assert_eq!(branches.len(), 1, "{branches:?}");
    branches[0].clone()
}

fn id_of(branch: &str) -> &str {
    branch.rsplit_once('/').unwrap().1
}

fn session_folder(repo: &TestRepo, branch: &str) -> PathBuf {
    repo.path(&format!("../repo.arborist/session-{}", id_of(branch)))
}

fn files(repo: &TestRepo, revision: &str) -> String {
    repo.git(["ls-tree", "--name-only", "-r", revision]).answer()
}

/// What of the user's checkout must not change.
fn checkout(repo: &TestRepo) -> [String; 4] {
    [
        repo.git(["rev-parse", "HEAD", "main"]).answer(),
        repo.git(["rev-parse", "--symbolic-full-name", "HEAD"]).answer(),
        repo.git(["status", "--porcelain"]).answer(),
        repo.git(["diff", "HEAD"]).answer(),
    ]
}

#[test]
fn a_run_on_a_session_branch_leaves_the_checkout_unchanged() {
    let repo = repo();
    repo.write("kept.txt", "changed\n");
    repo.write("staged.txt", "staged\n");
    repo.git(["add", "staged.txt"]).succeeds();
    repo.write("mine.txt", "mine\n");
    let (before, base) = (checkout(&repo), repo.git(["rev-parse", "HEAD"]).answer());
    let run = repo.arborist(APART).succeeds().matches_snapshot();
    assert_eq!(checkout(&repo), before);
    let branch = only_branch(&repo);
    assert!(branch.starts_with("arborist/tasks/"), "{branch}");
    let run = run.out(&format!("merge  git merge {branch}")).err(&format!("created branch '{branch}' at "));
    assert!(run.stdout().contains("session-"), "{}", run.stdout());
    let place = session_folder(&repo, &branch);
    assert_eq!(repo.git_in(&place, ["branch", "--show-current"]).answer(), branch);
    assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), "");
    assert_eq!(repo.read("../place").trim_end(), place.canonicalize().unwrap().to_str().unwrap());
    assert_eq!(files(&repo, &branch).matches("T00").count(), 4, "two files, two reports");
    assert!(!files(&repo, &branch).contains("staged.txt"));
    assert_eq!(repo.git(["show", &format!("{branch}:kept.txt")]).answer(), "kept");
    let shown = repo.arborist(["session", "show", id_of(&branch), "--json"]).answer();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["repositories"][0]["base"], base.as_str());
    assert_eq!(shown["repositories"][0]["branch"], branch.as_str());
    assert_eq!(shown["session"]["state"], "complete");
    let short = repo.git(["rev-parse", "--short=10", &base]).answer();
    repo.arborist(["session", "show", id_of(&branch)]).succeeds().out(&format!("base       {short}"));
    repo.git(["stash", "-q", "-u"]).succeeds();
    repo.git(["merge", "-q", &branch]).succeeds();
    assert!(repo.path("T001.txt").is_file() && repo.path("T002.txt").is_file());
}

#[test]
fn a_session_branch_begins_at_the_current_branch_or_detached_head() {
    for detached in [false, true] {
        let repo = repo();
        repo.git(["switch", "-q", "-c", "other"]).succeeds();
        repo.write("other.txt", "other\n");
        repo.commit("on another branch\n");
        if detached {
            repo.git(["checkout", "-q", "--detach"]).succeeds();
        }
        let before = checkout(&repo);
        repo.arborist(APART).succeeds();
        assert_eq!(checkout(&repo), before);
        let branch = only_branch(&repo);
        assert!(files(&repo, &branch).contains("other.txt"), "it begins where the user is");
        let state = repo.arborist(["state", "--exit-code"]);
        if detached {
            state.exits(128).err("--scope other").err(&format!("--scope {branch}"));
            repo.arborist(["state", "--scope", &branch, "--exit-code"]).succeeds();
        } else {
            state.exits(1).out("0 of 2 done").err(&format!("state --scope {branch}"));
            repo.arborist(["state", "--scope", &branch, "--exit-code"]).succeeds();
        }
    }
}

#[test]
fn the_same_command_continues_the_session_and_only_new_run_starts_another() {
    let repo = repo();
    repo.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds();
    let branch = only_branch(&repo);
    assert!(!files(&repo, &branch).contains("T002.txt"));
    repo.git(["switch", "-q", "-c", "elsewhere"]).succeeds();
    repo.arborist(APART).succeeds().matches_snapshot();
    assert_eq!(only_branch(&repo), branch);
    repo.arborist(APART).succeeds().out("nothing is left to do").out(&format!("git merge {branch}"));
    repo.wait(5);
    repo.arborist(["gardener", "--session-branch", "--new-run"]).succeeds().matches_snapshot();
    assert_eq!(branches(&repo).len(), 2);
    let new = branches(&repo).into_iter().find(|name| *name != branch).unwrap();
    repo.arborist(["state"]).succeeds().err(&new);
    repo.arborist(["state", "--scope", &branch, "--exit-code"]).succeeds();
}

#[test]
fn a_killed_run_continues_on_its_session_branch() {
    let repo = repo();
    repo.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f half.txt ]; then echo done; else echo half > half.txt; kill -9 $PPID; sleep 60; fi ;;\nesac",
    );
    let before = checkout(&repo);
    repo.arborist(APART).exits(137);
    let branch = only_branch(&repo);
    repo.arborist(["session", "list"]).succeeds().out(&branch).out("crashed");
    repo.arborist(APART).succeeds().matches_snapshot();
    assert_eq!(only_branch(&repo), branch);
    assert_eq!(repo.git(["show", &format!("{branch}:half.txt")]).answer(), "half");
    assert_eq!(checkout(&repo), before);
}

#[test]
fn a_failed_session_is_resumed_by_its_id_after_a_reset_of_its_branch() {
    let repo = repo();
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(["gardener", "--session-branch", "--test-command", "false", "--max-retries", "1"]).exits(1);
    let branch = only_branch(&repo);
    let (before, id) = (checkout(&repo), id_of(&branch).to_owned());
    let again = repo.arborist(APART).exits(1);
    again.out(&format!("next   git arborist session resume {id}\n"));
    repo.arborist(["reset", "T001"]).exits(1).matches_snapshot();
    repo.arborist(["reset", "T001", "--scope", "nowhere"]).exits(1).matches_snapshot();
    repo.arborist(["reset", "T001", "--scope", &branch]).succeeds().matches_snapshot();
    fs::remove_dir_all(repo.path("../repo.arborist")).unwrap();
    // Resumed, it stays where it is, whatever is configured for new runs.
    repo.git(["config", "arborist.session.branch", "true"]).succeeds();
    let resume = ["session", "resume", &id, "--", "--test-command", "true"];
    repo.arborist(resume).succeeds().out(&format!("git merge {branch}"));
    assert_eq!((only_branch(&repo), checkout(&repo)), (branch.clone(), before));
    repo.arborist(["session", "list"]).succeeds().out("complete").out(&branch);
}

#[test]
fn parallel_tasks_land_on_the_session_branch() {
    let repo = repo();
    let before = checkout(&repo);
    repo.arborist(["gardener", "--session-branch", "--jobs", "2"]).succeeds().matches_snapshot();
    let branch = only_branch(&repo);
    assert_eq!(checkout(&repo), before);
    let (place, files) = (session_folder(&repo, &branch), files(&repo, &branch));
    assert!(files.contains("T001.txt") && files.contains("T002.txt"), "{files}");
    assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), "");
    assert!(place.join("T002.txt").is_file(), "its worktree follows");
    let log = repo.git(["log", "--format=%s", &branch]).answer();
    assert_eq!(log.matches("@merge): land").count(), 2, "{log}");
    repo.arborist(["gardener", "--session-branch", "--jobs", "2"]).succeeds().matches_snapshot();
}

#[test]
fn session_branches_can_be_configured_and_are_reported_as_events() {
    let repo = repo();
    repo.git(["config", "arborist.session.branch", "true"]).succeeds();
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    let run = repo.arborist(["gardener", "--json"]).succeeds().stdout();
    let branch = only_branch(&repo);
    let events: Vec<Value> = run.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let made = events.iter().find(|event| event["event"] == "branch-created").unwrap();
    assert_eq!((&made["branch"], &made["base"]), (&branch.as_str().into(), &base.as_str().into()));
    assert_eq!(made["repo"], "repo");
    let summary = &events.last().unwrap()["summary"];
    assert_eq!(summary["merge"], format!("git merge {branch}"));
    let place = session_folder(&repo, &branch).canonicalize().unwrap();
    assert_eq!(summary["worktree"], place.to_str().unwrap());
    repo.git(["config", "arborist.session.branch", "false"]).succeeds();
    repo.arborist(["gardener"]).succeeds().matches_snapshot().never("git merge");
    assert!(repo.path("T001.txt").is_file());
}

#[test]
fn garden_accepts_session_branch() {
    let repo = repo();
    let before = checkout(&repo);
    repo.arborist(["garden", "--session-branch"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "T002", "--session-branch"]).succeeds();
    let branch = only_branch(&repo);
    repo.arborist(["garden", "--session-branch", "-m", "A word of my own"]).succeeds();
    assert_eq!(checkout(&repo), before);
    let own = branches(&repo).into_iter().find(|name| *name != branch).unwrap();
    assert!(own.starts_with("arborist/adhoc/"), "{own}");
    assert!(files(&repo, &own).contains("a-word-of-my-own.txt"));
}

#[test]
fn each_plan_has_its_own_session() {
    let repo = repo();
    repo.arborist(APART).succeeds();
    let first = only_branch(&repo);
    repo.write("other/tasks.md", "- [ ] T101 do x\n");
    repo.write("tasks/tasks.md", "- [ ] T102 do y\n");
    for (plan, task) in [("other/tasks.md", "T101"), ("tasks/tasks.md", "T102")] {
        repo.wait(5);
        let run = ["gardener", "--session-branch", "--tree", plan];
        repo.arborist(run).succeeds().out(&format!("1 completed ({task})"));
    }
    assert_eq!(branches(&repo).len(), 3, "also where two plans are called the same");
    repo.arborist(APART).succeeds().out("nothing is left to do").out(&format!("git merge {first}"));
    repo.arborist(["state"]).succeeds().err(&first);
}

#[test]
fn a_dry_run_creates_no_branch_and_no_worktree() {
    let repo = repo();
    repo.arborist(["gardener", "--session-branch", "--dry-run"]).succeeds().matches_snapshot();
    assert_eq!(branches(&repo), [""; 0]);
    assert!(!repo.path("../repo.arborist").exists());
    repo.arborist(["gardener", "--session-branch", "--until", "T001"]).succeeds();
    repo.arborist(["gardener", "--session-branch", "--dry-run"]).succeeds().matches_snapshot().never("T001");
}

#[test]
fn an_uncommitted_plan_and_configuration_are_committed_only_to_the_session_branch() {
    let repo = repo();
    repo.write("tasks.md", format!("{PLAN}- [ ] T003 do c\n"));
    repo.write(".arborist/config.toml", "max-retries = 2\n");
    let before = checkout(&repo);
    repo.arborist(APART)
        .succeeds()
        .matches_snapshot()
        .never("uncommitted changes stay in your checkout, and the tasks do not see them");
    assert_eq!(checkout(&repo), before);
    let branch = only_branch(&repo);
    assert!(repo.git(["show", &format!("{branch}:tasks.md")]).answer().contains("T003"));
    assert!(files(&repo, &branch).contains(".arborist/config.toml"));
    repo.write("tasks.md", format!("{PLAN}- [ ] T003 do c\n- [ ] T004 do d\n"));
    repo.arborist(APART).exits(2).matches_snapshot();
    repo.arborist(["gardener", "--session-branch", "--accept-changes"]).succeeds().matches_snapshot();
    assert!(repo.git(["show", &format!("{branch}:tasks.md")]).answer().contains("T004"));
}

#[test]
fn session_branches_use_the_configured_prefix() {
    let repo = repo();
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.branch-prefix", "bot/"]).succeeds();
    // A workspace has session branches without being asked.
    repo.arborist(["gardener"]).succeeds();
    let branch = only_branch(&repo);
    assert!(branch.starts_with("bot/tasks/"), "{branch}");
    assert!(!repo.path("T001.txt").exists());
    repo.arborist(["session", "show", id_of(&branch)]).succeeds().out(&branch);
}

#[test]
fn the_branch_of_a_replay_uses_the_configured_prefix() {
    let repo = crate::turn_scripts::repo(
        "claude",
        "opens\ncalls 1 \"I add a\"; echo a$n > a; answers 1\nends done\n",
    );
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.branch-prefix", "bot/"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let branch = only_branch(&repo);
    repo.arborist(["session", "replay", id_of(&branch), "--turn", "1"]).succeeds();
    let names = branches(&repo);
    assert!(names.len() == 2 && names.iter().all(|name| name.starts_with("bot/tasks/")), "{names:?}");
}

#[test]
fn a_merged_and_deleted_session_branch_counts_as_done_and_not_as_renamed() {
    let repo = repo();
    repo.arborist(APART).succeeds();
    let branch = only_branch(&repo);
    repo.git(["merge", "-q", &branch]).succeeds();
    repo.arborist(["cleanup", "--older-than", "0d"]).succeeds();
    let place = session_folder(&repo, &branch);
    if place.exists() {
        repo.git(["worktree", "remove", "--force", "--force", place.to_str().unwrap()]).succeeds();
    }
    let _ = repo.git(["branch", "-D", &branch]);
    assert_eq!(branches(&repo), [""; 0]);
    repo.arborist(["state"]).succeeds().never("was it renamed");
    repo.wait(5);
    let calls = repo.calls();
    let said = repo.arborist(APART).succeeds().out("nothing is left to do");
    said.out(&format!("the run of '{branch}' completed all tasks"));
    assert_eq!((repo.calls(), branches(&repo)), (calls, vec![]), "nothing is done again");
    repo.arborist(APART.iter().chain(&["--new-run"])).succeeds();
    assert_ne!(only_branch(&repo), branch);
}

#[test]
fn an_agent_cannot_start_a_second_run_of_its_plan() {
    let repo = repo();
    repo.agent(&format!(
        "case \"$prompt\" in \"Review\"*) ;; *) cd '{}' && git arborist gardener --session-branch >\"$ROOT/second\" 2>&1; echo $? > \"$ROOT/code\"; cd - >/dev/null ;; esac\n{WORKER}",
        repo.path("").display()
    ));
    repo.arborist(APART).succeeds();
    let said = fs::read_to_string(repo.root().join("second")).unwrap();
    assert_eq!(fs::read_to_string(repo.root().join("code")).unwrap().trim(), "2", "{said}");
    only_branch(&repo);
}

#[test]
fn a_run_warns_before_a_merge_overwrites_an_ignored_file() {
    let agent = "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo > .gitignore; echo new > secret.env; echo new > other.txt";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", agent);
    repo.write(".gitignore", "secret.env\n");
    repo.commit("ignore\n");
    repo.write("secret.env", "mine\n");
    let run = repo.arborist(APART).succeeds();
    run.err("secret.env', which git ignores: move that file away first").never("other.txt'");
}
