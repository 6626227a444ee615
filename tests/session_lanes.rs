//! Going back to a turn that was made in a lane.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod turning;

use arborist_testkit::Garden;
use serde_json::Value;

const WORK: &str = r#"
opens
calls 1 "I add a file"; echo "$n" > "$ARBORIST_TASK-a"; answers 1
calls 2 "I add another"; echo "$n" > "$ARBORIST_TASK-b"; answers 2
ends "done"
"#;

#[test]
fn a_turn_of_a_lane_comes_back_and_what_is_not_in_its_tree_begins_anew() {
    let garden = Garden::sprout();
    garden.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    garden.commit("a plan\n");
    turning::agent(&garden, "claude", WORK);
    garden.arborist(["gardener", "--jobs", "2"]).succeeds();
    let json = |args: &[&str]| -> Value { serde_json::from_str(&garden.arborist(args).answer()).unwrap() };
    let id = json(&["session", "list", "--json"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    let turns = json(&["session", "turns", &id, "--json"]);
    let first = turns["turns"].as_array().unwrap().iter().find(|turn| turn["node"] == "T001").unwrap();
    let (number, commit) = (first["number"].to_string(), first["commit"].as_str().unwrap());
    let before = garden.git(["rev-parse", "main"]).answer();
    let said = garden.arborist(["session", "resume", &id, "--turn", &number]).succeeds();
    said.err(&format!("the tree of turn {number} is back; begun anew: T001, T002"));
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
