//! A commit for each turn of an agent that changed something.

use std::fs;

use crate::turning::{garden, subjects, turns};
use arborist_testkit::Garden;

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
fn every_turn_that_changed_something_is_a_commit_of_the_agents() {
    let garden = garden("claude", THREE_TURNS);
    let said = garden.arborist(["gardener"]).succeeds();
    said.shows();
    let session = garden.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)"]).answer();
    let session = session.trim();
    assert_eq!(
        turns(&garden),
        [
            "task(main@T001@turn): Add the first file",
            "task(main@T001@turn): Update one.txt and two.txt",
            "task(main@T001@turn): Update 3 files",
        ]
    );
    let commits = garden.git(["log", "--reverse", "--format=%H", "--grep=@turn)"]).answer();
    let commits: Vec<&str> = commits.lines().collect();
    let changed =
        |commit: &str| garden.git(["show", "--format=", "--name-status", "--no-renames", commit]).answer();
    assert_eq!(changed(commits[0]), "A\tone.txt");
    assert_eq!(changed(commits[1]), "M\tone.txt\nA\ttwo.txt");
    assert_eq!(changed(commits[2]), "A\tdeep/zwei.txt\nD\tone.txt\nD\ttwo.txt");
    let who = garden.git(["show", "-s", "--format=%an <%ae>|%cn", commits[0]]).answer();
    assert_eq!(who, "T001 (claude-sonnet-5) <arborist@local>|Ada");
    let trailers = garden.git(["show", "-s", "--format=%(trailers:only,unfold)", commits[1]]).answer();
    let expected = format!(
        "Arborist-Step: implement\nArborist-Retry: 0\nArborist-Model: claude-sonnet-5\nArborist-Provider: anthropic\n\
         Arborist-Node: T001\nArborist-Pipeline: tasks\nArborist-Session: {session}\nArborist-Turn: 2"
    );
    assert_eq!(trailers.trim(), expected);
    let message = garden.git(["show", "-s", "--format=%B", commits[0]]).answer();
    assert!(message.contains("> I'll add the first file. It is short."), "{message}");
    let status = fs::read_to_string(garden.root().join("status")).unwrap();
    assert_eq!(status, "", "the agent's own git finds its first turn committed");
    garden.arborist(["trailers", "check", "main"]).succeeds().shows();
    garden.arborist(["state", "T001"]).succeeds().shows();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
    let implemented = garden.git(["rev-parse", "main^{/T001@implement-pass}^{tree}"]).answer();
    assert_eq!(implemented, garden.git(["rev-parse", &format!("{}^{{tree}}", commits[2])]).answer());
}

#[test]
fn what_was_changed_or_staged_before_stays_out_of_every_turn() {
    let garden = garden("claude", THREE_TURNS);
    garden.write("mine.txt", "tracked\n");
    garden.commit("mine\n");
    garden.write("mine.txt", "changed\n");
    garden.write("staged.txt", "staged\n");
    garden.git(["add", "staged.txt"]).succeeds();
    garden.write("loose.txt", "loose\n");
    let before = garden.git(["status", "--porcelain"]).answer();
    garden.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(turns(&garden).len(), 3);
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), before);
    let touched = garden.git(["log", "--format=", "--name-only", "main", "--grep=main@T001"]).answer();
    assert!(
        !touched.contains("mine.txt") && !touched.contains("staged.txt") && !touched.contains("loose"),
        "{touched}"
    );
}

#[test]
fn commits_of_the_agents_own_are_folded_into_its_turns() {
    let garden = garden(
        "claude",
        r#"
opens
calls 1 "I'll add one"; echo one > one.txt; git add -A; git commit -qm "my own"; answers 1
calls 2 "I'll add two"; echo two > two.txt; git add -A; git commit -q --amend -m "my own too"; answers 2
ends "done"
"#,
    );
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(turns(&garden), ["task(main@T001@turn): Add one", "task(main@T001@turn): Add two"]);
    assert!(!subjects(&garden).iter().any(|subject| subject.contains("my own")));
    let saved = garden.git(["log", "--format=%s", "--glob=refs/arborist/saved"]).answer();
    assert!(saved.contains("my own\n") || saved.contains("my own too"), "{saved}");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn the_hook_sees_what_all_turns_changed_and_a_refusal_leaves_them() {
    let garden = garden("claude", THREE_TURNS);
    let hook = "#!/bin/sh\ngit diff --cached --name-status --no-renames >&2\n! git diff --cached --name-only | grep -q zwei\n";
    garden.write_script(".git/hooks/pre-commit", hook);
    garden.arborist(["gardener", "--max-retries", "1"]).exits(1);
    assert_eq!(turns(&garden).len(), 3);
    let said = garden.git(["log", "-1", "--format=%B", "--grep=T001@implement-fail"]).answer();
    assert!(said.contains("> A    deep/zwei.txt") && !said.contains("one.txt"), "{said}");
    assert_eq!(garden.git(["worktree", "list"]).answer().lines().count(), 1);
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn numbers_of_turns_are_not_used_twice_by_attempts_or_lanes_or_later_runs() {
    let script = r#"
opens
calls 1 "I'll add a file"; echo "$ARBORIST_TASK" >> "$ARBORIST_TASK.txt"; answers 1
calls 2 "I'll write again"; echo again >> "$ARBORIST_TASK.txt"; answers 2
ends "done"
"#;
    let garden = Garden::sprout();
    garden.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n- [ ] T003 three\n");
    garden.commit("a plan\n");
    crate::turning::agent(&garden, "claude", script);
    let reject = "prompt=$(cat)\ncase \"$prompt\" in *T001*) if [ ! -e \"$HOME/seen\" ]; then touch \"$HOME/seen\"; echo 'REJECTED: no'; exit; fi;; esac\necho APPROVED\n";
    crate::turning::judge(&garden, reject);
    garden.arborist(["gardener", "--jobs", "2", "--only", "T001", "--only", "T002"]).succeeds();
    garden.arborist(["gardener"]).succeeds();
    let numbers =
        garden.git(["log", "--format=%(trailers:key=Arborist-Turn,valueonly)", "--grep=@turn)"]).answer();
    let mut numbers: Vec<u32> = numbers.split_whitespace().map(|number| number.parse().unwrap()).collect();
    numbers.sort_unstable();
    let unique = numbers.windows(2).all(|pair| pair[0] != pair[1]);
    assert!(unique && numbers.len() == 8, "{numbers:?}");
    assert_eq!(garden.read("T001.txt"), "T001\nagain\nT001\nagain\n");
    garden.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_reviewer_sees_the_turns_and_makes_none() {
    let garden = garden("claude", THREE_TURNS);
    crate::turning::judge(&garden, "cat > \"$HOME/asked\"\necho APPROVED\n");
    garden.arborist(["gardener"]).succeeds();
    let asked = fs::read_to_string(garden.home().join("asked")).unwrap();
    assert!(asked.contains("deep/zwei.txt") && asked.contains("+two"), "{asked}");
}

#[test]
fn an_agent_that_tells_of_no_turns_has_one_commit_for_its_step() {
    let garden = garden("text", "echo one > one.txt\necho done\n");
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(turns(&garden).len(), 0);
    let changed = garden.git(["show", "--format=", "--name-only", "main^{/T001@implement-pass}"]).answer();
    assert_eq!(changed, "one.txt");
}
