//! What tracked files of a repository may not do to other places and to the user's branches unless the user has seen it.

use arborist_testkit::TestRepo;

fn other(repo: &TestRepo, name: &str) {
    repo.git_in(repo.root(), ["init", "-q", "-b", "main", name]).succeeds();
    repo.git_in(&repo.root().join(name), ["commit", "-q", "--allow-empty", "-m", "first"]).succeeds();
}

#[test]
fn foreach_needs_approval_for_a_path_in_tracked_configuration() {
    let repo = TestRepo::init();
    other(&repo, "secret");
    repo.write(".arborist/config.toml", "[workspace.repos.other]\npath = \"../secret\"\n");
    let touch = ["workspace", "foreach", "touch canary"];
    repo.arborist(touch).exits(2).matches_snapshot();
    assert!(!repo.root().join("secret/canary").exists() && !repo.path("canary").exists());
    repo.arborist(["workspace", "foreach", "--yes", "touch canary"]).succeeds();
    assert!(repo.root().join("secret/canary").exists());
    repo.arborist(["workspace", "foreach", "true"]).succeeds();
}

#[test]
fn an_empty_or_invalid_branch_prefix_is_refused() {
    let repo = TestRepo::init();
    for prefix in ["", "/", "a..", "refs//"] {
        repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
        repo.git(["config", "arborist.workspace.repos.app.branch-prefix", prefix]).succeeds();
        repo.arborist(["workspace", "status"]).exits(1).matches_snapshot();
    }
}

/// The user's own section is another one when a tracked file says which branches are taken over.
#[test]
fn changes_of_a_tracked_branch_prefix_or_default_branch_need_new_approval() {
    let repo = TestRepo::init();
    other(&repo, "origin");
    repo.git(["remote", "add", "origin", "../origin"]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.app.remote", "origin"]).succeeds();
    repo.arborist(["workspace", "sync"]).succeeds();
    let write = |text: &str| repo.write(".arborist/config.toml", format!("[workspace.repos.app]\n{text}\n"));
    write("branch-prefix = \"feature/\"");
    repo.arborist(["workspace", "sync"]).exits(2).matches_snapshot();
    repo.arborist(["workspace", "sync", "--yes"]).succeeds();
    write("branch-prefix = \"fix/\"");
    repo.arborist(["workspace", "sync"]).exits(2).matches_snapshot();
    write("default-branch = \"main\"");
    repo.arborist(["workspace", "sync"]).exits(2).matches_snapshot();
}

#[test]
fn an_approval_of_a_url_does_not_cover_another_user_name_in_it() {
    let repo = TestRepo::init();
    let write = |user: &str| {
        let remote = format!("remote = \"https://{user}@127.0.0.1:1/x\"");
        repo.write(".arborist/config.toml", format!("[workspace.repos.app]\npath = \".\"\n{remote}\n"));
    };
    write("ada");
    let shown = repo.arborist(["workspace", "sync"]).exits(2).matches_snapshot();
    assert!(!shown.stderr().contains("ada@"));
    repo.arborist(["workspace", "foreach", "--yes", "true"]).succeeds();
    repo.arborist(["workspace", "foreach", "true"]).succeeds();
    write("bob");
    repo.arborist(["workspace", "foreach", "true"]).exits(2).matches_snapshot();
}

/// Everything of a bare repository can be tracked as plain files, its settings included.
#[test]
fn a_bare_repository_in_tracked_files_is_not_opened() {
    let repo = TestRepo::init();
    other(&repo, "e");
    let from = repo.root().join("e/.git");
    let ran = repo.root().join("ran");
    for part in ["HEAD", "config", "objects", "refs", "index"] {
        let copy = format!("mkdir -p lib/x/wt; cp -r '{}' lib/x/", from.join(part).display());
        repo.command("sh", &repo.path("")).args(["-c", &copy]).status().unwrap();
    }
    repo.write("lib/x/wt/a.txt", "b\n");
    repo.write("lib/x/wt/.gitattributes", "* filter=x\n");
    let filter = format!("touch '{}'; cat", ran.display());
    for (key, value) in [("core.worktree", "wt"), ("core.bare", "false"), ("filter.x.clean", &filter)] {
        repo.git(["config", "-f", "lib/x/config", key, value]).succeeds();
    }
    repo.write(".arborist/config.toml", "[workspace.repos.x]\npath = \"lib/x/wt\"\n");
    let run = repo.arborist(["workspace", "status"]);
    assert!(run.code() != 0 && !ran.exists(), "{}", run.report());
}

#[test]
fn a_worktree_of_the_plan_repository_is_refused_as_another_repository() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [repo:twin] a\n", "true");
    repo.git(["worktree", "add", "-q", "../twin", "-b", "twin"]).succeeds();
    repo.git(["config", "arborist.workspace.repos.twin.path", "../twin"]).succeeds();
    for args in [&["gardener"][..], &["gardener", "--dry-run"], &["workspace", "status"]] {
        let refused = repo.arborist(args).exits(1);
        refused
            .err("which is a worktree of 'repo' and not another repository")
            .err("workspace.repos.twin.path");
    }
    assert_eq!(repo.calls(), 0);
}
