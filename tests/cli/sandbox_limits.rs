//! How many processes a child may run, and how large its files may become (`sandbox.max-processes`,
//! `sandbox.max-file-size`).

use std::{collections::BTreeSet, fs, os::unix::fs::MetadataExt};

use arborist_core::process::ConfinementBackend;
use arborist_testkit::{Run, TestRepo};

const WORKER: &str =
    "case \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac\n";
const LARGE: &str = "head -c 1200000 /dev/zero > large.bin";
const TOO_LARGE: &str = "no file may become larger than 1 MB (setting sandbox.max-file-size)";

fn repo(agent: &str) -> TestRepo {
    TestRepo::planned("tasks.md", "- [ ] T001 a\n", &format!("{agent}\n{WORKER}"))
}

fn set_config(repo: &TestRepo, key: &str, value: &str) {
    repo.git(["config", &format!("arborist.{key}"), value]).succeeds();
}

/// The mode `off`, and those of the backends that work here.
fn modes() -> Vec<&'static str> {
    let all = [("landlock", ConfinementBackend::Landlock), ("bwrap", ConfinementBackend::Bwrap)];
    let working = all.into_iter().filter(|(_, backend)| backend.works()).map(|(mode, _)| mode);
    ["off"].into_iter().chain(working).collect()
}

fn is_root(repo: &TestRepo) -> bool {
    fs::metadata(repo.path("")).unwrap().uid() == 0
}

#[test]
fn an_agent_or_test_that_writes_a_too_large_file_fails_with_the_reason() {
    for mode in modes() {
        let run = ["gardener", "--max-retries", "1", "--sandbox", mode];
        let by_agent = repo(&format!("{LARGE} || exit"));
        set_config(&by_agent, "sandbox.max-file-size", "1");
        by_agent.arborist(run).exits(1).err(TOO_LARGE);
        set_config(&by_agent, "sandbox.max-file-size", "4");
        by_agent.arborist([&run[..], &["--retry-failed"]].concat()).succeeds();
        let by_test = repo("");
        set_config(&by_test, "sandbox.max-file-size", "1");
        let command = format!("test ! -e T001.txt || {LARGE}");
        let ended = by_test.arborist([&run[..], &["--test-command", &command]].concat()).exits(1);
        ended.err("failed with exit code 153 (file size limit exceeded)").err(TOO_LARGE);
        let told = by_test.git(["log", "--format=%b", "--grep=T001@test-fail"]).answer();
        assert!(told.contains(TOO_LARGE), "{told}");
    }
}

#[test]
fn the_file_size_limit_applies_to_all_child_processes_of_a_run() {
    let repo = repo("echo agent $(ulimit -f) >> \"$ROOT/limits\"");
    let log = |what: &str| format!("echo {what} $(ulimit -f) >> '{}/limits'", repo.root().display());
    set_config(&repo, "sandbox.max-file-size", "1");
    set_config(&repo, "merge.gates.size.command", &log("gate"));
    set_config(&repo, "worktree.setup", &log("setup"));
    repo.write_script("../hook", &format!("#!/bin/sh\n{}\n", log("hook")));
    let hook = repo.path(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::copy(repo.path("../hook"), hook).unwrap();
    repo.arborist(["gardener", "--jobs", "2", "--test-command", &log("test")]).succeeds();
    let limits = fs::read_to_string(repo.root().join("limits")).unwrap();
    let limits: BTreeSet<&str> = limits.lines().collect();
    let expected = ["agent 1954", "gate 1954", "hook 1954", "setup 1954", "test 1954"];
    assert_eq!(limits, BTreeSet::from(expected));
}

#[test]
fn one_step_can_have_a_different_limit() {
    let repo = repo(LARGE);
    set_config(&repo, "sandbox.max-file-size", "1");
    set_config(&repo, "steps.implement.sandbox.max-file-size", "4");
    set_config(&repo, "steps.review.sandbox.max-file-size", "4");
    repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
    set_config(&repo, "steps.test.sandbox.max-file-size", "2");
    let limit = "test \"$(ulimit -f)\" = 3907";
    repo.arborist(["gardener", "--new-run", "--max-retries", "1", "--test-command", limit]).succeeds();
}

#[test]
fn tracked_configuration_can_only_lower_the_limits() {
    for (tracked, users, expected) in
        [("1", None, "1954"), ("5", Some("1"), "1954"), ("1", Some("5"), "1954")]
    {
        let repo = repo("");
        repo.write(".arborist/config.toml", format!("[steps.test.sandbox]\nmax-file-size = {tracked}\n"));
        repo.commit("settings\n");
        if let Some(users) = users {
            set_config(&repo, "sandbox.max-file-size", users);
        }
        let command = format!("test \"$(ulimit -f)\" = {expected}");
        repo.arborist(["gardener", "--max-retries", "1", "--test-command", &command]).succeeds();
    }
}

#[test]
fn a_test_that_starts_too_many_processes_fails_with_the_reason() {
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 2 & done; wait";
    for mode in modes() {
        let repo = repo("");
        if is_root(&repo) {
            println!("skipped: the system does not limit the processes of root");
            return;
        }
        let command = format!("test ! -e T001.txt || {{ {script}; }}");
        let run = ["gardener", "--max-retries", "1", "--sandbox", mode, "--test-command", &command];
        set_config(&repo, "steps.test.sandbox.max-processes", "10");
        let words = "at most 10 processes and threads may run (setting sandbox.max-processes)";
        repo.arborist(run).exits(1).err(words);
        // Other tests of the same user start processes, too.
        set_config(&repo, "steps.test.sandbox.max-processes", "2000");
        repo.arborist(["gardener", "--sandbox", mode, "--new-run", "--test-command", &command]).succeeds();
    }
}

#[test]
fn sandbox_check_shows_the_limits() {
    let repo = repo("");
    let check = |mode: &str| {
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "sandbox", "check"]).env("ARBORIST_SANDBOX", mode);
        Run::of(command.env_remove("ARBORIST_SANDBOX_WRITE"), b"")
    };
    let row = |run: &Run, rule: &str| {
        let output = run.stdout();
        let line = output.lines().find(|line| line.starts_with(rule)).unwrap_or_else(|| panic!("{output}"));
        line.trim_start_matches(rule).trim().to_owned()
    };
    for mode in modes() {
        let run = check(mode);
        assert_eq!(row(&run, "write large files"), "not limited", "{mode}");
        assert_eq!(row(&run, "run many processes"), "not limited", "{mode}");
    }
    set_config(&repo, "sandbox.max-file-size", "20");
    set_config(&repo, "sandbox.max-processes", "1");
    for mode in modes() {
        let run = check(mode);
        assert_eq!(row(&run, "write large files"), "limited to 20 MB", "{mode}");
        let processes = if is_root(&repo) { "not enforced" } else { "limited to 1 process" };
        assert_eq!(row(&run, "run many processes"), processes, "{mode}");
    }
    assert_eq!(repo.git(["status", "--porcelain", "--ignored"]).answer(), "");
}
