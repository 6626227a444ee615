//! Tasks in lanes, in a workspace: each has its own worktree and branch in every repository, and lands in all of them or in
//! none.

use std::fs;

use crate::test_workspace::TestWorkspace;

/// Begins to work when both tasks are at work.
const SIDE_BY_SIDE: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) touch "$ROOT/at-work-$ARBORIST_TASK"; pwd > "$ROOT/place-$ARBORIST_TASK"; tries=0
     until [ -e "$ROOT/at-work-T001" ] && [ -e "$ROOT/at-work-T002" ]; do
       tries=$((tries+1)); [ $tries -gt 2400 ] && exit 1; sleep 0.05
     done
     git rev-parse --abbrev-ref HEAD > "$ROOT/branch-$ARBORIST_TASK"
     echo $ARBORIST_TASK > "$ARBORIST_TASK.txt"; ls > "$ROOT/seen-$ARBORIST_TASK"; echo done ;;
esac
"#;
/// Appends to the file of the task.
const WORKER: &str = "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n\
    *) echo x >> \"$ARBORIST_TASK.txt\"; ls > \"$ROOT/seen-$ARBORIST_TASK\"; echo done ;;\nesac";
const TWO: &str =
    "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [P] [repo:backend] a\n- [ ] T002 [P] [repo:backend] b\n";

fn read(workspace: &TestWorkspace, name: &str) -> String {
    fs::read_to_string(workspace.root().join(name)).unwrap().trim().to_owned()
}

/// The files on the session's branch.
fn names(workspace: &TestWorkspace, repo: &str) -> String {
    let tree = ["ls-tree", "-r", "--name-only", &workspace.session_branch(repo)];
    workspace.git_in(&workspace.clone_of(repo), tree).answer()
}

/// The branch of a task in another repository.
fn branch_of(workspace: &TestWorkspace, repo: &str, task: &str) -> String {
    let refs = format!("refs/heads/arborist/task/*/{task}");
    let list = ["for-each-ref", "--format=%(refname:short)", &refs];
    workspace.git_in(&workspace.clone_of(repo), list).answer()
}

/// The session's worktree in another repository.
fn session_worktree(workspace: &TestWorkspace, repo: &str) -> std::path::PathBuf {
    let branch = workspace.session_branch(repo);
    let name = format!("session-{}", branch.rsplit_once('/').unwrap().1);
    workspace.root().join(format!("{repo}.arborist")).join(name)
}

/// Whether a task has landed in the repository with the plan.
fn has_landed(workspace: &TestWorkspace, task: &str) -> bool {
    let log = ["log", "--format=%s", &workspace.session_branch("repo")];
    workspace.git(log).answer().contains(&format!("@{task}@merge"))
}

#[test]
fn parallel_tasks_in_one_repository_have_their_own_worktrees_and_branches() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(SIDE_BY_SIDE);
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds().out("2 completed");
    for (task, other) in [("T001", "T002"), ("T002", "T001")] {
        let place = read(&workspace, &format!("place-{task}"));
        assert!(place.contains("backend.arborist/lane-"), "{place}");
        assert_ne!(place, read(&workspace, &format!("place-{other}")));
        assert!(!read(&workspace, &format!("seen-{task}")).contains(other));
        let branch = read(&workspace, &format!("branch-{task}"));
        assert!(branch.starts_with("arborist/task/") && branch.ends_with(task), "{branch}");
    }
    assert!(names(&workspace, "backend").contains("T001.txt\nT002.txt"));
    let place = session_worktree(&workspace, "backend");
    assert!(place.join("T001.txt").exists() && place.join("T002.txt").exists());
    assert_eq!(workspace.git_in(&place, ["status", "--porcelain"]).answer(), "");
    workspace.arborist(["state", "--exit-code"]).succeeds();
    workspace.arborist_in(&workspace.clone_of("backend"), ["worktree", "list"]).succeeds();
    let tip = || workspace.git_in(&place, ["rev-parse", "HEAD"]).answer();
    let before = tip();
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds();
    assert_eq!(tip(), before, "a run with nothing to do writes nothing there");
}

#[test]
fn tasks_of_several_repositories_land_in_each() {
    let plan = format!("{TWO}- [ ] T003 [P] [repo:web] c\n- [ ] T004 [P] d\n");
    let workspace = TestWorkspace::of(&["backend", "web"], &plan);
    workspace.agent(WORKER);
    workspace.arborist(["gardener", "--jobs", "3"]).succeeds();
    assert!(names(&workspace, "backend").contains("T001.txt\nT002.txt"));
    assert!(names(&workspace, "web").contains("T003.txt") && names(&workspace, "repo").contains("T004.txt"));
    let merge = ["log", "--format=%(trailers:key=Arborist-Landed-In,valueonly)", "--grep=@T003@merge"];
    let landed = workspace.git([&merge[..], &["--branches"]].concat()).answer();
    let web = workspace.git_in(&workspace.clone_of("web"), ["rev-parse", &workspace.session_branch("web")]);
    assert_eq!(landed.trim(), format!("web@{}", web.answer()), "the landing here names the one there");
    workspace.arborist(["state", "--exit-code"]).succeeds();
    workspace.arborist(["trailers", "check", &workspace.session_branch("repo")]).succeeds();
}

#[test]
fn a_dependent_task_sees_work_that_landed_in_another_repository() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n- [ ] T002 [repo:backend] b (depends on T001)\n";
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(WORKER);
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds().out("2 completed");
    assert!(read(&workspace, "seen-T002").contains("T001.txt"));
}

#[test]
fn work_of_a_failed_task_in_another_repository_stays_on_its_branch() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(WORKER);
    let test = "test ! -e T001.txt || test -e \"$HOME/mended\"";
    let run = ["gardener", "--isolate", "--max-retries", "1", "--keep-going", "--test-command", test];
    workspace.arborist(run).exits(1).out("1 completed (T002)");
    assert!(!read(&workspace, "seen-T002").contains("T001"));
    assert!(names(&workspace, "backend").contains("T002.txt"));
    assert!(!names(&workspace, "backend").contains("T001.txt"));
    let (backend, branch) = (workspace.clone_of("backend"), branch_of(&workspace, "backend", "T001"));
    workspace.git_in(&backend, ["cat-file", "-e", &format!("{branch}:T001.txt")]).succeeds();
    workspace.arborist(["state", "T001"]).succeeds().out(&format!("{branch} in backend"));
    fs::write(workspace.home().join("mended"), "").unwrap();
    let again = [&run[..], &["--retry-failed"]].concat();
    workspace.arborist(again).succeeds().out("1 completed (T001)");
    assert!(names(&workspace, "backend").contains("T001.txt\nT002.txt"));
}

#[test]
fn a_task_with_a_failing_gate_lands_in_no_repository() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.gates.check.command", "test ! -e T001.txt"]).succeeds();
    let said = workspace.arborist(["gardener", "--jobs", "2", "--keep-going"]).exits(1);
    said.out("1 completed (T002)").out("the gate 'check' failed");
    assert!(!has_landed(&workspace, "T001") && has_landed(&workspace, "T002"));
    let found = names(&workspace, "backend");
    assert!(found.contains("T002.txt") && !found.contains("T001.txt"), "{found}");
}

/// Both tasks are done, and write the same file there.
fn in_conflict(more: &[&str]) -> (TestWorkspace, &'static str, &'static str) {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(&SIDE_BY_SIDE.replace("> \"$ARBORIST_TASK.txt\"", "> same.txt"));
    let said = workspace.arborist([&["gardener", "--jobs", "2", "--keep-going"], more].concat());
    assert_eq!(said.code(), if more.is_empty() { 2 } else { 0 }, "{}", said.report());
    if more.is_empty() {
        assert!(said.report().contains("backend:same.txt"), "{}", said.report());
    }
    let (landed, left) = if has_landed(&workspace, "T001") { ("T001", "T002") } else { ("T002", "T001") };
    (workspace, landed, left)
}

#[test]
fn a_conflict_in_another_repository_blocks_all_landings_of_the_task_until_resolved() {
    let (workspace, landed, left) = in_conflict(&[]);
    let (backend, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    let show = ["show".to_owned(), format!("{branch}:same.txt")];
    assert_eq!(workspace.git_in(&backend, &show).answer(), landed);
    assert!(!has_landed(&workspace, left));
    let scope = ["--scope", &branch];
    let said = workspace.arborist([&["merge", "resolve", left][..], &scope].concat()).exits(2);
    let said = said.err(&format!("the conflict of '{left}' is in the repository 'backend'")).stderr();
    let lane = said.split_once("git -C '").unwrap().1.split_once('\'').unwrap().0.to_owned();
    assert_ne!(workspace.git_in(lane.as_ref(), ["merge", "-q", &branch]).code(), 0);
    fs::write(format!("{lane}/same.txt"), "T001 T002\n").unwrap();
    workspace.git_in(lane.as_ref(), ["commit", "-q", "-a", "-m", "both"]).succeeds();
    workspace
        .arborist([&["merge", "run"][..], &scope].concat())
        .succeeds()
        .out(&format!("1 landed ({left})"));
    assert_eq!(workspace.git_in(&backend, &show).answer(), "T001 T002");
    assert!(has_landed(&workspace, left));
    workspace.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_task_with_a_conflict_in_another_repository_can_be_done_again() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(&SIDE_BY_SIDE.replace("> \"$ARBORIST_TASK.txt\"", ">> same.txt"));
    workspace.git(["config", "arborist.merge.on-conflict", "reimplement"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds().out("2 completed");
    let show = ["show".to_owned(), format!("{}:same.txt", workspace.session_branch("backend"))];
    let both = workspace.git_in(&workspace.clone_of("backend"), show).answer();
    assert!(both == "T001\nT002" || both == "T002\nT001", "{both}");
}

#[test]
fn a_landing_that_would_overwrite_a_file_in_another_repository_lands_nowhere() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n";
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
    let file = session_worktree(&workspace, "backend").join("T001.txt");
    fs::write(&file, "of the user\n").unwrap();
    let scope = workspace.session_branch("repo");
    let said = workspace.arborist(["merge", "run", "--scope", &scope]).exits(2);
    said.err("in backend cannot be moved").err("T001.txt");
    assert!(!has_landed(&workspace, "T001") && !names(&workspace, "backend").contains("T001.txt"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "of the user\n");
    fs::remove_file(&file).unwrap();
    workspace.arborist(["merge", "run", "--scope", &scope]).succeeds().out("1 landed (T001)");
    assert!(has_landed(&workspace, "T001") && names(&workspace, "backend").contains("T001.txt"));
}

#[test]
fn a_landing_killed_before_the_other_repository_is_finished_by_the_next_run() {
    for next in [&["gardener", "--jobs", "2"][..], &["gardener"], &["merge", "run"]] {
        let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n- [ ] T002 [repo:backend] b (depends on T001)\n";
        let workspace = TestWorkspace::of(&["backend"], plan);
        workspace.agent(WORKER);
        workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
        workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
        let (backend, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
        let tickets = ["for-each-ref", "--format=%(refname) %(objectname)", "refs/arborist/queue/tickets"];
        let tickets = workspace.git(tickets).answer();
        let before = workspace.git_in(&backend, ["rev-parse", &branch]).answer();
        workspace.arborist(["merge", "run", "--scope", &branch]).succeeds();
        // As if the process had been killed after it moved the branch of the plan's repository.
        let place = session_worktree(&workspace, "backend");
        workspace.git_in(&place, ["reset", "-q", "--hard", &before]).succeeds();
        let (name, commit) = tickets.split_once(' ').unwrap();
        workspace.git(["update-ref", name, commit]).succeeds();
        workspace.git(["config", "arborist.merge.auto", "true"]).succeeds();
        let scope = ["--scope", &branch];
        let is_merge = next[0] == "merge";
        let said = workspace.arborist([next, if is_merge { &scope[..] } else { &[] }].concat());
        assert_eq!(said.code(), 0, "{next:?}: {}", said.report());
        assert!(names(&workspace, "backend").contains("T001.txt"), "{next:?}");
        assert!(place.join("T001.txt").exists());
        if !is_merge {
            assert!(read(&workspace, "seen-T002").contains("T001.txt"), "{next:?}");
            assert!(names(&workspace, "backend").contains("T002.txt"), "{next:?}");
        }
    }
}

#[test]
fn work_of_a_killed_run_in_a_lane_of_another_repository_is_committed() {
    let workspace =
        TestWorkspace::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] x\n");
    workspace.agent("case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) if [ -f half.txt ]; then echo done; else echo half > half.txt; kill -9 $PPID; sleep 60; fi ;;\nesac");
    workspace.arborist(["gardener", "--jobs", "2"]).exits(137);
    let said = workspace.arborist(["gardener", "--jobs", "2"]);
    assert_eq!(said.code(), 0, "{}", said.report());
    assert!(said.report().contains("in backend: attempt 1 of T001 was interrupted"), "{}", said.report());
    let (clone, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    assert_eq!(workspace.git_in(&clone, ["show", &format!("{branch}:half.txt")]).answer(), "half");
}

#[test]
fn a_reset_task_also_starts_over_in_other_repositories() {
    let workspace =
        TestWorkspace::of(&["backend"], "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] x\n");
    workspace.agent(WORKER);
    let run = ["gardener", "--jobs", "2", "--max-retries", "1", "--test-command"];
    workspace.arborist([&run[..], &["false"]].concat()).exits(1);
    let branch = workspace.session_branch("repo");
    workspace.arborist(["reset", "T001", "--scope", &branch]).succeeds();
    workspace.arborist([&run[..], &["true"]].concat()).succeeds();
    let show = ["show".to_owned(), format!("{}:T001.txt", workspace.session_branch("backend"))];
    assert_eq!(workspace.git_in(&workspace.clone_of("backend"), show).answer(), "x", "not twice");
}

#[test]
fn lanes_of_other_repositories_are_cleaned_up_with_their_session() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(WORKER);
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds();
    workspace.arborist(["cleanup", "--older-than", "0", "--force"]).succeeds();
    for repo in ["repo", "backend"] {
        let clone = workspace.clone_of(repo);
        let branches = ["for-each-ref", "--format=%(refname:short)", "refs/heads"];
        assert_eq!(workspace.git_in(&clone, branches).answer(), "main", "{repo}");
        assert_eq!(workspace.git_in(&clone, ["worktree", "list"]).answer().lines().count(), 1, "{repo}");
    }
}

#[test]
fn task_branches_of_other_repositories_can_be_deleted_after_landing() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.delete-branches", "true"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds();
    for repo in ["repo", "backend"] {
        assert_eq!([branch_of(&workspace, repo, "T001"), branch_of(&workspace, repo, "T002")], ["", ""]);
    }
}

#[test]
fn a_task_does_not_land_if_its_branch_in_another_repository_is_missing() {
    let plan = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n";
    let workspace = TestWorkspace::of(&["backend"], plan);
    workspace.agent(WORKER);
    workspace.git(["config", "arborist.merge.auto", "false"]).succeeds();
    workspace.arborist(["gardener", "--jobs", "2"]).exits(1);
    let (backend, branch) = (workspace.clone_of("backend"), branch_of(&workspace, "backend", "T001"));
    let tip = workspace.git_in(&backend, ["rev-parse", &branch]).answer();
    workspace.git_in(&backend, ["update-ref", "-d", &format!("refs/heads/{branch}")]).succeeds();
    let scope = workspace.session_branch("repo");
    workspace.arborist(["merge", "run", "--scope", &scope]).exits(2).out("1 lost (T001)");
    workspace.arborist(["merge", "status", "T001", "--scope", &scope]).exits(2).out("in backend is gone");
    assert!(!has_landed(&workspace, "T001"));
    workspace.git_in(&backend, ["branch", &branch, &tip]).succeeds();
    workspace.arborist(["merge", "run", "--scope", &scope]).succeeds().out("1 landed (T001)");
    assert!(names(&workspace, "backend").contains("T001.txt"));
}

#[test]
fn going_back_to_a_turn_of_a_lane_restores_every_repository() {
    let workspace = TestWorkspace::of_turns();
    workspace.arborist(["gardener", "--jobs", "2"]).succeeds();
    let id = workspace.session_branch("backend").rsplit_once('/').unwrap().1.to_owned();
    let before = names(&workspace, "backend");
    let turn = workspace.turn(&id, "Write there")["number"].to_string();
    workspace.arborist(["session", "resume", &id, "--turn", &turn]).succeeds();
    let (backend, branch) = (workspace.clone_of("backend"), workspace.session_branch("backend"));
    let reset = ["log", "--format=%H", "--grep=@reset)", "-1", &branch];
    let reset = workspace.git_in(&backend, reset).answer();
    let then = workspace.git_in(&backend, ["ls-tree", "-r", "--name-only", &reset]).answer();
    assert_eq!(then, "there.txt", "what was there right after the turn");
    assert_eq!(names(&workspace, "backend"), before, "and it comes to the same end");
    workspace.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn without_lanes_the_review_prompt_lists_files_of_failed_tasks_in_other_repositories() {
    let workspace = TestWorkspace::of(&["backend"], TWO);
    workspace.agent(
        &WORKER.replace("echo APPROVED", "echo \"$prompt\" > \"$ROOT/review-$ARBORIST_TASK\"; echo APPROVED"),
    );
    let test = "test -e T002.txt";
    let run = ["gardener", "--max-retries", "1", "--keep-going", "--test-command", test];
    workspace.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    workspace.arborist(run).exits(1).out("1 completed (T002)");
    let review = read(&workspace, "review-T002");
    assert!(review.contains("backend:T001.txt"), "{review}");
}
