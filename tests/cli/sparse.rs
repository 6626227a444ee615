//! A checkout that leaves out `.arborist/`: the tracked configuration is read from the commit.

use arborist_testkit::TestRepo;

use crate::queue_repo::QueueRepo;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 [P] a\n- [ ] T002 [P] b\n";
const WORKER: &str =
    "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x > \"$ARBORIST_TASK.txt\" ;;\nesac";
const GATES: &str = "[[merge.gates]]\nname = \"check\"\ncommand = \"! test -e T001.txt\"\n";

/// Leaves the folder with the configuration out of the checkout.
fn leave_out(repo: &TestRepo) {
    repo.git(["sparse-checkout", "set", "--no-cone", "/*", "!/.arborist/"]).succeeds();
    assert!(!repo.path(".arborist").exists());
}

fn landed(repo: &TestRepo, task: &str) -> bool {
    repo.git(["cat-file", "-e", &format!("main:{task}.txt")]).code() == 0
}

#[test]
fn a_run_in_a_sparse_checkout_uses_the_tracked_gates() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.write(".arborist/config.toml", GATES);
    repo.commit("gates\n");
    leave_out(&repo);
    assert_ne!(repo.arborist(["gardener", "--jobs", "2", "--keep-going"]).code(), 0);
    assert_eq!(repo.calls(), 0, "the gate has to be approved first");
    repo.arborist(["gardener", "--jobs", "2", "--keep-going", "--yes"]).exits(1);
    assert_eq!((landed(&repo, "T001"), landed(&repo, "T002")), (false, true));
    let gates = repo.git(["log", "-1", "--merges", "--format=%(trailers:key=Arborist-Gate,valueonly)"]);
    assert_eq!(gates.answer().trim(), "check");
    // Nothing has changed, so a second call does not ask to accept anything.
    repo.arborist(["gardener", "--jobs", "2", "--keep-going", "--yes"]).exits(1).never("--accept-changes");
}

#[test]
fn a_manual_landing_in_a_sparse_checkout_uses_the_tracked_gates() {
    let queue_repo = QueueRepo::empty_queue_repo();
    queue_repo.write(".arborist/config.toml", GATES);
    queue_repo.commit("gates\n");
    queue_repo.run_start("main", "s1");
    queue_repo.branch_off("T001", "complete");
    leave_out(&queue_repo);
    queue_repo.merge(&["T001", "--yes"]).exits(1);
    assert!(!landed(&queue_repo, "T001"));
}

#[test]
fn configuration_that_is_missing_in_the_checkout_is_read_from_the_commit() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.write(".arborist/config.toml", "test-command = \"false\"\nmax-retries = 1\n");
    repo.commit("configuration\n");
    std::fs::remove_file(repo.path(".arborist/config.toml")).unwrap();
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).exits(1);
    assert!(!landed(&repo, "T001") && !landed(&repo, "T002"), "the test command of the commit is red");
}

#[test]
fn a_new_configuration_in_the_checkout_is_committed_with_the_run_start() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.write(".arborist/config.toml", GATES);
    repo.arborist(["gardener", "--jobs", "2", "--keep-going", "--yes"]).exits(1);
    assert_eq!((landed(&repo, "T001"), landed(&repo, "T002")), (false, true));
    assert_eq!(repo.git(["show", "main:.arborist/config.toml"]).answer(), GATES.trim_end());
}

#[test]
fn a_task_given_by_message_is_refused_if_the_configuration_changed() {
    let repo = TestRepo::planned("tasks.md", PLAN, WORKER);
    repo.write(".arborist/config.toml", "max-retries = 2\n");
    repo.commit("configuration\n");
    repo.arborist(["garden", "-m", "one"]).succeeds();
    repo.write(".arborist/config.toml", "max-retries = 3\n");
    let refused = repo.arborist(["garden", "-m", "two"]);
    assert_ne!(refused.code(), 0);
    assert!(refused.report().contains("--accept-changes"), "{}", refused.report());
}

#[test]
fn gates_and_reviewers_see_files_outside_the_sparse_checkout() {
    let repo = TestRepo::planned("tasks.md", PLAN, "");
    repo.write("src/a", "a\n");
    repo.write("out/o", "o\n");
    repo.commit("folders\n");
    repo.git(["sparse-checkout", "set", "src"]).succeeds();
    repo.agent(
        "case \"$prompt\" in Review*) ls out >> \"$ROOT/reviewed\" 2>&1; echo APPROVED; exit ;; esac
case $ARBORIST_TASK in T001) mkdir -p out; echo 1 > out/flag ;; *) echo 1 > src/b ;; esac",
    );
    // Each task passes alone, and both together do not.
    repo.git(["config", "arborist.test-command", "! test -f out/flag || ! test -f src/b"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--keep-going"]).exits(1);
    let is_in = |path: &str| repo.git(["cat-file", "-e", &format!("main:{path}")]).code() == 0;
    assert_ne!(is_in("out/flag"), is_in("src/b"), "exactly one lands");
    let reviewed = std::fs::read_to_string(repo.root().join("reviewed")).unwrap();
    assert!(reviewed.contains("flag") && !reviewed.contains("No such file"), "{reviewed}");
}

#[test]
fn the_reviewer_of_a_task_in_a_sparse_checkout_sees_all_files() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", "");
    repo.write("src/a", "a\n");
    repo.write("out/o", "o\n");
    repo.commit("folders\n");
    repo.git(["sparse-checkout", "set", "src"]).succeeds();
    repo.agent(
        "case \"$prompt\" in Review*) ls out > \"$ROOT/reviewed\" 2>&1; echo APPROVED; exit ;; esac
mkdir -p out; echo 1 > out/new",
    );
    repo.arborist(["gardener"]).succeeds();
    let reviewed = std::fs::read_to_string(repo.root().join("reviewed")).unwrap();
    assert_eq!(reviewed, "new\no\n");
    assert!(!repo.path("out/o").exists(), "the user's checkout stays sparse");
}
