//! Tasks that name their repositories: worked on, tested, committed and pushed there; their state is in the plan's own.

use std::fs;

use crate::test_workspace::TestWorkspace;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo "$prompt" > "$ROOT/review"; echo APPROVED ;;
  *) task=$(echo "$prompt" | sed -n 's/^Implement task \([^:]*\):.*/\1/p')
     echo "$task $ARBORIST_REPO" > "$task.txt"; pwd > "$ROOT/place-$task"; echo done ;;
esac
"#;

const PLAN: &str = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] an endpoint\n- [ ] T002 a page\n";

#[test]
fn a_task_works_in_its_repository_and_its_state_is_in_the_plan_repository() {
    let workspace = TestWorkspace::of(&["backend"], PLAN);
    workspace.agent(WORKER);
    let checkout = workspace.git_in(&workspace.clone_of("backend"), ["rev-parse", "HEAD"]).answer();
    workspace.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    workspace.arborist(["gardener", "--test-command", "ls T0*.txt"]).succeeds();
    let branch = workspace.session_branch("backend");
    assert!(branch.starts_with("arborist/tasks/"), "{branch}");
    let backend = workspace.clone_of("backend");
    assert_eq!(workspace.git_in(&backend, ["show", &format!("{branch}:T001.txt")]).answer(), "T001 backend");
    let subjects = workspace.git_in(&backend, ["log", "--format=%s", &branch]).answer();
    assert!(subjects.contains("@T001@implement-pass"), "{subjects}");
    assert!(subjects.contains("@run-start") && !subjects.contains("T002"), "{subjects}");
    let own = workspace.session_branch("repo");
    assert_eq!(own, branch, "called the same everywhere");
    assert!(workspace.git(["log", "--format=%s", &own]).answer().contains("@T001@complete): "));
    assert!(workspace.git(["cat-file", "-e", &format!("{own}:T002.txt")]).code() == 0);
    assert!(workspace.git(["cat-file", "-e", &format!("{own}:T001.txt")]).code() != 0);
    workspace.arborist(["state", "--exit-code"]).succeeds();
    assert_eq!(
        workspace.git_in(&backend, ["rev-parse", "HEAD"]).answer(),
        checkout,
        "the user's checkout is theirs"
    );
    assert_eq!(workspace.git_in(&backend, ["status", "--porcelain"]).answer(), "");
    assert!(
        workspace
            .git_in(&backend, ["log", "-1", "--format=%B", &branch])
            .answer()
            .contains("Arborist-Session: ")
    );
}

#[test]
fn the_base_of_each_repository_is_recorded_at_the_start_of_its_branch() {
    let workspace = TestWorkspace::of(&["backend", "web"], PLAN);
    workspace.agent(WORKER);
    workspace.arborist(["gardener"]).succeeds();
    for repo in ["backend", "web"] {
        let (branch, clone) = (workspace.session_branch(repo), workspace.clone_of(repo));
        let start = workspace.git_in(&clone, ["log", "--format=%B", "--grep=@run-start", &branch]).answer();
        let base = workspace.git_in(&clone, ["rev-parse", "HEAD"]).answer();
        assert!(start.contains(&format!("Arborist-Base: {base}")), "{start}");
    }
    workspace.arborist(["workspace", "status"]).succeeds().out(&workspace.session_branch("web"));
    let id = workspace.session_branch("web").rsplit_once('/').map(|(_, id)| id.to_owned()).unwrap();
    let shown = workspace.arborist(["session", "show", &id, "--json"]).answer();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    for (n, repo) in ["repo", "backend", "web"].iter().enumerate() {
        let recorded = &shown["repositories"][n];
        assert_eq!(
            (&recorded["name"], &recorded["branch"]),
            (&(*repo).into(), &workspace.session_branch(repo).into())
        );
        assert_eq!(
            recorded["base"],
            workspace.git_in(&workspace.clone_of(repo), ["rev-parse", "HEAD"]).answer()
        );
    }
}

#[test]
fn a_task_may_name_several_repositories() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend, web] both\n";
    let workspace = TestWorkspace::of(&["backend", "web"], plan);
    let server = r#"  *) other=$(echo "$prompt" | sed -n 's/^- web: //p'); echo a > a.txt; echo b > "$other/b.txt"; echo done ;;"#;
    workspace.agent(&format!("case \"$prompt\" in\n \"Review\"*) echo \"$prompt\" > \"$ROOT/review\"; echo APPROVED ;;\n{server}\nesac"));
    workspace.arborist(["gardener"]).succeeds();
    for (repo, file) in [("backend", "a.txt"), ("web", "b.txt")] {
        let tree = ["ls-tree", "--name-only", &workspace.session_branch(repo)];
        assert!(workspace.git_in(&workspace.clone_of(repo), tree).answer().contains(file));
    }
    let review = fs::read_to_string(workspace.root().join("review")).unwrap();
    assert!(review.contains("In the repository backend:") && review.contains("+b"), "{review}");
}

#[test]
fn a_test_command_can_be_a_tool_of_a_repository() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "repo": "backend",
        "test_commands": [{"type": "unit", "command": "backend:run-tests"}]}}, "root_ids": ["T1"]}"#;
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(WORKER);
    let more = "tools = { run-tests = \"pwd > $HOME/tested; test -f T1.txt\" }\n";
    workspace.section("backend", more);
    workspace.arborist(["gardener", "--yes"]).succeeds();
    let place = fs::read_to_string(workspace.home().join("tested")).unwrap();
    assert_eq!(place, fs::read_to_string(workspace.root().join("place-T1")).unwrap());
    assert!(place.contains("backend.arborist/session-"), "{place}");
}

#[test]
fn a_tool_of_a_repository_can_test_tasks_of_other_repositories() {
    for jobs in ["1", "2"] {
        let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n- [ ] T002 [P] [repo:repo] b\n- [ ] T003 [P] c\n";
        let workspace = TestWorkspace::of(&["backend"], plan);
        workspace.agent(WORKER);
        workspace.section("backend", "tools = { run-tests = \"pwd >> $HOME/tested; test -f kept.txt\" }\n");
        let run = ["gardener", "--yes", "--jobs", jobs, "--test-command", "backend:run-tests"];
        workspace.arborist(run).succeeds().out("3 completed");
        let places = fs::read_to_string(workspace.home().join("tested")).unwrap();
        let own = fs::read_to_string(workspace.root().join("place-T001")).unwrap();
        let in_steps: Vec<&str> = places.lines().filter(|line| !line.contains("/gate-")).collect();
        assert_eq!(in_steps.len(), 3, "{places}");
        let kind = if jobs == "2" { "backend.arborist/lane-" } else { "backend.arborist/session-" };
        assert!(in_steps.iter().all(|line| line.contains(kind)), "{places}");
        assert!(in_steps.contains(&own.trim()), "{places}");
        assert_eq!(places.contains("/gate-"), jobs == "2", "landings are tested there too: {places}");
        let log = ["log", "--format=%s", &workspace.session_branch("backend")];
        let log = workspace.git_in(&workspace.clone_of("backend"), log).answer();
        assert!(log.contains("@T001@") && !log.contains("@T002@"), "{log}");
    }
}

#[test]
fn an_unknown_tool_is_an_error_before_anything_runs() {
    let workspace = TestWorkspace::of(&["backend"], PLAN);
    workspace.agent(WORKER);
    workspace.section("backend", "tools = { run-tests = \"true\", lint = \"true\" }\n");
    for more in [&["--yes"][..], &["--dry-run"]] {
        let run = [&["gardener", "--test-command", "backend:fuzz"], more].concat();
        let said = workspace.arborist(run).exits(1);
        said.err("the test command 'backend:fuzz' names a tool that the repository 'backend' does not have")
            .err("hint: it has 'backend:lint', 'backend:run-tests'");
    }
    assert_eq!(workspace.calls(), 0);
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a",
        "test_commands": [{"type": "unit", "command": "backend:run-test"}]}}, "root_ids": ["T1"]}"#;
    workspace.write("task-tree.json", plan);
    workspace
        .arborist(["plan", "--check", "task-tree.json"])
        .exits(1)
        .out("did you mean 'backend:run-tests'?");
}

#[test]
fn an_unknown_repository_is_an_error_before_anything_runs() {
    let workspace =
        TestWorkspace::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backnd] x\n");
    workspace.agent(WORKER);
    let run = workspace.arborist(["gardener"]).exits(1).err("tasks.md:4: T001 names the repository 'backnd'");
    assert!(run.stderr().contains("did you mean 'backend'?"));
    assert_eq!(workspace.calls(), 0);
}

#[test]
fn the_next_attempt_builds_on_a_failed_one_in_another_repository() {
    let workspace =
        TestWorkspace::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] x\n");
    workspace.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo line >> log.txt; echo done ;;\nesac",
    );
    workspace.arborist(["gardener", "--test-command", "test $(wc -l < log.txt) = 2"]).succeeds();
    let (clone, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    assert_eq!(workspace.git_in(&clone, ["show", &format!("{branch}:log.txt")]).answer(), "line\nline");
    assert!(workspace.git(["log", "--format=%s", &branch]).answer().contains("@T001@test-fail"));
}

#[test]
fn work_of_a_killed_run_in_another_repository_is_committed() {
    let workspace =
        TestWorkspace::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] x\n");
    workspace.agent("case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f half.txt ]; then echo done; else echo half > half.txt; kill -9 $PPID; sleep 60; fi ;;\nesac");
    workspace.arborist(["gardener"]).exits(137);
    workspace.arborist(["gardener"]).succeeds().err("in backend: attempt 1 of T001 was interrupted");
    let (clone, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    assert_eq!(workspace.git_in(&clone, ["show", &format!("{branch}:half.txt")]).answer(), "half");
}
