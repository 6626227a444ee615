//! What bubblewrap keeps read-only is not compared: only the user can have changed it. Everything else is compared as
//! without a sandbox.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use arborist_core::process::ConfinementBackend;
use arborist_testkit::{Run, TestRepo};

/// An agent that waits for the file `prompts/go`, which the user makes. `prompts` can be written in the sandbox.
const WAITER: &str = r#"
case "$prompt" in
  Review*) echo APPROVED ;;
  *) until [ -e "$ROOT/prompts/go" ]; do sleep 0.01; done; echo x > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn has_bwrap() -> bool {
    let works = ConfinementBackend::Bwrap.works();
    if !works {
        println!("skipped: bwrap does not work here");
    }
    works
}

#[test]
fn changes_of_the_user_to_settings_and_refs_are_not_blamed_on_a_running_agent() {
    if !has_bwrap() {
        return;
    }
    for jobs in ["1", "2"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n", WAITER);
        let mut command = repo.command("git-arborist-gardener", &repo.path(""));
        let piped = command.args(["--jobs", jobs, "--sandbox", "bwrap", "--max-retries", "1"]);
        let piped = piped.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let run = piped.spawn().unwrap();
        let end = Instant::now() + Duration::from_secs(120);
        while repo.calls() == 0 {
            assert!(Instant::now() < end, "no agent was called");
            std::thread::sleep(Duration::from_millis(10));
        }
        repo.git(["config", "alias.mine", "status"]).succeeds();
        repo.write_script(".git/hooks/post-commit", "exit 0\n");
        fs::write(repo.root().join("prompts/go"), "").unwrap();
        let ended = run.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(repo.git(["config", "alias.mine"]).answer(), "status");
        assert!(repo.path(".git/hooks/post-commit").exists());
    }
}

#[test]
fn the_git_directory_is_checked_after_a_step_that_runs_outside_the_sandbox() {
    if !has_bwrap() {
        return;
    }
    for jobs in ["1", "2"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n", WAITER);
        fs::write(repo.root().join("prompts/go"), "").unwrap();
        let hook = repo.path(".git/hooks/post-commit").display().to_string();
        let test = format!("test -e T001.txt || test -e T002.txt || exit 0; echo 'touch planted' > '{hook}'");
        repo.git(["config", "arborist.steps.test.sandbox.mode", "off"]).succeeds();
        let run =
            ["gardener", "--jobs", jobs, "--sandbox", "auto", "--max-retries", "1", "--test-command", &test];
        repo.arborist(run).exits(1).err("the hook post-commit");
        assert!(!repo.path(".git/hooks/post-commit").exists());
    }
}

#[test]
fn the_git_directory_is_checked_if_a_folder_in_it_is_granted() {
    if !has_bwrap() {
        return;
    }
    let script = format!(
        "mkdir -p \"$ROOT/repo/.git/hooks\"; echo 'exit 0' > \"$ROOT/repo/.git/hooks/post-commit\"\n{WAITER}"
    );
    for place in [&["--isolate"][..], &["--jobs", "1"]] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", &script);
        fs::write(repo.root().join("prompts/go"), "").unwrap();
        fs::create_dir_all(repo.path(".git/hooks")).unwrap();
        for folder in [repo.path(".git/hooks"), repo.root().join("prompts")] {
            let folder = folder.display().to_string();
            repo.git(["config", "--add", "arborist.sandbox.write", &folder]).succeeds();
        }
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "gardener", "--sandbox", "bwrap", "--max-retries", "1"]).args(place);
        Run::of(command.env_remove("ARBORIST_SANDBOX_WRITE"), b"").exits(1).err("the hook post-commit");
        assert!(!repo.path(".git/hooks/post-commit").exists());
    }
}
