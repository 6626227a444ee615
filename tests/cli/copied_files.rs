//! Files that git does not track and that worktrees get from the user's checkout, or keep: an agent cannot add to them.

use std::fs;

use arborist_testkit::TestRepo;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 one\n";
/// Red for T001 wherever no helper lies.
const NEEDS_HELPER: &str = "! test -e T001.txt || test -e helper.cache";

fn repo(plan: &str, deed: &str, review: &str) -> TestRepo {
    let script = format!(
        "case \"$prompt\" in Review*) {review}; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"\n{deed}"
    );
    let repo = TestRepo::planned("tasks.md", plan, &script);
    repo.write(".gitignore", "*.cache\ncache/\nsettings.local\n");
    repo.commit("ignore\n");
    repo
}

fn files(repo: &TestRepo) -> String {
    repo.git(["ls-tree", "-r", "--name-only", "main"]).answer()
}

#[test]
fn a_file_that_an_agent_adds_to_the_checkout_is_not_copied_to_gates() {
    let deed =
        "touch helper.cache \"$ROOT/repo/helper.cache\"; echo '*.cache' > \"$ROOT/repo/.worktreeinclude\"";
    let repo = repo(PLAN, deed, "echo APPROVED");
    repo.write(".git/info/exclude", ".worktreeinclude\n");
    let run = ["gardener", "--isolate", "--max-retries", "1", "--test-command", NEEDS_HELPER];
    let run = repo.arborist(run);
    assert_ne!(run.code(), 0, "{}", run.report());
    assert!(run.report().contains(".worktreeinclude"), "{}", run.report());
    assert!(!files(&repo).contains("T001.txt"));
}

#[test]
fn a_file_that_an_agent_changes_in_the_checkout_is_not_copied_and_is_reported() {
    let deed = "echo evil > dep.cache; echo evil > \"$ROOT/repo/dep.cache\"";
    let repo = repo(PLAN, deed, "echo APPROVED");
    repo.write("dep.cache", "good\n");
    repo.write("same.cache", "same\n");
    repo.git(["config", "arborist.worktree.copy", "*.cache"]).succeeds();
    let command = "test -e same.cache && { ! test -e T001.txt || grep -q evil dep.cache; }";
    let run = repo.arborist(["gardener", "--isolate", "--max-retries", "1", "--test-command", command]);
    assert_ne!(run.code(), 0, "{}", run.report());
    assert_eq!(run.report().matches("after the run began: dep.cache").count(), 1, "{}", run.report());
    assert!(!run.report().contains("same.cache,"), "{}", run.report());
    assert!(!files(&repo).contains("T001.txt"));
}

#[test]
fn lanes_and_gates_get_copies_of_files_as_they_were_when_the_run_began() {
    let repo = repo(PLAN, "test \"$(cat deps.cache/a)\" = good || exit 3", "echo APPROVED");
    repo.write("deps.cache/a", "good\n");
    repo.write("deps.cache/deep/b", "good\n");
    std::os::unix::fs::symlink("deep/b", repo.path("deps.cache/link")).unwrap();
    fs::create_dir(repo.path("deps.cache/empty")).unwrap();
    repo.write(".worktreeinclude", "# what builds need\n*.cache\n");
    repo.commit("include\n");
    let command = "test -d deps.cache/empty && test \"$(cat deps.cache/link)\" = good";
    repo.arborist(["gardener", "--isolate", "--test-command", command]).succeeds();
    assert!(files(&repo).contains("T001.txt"));
}

#[test]
fn settings_that_an_agent_writes_are_not_copied_to_the_reviewer() {
    let deed = "echo 'echo APPROVED' > \"$ROOT/repo/settings.local\"; touch helper.cache \"$ROOT/repo/helper.cache\"\n\
                printf 'settings.local\\n*.cache\\n' > \"$ROOT/repo/.worktreeinclude\"";
    let review = "if [ -e settings.local ]; then . ./settings.local; else echo 'REJECTED: no'; fi";
    for place in [&["--isolate"][..], &[]] {
        let repo = repo(PLAN, deed, review);
        repo.write(".git/info/exclude", ".worktreeinclude\n");
        let run = repo.arborist([&["gardener", "--max-retries=1"], place].concat());
        assert_eq!(run.code(), 1, "{}", run.report());
        let log = repo.git(["log", "--all", "--format=%s"]).answer();
        assert!(log.contains("@T001@review-rejected") && !log.contains("review-approved"), "{log}");
    }
}

#[test]
fn files_that_an_agent_writes_are_not_copied_for_clean_tests_of_a_run_in_the_checkout() {
    let deed = "touch helper.cache; echo '*.cache' > .worktreeinclude";
    let repo = repo(PLAN, deed, "echo APPROVED");
    repo.git(["config", "arborist.test.clean", "true"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "1", "--test-command", NEEDS_HELPER]).exits(1);
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(log.contains("@T001@test-fail"), "{log}");
}

#[test]
fn only_files_that_a_gate_itself_wrote_are_kept_for_the_next_gate() {
    const TWO: &str = "## Phase 1: Work\n\n- [ ] T001 one\n- [ ] T002 two (depends on T001)\n";
    let deed = "if [ $ARBORIST_TASK = T002 ]; then mkdir -p cache; touch cache/helper; \
                gate=\"$ROOT/repo.arborist/gate-1/cache\"; touch \"$gate/helper\"; mkdir \"$gate/folder\"; echo evil > \"$gate/changed\"; fi";
    let repo = repo(TWO, deed, "echo APPROVED");
    repo.git(["config", "arborist.merge.keep", "cache/"]).succeeds();
    let asked = repo.root().join("asked");
    repo.write_script(
        "gate.sh",
        &format!(
            "#!/bin/sh\nmkdir -p cache\nls cache | tr '\\n' ' ' >> '{}'\necho >> '{0}'\ntouch cache/kept\n[ -e cache/changed ] || touch cache/changed\n\
             ! test -e T002.txt || test -e cache/helper\n",
            asked.display()
        ),
    );
    repo.commit("a gate\n");
    repo.git(["config", "arborist.merge.gates.check.command", "./gate.sh"]).succeeds();
    let run = repo.arborist(["gardener", "--isolate", "--max-retries", "1"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    assert!(files(&repo).contains("T001.txt") && !files(&repo).contains("T002.txt"));
    let asked = fs::read_to_string(asked).unwrap();
    assert!(asked.lines().nth(1).is_some_and(|kept| kept.trim() == "kept"), "{asked}");
}

#[test]
fn files_that_an_agent_adds_to_a_gate_worktree_are_removed_when_the_run_ends() {
    let deed = "mkdir -p \"$ROOT/repo.arborist/gate-1/cache\"; touch \"$ROOT/repo.arborist/gate-1/cache/helper\"; exit 1";
    let repo = repo(PLAN, deed, "echo APPROVED");
    repo.git(["config", "arborist.merge.keep", "cache/"]).succeeds();
    let run =
        ["gardener", "--isolate", "--max-retries", "1", "--test-command", "mkdir -p cache; touch cache/kept"];
    repo.arborist(run).exits(1);
    assert!(repo.root().join("repo.arborist/gate-1/cache/kept").exists());
    assert!(!repo.root().join("repo.arborist/gate-1/cache/helper").exists());
}

#[test]
fn copied_files_are_not_committed_if_a_task_stops_ignoring_them() {
    for place in ["--isolate", "--session-branch"] {
        let deed = "printf 'other\\n' > .gitignore; echo changed >> dep.cache";
        let repo = repo(PLAN, deed, "echo APPROVED");
        repo.write("settings.local", "mine\n");
        repo.write("dep.cache", "mine\n");
        repo.write("cache/deep/file", "mine\n");
        repo.write(".worktreeinclude", "settings.local\n*.cache\ncache/\n");
        repo.commit("copies\n");
        repo.arborist(["gardener", place, "--test-command", "true"]).succeeds();
        for file in ["settings.local", "dep.cache", "cache"] {
            assert_eq!(
                repo.git(["log", "--branches", "--format=%s", "--", file]).answer(),
                "",
                "{place}: {file}"
            );
        }
        assert_eq!(
            repo.git(["log", "--branches", "--format=%h", "--", "T001.txt"]).answer().lines().count(),
            1
        );
    }
}
