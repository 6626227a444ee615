//! Gates of tasks that work in another repository: they are asked there, about what the session has there.

use std::fs;

use crate::test_workspace::TestWorkspace;
use arborist_testkit::Run;

const PLAN: &str = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n- [ ] T002 [P] b\n";
const WORKER: &str =
    "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\" ;;\nesac";

fn workspace(gate: &str) -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend"], PLAN);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    workspace
}

#[test]
fn a_gate_runs_in_the_repository_of_its_task() {
    let workspace = workspace(
        "echo \"$ARBORIST_REPO $(ls T00*.txt | tr '\\n' ' ')\" >> \"$HOME/asked\"; test -e kept.txt -o -e tasks.md",
    );
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds().out("2 completed");
    let asked = fs::read_to_string(workspace.home().join("asked")).unwrap();
    let mut lines: Vec<&str> = asked.lines().map(str::trim).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines, ["backend T001.txt", "repo T002.txt"]);
    let clone = workspace.clone_of("backend");
    assert_eq!(
        workspace.git_in(&clone, ["status", "--porcelain"]).answer(),
        "",
        "the checkout is the user's"
    );
    workspace.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_gate_with_paths_runs_in_another_repository_only_for_tasks_that_change_them() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n- [ ] T002 [repo:backend] b\n- [ ] T003 c\n";
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(WORKER);
    let config = |key: &str, value: &str| {
        workspace.git(["config", &format!("arborist.merge.gates.{key}"), value]).succeeds();
    };
    config("second.command", "echo \"$ARBORIST_REPO\" >> \"$HOME/second\"");
    config("second.when", "T002*");
    // Nobody changes that, neither here nor there; what was there before the session is no change.
    config("never.command", "echo \"$ARBORIST_REPO\" >> \"$HOME/never\"");
    config("never.when", "kept.txt");
    workspace.arborist(["gardener", "--isolate"]).succeeds().out("3 completed");
    assert_eq!(fs::read_to_string(workspace.home().join("second")).unwrap(), "backend\n");
    assert!(!workspace.home().join("never").exists());
    let gates = |task: &str| {
        let format = "--format=%(trailers:key=Arborist-Gate,valueonly)";
        let merge = format!("--grep=@{task}@merge");
        workspace.git(["log", "--branches", format, &merge]).answer().trim().to_owned()
    };
    assert_eq!(["T001", "T002", "T003"].map(gates), ["none", "second", "none"]);
}

#[test]
fn a_landing_waits_if_its_gate_cannot_run_in_a_missing_repository() {
    let workspace = workspace("true");
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
    let sessions =
        workspace.git(["for-each-ref", "--format=%(refname:lstrip=3)", "refs/arborist/sessions"]).answer();
    let scope = format!("arborist/tasks/{}", sessions.trim());
    fs::rename(workspace.clone_of("backend"), workspace.root().join("gone")).unwrap();
    let said = workspace.arborist(["merge", "run", "--scope", &scope]);
    assert_eq!(said.code(), 2, "{}", said.report());
    assert!(
        said.report().contains("the session has no branch in the repository 'backend' here"),
        "{}",
        said.report()
    );
    fs::rename(workspace.root().join("gone"), workspace.clone_of("backend")).unwrap();
    workspace.arborist(["merge", "run", "--scope", &scope]).succeeds().err("T001 landed as");
}

/// Changes something in both repositories.
const BOTH: &str = r#"
place() { echo "$prompt" | sed -n "s/^- $1: //p"; }
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) mkdir -p "$(place repo)/src"; echo x > "$(place repo)/src/caller.txt"; echo x > "$(place backend)/api.txt" ;;
esac
"#;

fn workspace_of_both(repos: &str, command: &str, when: &str) -> TestWorkspace {
    let plan = format!("# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:{repos}] both\n");
    let workspace = TestWorkspace::of(&["backend"], &plan);
    workspace.agent(BOTH);
    let command = format!("echo \"$ARBORIST_REPO\" >> \"$HOME/asked\"; {command}");
    workspace.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
    workspace.git(["config", "arborist.merge.gates.check.when", when]).succeeds();
    workspace
}

fn repos_where_the_gate_ran(workspace: &TestWorkspace) -> Vec<String> {
    let asked = fs::read_to_string(workspace.home().join("asked")).unwrap_or_default();
    let mut names: Vec<String> = asked.lines().map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn a_gate_that_fails_in_any_repository_of_a_task_blocks_its_landing() {
    for (repos, command, when, wanted) in [
        ("backend,repo", "test ! -e src/caller.txt", "src/", vec!["repo"]),
        ("backend,repo", "test ! -e src/caller.txt", "always", vec!["backend", "repo"]),
        ("repo,backend", "test ! -e api.txt", "api.txt", vec!["backend"]),
    ] {
        let workspace = workspace_of_both(repos, command, when);
        let said = workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
        said.out("the gate 'check' failed");
        assert_eq!(repos_where_the_gate_ran(&workspace), wanted, "{repos} {when}");
        let landed = format!("{}:src/caller.txt", workspace.session_branch("repo"));
        assert_ne!(workspace.git(["cat-file", "-e", &landed]).code(), 0, "{repos} {when}");
    }
}

#[test]
fn a_gate_that_passes_in_all_repositories_of_a_task_is_recorded_once() {
    let workspace = workspace_of_both("backend,repo", "true", "always");
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds().out("1 completed");
    assert_eq!(repos_where_the_gate_ran(&workspace), ["backend", "repo"]);
    let format = "--format=%(trailers:key=Arborist-Gate,valueonly)";
    assert_eq!(workspace.git(["log", "--branches", format, "--grep=@T001@merge"]).answer().trim(), "check");
}

/// The gate is red in backend whatever the task does there.
fn workspace_with_failing_backend_gate() -> TestWorkspace {
    workspace("test ! -e kept.txt")
}

#[test]
fn a_gate_that_failed_before_in_another_repository_delays_only_tasks_there() {
    let workspace = workspace_with_failing_backend_gate();
    let said = workspace.arborist(["gardener", "--jobs", "2", "--keep-going"]).exits(2);
    said.out("1 completed (T002)").out("the gate 'check' also fails without the task in 'backend'");
    let scope = workspace.session_branch("repo");
    let said = workspace.arborist(["merge", "run", "--scope", &scope]).exits(2);
    said.err("T001 is waiting, because the gate 'check' failed in 'backend' before it")
        .out("1 waiting for a gate that fails on the target too (T001)");
    workspace.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    let said = workspace.arborist(["merge", "run", "--scope", &scope]).succeeds();
    said.err("T001 lands although these gates fail, because they also fail without it: check in 'backend'")
        .out("1 landed (T001)");
    let body = workspace.git(["log", "--branches", "--format=%B", "--grep=@T001@merge"]).answer();
    assert!(body.contains("Gates that failed before:\n> check"), "{body}");
}

#[test]
fn a_gate_that_fails_in_another_repository_blocks_only_its_task() {
    let workspace = workspace("test ! -e T001.txt");
    workspace.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    let said = workspace.arborist(["gardener", "--jobs", "2", "--keep-going"]).exits(1);
    said.out("1 completed (T002)").out("the gate 'check' failed:");
}

/// Two tasks that are done in backend, one after the other, and are in the queue; and the run's branch.
fn workspace_of_two(worker: &str, gate: &str) -> (TestWorkspace, String) {
    let plan =
        "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n- [ ] T002 [P] [repo:backend] b\n";
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(worker);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    workspace.arborist(["gardener", "--isolate", "--keep-going"]).exits(1);
    let scope = workspace.session_branch("repo");
    (workspace, scope)
}

/// The second of two is tried first.
fn reverse_order(workspace: &TestWorkspace, scope: &str) {
    workspace.arborist(["merge", "drop", "T001", "--scope", scope]).succeeds();
    workspace.arborist(["merge", "add", "T001", "--priority", "9", "--scope", scope]).succeeds();
}

#[test]
fn tasks_that_land_despite_a_previously_failing_gate_get_one_warning_each() {
    for is_turned in [false, true] {
        let (workspace, scope) = workspace_of_two(WORKER, "test ! -e kept.txt");
        workspace.git(["config", "arborist.merge.red-target", "land"]).succeeds();
        if is_turned {
            reverse_order(&workspace, &scope);
        }
        let said = workspace.arborist(["merge", "run", "--scope", &scope]).succeeds().stderr();
        assert_eq!(
            said.matches("lands although these gates fail, because they also fail without it:").count(),
            2,
            "{said}"
        );
        assert!(!said.contains("check in 'backend', check"), "{said}");
        assert!(said.contains("T001 landed as") && said.contains("T002 landed as"), "{said}");
    }
}

#[test]
fn only_the_task_that_breaks_a_gate_is_blocked_whatever_the_landing_order() {
    let worker = WORKER.replace("*) echo x", "*) [ $ARBORIST_TASK = T002 ] || touch bad; echo x");
    for is_turned in [false, true] {
        let (workspace, scope) = workspace_of_two(&worker, "test ! -e bad");
        if is_turned {
            reverse_order(&workspace, &scope);
        }
        let said = workspace.arborist(["merge", "run", "--scope", &scope]).exits(1);
        said.err("T001 did not land, because the gate")
            .never("T002 did not land, because the gate")
            .err("T002 landed as");
    }
}

/// How often a run is read in the session's branch of backend while these many tasks land.
fn count_history_reads(count: usize) -> usize {
    let tasks: String = (1..=count).map(|n| format!("- [ ] T00{n} [P] [repo:backend] do {n}\n")).collect();
    let workspace = TestWorkspace::of(&["backend"], &format!("# Tasks\n\n## Phase 1: Work\n{tasks}"));
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    workspace.arborist(["gardener", "--isolate", "--keep-going"]).exits(1);
    let scope = workspace.session_branch("repo");
    let log = workspace.root().join("calls");
    let real = workspace.command("sh", workspace.root()).args(["-c", "command -v git"]).output().unwrap();
    let real = String::from_utf8(real.stdout).unwrap();
    workspace.plant(
        "git",
        &format!("#!/bin/sh\necho \"$PWD $*\" >> '{}'\nexec '{}' \"$@\"\n", log.display(), real.trim()),
    );
    // Not through git, which would put its own programs first.
    let mut merge = workspace.command("git-arborist-merge", &workspace.path(""));
    Run::of(merge.args(["run", "--scope", &scope]), b"").succeeds().out(&format!("{count} landed"));
    let calls = fs::read_to_string(log).unwrap();
    calls.lines().filter(|line| line.contains("/backend") && line.contains("rev-list")).count()
}

#[test]
fn history_of_another_repository_is_not_read_again_for_each_landing() {
    let (three, one) = (count_history_reads(3), count_history_reads(1));
    assert!(three <= one, "{three} and {one}");
}
