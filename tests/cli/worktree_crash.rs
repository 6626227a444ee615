//! Worktrees survive: whoever is killed at whatever moment, and however many ask at once.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
};

use arborist_testkit::{Run, TestRepo};

use crate::killing_git;

fn repo() -> TestRepo {
    let repo = TestRepo::init();
    repo.write(".gitignore", "cache\n");
    repo.write("a", "a");
    repo.write("dir/b", "b");
    repo.commit("files\n");
    killing_git::plant(&repo);
    repo
}

fn arborist(repo: &TestRepo, args: &[&str]) -> Run {
    Run::of(repo.command("git-arborist-worktree", &repo.path("")).args(args), b"")
}

/// Runs the command again and again, killed one call of git later each time, until it is not killed any more. After each
/// time the same command must come to its end by itself.
fn kill_everywhere(
    how: &str,
    prepare: impl Fn(&TestRepo) -> Vec<&'static str>,
    check: impl Fn(&TestRepo, &Path),
) {
    let mut repo = repo();
    for n in 1..60 {
        let command = prepare(&repo);
        fs::write(repo.root().join("kill"), format!("{n} {how}\n")).unwrap();
        let killed = arborist(&repo, &command);
        fs::remove_file(repo.root().join("kill")).unwrap();
        let was_killed = killed.code() == 137;
        assert!(was_killed || killed.code() == 0, "{}", killed.report());
        let path = PathBuf::from(arborist(&repo, &command).answer());
        check(&repo, &path);
        assert_eq!(locks(&repo), Vec::<PathBuf>::new(), "killed {how} call {n}");
        if !was_killed {
            assert!(n > 5, "nothing was killed");
            repo.git(["fsck", "--strict"]).succeeds();
            return;
        }
        repo = self::repo();
    }
    panic!("it never ended");
}

/// Lock files that git left.
fn locks(repo: &TestRepo) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![repo.path(".git")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lock") {
                found.push(path);
            }
        }
    }
    found
}

fn is_whole(repo: &TestRepo, path: &Path, task: &str) {
    let branch = repo.git_in(path, ["branch", "--show-current"]).answer();
    assert_eq!(branch, format!("arborist/task/main/{task}"));
    assert_eq!(repo.git_in(path, ["status", "--porcelain"]).answer(), "");
    assert_eq!(fs::read_to_string(path.join("dir/b")).unwrap(), "b");
    let listed = repo.git(["worktree", "list", "--porcelain"]).answer();
    let count = listed.lines().filter(|line| line.starts_with("worktree ")).count();
    assert_eq!(count, 2, "nothing is left half made: {listed}");
}

#[test]
fn adding_a_worktree_can_be_killed_at_any_moment() {
    kill_everywhere("after", |_| vec!["add", "T1"], |repo, path| is_whole(repo, path, "T1"));
}

#[test]
fn taking_a_free_lane_can_be_killed_at_any_moment() {
    let prepare = |repo: &TestRepo| {
        let lane = PathBuf::from(arborist(repo, &["add", "--lane", "T1"]).answer());
        fs::write(lane.join("left"), "behind").unwrap();
        fs::write(lane.join("cache"), "warm").unwrap();
        arborist(repo, &["recycle", "T1"]).succeeds();
        vec!["add", "--lane", "T2"]
    };
    kill_everywhere("before", prepare, |repo, path| {
        is_whole(repo, path, "T2");
        assert_eq!(fs::read_to_string(path.join("cache")).unwrap(), "warm");
        let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
        let first = saved.lines().next().unwrap();
        assert_eq!(repo.git(["show", &format!("{first}:left")]).answer(), "behind");
    });
}

#[test]
fn removing_a_worktree_can_be_killed_at_any_moment() {
    for n in 1..60 {
        let repo = repo();
        let path = PathBuf::from(arborist(&repo, &["add", "T1"]).answer());
        fs::write(path.join("new"), "new").unwrap();
        fs::write(repo.root().join("kill"), format!("{n} after\n")).unwrap();
        let killed = arborist(&repo, &["remove", "--force", "T1"]);
        fs::remove_file(repo.root().join("kill")).unwrap();
        let again = arborist(&repo, &["remove", "--force", "T1"]);
        assert!([0, 1].contains(&again.code()), "{}", again.report());
        arborist(&repo, &["prune"]).succeeds();
        assert!(!path.exists());
        assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 1);
        let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
        assert_eq!(repo.git(["show", &format!("{saved}:new")]).answer(), "new");
        if killed.code() == 0 {
            return;
        }
    }
    panic!("it never ended");
}

/// What `git worktree add` writes, in this order. Each file is there before anything is in it.
fn write_half(home: &Path, path: &Path, steps: usize) {
    let link = format!("{}\n", path.join(".git").display());
    let back = format!("gitdir: {}\n", home.display());
    let files = [
        (home.join("locked"), "arborist lane\n"),
        (home.join("gitdir"), link.as_str()),
        (path.join(".git"), back.as_str()),
        (home.join("commondir"), "../..\n"),
        (home.join("HEAD.lock"), "0123"),
    ];
    fs::create_dir_all(home).unwrap();
    for (step, (file, text)) in files.iter().enumerate() {
        if steps > 2 * step {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, if steps > 2 * step + 1 { *text } else { "" }).unwrap();
        }
    }
}

#[test]
fn a_worktree_that_a_killed_git_left_incomplete_is_repaired() {
    for steps in 0..=10 {
        let repo = repo();
        let path = PathBuf::from(arborist(&repo, &["add", "T1"]).answer());
        arborist(&repo, &["remove", "T1"]).succeeds();
        write_half(&repo.path(".git/worktrees/T1"), &path, steps);
        fs::write(repo.path(".git/arborist/locks/worktrees.making"), path.display().to_string()).unwrap();
        let added = arborist(&repo, &["add", "T1"]);
        assert_eq!(added.code(), 0, "{steps}: {}", added.report());
        assert_eq!(PathBuf::from(added.answer()), path, "{steps}");
        is_whole(&repo, &path, "T1");
        repo.git(["fsck"]).succeeds();
    }
}

/// A run that makes its worktrees itself, in each of these states.
#[test]
fn a_run_continues_despite_a_worktree_that_a_killed_git_left_incomplete() {
    for steps in [1, 4, 7, 8, 9] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T1 one\n", "echo one > one.txt; echo APPROVED");
        let path = repo.root().join("repo.arborist/lane-1");
        write_half(&repo.path(".git/worktrees/lane-1"), &path, steps);
        let locks = repo.path(".git/arborist/locks");
        fs::create_dir_all(&locks).unwrap();
        fs::write(locks.join("worktrees.making"), path.display().to_string()).unwrap();
        let run = repo.arborist(["gardener", "--jobs", "2", "--test-command", "true"]);
        assert_eq!(run.code(), 0, "{steps}: {}", run.report());
        repo.git(["fsck"]).succeeds();
        assert_eq!(repo.git(["show", "main:one.txt"]).answer(), "one", "{steps}");
    }
}

#[test]
fn a_stale_index_lock_in_a_free_lane_is_removed() {
    let repo = repo();
    arborist(&repo, &["add", "--lane", "T1"]).succeeds();
    arborist(&repo, &["recycle", "T1"]).succeeds();
    fs::write(repo.path(".git/worktrees/lane-1/index.lock"), "").unwrap();
    let path = PathBuf::from(arborist(&repo, &["add", "--lane", "T2"]).answer());
    is_whole(&repo, &path, "T2");
    assert_eq!(locks(&repo), Vec::<PathBuf>::new());
}

#[test]
fn a_full_disk_leaves_nothing_behind() {
    let repo = repo();
    repo.write("large", "x".repeat(1 << 20));
    repo.commit("a large file\n");
    let script = "trap '' XFSZ; ulimit -f 512; exec git arborist worktree add T1";
    let run = Run::of(repo.command("sh", &repo.path("")).args(["-c", script]), b"");
    run.exits(128).matches_snapshot();
    assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 1);
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist"]).answer(), "");
    assert!(!repo.root().join("repo.arborist/T1").exists());
    assert_eq!(locks(&repo), Vec::<PathBuf>::new());
    arborist(&repo, &["add", "T1"]).succeeds();
}

#[test]
fn sixteen_parallel_adds_create_each_worktree_exactly_once() {
    for kind in [[].as_slice(), &["--lane"]] {
        let repo = TestRepo::init();
        repo.write("a", "a");
        repo.commit("a\n");
        let commands = (0..16).map(|n| {
            let mut command = repo.command("git-arborist-worktree", &repo.path(""));
            command.args(["add", &format!("T{}", n % 8)]).args(kind);
            command
        });
        let runs: Vec<_> =
            commands.map(|mut command| thread::spawn(move || Run::of(&mut command, b""))).collect();
        let runs: Vec<Run> = runs.into_iter().map(|run| run.join().unwrap()).collect();
        for n in 0..8 {
            let pair = [&runs[n], &runs[n + 8]];
            assert!(
                pair.iter().all(|run| [0, 3].contains(&run.code())),
                "{}{}",
                pair[0].report(),
                pair[1].report()
            );
            let begun = pair.iter().filter(|run| run.stderr().contains("created branch")).count();
            assert_eq!(begun, 1, "{}{}", pair[0].report(), pair[1].report());
            let path = repo.arborist(["worktree", "path", &format!("T{n}")]).answer();
            let branch = repo.git_in(Path::new(&path), ["branch", "--show-current"]).answer();
            assert_eq!(branch, format!("arborist/task/main/T{n}"));
        }
        assert_eq!(repo.git(["worktree", "list"]).answer().lines().count(), 9);
        assert_eq!(locks(&repo), Vec::<PathBuf>::new());
    }
}
