//! A commit for each turn of an agent that changed something.

use std::fs;

use crate::turn_scripts::{repo, subjects, turns};
use arborist_testkit::TestRepo;

/// Writes, edits through a shell, deletes and renames; then says that it is done.
const THREE_TURNS: &str = r#"
opens
calls 1 "I'll add the first file. It is short."; echo one > one.txt; answers 1
git status --porcelain > "$ROOT/status"
calls 2 "Now let me see."; echo two > two.txt; echo more >> one.txt; answers 2
calls 3 ""; mkdir deep; mv two.txt deep/zwei.txt; rm one.txt; answers 3
ends "All is done."
"#;

#[test]
fn every_turn_with_changes_is_a_commit_with_the_agent_as_author() {
    let repo = repo("claude", THREE_TURNS);
    let said = repo.arborist(["gardener"]).succeeds();
    said.matches_snapshot();
    let session = repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)"]).answer();
    let session = session.trim();
    assert_eq!(
        turns(&repo),
        [
            "task(main@T001@turn): Add the first file",
            "task(main@T001@turn): Update one.txt and two.txt",
            "task(main@T001@turn): Update 3 files",
        ]
    );
    let commits = repo.git(["log", "--reverse", "--format=%H", "--grep=@turn)"]).answer();
    let commits: Vec<&str> = commits.lines().collect();
    let changed =
        |commit: &str| repo.git(["show", "--format=", "--name-status", "--no-renames", commit]).answer();
    assert_eq!(changed(commits[0]), "A\tone.txt");
    assert_eq!(changed(commits[1]), "M\tone.txt\nA\ttwo.txt");
    assert_eq!(changed(commits[2]), "A\tdeep/zwei.txt\nD\tone.txt\nD\ttwo.txt");
    let who = repo.git(["show", "-s", "--format=%an <%ae>|%cn", commits[0]]).answer();
    assert_eq!(who, "T001 (claude-sonnet-5) <arborist@local>|Ada");
    let trailers = repo.git(["show", "-s", "--format=%(trailers:only,unfold)", commits[1]]).answer();
    let expected = format!(
        "Arborist-Step: implement\nArborist-Retry: 0\nArborist-Model: claude-sonnet-5\nArborist-Provider: anthropic\n\
         Arborist-Node: T001\nArborist-Pipeline: tasks\nArborist-Session: {session}\nArborist-Turn: 2"
    );
    assert_eq!(trailers.trim(), expected);
    let message = repo.git(["show", "-s", "--format=%B", commits[0]]).answer();
    assert!(message.contains("> I'll add the first file. It is short."), "{message}");
    let status = fs::read_to_string(repo.root().join("status")).unwrap();
    assert_eq!(status, "", "the agent's own git finds its first turn committed");
    repo.arborist(["trailers", "check", "main"]).succeeds().matches_snapshot();
    repo.arborist(["state", "T001"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    let implemented = repo.git(["rev-parse", "main^{/T001@implement-pass}^{tree}"]).answer();
    assert_eq!(implemented, repo.git(["rev-parse", &format!("{}^{{tree}}", commits[2])]).answer());
}

#[test]
fn changes_made_or_staged_before_the_run_are_part_of_no_turn() {
    let repo = repo("claude", THREE_TURNS);
    repo.write("mine.txt", "tracked\n");
    repo.commit("mine\n");
    repo.write("mine.txt", "changed\n");
    repo.write("staged.txt", "staged\n");
    repo.git(["add", "staged.txt"]).succeeds();
    repo.write("loose.txt", "loose\n");
    let before = repo.git(["status", "--porcelain"]).answer();
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(turns(&repo).len(), 3);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), before);
    let touched = repo.git(["log", "--format=", "--name-only", "main", "--grep=main@T001"]).answer();
    assert!(
        !touched.contains("mine.txt") && !touched.contains("staged.txt") && !touched.contains("loose"),
        "{touched}"
    );
}

#[test]
fn commits_that_an_agent_makes_are_folded_into_its_turns() {
    let repo = repo(
        "claude",
        r#"
opens
calls 1 "I'll add one"; echo one > one.txt; git add -A; git commit -qm "my own"; answers 1
calls 2 "I'll add two"; echo two > two.txt; git add -A; git commit -q --amend -m "my own too"; answers 2
ends "done"
"#,
    );
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(turns(&repo), ["task(main@T001@turn): Add one", "task(main@T001@turn): Add two"]);
    assert!(!subjects(&repo).iter().any(|subject| subject.contains("my own")));
    let saved = repo.git(["log", "--format=%s", "--glob=refs/arborist/saved"]).answer();
    assert!(saved.contains("my own\n") || saved.contains("my own too"), "{saved}");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn the_hook_sees_the_changes_of_all_turns_and_a_rejection_keeps_the_turns() {
    let repo = repo("claude", THREE_TURNS);
    let hook = "#!/bin/sh\ngit diff --cached --name-status --no-renames >&2\n! git diff --cached --name-only | grep -q zwei\n";
    repo.write_script(".git/hooks/pre-commit", hook);
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    assert_eq!(turns(&repo).len(), 3);
    let said = repo.git(["log", "-1", "--format=%B", "--grep=T001@implement-fail"]).answer();
    assert!(said.contains("> A    deep/zwei.txt") && !said.contains("one.txt"), "{said}");
    assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 1);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn turn_numbers_are_unique_across_attempts_lanes_and_later_runs() {
    let script = r#"
opens
calls 1 "I'll add a file"; echo "$ARBORIST_TASK" >> "$ARBORIST_TASK.txt"; answers 1
calls 2 "I'll write again"; echo again >> "$ARBORIST_TASK.txt"; answers 2
ends "done"
"#;
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 three\n");
    repo.commit("a plan\n");
    crate::turn_scripts::agent(&repo, "claude", script);
    let reject = "prompt=$(cat)\ncase \"$prompt\" in *T001*) if [ ! -e \"$HOME/seen\" ]; then touch \"$HOME/seen\"; echo 'REJECTED: no'; exit; fi;; esac\necho APPROVED\n";
    crate::turn_scripts::judge(&repo, reject);
    repo.arborist(["gardener", "--jobs", "2", "--only", "T001", "--only", "T002"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let numbers =
        repo.git(["log", "--format=%(trailers:key=Arborist-Turn,valueonly)", "--grep=@turn)"]).answer();
    let mut numbers: Vec<u32> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.sort_unstable();
    let unique = numbers.windows(2).all(|pair| pair[0] != pair[1]);
    assert!(unique && numbers.len() == 8, "{numbers:?}");
    assert_eq!(repo.read("T001.txt"), "T001\nagain\nT001\nagain\n");
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_reviewer_sees_the_changes_of_all_turns_and_creates_no_turn_commit() {
    let repo = repo("claude", THREE_TURNS);
    crate::turn_scripts::judge(&repo, "cat > \"$HOME/asked\"\necho APPROVED\n");
    repo.arborist(["gardener"]).succeeds();
    let asked = fs::read_to_string(repo.home().join("asked")).unwrap();
    assert!(asked.contains("deep/zwei.txt") && asked.contains("+two"), "{asked}");
}

#[test]
fn an_agent_that_reports_no_turns_has_one_commit_for_its_step() {
    let repo = repo("text", "echo one > one.txt\necho done\n");
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(turns(&repo).len(), 0);
    let changed = repo.git(["show", "--format=", "--name-only", "main^{/T001@implement-pass}"]).answer();
    assert_eq!(changed, "one.txt");
}
