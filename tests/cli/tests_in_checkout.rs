//! What tests may change in the user's checkout: new files, but neither tracked files nor the user's uncommitted ones.

use arborist_testkit::TestRepo;

const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";
const WORKER: &str =
    r#"case "$prompt" in "Review"*) echo APPROVED ;; *) echo x > "$ARBORIST_TASK.txt" ;; esac"#;

/// A repository in which the user has changed, staged and not added files, and whose tests run `check.sh`.
fn repo_with_uncommitted_files(plan: &str, worker: &str) -> TestRepo {
    let repo = TestRepo::planned("tasks.md", plan, worker);
    repo.write("base.txt", "base\n");
    repo.write("check.sh", "true\n");
    repo.commit("files\n");
    repo.write("base.txt", "base\nmine\n");
    repo.write("notes.txt", "mine\n");
    repo.write("staged.txt", "mine\n");
    repo.git(["add", "staged.txt"]).succeeds();
    repo.git(["config", "arborist.test-command", "sh check.sh && ! [ -e deed.sh ] || sh deed.sh"]).succeeds();
    repo
}

fn assert_untouched(repo: &TestRepo) {
    let files = ["base.txt", "notes.txt", "staged.txt"].map(|path| repo.read(path));
    assert_eq!(files, ["base\nmine\n", "mine\n", "mine\n"]);
    let status = repo.git(["status", "--porcelain", "--", "base.txt", "notes.txt", "staged.txt"]);
    assert_eq!(status.answer(), " M base.txt\nA  staged.txt\n?? notes.txt");
}

/// A worker whose first task adds a script that the tests run.
fn agent_that_plants(deed: &str) -> String {
    WORKER.replace("*) echo x", &format!("*) [ $ARBORIST_TASK != T001 ] || echo '{deed}' > deed.sh; echo x"))
}

#[test]
fn uncommitted_files_that_a_test_deletes_or_changes_are_restored() {
    for deed in [
        "rm notes.txt staged.txt; echo base > base.txt",
        "echo evil > notes.txt; echo evil >> base.txt; rm staged.txt",
        "rm -r notes.txt; mkdir notes.txt; echo x > notes.txt/x",
    ] {
        let repo = repo_with_uncommitted_files(PLAN, &agent_that_plants(deed));
        let said = repo.arborist(["gardener", "--allow-dirty", "--max-retries", "1"]).exits(1);
        said.err("your uncommitted files were changed while the tests ran");
        assert_untouched(&repo);
    }
}

#[test]
fn staged_files_that_a_test_unstages_are_staged_again() {
    let repo = repo_with_uncommitted_files(PLAN, &agent_that_plants("git reset -q"));
    repo.git(["config", "arborist.sandbox.mode", "off"]).succeeds();
    repo.arborist(["gardener", "--allow-dirty", "--max-retries", "1"]).succeeds();
    assert_untouched(&repo);
}

#[test]
fn uncommitted_files_that_a_test_destroys_with_their_objects_are_restored() {
    let repo = repo_with_uncommitted_files(
        PLAN,
        &agent_that_plants("git reset -q --hard; git clean -qfd; git prune --expire=now"),
    );
    repo.git(["config", "arborist.sandbox.mode", "off"]).succeeds();
    repo.arborist(["gardener", "--allow-dirty", "--max-retries", "1"]).exits(1);
    assert_untouched(&repo);
}

#[test]
fn untracked_files_rewritten_by_the_users_own_tests_fail_no_task() {
    let repo = repo_with_uncommitted_files(PLAN, WORKER);
    repo.write("check.sh", "date +%N > notes.txt; date +%N > coverage.xml\n");
    repo.git(["commit", "-qm", "report", "--", "check.sh"]).succeeds();
    repo.write("coverage.xml", "old\n");
    repo.arborist(["gardener", "--allow-dirty"]).succeeds().out("2 completed");
}

#[test]
fn tests_that_run_between_two_tasks_cannot_change_the_tests_of_the_next_task() {
    let worker = agent_that_plants("echo true > check.sh")
        .replace("echo APPROVED", "[ $ARBORIST_TASK = T002 ] && echo APPROVED || echo REJECTED: no");
    let worker = worker.replace("echo x >", "touch \"bad-$ARBORIST_TASK\"; echo x >");
    let repo = TestRepo::planned("tasks.md", PLAN, &worker);
    repo.write("check.sh", "! [ -e bad-T002 ]\n");
    repo.commit("files\n");
    repo.git(["config", "arborist.protect", "check.sh"]).succeeds();
    repo.git([
        "config",
        "arborist.test-command",
        "sh check.sh; code=$?; ! [ -e deed.sh ] || [ $ARBORIST_TASK ] || sh deed.sh; exit $code",
    ])
    .succeeds();
    let said = repo.arborist(["gardener", "--keep-going", "--max-retries", "1"]).exits(1);
    said.out("2 failed (T001, T002)");
    assert_eq!(repo.read("check.sh"), "! [ -e bad-T002 ]\n");
}

#[test]
fn the_tests_of_a_phase_do_not_change_tracked_or_uncommitted_files() {
    for kind in ["integration", "unit"] {
        let plan = serde_json::json!({ "nodes": {
            "phase-1": { "id": "phase-1", "name": "One", "children": ["T001"], "test_commands": [{ "type": kind, "command": "sh phase.sh" }] },
            "T001": { "id": "T001", "name": "do a", "parent": "phase-1" },
        }, "root_ids": ["phase-1"] });
        let repo = TestRepo::planned("task-tree.json", &plan.to_string(), WORKER);
        repo.write("phase.sh", "touch ran; rm notes.txt; echo evil > base.txt\n");
        repo.write("base.txt", "base\n");
        repo.commit("files\n");
        repo.write("notes.txt", "mine\n");
        let said = repo.arborist(["gardener", "--allow-dirty", "--yes"]);
        assert!(said.code() != 0 && repo.path("ran").exists(), "{kind}: {}", said.report());
        assert_eq!((repo.read("base.txt"), repo.read("notes.txt")), ("base\n".into(), "mine\n".into()));
    }
}

#[test]
fn the_review_prompt_says_if_its_list_of_new_files_is_incomplete() {
    let worker = WORKER.replace("*) echo x", "*) for n in $(seq 100 170); do echo x > $n.ign; done; echo x");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", &worker);
    repo.write(".gitignore", "*.ign\n");
    repo.commit("ignore\n");
    repo.arborist(["gardener"]).succeeds();
    let review = repo.prompt(1);
    assert!(review.contains("- 100.ign") && review.contains("This list is not complete"), "{review}");
}

#[test]
fn a_named_pipe_in_place_of_the_report_folder_stops_no_task() {
    let worker = WORKER
        .replace("*) echo x", "*) rm -rf spec/reports; mkdir -p spec; mkfifo spec/reports .mailmap; echo x");
    let repo = TestRepo::planned("tasks.md", PLAN, &worker);
    repo.arborist(["gardener", "--max-retries", "1", "--keep-going"]).exits(1);
    assert!(!repo.path(".mailmap").exists(), "git log would wait for it");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", &worker.replace(" .mailmap", ""));
    repo.arborist(["gardener"]).succeeds().out("1 completed");
}

#[test]
fn files_in_a_folder_that_a_test_makes_read_only_are_restored() {
    let worker = agent_that_plants("echo true > ci/check.sh; chmod 555 ci");
    let repo = TestRepo::planned("tasks.md", PLAN, &worker);
    repo.write("ci/check.sh", "! [ -e T002.txt ]\n");
    repo.commit("files\n");
    repo.git(["config", "arborist.protect", "ci/check.sh"]).succeeds();
    repo.git(["config", "arborist.test-command", "sh ci/check.sh && ! [ -e deed.sh ] || sh deed.sh"])
        .succeeds();
    repo.arborist(["gardener", "--keep-going", "--max-retries", "1"]).exits(1).never("T002 complete");
    assert_eq!(repo.read("ci/check.sh"), "! [ -e T002.txt ]\n");
}

#[test]
fn folders_that_a_child_process_makes_read_only_do_not_stop_later_tasks() {
    for deed in
        ["mkdir -p spec/reports; chmod 555 spec/reports spec/logs spec", "mkdir -p sub; chmod 555 sub ."]
    {
        let worker = WORKER.replace("echo x >", &format!("echo x > \"$ARBORIST_TASK.txt\"; {deed}; : >> "));
        let repo = TestRepo::planned("tasks.md", PLAN, &worker);
        repo.arborist(["gardener", "--max-retries", "1"]).succeeds().out("2 completed");
        let repo = TestRepo::planned("tasks.md", PLAN, &agent_that_plants(deed));
        repo.git(["config", "arborist.test-command", "! [ -e deed.sh ] || sh deed.sh"]).succeeds();
        repo.arborist(["gardener", "--max-retries", "1"]).succeeds().out("2 completed");
    }
}

#[test]
fn folders_that_a_test_makes_read_only_in_a_lane_stop_neither_run_nor_cleanup() {
    let deed = "mkdir -p ro/d none; echo x > ro/d/x; chmod 555 ro/d ro; chmod 000 none";
    let plan = "- [ ] T001 do a\n- [ ] T002 do b (depends on T001)\n- [ ] T003 do c (depends on T002)\n";
    let repo = TestRepo::planned("tasks.md", plan, &agent_that_plants(deed));
    repo.git(["config", "arborist.test-command", "! [ -e deed.sh ] || sh deed.sh"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--max-retries", "1"]).succeeds().out("3 completed");
    repo.arborist(["cleanup", "--force", "--older-than", "0"]).succeeds();
    let worktrees = repo.root().join("repo.arborist");
    let count = || std::fs::read_dir(&worktrees).map_or(0, Iterator::count);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while count() > 0 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(count(), 0, "folders are left in {}", worktrees.display());
}
