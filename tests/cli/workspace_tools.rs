//! Tools of repositories, `NAME:TOOL`, as tests and gates: they run in their own repository, and find it in their
//! environment.

use std::fs;

use crate::test_workspace::TestWorkspace;

const WORKER: &str =
    "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\" ;;\nesac";

/// Notes where it runs, and what it is told about that.
const NOTE: &str = "echo \\\"$ARBORIST_REPO $ARBORIST_BRANCH $ARBORIST_WORKTREE=$(pwd)\\\" >> $HOME/asked";

fn workspace(plan: &str) -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(WORKER);
    workspace.set("backend", "branch-prefix", "work/");
    workspace.section("backend", &format!("tools = {{ run-tests = \"{NOTE}; test -e kept.txt\" }}\n"));
    workspace
}

/// The repositories that it ran in. Each time all that it was told was so.
#[track_caller]
fn repos_where_the_tool_ran(workspace: &TestWorkspace) -> Vec<String> {
    let asked = fs::read_to_string(workspace.home().join("asked")).unwrap_or_default();
    let mut repos = Vec::new();
    for line in asked.lines() {
        let (repo, rest) = line.split_once(' ').unwrap();
        let (branch, places) = rest.split_once(' ').unwrap();
        let (told, is) = places.split_once('=').unwrap();
        let prefix = if repo == "backend" { "work/" } else { "arborist/" };
        assert!(branch.starts_with(prefix) && told == is, "{line}");
        assert!(is.contains(&format!("/{repo}.arborist/")), "{line}");
        repos.push(repo.to_owned());
    }
    repos
}

#[test]
fn a_tool_that_tests_another_repository_runs_in_its_own() {
    for jobs in ["1", "2"] {
        let workspace =
            workspace("# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] a\n- [ ] T002 [P] [repo:backend] b\n");
        let run = ["gardener", "--yes", "--jobs", jobs, "--test-command", "backend:run-tests"];
        workspace.arborist(run).succeeds().out("2 completed");
        let asked = repos_where_the_tool_ran(&workspace);
        assert!(asked.len() >= 2 && asked.iter().all(|repo| repo == "backend"), "{jobs}: {asked:?}");
    }
}

#[test]
fn a_tool_that_tests_a_phase_runs_in_its_own_repository() {
    for jobs in ["1", "2"] {
        let plan = r#"{"nodes": {
            "P1": {"id": "P1", "name": "all", "children": ["T1", "T2"],
                "test_commands": [{"type": "integration", "command": "backend:run-tests"}]},
            "T1": {"id": "T1", "name": "a", "parent": "P1"},
            "T2": {"id": "T2", "name": "b", "parent": "P1", "repo": "backend"}}, "root_ids": ["P1"]}"#;
        let workspace = workspace(plan);
        workspace.arborist(["gardener", "--yes", "--jobs", jobs]).succeeds().out("2 completed");
        // With lanes it is asked about what is to land, and then written down.
        assert_eq!(repos_where_the_tool_ran(&workspace), vec!["backend"; jobs.parse().unwrap()]);
        workspace.arborist(["state", "--exit-code"]).succeeds();
    }
}

#[test]
fn a_failing_tool_of_a_phase_blocks_the_landing_of_its_last_task() {
    let plan = r#"{"nodes": {
        "P1": {"id": "P1", "name": "all", "children": ["T1"],
            "test_commands": [{"type": "integration", "command": "backend:check"}]},
        "T1": {"id": "T1", "name": "a", "parent": "P1", "repo": "backend"}}, "root_ids": ["P1"]}"#;
    let workspace = workspace(plan);
    workspace.section("backend", "tools = { check = \"test ! -e T1.txt\" }\n");
    let said = workspace.arborist(["gardener", "--yes", "--isolate"]).exits(1);
    said.out("the gate 'integration of P1' failed");
    assert!(!workspace.git(["log", "--branches", "--format=%s"]).answer().contains("@T1@merge"));
}

#[test]
fn a_tool_used_as_a_gate_runs_only_in_its_own_repository() {
    let workspace =
        workspace("# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] a\n- [ ] T002 [P] [repo:backend] b\n");
    workspace.git(["config", "arborist.merge.gates.check.command", "backend:run-tests"]).succeeds();
    let refused = workspace.arborist(["gardener", "--jobs", "2"]).exits(2);
    refused.err("tool: echo");
    workspace.arborist(["gardener", "--yes", "--jobs", "2"]).succeeds().out("2 completed");
    assert_eq!(repos_where_the_tool_ran(&workspace), ["backend"]);
    let gates = |task: &str| {
        let format = "--format=%(trailers:key=Arborist-Gate,valueonly)";
        workspace
            .git(["log", "--branches", format, &format!("--grep=@{task}@merge")])
            .answer()
            .trim()
            .to_owned()
    };
    assert_eq!(["T001", "T002"].map(gates), ["none", "check"]);
}

#[test]
fn a_tool_of_the_plan_repository_can_be_a_gate() {
    let workspace =
        workspace("# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] a\n- [ ] T002 [P] [repo:backend] b\n");
    workspace.set("repo", "path", ".");
    workspace.set("repo", "tools.lint", "echo \"$ARBORIST_REPO\" >> \"$HOME/linted\"; test -e T001.txt");
    workspace.git(["config", "arborist.merge.gates.check.command", "repo:lint"]).succeeds();
    workspace.arborist(["gardener", "--yes", "--jobs", "2"]).succeeds().out("2 completed");
    assert_eq!(fs::read_to_string(workspace.home().join("linted")).unwrap(), "repo\n");
}

#[test]
fn a_gate_that_names_an_unknown_tool_is_an_error_before_anything_runs() {
    let workspace = workspace("# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] a\n");
    workspace.git(["config", "arborist.merge.gates.check.command", "backend:run-test"]).succeeds();
    let said = workspace.arborist(["gardener", "--yes", "--jobs", "2"]).exits(1);
    said.err("the gate 'backend:run-test' names a tool that the repository 'backend' does not have")
        .err("did you mean 'backend:run-tests'?");
    assert_eq!(workspace.calls(), 0);
}

/// Both tasks change one file here; the second begins before the first has landed, and ends after it.
const CLASH: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  "Resolve the merge conflict of task T002"*) printf 'T001\nT002\n' > same.txt ;;
  *T001:*) until test -e "$ROOT/begun"; do sleep 0.02; done; echo T001 > same.txt ;;
  *) : > "$ROOT/begun"
    until git -C "$ROOT/repo" log --branches --format=%s | grep -q @T001@merge; do sleep 0.05; done
    place() { echo "$prompt" | sed -n "s/^- $1: //p"; }
    echo T002 > "$(place repo)/same.txt"; echo x > "$(place backend)/T002.txt" ;;
esac
"#;

fn workspace_of_clash(test: &str) -> TestWorkspace {
    let plan = format!(
        r#"{{"nodes": {{
            "P1": {{"id": "P1", "name": "all", "children": ["T001", "T002"]}},
            "T001": {{"id": "T001", "name": "a", "parent": "P1", "parallel": true}},
            "T002": {{"id": "T002", "name": "b", "parent": "P1", "parallel": true, "repo": ["backend", "repo"],
                "test_commands": [{{"type": "unit", "command": {test:?}}}]}}}}, "root_ids": ["P1"]}}"#
    );
    let workspace = workspace(&plan);
    workspace.agent(CLASH);
    workspace
}

#[test]
fn a_resolved_conflict_is_tested_in_the_repository_of_its_task() {
    let own = "echo \"$ARBORIST_REPO $ARBORIST_BRANCH $ARBORIST_WORKTREE=$(pwd)\" >> $HOME/asked";
    for test in ["backend:run-tests", own] {
        let workspace = workspace_of_clash(test);
        let said = workspace.arborist(["gardener", "--yes", "--jobs", "2"]).succeeds().out("2 completed");
        said.err("an agent is resolving the conflict of T002 (attempt 1)");
        assert_eq!(
            repos_where_the_tool_ran(&workspace),
            ["backend", "backend"],
            "its own test, and that of the resolution"
        );
        let branch = workspace.session_branch("repo");
        assert_eq!(workspace.git(["show", &format!("{branch}:same.txt")]).answer(), "T001\nT002");
    }
}

#[test]
fn a_conflict_resolution_that_fails_in_the_repository_of_its_task_does_not_land() {
    // The task's own test is the first that sees it; whatever comes after is red.
    let workspace =
        workspace_of_clash("if test -e T002.txt && ! mkdir \"$HOME/seen\"; then echo no; exit 1; fi");
    let said = workspace.arborist(["gardener", "--yes", "--jobs", "2"]).exits(2);
    said.out("T002").err("an agent is resolving the conflict of T002 (attempt 2)");
    assert!(!workspace.git(["log", "--branches", "--format=%s"]).answer().contains("@T002@merge"));
}

/// The runner notes the server of tools that it is given.
#[test]
fn the_tools_server_gets_the_branch_of_each_repository() {
    let workspace = workspace("# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:repo,backend] b\n");
    workspace.agent("printf '%s' \"$1\" > \"$ROOT/told\"; echo x > x.txt; echo APPROVED");
    let file = workspace.home().join(".config/git-arborist/config.toml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(file, config.replace("agent.sh\"]", "agent.sh\", \"{tools}\"]")).unwrap();
    workspace.arborist(["gardener", "--yes"]).succeeds();
    let told = fs::read_to_string(workspace.root().join("told")).unwrap();
    assert!(told.contains("\"--branch\",\"backend=work/tasks/"), "{told}");
    assert!(!told.contains("\"--branch\",\"repo="), "{told}");
}
