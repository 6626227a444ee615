//! Going back to a turn that was made in a lane.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod turning;

use std::fs;

use arborist_testkit::Garden;
use serde_json::Value;

const WORK: &str = r#"
opens
calls 1 "I add a file"; echo "$n" > "$ARBORIST_TASK-a"; answers 1
calls 2 "I add another"; echo "$n" > "$ARBORIST_TASK-b"; answers 2
ends "done"
"#;

fn json(garden: &Garden, args: &[&str]) -> Value {
    serde_json::from_str(&garden.arborist(args).answer()).unwrap()
}

/// Two tasks that were worked on at once, and their session.
fn worked() -> (Garden, String) {
    let garden = Garden::sprout();
    garden.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    garden.commit("a plan\n");
    turning::agent(&garden, "claude", WORK);
    garden.arborist(["gardener", "--jobs", "2"]).succeeds();
    let list = json(&garden, &["session", "list", "--json"]);
    let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
    (garden, id)
}

#[test]
fn a_turn_of_a_lane_comes_back_and_what_is_not_in_its_tree_begins_anew() {
    let (garden, id) = worked();
    let turns = json(&garden, &["session", "turns", &id, "--json"]);
    let first = turns["turns"].as_array().unwrap().iter().find(|turn| turn["node"] == "T001").unwrap();
    let (number, commit) = (first["number"].to_string(), first["commit"].as_str().unwrap());
    let before = garden.git(["rev-parse", "main"]).answer();
    let said = garden.arborist(["session", "resume", &id, "--turn", &number]).succeeds();
    said.err(&format!("the tree of turn {number} is back")).err("T001 implementing").err("T002 pending");
    let tree = |commit: &str| garden.git(["rev-parse", &format!("{commit}^{{tree}}")]).answer();
    let reset = garden.git(["log", "-1", "--format=%H", "--grep=@T001@reset)"]).answer();
    assert_eq!(tree(&reset), tree(commit));
    garden.git(["merge-base", "--is-ancestor", &before, "main"]).succeeds();
    for file in ["T001-a", "T001-b", "T002-a", "T002-b"] {
        assert!(garden.path(file).exists(), "{file}");
    }
    garden.arborist(["state", "--exit-code"]).succeeds();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn what_was_done_in_lanes_is_played_again_in_lanes() {
    let (garden, id) = worked();
    fs::remove_file(garden.root().join("agent.sh")).unwrap();
    let said = garden.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    for file in ["T001-a", "T001-b", "T002-a", "T002-b"] {
        let content = |of: &str| garden.git(["show", &format!("{of}:{file}")]).answer();
        assert_eq!(content(&branch), content("main"));
    }
    let merges = |of: &str| garden.git(["log", "--format=%s", "--merges", of]).answer().lines().count();
    assert_eq!(merges(&format!("main..{branch}")), merges("main"));
}
