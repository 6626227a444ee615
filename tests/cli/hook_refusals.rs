//! What the user's pre-commit hook refused stays in the worktree for the next attempt. It must never become part of a
//! complete task unless the hook accepts it.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::test_workspace::TestWorkspace;
use arborist_testkit::TestRepo;

/// Refuses a line that is about to be committed, as linters do which look only at the staged changes.
const HOOK: &str = "#!/bin/sh\n! git diff --cached HEAD | grep -q '^+SECRET'\n";

const APPROVES: &str = "trap - EXIT\ncase \"$prompt\" in Review*) echo APPROVED; exit ;; esac\n";

/// One task. Its first attempt adds what the hook refuses; `later` is what the next ones do.
fn repo(later: &str) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", &agent("echo SECRET > bad.txt", later));
    repo.write_script(".git/hooks/pre-commit", HOOK);
    repo
}

fn agent(first: &str, later: &str) -> String {
    format!(
        "{APPROVES}if [ ! -e \"$ROOT/begun\" ]; then touch \"$ROOT/begun\"; {first}; else {later}; fi\necho \"${{said-done}}\""
    )
}

fn statuses(repo: &TestRepo) -> Vec<String> {
    let log = repo.git(["log", "--all", "--format=%s"]).answer();
    let status = |line: &str| Some(line.split_once("@T001@")?.1.split_once(')')?.0.to_owned());
    log.lines().filter_map(status).collect()
}

#[track_caller]
fn expect_failed(repo: &TestRepo) {
    let statuses = statuses(repo);
    let passed = |status: &String| status == "implement-pass" || status == "complete";
    assert!(!statuses.iter().any(passed), "{statuses:?}");
}

#[test]
fn a_later_attempt_that_keeps_a_change_refused_by_the_hook_is_refused_too() {
    let unrelated = "date +%N > other.txt";
    let nothing = "said='NOTHING TO DO: it is there'";
    for later in [unrelated, nothing] {
        for place in [&["--jobs", "1"][..], &["--isolate"], &["--session-branch"]] {
            let repo = repo(later);
            let args = ["gardener", "--max-retries", "3"];
            repo.arborist(args.iter().chain(place)).exits(1);
            expect_failed(&repo);
            let said = repo.prompt(2);
            assert!(said.contains("The pre-commit hook refused it"), "{later} {place:?}: {said}");
        }
    }
}

#[test]
fn a_later_attempt_that_removes_a_change_refused_by_the_hook_passes() {
    for place in [&["--jobs", "1"][..], &["--isolate"]] {
        let repo = repo("rm bad.txt; echo good > good.txt");
        repo.arborist(["gardener", "--max-retries", "2"].iter().chain(place)).succeeds();
        let tracked = repo.git(["ls-tree", "-r", "--name-only", "main"]).answer();
        assert!(tracked.contains("good.txt") && !tracked.contains("bad.txt"), "{tracked}");
    }
}

#[test]
fn the_hook_finds_head_on_the_run_branch_even_after_it_refused() {
    for (place, branch) in
        [("--jobs=1", "^main$"), ("--isolate", "^arborist/task/"), ("--session-branch", "^arborist/")]
    {
        let repo = repo("rm bad.txt; echo good > good.txt");
        let asks = format!(
            "git symbolic-ref --short HEAD | grep '{branch}' && git rev-parse --verify HEAD || exit 1\n"
        );
        let hook = HOOK.replacen('\n', &format!("\n{asks}"), 1);
        repo.write_script(".git/hooks/pre-commit", &hook);
        repo.arborist(["gardener", "--max-retries", "2", place]).succeeds();
        assert_eq!(statuses(&repo).iter().filter(|status| *status == "complete").count(), 1, "{place}");
        assert!(!repo.path(".git/arborist/hook").exists(), "{place}");
    }
}

#[test]
fn a_change_that_the_hook_refused_passes_once_the_hook_accepts_it() {
    let repo = repo(":");
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    repo.write_script(".git/hooks/pre-commit", "#!/bin/sh\nexit 0\n");
    repo.arborist(["gardener", "--max-retries", "2"]).exits(1).out("--retry-failed");
    repo.arborist(["gardener", "--retry-failed"]).succeeds();
    assert_eq!(repo.read("bad.txt"), "SECRET\n");
}

#[test]
fn a_plan_command_that_changes_nothing_after_a_hook_refusal_fails_too() {
    let repo = TestRepo::init();
    let plan = r#"{"nodes": {"T001": {"id": "T001", "name": "a", "runner": "shell",
        "command": "[ -e bad.txt ] || echo SECRET > bad.txt"}}, "root_ids": ["T001"]}"#;
    repo.write("task-tree.json", plan);
    repo.commit("a plan\n");
    repo.agent(APPROVES);
    repo.write_script(".git/hooks/pre-commit", HOOK);
    repo.arborist(["gardener", "--yes", "--max-retries", "2"]).exits(1);
    expect_failed(&repo);
}

#[test]
fn a_refused_change_is_still_refused_after_a_reset_or_a_commit_of_the_user() {
    for is_reset in [true, false] {
        let repo = repo("date +%N > other.txt");
        repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
        repo.write("theirs.txt", "of the user\n");
        repo.commit("of the user\n");
        let mut args = vec!["gardener", "--max-retries", "1"];
        if is_reset {
            repo.arborist(["reset", "T001"]).succeeds();
        } else {
            args.push("--retry-failed");
        }
        repo.arborist(args).exits(1);
        expect_failed(&repo);
        let body = repo.git(["log", "--grep=T001@implement-fail", "-1", "--format=%b"]).answer();
        assert!(body.contains("The pre-commit hook refused it"), "{body}");
    }
}

/// A failed call is not followed by the hook where the agent did something that it may not, or where the driver ended.
#[test]
fn files_of_a_failed_attempt_that_the_hook_never_saw_are_checked_in_the_next_attempt() {
    let killed = "echo SECRET > bad.txt; kill -9 $PPID; sleep 60";
    let violation = "echo SECRET > bad.txt; echo x > .git/hooks/post-checkout";
    for first in [killed, violation] {
        for later in ["date +%N > other.txt", "said='NOTHING TO DO: it is there'"] {
            let repo = repo("");
            repo.agent(&agent(first, later));
            if first == killed {
                assert_ne!(repo.arborist(["gardener", "--max-retries", "2"]).code(), 0);
            }
            repo.arborist(["gardener", "--max-retries", "2"]).exits(1);
            expect_failed(&repo);
        }
    }
}

#[test]
fn a_change_refused_by_the_hook_of_another_repository_is_refused_again() {
    let workspace = TestWorkspace::of(&["backend"], "- [ ] T001 [repo:backend] one\n");
    let first = "cd \"$ARBORIST_REPO_BACKEND\" && echo SECRET > bad.txt";
    workspace.agent(&agent(first, "cd \"$ARBORIST_REPO_BACKEND\" && date +%N > other.txt"));
    let hook = workspace.clone_of("backend").join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, HOOK).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    workspace.arborist(["gardener", "--max-retries", "2"]).exits(1);
    expect_failed(&workspace);
}
