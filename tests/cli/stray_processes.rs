//! A process that leaves its group and clears its environment ends with its step nevertheless.

#![cfg(target_os = "linux")]

use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use arborist_testkit::{TestRepo, WORKER};

/// Passes if at least one process was started, and none of them lives.
const ALL_ENDED: &str = r#"[ -s "$HOME/pids" ] || exit 1
for pid in $(cat "$HOME/pids"); do ! grep -q '^State:.[RSDT]' /proc/$pid/status 2>/dev/null || exit 1; done"#;

/// A repository with a program that stays. The agent does this before it works.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    repo.write_script("../bin/stay", "#!/bin/sh\necho $$ >> \"$HOME/pids\"\nexec sleep 600\n");
    repo.agent(&format!("case \"$prompt\" in Review*) ;; *) {deed} ;; esac\n{WORKER}"));
    repo
}

fn pids(repo: &TestRepo) -> Vec<String> {
    let pids = fs::read_to_string(repo.home().join("pids")).unwrap_or_default();
    pids.split_ascii_whitespace().map(str::to_owned).collect()
}

/// Ends the processes, and returns whether any was still alive.
fn kill_all(pids: &[String]) -> bool {
    let kill = |pid: &String| {
        Command::new("kill").args(["-9", pid]).output().is_ok_and(|ended| ended.status.success())
    };
    pids.iter().filter(|pid| kill(pid)).count() > 0
}

#[test]
fn a_process_that_cleared_its_environment_is_ended_before_the_tests() {
    let few = "env -i HOME=\"$HOME\" PATH=\"$PATH\" setsid stay";
    let none = "setsid sh -c 'echo $$ >> \"$HOME/pids\"; exec env -i /bin/sleep 600'";
    for start in [few, none] {
        let repo = repo(&format!(
            "{start} </dev/null >/dev/null 2>&1 &\nwhile [ ! -s \"$HOME/pids\" ] && sleep 0.05; do :; done"
        ));
        let run = repo.arborist(["garden", "--max-retries", "1", "--allow-red", "--test-command", ALL_ENDED]);
        let alive = kill_all(&pids(&repo));
        assert!(run.code() == 0 && !alive, "{start}: {}", run.report());
    }
}

#[test]
fn a_process_that_keeps_forking_is_ended_before_the_tests() {
    let start = "setsid hop \"$HOME/hops\" 60000; while [ ! -s \"$HOME/hops\" ] && sleep 0.05; do :; done";
    let repo = repo(start);
    // It ends itself after a minute or two.
    let hop = "#!/bin/sh\necho $2 > \"$1\"\n[ $2 = 0 ] || env -i \"$0\" \"$1\" $(($2 - 1)) </dev/null >/dev/null 2>&1 &\n";
    repo.write_script("../bin/hop", hop);
    let is_over =
        "a=$(cat \"$HOME/hops\"); sleep 0.5; [ \"$a\" = \"$(cat \"$HOME/hops\")\" ] && [ \"$a\" != 0 ]";
    let run = repo.arborist(["garden", "--max-retries", "1", "--allow-red", "--test-command", is_over]);
    assert!(run.code() == 0, "{}", run.report());
}

#[test]
fn a_daemon_started_by_the_drivers_own_git_is_not_ended() {
    let repo = repo("");
    let gpg = "#!/bin/sh\ncat > /dev/null\n[ -s \"$HOME/pids\" ] || setsid stay </dev/null >/dev/null 2>&1 &
printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nx\\n-----END PGP SIGNATURE-----\\n'
printf '\\n[GNUPG:] SIG_CREATED \\n' >&2\n";
    repo.write_script("../bin/sign", gpg);
    let sign = repo.path("../bin/sign");
    repo.git(["config", "gpg.program", sign.to_str().unwrap()]).succeeds();
    repo.git(["config", "commit.gpgSign", "true"]).succeeds();
    repo.arborist(["garden", "--test-command", "true"]).succeeds();
    // It may still be about to begin.
    let begun = Instant::now();
    while pids(&repo).is_empty() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(kill_all(&pids(&repo)), "it was ended");
}
