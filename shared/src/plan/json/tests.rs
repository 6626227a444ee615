//! The tree file, as its readers meet it.

use crate::{
    name::TaskId,
    plan::{Mark, Plan, TestKind, TreeDocument},
};

fn ids<'a>(ids: impl IntoIterator<Item = &'a TaskId>) -> Vec<&'a str> {
    ids.into_iter().map(TaskId::as_str).collect()
}

fn complaint(json: &str) -> String {
    Plan::read("tree.json", json.as_bytes()).unwrap_err().to_string()
}

const TREE: &str = r#"{
  "nodes": {
    "T003": {"name": "third", "parent": "phase2", "children": [], "depends_on": ["T001"]},
    "phase1": {"id": "phase1", "name": "Setup", "parent": null, "children": ["T002", "T001"]},
    "T001": {"name": "first", "parent": "phase1", "description": "do it", "source_file": "a.md", "source_line": 7},
    "T002": {"name": "second", "parent": "phase1", "depends_on": ["T001"], "skipped": true, "colour": "red",
             "test_commands": [{"type": "e2e", "command": "make e2e", "timeout": 60, "shell": "sh"}]},
    "phase2": {"name": "Core", "children": ["T003"], "depends_on": ["phase1"]}
  },
  "root_ids": ["phase1", "phase2"],
  "execution_order": ["T001", "T002", "T003"],
  "spec_files": ["a.md"],
  "spec_id": "001"
}"#;

#[test]
fn a_json_plan_is_read_in_the_order_of_its_roots_and_children() {
    let plan = Plan::read("tree.json", TREE.as_bytes()).unwrap();
    assert_eq!(ids(plan.tasks.iter().map(|task| &task.id)), ["phase1", "T002", "T001", "phase2", "T003"]);
    assert_eq!(ids(plan.roots().map(|task| &task.id)), ["phase1", "phase2"]);
    assert_eq!(ids(plan.order().iter().map(|task| &task.id)), ["T001", "T002", "T003"]);
    assert_eq!(plan.spec_files, ["a.md"]);
    assert_eq!(plan.extra["spec_id"], "001");

    let second = plan.find(&"T002".parse().unwrap()).unwrap();
    assert_eq!((second.mark, &second.extra["colour"]), (Mark::Skipped, &"red".into()));
    assert_eq!(second.test_commands[0].kind, TestKind::E2e);
    assert_eq!(second.test_commands[0].timeout, Some(60));
    let first = plan.find(&"T001".parse().unwrap()).unwrap();
    assert_eq!(first.source.as_ref().map(|source| (source.file.as_str(), source.line)), Some(("a.md", 7)));
}

#[test]
fn a_json_dependency_on_a_phase_means_all_its_tasks_and_is_inherited() {
    let plan = Plan::read("tree.json", TREE.as_bytes()).unwrap();
    assert_eq!(ids(&plan.readiness(|_| false).leaves_waited_for(&"T003".parse().unwrap())), ["T002", "T001"]);
    assert_eq!(ids(&plan.readiness(|_| false).leaves_waited_for(&"T001".parse().unwrap())), [""; 0]);
}

#[test]
fn parents_and_children_may_be_given_on_one_side_only() {
    for json in [
        r#"{"nodes": {"p": {}, "a": {"parent": "p"}, "b": {"parent": "p"}}}"#,
        r#"{"nodes": {"p": {"children": ["a", "b"]}, "a": {}, "b": {}}}"#,
    ] {
        let plan = Plan::read("tree.json", json.as_bytes()).unwrap();
        assert_eq!(ids(&plan.tasks[0].children), ["a", "b"], "{json}");
    }
}

#[test]
fn every_contradiction_names_file_line_and_ids() {
    for (json, wanted) in [
        (
            "{\"nodes\": {\n\"a\": {\"depends_on\": [\"b\"]}}}",
            "tree.json:2:22: 'a' depends on 'b', which is not in the plan",
        ),
        ("{\"nodes\": {\"a\": {},\n\"a\": {}}}", "tree.json:2:1: the id 'a' is already used on line 1"),
        (
            "{\"nodes\": {\"a\": {},\n\"A\": {}}}",
            "tree.json:2:1: the id 'A' differs only in case from 'a' at tree.json:1",
        ),
        (
            "{\"nodes\": {\"a\": {\"depends_on\": [\"b\"]},\n\"b\": {\"depends_on\": [\"a\"]}}}",
            "tree.json:1:33: tasks wait for each other: a (tree.json:1) → b (tree.json:2) → a (tree.json:1)",
        ),
        (
            "{\"nodes\": {\"p\": {\"children\": []},\n\"a\": {\"parent\": \"p\"}}}",
            "tree.json:2:17: 'a' has the parent 'p', which does not list it as a child",
        ),
        (
            "{\"nodes\": {\"p\": {\"children\": [\"a\"]}, \"q\": {},\n\"a\": {\"parent\": \"q\"}}}",
            "tree.json:1:31: 'p' lists the child 'a', whose parent is 'q'",
        ),
        ("{\"nodes\": {\"a\": {\"parent\": \"a\"}}}", "tree.json:1:12: 'a' is its own ancestor"),
        ("{\"nodes\": {\"a\": {}}, \"root_ids\": []}", "1:12: 'a' has no parent and is not in 'root_ids'"),
        ("{\"nodes\": {\"a\": {}}, \"root_ids\": [\"b\"]}", "'root_ids' names 'b', which is not in the plan"),
        ("{\"nodes\": {\"a\": {\"id\": \"b\"}}}", "1:24: the node 'a' says that its id is 'b'"),
        ("{\"nodes\": {\"a b\": {}}}", "1:12: 'a b' is not a valid task id"),
        ("{\"nodes\": {\"a\": {\"name\": 1}}}", "1:26: 'name' of a must be a string"),
        ("{\"nodes\": {\"a\": {\"name\": \"x\", \"name\": \"y\"}}}", "the key 'name' is already on line 1"),
        ("{}", "1:1: the plan has no 'nodes'"),
        ("[]", "1:1: the plan must be a JSON object"),
        ("{\"nodes\": {},}", "1:13: this is not valid JSON: trailing commas are not allowed"),
        ("", "1:1: the file is empty"),
    ] {
        let said = complaint(json);
        assert!(said.contains(wanted), "{json}\n{said}");
    }
}

#[test]
fn all_problems_are_reported_at_once_in_file_order() {
    let said = complaint("{\"nodes\": {\n\"a\": {\"name\": 1},\n\"b\": {\"parent\": \"c\"}}}");
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(said.starts_with("tree.json:2:"), "{said}");
}

#[test]
fn a_skipped_phase_skips_all_its_tasks() {
    let plan =
        Plan::read("t", br#"{"nodes": {"p": {"skipped": true, "children": ["a"]}, "a": {}}}"#).unwrap();
    assert_eq!(plan.find(&"a".parse().unwrap()).unwrap().mark, Mark::Skipped);
}

#[test]
fn a_deep_tree_and_deep_nesting_do_not_overflow_the_stack() {
    let nodes: Vec<String> =
        (0..50_000).map(|at| format!("\"n{at}\": {{\"children\": [\"n{}\"]}}", at + 1)).collect();
    let json = format!("{{\"nodes\": {{{}, \"n50000\": {{}}}}}}", nodes.join(","));
    assert_eq!(Plan::read("t", json.as_bytes()).unwrap().order().len(), 1);
    assert!(Plan::read("t", "[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn unknown_keys_survive_a_rewrite_and_nothing_else_changes() {
    let plan = Plan::read("tree.json", TREE.as_bytes()).unwrap();
    let written = serde_json::to_string_pretty(&TreeDocument::from(&plan)).unwrap();
    let again = Plan::read("tree.json", written.as_bytes()).unwrap();
    assert_eq!(again.tasks, plan.tasks);
    assert_eq!((&again.extra, &again.spec_files), (&plan.extra, &plan.spec_files));
    assert!(written.contains("\"colour\": \"red\"") && written.contains("\"shell\": \"sh\""));
}

#[test]
fn every_mark_survives_a_rewrite() {
    let text = "- [ ] T1 a\n- [x] T2 b\n- [-] T3 c\n- [~] T4 d\n- [!] T5 e\n";
    let plan = Plan::read("tasks.md", text.as_bytes()).unwrap();
    let written = serde_json::to_vec(&TreeDocument::from(&plan)).unwrap();
    let marks: Vec<Mark> =
        Plan::read("tree.json", &written).unwrap().tasks.iter().map(|task| task.mark).collect();
    assert_eq!(marks, Mark::ALL);
}

#[test]
fn task_master_plans_are_read_with_their_subtasks() {
    for json in [
        r#"{"tasks": [{"id": 1, "title": "a", "status": "done", "priority": "high", "subtasks": [
            {"id": 1, "title": "b"}, {"id": 2, "title": "c", "dependencies": [1]}]},
            {"id": 2, "title": "d", "dependencies": [1], "details": "how"}]}"#,
        r#"{"other": {"tasks": []}, "master": {"tasks": [{"id": "1", "title": "a", "subtasks": [
            {"id": 1, "title": "b"}, {"id": 2, "title": "c", "dependencies": ["1.1"]}]},
            {"id": 2, "title": "d", "dependencies": ["1"]}], "metadata": {}}}"#,
    ] {
        let plan = Plan::read("tasks.json", json.as_bytes()).unwrap();
        assert_eq!(ids(plan.tasks.iter().map(|task| &task.id)), ["1", "1.1", "1.2", "2"]);
        assert_eq!(ids(&plan.readiness(|_| false).leaves_waited_for(&"2".parse().unwrap())), ["1.1", "1.2"]);
        assert_eq!(ids(&plan.readiness(|_| false).leaves_waited_for(&"1.2".parse().unwrap())), ["1.1"]);
    }
    assert!(complaint(r#"{"tasks": [{"title": "a"}]}"#).contains("1:12: a task has no 'id'"));
}

#[test]
fn a_json_task_can_name_one_or_several_repositories() {
    let text = r#"{"nodes": {"A": {"id": "A", "name": "a", "repo": "backend"},
        "B": {"id": "B", "name": "b", "repo": ["web", "backend"]}}, "root_ids": ["A", "B"]}"#;
    let plan = crate::plan::Plan::read("t.json", text.as_bytes()).unwrap();
    let repos =
        |plan: &crate::plan::Plan| plan.tasks.iter().map(|task| task.repos.clone()).collect::<Vec<_>>();
    assert_eq!(repos(&plan), [vec!["backend"], vec!["web", "backend"]]);
    let written = serde_json::to_string(&crate::plan::TreeDocument::from(&plan)).unwrap();
    assert_eq!(repos(&crate::plan::Plan::read("t.json", written.as_bytes()).unwrap()), repos(&plan));
    assert!(written.contains(r#""repo":"backend""#));
}

#[test]
fn the_red_mark_of_a_task_is_read_and_survives_a_rewrite() {
    let json = r#"{ "nodes": { "T1": { "id": "T1", "name": "a", "red": true }, "T2": { "id": "T2", "name": "b" } },
        "root_ids": ["T1", "T2"] }"#;
    let plan = Plan::read("tree.json", json.as_bytes()).unwrap();
    let written = serde_json::to_vec(&TreeDocument::from(&plan)).unwrap();
    let again = Plan::read("tree.json", &written).unwrap();
    for plan in [&plan, &again] {
        assert_eq!(plan.tasks.iter().map(|task| task.red).collect::<Vec<_>>(), [true, false]);
    }
}
