//! A reviewer judges everything that a task adds to the tree it started from, and nothing else, whatever happened between its
//! attempts.

use std::fs;

use crate::turn_scripts;
use arborist_testkit::{TestRepo, pairs};
use serde_json::Value;

/// Rejects what the first attempt writes, wherever it is seen.
const REVIEW: &str = r#"case "$prompt" in Review*)
    cp "$ROOT/prompts/$n" "$ROOT/review"
    case "$prompt" in *'os.system(x)'*) echo 'REJECTED: os.system' ;; *) echo APPROVED ;; esac
    exit ;;
esac
"#;

fn works(repo: &TestRepo, script: &str) {
    repo.agent(&format!("{REVIEW}{script}\necho done"));
}

/// A task that wrote `os.system(x)` and failed for it.
fn rejected(place: &[&str]) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.commit("a plan\n");
    works(&repo, "echo 'os.system(x)' > bad.py");
    repo.arborist(["gardener", "--max-retries", "1"].iter().chain(place)).exits(1);
    assert_eq!(state(&repo), "failed");
    works(&repo, "echo $n > good.py");
    repo
}

fn state(repo: &TestRepo) -> String {
    let said: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    said["tasks"][0]["state"].as_str().unwrap().to_owned()
}

/// The diff that was reviewed last.
fn reviewed(repo: &TestRepo) -> String {
    fs::read_to_string(repo.root().join("review")).unwrap()
}

fn subject(repo: &TestRepo, status: &str) -> String {
    repo.git(["log", "-1", "--format=%H", &format!("--grep=@{status})")]).answer()
}

/// The next run fails like the first, because the reviewer sees what both attempts added.
fn is_rejected_again(repo: &TestRepo, args: &[&str]) {
    fs::remove_file(repo.root().join("review")).unwrap();
    repo.arborist(["gardener", "--max-retries", "1"].iter().chain(args)).exits(1);
    let diff = reviewed(repo);
    assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/good.py"), "{diff}");
    assert_eq!(state(repo), "failed");
}

#[test]
fn a_rejected_file_is_still_reviewed_after_retry_failed() {
    let repo = rejected(&[]);
    is_rejected_again(&repo, &["--retry-failed"]);
    is_rejected_again(&repo, &["--retry-failed"]);
}

#[test]
fn a_rejected_file_is_still_reviewed_after_a_reset() {
    let repo = rejected(&[]);
    repo.arborist(["reset", "T1"]).succeeds();
    is_rejected_again(&repo, &[]);
}

#[test]
fn a_rejected_file_is_still_reviewed_after_any_commit_of_the_task_was_reverted() {
    for status in ["failed", "review-rejected", "test-pass"] {
        let repo = rejected(&[]);
        let commit = subject(&repo, status);
        let message = format!("Revert \"it\"\n\nThis reverts commit {commit}.\n");
        repo.git(["commit", "-q", "--allow-empty", "-m", &message]).succeeds();
        is_rejected_again(&repo, &[]);
    }
}

#[test]
fn files_that_a_revert_removed_are_no_longer_reviewed() {
    let repo = rejected(&[]);
    let commit = subject(&repo, "implement-pass");
    repo.git(["revert", "--no-edit", &commit]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let diff = reviewed(&repo);
    assert!(!diff.contains("bad.py") && diff.contains("+++ b/good.py"), "{diff}");
}

#[test]
fn user_commits_between_attempts_are_not_part_of_the_reviewed_diff() {
    let repo = rejected(&[]);
    repo.write("theirs.txt", "of the user\n");
    repo.commit("of the user\n");
    is_rejected_again(&repo, &["--retry-failed"]);
    assert!(!reviewed(&repo).contains("theirs.txt"), "{}", reviewed(&repo));
    repo.write("theirs.txt", "of the user, again\n");
    repo.write("more.txt", "more\n");
    repo.commit("of the user again\n");
    is_rejected_again(&repo, &["--retry-failed"]);
    let diff = reviewed(&repo);
    assert!(!diff.contains("theirs.txt") && !diff.contains("more.txt"), "{diff}");
}

#[test]
fn in_a_file_changed_by_task_and_user_only_lines_of_the_task_are_reviewed() {
    let repo = TestRepo::init();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    let lines: String = (0..40).map(|n| format!("line {n}\n")).collect();
    repo.write("both.txt", &lines);
    repo.commit("a plan\n");
    works(&repo, "sed -i 's/line 3$/os.system(x)/' both.txt");
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    repo.write("both.txt", repo.read("both.txt").replace("line 35\n", "of the user\n"));
    repo.commit("of the user\n");
    works(&repo, "echo $n > good.py");
    is_rejected_again(&repo, &["--retry-failed"]);
    assert!(!reviewed(&repo).contains("of the user"), "{}", reviewed(&repo));
    // Where lines of the task were changed by somebody else, more is shown rather than less.
    repo.write("both.txt", repo.read("both.txt").replace("os.system(x)\n", "os.system(x) # of the user\n"));
    repo.write(".gitattributes", "* merge=union\n");
    repo.commit("of the user again\n");
    is_rejected_again(&repo, &["--retry-failed"]);
    assert!(reviewed(&repo).contains("+os.system(x) # of the user"), "{}", reviewed(&repo));
}

#[test]
fn a_pull_that_swaps_merge_parents_hides_no_change_from_the_reviewer() {
    let repo = rejected(&[]);
    let tip = repo.git(["rev-parse", "HEAD"]).answer();
    repo.git(["switch", "-q", "-c", "colleague", "main~5"]).succeeds();
    repo.write("theirs.txt", "of the colleague\n");
    repo.commit("of the colleague\n");
    repo.git(["merge", "-q", "--no-edit", &tip]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--ff-only", "colleague"]).succeeds();
    is_rejected_again(&repo, &["--retry-failed"]);
    assert!(!reviewed(&repo).contains("theirs.txt"), "{}", reviewed(&repo));
}

#[test]
fn after_a_crash_everything_that_the_task_wrote_is_reviewed() {
    for place in [[].as_slice(), &["--isolate"]] {
        let repo = TestRepo::init();
        repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
        repo.commit("a plan\n");
        works(&repo, "echo 'os.system(x)' > bad.py; kill -9 $PPID");
        assert_ne!(repo.arborist(["gardener"].iter().chain(place)).code(), 0);
        works(&repo, "echo $n > good.py");
        repo.arborist(["gardener", "--max-retries", "2"].iter().chain(place)).exits(1);
        let diff = reviewed(&repo);
        assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/good.py"), "{diff}");
    }
}

#[test]
fn in_lanes_a_restarted_task_is_reviewed_against_the_tree_that_it_restarts_from() {
    for how in [["gardener", "--isolate", "--retry-failed"].as_slice(), &["gardener", "--isolate"]] {
        let repo = rejected(&["--isolate"]);
        repo.write("theirs.txt", "of the user\n");
        repo.commit("of the user\n");
        if how.len() == 2 {
            repo.arborist(["reset", "T1"]).succeeds();
        }
        repo.arborist(how).succeeds();
        let diff = reviewed(&repo);
        assert!(!diff.contains("bad.py") && !diff.contains("theirs.txt"), "{diff}");
        let files = repo.git(["ls-tree", "--name-only", "HEAD"]).answer();
        assert!(!files.contains("bad.py") && files.contains("good.py"), "{files}");
    }
}

#[test]
fn in_lanes_a_reverted_commit_on_the_task_branch_hides_no_change_from_the_reviewer() {
    let repo = rejected(&["--isolate"]);
    let lane = repo.path("../repo.arborist/lane-1");
    let commit = repo.git_in(&lane, ["log", "-1", "--format=%H", "--grep=@failed)"]).answer();
    let message = format!("Revert \"it\"\n\nThis reverts commit {commit}.\n");
    repo.git_in(&lane, ["commit", "-q", "--allow-empty", "-m", &message]).succeeds();
    is_rejected_again(&repo, &["--isolate"]);
}

/// A session of one task with two turns, the first of which wrote what the reviewer rejects.
fn turned() -> (TestRepo, String) {
    let repo = turn_scripts::repo("claude", BAD);
    turn_scripts::judge(&repo, &judge(&repo));
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let list: Value = serde_json::from_str(&repo.arborist(["session", "list", "--json"]).answer()).unwrap();
    let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
    turn_scripts::agent(&repo, "claude", GOOD);
    turn_scripts::judge(&repo, &judge(&repo));
    (repo, id)
}

const BAD: &str = r#"opens
calls 1 "I add a"; echo 'os.system(x)' > bad.py; answers 1
calls 2 "I add b"; echo b > b.py; answers 2
ends "done"
"#;
const GOOD: &str = r#"opens
calls 1 "I add c"; echo $n > good.py; answers 1
ends "done"
"#;

fn judge(repo: &TestRepo) -> String {
    let root = repo.root().display();
    format!(
        "cat > '{root}/review'\nif grep -q 'os.system(x)' '{root}/review'; then echo 'REJECTED: os.system'; else echo APPROVED; fi\n"
    )
}

#[test]
fn after_resuming_at_a_turn_all_changes_up_to_it_are_reviewed() {
    let (repo, id) = turned();
    repo.arborist(["session", "resume", &id, "--turn", "1", "--", "--max-retries", "1"]).exits(1);
    let diff = reviewed(&repo);
    assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/good.py"), "{diff}");
    assert!(!diff.contains("b.py b"), "what came after the turn is not in the tree: {diff}");
    // Forward again: what the second turn had added is the task's work, too.
    repo.arborist(["session", "resume", &id, "--turn", "2", "--", "--max-retries", "1"]).exits(1);
    let diff = reviewed(&repo);
    assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/b.py"), "{diff}");
}

#[test]
fn a_replay_is_reviewed_with_all_replayed_changes_of_the_other_session() {
    for turn in ["1", "2"] {
        let (repo, id) = turned();
        repo.arborist(["session", "replay", &id, "--turn", turn, "--", "--max-retries", "1"]).exits(1);
        let diff = reviewed(&repo);
        assert!(diff.contains("+os.system(x)"), "{diff}");
    }
    let (repo, id) = turned();
    repo.arborist(["session", "replay", &id, "--turn", "0"]).succeeds();
    assert!(!reviewed(&repo).contains("os.system"), "{}", reviewed(&repo));
}

#[test]
fn attributes_and_single_zero_bytes_hide_no_change_from_the_reviewer() {
    for deed in [
        "echo '*.py -diff' > .gitattributes; echo 'os.system(x)' > a.py",
        "echo '*.py binary' > .gitattributes; echo 'os.system(x)' > a.py",
        "{ seq 30; echo 'os.system(x)'; printf '# \\000\\n'; } > a.py",
    ] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T1 a\n", "");
        works(&repo, deed);
        repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
        assert!(reviewed(&repo).contains("+os.system(x)"), "{deed}: {}", reviewed(&repo));
        assert_eq!(state(&repo), "failed", "{deed}");
    }
}

#[test]
fn a_submodule_with_ignore_all_cannot_be_moved_unnoticed() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T1 a\n", "");
    let other = TestRepo::init();
    other.write("g", "old\n");
    other.commit("a module\n");
    let url = other.path("").display().to_string();
    repo.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sm"]).succeeds();
    repo.git(["config", "-f", ".gitmodules", "submodule.sm.ignore", "all"]).succeeds();
    repo.commit("a submodule\n");
    let begin = repo.git(["rev-parse", "HEAD:sm"]).answer();
    works(
        &repo,
        "(cd sm; echo evil > g; git -c user.name=a -c user.email=b commit -qam evil >&2)
git add sm; git commit -qm mine >&2; echo $n > good.py",
    );
    let _ = repo.arborist(["gardener", "--max-retries", "1"]);
    assert_ne!(repo.git(["-C", "sm", "rev-parse", "HEAD"]).answer(), "");
    assert_eq!(repo.git(["rev-parse", "HEAD:sm"]).answer(), begin);
}

/// Stores other content where git looks for an object.
const FALSE_OBJECT: &str = r#"
store() { # <kind> <id> <file with other content>
    d=$(git rev-parse --git-common-dir)/objects/$(echo "$2" | cut -c1-2); f=$d/$(echo "$2" | cut -c3-)
    other=$(git hash-object -w -t "$1" "$3"); o=$(git rev-parse --git-common-dir)/objects
    mkdir -p "$d"; rm -f "$f"; cp "$o/$(echo "$other" | cut -c1-2)/$(echo "$other" | cut -c3-)" "$f"
}
"#;

#[test]
fn an_object_stored_under_the_id_of_other_content_is_replaced_and_fails_the_attempt() {
    // A file that git takes in later, one that is staged already, and a folder.
    let deeds = [
        "echo 'os.system(x)' > a.py; store blob $(git hash-object a.py) \"$ROOT/harmless\"",
        "echo 'os.system(x)' > a.py; git add a.py; store blob $(git hash-object a.py) \"$ROOT/harmless\"",
        "mkdir d; echo harmless > d/a.py; git add d; git cat-file tree $(git write-tree --prefix=d/) > \"$ROOT/tree\"
         echo 'os.system(x)' > d/a.py; git add d; store tree $(git write-tree --prefix=d/) \"$ROOT/tree\"; git rm -rq --cached d",
    ];
    for (deed, place) in pairs(&deeds, &[&[][..], &["--isolate"]]) {
        let repo = TestRepo::planned("tasks.md", "- [ ] T1 a\n", "");
        fs::write(repo.root().join("harmless"), "harmless\n").unwrap();
        works(
            &repo,
            &format!(
                "[ -e \"$ROOT/once\" ] && {{ echo more > b.txt; exit; }}; touch \"$ROOT/once\"\n{FALSE_OBJECT}\n{deed}"
            ),
        );
        repo.arborist(["gardener", "--max-retries", "2"].iter().chain(place)).exits(1);
        assert!(reviewed(&repo).contains("+os.system(x)"), "{deed}: {}", reviewed(&repo));
        let log = repo.git(["log", "--all", "--format=%s%n%b"]).answer();
        assert!(log.contains("@T1@implement-fail)") && log.contains("under the object id"), "{deed}: {log}");
        repo.git(["fsck", "--no-dangling"]).succeeds();
    }
}

#[test]
fn a_task_that_replaces_an_object_in_every_attempt_is_never_approved() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T1 a\n", "");
    fs::write(repo.root().join("harmless"), "harmless\n").unwrap();
    let deed = "echo 'os.system(x)' > a.py; store blob $(git hash-object a.py) \"$ROOT/harmless\"";
    works(&repo, &format!("{FALSE_OBJECT}\n{deed}; echo $n > $n.txt"));
    repo.arborist(["gardener", "--max-retries", "3"]).exits(1);
    assert_eq!(state(&repo), "failed");
    let log = repo.git(["log", "--format=%s"]).answer();
    assert_eq!(log.matches("@T1@implement-fail)").count(), 3, "{log}");
}

#[test]
fn a_script_in_short_pieces_of_a_binary_file_is_shown_to_the_reviewer() {
    // Runs `touch` in any shell, and is mostly no text.
    let script =
        "printf 'echo starts\\nIFS=\\001\\na=h\\001\\na=c$a\\001\\na=u$a\\001\\n$a;\\001\\nexit\\n' > tool.sh
i=0; while [ $i -lt 60 ]; do printf '\\000\\377\\376' >> tool.sh; i=$((i+1)); done";
    let repo = TestRepo::planned("tasks.md", "- [ ] T1 a\n", "");
    works(&repo, script);
    repo.arborist(["gardener"]).succeeds();
    let prompt = reviewed(&repo);
    assert!(prompt.contains("Binary files"), "{prompt}");
    for piece in ["+IFS=", "+a=h", "+a=c$a", "+a=u$a", "+$a;"] {
        assert!(prompt.contains(piece), "{piece}: {prompt}");
    }
}

#[test]
fn a_move_of_thousands_of_identical_files_is_reviewed_in_reasonable_time() {
    // Comparing each with each would take longer than the test suite.
    let repo = TestRepo::planned("tasks.md", "- [ ] T1 a\n", "");
    for n in 0..8000 {
        repo.write(&format!("old/{}/{n}", n / 1000), "");
    }
    repo.commit("many files\n");
    works(&repo, "mv old new");
    repo.arborist(["gardener"]).succeeds();
    assert!(reviewed(&repo).contains("old/0/0 => new/0/0"));
}
