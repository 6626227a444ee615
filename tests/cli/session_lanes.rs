//! Going back to a turn that was made in a lane.

use std::fs;

use crate::session_repo::json;
use arborist_testkit::TestRepo;

const WORK: &str = r#"
opens
calls 1 "I add a file"; echo "$n" > "$ARBORIST_TASK-a"; answers 1
calls 2 "I add another"; echo "$n" > "$ARBORIST_TASK-b"; answers 2
ends "done"
"#;

/// Waits until what landed stands in the records too.
const LANDED: &str = r#"
landed() { tries=0; while [ -z "$(git log --format=%s --glob=refs/arborist/sessions --grep='checkpoint: merge')" ] && [ $tries -lt 6000 ]; do sleep 0.02; tries=$((tries+1)); done; }
case "$prompt" in
  "Review"*) echo APPROVED; exit ;;
esac
"#;

/// Two tasks at once: the second does this once the first has landed.
fn repo_with_one_landing(second: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.commit("a plan\n");
    work_after(&repo, second);
    repo
}

fn work_after(repo: &TestRepo, second: &str) {
    repo.agent(&format!(
        "{LANDED}\n[ $ARBORIST_TASK = T001 ] || {{ {second}; }}\necho $n > $ARBORIST_TASK.txt\necho done"
    ));
}

fn only_session(repo: &TestRepo) -> String {
    let list = json(repo, &["session", "list", "--json"]);
    list["sessions"][0]["id"].as_str().unwrap().to_owned()
}

fn first_turn(repo: &TestRepo, id: &str, node: &str) -> String {
    let turns = json(repo, &["session", "turns", id, "--json"]);
    let turns = turns["turns"].as_array().unwrap();
    turns.iter().find(|turn| turn["node"] == node).unwrap()["number"].to_string()
}

/// Two tasks that were worked on at once, and their session.
fn worked() -> (TestRepo, String) {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 [P] one\n- [ ] T002 [P] two\n");
    repo.commit("a plan\n");
    crate::turn_scripts::agent(&repo, "claude", WORK);
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let id = only_session(&repo);
    (repo, id)
}

#[test]
fn going_back_to_a_turn_of_a_lane_resets_tasks_that_are_not_in_its_tree() {
    let (repo, id) = worked();
    let turns = json(&repo, &["session", "turns", &id, "--json"]);
    let (number, commit) = ("1", turns["turns"][0]["commit"].as_str().unwrap());
    let node = turns["turns"][0]["node"].as_str().unwrap();
    let other = if node == "T001" { "T002" } else { "T001" };
    let before = repo.git(["rev-parse", "main"]).answer();
    let said = repo.arborist(["session", "resume", &id, "--turn", number]).succeeds();
    said.err("restored the files as they were after turn 1")
        .err(&format!("{node} implementing"))
        .err(&format!("{other} pending"));
    let tree = |commit: &str| repo.git(["rev-parse", &format!("{commit}^{{tree}}")]).answer();
    let reset = repo.git(["log", "-1", "--format=%H", &format!("--grep=@{node}@reset)")]).answer();
    assert_eq!(tree(&reset), tree(commit));
    repo.git(["merge-base", "--is-ancestor", &before, "main"]).succeeds();
    for file in ["T001-a", "T001-b", "T002-a", "T002-b"] {
        assert!(repo.path(file).exists(), "{file}");
    }
    repo.arborist(["state", "--exit-code"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn an_offline_replay_of_a_session_in_lanes_uses_lanes() {
    let (repo, id) = worked();
    fs::remove_file(repo.root().join("agent.sh")).unwrap();
    let said = repo.arborist(["session", "replay", &id, "--turn", "0", "--offline"]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    for file in ["T001-a", "T001-b", "T002-a", "T002-b"] {
        let content = |of: &str| repo.git(["show", &format!("{of}:{file}")]).answer();
        assert_eq!(content(&branch), content("main"));
    }
    let merges = |of: &str| repo.git(["log", "--format=%s", "--merges", of]).answer().lines().count();
    assert_eq!(merges(&format!("main..{branch}")), merges("main"));
}

#[test]
fn a_clone_with_only_the_records_resumes_with_all_landed_tasks() {
    let repo = repo_with_one_landing("landed; kill -9 $PPID; sleep 60");
    repo.arborist(["gardener", "--session-branch", "--jobs", "2"]).exits(137);
    let id = only_session(&repo);
    let branch = format!("arborist/tasks/{id}");
    let (tip, calls) = (repo.git(["rev-parse", &branch]).answer(), repo.calls());
    work_after(&repo, ":");
    let clone = repo.root().join("clone");
    repo.git_in(repo.root(), ["clone", "-q", "--single-branch", "repo", "clone"]).succeeds();
    repo.git_in(&clone, ["fetch", "-q", "origin", "refs/arborist/*:refs/arborist/*"]).succeeds();
    repo.git_in(&clone, ["remote", "remove", "origin"]).succeeds();
    let said = repo.arborist_in(&clone, ["session", "resume", &id]).succeeds();
    said.err(&format!("created '{branch}' again at {}", &tip[..10])).out("1 completed (T002)");
    assert_eq!(repo.calls(), calls + 2, "what had landed is not done again");
    repo.git_in(&clone, ["merge-base", "--is-ancestor", &tip, &branch]).succeeds();
}

#[test]
fn going_back_to_a_turn_of_one_lane_keeps_tasks_that_had_landed_before() {
    let repo = repo_with_one_landing("landed");
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let id = only_session(&repo);
    let turn = first_turn(&repo, &id, "T002");
    let (work, calls) = (repo.read("T001.txt"), repo.calls());
    let before = repo.git(["rev-parse", "main"]).answer();
    let said = repo.arborist(["session", "replay", &id, "--turn", &turn]).succeeds();
    let branch = format!("arborist/tasks/{}", said.stdout().lines().next().unwrap());
    assert_eq!(repo.calls(), calls + 1, "only the review of T002 is done again");
    for file in ["T001.txt", "T002.txt"] {
        assert_eq!(repo.git(["show", &format!("{branch}:{file}")]).answer(), repo.read(file).trim_end());
    }
    let said = repo.arborist(["session", "resume", &id, "--turn", &turn]).succeeds();
    said.err("states of the tasks: T002 implementing\n").out("1 completed (T002)");
    assert_eq!((repo.read("T001.txt"), repo.calls()), (work, calls + 2));
    repo.arborist(["state", "--exit-code"]).succeeds();
    repo.arborist(["trailers", "check", &format!("{before}..main")]).succeeds();
}

#[test]
fn going_back_to_a_turn_that_conflicts_with_landed_tasks_is_refused() {
    let repo = repo_with_one_landing("landed");
    repo.agent(&format!(
        "{LANDED}\n[ $ARBORIST_TASK = T001 ] || landed\necho $ARBORIST_TASK > same.txt\necho done"
    ));
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let id = only_session(&repo);
    let turn = first_turn(&repo, &id, "T002");
    let (before, calls) = (repo.git(["rev-parse", "main"]).answer(), repo.calls());
    for verb in ["resume", "replay"] {
        let refused = repo.arborist(["session", verb, &id, "--turn", &turn]).exits(2);
        refused
            .err("conflicts with the tasks that had landed by then, in same.txt")
            .err("git arborist session turns");
    }
    assert_eq!((repo.git(["rev-parse", "main"]).answer(), repo.calls()), (before, calls));
}
