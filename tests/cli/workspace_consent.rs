//! What tracked files of a repository may not do to other places and to the user's branches unless the user has seen it.

use arborist_testkit::Garden;

fn other(garden: &Garden, name: &str) {
    garden.git_in(garden.root(), ["init", "-q", "-b", "main", name]).succeeds();
    garden.git_in(&garden.root().join(name), ["commit", "-q", "--allow-empty", "-m", "first"]).succeeds();
}

#[test]
fn no_command_runs_in_a_place_that_only_a_tracked_file_names() {
    let garden = Garden::sprout();
    other(&garden, "secret");
    garden.write(".arborist/config.toml", "[workspace.repos.other]\npath = \"../secret\"\n");
    let touch = ["workspace", "foreach", "touch canary"];
    garden.arborist(touch).exits(2).shows();
    assert!(!garden.root().join("secret/canary").exists() && !garden.path("canary").exists());
    garden.arborist(["workspace", "foreach", "--yes", "touch canary"]).succeeds();
    assert!(garden.root().join("secret/canary").exists());
    garden.arborist(["workspace", "foreach", "true"]).succeeds();
}

#[test]
fn session_branches_do_not_begin_with_nothing() {
    let garden = Garden::sprout();
    for prefix in ["", "/", "a..", "refs//"] {
        garden.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
        garden.git(["config", "arborist.workspace.repos.app.branch-prefix", prefix]).succeeds();
        garden.arborist(["workspace", "status"]).exits(128).shows();
    }
}

/// The user's own section is another one when a tracked file says which branches are taken over.
#[test]
fn a_tracked_prefix_and_branch_are_part_of_what_is_approved() {
    let garden = Garden::sprout();
    other(&garden, "origin");
    garden.git(["remote", "add", "origin", "../origin"]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    garden.git(["config", "arborist.workspace.repos.app.remote", "origin"]).succeeds();
    garden.arborist(["workspace", "sync"]).succeeds();
    let write =
        |text: &str| garden.write(".arborist/config.toml", format!("[workspace.repos.app]\n{text}\n"));
    write("branch-prefix = \"feature/\"");
    garden.arborist(["workspace", "sync"]).exits(2).shows();
    garden.arborist(["workspace", "sync", "--yes"]).succeeds();
    write("branch-prefix = \"fix/\"");
    garden.arborist(["workspace", "sync"]).exits(2).shows();
    write("default-branch = \"main\"");
    garden.arborist(["workspace", "sync"]).exits(2).shows();
}

#[test]
fn an_approval_of_one_user_of_a_url_is_not_that_of_another() {
    let garden = Garden::sprout();
    let write = |user: &str| {
        let remote = format!("remote = \"https://{user}@127.0.0.1:1/x\"");
        garden.write(".arborist/config.toml", format!("[workspace.repos.app]\npath = \".\"\n{remote}\n"));
    };
    write("ada");
    let shown = garden.arborist(["workspace", "sync"]).exits(2).shows();
    assert!(!shown.stderr().contains("ada@"));
    garden.arborist(["workspace", "foreach", "--yes", "true"]).succeeds();
    garden.arborist(["workspace", "foreach", "true"]).succeeds();
    write("bob");
    garden.arborist(["workspace", "foreach", "true"]).exits(2).shows();
}
