//! Lock files that a killed git has left: after a driver died, the next command removes those that are proved to be stale, and
//! names them. A lock that may be somebody's is waited for, reported and left alone.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use arborist_testkit::{Run, TestRepo};

use crate::test_workspace::TestWorkspace;

const PLAN: &str = "- [ ] T001 one\n- [ ] T002 two\n- [ ] T003 three\n";

/// The second task kills the driver once.
const AGENT: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$ARBORIST_TASK; echo "$task" > "$task.txt"
     if [ "$task" = T002 ] && [ ! -e "$ROOT/killed" ]; then touch "$ROOT/killed"; kill -9 $PPID; exit 1; fi
     echo done ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, AGENT)
}

fn gardener(repo: &TestRepo, args: &[&str]) -> Run {
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--test-command", "true"]).args(args), b"")
}

/// Every file that git could have locked: all refs, and what belongs to each worktree and to all of them.
fn lock_everything(git_dir: &Path, refs: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = refs.lines().map(|name| git_dir.join(name)).collect();
    let shared = ["HEAD", "index", "packed-refs", "config", "shallow", "refs/arborist/claims/main"];
    files.extend(shared.map(|name| git_dir.join(name)));
    for worktree in fs::read_dir(git_dir.join("worktrees")).into_iter().flatten().flatten() {
        files.extend(["HEAD", "index"].map(|name| worktree.path().join(name)));
    }
    let locks: Vec<PathBuf> =
        files.iter().map(|file| PathBuf::from(format!("{}.lock", file.display()))).collect();
    for lock in &locks {
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(lock, "").unwrap();
    }
    locks
}

fn refs(repo: &TestRepo, dir: &Path) -> String {
    repo.git_in(dir, ["for-each-ref", "--format=%(refname)"]).answer()
}

fn locks_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => locks_in(&path),
            path if path.extension().is_some_and(|ending| ending == "lock") => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

#[test]
#[cfg(target_os = "linux")]
fn a_rerun_removes_and_reports_every_lock_of_a_killed_run() {
    for args in [&["--jobs", "1"][..], &["--jobs", "2"], &["--session-branch"]] {
        let repo = repo();
        gardener(&repo, args).exits(137);
        let locks = lock_everything(&repo.path(".git"), &refs(&repo, &repo.path("")));
        assert!(
            locks.iter().any(|lock| lock.to_string_lossy().contains("refs/arborist/sessions/")),
            "{locks:?}"
        );
        let again = gardener(&repo, args);
        assert_eq!(again.code(), 0, "{args:?}: {}", again.report());
        for lock in &locks {
            assert!(
                again.stderr().contains(lock.to_str().unwrap()),
                "{args:?}: {lock:?}\n{}",
                again.report()
            );
        }
        assert_eq!(locks_in(&repo.path(".git")), Vec::<PathBuf>::new(), "{args:?}");
        let done = gardener(&repo, args);
        assert_eq!((done.code(), locks_in(&repo.path(".git")).len()), (0, 0), "{args:?}: {}", done.report());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn other_commands_remove_the_locks_of_a_killed_run_too() {
    for command in [
        &["merge", "run"][..],
        &["reset", "T001"],
        &["cleanup", "--older-than", "0"],
        &["worktree", "add", "T003"],
    ] {
        let repo = repo();
        gardener(&repo, &["--jobs", "2"]).exits(137);
        lock_everything(&repo.path(".git"), &refs(&repo, &repo.path("")));
        let run = repo.arborist(command);
        assert!(run.code() <= 2, "{command:?}: {}", run.report());
        assert_eq!(locks_in(&repo.path(".git")), Vec::<PathBuf>::new(), "{command:?}: {}", run.report());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn locks_in_the_other_repositories_of_a_workspace_are_removed_too() {
    let workspace = TestWorkspace::of(
        &["backend"],
        "- [ ] T001 [repo:backend] one\n- [ ] T002 [repo:backend] two\n- [ ] T003 three\n",
    );
    workspace.agent(AGENT);
    gardener(&workspace, &[]).exits(137);
    let backend = workspace.clone_of("backend");
    lock_everything(&backend.join(".git"), &refs(&workspace, &backend));
    gardener(&workspace, &[]).succeeds();
    assert_eq!(locks_in(&backend.join(".git")), Vec::<PathBuf>::new());
}

#[test]
fn a_lock_that_no_killed_run_explains_is_reported_with_its_path_and_kept() {
    let repo = repo();
    let lock = repo.path(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let run = gardener(&repo, &[]);
    assert_eq!(run.code(), 128, "{}", run.report());
    assert!(run.stderr().contains(lock.to_str().unwrap()), "{}", run.report());
    assert!(lock.exists());
    fs::remove_file(&lock).unwrap();
}

#[test]
fn a_lock_that_the_user_holds_briefly_is_waited_for() {
    let repo = repo();
    let lock = repo.path(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            fs::remove_file(&lock).unwrap();
        });
        gardener(&repo, &["--only", "T001"]).succeeds();
    });
}

/// The user's `git commit` waits for an editor, in the repository of a run that died.
#[test]
#[cfg(target_os = "linux")]
fn a_lock_of_a_running_git_is_kept_after_a_crash() {
    let repo = repo();
    gardener(&repo, &[]).exits(137);
    let edited = repo.root().join("edited");
    let script = format!("until [ -e '{}' ]; do sleep 0.02; done; echo mine >", edited.display());
    let mut commit = repo.command("git", &repo.path(""));
    commit.args(["commit", "-q", "-a", "--allow-empty"]).env("GIT_EDITOR", script);
    std::thread::scope(|scope| {
        let commit = scope.spawn(move || commit.status());
        let lock = repo.path(".git/index.lock");
        while !lock.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        let run = gardener(&repo, &[]);
        assert_eq!(run.code(), 128, "{}", run.report());
        assert!(run.stderr().contains("index.lock"), "{}", run.report());
        assert!(lock.exists(), "{}", run.report());
        fs::write(&edited, "").unwrap();
        assert!(commit.join().unwrap().unwrap().success());
    });
    assert_eq!(repo.git(["log", "-1", "--format=%s"]).answer(), "mine");
}

/// A driver that is killed behind its last landing. Nothing is left to land, so nobody takes the claim over.
#[test]
fn the_claim_of_a_driver_that_was_killed_after_its_last_landing_is_removed() {
    let repo = repo();
    gardener(&repo, &["--jobs", "2"]).exits(137);
    let lock = fs::read_to_string(repo.path(".git/arborist/locks/run-main")).unwrap();
    let dead: serde_json::Value = serde_json::from_str(&lock).unwrap();
    gardener(&repo, &["--jobs", "2"]).succeeds();
    let claim = serde_json::json!({ "into": "main", "holder": dead["process"], "since": 0, "until": 1 });
    let (tree, text) = (repo.git(["mktree"]).answer(), format!("claim: main\n\n{claim}\n"));
    let commit = repo.commit_object(&tree, &[], text);
    repo.git(["update-ref", "refs/arborist/claims/main", &commit]).succeeds();
    // As that driver left it.
    fs::write(repo.path(".git/arborist/locks/run-main"), lock).unwrap();
    gardener(&repo, &["--jobs", "2"]).succeeds();
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/claims"]).answer(), "");
}

/// A child that was just being started has a copy of the lock's descriptor, and may die after the driver.
#[test]
fn the_lock_of_a_killed_driver_is_waited_for_while_its_last_child_process_ends() {
    let repo = repo();
    gardener(&repo, &[]).exits(137);
    let path = repo.path(".git/arborist/locks/run-main");
    let lock = fs::File::options().read(true).write(true).open(path).unwrap();
    lock.lock().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            lock.unlock().unwrap();
        });
        let again = gardener(&repo, &[]);
        assert_eq!(again.code(), 0, "{}", again.report());
    });
}

/// A kill between two renames of one transaction: the record of a turn is written, and its branch is where it was.
#[test]
fn a_recorded_turn_that_is_missing_on_its_branch_is_added_to_it() {
    let script = r#"
opens
if [ ! -e "$ROOT/killed" ]; then
  calls 1 "Add one"; echo one > one.txt; answers 1
  touch "$ROOT/killed"; kill -9 $PPID; exit 1
fi
calls 2 "Add two"; echo two > two.txt; answers 2
ends done
"#;
    let repo = crate::turn_scripts::repo("claude", script);
    gardener(&repo, &[]).exits(137);
    let turn = repo.git(["rev-parse", "main"]).answer();
    assert!(repo.git(["log", "-1", "--format=%s"]).answer().contains("@T001@turn)"));
    repo.git(["update-ref", "refs/heads/main", "main~1"]).succeeds();
    repo.git(["read-tree", "main"]).succeeds();
    let record =
        repo.git(["for-each-ref", "--format=%(refname) %(objectname)", "refs/arborist/sessions"]).answer();
    let (name, target) = record.split_once(' ').unwrap();
    repo.write_note(name, target);
    gardener(&repo, &[]).succeeds();
    repo.git(["merge-base", "--is-ancestor", &turn, "main"]).succeeds();
    repo.git(["status", "--porcelain"]).succeeds().silent();
    assert_eq!(repo.git(["show", "main:two.txt"]).answer(), "two");
}
