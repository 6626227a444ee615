//! Filters of the user's often run scripts of the repository, which an agent may have just written. Scripts that the settings
//! name are put back, and what others leave running is ended before anything is tested.

#![cfg(target_os = "linux")]

use std::fs;

use arborist_testkit::TestRepo;

/// Passes once at least one process was started, and none of them lives.
const TEST: &str = r#"[ -s "$HOME/pids" ] || exit 1
for pid in $(cat "$HOME/pids"); do ! grep -q '^State:.[RSDT]' /proc/$pid/status 2>/dev/null || exit 1; done"#;

/// A repository whose clean filter is a script of its own, which loads another one. The agent makes that one start a process
/// that stays.
fn repo(start: &str) -> TestRepo {
    let wait = r#"while [ ! -s "$HOME/pids" ]; do sleep 0.05; done"#;
    repo_with_agent(&format!("printf '%s\\n' '{start}' '{wait}' > inner.sh"))
}

fn repo_with_agent(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write("clean.sh", ". ./inner.sh\ncat\n");
    repo.write("inner.sh", "true\n");
    repo.write(".gitattributes", "*.txt filter=x\n");
    repo.commit("a plan\n");
    repo.git(["config", "filter.x.clean", "sh ./clean.sh"]).succeeds();
    repo.write_script("../bin/stay", "#!/bin/sh\necho $$ >> \"$HOME/pids\"\nexec sleep 600\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"; {deed}; echo done"
    ));
    repo
}

fn expect_run_passes(repo: &TestRepo) {
    let ended = repo.arborist(["gardener", "--max-retries", "1", "--allow-red", "--test-command", TEST]);
    let pids = fs::read_to_string(repo.home().join("pids")).unwrap_or_default();
    for pid in pids.split_ascii_whitespace() {
        let _ = std::process::Command::new("kill").args(["-9", pid]).status();
    }
    assert_eq!(ended.code(), 0, "{}", ended.report());
    assert!(repo.git(["log", "--format=%s"]).answer().contains("@T001@complete)"));
}

#[test]
fn processes_left_by_a_filter_are_ended_before_the_tests() {
    expect_run_passes(&repo("stay </dev/null >/dev/null 2>&1 &"));
}

#[test]
fn processes_that_leave_the_process_group_of_a_filter_are_ended_too() {
    expect_run_passes(&repo("setsid stay </dev/null >/dev/null 2>&1 &"));
}

#[test]
fn a_process_of_a_filter_that_keeps_our_pipe_open_does_not_block_the_run() {
    expect_run_passes(&repo("stay </dev/null >/dev/null &"));
}

/// Writes this file, as a script that plants a hook and a setting.
fn plant_by(file: &str) -> String {
    let plant = r#"echo true > "$ROOT/repo/.git/hooks/post-checkout"
printf "[alias]\n\tx = status\n" >> "$ROOT/repo/.git/config"; cat"#;
    format!("{{ echo \"ROOT='$ROOT'\"; echo '{plant}'; }} > {file}")
}

#[test]
fn a_filter_script_edited_by_a_task_is_restored_and_the_attempt_fails() {
    for args in [&[][..], &["--isolate"]] {
        let repo = repo_with_agent(&plant_by("clean.sh"));
        let args = [&["gardener", "--max-retries", "1"], args].concat();
        repo.arborist(args).exits(1).out("clean.sh");
        assert!(!repo.path(".git/hooks/post-checkout").exists());
        assert_eq!(repo.git(["config", "alias.x"]).code(), 1);
        assert_eq!(repo.git(["log", "--format=%s", "main", "--", "clean.sh"]).answer(), "a plan");
        assert_eq!(repo.read("clean.sh"), ". ./inner.sh\ncat\n");
    }
}

#[test]
fn a_merge_driver_script_edited_by_a_task_is_restored_and_the_attempt_fails() {
    let repo = repo_with_agent(&plant_by("inner.sh"));
    repo.git(["config", "--unset", "filter.x.clean"]).succeeds();
    repo.git(["config", "merge.x.driver", "sh 'inner.sh' %O %A %B"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1).out("inner.sh");
    assert_eq!(repo.read("inner.sh"), "true\n");
}

#[test]
fn a_hook_installed_by_a_filter_script_fails_the_attempt() {
    let repo = repo_with_agent(&plant_by("inner.sh"));
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1).err("the hook post-checkout was added");
}

#[test]
fn git_reads_no_settings_or_scripts_through_a_folder_replaced_by_a_link() {
    let plant =
        "mkdir -p build/l; echo '[core]' > build/l/git.cfg; echo 'touch \"$HOME/planted\"' > build/l/f.sh";
    // The folder exists, or it does not.
    for (before, deed) in
        [("conf/git.cfg", "mv conf build/old; ln -s build/l conf"), ("x", "ln -s build/l conf")]
    {
        for setting in [["include.path", "../conf/git.cfg"], ["filter.y.clean", "sh conf/f.sh"]] {
            let repo = repo_with_agent(&format!("{plant}; {deed}"));
            repo.write(".gitignore", "build/\n");
            repo.write(before, "");
            repo.commit("a file\n");
            repo.git(["config", setting[0], setting[1]]).succeeds();
            let run = repo.arborist(["gardener", "--max-retries", "2", "--test-command", "true"]);
            run.exits(1).out("conf");
            assert!(!repo.path("conf").is_symlink(), "{setting:?} {before}");
            assert!(!repo.home().join("planted").exists(), "{setting:?} {before}");
        }
    }
}

#[test]
fn the_folder_of_a_linked_hook_script_cannot_be_replaced_by_a_link() {
    let deed = "mkdir build; cp -r tools build/t; echo 'touch \"$HOME/planted\"' >> build/t/hook.sh
mv tools build/old; ln -s build/t tools";
    let repo = repo_with_agent(deed);
    repo.write(".gitignore", "build/\n");
    repo.write_script("tools/hook.sh", "#!/bin/sh\n");
    repo.commit("a hook\n");
    std::os::unix::fs::symlink("../../tools/hook.sh", repo.path(".git/hooks/post-index-change")).unwrap();
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", "true"]).exits(1);
    repo.write("more", "x");
    repo.git(["add", "more"]).succeeds();
    assert!(!repo.home().join("planted").exists());
}
