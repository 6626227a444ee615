//! Push policies: what a run has committed reaches remotes exactly when it should, and a remote that fails costs nothing.

use std::{fs, net::TcpListener};

use crate::test_workspace::TestWorkspace;

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(echo "$prompt" | sed -n 's/^Implement task \([^:]*\):.*/\1/p')
     echo x > "$task.txt"; echo done ;;
esac
"#;

const PLAN: &str = "# Tasks\n\n## Phase 1: Work\n- [ ] T001 [repo:backend] a\n- [ ] T002 [repo:web] b\n- [ ] T003 [repo:backend] c\n";

fn workspace() -> TestWorkspace {
    let workspace = TestWorkspace::of(&["backend", "web"], PLAN);
    workspace.agent(WORKER);
    workspace
}

fn with_remotes() -> TestWorkspace {
    let workspace = workspace();
    for repo in ["backend", "web"] {
        workspace.set(repo, "remote", workspace.remote_of(repo).to_str().unwrap());
    }
    workspace
}

/// The branches of a remote that are not its own.
fn pushed(workspace: &TestWorkspace, repo: &str) -> Vec<String> {
    let list = workspace.git_in(&workspace.remote_of(repo), ["for-each-ref", "--format=%(refname)"]).answer();
    list.lines().filter(|name| *name != "refs/heads/main").map(str::to_owned).collect()
}

fn files(workspace: &TestWorkspace, repo: &str) -> String {
    let branch = workspace.session_branch(repo);
    workspace.git_in(&workspace.remote_of(repo), ["ls-tree", "--name-only", &branch]).answer()
}

#[test]
fn a_successful_run_is_pushed_in_every_repository_with_a_remote() {
    let workspace = with_remotes();
    workspace
        .arborist(["gardener", "-v"])
        .succeeds()
        .err("fetched 'backend' from origin")
        .err("pushed backend: arborist/tasks/");
    workspace.arborist(["plan"]).succeeds().out("T001 [repo:backend]");
    assert_eq!(
        pushed(&workspace, "backend"),
        [format!("refs/heads/{}", workspace.session_branch("backend"))]
    );
    assert!(
        files(&workspace, "backend").contains("T003.txt") && files(&workspace, "web").contains("T002.txt")
    );
    workspace.arborist(["workspace", "status"]).succeeds().never("unpushed");
}

#[test]
fn a_branch_that_the_remote_removes_after_the_push_is_not_reported_as_pushed() {
    let workspace = with_remotes();
    let hook = "#!/bin/sh\nwhile read -r old new name; do git update-ref -d \"$name\"; done\n";
    workspace.write_script("../backend.git/hooks/post-receive", hook);
    let missing = "it is not there after the push; see its hooks there, such as post-receive";
    workspace
        .arborist(["gardener", "-v"])
        .succeeds()
        .err(missing)
        .never("  pushed backend:")
        .err("pushed web:");
    workspace.arborist(["workspace", "status"]).succeeds().out("unpushed");
    workspace.arborist(["workspace", "push"]).exits(1).err(missing).never("backend: pushed");
    fs::remove_file(workspace.remote_of("backend").join("hooks/post-receive")).unwrap();
    workspace.arborist(["workspace", "push"]).succeeds().out("backend: pushed");
    assert_eq!(pushed(&workspace, "backend").len(), 1);
}

#[test]
fn a_run_without_remotes_fetches_and_pushes_nothing() {
    let workspace = workspace();
    workspace.arborist(["gardener"]).succeeds().never("fetched").never("pushed");
    assert_eq!(pushed(&workspace, "backend"), [""; 0]);
}

#[test]
fn the_push_policy_never_pushes_nothing_despite_a_remote() {
    let workspace = with_remotes();
    workspace.set("backend", "push", "never");
    workspace.arborist(["gardener"]).succeeds();
    assert_eq!((pushed(&workspace, "backend").len(), pushed(&workspace, "web").len()), (0, 1));
    workspace.arborist(["workspace", "status"]).succeeds().out("unpushed by");
}

#[test]
fn a_failed_run_is_not_pushed_until_it_succeeds() {
    let workspace = with_remotes();
    workspace.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    workspace.arborist(["gardener", "--test-command", "false", "--max-retries", "1"]).exits(1);
    assert_eq!(pushed(&workspace, "backend"), [""; 0]);
    workspace.arborist(["gardener", "--retry-failed", "--test-command", "true"]).succeeds();
    assert_eq!((pushed(&workspace, "backend").len(), pushed(&workspace, "web").len()), (1, 1));
}

/// The last task waits until the remote has the first one's work: a run that pushed only at its end would fail.
const PATIENT: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T003*) n=0
    until git --git-dir="$ROOT/backend.git" log --all --format=%s | grep -q T001@implement-pass; do
      n=$((n+1)); [ $n -gt 2400 ] && exit 1; sleep 0.05
    done
    git --git-dir="$ROOT/web.git" for-each-ref | grep -q session && exit 1
    echo x > T003.txt; echo done ;;
  *) task=$(echo "$prompt" | sed -n 's/^Implement task \([^:]*\):.*/\1/p')
     echo x > "$task.txt"; echo done ;;
esac
"#;

#[test]
fn the_push_policy_on_checkpoint_pushes_during_the_run() {
    let workspace = with_remotes();
    workspace.set("backend", "push", "on_checkpoint");
    workspace.agent(PATIENT);
    workspace.arborist(["gardener", "--max-retries", "1"]).succeeds();
    assert!(
        files(&workspace, "backend").contains("T003.txt") && files(&workspace, "web").contains("T002.txt")
    );
}

/// The remote is away while T001 is committed. T002 commits itself, brings the remote back and waits for the next try.
const COMMITS_ITSELF: &str = r#"
case "$prompt" in "Review"*) echo APPROVED; exit ;; esac
if [ $ARBORIST_TASK = T001 ]; then mv "$ROOT/repo.git" "$ROOT/gone"; fi
echo x > "$ARBORIST_TASK.txt"
if [ $ARBORIST_TASK = T002 ]; then
  git add T002.txt; git commit -qm "by the agent"; mv "$ROOT/gone" "$ROOT/repo.git"
  for i in $(seq 1800); do
    git --git-dir="$ROOT/repo.git" for-each-ref refs/heads/arborist | grep -q . && break; sleep 0.1
  done
  git --git-dir="$ROOT/repo.git" log --branches --format=%s > "$ROOT/seen"
fi
echo done
"#;

#[test]
fn a_commit_that_an_agent_made_itself_is_not_pushed_before_it_is_folded() {
    let workspace = TestWorkspace::of(&[], "- [ ] T001 a\n- [ ] T002 b\n");
    workspace.agent(COMMITS_ITSELF);
    workspace.git_in(workspace.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
    workspace.git(["config", "--global", "arborist.workspace.repos.app.path", "."]).succeeds();
    workspace.set("app", "remote", workspace.root().join("repo.git").to_str().unwrap());
    workspace.set("app", "push", "on_checkpoint");
    workspace.arborist(["gardener"]).succeeds();
    let seen = fs::read_to_string(workspace.root().join("seen")).unwrap();
    assert!(seen.contains("@T001@") && !seen.contains("by the agent"), "{seen}");
    let remote = workspace.root().join("repo.git");
    let pushed = workspace.git_in(&remote, ["log", "--branches", "--format=%s"]).answer();
    assert!(pushed.contains("@T002@") && !pushed.contains("by the agent"), "{pushed}");
}

#[test]
fn a_failed_run_has_pushed_its_checkpoints_and_continues_to_push() {
    let workspace = with_remotes();
    workspace.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    workspace.set("backend", "push", "on_checkpoint");
    workspace.arborist(["gardener", "--test-command", "false", "--max-retries", "1"]).exits(1);
    assert!(files(&workspace, "backend").contains("T001.txt"));
    assert_eq!(pushed(&workspace, "web"), [""; 0]);
    workspace.arborist(["gardener", "--retry-failed", "--test-command", "true"]).succeeds();
    assert!(files(&workspace, "backend").contains("T003.txt"));
    workspace.arborist(["workspace", "status"]).succeeds().never("unpushed");
}

#[test]
fn a_remote_that_disappears_during_a_run_causes_a_warning_and_no_loss() {
    let workspace = with_remotes();
    workspace.set("backend", "push", "on_checkpoint");
    workspace.arborist(["gardener", "--dry-run"]).succeeds().out("    in         backend\n");
    workspace
        .agent(&WORKER.replace("echo x >", "mv \"$ROOT/backend.git\" \"$ROOT/gone\" 2>/dev/null; echo x >"));
    let run = workspace.arborist(["gardener", "-v"]).succeeds().err("warning: 'backend' was not pushed");
    let run =
        run.out("  unpushed backend: the last push failed\n").out("  next     git arborist workspace push\n");
    let run = run.err("  pushed web: ").out("  merge    in backend: git merge ");
    assert_eq!(run.stderr().matches("was not pushed").count(), 1, "said once: {}", run.stderr());
    workspace
        .arborist(["state", "--exit-code"])
        .succeeds()
        .out("backend: unpushed by ")
        .never("web: unpushed");
    workspace.arborist(["workspace", "status"]).succeeds().out("unpushed by");
    fs::rename(workspace.root().join("gone"), workspace.remote_of("backend")).unwrap();
    workspace.arborist(["workspace", "push"]).succeeds();
    assert!(files(&workspace, "backend").contains("T003.txt"));
    workspace.arborist(["state"]).succeeds().never("unpushed");
}

#[test]
fn a_remote_that_hangs_times_out_and_the_run_reports_its_base() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let workspace = workspace();
    workspace.set("backend", "remote", &format!("git://{}/backend.git", listener.local_addr().unwrap()));
    workspace.git(["config", "--global", "arborist.timeouts.network", "1"]).succeeds();
    let base = workspace.git_in(&workspace.clone_of("backend"), ["rev-parse", "--short=10", "HEAD"]).answer();
    let run = workspace.arborist(["gardener"]).succeeds();
    let run = run.err("offline: the remote of 'backend' could not be reached").err(&base);
    assert!(run.stderr().contains("'backend' was not pushed"), "{}", run.stderr());
    workspace.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_run_starts_from_the_remote_branch_and_does_not_move_the_users_branch() {
    let workspace = with_remotes();
    workspace.git_in(workspace.root(), ["clone", "-q", "backend.git", "other"]).succeeds();
    let other = workspace.root().join("other");
    fs::write(other.join("theirs.txt"), "x").unwrap();
    workspace.git_in(&other, ["add", "-A"]).succeeds();
    workspace.git_in(&other, ["commit", "-q", "-m", "theirs"]).succeeds();
    workspace.git_in(&other, ["push", "-q"]).succeeds();
    let before = workspace.git_in(&workspace.clone_of("backend"), ["rev-parse", "main"]).answer();
    workspace.arborist(["gardener"]).succeeds();
    assert!(files(&workspace, "backend").contains("theirs.txt"));
    assert_eq!(workspace.git_in(&workspace.clone_of("backend"), ["rev-parse", "main"]).answer(), before);
}

#[test]
fn a_run_clones_missing_repositories_and_reports_events() {
    let workspace = with_remotes();
    fs::remove_dir_all(workspace.clone_of("backend")).unwrap();
    workspace.set("backend", "clone-depth", "1");
    let run = workspace.arborist(["gardener", "--json"]).succeeds();
    for event in [
        "\"event\":\"cloned\"",
        "\"event\":\"fetched\"",
        "\"event\":\"branch-created\"",
        "\"event\":\"pushed\"",
    ] {
        assert!(run.stdout().contains(event), "no {event} in {}", run.stdout());
    }
    assert!(files(&workspace, "backend").contains("T003.txt"));
    fs::remove_dir_all(workspace.clone_of("web")).unwrap();
    workspace.git(["config", "--global", "--unset", "arborist.workspace.repos.web.remote"]).succeeds();
    for command in [&["gardener", "--new-run"][..], &["workspace", "sync"]] {
        workspace.arborist(command).exits(1).err("workspace.repos.web.remote");
    }
}

/// The repository with the plan has a remote too, by a path that is right only in the checkout.
fn with_own_remote() -> TestWorkspace {
    let workspace = workspace();
    workspace.git_in(workspace.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
    workspace.git(["remote", "add", "origin", "../repo.git"]).succeeds();
    workspace.git(["config", "--global", "arborist.workspace.repos.plan.path", "."]).succeeds();
    workspace.set("plan", "remote", "origin");
    workspace.set("plan", "push", "on_completion");
    workspace
}

#[test]
fn the_plan_repository_is_pushed_like_any_other() {
    let workspace = with_own_remote();
    workspace.arborist(["gardener"]).succeeds().never("was not pushed");
    let branch = workspace.session_branch("repo");
    let (_, id) = branch.rsplit_once('/').unwrap();
    let expected = [format!("refs/arborist/sessions/{id}"), format!("refs/heads/{branch}")];
    assert_eq!(pushed(&workspace, "repo"), expected, "and nothing else");
    workspace.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
}

/// Where it works on the branch that is checked out, no push takes that along.
#[test]
fn a_push_policy_without_a_session_branch_causes_one_warning() {
    let workspace = with_own_remote();
    workspace.git(["config", "arborist.session.branch", "false"]).succeeds();
    let run = workspace
        .arborist(["gardener"])
        .succeeds()
        .err("'plan' was not pushed: it has no session or task branches");
    assert_eq!(run.stderr().matches("was not pushed").count(), 1, "{}", run.stderr());
}
