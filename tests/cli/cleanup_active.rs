//! What is in use is kept, and so is what nobody can tell of. What is not ours is not touched.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Child, Command},
};

use crate::cleanup_repo::CleanupRepo;
use arborist_testkit::TaskCommit;

const ALL: &[&str] = &["--older-than", "0", "--force"];

/// A process that is in a folder for as long as this lives.
struct Sleeper(Child);

impl Sleeper {
    fn in_folder(folder: &Path) -> Self {
        Self(Command::new("sleep").arg("60").current_dir(folder).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A landed task with a worktree that is clean: without more, both would go.
fn done(task: &str) -> CleanupRepo {
    let repo = CleanupRepo::new();
    repo.branch(task, "t.txt", "t");
    repo.land(task);
    repo.worktree(task);
    repo
}

/// That neither goes, for this reason, and that both do without it.
fn expect_branch_and_worktree_kept(repo: &CleanupRepo, reason: &str) {
    for (kind, name) in [("worktree", "T1"), ("branch", "main/T1")] {
        let (verdict, why) = repo.verdict(ALL, kind, name);
        assert!(verdict == "keep" && why.contains(reason), "{kind}: {verdict}, {why}");
    }
    repo.cleanup(ALL).succeeds();
    assert!(repo.has("T1") && repo.root().join("repo.arborist/T1/a.txt").exists());
}

fn expect_branch_and_worktree_removed(repo: &CleanupRepo) {
    repo.cleanup(ALL).succeeds();
    assert!(!repo.has("T1") && !repo.root().join("repo.arborist/T1").exists());
}

/// To be unlocked, not only dropped: a child that another test is just starting has a copy of the descriptor.
fn locked(repo: &CleanupRepo, name: &str) -> fs::File {
    let path = repo.path(".git/arborist/locks").join(name);
    let file = fs::File::options().create(true).append(true).open(path).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn branch_and_worktree_are_kept_while_a_run_or_landing_holds_its_lock() {
    let repo = done("T1");
    let lock = locked(&repo, "run-main");
    expect_branch_and_worktree_kept(&repo, "a run of 'main' is active");
    lock.unlock().unwrap();
    let lock = locked(&repo, "landing-main");
    expect_branch_and_worktree_kept(&repo, "a run of 'main' is active");
    lock.unlock().unwrap();
    expect_branch_and_worktree_removed(&repo);
}

#[test]
fn a_worktree_in_which_worktree_run_is_active_is_kept() {
    let repo = done("T1");
    let mut command = repo.command("git-arborist-worktree", &repo.path(""));
    let mut child =
        command.args(["run", "T1", "--", "sh", "-c", "touch ../../on; sleep 60"]).spawn().unwrap();
    while !repo.root().join("on").exists() {
        std::thread::yield_now();
    }
    expect_branch_and_worktree_kept(&repo, "");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn tasks_claimed_by_a_landing_on_another_machine_are_kept_until_its_lease_ends() {
    let repo = done("T1");
    let claim = r#"{"into":"main","holder":{"pid":1,"host":"elsewhere","started":"1","boot":"another"},"since":1739716222,"until":1739716822}"#;
    let tree = repo.git(["rev-parse", "main^{tree}"]).answer();
    let commit = repo.commit_object(&tree, &[], format!("claim\n\n{claim}\n"));
    repo.git(["update-ref", "refs/arborist/claims/main", &commit]).succeeds();
    expect_branch_and_worktree_kept(&repo, "a process is landing tasks of its run");
    assert_eq!(repo.verdict(ALL, "claim", "main").1, "a process is landing tasks of its run");
    repo.wait(601);
    expect_branch_and_worktree_removed(&repo);
    assert_eq!(repo.refs("refs/arborist/claims"), [""; 0]);
}

#[test]
fn a_worktree_is_kept_while_it_is_the_current_folder_of_a_process() {
    let repo = done("T1");
    let path = repo.root().join("repo.arborist/T1");
    fs::create_dir(path.join("sub")).unwrap();
    let sleeper = Sleeper::in_folder(&path.join("sub"));
    let (_, why) = repo.verdict(ALL, "worktree", "T1");
    assert_eq!(why, format!("process {} is in it", sleeper.0.id()));
    repo.cleanup(ALL).succeeds();
    assert!(path.exists() && repo.has("T1"), "a branch goes only with its worktree");
    drop(sleeper);
    let said = repo.arborist_in(&path.join("sub"), ["cleanup", "--older-than", "0"]).succeeds();
    said.out("it is your current folder").out("checked out at T1");
    assert!(path.exists() && repo.has("T1"));
    expect_branch_and_worktree_removed(&repo);
}

#[test]
fn a_queued_branch_is_never_deleted() {
    let repo = done("T1");
    repo.commit_complete(&TaskCommit::new("T1", "complete").trailer("Session", "s1"));
    repo.git(["update-ref", "refs/arborist/queue/tickets/main/T1", "main"]).succeeds();
    expect_branch_and_worktree_kept(&repo, "it is queued and has not landed");
    repo.git(["update-ref", "-d", "refs/arborist/queue/tickets/main/T1"]).succeeds();
    expect_branch_and_worktree_removed(&repo);
}

#[test]
fn a_worktree_that_the_user_created_or_locked_is_kept() {
    let repo = done("T1");
    let path = repo.root().join("repo.arborist/T1");
    let path = path.to_str().unwrap();
    repo.git(["worktree", "unlock", path]).succeeds();
    assert_eq!(repo.verdict(ALL, "worktree", "T1").1, "git arborist did not make it");
    repo.git(["worktree", "lock", "--reason", "a disk of mine", path]).succeeds();
    assert_eq!(
        repo.verdict(ALL, "worktree", "T1").1,
        "it is locked with 'git worktree lock': a disk of mine"
    );
    repo.cleanup(ALL).succeeds();
    assert!(Path::new(path).exists() && repo.has("T1"));
}

#[test]
fn a_branch_that_is_checked_out_in_any_worktree_is_kept() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t.txt", "t");
    repo.land("T1");
    let elsewhere = repo.root().join("mine");
    repo.git(["worktree", "add", "-q", elsewhere.to_str().unwrap(), "arborist/task/main/T1"]).succeeds();
    let (verdict, why) = repo.verdict(ALL, "branch", "main/T1");
    assert!(verdict == "keep" && why.starts_with("checked out at ") && why.ends_with("mine"), "{why}");
    repo.git(["worktree", "remove", elsewhere.to_str().unwrap()]).succeeds();
    repo.git(["checkout", "-q", "arborist/task/main/T1"]).succeeds();
    assert_eq!(repo.verdict(ALL, "branch", "main/T1").0, "keep");
    repo.cleanup(ALL).succeeds();
    assert!(repo.has("T1"));
}

#[test]
fn a_branch_during_a_rebase_or_bisect_is_kept() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "a.txt", "theirs");
    repo.write("a.txt", "ours");
    repo.commit("ours\n");
    let elsewhere = repo.root().join("mine");
    repo.git(["worktree", "add", "-q", elsewhere.to_str().unwrap(), "arborist/task/main/T1"]).succeeds();
    repo.git_in(&elsewhere, ["rebase", "-q", "main"]).exits(1);
    assert_eq!(repo.verdict(ALL, "branch", "main/T1").1, "in the middle of a rebase");
    repo.cleanup(ALL).succeeds();
    assert!(repo.has("T1"));
    repo.git_in(&elsewhere, ["rebase", "--abort"]).succeeds();
    repo.git_in(&elsewhere, ["bisect", "start", "HEAD", "HEAD~1"]).succeeds();
    repo.git_in(&elsewhere, ["checkout", "-q", "--detach"]).succeeds();
    assert_eq!(repo.verdict(ALL, "branch", "main/T1").1, "in the middle of a bisect");
}

#[test]
fn a_branch_with_commits_missing_from_its_upstream_is_kept() {
    let repo = CleanupRepo::new();
    let remote = repo.root().join("remote.git");
    repo.git(["init", "-q", "--bare", remote.to_str().unwrap()]).succeeds();
    repo.git(["remote", "add", "origin", remote.to_str().unwrap()]).succeeds();
    repo.branch("T1", "t.txt", "t");
    repo.git(["push", "-q", "-u", "origin", "arborist/task/main/T1"]).succeeds();
    let tip = repo.commit_on("arborist/task/main/T1", "u.txt", "u", "more\n");
    repo.git(["update-ref", "refs/heads/arborist/task/main/T1", &tip]).succeeds();
    repo.land("T1");
    let (verdict, why) = repo.verdict(ALL, "branch", "main/T1");
    assert_eq!(
        (verdict.as_str(), why.as_str()),
        ("keep", "not all of it is pushed to origin/arborist/task/main/T1")
    );
    repo.git(["push", "-q", "origin", "arborist/task/main/T1"]).succeeds();
    repo.cleanup(ALL).succeeds();
    assert!(!repo.has("T1"));
    assert!(
        !repo.read(".git/config").contains("branch \"arborist/task/main/T1\""),
        "nor what was configured for it"
    );
}

#[test]
fn branch_and_worktree_of_a_paused_session_are_kept() {
    let repo = done("T1");
    repo.session("s1", ("main", "run"), r#""kind":"pause","why":"lunch""#);
    expect_branch_and_worktree_kept(&repo, "its session is paused, so it can be continued");
    repo.session("s1", ("main", "run"), r#""kind":"end","result":"complete""#);
    expect_branch_and_worktree_removed(&repo);
}

#[test]
fn the_branch_of_a_finished_session_is_saved_and_removed() {
    let repo = CleanupRepo::new();
    let tip = repo.commit_on("main", "s.txt", "s", "work of a session\n");
    repo.session_branch("arborist/gardener/s7", &tip);
    repo.session("s7", ("arborist/gardener/s7", "run"), r#""kind":"pause","why":"lunch""#);
    assert_eq!(
        repo.verdict(ALL, "session", "arborist/gardener/s7").1,
        "its session is paused, so it can be continued"
    );
    repo.session("s7", ("arborist/gardener/s7", "run"), r#""kind":"end","result":"failed""#);
    assert_eq!(repo.verdict(&[], "session", "arborist/gardener/s7").1, "younger than 7d");
    let path = repo.root().join("repo.arborist/session-s7");
    let place = path.to_str().unwrap();
    let add =
        ["worktree", "add", "-q", "--lock", "--reason", "arborist session", place, "arborist/gardener/s7"];
    repo.git(add).succeeds();
    fs::write(path.join("new"), "new").unwrap();
    repo.age(8 * 86_400);
    let said = repo.cleanup(&["s7"]).succeeds();
    said.out("not committed: new")
        .out("1 commit is not merged")
        .out("the branch of its session still exists");
    fs::remove_file(path.join("new")).unwrap();
    repo.cleanup(&["s7", "--force"]).succeeds().out("saved first");
    assert!(!path.exists());
    assert_eq!(repo.refs("refs/heads/arborist"), [""; 0]);
    assert_eq!(repo.refs("refs/arborist/sessions").len(), 1, "its records have a limit of their own");
    repo.cleanup(&["restore", "arborist%2Fgardener%2Fs7"]).succeeds();
    assert_eq!(repo.git(["rev-parse", "arborist/gardener/s7"]).answer(), tip);
    repo.git(["update-ref", "-d", "refs/heads/arborist/gardener/s7"]).succeeds();
    repo.git(["config", "arborist.cleanup.keep-records", "30d"]).succeeds();
    let young = repo.cleanup(&["--force", "--only", "sessions", "--older-than", "30d"]).succeeds();
    young.out("younger than 30d").never("--older-than 0");
    repo.git(["config", "arborist.cleanup.keep-records", "1w"]).succeeds();
    repo.cleanup(&["--only", "sessions"])
        .succeeds()
        .out("saved as refs/arborist/saved/2025-02-24/sessions/s7/head-");
    assert_eq!(repo.refs("refs/arborist/sessions"), [""; 0]);
    repo.cleanup(&["restore", "sessions/s7"]).succeeds().out("'refs/arborist/sessions/s7' is at");
}

#[test]
fn cleanup_removes_branches_of_crashed_sessions_but_not_of_sessions_with_another_driver() {
    let repo = CleanupRepo::new();
    let tip = repo.commit_on("main", "s.txt", "s", "work of a session\n");
    repo.git(["config", "arborist.workspace.repos.repo.path", "."]).succeeds();
    repo.git(["config", "arborist.workspace.repos.repo.branch-prefix", "bots/"]).succeeds();
    let resumed = format!(r#""kind":"resume","turn":null,"commit":"{tip}""#);
    for (session, driver) in [("s8", "run"), ("s9", "other")] {
        let branch = format!("bots/gardener/{session}");
        let tip = repo.commit_on("main", session, session, "work of a session\n");
        repo.session_branch(&branch, &tip);
        repo.git(["update-ref", &format!("refs/remotes/origin/{branch}"), &tip]).succeeds();
        repo.session(session, (&branch, driver), &resumed);
    }
    let (verdict, why) = repo.verdict(ALL, "session", "bots/gardener/s8");
    assert_eq!(
        (verdict.as_str(), why.as_str()),
        ("save", "saved first"),
        "whatever its prefix is, and though it was pushed"
    );
    repo.cleanup(ALL).succeeds();
    assert_eq!(repo.refs("refs/heads/bots"), ["refs/heads/bots/gardener/s9"]);
    assert_eq!(repo.refs("refs/arborist/saved").len(), 1);
}

#[test]
fn a_branch_of_the_user_on_which_a_session_worked_is_kept() {
    let repo = CleanupRepo::new();
    repo.git(["checkout", "-q", "-b", "feature"]).succeeds();
    repo.session("s1", ("main", "run"), r#""kind":"end","result":"complete""#);
    repo.cleanup(ALL).succeeds();
    assert_eq!(repo.refs("refs/heads"), ["refs/heads/feature", "refs/heads/main"]);
}

#[test]
fn branch_and_worktree_are_kept_if_their_use_cannot_be_determined() {
    let repo = done("T1");
    let locks = repo.path(".git/arborist/locks");
    let lock = fs::read_dir(&locks)
        .unwrap()
        .flatten()
        .find(|e| e.file_name().to_string_lossy().starts_with("worktree-T1"));
    let lock = lock.unwrap().path();
    fs::remove_file(&lock).unwrap();
    symlink(&lock, &lock).unwrap();
    assert!(
        repo.verdict(ALL, "worktree", "T1").1.starts_with("not known: whether a process is working in it")
    );
    fs::remove_file(&lock).unwrap();
    let index = repo.path(".git/worktrees/T1/index");
    let known = fs::read(&index).unwrap();
    fs::write(&index, "garbage").unwrap();
    assert!(repo.verdict(ALL, "worktree", "T1").1.starts_with("not known: which files are in it"));
    repo.cleanup(ALL).succeeds();
    fs::write(&index, known).unwrap();
    symlink("run-main", locks.join("run-main"))
        .or_else(|_| {
            fs::remove_file(locks.join("run-main")).and_then(|()| symlink("run-main", locks.join("run-main")))
        })
        .unwrap();
    expect_branch_and_worktree_kept(&repo, "not known: whether 'main' is active");
    fs::remove_file(locks.join("run-main")).unwrap();
    expect_branch_and_worktree_removed(&repo);
}

#[test]
fn cleanup_changes_only_what_git_arborist_created() {
    let repo = done("T1");
    repo.git(["branch", "feature/x"]).succeeds();
    repo.git(["branch", "arborist/mine"]).succeeds();
    repo.git(["branch", "arborist/task/nobody/T1"]).succeeds();
    repo.git(["branch", "arborist/task/main/sub/T1"]).succeeds();
    repo.git(["update-ref", "refs/other/x", "HEAD"]).succeeds();
    repo.write("a.txt", "stashed");
    repo.git(["stash", "-q"]).succeeds();
    let mine = repo.root().join("repo.arborist/my notes");
    fs::create_dir_all(&mine).unwrap();
    fs::write(mine.join("n"), "n").unwrap();
    let loose = repo.git(["hash-object", "-w", "--stdin"]).answer();
    assert_eq!(repo.verdict(ALL, "branch", "nobody/T1").1, "nothing proves that git arborist made it");
    let before = repo.git(["for-each-ref"]).answer();
    repo.cleanup(ALL).succeeds();
    let gone = "refs/heads/arborist/task/main/T1";
    let kept: Vec<&str> = before.lines().filter(|line| !line.ends_with(gone)).collect();
    assert_eq!(repo.git(["for-each-ref"]).answer().lines().collect::<Vec<_>>(), kept);
    assert!(mine.join("n").exists());
    repo.git(["cat-file", "-e", &loose]).succeeds();
}

#[test]
fn a_worktree_outside_the_configured_folder_is_kept() {
    let repo = done("T1");
    repo.git(["config", "arborist.worktree.base", "../elsewhere"]).succeeds();
    assert!(repo.verdict(ALL, "worktree", "T1").1.starts_with("it is not in "));
    repo.cleanup(ALL).succeeds();
    assert!(repo.root().join("repo.arborist/T1").exists() && repo.has("T1"));
}
