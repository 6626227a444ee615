//! The named commands that `git arborist tools` offers: where they run, how they end, and who must have approved of them.

use std::{fs, path::Path};

use crate::tools_client::ToolsClient;
use arborist_testkit::TestRepo;
use serde_json::json;

#[test]
fn commands_run_in_their_repository_and_report_how_they_ended() {
    let repo = TestRepo::init();
    let script = "where=echo $ARBORIST_REPO at $PWD; echo $API_TOKEN; echo oops >&2";
    let args = [
        "--root",
        "a=.",
        "--command",
        &format!("a:{script}"),
        "--command",
        "a:fail=exit 7",
        "--timeout",
        "30",
    ];
    let mut bench = ToolsClient::open_with(&repo, &args, &[("API_TOKEN", "hunter2hunter2")]);
    let said = bench.works("a__where", json!({})).concat();
    let top = repo.path("").canonicalize().unwrap();
    assert!(said.contains(&format!("a at {}", top.display())) && said.contains("oops"), "{said}");
    assert!(!said.contains("hunter2"), "secrets are not shown: {said}");
    assert!(bench.fails("a__fail", json!({})).contains("failed with exit code 7"));
    assert!(bench.fails("a__fail", json!({ "x": 1 })).contains("unknown field"));
}

#[test]
fn commands_get_the_name_and_branch_of_their_repository() {
    let repo = TestRepo::init();
    let script = "where=echo \"<$ARBORIST_REPO $ARBORIST_BRANCH>\"";
    let commands = ["--command", &format!("a:{script}"), "--command", &format!("b:{script}")];
    let args = [&["--root", "a=.", "--root", "b=.", "--branch", "b=work/b"][..], &commands].concat();
    let mut bench = ToolsClient::open_with(&repo, &args, &[("ARBORIST_BRANCH", "work/a")]);
    assert!(bench.works("a__where", json!({})).concat().contains("<a work/a>"));
    assert!(bench.works("b__where", json!({})).concat().contains("<b work/b>"));
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let repo = TestRepo::init();
    let args = ["--root", "a=.", "--command", "a:sleep=sleep 1000", "--timeout", "1"];
    let mut bench = ToolsClient::open(&repo, &args);
    assert!(bench.fails("a__sleep", json!({})).contains("1 s"));
}

#[test]
fn commands_in_tracked_configuration_need_approval() {
    let repo = TestRepo::init();
    repo.write(
        ".arborist/config.toml",
        "[workspace.repos.app]\npath = \".\"\n[workspace.repos.app.tools]\nhi = \"echo hi\"\n",
    );
    let mut bench = ToolsClient::open(&repo, &[]);
    let refused = bench.fails("app__hi", json!({}));
    assert!(refused.contains("you have not approved them") && refused.contains("tool: echo hi"), "{refused}");
    bench.close();
    fs::remove_file(repo.path(".arborist/config.toml")).unwrap();
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.tools.hi", "echo hi"]).succeeds();
    let mut bench = ToolsClient::open(&repo, &[]);
    assert!(bench.works("app__hi", json!({})).concat().contains("hi"), "the user's own need none");
}

#[test]
fn no_command_outlives_the_client() {
    let repo = TestRepo::init();
    let script = "echo $$ > ../pid; sleep 1000";
    let mut bench = ToolsClient::open(&repo, &["--root", "a=.", "--command", &format!("a:wait={script}")]);
    let call = json!({ "name": "a__wait", "arguments": {} });
    bench.say(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": call }));
    let file = repo.root().join("pid");
    while !fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n')) {
        std::thread::yield_now();
    }
    let pid = repo.read("../pid").trim().to_owned();
    bench.close();
    // Whoever adopts the process may take a moment to reap it.
    let is_alive =
        || repo.command("kill", Path::new("/")).args(["-0", &pid]).output().unwrap().status.success();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while is_alive() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(!is_alive());
}

#[test]
fn a_bare_repository_that_a_call_created_is_disabled() {
    let bare = "mkdir -p src/objects src/refs && echo 'ref: refs/heads/main' > src/HEAD";
    let repo = TestRepo::init();
    repo.write("src/a.txt", "a\n");
    repo.commit("a file\n");
    let mut bench = ToolsClient::open(&repo, &["--root", "a=.", "--command", &format!("a:plant={bare}")]);
    let said = bench.fails("a__plant", json!({}));
    assert!(said.contains("made a repository in a folder of the checkout: src/HEAD"), "{said}");
    assert!(!repo.path("src/HEAD").exists());
    let mut write = |path: &str| bench.call("a__write_file", json!({ "path": path, "content": "x\n" }));
    for path in ["new/objects/x", "new/HEAD", "new/config"] {
        assert!(!write(path).1, "{path}");
    }
    let (said, is_error) = write("new/refs/x");
    assert!(is_error && said.concat().contains("new/HEAD, which is kept in"), "{said:?}");
    assert!(!repo.path("new/HEAD").exists() && repo.path("new/refs/x").exists());
}

#[test]
fn bare_repositories_that_existed_before_are_kept() {
    let repo = TestRepo::init();
    repo.git(["init", "-q", "--bare", "data/fixture"]).succeeds();
    let mut bench = ToolsClient::open(&repo, &["--root", "a=.", "--command", "a:nothing=true"]);
    bench.works("a__nothing", json!({}));
    bench.works("a__write_file", json!({ "path": "data/fixture/description", "content": "x\n" }));
    assert!(repo.path("data/fixture/HEAD").exists());
}
