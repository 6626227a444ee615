//! Refs of the user's while agents are at work: what is deleted or moved there is kept and named, and commits on the target that
//! a run did not make are listed.

use arborist_testkit::{TestRepo, pairs};
use serde_json::Value;

use crate::queue_repo::QueueRepo;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 one\n- [ ] T002 two\n";

fn repo(options: &[&str], deed: &str) -> TestRepo {
    let repo = TestRepo::with_options(options);
    repo.write("tasks.md", PLAN);
    repo.commit("a plan\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"\n\
         if [ $ARBORIST_TASK = T001 ] && [ ! -e \"$ROOT/once\" ]; then touch \"$ROOT/once\"; {{ {deed}\n}} >&2; fi"
    ));
    repo
}

fn summary(repo: &TestRepo, args: &[&str], code: i32) -> Value {
    let printed = repo.arborist([&["gardener", "--json"], args].concat()).exits(code).stdout();
    let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    last["summary"].clone()
}

fn saved(repo: &TestRepo) -> Vec<String> {
    let format = "--format=%(objectname)";
    let listed = repo.git(["for-each-ref", format, "refs/arborist/saved/moved"]).answer();
    listed.lines().map(str::to_owned).collect()
}

fn words(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|words| words.as_str().unwrap()).collect()
}

/// A commit with a file that nobody reviewed, on top of `$1`.
const FORGE: &str = "blob=$(echo evil | git hash-object -w --stdin)\n\
    tree=$( { git ls-tree \"$S\"; printf '100644 blob %s\\tevil.txt\\n' \"$blob\"; } | git mktree)\n\
    git update-ref \"$S\" $(git commit-tree $tree -p \"$S\" -m 'a commit by hand')";

#[test]
fn branches_tags_and_stashes_lost_during_a_run_are_saved_and_reported() {
    let deed = "git update-ref -d refs/heads/feature; git update-ref refs/heads/rewound $(git rev-list --max-parents=0 main)\n\
                git update-ref refs/heads/forward main; git tag -d v1; git tag -f v2 main; git stash clear";
    let places = [&[][..], &["--session-branch"], &["--isolate"]];
    for (args, options) in pairs(&places, &[&[][..], &["--object-format=sha256"]]) {
        let repo = repo(options, deed);
        repo.write("more.txt", "more\n");
        repo.commit("more\n");
        for branch in ["feature", "rewound"] {
            repo.git(["branch", branch]).succeeds();
        }
        repo.git(["branch", "forward", "main~1"]).succeeds();
        let tree = repo.git(["rev-parse", "main^{tree}"]).answer();
        let main = repo.git(["rev-parse", "main"]).answer();
        let feature = repo.commit_object(&tree, std::slice::from_ref(&main), "work\n");
        repo.git(["update-ref", "refs/heads/feature", &feature]).succeeds();
        repo.git(["tag", "v1", &feature]).succeeds();
        repo.git(["tag", "-a", "-m", "two", "v2", "main~1"]).succeeds();
        let tag = repo.git(["rev-parse", "v2"]).answer();
        // Those of them that are packed are found, too.
        repo.git(["pack-refs", "--all"]).succeeds();
        let mut wanted = vec![feature.clone(), feature, main, tag];
        for text in ["first", "second"] {
            repo.write("more.txt", text);
            repo.git(["stash", "-q"]).succeeds();
            wanted.push(repo.git(["rev-parse", "refs/stash"]).answer());
        }
        let summary = summary(&repo, args, 0);
        let mut kept = saved(&repo);
        kept.sort();
        wanted.sort();
        assert_eq!(kept, wanted, "{args:?}");
        let moved = words(&summary["moved_refs"]);
        assert_eq!(moved.len(), 6, "{moved:?}");
        for name in
            ["refs/heads/feature was deleted", "refs/heads/rewound was moved", "refs/tags/v1 was deleted"]
        {
            assert!(moved.iter().any(|words| words.starts_with(name)), "{name}: {moved:?}");
        }
        assert!(repo.git(["rev-parse", "-q", "--verify", "refs/heads/feature"]).code() != 0);
    }
}

#[test]
fn refs_lost_in_a_reftable_repository_are_saved_and_reported() {
    let repo = repo(&["--ref-format=reftable"], "git update-ref -d refs/heads/feature; git tag -d v1");
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.git(["branch", "feature"]).succeeds();
    repo.git(["tag", "v1"]).succeeds();
    let summary = summary(&repo, &[], 0);
    assert_eq!(saved(&repo), [main.clone(), main]);
    assert_eq!(words(&summary["moved_refs"]).len(), 2, "{summary}");
}

#[test]
fn new_or_moved_forward_refs_are_not_reported_as_lost() {
    let repo = repo(&[], "git branch other; git tag new; git update-ref refs/heads/forward main");
    repo.write("more.txt", "more\n");
    repo.commit("more\n");
    repo.git(["branch", "forward", "main~1"]).succeeds();
    repo.write("more.txt", "stashed\n");
    repo.git(["stash", "-q"]).succeeds();
    for args in [&[][..], &["--new-run", "--isolate"]] {
        let summary = summary(&repo, args, 0);
        assert!(words(&summary["moved_refs"]).is_empty(), "{summary}");
        assert_eq!(summary["foreign_commits"], serde_json::json!([]));
    }
    assert!(saved(&repo).is_empty());
}

#[test]
fn new_commits_on_branches_of_the_user_are_reported() {
    for (args, branch) in [(&[][..], "release"), (&["--session-branch"], "main"), (&["--isolate"], "release")]
    {
        let repo = repo(&[], &format!("S=refs/heads/{branch}; {FORGE}"));
        repo.git(["branch", "release"]).succeeds();
        let summary = summary(&repo, args, 0);
        let moved = words(&summary["moved_refs"]);
        assert_eq!(moved.len(), 1, "{moved:?}");
        let start = format!("during the run, refs/heads/{branch} got 1 commit that the run did not make");
        assert!(moved[0].starts_with(&start), "{moved:?}");
    }
}

#[test]
fn new_stashes_are_reported() {
    for args in [&[][..], &["--isolate"]] {
        let repo = repo(&[], "echo evil >> tasks.md; git stash push -q -- tasks.md");
        let summary = summary(&repo, args, 0);
        let stash = repo.git(["rev-parse", "--short=10", "refs/stash"]).answer();
        let moved = words(&summary["moved_refs"]);
        assert_eq!(moved, [format!("the stash {stash} was created during the run")]);
    }
}

#[test]
fn remote_tracking_refs_that_change_during_a_run_are_reported() {
    let repo = repo(
        &[],
        &format!("S=refs/remotes/origin/main; {FORGE}; git update-ref refs/remotes/origin/new HEAD"),
    );
    repo.git(["update-ref", "refs/remotes/origin/main", "main"]).succeeds();
    repo.git(["update-ref", "refs/remotes/origin/other", "main"]).succeeds();
    let summary = summary(&repo, &[], 0);
    let moved = words(&summary["moved_refs"]);
    let start = "remote-tracking refs were changed during the run, perhaps by 'git fetch': \
                 refs/remotes/origin/main, refs/remotes/origin/new";
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert!(moved[0].starts_with(start), "{moved:?}");
}

#[test]
fn refs_and_files_that_shadow_a_branch_are_reported_or_removed() {
    let tagged = repo(&[], "git tag feature HEAD");
    tagged.git(["branch", "feature"]).succeeds();
    let summary = summary(&tagged, &[], 0);
    let moved = words(&summary["moved_refs"]);
    assert!(moved.len() == 1 && moved[0].starts_with("refs/tags/feature was created"), "{moved:?}");
    for path in ["x/feature", "refs/x/feature"] {
        let repo =
            repo(&[], &format!("mkdir -p .git/{path}; rmdir .git/{path}; git rev-parse HEAD > .git/{path}"));
        repo.git(["branch", "x/feature"]).succeeds();
        repo.arborist(["gardener"]).succeeds().err("x/feature was added while an agent or a command ran");
        assert!(!repo.path(&format!(".git/{path}")).exists(), "{path}");
    }
}

#[test]
fn the_summary_lists_commits_on_the_target_that_the_run_did_not_make() {
    let deed = format!("S=refs/heads/main; {FORGE}; git rev-parse main > \"$ROOT/forged\"");
    let read =
        |repo: &TestRepo| std::fs::read_to_string(repo.root().join("forged")).unwrap().trim().to_owned();
    let one = repo(&[], &deed);
    let summary = summary(&one, &["--isolate"], 0);
    let wanted = serde_json::json!([{ "commit": read(&one), "subject": "a commit by hand" }]);
    assert_eq!(summary["foreign_commits"], wanted);
    let other = repo(&[], &deed);
    let said = other.arborist(["gardener", "--isolate"]).succeeds().stdout();
    let line = said.lines().find(|line| line.contains("a commit by hand")).unwrap_or_default();
    assert!(line.contains(&read(&other)[..7]), "{said}");
}

#[test]
fn commits_that_an_agent_adds_to_the_session_branch_stay_and_are_listed() {
    let find = "S=$(git for-each-ref --format='%(refname)' refs/heads/arborist | grep -v /task/ | head -1)";
    let deed = format!("{find}; {FORGE}; git rev-parse \"$S\" > \"$ROOT/forged\"");
    let repo = repo(&[], &deed);
    let summary = summary(&repo, &["--session-branch", "--isolate"], 0);
    let forged = std::fs::read_to_string(repo.root().join("forged")).unwrap();
    assert_eq!(summary["foreign_commits"][0]["commit"], forged.trim());
    let branch = summary["branch"].as_str().unwrap();
    repo.git(["merge-base", "--is-ancestor", forged.trim(), branch]).succeeds();
    assert!(saved(&repo).is_empty());
}

#[test]
fn a_branch_that_a_gate_deletes_is_saved_and_reported() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    queue_repo.git(["branch", "feature"]).succeeds();
    let feature = queue_repo.git(["rev-parse", "feature"]).answer();
    let command = "git update-ref -d refs/heads/feature";
    queue_repo.git(["config", "arborist.merge.gates.check.command", command]).succeeds();
    queue_repo.merge(&["T1"]).succeeds().err("refs/heads/feature was deleted");
    assert_eq!(saved(&queue_repo), [feature]);
}

#[test]
fn a_new_branch_with_commits_is_reported() {
    for deed in [
        "git switch -q -c own; git commit -q --allow-empty -m own",
        "git branch own $(git commit-tree HEAD^{tree} -p HEAD -m own)",
    ] {
        let repo = repo(&[], deed);
        let summary = summary(&repo, &[], 0);
        let moved = words(&summary["moved_refs"]);
        assert_eq!(moved.len(), 1, "{moved:?}");
        assert!(moved[0].starts_with("refs/heads/own was created during the run"), "{moved:?}");
    }
}

/// Expires all reflogs and removes every object that no ref reaches.
const COLLECT: &str =
    "git reflog expire --expire=now --all; git -c gc.writeCommitGraph=false gc -q --prune=now";

#[test]
fn branches_and_stashes_survive_a_garbage_collection_by_an_agent() {
    let deed = format!("git branch -qD feature; git tag -d v1; git stash clear; {COLLECT}");
    for is_packed in [false, true] {
        for args in [&[][..], &["--isolate"]] {
            let repo = repo(&[], &deed);
            let tree = repo.git(["rev-parse", "main^{tree}"]).answer();
            let feature = repo.commit_object(&tree, &[], "work\n");
            repo.git(["branch", "feature", &feature]).succeeds();
            repo.git(["tag", "-a", "-m", "one", "v1"]).succeeds();
            let tag = repo.git(["rev-parse", "v1"]).answer();
            repo.write("tasks.md", "stashed\n");
            repo.git(["stash", "-q"]).succeeds();
            let mut wanted = vec![feature, tag, repo.git(["rev-parse", "refs/stash"]).answer()];
            if is_packed {
                repo.git(["gc", "-q"]).succeeds();
            }
            let summary = summary(&repo, args, 0);
            let mut kept = saved(&repo);
            kept.sort();
            wanted.sort();
            assert_eq!(kept, wanted, "{args:?}: {summary}");
            repo.git(["fsck", "--no-dangling"]).succeeds();
            assert!(!repo.path(".git/arborist/held").exists() || is_empty(&repo), "nothing stays linked");
        }
    }
}

fn is_empty(repo: &TestRepo) -> bool {
    std::fs::read_dir(repo.path(".git/arborist/held")).unwrap().next().is_none()
}

#[test]
fn uncommitted_files_survive_an_agent_that_deletes_the_runs_refs_and_collects_garbage() {
    let forget = "git for-each-ref --format='delete %(refname)' refs/arborist | git update-ref --stdin";
    let deed = format!(
        "{forget}; rm -f .git/index; rm -rf .git/logs; git reset -q --hard; git clean -fdxq; {COLLECT}"
    );
    let repo = repo(&[], &deed);
    repo.write("more.txt", "more\n");
    repo.commit("more\n");
    repo.write("more.txt", "edited\n");
    repo.write("new.txt", "untracked\n");
    repo.write("staged.txt", "staged\n");
    repo.git(["add", "staged.txt"]).succeeds();
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(repo.read("more.txt") + &repo.read("new.txt"), "edited\nuntracked\n");
    assert_eq!(repo.git(["diff", "--cached", "--name-only"]).answer(), "staged.txt");
}

#[test]
fn a_lost_detached_head_of_another_worktree_is_saved_and_reported() {
    for is_collected in [false, true] {
        let collect = if is_collected { COLLECT } else { "true" };
        let deed = format!(
            "git rev-parse main > \"$ROOT/repo/.git/worktrees/mine/HEAD\"; rm -rf \"$ROOT/repo/.git/worktrees/mine/logs\"\n\
             git -C \"$ROOT/mine\" update-ref -d refs/worktree/note; {collect}"
        );
        for args in [&[][..], &["--isolate"]] {
            let repo = repo(&[], &deed);
            let mine = repo.root().join("mine");
            repo.git(["worktree", "add", "-q", "--detach", mine.to_str().unwrap()]).succeeds();
            let tree = repo.git(["rev-parse", "main^{tree}"]).answer();
            let mut wanted = ["work\n", "a note\n"].map(|message| repo.commit_object(&tree, &[], message));
            repo.git_in(&mine, ["update-ref", "--no-deref", "HEAD", &wanted[0]]).succeeds();
            repo.git_in(&mine, ["update-ref", "refs/worktree/note", &wanted[1]]).succeeds();
            let summary = summary(&repo, args, 0);
            let mut kept = saved(&repo);
            kept.sort();
            wanted.sort();
            assert_eq!(kept, wanted, "{args:?}: {summary}");
            let moved = words(&summary["moved_refs"]);
            assert!(moved[0].starts_with("worktrees/mine/HEAD was moved"), "{moved:?}");
            assert!(moved[1].starts_with("worktrees/mine/refs/worktree/note was deleted"), "{moved:?}");
        }
    }
}

#[test]
fn a_detached_head_that_moves_to_commits_of_a_branch_is_not_reported() {
    let repo = repo(&[], "git -C \"$ROOT/mine\" checkout -q main~1");
    repo.write("more.txt", "more\n");
    repo.commit("more\n");
    repo.git(["worktree", "add", "-q", "--detach", repo.root().join("mine").to_str().unwrap()]).succeeds();
    assert!(words(&summary(&repo, &[], 0)["moved_refs"]).is_empty());
}

#[test]
fn commits_that_only_a_lost_reflog_held_are_saved_and_reported() {
    let deeds = ["rm -rf \"$(git rev-parse --git-common-dir)/logs\"", "git reflog expire --expire=now --all"];
    for (deed, args) in pairs(&deeds, &[&[][..], &["--session-branch"], &["--isolate"]]) {
        let repo = repo(&[], deed);
        repo.write("lost.txt", "older\n");
        repo.commit("older\n");
        repo.write("lost.txt", "newer\n");
        repo.commit("newer\n");
        let newer = repo.git(["rev-parse", "HEAD"]).answer();
        repo.git(["reset", "-q", "--hard", "HEAD~2"]).succeeds();
        let summary = summary(&repo, args, 0);
        // The newest one holds the other.
        assert_eq!(saved(&repo), [newer], "{deed} {args:?}");
        let moved = words(&summary["moved_refs"]);
        assert_eq!(moved.len(), 1, "{moved:?}");
        assert!(moved[0].starts_with("reflogs lost entries during the run"), "{moved:?}");
    }
}
