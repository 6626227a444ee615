//! What `git arborist workspace` says is so: what is not pushed is not called pushed, and one bad repository hides no other.

use std::{fs, os::unix::fs::symlink};

use arborist_testkit::{Terminal, TestRepo, WORKER};
use serde_json::Value;

use crate::pasted_hints::{hinted, paste};

/// A repository with a remote that has its first commit and lacks two more.
fn repo_ahead_of_remote() -> TestRepo {
    let repo = TestRepo::init();
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
    repo.git(["remote", "add", "origin", "../origin.git"]).succeeds();
    repo.git(["fetch", "-q"]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.remote", "origin"]).succeeds();
    for _ in 0..2 {
        repo.git(["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
    }
    repo
}

#[test]
fn commits_that_workspace_push_does_not_push_are_reported() {
    let repo = repo_ahead_of_remote();
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot().never("pushed");
    let printed = repo.arborist(["workspace", "status", "--json"]).answer();
    let row = &serde_json::from_str::<Value>(&printed).unwrap()["repositories"][0];
    assert_eq!((&row["pushed"], &row["unpushed_checkout"]), (&Value::Bool(false), &Value::from(2)));
    let words = "app: nothing to push: no session or task branches; 2 commits of 'main' are not at origin";
    repo.arborist(["workspace", "push"]).succeeds().out(words).never("everything");
    repo.git(["push", "-q", "origin", "main"]).succeeds();
    repo.arborist(["workspace", "status"]).succeeds().matches_snapshot().never("ahead of");
    repo.arborist(["workspace", "push"]).succeeds().matches_snapshot();
}

#[test]
fn a_missing_remote_is_not_reported_as_up_to_date() {
    let repo = repo_ahead_of_remote();
    fs::rename(repo.root().join("origin.git"), repo.root().join("gone")).unwrap();
    let push = repo.arborist(["workspace", "push"]).exits(1).matches_snapshot();
    assert_eq!(push.stdout(), "");
}

#[test]
fn an_unusable_repository_does_not_hide_others() {
    let repo = TestRepo::init();
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", "zoo"]).succeeds();
    repo.git_in(&repo.root().join("zoo"), ["commit", "-q", "--allow-empty", "-m", "first"]).succeeds();
    symlink("nowhere", repo.root().join("link")).unwrap();
    for (name, path) in [("link", "../link"), ("zoo", "../zoo")] {
        repo.git(["config", &format!("arborist.workspace.repos.{name}.path"), path]).succeeds();
    }
    let words = "is a broken symbolic link";
    repo.arborist(["workspace", "status"]).exits(1).err(words).out("link  unusable").out("zoo   main");
    let shown = repo.arborist(["workspace", "status", "--json"]).exits(1);
    let document: Value = serde_json::from_str(&shown.stdout()).unwrap();
    assert!(document["repositories"][1]["error"].as_str().unwrap().contains("is a broken symbolic link"));
    repo.arborist(["workspace", "sync"]).exits(1).err(words).out("zoo: not fetched");
    repo.arborist(["workspace", "foreach", "pwd"]).exits(1).err(words).out("/zoo\n");
}

#[test]
fn a_bare_repository_is_reported_as_such_and_not_as_missing() {
    let repo = TestRepo::init();
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "backend.git"]).succeeds();
    repo.arborist_in(&repo.root().join("backend.git"), ["workspace", "status"]).exits(128).matches_snapshot();
    repo.git(["config", "arborist.workspace.repos.backend.path", "../backend.git"]).succeeds();
    let said = repo.arborist(["workspace", "status"]).exits(1).matches_snapshot();
    said.matches_snapshot();
}

#[test]
fn a_mistyped_workspace_key_is_reported_with_the_nearest_key() {
    let repo = TestRepo::init();
    let write = |key: &str| {
        repo.write(".arborist/config.toml", format!("[workspace.repos.a-long-name]\n{key} = \"x\"\n"));
    };
    write("pth");
    repo.arborist(["workspace", "status"]).exits(1).matches_snapshot();
    write("elsewhere");
    let told = repo.arborist(["workspace", "status"]).exits(1).matches_snapshot();
    assert!(!told.stderr().contains("timeouts."), "only those beside it: {}", told.stderr());
}

#[test]
fn a_table_of_repositories_has_headings_and_is_no_wider_than_the_terminal() {
    let repo = TestRepo::init();
    let clone = repo.root().join("a-repository-with-a-long-name");
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", clone.to_str().unwrap()]).succeeds();
    repo.git_in(&clone, ["commit", "-q", "--allow-empty", "-m", "first"]).succeeds();
    let branch = format!("arborist/a-plan-with-a-long-name-{}/s1", "x".repeat(40));
    repo.git_in(&clone, ["branch", &branch]).succeeds();
    repo.git(["update-ref", "refs/arborist/sessions/s1", "HEAD"]).succeeds();
    repo.git(["config", "arborist.workspace.repos.backend.path", "../a-repository-with-a-long-name"])
        .succeeds();
    let heading = "repo     branch ";
    let whole = repo.arborist(["workspace", "status"]).succeeds().out(heading).out(&branch).stdout();
    assert_eq!(whole.lines().count(), 3, "{whole}");
    assert!(whole.lines().next().unwrap().ends_with("path"), "{whole}");
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "workspace", "status"]).env("NO_COLOR", "1");
    let (code, _, written) = Terminal::start(command, 80).ends();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!((code, lines.len()), (0, 5), "{written}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{written}");
    assert!(lines[0].contains("head     base     ahead  checkout  remote"), "{written}");
    assert!(lines[3].contains("x/s1  ") && lines[4] == "  ../a-repository-with-a-long-name", "{written}");
}

#[test]
fn mistyped_repositories_and_tools_are_reported_with_the_nearest_name() {
    let repo = TestRepo::init();
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", "backend"]).succeeds();
    repo.git_in(&repo.root().join("backend"), ["commit", "-q", "--allow-empty", "-m", "x"]).succeeds();
    repo.git(["config", "arborist.workspace.repos.backend.path", "../backend"]).succeeds();
    for verb in ["status", "sync", "push"] {
        let said = repo.arborist(["workspace", verb, "--repo", "bakend"]).exits(1);
        said.matches_snapshot();
    }
    let said = repo.arborist(["workspace", "foreach", "--repo", "web", "true"]).exits(1);
    said.matches_snapshot();
    repo.arborist(["workspace", "push", "--repo", "backend"]).exits(1).matches_snapshot();
    let missing = ["workspace", "foreach", "--keep-going", "no-such-program", "x"];
    let said = repo.arborist(missing).exits(127).matches_snapshot();
    said.matches_snapshot();
    for (tag, error, hint) in [
        (
            "repo:bakend",
            "T001 names the repository 'bakend', which is not in the workspace",
            "did you mean 'backend'?",
        ),
        ("repo:web", "T001 names the repository 'web'", "use one of: 'repo', 'backend'"),
        ("repo:web", "T001 names the repository 'web'", "[workspace.repos.web] to .arborist/config.toml"),
        ("rpo:backend", "T001 has the tag '[rpo:backend]'", "did you mean '[repo:backend]'?"),
        ("Repos:backend", "T001 has the tag '[Repos:backend]'", "did you mean '[repo:backend]'?"),
        ("repository: backend", "T001 has the tag", "did you mean '[repo:backend]'?"),
    ] {
        repo.write("tasks.md", format!("- [ ] T001 [{tag}] do a\n"));
        repo.arborist(["gardener", "--runner", "demo"]).exits(1).err(error).err(hint);
        repo.arborist(["gardener", "--runner", "demo", "--dry-run"]).exits(1).err(error).err(hint);
        let checked = repo.arborist(["plan", "--check"]).exits(1);
        checked.out("tasks.md:1:1: error: ").out(error).out(hint);
    }
    // Other tags are the user's own affair.
    for tag in ["report:backlog", "report:backend", "owner:backend"] {
        repo.write("tasks.md", format!("- [ ] T001 [{tag}] do a\n"));
        repo.arborist(["plan", "--check", "--strict"]).succeeds();
        repo.arborist(["gardener", "--runner", "demo", "--dry-run"]).succeeds();
    }
}

#[test]
fn a_push_without_a_workspace_names_the_settings_that_are_missing() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["workspace", "push"])
        .exits(1)
        .err("no workspace is configured for 'repo', so 'workspace push' has no remote to push to")
        .err("workspace.repos.repo.remote <url>");
    repo.git_in(repo.root(), ["clone", "-q", "--bare", "repo", "origin.git"]).succeeds();
    repo.git(["remote", "add", "origin", "../origin.git"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let said = repo.arborist(["workspace", "push"]).exits(1).stderr();
    paste(
        &repo,
        &hinted(&said, "to push the branches and records of sessions from 'repo', name its remote: "),
    )
    .succeeds();
    repo.arborist(["workspace", "push"])
        .succeeds()
        .out("repo: pushed refs/arborist/sessions/")
        .out("repo: no session or task branches to push; ")
        .never("nothing to push");
    let there = || repo.git_in(&repo.root().join("origin.git"), ["rev-parse", "main"]).answer();
    let tip = repo.git(["rev-parse", "main"]).answer();
    assert_ne!(there(), tip);
    paste(&repo, &hinted(&said, "to push only your branch, run: ")).succeeds();
    assert_eq!(there(), tip);
    // With a path and without a remote, only the remote is missing.
    repo.git(["config", "--unset", "arborist.workspace.repos.repo.remote"]).succeeds();
    let said = repo.arborist(["workspace", "push"]).exits(1).err("'repo' has no remote to push to").stderr();
    let command =
        hinted(&said, "to push the branches and records of sessions from 'repo', name its remote: ");
    assert_eq!(command, "git config arborist.workspace.repos.repo.remote origin");
    paste(&repo, &command).succeeds();
    repo.arborist(["workspace", "push"]).succeeds();
}

#[test]
fn git_verbs_are_answered_with_the_corresponding_workspace_verb() {
    let repo = TestRepo::init();
    for word in ["fetch", "clone", "pull"] {
        let said = repo.arborist(["workspace", word]).exits(129).err("hint: did you mean 'sync'?");
        said.never("did you mean 'foreach'");
    }
    repo.arborist(["workspace", "stats"]).exits(129).err("did you mean 'status'?");
    repo.arborist(["worktree", "fetch"]).exits(129).never("'sync'?");
}

#[test]
fn a_repository_without_commits_is_reported_with_the_command_to_create_one() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [repo:api] one\n", WORKER);
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", "the api"]).succeeds();
    repo.git(["config", "arborist.workspace.repos.api.path", "../the api"]).succeeds();
    let tip = repo.git(["rev-parse", "main"]).answer();
    let said = repo.arborist(["gardener"]).exits(128).err("the repository 'api' at '");
    let said = said.err("' has no commits yet").stderr();
    paste(&repo, &hinted(&said, "make a first commit: ")).succeeds();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), tip);
    repo.arborist(["gardener"]).succeeds().out("1 completed (T001)");
}
