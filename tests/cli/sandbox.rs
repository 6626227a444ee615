//! The sandbox: where agents, reviewers, tests, gates and set-up commands can write. The kit turns it off for all other
//! tests, because their agents leave marks outside of the worktree.

use arborist_core::process::Confinement;
use arborist_testkit::{Run, TestRepo};

/// Tries to write to each place that a child must not change. Every attempt that works leaves a line in a file of the
/// worktree, which is committed.
const TRY: &str = r#"
try() { if "$@" 2>/dev/null; then echo "$*" >> escaped.txt; fi; }
git_dir=$(git rev-parse --git-common-dir)
try touch "$ROOT/planted"
try touch "$HOME/planted"
try touch "$ROOT/repo/planted"
try touch "$git_dir/planted"
try touch "$git_dir/hooks/pre-commit"
try cp "$git_dir/HEAD" "$git_dir/refs/heads/planted"
try git config user.name planted
try git update-ref refs/heads/planted HEAD
try git commit -q --allow-empty -m planted
driver=$$
until grep -q ^git-arborist /proc/$driver/comm; do driver=$(sed -n "s/^PPid:\t//p" /proc/$driver/status); done
try readlink /proc/$driver/fd/1
try dd if=/proc/$driver/mem of=/dev/null count=0
for lane in "$ROOT"/repo.arborist/*/; do
  [ "$lane" -ef . ] || try touch "$lane/planted"
done
"#;

fn agent(script: &str) -> String {
    format!(
        "{script}\ncase \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac\n"
    )
}

fn repo(script: &str) -> TestRepo {
    TestRepo::planned("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n", &agent(script))
}

/// The command line that runs `script` in a shell, with `$ROOT` as the kit's agents have it.
fn shell(repo: &TestRepo, script: &str) -> String {
    repo.write_script("../try.sh", &format!("ROOT='{}'\n{script}", repo.root().display()));
    format!("sh '{}'", repo.path("../try.sh").display())
}

fn assert_contained(repo: &TestRepo) {
    let files = repo.git(["ls-tree", "-r", "--name-only", "main"]).answer();
    assert!(files.contains("T001.txt") && files.contains("T002.txt"), "{files}");
    let escaped = repo.git(["show", "main:escaped.txt"]);
    assert_ne!(escaped.code(), 0, "{}", escaped.stdout());
    assert!(!repo.home().join("planted").exists() && !repo.path("planted").exists());
}

#[test]
fn an_agent_in_a_lane_changes_nothing_outside_of_it() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo(TRY);
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "landlock"]).succeeds();
    assert_contained(&repo);
}

#[test]
fn tests_gates_and_set_up_commands_change_nothing_outside_of_the_worktree() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("");
    // A test fails if it finds what it or another command could do.
    let command = shell(&repo, &format!("{TRY}\n! test -e escaped.txt || {{ cat escaped.txt; exit 1; }}\n"));
    repo.git(["config", "arborist.merge.gates.try.command", &command]).succeeds();
    repo.git(["config", "arborist.worktree.setup", &command]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--test-command", &command]).succeeds();
    assert_contained(&repo);
}

#[test]
fn git_reads_as_usual_in_the_sandbox() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo(
        "set -e\ngit status >/dev/null; git log -1 >/dev/null; git diff HEAD >/dev/null; git show >/dev/null\n",
    );
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto"]).succeeds();
    assert_contained(&repo);
}

#[test]
fn temporary_files_go_to_a_folder_that_is_removed() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("file=$(mktemp) && echo kept > \"$file\" && echo \"$file\" > where.$ARBORIST_TASK\n");
    repo.arborist(["gardener", "--sandbox", "auto"]).succeeds();
    let file = repo.git(["show", "main:where.T001"]).answer();
    assert!(file.contains("git-arborist-"), "{file}");
    assert!(!std::path::Path::new(file.trim()).exists(), "{file}");
}

#[test]
fn folders_of_the_users_choice_can_be_written() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("touch \"$HOME/shared/$ARBORIST_TASK\" || exit 1\n");
    std::fs::create_dir_all(repo.home().join("shared")).unwrap();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--max-retries", "1"]).exits(1);
    repo.git(["config", "arborist.runners.robot.sandbox.write", "~/shared"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--retry-failed"]).succeeds();
    assert!(repo.home().join("shared/T002").exists());
}

#[test]
fn what_the_sandbox_refused_is_named_with_the_key_that_allows_it() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("");
    std::fs::create_dir_all(repo.home().join("data")).unwrap();
    let command = shell(&repo, "echo x > \"$HOME/data/file\"\n");
    let run = repo.arborist(["gardener", "--sandbox", "auto", "--test-command", &command]).exits(1);
    run.err("the sandbox allows no changes to").err("/data/file").err("to sandbox.write");
}

#[test]
fn a_step_can_be_left_out_of_the_sandbox() {
    let repo = repo("");
    let command = shell(&repo, "touch \"$ROOT/tested\"\n");
    repo.git(["config", "arborist.steps.test.sandbox.mode", "off"]).succeeds();
    repo.git(["config", "arborist.steps.gate.sandbox.mode", "off"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--test-command", &command]).succeeds();
    assert!(repo.root().join("tested").exists());
}

#[test]
fn a_tracked_file_does_not_open_the_sandbox_without_approval() {
    for (settings, line) in [
        ("[sandbox]\nmode = \"off\"\n", "sandbox.mode: off"),
        ("[sandbox]\nwrite = [\"~/x\"]\n", "sandbox.write: ~/x"),
        ("[steps.test.sandbox]\nmode = \"off\"\n", "steps.test.sandbox.mode: off"),
        ("[runners.robot.sandbox]\nwrite = [\"/\"]\n", "runners.robot.sandbox.write: /"),
    ] {
        let repo = repo("");
        repo.write(".arborist/config.toml", settings);
        repo.commit("settings\n");
        let gardener = |args: &[&str]| {
            let mut command = repo.command("git", &repo.path(""));
            command.args(["arborist", "gardener"]).args(args);
            Run::of(command.env_remove("ARBORIST_SANDBOX").env_remove("ARBORIST_SANDBOX_WRITE"), b"")
        };
        gardener(&[]).exits(2).err(line);
        gardener(&["--dry-run", "--yes"]).succeeds();
    }
}

#[test]
fn a_relative_folder_is_refused() {
    let repo = repo("");
    repo.git(["config", "arborist.sandbox.write", "somewhere"]).succeeds();
    repo.arborist(["gardener"]).exits(128).err("'sandbox.write' must be a list of folders");
}
