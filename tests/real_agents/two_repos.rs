//! Claude Code through a plan over two repositories of a workspace: it is given the tools of both by itself.

use std::{fs, path::Path};

use serde_json::json;

use crate::{
    Scene,
    model::{Act, Model},
    program::CLAUDE,
};

/// The first task works in both, the second in the other alone.
const PLAN: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Add it to both", "repo": ["repo", "backend"]},
    "T002": {"id": "T002", "name": "Add it there too", "repo": ["backend", "repo"], "depends_on": ["T001"]}
  },
  "root_ids": ["T001", "T002"]
}
"#;

/// A repository beside the one that has the plan, with one commit, and in the workspace.
fn build_backend(scene: &Scene, dir: &Path) {
    let repo = &scene.repo;
    fs::create_dir(dir).unwrap();
    repo.git_in(dir, ["init", "-q", "-b", "main"]).succeeds();
    repo.git_in(dir, ["commit", "-q", "--allow-empty", "-m", "begin"]).succeeds();
    let key = "arborist.workspace.repos.backend.path";
    repo.git(["config", "--global", key, "../backend"]).succeeds();
    let key = "arborist.workspace.repos.backend.tools.count";
    repo.git(["config", "--global", key, "ls src | wc -l"]).succeeds();
}

#[test]
fn claude_finishes_a_plan_in_two_repositories() {
    let tool = |tool, input| Act::Tool { tool, input };
    let acts = vec![
        tool("repo__write_file", json!({ "path": "TASK.txt", "content": "TASK\n" })),
        tool("backend__write_file", json!({ "path": "src/TASK.rs", "content": "// TASK\n" })),
        tool("backend__read_file", json!({ "path": "../../repo/task-tree.json" })),
        tool("backend__count", json!({})),
    ];
    let Some(scene) = Scene::with(CLAUDE, Model::acting(acts)) else {
        return;
    };
    let repo = &scene.repo;
    repo.write("task-tree.json", PLAN);
    repo.commit("another plan\n");
    let backend = repo.root().join("backend");
    build_backend(&scene, &backend);
    scene.gardener().succeeds().out("2 completed (T001, T002)");
    let branches =
        repo.git_in(&backend, ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist"]);
    let branch = branches.answer();
    for (n, task) in ["T001", "T002"].iter().enumerate() {
        assert_eq!(repo.git(["show", &format!("{branch}:{task}.txt")]).answer(), *task);
        let file = format!("{branch}:src/{task}.rs");
        assert_eq!(repo.git_in(&backend, ["show", &file]).answer(), format!("// {task}"));
        let heard = scene.model.conversations_about(task);
        assert!(
            heard.contains("leads out of the repository"),
            "one repository does not lead to another: {heard}"
        );
        assert!(heard.contains(&format!("{}\n", n + 1)) && heard.contains("succeeded"), "{heard}");
    }
    let subjects = repo.git_in(&backend, ["log", "--format=%s", &branch]).answer();
    assert!(subjects.contains("@T001@turn") && subjects.contains("@T002@implement-pass"), "{subjects}");
    assert_eq!(repo.git_in(&backend, ["status", "--porcelain"]).answer(), "", "the checkout is the user's");
    repo.arborist(["state", "--exit-code"]).succeeds();
}
