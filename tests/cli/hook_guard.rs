//! A pre-commit hook of the user's that runs scripts of the repository: what it stages is committed, what it writes besides
//! is not what tests see, and none of its processes outlives it.

use std::fs;

use arborist_testkit::Garden;

/// A garden whose hook runs `lint.sh`, which the agent has written.
fn garden(lint: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("lint.sh", "exit 0\n");
    garden.write("t.sh", "[ ! -e T001.txt ] || [ -e helper ]\n");
    garden.write("tasks.md", "- [ ] T001 one\n");
    garden.commit("a plan\n");
    garden.write_script(".git/hooks/pre-commit", "#!/bin/sh\nsh ./lint.sh\n");
    garden.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x >> \"$ARBORIST_TASK.txt\"
cat > lint.sh <<'EOF'\n{lint}\nEOF
echo done"
    ));
    garden
}

#[test]
fn files_that_a_hook_writes_and_does_not_stage_are_not_there_for_the_tests() {
    for lint in ["touch helper", "echo 'exit 0' > t.sh"] {
        for place in [&["--jobs", "1"][..], &["--isolate"]] {
            let garden = garden(lint);
            let args = ["gardener", "--max-retries", "1", "--test-command", "sh t.sh"];
            let ended = garden.arborist(args.iter().chain(place));
            assert_ne!(ended.code(), 0, "{lint}: {}", ended.report());
            assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "{lint}");
            let saved = garden.git(["for-each-ref", "refs/arborist/saved"]).answer();
            assert_ne!(saved, "", "{lint}: what it wrote is kept");
        }
    }
}

#[test]
fn files_that_a_hook_writes_and_stages_are_committed_and_tested() {
    let garden = garden("touch helper; git add helper");
    garden.arborist(["gardener", "--test-command", "sh t.sh"]).succeeds();
    assert!(garden.git(["ls-tree", "--name-only", "main"]).answer().contains("helper"));
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn what_the_user_has_not_committed_stays_as_it_is_while_a_hook_is_asked() {
    let garden = garden("echo hook >> mine.txt; echo hook >> kept.txt");
    garden.write("kept.txt", "kept\n");
    garden.git(["add", "kept.txt"]).succeeds();
    garden.git(["commit", "-q", "--no-verify", "-m", "kept"]).succeeds();
    garden.write("kept.txt", "kept\nuser\n");
    garden.write("mine.txt", "precious\n");
    garden.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(
        (garden.read("kept.txt"), garden.read("mine.txt")),
        ("kept\nuser\n".into(), "precious\n".into())
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_a_hook_leaves_behind_ends_with_it() {
    let garden = garden("");
    let pid = garden.root().join("pid");
    let lint = format!("sleep 600 </dev/null >/dev/null 2>&1 & echo $! > '{}'", pid.display());
    garden.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x >> \"$ARBORIST_TASK.txt\"
cat > lint.sh <<'EOF'\n{lint}\nEOF
echo done"
    ));
    // The test tells whether the process is there.
    let test = format!("[ -z \"$ARBORIST_TASK\" ] || ! kill -0 $(cat '{}')", pid.display());
    garden.arborist(["gardener", "--max-retries", "1", "--test-command", &test]).succeeds();
    assert!(fs::read_to_string(pid).is_ok());
}
