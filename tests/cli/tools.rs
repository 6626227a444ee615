//! `git arborist tools`, as an agent speaks with it.

use std::{
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
};

use crate::tools_client::ToolsClient;
use arborist_testkit::TestRepo;
use serde_json::{Value, json};

#[test]
fn each_repository_has_its_own_tools() {
    let repo = TestRepo::init();
    let mut bench = ToolsClient::open(&repo, &[]);
    assert_eq!(bench.hello["serverInfo"]["name"], "git-arborist");
    assert!(bench.hello["instructions"].as_str().unwrap().contains("repo ("));
    let own = ["repo__read_file", "repo__write_file", "repo__edit_file", "repo__search_code"];
    assert_eq!(bench.tools(), own);
    bench.close();
    fs::create_dir(repo.root().join("other")).unwrap();
    repo.git_in(&repo.root().join("other"), ["init", "-q"]).succeeds();
    let args = ["--root", "a=.", "--root", "b=../other", "--command", "b:run-tests=true"];
    let mut bench = ToolsClient::open(&repo, &args);
    let tools = bench.tools();
    assert_eq!((tools.len(), tools.last().unwrap().as_str()), (9, "b__run-tests"));
    bench.works("b__write_file", json!({ "path": "there", "content": "x" }));
    assert!(repo.root().join("other/there").exists());
    assert!(bench.fails("a__read_file", json!({ "path": "there" })).contains("does not exist"));
}

/// A tracked file must not open another folder of the user to agents.
#[test]
fn a_repository_that_only_a_tracked_file_names_is_left_out() {
    let repo = TestRepo::init();
    repo.git_in(repo.root(), ["init", "-q", "secret"]).succeeds();
    repo.write(".arborist/config.toml", "[workspace.repos.other]\npath = \"../secret\"\n");
    repo.arborist(["tools"]).succeeds().matches_snapshot();
    let mut bench = ToolsClient::open(&repo, &[]);
    assert!(bench.tools().iter().all(|tool| tool.starts_with("repo__")), "{:?}", bench.tools());
    bench.close();
    repo.arborist(["workspace", "sync", "--yes"]).succeeds();
    let mut bench = ToolsClient::open(&repo, &[]);
    assert!(bench.tools().contains(&"other__read_file".to_owned()));
}

#[test]
fn names_of_tools_are_short_enough_for_every_provider() {
    let repo = TestRepo::init();
    let (name, tool) = ("n".repeat(23), "t".repeat(23));
    let (root, command) = (format!("{name}=."), format!("{name}:{tool}=true"));
    let mut bench = ToolsClient::open(&repo, &["--root", &root, "--command", &command]);
    for tool in bench.tools() {
        assert!(format!("mcp__arborist__{tool}").len() <= 64, "{tool}");
    }
}

#[test]
fn files_are_read_written_and_edited() {
    let repo = TestRepo::init();
    let mut bench = ToolsClient::open(&repo, &[]);
    let said =
        bench.works("repo__write_file", json!({ "path": "src/new.rs", "content": "one\ntwo\nthree\n" }));
    assert_eq!(said, ["created 'src/new.rs' (14 bytes)"]);
    assert_eq!(repo.read("src/new.rs"), "one\ntwo\nthree\n");
    let read = bench.works("repo__read_file", json!({ "path": "src/new.rs", "offset": 2, "limit": 1 }));
    assert_eq!(read, ["two\n", "[more lines follow from offset 3]"]);
    let edit = |old: &str, new: &str| json!({ "path": "src/new.rs", "old_string": old, "new_string": new });
    bench.works("repo__edit_file", edit("two", "2"));
    assert_eq!(repo.read("src/new.rs"), "one\n2\nthree\n");
    assert!(bench.fails("repo__edit_file", edit("two", "2")).contains("does not contain"));
    assert!(bench.fails("repo__edit_file", edit("e", "E")).contains("3 times"));
    assert!(bench.fails("repo__edit_file", edit("one", "one")).contains("the same"));
    bench.close();
}

#[test]
fn edits_keep_file_modes_and_line_endings() {
    let repo = TestRepo::init();
    repo.write_script("run", "#!/bin/sh\r\nold\r\n");
    let mut bench = ToolsClient::open(&repo, &[]);
    bench.works(
        "repo__edit_file",
        json!({ "path": "run", "old_string": "sh\nold", "new_string": "sh\nnew\nmore" }),
    );
    assert_eq!(repo.read("run"), "#!/bin/sh\r\nnew\r\nmore\r\n");
    bench.works("repo__write_file", json!({ "path": "run", "content": "a\nb\n" }));
    assert_eq!(repo.read("run"), "a\r\nb\r\n");
    assert_eq!(repo.path("run").metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn paths_outside_the_worktree_are_refused() {
    let repo = TestRepo::init();
    repo.write("../secret", "for nobody");
    symlink("../secret", repo.path("link")).unwrap();
    symlink(".git", repo.path("git-link")).unwrap();
    repo.git(["config", "core.hooksPath", ".hooks"]).succeeds();
    repo.write(".hooks/pre-commit", "exit 1\n");
    let absolute = repo.root().join("secret").display().to_string();
    let paths = [
        "../secret",
        "a/../../secret",
        &absolute,
        "link",
        "git-link/config",
        ".git/config",
        ".GIT/config",
        ".git/hooks/pre-commit",
        ".hooks/pre-commit",
        ".",
        "",
        "/",
        "\0",
    ];
    let mut bench = ToolsClient::open(&repo, &[]);
    let config = repo.read(".git/config");
    for path in paths {
        bench.fails("repo__read_file", json!({ "path": path }));
        bench.fails("repo__write_file", json!({ "path": path, "content": "x" }));
        bench.fails("repo__edit_file", json!({ "path": path, "old_string": "o", "new_string": "x" }));
    }
    assert_eq!((repo.read("../secret").as_str(), repo.read(".git/config")), ("for nobody", config));
    assert_eq!(repo.read(".hooks/pre-commit"), "exit 1\n");
    let found = bench.works("repo__search_code", json!({ "pattern": "nobody|exit 1|repositoryformat" }));
    assert_eq!(found, ["[no line matches]"]);
}

#[test]
fn search_does_not_follow_a_tracked_folder_replaced_by_a_link() {
    let repo = TestRepo::init();
    repo.write("dir/file", "needle inside\n");
    repo.git(["add", "-A"]).succeeds();
    repo.commit("a file\n");
    repo.write("../elsewhere/file", "needle outside\n");
    fs::remove_dir_all(repo.path("dir")).unwrap();
    symlink("../elsewhere", repo.path("dir")).unwrap();
    let mut bench = ToolsClient::open(&repo, &[]);
    assert_eq!(bench.works("repo__search_code", json!({ "pattern": "needle" })), ["[no line matches]"]);
}

#[test]
fn code_is_found_by_regular_expression_and_glob() {
    let repo = TestRepo::init();
    repo.write("src/a.rs", "fn main() {}\n// TODO\nfn other() {}\n");
    repo.write("src/b.ts", "function main() {}\r\n");
    repo.write("ignored/c.rs", "fn main() {}\n");
    repo.write("bin", "fn main\0");
    repo.write(".gitignore", "ignored/\n");
    let mut bench = ToolsClient::open(&repo, &[]);
    let mut search = |arguments: Value| bench.works("repo__search_code", arguments);
    assert_eq!(
        search(json!({ "pattern": r"fn \w+" })),
        ["src/a.rs:1: fn main() {}\nsrc/a.rs:3: fn other() {}"]
    );
    assert_eq!(
        search(json!({ "pattern": "MAIN", "ignore_case": true, "glob": "*.ts" })),
        ["src/b.ts:1: function main() {}"]
    );
    assert_eq!(
        search(json!({ "pattern": "^function.*}$", "glob": "src/**/*.ts" })),
        ["src/b.ts:1: function main() {}"]
    );
    let limited = search(json!({ "pattern": "main", "limit": 1 }));
    assert_eq!(limited[1], "[there are more than 1 lines; narrow the pattern or the glob]");
    assert!(bench.fails("repo__search_code", json!({ "pattern": "(" })).contains("cannot be used"));
    assert!(bench.fails("repo__search_code", json!({ "pattern": "x", "glob": "../*" })).contains("outside"));
}

#[test]
fn large_and_binary_files_are_reported_and_not_read() {
    let repo = TestRepo::init();
    repo.write("binary", b"\x7fELF\0\0");
    let huge = fs::File::create(repo.path("huge")).unwrap();
    (&huge).write_all(b"first\nsecond\n").unwrap();
    huge.set_len(3 << 30).unwrap();
    repo.write("lines", "0123456789\n".repeat(100_000));
    let mut bench = ToolsClient::open(&repo, &[]);
    let error = bench.fails("repo__read_file", json!({ "path": "binary" }));
    assert_eq!(error, "'binary' is a binary file of 6 bytes");
    assert!(
        bench.fails("repo__read_file", json!({ "path": "huge" })).contains("binary file of 3221225472 bytes")
    );
    let edit = json!({ "path": "huge", "old_string": "first", "new_string": "x" });
    assert!(bench.fails("repo__edit_file", edit).contains("larger than"));
    let read = bench.works("repo__read_file", json!({ "path": "lines", "limit": 100_000 }));
    assert!(read[0].len() <= 64 * 1024 && read[1].contains("more lines follow from offset"), "{}", read[1]);
    let content = "x".repeat(9 << 20);
    let error = bench.fails("repo__write_file", json!({ "path": "new", "content": content }));
    assert!(error.contains("would be larger than"), "{error}");
    assert!(!repo.path("new").exists());
}

#[test]
fn wrong_arguments_are_reported_to_the_model() {
    let repo = TestRepo::init();
    let mut bench = ToolsClient::open(&repo, &[]);
    assert!(bench.fails("repo__read_file", json!({})).contains("missing field `path`"));
    assert!(bench.fails("repo__read_file", json!({ "path": 7 })).contains("wrong arguments"));
    assert!(
        bench.fails("repo__read_file", json!({ "path": "x", "mode": 1 })).contains("unknown field `mode`")
    );
    let unknown = bench.ask("tools/call", &json!({ "name": "repo__delete", "arguments": {} }));
    assert_eq!(unknown["error"]["message"], "there is no tool 'repo__delete'");
    let unknown = bench.ask("tools/nonsense", &json!({}));
    assert!(unknown["error"].is_object(), "{unknown}");
    bench.works("repo__write_file", json!({ "path": "still", "content": "here" }));
}

#[test]
fn tools_work_in_the_linked_worktree_of_the_task() {
    let repo = TestRepo::init();
    repo.git(["worktree", "add", "-q", "../lane"]).succeeds();
    let lane = repo.root().join("lane").display().to_string();
    let mut bench = ToolsClient::open_with(&repo, &[], &[("ARBORIST_WORKTREE", &lane)]);
    bench.works("repo__write_file", json!({ "path": "here", "content": "x" }));
    assert!(repo.root().join("lane/here").exists() && !repo.path("here").exists());
    bench.fails("repo__read_file", json!({ "path": ".git" }));
}

#[test]
fn the_tools_server_needs_valid_repositories() {
    let repo = TestRepo::init();
    repo.arborist_in(repo.root(), ["tools"]).exits(128).matches_snapshot();
    repo.arborist(["tools", "--root", "a=.."]).exits(128).matches_snapshot();
    repo.arborist(["tools", "--root", "a=nowhere"]).exits(128).matches_snapshot();
    repo.arborist(["tools", "--root", "a=.git"]).exits(128).matches_snapshot();
    repo.arborist(["tools", "--root", "a=.", "--root", "a=."]).exits(129).matches_snapshot();
    repo.arborist(["tools", "--root", "a__b=."]).exits(129).matches_snapshot();
    repo.arborist(["tools", "--root", "a=.", "--command", "b:x=true"]).exits(129).matches_snapshot();
    repo.arborist(["tools", "--command", "b:x=true"]).exits(129).matches_snapshot();
    // Nobody is there to speak with.
    repo.arborist(["tools"]).succeeds();
}

#[test]
fn an_unknown_notification_does_not_end_the_tools_server() {
    let repo = TestRepo::init();
    let mut bench = ToolsClient::open(&repo, &[]);
    bench.say(&json!({ "jsonrpc": "2.0", "method": "notifications/nonsense" }));
    bench.works("repo__write_file", json!({ "path": "a", "content": "b" }));
    bench.close();
    assert_eq!(repo.git(["status", "--porcelain"]).answer().trim(), "?? a");
}

#[test]
fn a_line_that_is_not_json_is_answered_with_a_parse_error() {
    let repo = TestRepo::init();
    let said = repo.arborist_with(["tools", "--root", "app=."], b"not json\n\n[1,2\n{\"un").succeeds();
    let answers: Vec<Value> = said.stdout().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 3, "{answers:?}");
    for answer in answers {
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32700), &Value::Null), "{answer}");
    }
    let mut bench = ToolsClient::open(&repo, &[]);
    writeln!(bench.stdin.as_mut().unwrap(), "not json").unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut bench.stdout, &mut line).unwrap();
    assert!(line.contains("-32700"), "{line}");
    assert!(!bench.tools().is_empty(), "the conversation continues");
    bench.close();
}
