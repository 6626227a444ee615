//! Filters of the user's often run scripts of the repository, which an agent has just written. What they leave running is
//! ended before anything is tested.

#![cfg(target_os = "linux")]

use std::fs;

use arborist_testkit::TestRepo;

/// Passes once at least one process was started, and none of them lives.
const TEST: &str = r#"[ -s "$HOME/pids" ] || exit 1
for pid in $(cat "$HOME/pids"); do ! grep -q '^State:.[RSDT]' /proc/$pid/status 2>/dev/null || exit 1; done"#;

/// A repository whose clean filter is a script of its own. The agent makes that start a process that stays.
fn repo(start: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write("clean.sh", "cat\n");
    repo.write(".gitattributes", "*.txt filter=x\n");
    repo.commit("a plan\n");
    repo.git(["config", "filter.x.clean", "sh ./clean.sh"]).succeeds();
    repo.write_script("../bin/stay", "#!/bin/sh\necho $$ >> \"$HOME/pids\"\nexec sleep 600\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"; printf '%s\\n' '{start}' cat > clean.sh; echo done"
    ));
    repo
}

fn passes(repo: &TestRepo) {
    let ended = repo.arborist(["gardener", "--max-retries", "1", "--allow-red", "--test-command", TEST]);
    let pids = fs::read_to_string(repo.home().join("pids")).unwrap_or_default();
    for pid in pids.split_ascii_whitespace() {
        let _ = std::process::Command::new("kill").args(["-9", pid]).status();
    }
    assert_eq!(ended.code(), 0, "{}", ended.report());
    assert!(repo.git(["log", "--format=%s"]).answer().contains("@T001@complete)"));
}

#[test]
fn what_a_filter_leaves_running_is_ended_before_the_tests() {
    passes(&repo("stay </dev/null >/dev/null 2>&1 &"));
}

#[test]
fn what_leaves_the_group_of_a_filter_is_ended_too() {
    passes(&repo("setsid stay </dev/null >/dev/null 2>&1 &"));
}

#[test]
fn what_a_filter_leaves_running_with_our_own_pipe_open_holds_nobody_up() {
    passes(&repo("stay </dev/null >/dev/null &"));
}
