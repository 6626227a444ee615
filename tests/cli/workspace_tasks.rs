//! Tasks that name their repositories: worked on, tested, committed and pushed there; their state is in the plan's own.

use std::fs;

use crate::town::Town;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo "$prompt" > "$ROOT/review"; echo APPROVED ;;
  *) task=$(echo "$prompt" | sed -n 's/^Implement task \([^:]*\):.*/\1/p')
     echo "$task $ARBORIST_REPO" > "$task.txt"; pwd > "$ROOT/place-$task"; echo done ;;
esac
"#;

const PLAN: &str = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] an endpoint\n- [ ] T002 a page\n";

#[test]
fn a_task_works_in_its_own_repository_and_its_state_is_where_the_plan_is() {
    let town = Town::of(&["backend"], PLAN);
    town.agent(WORKER);
    let checkout = town.git_in(&town.clone_of("backend"), ["rev-parse", "HEAD"]).answer();
    town.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    town.arborist(["gardener", "--test-command", "ls T0*.txt"]).succeeds();
    let branch = town.session_branch("backend");
    assert!(branch.starts_with("arborist/tasks/"), "{branch}");
    let backend = town.clone_of("backend");
    assert_eq!(town.git_in(&backend, ["show", &format!("{branch}:T001.txt")]).answer(), "T001 backend");
    let subjects = town.git_in(&backend, ["log", "--format=%s", &branch]).answer();
    assert!(subjects.contains("@T001@implement-pass"), "{subjects}");
    assert!(subjects.contains("@run-start") && !subjects.contains("T002"), "{subjects}");
    let own = town.session_branch("repo");
    assert_eq!(own, branch, "called the same everywhere");
    assert!(town.git(["log", "--format=%s", &own]).answer().contains("@T001@complete): "));
    assert!(town.git(["cat-file", "-e", &format!("{own}:T002.txt")]).code() == 0);
    assert!(town.git(["cat-file", "-e", &format!("{own}:T001.txt")]).code() != 0);
    town.arborist(["state", "--exit-code"]).succeeds();
    assert_eq!(
        town.git_in(&backend, ["rev-parse", "HEAD"]).answer(),
        checkout,
        "the user's checkout is theirs"
    );
    assert_eq!(town.git_in(&backend, ["status", "--porcelain"]).answer(), "");
    assert!(
        town.git_in(&backend, ["log", "-1", "--format=%B", &branch]).answer().contains("Arborist-Session: ")
    );
}

#[test]
fn the_base_of_each_repository_is_recorded_where_its_branch_begins() {
    let town = Town::of(&["backend", "web"], PLAN);
    town.agent(WORKER);
    town.arborist(["gardener"]).succeeds();
    for repo in ["backend", "web"] {
        let (branch, clone) = (town.session_branch(repo), town.clone_of(repo));
        let start = town.git_in(&clone, ["log", "--format=%B", "--grep=@run-start", &branch]).answer();
        let base = town.git_in(&clone, ["rev-parse", "HEAD"]).answer();
        assert!(start.contains(&format!("Arborist-Base: {base}")), "{start}");
    }
    town.arborist(["workspace", "status"]).succeeds().out(&town.session_branch("web"));
    let id = town.session_branch("web").rsplit_once('/').map(|(_, id)| id.to_owned()).unwrap();
    let shown = town.arborist(["session", "show", &id, "--json"]).answer();
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    for (n, repo) in ["repo", "backend", "web"].iter().enumerate() {
        let recorded = &shown["repositories"][n];
        assert_eq!(
            (&recorded["name"], &recorded["branch"]),
            (&(*repo).into(), &town.session_branch(repo).into())
        );
        assert_eq!(recorded["base"], town.git_in(&town.clone_of(repo), ["rev-parse", "HEAD"]).answer());
    }
}

#[test]
fn a_task_may_name_several_repositories() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend, web] both\n";
    let town = Town::of(&["backend", "web"], plan);
    let web = r#"  *) other=$(echo "$prompt" | sed -n 's/^- web: //p'); echo a > a.txt; echo b > "$other/b.txt"; echo done ;;"#;
    town.agent(&format!("case \"$prompt\" in\n \"Review\"*) echo \"$prompt\" > \"$ROOT/review\"; echo APPROVED ;;\n{web}\nesac"));
    town.arborist(["gardener"]).succeeds();
    for (repo, file) in [("backend", "a.txt"), ("web", "b.txt")] {
        let tree = ["ls-tree", "--name-only", &town.session_branch(repo)];
        assert!(town.git_in(&town.clone_of(repo), tree).answer().contains(file));
    }
    let review = fs::read_to_string(town.root().join("review")).unwrap();
    assert!(review.contains("In the repository backend:") && review.contains("+b"), "{review}");
}

#[test]
fn a_test_command_names_a_tool_of_a_repository() {
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a", "repo": "backend",
        "test_commands": [{"type": "unit", "command": "backend:run-tests"}]}}, "root_ids": ["T1"]}"#;
    let town = Town::of(&["backend"], plan);
    town.agent(WORKER);
    let more = "tools = { run-tests = \"pwd > $HOME/tested; test -f T1.txt\" }\n";
    town.section("backend", more);
    town.arborist(["gardener", "--yes"]).succeeds();
    let place = fs::read_to_string(town.home().join("tested")).unwrap();
    assert_eq!(place, fs::read_to_string(town.root().join("place-T1")).unwrap());
    assert!(place.contains("backend.arborist/session-"), "{place}");
}

#[test]
fn a_tool_of_a_repository_tests_tasks_of_others_too() {
    for jobs in ["1", "2"] {
        let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n- [ ] T002 [P] [repo:repo] b\n- [ ] T003 [P] c\n";
        let town = Town::of(&["backend"], plan);
        town.agent(WORKER);
        town.section("backend", "tools = { run-tests = \"pwd >> $HOME/tested; test -f kept.txt\" }\n");
        let run = ["gardener", "--yes", "--jobs", jobs, "--test-command", "backend:run-tests"];
        town.arborist(run).succeeds().out("3 completed");
        let places = fs::read_to_string(town.home().join("tested")).unwrap();
        let own = fs::read_to_string(town.root().join("place-T001")).unwrap();
        let in_steps: String =
            places.lines().filter(|line| !line.contains("/gate-")).map(|line| format!("{line}\n")).collect();
        assert_eq!(in_steps, own.repeat(3));
        assert_eq!(places.contains("/gate-"), jobs == "2", "landings are tested there too: {places}");
        assert!(town.git_in(own.trim().as_ref(), ["log", "--format=%s"]).answer().contains("@T001@"));
        assert!(!town.git_in(own.trim().as_ref(), ["log", "--format=%s"]).answer().contains("@T002@"));
    }
}

#[test]
fn a_tool_that_there_is_not_is_an_error_before_anything_runs() {
    let town = Town::of(&["backend"], PLAN);
    town.agent(WORKER);
    town.section("backend", "tools = { run-tests = \"true\", lint = \"true\" }\n");
    for more in [&["--yes"][..], &["--dry-run"]] {
        let run = [&["gardener", "--test-command", "backend:fuzz"], more].concat();
        let said = town.arborist(run).exits(128);
        said.err("the test command 'backend:fuzz' names a tool that the repository 'backend' has not")
            .err("hint: it has 'backend:lint', 'backend:run-tests'");
    }
    assert_eq!(town.calls(), 0);
    let plan = r#"{"nodes": {"T1": {"id": "T1", "name": "a",
        "test_commands": [{"type": "unit", "command": "backend:run-test"}]}}, "root_ids": ["T1"]}"#;
    town.write("task-tree.json", plan);
    town.arborist(["plan", "--check", "task-tree.json"]).exits(1).out("did you mean 'backend:run-tests'?");
}

#[test]
fn a_repository_that_there_is_not_is_an_error_before_anything_runs() {
    let town = Town::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backnd] x\n");
    town.agent(WORKER);
    let run = town.arborist(["gardener"]).exits(128).err("tasks.md:4: T001 names the repository 'backnd'");
    assert!(run.stderr().contains("did you mean 'backend'?"));
    assert_eq!(town.calls(), 0);
}

#[test]
fn a_failed_attempt_is_kept_there_too_and_the_next_goes_on_from_it() {
    let town = Town::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] x\n");
    town.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo line >> log.txt; echo done ;;\nesac",
    );
    town.arborist(["gardener", "--test-command", "test $(wc -l < log.txt) = 2"]).succeeds();
    let (clone, branch) = (town.clone_of("backend"), town.session_branch("backend"));
    assert_eq!(town.git_in(&clone, ["show", &format!("{branch}:log.txt")]).answer(), "line\nline");
    assert!(town.git(["log", "--format=%s", &branch]).answer().contains("@T001@test-fail"));
}

#[test]
fn several_at_once_work_in_one_other_repository_one_after_the_other() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n- [ ] T002 [P] [repo:backend] b\n\
        - [ ] T003 [P] [repo:web] c\n- [ ] T004 [P] d\n";
    let town = Town::of(&["backend", "web"], plan);
    town.agent(WORKER);
    town.arborist(["gardener", "--jobs", "3"]).succeeds();
    let names = |repo: &str| {
        let tree = ["ls-tree", "--name-only", &town.session_branch(repo)];
        town.git_in(&town.clone_of(repo), tree).answer()
    };
    assert!(names("backend").contains("T001.txt\nT002.txt") && names("web").contains("T003.txt"));
    assert!(names("repo").contains("T004.txt"));
    town.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn what_a_killed_run_left_there_is_written_down() {
    let town = Town::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] x\n");
    town.agent("case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f half.txt ]; then echo done; else echo half > half.txt; kill -9 $PPID; sleep 60; fi ;;\nesac");
    town.arborist(["gardener"]).exits(137);
    town.arborist(["gardener"]).succeeds().err("in backend: attempt 1 of T001 was interrupted");
    let (clone, branch) = (town.clone_of("backend"), town.session_branch("backend"));
    assert_eq!(town.git_in(&clone, ["show", &format!("{branch}:half.txt")]).answer(), "half");
}
