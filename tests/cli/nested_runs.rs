//! A step of a run may look at the run, and start nothing that writes to the same repository.

use std::{
    fs,
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use arborist_testkit::{TestRepo, WORKER};

/// Commands that write, with whatever arguments they need to get as far as that.
const WRITING: [&str; 21] = [
    "gardener",
    "gardener --session-branch --new-run",
    "garden T001",
    "merge run",
    "merge add T001",
    "merge drop T001",
    "merge retry T001",
    "merge resolve T001",
    "merge T001",
    "reset T001",
    "cleanup",
    "cleanup restore x",
    "session resume x",
    "session replay x --turn 1",
    "session end --session x",
    "worktree add T001",
    "worktree remove T001",
    "worktree prune",
    "workspace sync",
    "workspace push",
    "hooks install",
];

/// The same for those that only read.
const READING: [&str; 8] = [
    "state",
    "plan",
    "session list",
    "worktree list",
    "merge list",
    "trailers check HEAD",
    "cleanup --dry-run",
    "workspace status",
];

/// A repository whose agent writes how each of these commands ends, started as `with` says.
fn repo(with: &str, commands: &[&str]) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    let calls: Vec<String> = commands
        .iter()
        .map(|command| {
            format!("{with} sh -c 'git arborist {command} >/dev/null 2>&1; echo \"$? {command}\" >> \"$ROOT/codes\"'")
        })
        .collect();
    repo.agent(&format!(
        "case \"$prompt\" in Review*) ;; *) export ROOT\n{}\n;; esac\n{WORKER}",
        calls.join("\n")
    ));
    repo
}

fn codes(repo: &TestRepo) -> Vec<String> {
    let codes = fs::read_to_string(repo.root().join("codes")).unwrap_or_default();
    codes.lines().map(str::to_owned).collect()
}

fn sessions(repo: &TestRepo) -> usize {
    repo.git(["for-each-ref", "refs/arborist/sessions"]).answer().lines().count()
}

#[test]
fn every_command_that_writes_is_refused_in_a_step() {
    let repo = repo("", &WRITING);
    repo.arborist(["gardener"]).succeeds();
    let wanted: Vec<String> = WRITING.iter().map(|command| format!("2 {command}")).collect();
    assert_eq!(codes(&repo), wanted);
    assert_eq!(sessions(&repo), 1);
}

#[test]
fn commands_that_only_read_work_in_a_step() {
    let repo = repo("", &READING);
    repo.arborist(["gardener", "--test-command", "git arborist state"]).succeeds();
    let wanted: Vec<String> = READING.iter().map(|command| format!("0 {command}")).collect();
    assert_eq!(codes(&repo), wanted);
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_that_clears_its_environment_is_refused_too() {
    let clear = r#"env -i HOME="$HOME" PATH="$PATH" ROOT="$ROOT""#;
    for with in [clear.to_owned(), format!("setsid -w {clear}")] {
        let repo = repo(&with, &["gardener --session-branch --new-run"]);
        repo.arborist(["gardener"]).succeeds();
        assert_eq!(codes(&repo), ["2 gardener --session-branch --new-run"], "{with}");
        assert_eq!(sessions(&repo), 1);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_run_in_a_step_is_refused_even_if_the_locks_were_removed() {
    let remove = r#"rm -rf "$(git rev-parse --git-common-dir)/arborist/locks""#;
    let clear = r#"env -i HOME="$HOME" PATH="$PATH" ROOT="$ROOT""#;
    let repo = repo(&format!("{remove}; {clear}"), &["gardener"]);
    let run = repo.arborist(["gardener", "--session-branch", "--max-retries", "1"]).exits(1);
    assert_eq!(codes(&repo), ["2 gardener"]);
    run.err("was removed while an agent or a command ran");
    assert_eq!(sessions(&repo), 1);
    assert!(repo.path(".git/arborist/locks").exists());
}

#[test]
fn a_gate_cannot_run_commands_that_write() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n");
    repo.commit("a plan\n");
    repo.agent(WORKER);
    let gate = "git arborist merge run; echo $? > \"$HOME/code\"";
    repo.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    assert_eq!(fs::read_to_string(repo.home().join("code")).unwrap().trim(), "2");
}

#[test]
fn an_agent_may_start_a_run_in_another_repository() {
    let other = TestRepo::init();
    other.write("tasks.md", "- [ ] T001 one\n");
    other.commit("a plan\n");
    other.agent(WORKER);
    let with = format!("cd '{}' && HOME='{}'", other.path("").display(), other.home().display());
    let repo = repo(&with, &["gardener"]);
    repo.agent(&format!(
        "case \"$prompt\" in Review*) ;; *) (cd '{}'; HOME='{}' git arborist gardener >/dev/null 2>&1; echo \"$? gardener\" >> \"$ROOT/codes\") ;; esac\n{WORKER}",
        other.path("").display(),
        other.home().display()
    ));
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(codes(&repo), ["0 gardener"]);
    assert!(other.git(["log", "--format=%s"]).answer().contains("@T001@complete)"));
}

fn await_file(file: &Path) {
    let end = Instant::now() + Duration::from_secs(120);
    while !file.exists() {
        assert!(Instant::now() < end, "{} does not appear", file.display());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_session_that_began_during_another_one_is_not_continued_automatically() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    // The first agent ends in a later second than that in which the second session has begun.
    repo.agent(&format!(
        "case \"$prompt\" in Review*) ;; *) if mkdir \"$ROOT/working\" 2>/dev/null; then
until [ -e \"$ROOT/go\" ]; do sleep 0.02; done; from=$(date +%s); until [ $(date +%s) -gt $from ]; do sleep 0.05; done
fi ;; esac\n{WORKER}"
    ));
    let start = |more: &[&str]| {
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "gardener", "--session-branch"]).args(more).env_remove("GIT_TEST_DATE_NOW");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let mut first = start(&[]).spawn().unwrap();
    await_file(&repo.root().join("working"));
    // The second one begins in a later second than the first.
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let from = seconds();
    while seconds() == from {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(start(&["--new-run"]).status().unwrap().success());
    fs::write(repo.root().join("go"), "").unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(sessions(&repo), 2);
    assert_eq!(start(&[]).status().unwrap().code(), Some(2));
    assert_eq!(sessions(&repo), 2);
}

/// The seconds in which the sessions began.
fn starts(repo: &TestRepo) -> Vec<String> {
    let list: serde_json::Value =
        serde_json::from_str(&repo.arborist(["session", "list", "--json"]).answer()).unwrap();
    let sessions = list["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["started"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_session_is_continued_if_another_one_began_after_it_in_the_same_second() {
    let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    // Two sessions in one second need luck on a busy machine.
    for _ in 0..12 {
        let repo = TestRepo::init();
        repo.write("tasks.md", "- [ ] T001 one\n");
        repo.commit("a plan\n");
        // The session on main writes records in a later second than that in which both have begun.
        repo.agent(&format!(
            "case \"$prompt\" in Review*) ;; *) if [ \"$(git branch --show-current)\" = main ]; then
from=$(date +%s); until [ $(date +%s) -gt $from ]; do sleep 0.02; done
fi ;; esac\n{WORKER}"
        ));
        let start = |more: &[&str]| {
            let mut command = repo.command("git", &repo.path(""));
            command.args(["arborist", "gardener"]).args(more).env_remove("GIT_TEST_DATE_NOW");
            command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().code()
        };
        let from = seconds();
        while seconds() == from {
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(start(&["--session-branch"]), Some(0));
        assert_eq!(start(&[]), Some(0));
        let starts = starts(&repo);
        assert_eq!(starts.len(), 2);
        if starts[0] == starts[1] {
            assert_eq!(start(&["--session-branch"]), Some(0));
            assert_eq!(sessions(&repo), 2);
            return;
        }
    }
    eprintln!("skipped: no two sessions began in the same second");
}
