//! From a fresh clone: what a run has pushed is enough to go on with it, when everything else is deleted.

use std::fs;

use crate::town::Town;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] [repo:backend] do b\n- [ ] T003 do c (depends on T001, T002)\n- [ ] T004 [repo:backend] do d (depends on T003)\n";

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T003:*) test -e "$ROOT/mended" || exit 1; echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
  *) echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt" ;;
esac
"#;

fn town(policy: &str) -> Town {
    let town = Town::of_containers(PLAN, policy, "");
    town.agent(WORKER);
    town
}

/// The branch of the only session at a remote.
#[track_caller]
fn branch(town: &Town, repo: &str) -> String {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/tasks"];
    let found = town.git_in(&town.remote_of(repo), list).answer();
    assert_eq!(found.lines().count(), 1, "{repo}: {found}");
    found
}

fn files(town: &Town, repo: &str) -> Vec<String> {
    let tree = ["ls-tree", "--name-only", &branch(town, repo)];
    let files = town.git_in(&town.remote_of(repo), tree).answer();
    files.lines().filter(|name| name.starts_with('T')).map(str::to_owned).collect()
}

#[test]
fn a_clone_runs_commits_and_pushes_and_the_remote_has_it_all() {
    let town = town("on_completion");
    fs::write(town.root().join("mended"), "").unwrap();
    let run = town.arborist(["gardener", "--yes", "--json"]).succeeds();
    for event in ["cloned", "fetched", "branch-created", "pushed"] {
        assert!(run.stdout().contains(&format!("\"event\":\"{event}\"")), "no {event} in {}", run.stdout());
    }
    assert_eq!(files(&town, "repo"), ["T001.txt", "T003.txt"]);
    assert_eq!(files(&town, "backend"), ["T002.txt", "T004.txt"]);
    assert_eq!(branch(&town, "repo"), branch(&town, "backend"));
    let others = ["for-each-ref", "--format=%(refname)", "refs/heads/main", "refs/tags", "refs/arborist/wip"];
    assert_eq!(town.git_in(&town.remote_of("repo"), others).answer(), "refs/heads/main");
    town.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
    assert_eq!(town.git(["status", "--porcelain", "-b"]).answer(), "## main...origin/main");
}

#[test]
fn a_session_goes_on_in_a_new_clone_from_git_data_alone() {
    for jobs in ["1", "2"] {
        let town = town("on_checkpoint");
        town.arborist(["gardener", "--yes", "--max-retries", "1", "--jobs", jobs]).exits(1);
        let (before, work) = (branch(&town, "repo"), files(&town, "backend"));
        assert_eq!((files(&town, "repo"), work), (vec!["T001.txt".to_owned()], vec!["T002.txt".to_owned()]));
        let heads = |repo: &str| town.git_in(&town.remote_of(repo), ["rev-parse", &before]).answer();
        let (app, backend) = (heads("repo"), heads("backend"));
        town.vanish();
        town.clone_again();
        fs::write(town.root().join("mended"), "").unwrap();
        let calls = town.calls();
        let resumed = town.arborist(["session", "resume", "--yes"]).succeeds();
        resumed.err("refs of sessions from").out("2 completed (T003, T004)");
        assert_eq!(town.calls(), calls + 4, "what was complete is not done again");
        assert_eq!(files(&town, "repo"), ["T001.txt", "T003.txt"], "{jobs} jobs");
        assert_eq!(files(&town, "backend"), ["T002.txt", "T004.txt"], "{jobs} jobs");
        assert_eq!((branch(&town, "repo"), branch(&town, "backend")), (before.clone(), before.clone()));
        for (repo, old) in [("repo", app), ("backend", backend)] {
            town.git_in(&town.remote_of(repo), ["merge-base", "--is-ancestor", &old, &before]).succeeds();
        }
        town.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
        assert_eq!(town.git(["branch", "--show-current"]).answer(), "main");
    }
}

#[test]
fn what_was_begun_elsewhere_is_not_begun_again_in_silence() {
    let town = town("on_checkpoint");
    town.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    let before = branch(&town, "repo");
    let id = before.rsplit_once('/').unwrap().1;
    town.vanish();
    town.clone_again();
    fs::write(town.root().join("mended"), "").unwrap();
    let calls = town.calls();
    let said = town.arborist(["gardener", "--yes"]).exits(2);
    said.err(&format!("git arborist session resume {id}")).err("--new-run");
    assert_eq!((town.calls(), branch(&town, "repo")), (calls, before.clone()));
    // What is done stands in nobody's way, nor does what somebody else has begun.
    let mut other = town.command("git-arborist-gardener", &town.path(""));
    other.args(["--yes", "--dry-run"]).env("GIT_COMMITTER_EMAIL", "another@example.com");
    assert!(other.output().unwrap().status.success());
    town.arborist(["session", "resume", id, "--yes"]).succeeds();
    town.vanish();
    town.clone_again();
    town.arborist(["gardener", "--yes", "--dry-run"]).succeeds();
}

/// The plan and the configuration were in no commit but those of the session.
#[test]
fn what_only_the_session_has_is_found_by_the_remote_of_the_clone() {
    let town = Town::of(&[], "- [ ] T001 do a\n- [ ] T003 do c\n");
    town.agent(WORKER);
    town.git(["rm", "-q", "--cached", "tasks.md"]).succeeds();
    town.git(["commit", "-q", "-m", "no plan"]).succeeds();
    town.git_in(town.root(), ["clone", "-q", "--bare", "repo", "repo.git"]).succeeds();
    let text = "[workspace.repos.app]\npath = \".\"\nremote = \"../repo.git\"\npush = \"on_checkpoint\"\n";
    town.write(".arborist/config.toml", text);
    town.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    town.vanish();
    town.clone_again();
    fs::write(town.root().join("mended"), "").unwrap();
    let (name, id) =
        branch(&town, "repo").rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    town.arborist(["session", "resume", "zz", "--yes"]).exits(1).err("there is no session 'zz'");
    town.arborist(["session", "resume", &id[..5], "--yes"]).succeeds().out(&format!("git merge {name}/{id}"));
    assert_eq!(files(&town, "repo"), ["T001.txt", "T003.txt"]);
    town.arborist(["session", "resume"]).exits(1).err("there is no session to go on with");
}

#[test]
fn a_session_begins_at_what_the_remote_has() {
    let town = town("never");
    fs::write(town.root().join("mended"), "").unwrap();
    town.git_in(town.root(), ["clone", "-q", "repo.git", "other"]).succeeds();
    let other = town.root().join("other");
    town.git_in(&other, ["commit", "-q", "--allow-empty", "-m", "theirs"]).succeeds();
    town.git_in(&other, ["push", "-q"]).succeeds();
    let (theirs, ours) =
        (town.git_in(&other, ["rev-parse", "HEAD"]).answer(), town.git(["rev-parse", "HEAD"]).answer());
    town.arborist(["gardener", "--yes"]).succeeds().err("fetched 'app'");
    let branch = town.session_branch("repo");
    town.git(["merge-base", "--is-ancestor", &theirs, &branch]).succeeds();
    assert_eq!(town.git(["rev-parse", "main"]).answer(), ours, "the user's branch is theirs");
    let refs = town.git_in(&town.remote_of("repo"), ["for-each-ref", "--format=%(refname)"]).answer();
    assert_eq!(refs, "refs/heads/main", "never means never");
    // What the user has on top of the remote is a part of it; what has gone apart is not, and that is said.
    town.git(["merge", "-q", "--ff-only", &theirs]).succeeds();
    town.git(["commit", "-q", "--allow-empty", "-m", "mine"]).succeeds();
    town.wait(5);
    town.arborist(["gardener", "--new-run"])
        .succeeds()
        .never("without yours")
        .err("begins at")
        .err(&town.git(["rev-parse", "--short=10", "HEAD"]).answer());
    town.git_in(&other, ["commit", "-q", "--allow-empty", "-m", "more of theirs"]).succeeds();
    town.git_in(&other, ["push", "-q"]).succeeds();
    let tip = town.git_in(&other, ["rev-parse", "--short=10", "HEAD"]).answer();
    town.wait(5);
    town.arborist(["gardener", "--new-run"])
        .succeeds()
        .err(&format!("the run begins at {tip}, without yours"));
}

#[test]
fn a_branch_that_only_the_user_has_is_begun_at_and_offline_is_said() {
    let town = town("on_completion");
    fs::write(town.root().join("mended"), "").unwrap();
    town.git(["switch", "-q", "-c", "mine"]).succeeds();
    town.git(["commit", "-q", "--allow-empty", "-m", "mine"]).succeeds();
    let head = town.git(["rev-parse", "--short=10", "HEAD"]).answer();
    town.arborist(["gardener", "--yes"]).succeeds().never("offline").err(&format!("begins at {head}"));
    fs::rename(town.remote_of("repo"), town.root().join("gone")).unwrap();
    town.wait(5);
    let run = town.arborist(["gardener", "--new-run"]).succeeds();
    run.err("offline: the remote of 'app' could not be reached")
        .err(&format!("it begins at {head}, which may be behind"))
        .err("'app' was not pushed");
    town.arborist(["state"]).succeeds().out("app: unpushed by ");
    fs::rename(town.root().join("gone"), town.remote_of("repo")).unwrap();
    town.arborist(["workspace", "push"]).succeeds();
    town.arborist(["state"]).succeeds().never("unpushed");
}
