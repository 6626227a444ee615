//! Refs that came from a remote are data: no command acts on them as on what a driver of this clone left.

use arborist_testkit::TestRepo;

const AGENT: &str = "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > $ARBORIST_TASK.txt\n";

#[test]
fn a_fetched_attempt_mark_commits_no_files_of_the_user() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", AGENT);
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    for attempt in ["0", "4294967295"] {
        repo.git(["update-ref", &format!("refs/arborist/wip/main/T001/{attempt}"), "HEAD"]).succeeds();
    }
    repo.write("private.txt", "mine\n");
    repo.arborist(["gardener", "--test-command", "true"]).exits(2);
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), head);
    repo.arborist(["gardener", "--test-command", "true", "--allow-dirty"]).succeeds();
    let tree = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
    assert!(tree.contains("T001.txt") && !tree.contains("private.txt"), "{tree}");
    assert_eq!(repo.read("private.txt"), "mine\n");
}

#[test]
fn a_fetched_attempt_mark_stages_nothing() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", AGENT);
    repo.write("evil.sh", "x\n");
    repo.git(["add", "evil.sh"]).succeeds();
    let tree = repo.git(["write-tree"]).answer();
    repo.git(["rm", "-q", "-f", "evil.sh"]).succeeds();
    let index =
        repo.git(["commit-tree", &tree, "-p", "HEAD", "-m", "index before attempt 1 of T001"]).answer();
    let words = "worktree before attempt 1 of T001";
    let mark = repo.git(["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-p", &index, "-m", words]).answer();
    repo.git(["update-ref", "refs/arborist/wip/main/T001/0", &mark]).succeeds();
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_fetched_turn_record_moves_no_branch() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", AGENT);
    repo.arborist(["gardener", "--test-command", "true"]).succeeds();
    let find = |subject: &str| repo.git(["log", "--all", "--format=%H", "--grep", subject]).answer();
    let session = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/sessions"]).answer();
    let work = find("@T001@implement-pass)");
    let record = find("^session .*: turn 1 of T001");
    repo.git(["reset", "-q", "--hard", &format!("{work}^")]).succeeds();
    repo.git(["update-ref", &session, &record]).succeeds();
    let before = repo.git(["rev-parse", "main"]).answer();
    repo.arborist(["gardener", "--test-command", "true", "--dry-run"]).succeeds();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), before);
}
