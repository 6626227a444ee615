//! A pre-commit hook of the user's that runs scripts of the repository: what it stages is committed, what it writes besides
//! is not what tests see, and none of its processes outlives it.

use std::fs;

use arborist_testkit::{TestRepo, pairs};

/// A repository whose hook runs `lint.sh`, which the agent has written.
fn repo(lint: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("lint.sh", "exit 0\n");
    repo.write("t.sh", "[ ! -e T001.txt ] || [ -e helper ]\n");
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    repo.write_script(".git/hooks/pre-commit", "#!/bin/sh\nsh ./lint.sh\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x >> \"$ARBORIST_TASK.txt\"
cat > lint.sh <<'EOF'\n{lint}\nEOF
echo done"
    ));
    repo
}

#[test]
fn tests_do_not_see_files_that_a_hook_writes_without_staging() {
    let lints = ["touch helper", "echo 'exit 0' > t.sh"];
    for (lint, place) in pairs(&lints, &[&["--jobs", "1"][..], &["--isolate"]]) {
        let repo = repo(lint);
        let args = ["gardener", "--max-retries", "1", "--test-command", "sh t.sh"];
        let ended = repo.arborist(args.iter().chain(place));
        assert_ne!(ended.code(), 0, "{lint}: {}", ended.report());
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{lint}");
        let saved = repo.git(["for-each-ref", "refs/arborist/saved"]).answer();
        assert_ne!(saved, "", "{lint}: what it wrote is kept");
    }
}

#[test]
fn files_that_a_hook_writes_and_stages_are_committed_and_tested() {
    let repo = repo("touch helper; git add helper");
    repo.arborist(["gardener", "--test-command", "sh t.sh"]).succeeds();
    assert!(repo.git(["ls-tree", "--name-only", "main"]).answer().contains("helper"));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn uncommitted_changes_of_the_user_survive_a_hook_that_writes_to_the_same_files() {
    let repo = repo("echo hook >> mine.txt; echo hook >> kept.txt");
    repo.write("kept.txt", "kept\n");
    repo.git(["add", "kept.txt"]).succeeds();
    repo.git(["commit", "-q", "--no-verify", "-m", "kept"]).succeeds();
    repo.write("kept.txt", "kept\nuser\n");
    repo.write("mine.txt", "precious\n");
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!((repo.read("kept.txt"), repo.read("mine.txt")), ("kept\nuser\n".into(), "precious\n".into()));
}

#[cfg(target_os = "linux")]
#[test]
fn background_processes_of_a_hook_are_ended_with_it() {
    let repo = repo("");
    let pid = repo.root().join("pid");
    let lint = format!("sleep 600 </dev/null >/dev/null 2>&1 & echo $! > '{}'", pid.display());
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x >> \"$ARBORIST_TASK.txt\"
cat > lint.sh <<'EOF'\n{lint}\nEOF
echo done"
    ));
    // The test tells whether the process is there.
    let test = format!("[ -z \"$ARBORIST_TASK\" ] || ! kill -0 $(cat '{}')", pid.display());
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", &test]).succeeds();
    assert!(fs::read_to_string(pid).is_ok());
}
