//! From a fresh clone: what a run has pushed is enough to go on with it, when everything else is deleted.

use std::fs;

use crate::test_workspace::TestWorkspace;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] [repo:backend] do b\n- [ ] T003 do c (depends on T001, T002)\n- [ ] T004 [repo:backend] do d (depends on T003)\n";

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T003:*) test -e "$ROOT/mended" || exit 1; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn workspace(policy: &str) -> TestWorkspace {
    let workspace = TestWorkspace::of_containers(PLAN, policy, "");
    workspace.agent(WORKER);
    workspace
}

/// The branch of the only session at a remote.
#[track_caller]
fn branch(workspace: &TestWorkspace, repo: &str) -> String {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/tasks"];
    let found = workspace.git_in(&workspace.remote_of(repo), list).answer();
    assert_eq!(found.lines().count(), 1, "{repo}: {found}");
    found
}

fn files(workspace: &TestWorkspace, repo: &str) -> Vec<String> {
    let tree = ["ls-tree", "--name-only", &branch(workspace, repo)];
    let files = workspace.git_in(&workspace.remote_of(repo), tree).answer();
    files.lines().filter(|name| name.starts_with('T')).map(str::to_owned).collect()
}

#[test]
fn a_run_in_a_fresh_clone_pushes_all_its_work_to_the_remotes() {
    let workspace = workspace("on_completion");
    fs::write(workspace.root().join("mended"), "").unwrap();
    let run = workspace.arborist(["gardener", "--yes", "--json"]).succeeds();
    for event in ["cloned", "fetched", "branch-created", "pushed"] {
        assert!(run.stdout().contains(&format!("\"event\":\"{event}\"")), "no {event} in {}", run.stdout());
    }
    assert_eq!(files(&workspace, "repo"), ["T001.txt", "T003.txt"]);
    assert_eq!(files(&workspace, "backend"), ["T002.txt", "T004.txt"]);
    assert_eq!(branch(&workspace, "repo"), branch(&workspace, "backend"));
    let others = ["for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/tags", "refs/arborist/wip"];
    assert_eq!(workspace.git_in(&workspace.remote_of("repo"), others).answer(), "refs/heads/main");
    workspace.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
    assert_eq!(workspace.git(["status", "--porcelain", "-b"]).answer(), "## main...origin/main");
}

#[test]
fn a_session_continues_in_a_new_clone_from_git_data_alone() {
    for jobs in ["1", "2"] {
        let workspace = workspace("on_checkpoint");
        workspace.arborist(["gardener", "--yes", "--max-retries", "1", "--jobs", jobs]).exits(1);
        let (before, work) = (branch(&workspace, "repo"), files(&workspace, "backend"));
        assert_eq!(
            (files(&workspace, "repo"), work),
            (vec!["T001.txt".to_owned()], vec!["T002.txt".to_owned()])
        );
        let heads =
            |repo: &str| workspace.git_in(&workspace.remote_of(repo), ["rev-parse", &before]).answer();
        let (app, backend) = (heads("repo"), heads("backend"));
        workspace.delete_container();
        workspace.clone_again();
        fs::write(workspace.root().join("mended"), "").unwrap();
        let calls = workspace.calls();
        let resumed = workspace.arborist(["session", "resume", "--yes"]).succeeds();
        resumed.err("session refs from").out("2 completed (T003, T004)");
        assert_eq!(workspace.calls(), calls + 4, "what was complete is not done again");
        assert_eq!(files(&workspace, "repo"), ["T001.txt", "T003.txt"], "{jobs} jobs");
        assert_eq!(files(&workspace, "backend"), ["T002.txt", "T004.txt"], "{jobs} jobs");
        assert_eq!(
            (branch(&workspace, "repo"), branch(&workspace, "backend")),
            (before.clone(), before.clone())
        );
        for (repo, old) in [("repo", app), ("backend", backend)] {
            workspace
                .git_in(&workspace.remote_of(repo), ["merge-base", "--is-ancestor", &old, &before])
                .succeeds();
        }
        workspace.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
        assert_eq!(workspace.git(["branch", "--show-current"]).answer(), "main");
    }
}

#[test]
fn a_run_is_refused_if_another_clone_has_an_unfinished_session_of_its_plan() {
    let workspace = workspace("on_checkpoint");
    workspace.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    let before = branch(&workspace, "repo");
    let id = before.rsplit_once('/').unwrap().1;
    workspace.delete_container();
    workspace.clone_again();
    fs::write(workspace.root().join("mended"), "").unwrap();
    let calls = workspace.calls();
    let said = workspace.arborist(["gardener", "--yes"]).exits(2);
    said.err(&format!("git arborist session resume {id}")).err("--new-run");
    assert_eq!((workspace.calls(), branch(&workspace, "repo")), (calls, before.clone()));
    // What is done stands in nobody's way, nor does what somebody else has begun.
    let mut other = workspace.command("git-arborist-gardener", &workspace.path(""));
    other.args(["--yes", "--dry-run"]).env("GIT_COMMITTER_EMAIL", "another@example.com");
    assert!(other.output().unwrap().status.success());
    workspace.arborist(["session", "resume", id, "--yes"]).succeeds();
    workspace.delete_container();
    workspace.clone_again();
    workspace.arborist(["gardener", "--yes", "--dry-run"]).succeeds();
}

/// The plan and the configuration were in no commit but those of the session.
#[test]
fn a_session_whose_plan_is_only_on_its_branch_can_be_resumed_in_a_new_clone() {
    let workspace = TestWorkspace::of(&[], "- [ ] T001 do a\n- [ ] T003 do c\n");
    workspace.agent(WORKER);
    workspace.git(["rm", "-q", "--cached", "tasks.md"]).succeeds();
    workspace.git(["commit", "-q", "-m", "no plan"]).succeeds();
    workspace.git_in(workspace.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
    let text = "[workspace.repos.app]\npath = \".\"\nremote = \"../repo.git\"\npush = \"on_checkpoint\"\n";
    workspace.write(".arborist/config.toml", text);
    workspace.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    workspace.delete_container();
    workspace.clone_again();
    fs::write(workspace.root().join("mended"), "").unwrap();
    let (name, id) =
        branch(&workspace, "repo").rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    workspace.arborist(["session", "resume", "zz", "--yes"]).exits(1).err("there is no session 'zz'");
    workspace
        .arborist(["session", "resume", &id[..5], "--yes"])
        .succeeds()
        .out(&format!("git merge {name}/{id}"));
    assert_eq!(files(&workspace, "repo"), ["T001.txt", "T003.txt"]);
    workspace
        .arborist(["session", "resume"])
        .exits(1)
        .err("no unfinished session is recorded in this repository");
}

#[test]
fn a_session_starts_at_the_commit_of_the_remote() {
    let workspace = workspace("never");
    fs::write(workspace.root().join("mended"), "").unwrap();
    workspace.git_in(workspace.root(), ["clone", "-q", "repo.git", "other"]).succeeds();
    let other = workspace.root().join("other");
    workspace.git_in(&other, ["commit", "-q", "--allow-empty", "-m", "theirs"]).succeeds();
    workspace.git_in(&other, ["push", "-q"]).succeeds();
    let (theirs, ours) = (
        workspace.git_in(&other, ["rev-parse", "HEAD"]).answer(),
        workspace.git(["rev-parse", "HEAD"]).answer(),
    );
    workspace.arborist(["gardener", "--yes"]).succeeds().err("fetched 'app'");
    let branch = workspace.session_branch("repo");
    workspace.git(["merge-base", "--is-ancestor", &theirs, &branch]).succeeds();
    assert_eq!(workspace.git(["rev-parse", "main"]).answer(), ours, "the user's branch is theirs");
    let refs =
        workspace.git_in(&workspace.remote_of("repo"), ["for-each-ref", "--format=%(refname)"]).answer();
    assert_eq!(refs, "refs/heads/main", "never means never");
    // What the user has on top of the remote is a part of it; what has gone apart is not, and that is said.
    workspace.git(["merge", "-q", "--ff-only", &theirs]).succeeds();
    workspace.git(["commit", "-q", "--allow-empty", "-m", "mine"]).succeeds();
    workspace.wait(5);
    workspace
        .arborist(["gardener", "--new-run"])
        .succeeds()
        .never("without your commits")
        .err("created branch")
        .err(&workspace.git(["rev-parse", "--short=10", "HEAD"]).answer());
    workspace.git_in(&other, ["commit", "-q", "--allow-empty", "-m", "more of theirs"]).succeeds();
    workspace.git_in(&other, ["push", "-q"]).succeeds();
    let tip = workspace.git_in(&other, ["rev-parse", "--short=10", "HEAD"]).answer();
    workspace.wait(5);
    workspace
        .arborist(["gardener", "--new-run"])
        .succeeds()
        .err(&format!("the run starts at {tip}, without your commits"));
}

#[test]
fn a_session_starts_at_an_unpushed_branch_and_reports_an_unreachable_remote() {
    let workspace = workspace("on_completion");
    fs::write(workspace.root().join("mended"), "").unwrap();
    workspace.git(["switch", "-q", "-c", "mine"]).succeeds();
    workspace.git(["commit", "-q", "--allow-empty", "-m", "mine"]).succeeds();
    let head = workspace.git(["rev-parse", "--short=10", "HEAD"]).answer();
    workspace
        .arborist(["gardener", "--yes"])
        .succeeds()
        .never("offline")
        .err(&format!("at {head} in repository"));
    fs::rename(workspace.remote_of("repo"), workspace.root().join("gone")).unwrap();
    workspace.wait(5);
    let run = workspace.arborist(["gardener", "--new-run"]).succeeds();
    run.err("offline: the remote of 'app' could not be reached")
        .err(&format!("starting at {head}, which may be behind"))
        .err("'app' was not pushed");
    workspace.arborist(["state"]).succeeds().out("app: unpushed by ");
    fs::rename(workspace.root().join("gone"), workspace.remote_of("repo")).unwrap();
    workspace.arborist(["workspace", "push"]).succeeds();
    workspace.arborist(["state"]).succeeds().never("unpushed");
}
