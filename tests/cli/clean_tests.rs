//! `test.clean`: tests of a run in place see only what is committed.

use arborist_testkit::TestRepo;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 a\n";

#[test]
fn an_ignored_file_does_not_make_tests_pass_in_a_clean_checkout() {
    let repo = TestRepo::planned(
        "tasks.md",
        PLAN,
        "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > a.txt; echo x > hidden.txt ;; esac",
    );
    repo.write(".gitignore", "hidden.txt\n");
    repo.commit("ignore\n");
    let command = "! test -e a.txt || test -e hidden.txt";
    let run = ["gardener", "--max-retries", "1", "--test-command", command];
    repo.git(["config", "arborist.test.clean", "true"]).succeeds();
    repo.arborist(run).exits(1);
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(log.contains("@T001@test-fail"), "{log}");
    repo.git(["config", "arborist.test.clean", "false"]).succeeds();
    repo.arborist([&run[..], &["--retry-failed"]].concat()).succeeds();
}

#[test]
fn a_clean_test_checkout_has_copied_files_and_results_of_the_setup_command() {
    let repo = TestRepo::planned(
        "tasks.md",
        PLAN,
        "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > a.txt ;; esac",
    );
    repo.write(".gitignore", "hidden.txt\nmade.txt\n");
    repo.commit("ignore\n");
    repo.write("hidden.txt", "x");
    repo.git(["config", "arborist.test.clean", "true"]).succeeds();
    repo.git(["config", "arborist.worktree.copy", "hidden.txt"]).succeeds();
    repo.git(["config", "arborist.worktree.setup", "touch made.txt"]).succeeds();
    let command = "test -e hidden.txt && test -e made.txt && test -e tasks.md";
    repo.arborist(["gardener", "--test-command", command]).succeeds();
}

#[test]
fn new_ignored_files_are_listed_for_the_reviewer_and_in_the_report() {
    let repo = TestRepo::planned(
        "tasks.md",
        PLAN,
        "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > a.txt; echo x > hidden.txt; mkdir -p made; echo x > made/b; echo x > deps/c ;; esac",
    );
    repo.write(".gitignore", "hidden.txt\nold.txt\ndeps/\nmade/\n");
    repo.commit("ignore\n");
    repo.write("old.txt", "x");
    repo.write("deps/a", "x");
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    let review = repo.prompt(1);
    assert!(review.contains("- hidden.txt\n- made/\n"), "{review}");
    assert!(!review.contains("old.txt"), "{review}");
    assert!(
        review.contains("- deps/ (deps/c)"),
        "what is new in a folder that was there changes it: {review}"
    );
    let report = repo.git(["show", "main", "--format=", "--name-only"]).answer();
    let report: serde_json::Value = serde_json::from_str(&repo.read(report.trim())).unwrap();
    assert_eq!(report["ignored_files"], serde_json::json!(["hidden.txt", "made/"]));
    assert_eq!(report["changed_ignored_files"], serde_json::json!(["deps/ (deps/c)"]));
}

#[test]
fn changed_ignored_files_are_listed_for_the_reviewer() {
    let deed = "echo x > a.txt; echo y > .env; echo y > deps/a/index.js; touch -d 2001-01-01 deps/a/index.js .env; \
                echo y > deps/b";
    let script = format!("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) {deed} ;; esac");
    let repo = TestRepo::planned("tasks.md", PLAN, &script);
    repo.write(".gitignore", ".env\n.other\ndeps/\nkept/\n*.log\n");
    repo.commit("ignore\n");
    for path in [".env", ".other", "deps/a/index.js", "deps/a/other.js", "deps/b", "deps/c", "kept/a"] {
        repo.write(path, "x\n");
    }
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    let review = repo.prompt(1);
    assert!(review.contains("- .env\n- deps/ (2 files, for example deps/"), "{review}");
    assert!(!review.contains(".other") && !review.contains("kept"), "{review}");
    assert!(
        !review.contains("This list is not complete: other files may be new or changed, too."),
        "{review}"
    );
}

#[test]
fn the_review_prompt_says_if_the_list_of_ignored_files_is_incomplete() {
    let script = "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > a.txt; echo y > .env ;; esac";
    let repo = TestRepo::planned("tasks.md", PLAN, script);
    repo.write(".gitignore", ".env\ndeps/\n");
    repo.commit("ignore\n");
    repo.write(".env", "x\n");
    let make = "mkdir deps && cd deps && seq 1 10100 | xargs touch";
    assert!(repo.command("sh", &repo.path("")).args(["-c", make]).status().unwrap().success());
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    let review = repo.prompt(1);
    assert!(
        review.contains("- .env\n")
            && review.contains("This list is not complete: other files may be new or changed, too."),
        "{review}"
    );
}

#[test]
fn files_that_an_agent_hides_in_the_log_folder_are_listed_for_the_reviewer() {
    for ignored in ["", "*.log\n", "spec/\n"] {
        let deed = "echo x > a.txt; mkdir -p spec/logs/deep; echo x > spec/logs/helper.log; echo x > spec/logs/deep/helper.sh";
        let script = format!("case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) {deed} ;; esac");
        let repo = TestRepo::planned("tasks.md", PLAN, &script);
        repo.write(".gitignore", ignored);
        repo.commit("ignore\n");
        repo.write("spec/logs/old.log", "of an earlier run\n");
        repo.arborist(["gardener", "--report-dir", "reports", "--test-command", "true"]).succeeds();
        let review = repo.prompt(1);
        assert!(review.contains("- spec/logs/helper.log\n"), "{review}");
        assert!(review.contains("- spec/logs/deep/helper.sh\n"), "{review}");
        assert!(!review.contains("old.log") && !review.contains("T001_"), "{review}");
    }
}

#[test]
fn files_left_by_tests_are_listed_for_every_later_reviewer() {
    let plan = "## Phase 1: Work\n\n- [ ] T001 a\n- [ ] T002 b\n";
    let script = "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > $ARBORIST_TASK.txt ;; esac";
    let repo = TestRepo::planned("tasks.md", plan, script);
    repo.write("users.txt", "the user's own\n");
    let command = "test ! -e T001.txt || test -e helper || touch helper";
    repo.arborist(["gardener", "--allow-dirty", "--test-command", command]).succeeds();
    for call in [1, 3] {
        let review = repo.prompt(call);
        assert!(review.starts_with("Review") && review.contains("- helper\n"), "{review}");
        assert!(!review.contains("users.txt"), "{review}");
    }
    assert!(!repo.git(["ls-tree", "--name-only", "main"]).answer().contains("helper"));
}
