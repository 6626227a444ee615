//! Cleanup of a workspace: every repository is cleaned up by the same rules, and a session is judged by the repository
//! that records it.

use std::fs;

use crate::test_workspace::TestWorkspace;
use serde_json::Value;

const PLAN: &str = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] an endpoint\n";
const WORKER: &str = "case \"$prompt\" in \"Review\"*) echo APPROVED ;; *) echo x > x.txt; echo done ;; esac";
const NOW: [&str; 3] = ["cleanup", "--older-than", "0"];
const FORCED: [&str; 4] = ["cleanup", "--older-than", "0", "--force"];

/// A finished run that worked in `backend`. Gives the name of the session's branch, which is the same in both.
fn finished() -> (TestWorkspace, String) {
    let workspace = TestWorkspace::of(&["backend"], PLAN);
    workspace.agent(WORKER);
    workspace.arborist(["gardener"]).succeeds();
    let branch = workspace.session_branch("backend");
    (workspace, branch)
}

fn branches(workspace: &TestWorkspace, repo: &str) -> String {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads"];
    workspace.git_in(&workspace.clone_of(repo), list).answer()
}

fn worktrees(workspace: &TestWorkspace, repo: &str) -> usize {
    workspace.git_in(&workspace.clone_of(repo), ["worktree", "list"]).answer().lines().count()
}

/// The item of this kind in one repository; of worktrees, that of the session.
fn item<'r>(report: &'r Value, repo: &str, kind: &str) -> &'r Value {
    let items = report["items"].as_array().unwrap();
    let is_it = |item: &&Value| {
        let is_of_session = kind != "worktree" || item["name"].as_str().unwrap().starts_with("session-");
        item["repo"] == repo && item["kind"] == kind && is_of_session
    };
    let found: Vec<&Value> = items.iter().filter(is_it).collect();
    assert_eq!(found.len(), 1, "{kind} in {repo}: {report:#}");
    found[0]
}

#[test]
fn cleanup_covers_all_repositories_of_the_workspace() {
    let (workspace, branch) = finished();
    let tip = workspace.git_in(&workspace.clone_of("backend"), ["rev-parse", &branch]).answer();
    let before = worktrees(&workspace, "backend");
    let said = workspace.arborist([&FORCED[..], &["--dry-run"]].concat()).succeeds();
    said.out("In repo:\nWould remove:").out("In backend:\nWould remove:");
    assert_eq!(worktrees(&workspace, "backend"), before, "a dry run removes nothing");
    let said = workspace.arborist(FORCED).succeeds();
    said.out("In repo:\nRemoved:").out("In backend:\nRemoved:").out(&format!("{branch} of repo"));
    for repo in ["repo", "backend"] {
        assert_eq!((branches(&workspace, repo), worktrees(&workspace, repo)), ("main".to_owned(), 1));
    }
    let saved = ["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"];
    assert_eq!(workspace.git_in(&workspace.clone_of("backend"), saved).answer(), tip, "saved where it was");
    workspace.arborist_in(&workspace.clone_of("backend"), ["cleanup", "restore", &branch]).succeeds();
    assert_eq!(workspace.git_in(&workspace.clone_of("backend"), ["rev-parse", &branch]).answer(), tip);
}

#[test]
fn an_unmerged_branch_of_a_session_is_kept_in_every_repository_and_a_merged_one_is_removed() {
    let (workspace, branch) = finished();
    let backend = workspace.clone_of("backend");
    let report = workspace.arborist([&NOW[..], &["--json"]].concat()).answer();
    let report: Value = serde_json::from_str(&report).unwrap();
    let kept = item(&report, "backend", "session");
    assert_eq!((&kept["outcome"], &kept["session_repo"]), (&"kept".into(), &"repo".into()));
    assert!(kept["reason"].as_str().unwrap().ends_with("not merged"), "{kept}");
    assert_ne!(item(&report, "backend", "worktree")["outcome"], "kept");
    assert_eq!(item(&report, "repo", "session")["session_repo"], Value::Null);
    workspace.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    workspace.git(["merge", "-q", &branch]).succeeds();
    workspace.arborist(NOW).succeeds();
    assert!(!branches(&workspace, "repo").contains(&branch));
    workspace.arborist(NOW).succeeds().out("the branch of its session still exists");
    workspace.git_in(&backend, ["merge", "-q", &branch]).succeeds();
    workspace.arborist(NOW).succeeds().out("In backend:");
    assert_eq!(branches(&workspace, "backend"), "main");
    assert_eq!(workspace.git_in(&backend, ["for-each-ref", "refs/arborist/saved"]).answer(), "");
}

#[test]
fn cleanup_in_another_repository_reads_the_session_from_the_repository_of_the_plan() {
    let (workspace, branch) = finished();
    let backend = workspace.clone_of("backend");
    // Only the run told this repository where the plan is; the cache of that is not removed either.
    workspace.git(["config", "--global", "--remove-section", "arborist.workspace.repos.backend"]).succeeds();
    for _ in 0..2 {
        let said = workspace.arborist_in(&backend, NOW).succeeds();
        said.out(&format!("{branch} of repo")).out("not merged");
    }
    workspace.arborist_in(&backend, FORCED).succeeds();
    assert_eq!((branches(&workspace, "backend"), worktrees(&workspace, "backend")), ("main".to_owned(), 1));
    assert!(branches(&workspace, "repo").contains(&branch), "the plan's repository is not touched");
}

#[test]
fn branches_of_a_session_are_kept_if_the_repository_with_its_record_cannot_be_read() {
    let (workspace, branch) = finished();
    let backend = workspace.clone_of("backend");
    workspace.git(["config", "--global", "--remove-section", "arborist.workspace.repos.backend"]).succeeds();
    let home = workspace.clone_of("repo");
    fs::rename(&home, workspace.root().join("away")).unwrap();
    let before = workspace.git_in(&backend, ["for-each-ref"]).answer();
    let said = workspace.arborist_in(&backend, FORCED).succeeds();
    let why =
        format!("whether its session is over: it is recorded in {}, which cannot be read", home.display());
    said.out(&branch).out(&why);
    assert_eq!(workspace.git_in(&backend, ["for-each-ref"]).answer(), before);
    assert!(worktrees(&workspace, "backend") >= 2);
}

#[test]
fn branches_and_worktrees_of_a_running_session_are_kept_in_every_repository() {
    let workspace = TestWorkspace::of(&["backend"], PLAN);
    workspace.agent(
        "case \"$prompt\" in \"Review\"*) echo APPROVED ;;\n *) echo x > x.txt\n\
         for repo in repo backend; do (cd \"$ROOT/$repo\" && env -u GIT_DIR -u GIT_WORK_TREE git arborist cleanup \
         --dry-run --json --older-than 0 --force > \"$ROOT/seen-$repo\" 2> \"$ROOT/errors-$repo\"); done ;; esac",
    );
    workspace.arborist(["gardener"]).succeeds();
    for repo in ["repo", "backend"] {
        let text = fs::read_to_string(workspace.root().join(format!("seen-{repo}"))).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap();
        for kind in ["session", "worktree"] {
            let kept = item(&report, "backend", kind);
            assert_eq!(kept["verdict"], "keep", "{kept:#}");
        }
        assert_eq!(item(&report, "backend", "session")["reason"], "its session is running");
    }
}

#[test]
fn a_repository_named_in_a_tracked_file_is_not_cleaned_up_until_approved() {
    let (workspace, branch) = finished();
    workspace.git(["config", "--global", "--remove-section", "arborist.workspace.repos.backend"]).succeeds();
    workspace.section("backend", "path = \"../backend\"\n");
    let said = workspace.arborist(FORCED).succeeds();
    said.err("'backend' is not cleaned up: it has not been approved");
    assert!(branches(&workspace, "backend").contains(&branch));
}

#[test]
fn a_repository_that_cannot_be_opened_does_not_prevent_cleanup_of_the_others() {
    let (workspace, branch) = finished();
    workspace.set("web", "path", "../web");
    fs::create_dir(workspace.root().join("web")).unwrap();
    fs::write(workspace.root().join("web/file"), "no repository").unwrap();
    workspace.arborist(FORCED).exits(1).err("'web' is not cleaned up");
    assert!(!branches(&workspace, "backend").contains(&branch));
}
