//! Agents are given tools: when, how, and with which commands.

use std::fs;

use arborist_testkit::Garden;
use serde_json::Value;

/// A runner of the user's own that takes a list of servers, notes it, and works.
fn garden(template: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("tasks.md", "## Phase 1: All\n\n- [ ] T001 the only one\n");
    garden.commit("a plan\n");
    let root = garden.root().display().to_string();
    let script = garden.root().join("robot.sh");
    let text = format!(
        "cat > /dev/null; printf '%s' \"$1\" > '{root}/told'; test -f \"$1\" && cp \"$1\" '{root}/file'; \
         echo done >> done.txt; echo APPROVED\n"
    );
    fs::write(&script, text).unwrap();
    let config = format!(
        "runner = \"robot\"\ntest-command = \"true\"\n[runners.robot]\ncommand = [\"sh\", \"{}\", {template}]\n",
        script.display()
    );
    garden.write("../home/.config/git-arborist/config.toml", config);
    garden
}

fn told(garden: &Garden) -> String {
    garden.read("../told")
}

fn server(json: &str) -> Value {
    serde_json::from_str::<Value>(json).unwrap()["mcpServers"]["arborist"].clone()
}

#[test]
fn tools_are_given_when_they_are_asked_for() {
    let garden = garden("\"{tools}\"");
    garden.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.tools.run-tests", "make test"]).succeeds();
    garden.git(["config", "arborist.session.branch", "false"]).succeeds();
    garden.arborist(["gardener", "--tools"]).succeeds();
    let server = server(&told(&garden));
    let program = server["command"].as_str().unwrap();
    assert!(program.ends_with("/git-arborist-tools") && fs::exists(program).unwrap(), "{program}");
    let top = garden.path("").canonicalize().unwrap().display().to_string();
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
fn nobody_is_given_tools_unasked() {
    let garden = garden("\"{tools}\"");
    garden.arborist(["gardener"]).succeeds();
    assert_eq!(told(&garden), "");
}

#[test]
fn settings_ask_for_them_too_and_one_runner_may_go_without() {
    let garden = garden("\"{tools-file}\"");
    garden.git(["config", "arborist.tools", "true"]).succeeds();
    garden.arborist(["gardener"]).succeeds();
    assert!(told(&garden).ends_with(".tools"));
    assert_eq!(server(&garden.read("../file"))["trust"], true);
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
    garden.wait(60);
    garden.git(["config", "arborist.runners.robot.tools", "false"]).succeeds();
    garden.arborist(["gardener", "--new-run"]).succeeds();
    assert_eq!(told(&garden), "");
    garden.wait(60);
    garden.git(["config", "arborist.tools", "false"]).succeeds();
    garden.git(["config", "arborist.runners.robot.tools", "true"]).succeeds();
    garden.arborist(["gardener", "--new-run"]).succeeds();
    assert!(told(&garden).ends_with(".tools"));
}

#[test]
fn in_a_lane_they_are_bound_to_the_lane() {
    let garden = garden("\"{tools}\"");
    garden.arborist(["gardener", "--tools", "--isolate"]).succeeds();
    let lane = garden.root().canonicalize().unwrap().join("repo.arborist/review-1");
    assert_eq!(server(&told(&garden))["args"][1], format!("repo={}", lane.display()));
}

#[test]
fn commands_that_a_repository_brings_along_are_approved_before_they_are_offered() {
    let garden = garden("\"{tools}\"");
    garden.write(
        ".arborist/config.toml",
        "[workspace.repos.app]\npath = \".\"\n[workspace.repos.app.tools]\nhi = \"echo hi\"\n",
    );
    garden.commit("a configuration\n");
    garden.arborist(["gardener", "--tools"]).exits(2).shows();
    assert!(!garden.root().join("told").exists());
    garden.arborist(["gardener", "--tools", "--yes"]).succeeds();
    assert!(told(&garden).contains("app:hi=echo hi"));
}

#[test]
fn who_takes_no_tools_works_without_and_that_is_said() {
    let garden = garden("\"nothing\"");
    garden.arborist(["gardener", "--tools"]).succeeds().shows();
}
