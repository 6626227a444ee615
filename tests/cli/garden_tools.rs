//! Agents are given tools: when, how, and with which commands.

use std::fs;

use arborist_testkit::TestRepo;
use serde_json::Value;

/// A runner of the user's own that takes a list of servers, notes it, and works.
fn repo(template: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 the only one\n");
    repo.commit("a plan\n");
    let root = repo.root().display().to_string();
    let script = repo.root().join("robot.sh");
    let text = format!(
        "cat > /dev/null; printf '%s' \"$1\" > '{root}/told'; test -f \"$1\" && cp \"$1\" '{root}/file'; \
         echo done >> done.txt; echo APPROVED\n"
    );
    fs::write(&script, text).unwrap();
    let config = format!(
        "runner = \"robot\"\ntest-command = \"true\"\n[runners.robot]\ncommand = [\"sh\", \"{}\", {template}]\n",
        script.display()
    );
    repo.write("../home/.config/git-arborist/config.toml", config);
    repo
}

fn told(repo: &TestRepo) -> String {
    repo.read("../told")
}

fn server(json: &str) -> Value {
    serde_json::from_str::<Value>(json).unwrap()["mcpServers"]["arborist"].clone()
}

#[test]
fn agents_get_tools_with_the_tools_option() {
    let repo = repo("\"{tools}\"");
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.tools.run-tests", "make test"]).succeeds();
    repo.git(["config", "arborist.session.branch", "false"]).succeeds();
    repo.arborist(["gardener", "--tools"]).succeeds();
    let server = server(&told(&repo));
    let program = server["command"].as_str().unwrap();
    assert!(program.ends_with("/git-arborist-tools") && fs::exists(program).unwrap(), "{program}");
    let top = repo.path("").canonicalize().unwrap().display().to_string();
    let args: Vec<&str> =
        server["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    // The last one who was told is the reviewer.
    let root = format!("app={}.arborist/review-1", top.trim_end_matches('/'));
    assert_eq!(args[0], "--root");
    assert_eq!(args[1].trim_end_matches('/'), root);
    assert_eq!(args[2..], ["--command", "app:run-tests=make test", "--timeout", "300"]);
    assert_eq!(server["env"]["ARBORIST_TASK"], "T001");
    assert_eq!(server["env"]["ARBORIST_REPO"], "app");
    assert_eq!(server["env"]["ARBORIST_BRANCH"], "main");
}

#[test]
fn agents_get_tools_only_if_configured() {
    let repo = repo("\"{tools}\"");
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(told(&repo), "");
}

#[test]
fn tools_can_be_enabled_in_settings_and_disabled_for_one_runner() {
    let repo = repo("\"{tools-file}\"");
    repo.git(["config", "arborist.tools", "true"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert!(told(&repo).ends_with(".tools"));
    assert_eq!(server(&repo.read("../file"))["trust"], true);
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    repo.wait(60);
    repo.git(["config", "arborist.runners.robot.tools", "false"]).succeeds();
    repo.arborist(["gardener", "--new-run"]).succeeds();
    assert_eq!(told(&repo), "");
    repo.wait(60);
    repo.git(["config", "arborist.tools", "false"]).succeeds();
    repo.git(["config", "arborist.runners.robot.tools", "true"]).succeeds();
    repo.arborist(["gardener", "--new-run"]).succeeds();
    assert!(told(&repo).ends_with(".tools"));
}

#[test]
fn tools_of_a_run_in_lanes_are_limited_to_the_worktree_of_their_step() {
    let repo = repo("\"{tools}\"");
    repo.arborist(["gardener", "--tools", "--isolate"]).succeeds();
    let lane = repo.root().canonicalize().unwrap().join("repo.arborist/review-1");
    assert_eq!(server(&told(&repo))["args"][1], format!("repo={}", lane.display()));
}

#[test]
fn tool_commands_from_tracked_files_need_approval() {
    let repo = repo("\"{tools}\"");
    repo.write(
        ".arborist/config.toml",
        "[workspace.repos.app]\npath = \".\"\n[workspace.repos.app.tools]\nhi = \"echo hi\"\n",
    );
    repo.commit("a configuration\n");
    repo.arborist(["gardener", "--tools"]).exits(2).matches_snapshot();
    assert!(!repo.root().join("told").exists());
    repo.arborist(["gardener", "--tools", "--yes"]).succeeds();
    assert!(told(&repo).contains("app:hi=echo hi"));
}

#[test]
fn a_runner_that_accepts_no_tools_runs_without_them_and_this_is_reported() {
    let repo = repo("\"nothing\"");
    repo.arborist(["gardener", "--tools"]).succeeds().matches_snapshot();
}
