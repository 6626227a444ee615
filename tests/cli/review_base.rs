//! A reviewer judges everything that a task adds to the tree it started from, and nothing else, whatever happened between its
//! attempts.

use std::fs;

use crate::turning;
use arborist_testkit::Garden;
use serde_json::Value;

/// Rejects what the first attempt writes, wherever it is seen.
const REVIEW: &str = r#"case "$prompt" in Review*)
    cp "$ROOT/prompts/$n" "$ROOT/review"
    case "$prompt" in *'os.system(x)'*) echo 'REJECTED: os.system' ;; *) echo APPROVED ;; esac
    exit ;;
esac
"#;

fn works(garden: &Garden, script: &str) {
    garden.agent(&format!("{REVIEW}{script}\necho done"));
}

/// A task that wrote `os.system(x)` and failed for it.
fn rejected(place: &[&str]) -> Garden {
    let garden = Garden::sprout();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    garden.commit("a plan\n");
    works(&garden, "echo 'os.system(x)' > bad.py");
    garden.arborist(["gardener", "--max-retries", "1"].iter().chain(place)).exits(1);
    assert_eq!(state(&garden), "failed");
    works(&garden, "echo $n > good.py");
    garden
}

fn state(garden: &Garden) -> String {
    let said: Value = serde_json::from_str(&garden.arborist(["state", "--json"]).answer()).unwrap();
    said["tasks"][0]["state"].as_str().unwrap().to_owned()
}

/// The diff that was reviewed last.
fn reviewed(garden: &Garden) -> String {
    fs::read_to_string(garden.root().join("review")).unwrap()
}

fn subject(garden: &Garden, status: &str) -> String {
    garden.git(["log", "-1", "--format=%H", &format!("--grep=@{status})")]).answer()
}

/// The next run fails like the first, because the reviewer sees what both attempts added.
fn is_rejected_again(garden: &Garden, args: &[&str]) {
    fs::remove_file(garden.root().join("review")).unwrap();
    garden.arborist(["gardener", "--max-retries", "1"].iter().chain(args)).exits(1);
    let diff = reviewed(garden);
    assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/good.py"), "{diff}");
    assert_eq!(state(garden), "failed");
}

#[test]
fn a_rejected_file_is_still_reviewed_after_retry_failed() {
    let garden = rejected(&[]);
    is_rejected_again(&garden, &["--retry-failed"]);
    is_rejected_again(&garden, &["--retry-failed"]);
}

#[test]
fn a_rejected_file_is_still_reviewed_after_a_reset() {
    let garden = rejected(&[]);
    garden.arborist(["reset", "T1"]).succeeds();
    is_rejected_again(&garden, &[]);
}

#[test]
fn a_rejected_file_is_still_reviewed_after_any_commit_of_the_task_was_reverted() {
    for status in ["failed", "review-rejected", "test-pass"] {
        let garden = rejected(&[]);
        let commit = subject(&garden, status);
        let message = format!("Revert \"it\"\n\nThis reverts commit {commit}.\n");
        garden.git(["commit", "-q", "--allow-empty", "-m", &message]).succeeds();
        is_rejected_again(&garden, &[]);
    }
}

#[test]
fn what_a_revert_took_out_of_the_tree_is_not_reviewed_any_more() {
    let garden = rejected(&[]);
    let commit = subject(&garden, "implement-pass");
    garden.git(["revert", "--no-edit", &commit]).succeeds();
    garden.arborist(["gardener"]).succeeds();
    let diff = reviewed(&garden);
    assert!(!diff.contains("bad.py") && diff.contains("+++ b/good.py"), "{diff}");
}

#[test]
fn commits_of_others_between_the_attempts_are_not_shown_as_the_tasks_work() {
    let garden = rejected(&[]);
    garden.write("theirs.txt", "of the user\n");
    garden.commit("of the user\n");
    is_rejected_again(&garden, &["--retry-failed"]);
    assert!(!reviewed(&garden).contains("theirs.txt"), "{}", reviewed(&garden));
    garden.write("theirs.txt", "of the user, again\n");
    garden.write("more.txt", "more\n");
    garden.commit("of the user again\n");
    is_rejected_again(&garden, &["--retry-failed"]);
    let diff = reviewed(&garden);
    assert!(!diff.contains("theirs.txt") && !diff.contains("more.txt"), "{diff}");
}

#[test]
fn in_a_file_that_both_changed_only_the_tasks_lines_are_shown() {
    let garden = Garden::sprout();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    let lines: String = (0..40).map(|n| format!("line {n}\n")).collect();
    garden.write("both.txt", &lines);
    garden.commit("a plan\n");
    works(&garden, "sed -i 's/line 3$/os.system(x)/' both.txt");
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    garden.write("both.txt", garden.read("both.txt").replace("line 35\n", "of the user\n"));
    garden.commit("of the user\n");
    works(&garden, "echo $n > good.py");
    is_rejected_again(&garden, &["--retry-failed"]);
    assert!(!reviewed(&garden).contains("of the user"), "{}", reviewed(&garden));
    // Where lines of the task were changed by somebody else, more is shown rather than less.
    garden
        .write("both.txt", garden.read("both.txt").replace("os.system(x)\n", "os.system(x) # of the user\n"));
    garden.write(".gitattributes", "* merge=union\n");
    garden.commit("of the user again\n");
    is_rejected_again(&garden, &["--retry-failed"]);
    assert!(reviewed(&garden).contains("+os.system(x) # of the user"), "{}", reviewed(&garden));
}

#[test]
fn a_pull_that_swaps_the_parents_hides_nothing() {
    let garden = rejected(&[]);
    let tip = garden.git(["rev-parse", "HEAD"]).answer();
    garden.git(["switch", "-q", "-c", "colleague", "main~5"]).succeeds();
    garden.write("theirs.txt", "of the colleague\n");
    garden.commit("of the colleague\n");
    garden.git(["merge", "-q", "--no-edit", &tip]).succeeds();
    garden.git(["switch", "-q", "main"]).succeeds();
    garden.git(["merge", "-q", "--ff-only", "colleague"]).succeeds();
    is_rejected_again(&garden, &["--retry-failed"]);
    assert!(!reviewed(&garden).contains("theirs.txt"), "{}", reviewed(&garden));
}

#[test]
fn after_a_crash_everything_that_the_task_wrote_is_reviewed() {
    for place in [[].as_slice(), &["--isolate"]] {
        let garden = Garden::sprout();
        garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
        garden.commit("a plan\n");
        works(&garden, "echo 'os.system(x)' > bad.py; kill -9 $PPID");
        assert_ne!(garden.arborist(["gardener"].iter().chain(place)).code(), 0);
        works(&garden, "echo $n > good.py");
        garden.arborist(["gardener", "--max-retries", "2"].iter().chain(place)).exits(1);
        let diff = reviewed(&garden);
        assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/good.py"), "{diff}");
    }
}

#[test]
fn in_lanes_a_task_that_begins_anew_is_reviewed_from_the_tree_that_it_begins_with() {
    for how in [["gardener", "--isolate", "--retry-failed"].as_slice(), &["gardener", "--isolate"]] {
        let garden = rejected(&["--isolate"]);
        garden.write("theirs.txt", "of the user\n");
        garden.commit("of the user\n");
        if how.len() == 2 {
            garden.arborist(["reset", "T1"]).succeeds();
        }
        garden.arborist(how).succeeds();
        let diff = reviewed(&garden);
        assert!(!diff.contains("bad.py") && !diff.contains("theirs.txt"), "{diff}");
        let files = garden.git(["ls-tree", "--name-only", "HEAD"]).answer();
        assert!(!files.contains("bad.py") && files.contains("good.py"), "{files}");
    }
}

#[test]
fn in_lanes_a_reverted_commit_on_the_tasks_branch_hides_nothing() {
    let garden = rejected(&["--isolate"]);
    let lane = garden.path("../repo.arborist/lane-1");
    let commit = garden.git_in(&lane, ["log", "-1", "--format=%H", "--grep=@failed)"]).answer();
    let message = format!("Revert \"it\"\n\nThis reverts commit {commit}.\n");
    garden.git_in(&lane, ["commit", "-q", "--allow-empty", "-m", &message]).succeeds();
    is_rejected_again(&garden, &["--isolate"]);
}

/// A session of one task with two turns, the first of which wrote what the reviewer rejects.
fn turned() -> (Garden, String) {
    let garden = turning::garden("claude", BAD);
    turning::judge(&garden, &judge(&garden));
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    let list: Value = serde_json::from_str(&garden.arborist(["session", "list", "--json"]).answer()).unwrap();
    let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
    turning::agent(&garden, "claude", GOOD);
    turning::judge(&garden, &judge(&garden));
    (garden, id)
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

fn judge(garden: &Garden) -> String {
    let root = garden.root().display();
    format!(
        "cat > '{root}/review'\nif grep -q 'os.system(x)' '{root}/review'; then echo 'REJECTED: os.system'; else echo APPROVED; fi\n"
    )
}

#[test]
fn after_resume_of_a_turn_everything_up_to_it_is_reviewed() {
    let (garden, id) = turned();
    garden.arborist(["session", "resume", &id, "--turn", "1", "--", "--max-retries", "1"]).exits(1);
    let diff = reviewed(&garden);
    assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/good.py"), "{diff}");
    assert!(!diff.contains("b.py b"), "what came after the turn is not in the tree: {diff}");
    // Forward again: what the second turn had added is the task's work, too.
    garden.arborist(["session", "resume", &id, "--turn", "2", "--", "--max-retries", "1"]).exits(1);
    let diff = reviewed(&garden);
    assert!(diff.contains("+os.system(x)") && diff.contains("+++ b/b.py"), "{diff}");
}

#[test]
fn a_replay_is_reviewed_with_everything_that_the_other_session_had_written() {
    for turn in ["1", "2"] {
        let (garden, id) = turned();
        garden.arborist(["session", "replay", &id, "--turn", turn, "--", "--max-retries", "1"]).exits(1);
        let diff = reviewed(&garden);
        assert!(diff.contains("+os.system(x)"), "{diff}");
    }
    let (garden, id) = turned();
    garden.arborist(["session", "replay", &id, "--turn", "0"]).succeeds();
    assert!(!reviewed(&garden).contains("os.system"), "{}", reviewed(&garden));
}

#[test]
fn attributes_and_single_zero_bytes_hide_nothing_from_the_reviewer() {
    for deed in [
        "echo '*.py -diff' > .gitattributes; echo 'os.system(x)' > a.py",
        "echo '*.py binary' > .gitattributes; echo 'os.system(x)' > a.py",
        "{ seq 30; echo 'os.system(x)'; printf '# \\000\\n'; } > a.py",
    ] {
        let garden = Garden::planned("tasks.md", "- [ ] T1 a\n", "");
        works(&garden, deed);
        garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
        assert!(reviewed(&garden).contains("+os.system(x)"), "{deed}: {}", reviewed(&garden));
        assert_eq!(state(&garden), "failed", "{deed}");
    }
}

#[test]
fn a_submodule_that_git_is_told_to_ignore_is_not_moved_unseen() {
    let garden = Garden::planned("tasks.md", "- [ ] T1 a\n", "");
    let other = Garden::sprout();
    other.write("g", "old\n");
    other.commit("a module\n");
    let url = other.path("").display().to_string();
    garden.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sm"]).succeeds();
    garden.git(["config", "-f", ".gitmodules", "submodule.sm.ignore", "all"]).succeeds();
    garden.commit("a submodule\n");
    let begin = garden.git(["rev-parse", "HEAD:sm"]).answer();
    works(
        &garden,
        "(cd sm; echo evil > g; git -c user.name=a -c user.email=b commit -qam evil >&2)
git add sm; git commit -qm mine >&2; echo $n > good.py",
    );
    let _ = garden.arborist(["gardener", "--max-retries", "1"]);
    assert_ne!(garden.git(["-C", "sm", "rev-parse", "HEAD"]).answer(), "");
    assert_eq!(garden.git(["rev-parse", "HEAD:sm"]).answer(), begin);
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
fn content_that_is_stored_under_the_id_of_another_is_replaced_and_has_failed_the_attempt() {
    // A file that git takes in later, one that is staged already, and a folder.
    for deed in [
        "echo 'os.system(x)' > a.py; store blob $(git hash-object a.py) \"$ROOT/harmless\"",
        "echo 'os.system(x)' > a.py; git add a.py; store blob $(git hash-object a.py) \"$ROOT/harmless\"",
        "mkdir d; echo harmless > d/a.py; git add d; git cat-file tree $(git write-tree --prefix=d/) > \"$ROOT/tree\"
         echo 'os.system(x)' > d/a.py; git add d; store tree $(git write-tree --prefix=d/) \"$ROOT/tree\"; git rm -rq --cached d",
    ] {
        for place in [&[][..], &["--isolate"]] {
            let garden = Garden::planned("tasks.md", "- [ ] T1 a\n", "");
            fs::write(garden.root().join("harmless"), "harmless\n").unwrap();
            works(&garden, &format!("[ -e \"$ROOT/once\" ] && {{ echo more > b.txt; exit; }}; touch \"$ROOT/once\"\n{FALSE_OBJECT}\n{deed}"));
            garden.arborist(["gardener", "--max-retries", "2"].iter().chain(place)).exits(1);
            assert!(reviewed(&garden).contains("+os.system(x)"), "{deed}: {}", reviewed(&garden));
            let log = garden.git(["log", "--all", "--format=%s%n%b"]).answer();
            assert!(log.contains("@T1@implement-fail)") && log.contains("under the id"), "{deed}: {log}");
            garden.git(["fsck", "--no-dangling"]).succeeds();
        }
    }
}

#[test]
fn content_that_is_replaced_again_in_every_attempt_is_never_approved() {
    let garden = Garden::planned("tasks.md", "- [ ] T1 a\n", "");
    fs::write(garden.root().join("harmless"), "harmless\n").unwrap();
    let deed = "echo 'os.system(x)' > a.py; store blob $(git hash-object a.py) \"$ROOT/harmless\"";
    works(&garden, &format!("{FALSE_OBJECT}\n{deed}; echo $n > $n.txt"));
    garden.arborist(["gardener", "--max-retries", "3"]).exits(1);
    assert_eq!(state(&garden), "failed");
    let log = garden.git(["log", "--format=%s"]).answer();
    assert_eq!(log.matches("@T1@implement-fail)").count(), 3, "{log}");
}
