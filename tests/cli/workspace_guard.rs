//! Every child of a run is watched in all repositories of its workspace, whichever task it works for.

use std::fs;

use arborist_testkit::Run;

use crate::test_workspace::TestWorkspace;

/// The second task does not work in the other repository.
const PLAN: &str = "- [ ] T001 [repo:backend] one\n- [ ] T002 two\n- [ ] T003 [repo:backend] three\n";

/// A workspace whose agent does `deed` once, when it works on T002. `$B` is the session's branch in the other repository,
/// and `$W` its worktree there.
fn workspace(plan: &str, deed: &str) -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"
if [ $ARBORIST_TASK = T002 ] && [ ! -e \"$ROOT/once\" ]; then touch \"$ROOT/once\"; unset GIT_DIR
B=$(git -C \"$ROOT/backend\" for-each-ref --format='%(refname)' refs/heads/arborist | head -1)
W=$(ls -d \"$ROOT\"/backend.arborist/session-*)
{deed}
fi
echo done"
    ));
    workspace
}

/// How often T002 failed.
fn failures(workspace: &TestWorkspace) -> usize {
    let log = workspace.git(["log", "--branches", "--format=%s"]).answer();
    log.matches("@T002@implement-fail)").count()
}

fn gardener(workspace: &TestWorkspace, args: &[&str]) -> Run {
    workspace.arborist(["gardener", "--yes"].iter().chain(args))
}

fn push_backend(workspace: &TestWorkspace) {
    workspace.set("backend", "remote", workspace.remote_of("backend").to_str().unwrap());
    workspace.set("backend", "push", "on_checkpoint");
}

/// Commits a file to the session's branch there, and gives the new tip in `$C`.
const FORGE: &str = r#"cd "$ROOT/backend"; blob=$(echo evil | git hash-object -w --stdin)
tree=$( { git ls-tree $B; printf '100644 blob %s\tevil.txt\n' $blob; } | git mktree)
C=$(git commit-tree $tree -p $B -m "by the user")"#;

#[test]
fn uncommitted_files_in_the_checkout_of_another_repository_are_saved_and_reported() {
    let deed = "cd \"$ROOT/backend\"; git checkout -q kept.txt; echo garbage > mine.txt";
    for args in [&[][..], &["--jobs", "2"]] {
        let workspace = workspace(PLAN, deed);
        let backend = workspace.clone_of("backend");
        fs::write(backend.join("kept.txt"), "edited").unwrap();
        fs::write(backend.join("mine.txt"), "untracked").unwrap();
        gardener(&workspace, args).succeeds().out(
            "uncommitted changes in your checkout of 'backend' were undone (kept.txt) and other uncommitted files \
             changed (mine.txt); the versions from its start are kept in refs/arborist/saved/",
        );
        let listed = ["for-each-ref", "--format=%(refname)", "refs/arborist/saved/checkout"];
        let name = workspace.git_in(&backend, listed).answer();
        let read = |path: &str| workspace.git_in(&backend, ["show", &format!("{name}:{path}")]).answer();
        assert_eq!(["kept.txt", "mine.txt"].map(read), ["edited", "untracked"], "{args:?}");
    }
}

#[test]
fn a_branch_in_a_repository_outside_the_task_is_restored_and_not_pushed() {
    let deed = format!("{FORGE}; git update-ref $B $C");
    let workspace = workspace("- [ ] T001 [repo:backend] one\n- [ ] T002 two\n", &deed);
    push_backend(&workspace);
    gardener(&workspace, &[]).succeeds();
    assert_eq!(failures(&workspace), 1);
    let branch = workspace.session_branch("backend");
    for place in [workspace.clone_of("backend"), workspace.remote_of("backend")] {
        let log = workspace.git_in(&place, ["log", "--format=%s", &branch]).answer();
        assert!(log.contains("@T001@") && !log.contains("by the user"), "{}: {log}", place.display());
    }
}

#[test]
fn refs_that_an_agent_creates_next_to_the_session_branch_are_not_pushed() {
    let deed = format!(
        "{FORGE}; S=${{B##*/}}; git update-ref refs/arborist/sessions/$S $C
git update-ref refs/heads/arborist/zzz/$S $C
git update-ref refs/heads/arborist/task/$(echo ${{B#refs/heads/}} | sed 's,/,%2F,g')/T009 $C"
    );
    let workspace = workspace(PLAN, &deed);
    push_backend(&workspace);
    gardener(&workspace, &[]).succeeds();
    assert_eq!(failures(&workspace), 1);
    let remote = workspace.remote_of("backend");
    let all = workspace.git_in(&remote, ["log", "--all", "--format=%s"]).answer();
    assert!(all.contains("@T003@") && !all.contains("by the user"), "{all}");
}

#[test]
fn settings_and_hooks_of_a_repository_outside_the_task_are_restored() {
    let deed = r#"git -C "$ROOT/backend" config filter.x.clean "touch '$ROOT/run'; cat"
git -C "$ROOT/backend" config remote.origin.receivepack "touch '$ROOT/run'; git-receive-pack"
mkdir -p "$ROOT/backend/.git/info"; echo '* filter=x' > "$ROOT/backend/.git/info/attributes"
printf '#!/bin/sh\ntouch "%s/run"\n' "$ROOT" > "$ROOT/backend/.git/hooks/pre-commit"; chmod +x "$ROOT/backend/.git/hooks/pre-commit""#;
    let workspace = workspace(PLAN, deed);
    push_backend(&workspace);
    gardener(&workspace, &[]).succeeds();
    assert_eq!(failures(&workspace), 1);
    let git_dir = workspace.clone_of("backend").join(".git");
    let config = fs::read_to_string(git_dir.join("config")).unwrap();
    assert!(!config.contains("filter") && !config.contains("receivepack"), "{config}");
    assert!(!git_dir.join("hooks/pre-commit").exists());
    assert!(!fs::read_to_string(git_dir.join("info/attributes")).unwrap_or_default().contains("filter"));
    // The next run finds nothing of it, either.
    workspace.write("tasks.md", format!("{PLAN}- [ ] T004 [repo:backend] four\n"));
    workspace.commit("more\n");
    gardener(&workspace, &["--accept-changes"]).succeeds();
    assert!(!workspace.root().join("run").exists());
}

#[test]
fn the_next_task_is_not_tested_with_files_that_a_task_left_in_another_repository() {
    let deed = "echo evil > \"$W/evil.txt\"; echo evil >> \"$W/kept.txt\"; git -C \"$W\" add -A";
    let workspace = workspace(PLAN, deed);
    let test = format!("ls > '{0}/seen-'$ARBORIST_TASK; ! grep -q evil *.txt", workspace.root().display());
    gardener(&workspace, &["--test-command", &test]).succeeds();
    let seen = fs::read_to_string(workspace.root().join("seen-T003")).unwrap();
    assert!(seen.contains("T003.txt") && !seen.contains("evil.txt"), "{seen}");
    let backend = workspace.clone_of("backend");
    let saved =
        workspace.git_in(&backend, ["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    let evil = workspace.git_in(&backend, ["show", &format!("{}:evil.txt", saved.trim())]).answer();
    assert_eq!(evil, "evil", "{saved}");
}

#[test]
fn a_worktree_that_a_task_switched_in_another_repository_is_on_its_branch_again() {
    let workspace = workspace(PLAN, "git -C \"$W\" checkout -q --detach; mkfifo \"$W/.gitignore\"");
    gardener(&workspace, &[]).succeeds();
    let backend = workspace.clone_of("backend");
    let branch = workspace.session_branch("backend");
    let log = workspace.git_in(&backend, ["log", "--format=%s", &branch]).answer();
    assert!(log.contains("@T003@implement-pass"), "{log}");
}

#[test]
fn a_tool_of_another_repository_runs_as_committed_and_not_as_a_task_changed_it() {
    let workspace = workspace("- [ ] T002 two\n", "echo 'exit 0' > \"$W/check.sh\"");
    let backend = workspace.clone_of("backend");
    fs::write(backend.join("check.sh"), "[ -z \"$ARBORIST_TASK\" ]\n").unwrap();
    workspace.git_in(&backend, ["add", "-A"]).succeeds();
    workspace.git_in(&backend, ["commit", "-q", "-m", "check"]).succeeds();
    workspace.git_in(&backend, ["push", "-q", "origin", "main"]).succeeds();
    workspace.set("backend", "tools.run-tests", "sh check.sh");
    let ended = gardener(&workspace, &["--max-retries", "1", "--test-command", "backend:run-tests"]);
    assert_eq!(ended.code(), 1, "{}", ended.report());
    let log = workspace.git(["log", "--branches", "--format=%s"]).answer();
    assert!(log.contains("@T002@test-fail)") && !log.contains("@T002@complete)"), "{log}");
}

#[test]
fn baseline_tests_that_write_to_another_repository_are_refused() {
    let workspace = workspace("- [ ] T002 two\n", "");
    let test = format!("git config -f '{}/backend/.git/config' x.y z", workspace.root().display());
    assert_eq!(gardener(&workspace, &["--test-command", &test]).code(), 1);
    let config = fs::read_to_string(workspace.clone_of("backend").join(".git/config")).unwrap();
    assert!(!config.contains("[x]"), "{config}");
    assert!(!workspace.root().join("once").exists());
}

#[test]
fn changes_by_a_hook_in_another_repository_are_undone_before_the_tests() {
    let workspace = workspace("- [ ] T001 [repo:backend] [repo:repo] one\n", "");
    let root = workspace.root().display().to_string();
    let hook = |other: &str| {
        format!(
            "#!/bin/sh\nfor w in {root}/{other}.arborist/session-* {root}/{other}; do [ ! -d $w ] || echo evil > $w/evil.txt; done\n"
        )
    };
    workspace.write_script(".git/hooks/pre-commit", &hook("backend"));
    workspace.write_script("../backend/.git/hooks/pre-commit", &hook("repo"));
    let test =
        format!("! ls {root}/repo.arborist/session-*/evil.txt {root}/backend.arborist/session-*/evil.txt");
    let ended = gardener(&workspace, &["--test-command", &test]);
    assert_eq!(ended.code(), 0, "{}", ended.report());
}

#[test]
fn changes_by_a_gate_in_another_repository_to_the_plan_repository_are_undone() {
    let workspace = workspace("- [ ] T001 [P] [repo:backend] one\n- [ ] T002 [P] two\n", "");
    let gate = format!(
        "if [ -e kept.txt ] && [ ! -e '{0}/gated' ]; then touch '{0}/gated'; git config -f '{0}/repo/.git/config' filter.x.clean cat; echo '* filter=x' >> '{0}/repo/.git/info/attributes'; fi",
        workspace.root().display()
    );
    workspace.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    let ended = gardener(&workspace, &["--jobs", "2"]);
    assert!(workspace.root().join("gated").exists(), "{}", ended.report());
    // It is red for that, and asked once more.
    assert!(ended.report().contains("it failed, then passed"), "{}", ended.report());
    assert!(!workspace.read(".git/config").contains("[filter"));
    let attributes = fs::read_to_string(workspace.path(".git/info/attributes")).unwrap_or_default();
    assert!(!attributes.contains("filter"));
}

#[test]
fn changes_by_a_gate_of_merge_run_are_undone_in_all_repositories() {
    let workspace = workspace("- [ ] T001 [P] [repo:backend] one\n- [ ] T002 [P] two\n", "");
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    assert_eq!(gardener(&workspace, &["--jobs", "2"]).code(), 1);
    let gate = format!(
        "if [ ! -e '{0}/gated' ]; then touch '{0}/gated'; git config -f '{0}/backend/.git/config' x.y z; git -C '{0}/backend' update-ref refs/heads/{1} refs/heads/main; fi",
        workspace.root().display(),
        workspace.session_branch("backend"),
    );
    workspace.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
    let ended =
        workspace.arborist(["merge", "run", "--yes", "--scope", &workspace.session_branch("backend")]);
    assert!(workspace.root().join("gated").exists(), "{}", ended.report());
    let backend = workspace.clone_of("backend");
    assert!(!fs::read_to_string(backend.join(".git/config")).unwrap().contains("[x]"));
    let log =
        workspace.git_in(&backend, ["log", "--format=%s", &workspace.session_branch("backend")]).answer();
    assert!(log.contains("@T001@"), "{log}");
}

#[test]
fn the_review_prompt_lists_ignored_files_that_another_task_left() {
    let deed = "echo evil > \"$W/planted.bin\"";
    let workspace = workspace(PLAN, deed);
    let backend = workspace.clone_of("backend");
    fs::write(backend.join(".gitignore"), "*.bin\n").unwrap();
    workspace.git_in(&backend, ["add", "-A"]).succeeds();
    workspace.git_in(&backend, ["commit", "-q", "-m", "ignore"]).succeeds();
    workspace.git_in(&backend, ["push", "-q", "origin", "main"]).succeeds();
    gardener(&workspace, &[]).succeeds();
    let prompts: Vec<String> = (0..workspace.calls()).map(|call| workspace.prompt(call)).collect();
    let of = |task: &str| {
        let mut reviews = prompts.iter().filter(|prompt| prompt.starts_with("Review"));
        reviews.find(|prompt| prompt.contains(task)).unwrap()
    };
    assert!(!of("T001").contains("planted.bin"));
    assert!(of("T003").contains("In backend: ") && of("T003").contains("- planted.bin"), "{}", of("T003"));
}

/// A workspace in which the configuration of the repository with the plan includes a tracked file of the other one.
fn workspace_with_include(deed: &str) -> TestWorkspace {
    let workspace = workspace("- [ ] T001 [repo:backend] one\n- [ ] T002 [repo:backend] two\n", deed);
    let clone = workspace.clone_of("backend");
    fs::write(clone.join("shared.gitconfig"), "[alias]\n\tx = log\n").unwrap();
    workspace.git_in(&clone, ["add", "-A"]).succeeds();
    workspace.git_in(&clone, ["commit", "-q", "-m", "settings"]).succeeds();
    workspace.git(["config", "include.path", "../../backend/shared.gitconfig"]).succeeds();
    workspace
}

#[test]
fn git_config_that_includes_a_file_of_another_repository_fails_no_attempt() {
    for options in [&[][..], &["--jobs", "2"]] {
        let workspace = workspace_with_include("true");
        gardener(&workspace, options).succeeds().out("2 completed");
        assert_eq!(failures(&workspace), 0, "{options:?}");
    }
}

#[test]
fn a_task_cannot_change_a_file_included_by_git_config_of_another_repository() {
    for options in [&[][..], &["--jobs", "2"]] {
        let deed = "for file in \"$ROOT\"/backend.arborist/*/shared.gitconfig; do
printf '[core]\\n\\tfsmonitor = false\\n' >> \"$file\"; done";
        let workspace = workspace_with_include(deed);
        let words = "'shared.gitconfig' belongs to the git configuration of another repository of the run";
        gardener(&workspace, options).succeeds().err(words);
        assert_eq!(failures(&workspace), 1, "{options:?}");
        let branch = workspace.session_branch("backend");
        let show = ["show", &format!("{branch}:shared.gitconfig")];
        let landed = workspace.git_in(&workspace.clone_of("backend"), show).answer();
        assert!(!landed.contains("fsmonitor"), "{options:?}: {landed}");
    }
}

#[test]
fn a_file_included_by_another_repository_is_restored_in_the_users_checkout() {
    let plan = "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n";
    let workspace =
        workspace(plan, "printf '[core]\\n\\tfsmonitor = false\\n' >> \"$ROOT/repo/shared.gitconfig\"");
    workspace.git(["config", "--global", "arborist.session.branch", "false"]).succeeds();
    workspace.write("shared.gitconfig", "[alias]\n\tx = log\n");
    workspace.commit("settings\n");
    let include = ["config", "include.path", "../../repo/shared.gitconfig"];
    workspace.git_in(&workspace.clone_of("backend"), include).succeeds();
    let words = "'shared.gitconfig' belongs to the git configuration of another repository of the run";
    // The attempts after the one that changed it do not fail.
    gardener(&workspace, &[]).succeeds().err(words).out("3 completed");
    assert_eq!(failures(&workspace), 1);
    assert_eq!(workspace.read("shared.gitconfig"), "[alias]\n\tx = log\n");
}
