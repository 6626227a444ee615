//! `git arborist plan --ai` through the command line, with scripted agents.

use arborist_testkit::{Run, TestRepo};
use serde_json::Value;

const SPEC: &str = "# Login\n\nUsers log in with a name and a password.\n";

/// A tree of two tasks, the second with a test.
const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Add users", "description": "a table", "children": [], "depends_on": [], "test_commands": []},
    "T002": {"id": "T002", "name": "Add the form", "description": "with a button", "children": [], "depends_on": ["T001"],
             "test_commands": [{"type": "unit", "command": "touch tested; cargo test form"}]}
  },
  "root_ids": ["T001", "T002"],
  "execution_order": ["T001", "T002"],
  "spec_files": ["elsewhere.md"]
}"#;

fn repo(script: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("spec.md", SPEC);
    repo.commit("a spec\n");
    std::fs::write(repo.root().join("tree.json"), TREE).unwrap();
    repo.agent(script);
    repo
}

/// An agent whose first replies have a dependency that leads nowhere.
fn wrong_at_first(times: usize) -> TestRepo {
    repo(&format!(
        "if [ $n -lt {times} ]; then sed 's/\\[\"T001\"\\],$/[\"T009\"],/' \"$ROOT/tree.json\"; else cat \"$ROOT/tree.json\"; fi"
    ))
}

#[test]
fn a_tree_file_made_by_an_agent_is_read_by_state() {
    let repo = repo("cat \"$ROOT/tree.json\"");
    repo.arborist(["plan", "--ai", "spec.md", "-o", "task-tree.json"])
        .succeeds()
        .silent()
        .err("robot for a plan, call 1 of at most 3")
        .err("wrote task-tree.json")
        .err("2 tasks: 2 to do; 2 waves (the tasks of a wave can run at the same time)")
        .never("warning");
    let tree: Value = serde_json::from_str(&repo.read("task-tree.json")).unwrap();
    assert_eq!(tree["spec_files"], serde_json::json!(["spec.md"]), "what was read, not what the reply says");
    assert_eq!(tree["nodes"]["T002"]["test_commands"][0]["command"], "touch tested; cargo test form");
    assert!(!repo.path("tested").exists(), "a command in a reply is only text");
    assert!(repo.prompt(0).contains("Users log in with a name") && repo.prompt(0).contains("\"$schema\""));
    assert_eq!(repo.calls(), 1);
    repo.arborist(["state", "--ready"]).succeeds().out("T001").never("T002");
}

#[test]
fn a_plan_made_by_an_agent_can_be_shown_in_all_formats() {
    let repo = repo("cat \"$ROOT/tree.json\"");
    repo.arborist(["plan", "--ai", "spec.md"]).succeeds().out("[ ] T002 Add the form  (waits for T001)");
    repo.arborist(["plan", "--ai", "spec.md", "--waves"]).succeeds().out("wave 2, 1 task\n  T002");
    repo.arborist(["plan", "--ai", "spec.md", "--format", "mermaid"]).succeeds().out("n0 --> n1");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "nothing is left lying about");
}

#[test]
fn errors_of_its_plan_are_returned_to_the_agent() {
    let repo = wrong_at_first(2);
    repo.arborist(["plan", "--ai", "spec.md", "-o", "tree.json"])
        .succeeds()
        .err("answer 1 is not a valid plan: reply:")
        .err("call 3 of at most 3")
        .err("wrote tree.json");
    assert_eq!(repo.calls(), 3);
    assert!(!repo.prompt(0).contains("T009"));
    for call in [1, 2] {
        let prompt = repo.prompt(call);
        assert!(prompt.contains("Users log in") && prompt.contains("cannot be used"), "{prompt}");
        assert!(prompt.contains("'T009'"), "the problem itself: {prompt}");
    }
}

#[test]
fn an_invalid_tree_of_an_agent_is_never_written() {
    let repo = wrong_at_first(3);
    repo.arborist(["plan", "--ai", "spec.md", "-o", "tree.json"])
        .exits(1)
        .silent()
        .err("error: 'robot' did not return a valid tree:\nreply:")
        .err("T009")
        .err("hint: read its output in ");
    assert_eq!(repo.calls(), 3);
    assert!(!repo.path("tree.json").exists());
}

#[test]
fn text_around_the_tree_is_ignored_and_text_without_a_tree_is_an_error() {
    let around =
        repo("echo 'Here {it} is:'; echo '```json'; cat \"$ROOT/tree.json\"; echo; echo '```'; echo 'Fine?'");
    around.arborist(["plan", "--ai", "spec.md"]).succeeds().out("T002 Add the form");
    let alone = repo("echo 'I would rather talk.'");
    alone.arborist(["plan", "--ai", "spec.md"]).exits(1).silent().err("there is no JSON object");
    let empty = repo("echo '{\"nodes\": {}, \"root_ids\": []}'");
    empty.arborist(["plan", "--ai", "spec.md"]).exits(1).silent();
}

#[test]
fn a_planning_agent_that_fails_is_not_called_again() {
    let repo = repo("cat \"$ROOT/tree.json\"; echo 'no credit left' >&2; exit 3");
    repo.arborist(["plan", "--ai", "spec.md", "-o", "tree.json"])
        .exits(1)
        .silent()
        .err("error: 'robot' did not make a plan: the agent exited with code 3: no credit left");
    assert_eq!(repo.calls(), 1);
    assert!(!repo.path("tree.json").exists());
}

#[test]
fn a_planning_agent_that_changes_the_checkout_causes_a_warning() {
    let repo = repo("echo hello > new.txt; git commit -q --allow-empty -m mine; cat \"$ROOT/tree.json\"");
    repo.arborist(["plan", "--ai", "spec.md"])
        .succeeds()
        .err("warning: the agent must not change files, but it changed: new.txt")
        .err("warning: the agent must not change anything, but it moved HEAD");
    assert_eq!(repo.read("new.txt"), "hello\n", "it is the user's to judge");
}

#[test]
fn uncommitted_files_that_the_agent_changes_are_kept_and_named() {
    let deed = "echo evil > spec.md; rm mine.txt; git config alias.x y; cat \"$ROOT/tree.json\"";
    let repo = repo(deed);
    repo.write("spec.md", "# Edited\n");
    repo.write("mine.txt", "untracked\n");
    repo.arborist(["plan", "--ai", "spec.md"])
        .exits(1)
        .err("warning: the agent must not change files, but it changed: mine.txt, spec.md")
        .err("undone (mine.txt) and other uncommitted files changed (spec.md); the versions from its start are kept in refs/")
        .err("hint: the plan of this agent is not used; see what the agent changed in your files with: git status")
        .never("everything was restored");
    let name = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/checkout"]).answer();
    let read = |path: &str| repo.git(["show", &format!("{name}:{path}")]).answer();
    assert_eq!(["spec.md", "mine.txt"].map(read), ["# Edited", "untracked"]);
}

#[test]
fn with_strict_warnings_are_returned_to_the_agent_too() {
    let source = r#""source_file": "spec.md", "source_line": 3, "files": ["a.rs"], "children"#;
    let repo = repo(&format!("sed 's/\"children/{source}/; s/\\[\"T001\"\\],$/[],/' \"$ROOT/tree.json\""));
    repo.arborist(["plan", "--ai", "spec.md"]).succeeds();
    repo.arborist(["plan", "--ai", "--strict", "spec.md"]).exits(1).err("spec.md:3:1: 'T001' and 'T002' may");
    assert_eq!(repo.calls(), 4);
    assert!(repo.prompt(3).contains("- spec.md:3:1: 'T001' and 'T002' may run at the same time, but"));
}

#[test]
fn a_signal_stops_the_planning_agent_and_nothing_is_written() {
    let repo = repo("touch \"$ROOT/begun\"; sleep 60; cat \"$ROOT/tree.json\"");
    let script = r#"
        git-arborist-plan --ai spec.md -o tree.json & plan=$!
        while [ ! -e "$1/begun" ]; do sleep 0.05; done
        kill -TERM $plan; wait $plan"#;
    let mut command = repo.command("sh", &repo.path(""));
    Run::of(command.args(["-c", script, "sh"]).arg(repo.root()), b"").exits(143).err("stopped");
    assert_eq!(repo.calls(), 1);
    assert!(!repo.path("tree.json").exists());
}

#[test]
fn the_planner_is_the_runner_of_the_step_plan() {
    let repo = repo("cat \"$ROOT/tree.json\"");
    let agent = repo.root().join("agent.sh").display().to_string();
    repo.git(["config", "arborist.runner", "gemini"]).succeeds();
    repo.write(
        ".arborist/config.toml",
        format!("[steps.plan]\nrunner = \"oracle\"\n[runners.oracle]\ncommand = [\"sh\", \"{agent}\"]\n"),
    );
    let ask = ["plan", "--ai", "spec.md"];
    repo.arborist(ask).exits(2).silent().err("runner oracle: sh ");
    assert_eq!(repo.calls(), 0, "a runner that the repository brings along is not called unseen");
    repo.arborist(["plan", "--ai", "--yes", "spec.md"]).succeeds().err("asking oracle for a plan");
    repo.arborist(ask).succeeds().err("asking oracle");
    repo.arborist(["plan", "--ai", "--runner", "robot", "spec.md"]).succeeds().err("asking robot");
    for name in ["shell", "demo"] {
        let error = format!("error: the runner '{name}' cannot make a plan");
        repo.arborist(["plan", "--ai", "--runner", name, "spec.md"]).exits(1).err(&error);
    }
    repo.arborist(["plan", "--ai", "--runner", "goose", "spec.md"])
        .exits(1)
        .err("'goose' is not installed")
        .err("hint: install it with: ");
    repo.arborist(["plan", "--model", "m", "spec.md"]).exits(129);
}

#[test]
fn changes_of_a_planning_agent_to_the_git_directory_are_undone_and_its_plan_is_not_used() {
    let repo =
        repo("echo '#' > .git/hooks/post-checkout; git config core.fsmonitor evil; cat \"$ROOT/tree.json\"");
    repo.arborist(["plan", "--ai", "spec.md", "-o", "task-tree.json"])
        .exits(1)
        .err("the agent changed what it must not change: ")
        .err("the hook post-checkout was added while an agent or a command ran")
        .err("config was changed while an agent or a command ran");
    assert!(!repo.path(".git/hooks/post-checkout").exists() && !repo.path("task-tree.json").exists());
    assert_eq!(repo.git(["config", "core.fsmonitor"]).code(), 1);
}
