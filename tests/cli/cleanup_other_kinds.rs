//! Everything else that is left behind: logs, caches, trash, scratch, old saved work, branches of remotes; and freeing
//! space where worktrees stay.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::cleanup_repo::{CleanupRepo, find};
use arborist_testkit::{Terminal, TestRepo};

const NOW: &[&str] = &["--older-than", "0"];
const WEEK: i64 = 8 * 86_400;

#[test]
fn only_old_logs_and_reports_of_git_arborist_are_removed() {
    let repo = CleanupRepo::new();
    let ours = ["spec/logs/T1_test_20250216T143022.log", "spec/reports/T1_run_20250216T143022.json"];
    let others = ["spec/logs/notes.log", "spec/reports/mine.json", "spec/logs/T1_test_20250101T000000.log"];
    for path in ours.iter().chain(&others) {
        repo.write(path, "x".repeat(1500));
    }
    repo.git(["add", "-f", others[2]]).succeeds();
    repo.git(["commit", "-q", "-m", "tracked"]).succeeds();
    repo.write(".git/arborist/logs/plan-1-2", "p");
    assert_eq!(repo.verdict(&[], "log", "T1_test_20250216T143022.log").1, "younger than 7d");
    repo.age(WEEK);
    repo.write("spec/logs/T2_test_20250216T143022.log", "young");
    repo.write(".git/arborist/locks/run-main", "");
    let lock = fs::File::open(repo.path(".git/arborist/locks/run-main")).unwrap();
    lock.lock().unwrap();
    assert_eq!(repo.verdict(&[], "log", "plan-1-2").1, "a run of 'main' is active");
    // A child that another test is just starting may have a copy of the descriptor.
    lock.unlock().unwrap();
    repo.cleanup(&["--only", "logs"]).succeeds().matches_snapshot();
    for path in ours {
        assert!(!repo.path(path).exists(), "{path}");
    }
    assert!(others.iter().all(|path| repo.path(path).exists()));
    assert!(repo.path("spec/logs/T2_test_20250216T143022.log").exists());
    assert!(!repo.path(".git/arborist/logs/plan-1-2").exists());
}

#[test]
fn logs_and_reports_in_the_configured_folders_are_removed() {
    let repo = CleanupRepo::new();
    repo.write("out/T1_test_20250216T143022.log", "x");
    repo.write("out/T1_run_20250216T143022.json", "x");
    let report = repo.report(NOW);
    assert_eq!(report["items"].as_array().unwrap().len(), 0, "{report:#}");
    repo.git(["config", "arborist.log-dir", "out"]).succeeds();
    repo.git(["config", "arborist.report-dir", "out"]).succeeds();
    repo.cleanup(NOW).succeeds().matches_snapshot();
    assert!(!repo.path("out/T1_test_20250216T143022.log").exists());
}

#[test]
fn many_logs_are_one_row_in_text_and_separate_items_in_json() {
    let repo = CleanupRepo::new();
    for second in 10..20 {
        repo.write(&format!("spec/logs/T1_test_20250216T1430{second}.log"), "x".repeat(100));
    }
    repo.cleanup(&["--older-than", "0", "--dry-run"]).succeeds().matches_snapshot();
    assert_eq!(repo.report(&["--older-than", "0", "--dry-run"])["items"].as_array().unwrap().len(), 10);
}

#[test]
fn old_caches_and_gate_results_are_removed() {
    let repo = CleanupRepo::new();
    repo.arborist(["state"]).succeeds();
    repo.git(["update-ref", "refs/arborist/gates/g/t", "HEAD"]).succeeds();
    repo.write(".git/arborist/cache/v1/x", "cache");
    repo.age(WEEK);
    repo.cleanup(&["--only", "caches"]).succeeds().matches_snapshot();
    assert_eq!(repo.refs("refs/arborist/gates"), [""; 0]);
    assert!(!repo.path(".git/arborist/cache/v1/x").exists());
    repo.arborist(["state"]).succeeds();
}

#[test]
fn saved_work_has_its_own_age_limit() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.cleanup(&["--older-than", "0", "--force"]).succeeds();
    let saved = repo.refs("refs/arborist/saved");
    repo.cleanup(&["--older-than", "0", "--force"]).succeeds();
    assert_eq!(repo.refs("refs/arborist/saved"), saved, "what was just saved does not go");
    repo.wait(89 * 86_400);
    let name = saved[0].trim_start_matches("refs/arborist/saved/").to_owned();
    assert_eq!(repo.verdict(NOW, "saved", &name).1, "younger than 90d");
    let only = ["--only", "saved", "--older-than", "2w", "--force"];
    assert_eq!(repo.verdict(&only[..4], "saved", &name).1, "younger than 90d");
    assert_eq!(repo.verdict(&only, "saved", &name).0, "remove");
    repo.git(["config", "arborist.cleanup.keep-saved", "4w"]).succeeds();
    let expired = ("remove".to_owned(), "older than 4w".to_owned());
    assert_eq!(repo.verdict(NOW, "saved", &name), expired, "it may be the last copy: not 'not in use'");
    repo.cleanup(&[]).succeeds().out("older than 4w");
    assert_eq!(repo.refs("refs/arborist/saved"), [""; 0]);
}

#[test]
fn the_age_of_saved_work_counts_from_the_time_it_was_saved() {
    let repo = CleanupRepo::new();
    let tip = repo.branch("T1", "t1.txt", "1");
    repo.wait(200 * 86_400);
    repo.cleanup(&["--force"]).succeeds();
    let saved = repo.refs("refs/arborist/saved");
    repo.cleanup(&["--force"]).succeeds();
    assert_eq!(repo.refs("refs/arborist/saved"), saved);
    assert_eq!(repo.git(["rev-parse", &saved[0]]).answer(), tip);
    fs::remove_dir_all(repo.path(".git/logs/refs/arborist")).unwrap();
    repo.cleanup(&[]).succeeds();
    assert_eq!(repo.refs("refs/arborist/saved"), saved, "the day in its name tells too");
}

#[test]
fn trash_of_earlier_commands_is_deleted() {
    let repo = CleanupRepo::new();
    repo.worktree("T1");
    let trash = repo.root().join("repo.arborist/.removed-x-0");
    fs::create_dir_all(trash.join("deep/er")).unwrap();
    fs::write(trash.join("deep/er/f"), "x".repeat(2000)).unwrap();
    let mut stubborn = fs::metadata(trash.join("deep/er")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut stubborn, 0o500);
    fs::set_permissions(trash.join("deep/er"), stubborn).unwrap();
    repo.cleanup(&["--dry-run"]).succeeds().matches_snapshot();
    repo.cleanup(&[]).succeeds();
    let folder = trash.clone();
    wait_until(move || !folder.exists());
}

#[test]
fn a_folder_that_cannot_be_deleted_is_reported_as_failed_and_not_as_removed() {
    let repo = CleanupRepo::new();
    let trash = repo.root().join("repo.arborist/.removed-x-0");
    repo.worktree("T1");
    fs::create_dir_all(&trash).unwrap();
    repo.plant("rm", "#!/bin/sh\ncase \"$*\" in *.deleting*) exec /bin/rm \"$@\" ;; esac\necho 'not permitted' >&2\nexit 1\n");
    let report = repo.report(&[]);
    assert_eq!(find(&report, "trash", ".removed-x-0")["outcome"], "trashed", "{report:#}");
    assert_eq!((&report["totals"]["removed"], &report["totals"]["trashed"]), (&0.into(), &1.into()));
    for _ in 0..2 {
        let notes = repo.path(".git/arborist/trash");
        wait_until(|| {
            let names = fs::read_dir(&notes).into_iter().flatten().flatten().map(|note| note.path());
            let ends: Vec<PathBuf> = names.collect();
            let has = |end: &str| ends.iter().any(|name| name.extension().is_some_and(|found| found == end));
            has("failed") && !has("deleting")
        });
        repo.arborist(["worktree", "list"]).succeeds().err("could not be deleted: not permitted");
        let report = repo.cleanup(&["--json"]).exits(1).stdout();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let item = find(&report, "trash", ".removed-x-0");
        assert_eq!(item["outcome"], "failed", "{report:#}");
        assert_eq!(report["totals"]["trashed"], 0, "{report:#}");
    }
    assert!(trash.exists());
    fs::remove_file(repo.bin().join("rm")).unwrap();
    wait_until(|| {
        let _ = repo.cleanup(&[]);
        !trash.exists()
    });
    repo.cleanup(&[]).succeeds().never(".removed-x-0");
    repo.arborist(["worktree", "list"]).succeeds().never("could not be deleted");
}

#[test]
fn a_worktree_is_moved_to_trash_and_trash_that_is_being_deleted_is_not_listed() {
    let repo = CleanupRepo::new();
    repo.worktree("T1");
    let wait = repo.root().join("go");
    let script =
        format!("#!/bin/sh\nuntil test -e '{}'; do sleep 0.05; done\nexec /bin/rm \"$@\"\n", wait.display());
    repo.plant("rm", &script);
    repo.cleanup(&["--older-than", "0"])
        .succeeds()
        .out("Moved to the trash, and being deleted in the background:")
        .out("1 more is being deleted in the background, which will free ");
    repo.cleanup(&["--older-than", "0"]).succeeds().never("in the background");
    fs::write(wait, "").unwrap();
    let base = repo.root().join("repo.arborist");
    wait_until(|| {
        !fs::read_dir(&base)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().starts_with(".removed-"))
    });
}

/// Waits until something that goes on in the background is done.
fn wait_until(is_done: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !is_done() {
        assert!(std::time::Instant::now() < end, "it never came to an end");
        std::thread::yield_now();
    }
}

#[test]
fn gate_worktrees_are_removed_with_their_files_but_conflict_worktrees_are_kept() {
    let repo = CleanupRepo::new();
    for name in ["gate-1", "resolve-T1"] {
        let path = repo.root().join("repo.arborist").join(name);
        let place = path.to_str().unwrap();
        let reason = "arborist scratch";
        repo.git(["worktree", "add", "-q", "--detach", "--lock", "--reason", reason, place, "HEAD"])
            .succeeds();
        fs::write(path.join("left"), "left").unwrap();
    }
    repo.cleanup(NOW).succeeds().matches_snapshot();
    assert!(!repo.root().join("repo.arborist/gate-1").exists());
    assert!(repo.root().join("repo.arborist/resolve-T1/left").exists());
}

#[test]
fn refs_of_finished_landings_and_of_runs_on_deleted_branches_are_removed() {
    let repo = CleanupRepo::new();
    repo.git(["update-ref", "refs/arborist/landing/main", "HEAD"]).succeeds();
    repo.git(["update-ref", "refs/arborist/wip/main/T1/0", "HEAD"]).succeeds();
    repo.git(["update-ref", "refs/arborist/wip/old%2Frun/T1/0", "HEAD"]).succeeds();
    let tip = repo.commit_on("HEAD", "parked.txt", "p", "parked\n");
    repo.git(["update-ref", "refs/arborist/landing/other", &tip]).succeeds();
    repo.cleanup(NOW).succeeds().matches_snapshot();
    let kept = ["refs/arborist/landing/other", "refs/arborist/wip/main/T1/0"];
    assert_eq!(repo.refs("refs/arborist"), kept);
}

/// A clone of a repository that others push to.
fn with_remote() -> CleanupRepo {
    let repo = CleanupRepo::new();
    let remote = repo.root().join("remote.git");
    repo.git(["init", "-q", "--bare", "-b", "main", remote.to_str().unwrap()]).succeeds();
    repo.git(["remote", "add", "origin", remote.to_str().unwrap()]).succeeds();
    for task in ["T1", "T2", "T3", "T4"] {
        repo.branch(task, &format!("{task}.txt"), task);
    }
    repo.land("T1");
    repo.land("T4");
    repo.git(["push", "-q", "origin", "main", "arborist/task/main/T1", "arborist/task/main/T2"]).succeeds();
    repo.git(["push", "-q", "origin", "arborist/task/main/T3", "arborist/task/main/T4"]).succeeds();
    repo
}

fn there(repo: &CleanupRepo) -> Vec<String> {
    let listed = repo.git(["ls-remote", "--heads", "origin"]).answer();
    listed.lines().map(|line| line.rsplit('/').next().unwrap().to_owned()).collect()
}

#[test]
fn a_remote_branch_is_removed_only_with_the_remote_option_and_after_landing_there() {
    let repo = with_remote();
    repo.land("T3");
    repo.git(["update-ref", "refs/arborist/queue/tickets/main/T4", "main"]).succeeds();
    repo.cleanup(&["--older-than", "0", "--force"]).succeeds();
    assert_eq!(there(&repo), ["T1", "T2", "T3", "T4", "main"], "not without --remote");
    let report = repo.report(&["--older-than", "0", "--remote", "--force"]);
    assert_eq!(find(&report, "remote", "origin/main/T1")["outcome"], "removed");
    assert_eq!(
        find(&report, "remote", "origin/main/T2")["reason"],
        "1 commit is not merged",
        "an open request"
    );
    assert_eq!(
        find(&report, "remote", "origin/main/T3")["outcome"],
        "kept",
        "it has landed here and not there"
    );
    assert_eq!(find(&report, "remote", "origin/main/T4")["reason"], "it is queued and has not landed yet");
    assert_eq!(there(&repo), ["T2", "T3", "T4", "main"]);
}

#[test]
fn a_remote_branch_that_moved_is_kept_and_a_missing_remote_is_a_failure() {
    let repo = with_remote();
    let other = repo.root().join("other");
    let remote = repo.root().join("remote.git");
    repo.git(["clone", "-q", remote.to_str().unwrap(), other.to_str().unwrap()]).succeeds();
    repo.git_in(&other, ["checkout", "-q", "arborist/task/main/T1"]).succeeds();
    repo.git_in(&other, ["commit", "-q", "--allow-empty", "-m", "more"]).succeeds();
    repo.git_in(&other, ["push", "-q"]).succeeds();
    let report = repo.report(&["--older-than", "0", "--remote"]);
    assert_eq!(find(&report, "remote", "origin/main/T1")["why"], "it has moved there: fetch first");
    assert_eq!(there(&repo), ["T1", "T2", "T3", "main"]);
    fs::remove_dir_all(&remote).unwrap();
    let tip = repo.branch("T9", "t9.txt", "9");
    repo.land("T9");
    repo.git(["update-ref", "refs/remotes/origin/main", "main"]).succeeds();
    repo.git(["update-ref", "refs/remotes/origin/arborist/task/main/T9", &tip]).succeeds();
    let said = repo.cleanup(&["--older-than", "0", "--remote"]).exits(1);
    said.matches_snapshot();
}

#[test]
fn a_branch_that_was_squashed_at_the_forge_counts_as_landed() {
    let repo = with_remote();
    let other = repo.root().join("other");
    let remote = repo.root().join("remote.git");
    repo.git(["clone", "-q", remote.to_str().unwrap(), other.to_str().unwrap()]).succeeds();
    repo.git_in(&other, ["merge", "-q", "--squash", "origin/arborist/task/main/T2"]).succeeds();
    repo.git_in(&other, ["commit", "-q", "-m", "T2 (#7)"]).succeeds();
    repo.git_in(&other, ["push", "-q"]).succeeds();
    repo.git(["fetch", "-q"]).succeeds();
    let report = repo.report(&["--older-than", "0", "--remote", "--only", "branches", "T2"]);
    assert_eq!(find(&report, "remote", "origin/main/T2")["outcome"], "removed", "{report:#}");
    assert!(!there(&repo).contains(&"T2".to_owned()));
}

fn fill(path: &Path) {
    for file in ["target/big", "web/node_modules/m/x", "src/target/y"] {
        fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
        fs::write(path.join(file), "x".repeat(5000)).unwrap();
    }
    fs::write(path.join(".env"), "secret").unwrap();
    fs::write(path.join("work.txt"), "work").unwrap();
}

/// What is thrown away is deleted in the background.
fn wait_until_trash_is_deleted(repo: &CleanupRepo) {
    let begun = Instant::now();
    let is_trash = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".removed-");
    while fs::read_dir(repo.root().join("repo.arborist")).unwrap().flatten().any(|entry| is_trash(&entry)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "trash stays");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn reclaim_deletes_ignored_build_output_in_kept_worktrees_and_no_other_files() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    fill(&path);
    repo.git_in(&path, ["add", "-f", "src/target/y"]).succeeds();
    fs::create_dir_all(path.join("lib/target")).unwrap();
    repo.git_in(&path, ["init", "-q", "lib/target/inner"]).succeeds();
    fs::create_dir_all(repo.path("target")).unwrap();
    fs::write(repo.path("target/mine"), "mine").unwrap();
    let before = repo.everything();
    repo.cleanup(&["--reclaim", "--dry-run"]).succeeds().matches_snapshot();
    assert_eq!(repo.everything(), before);
    repo.cleanup(&["--reclaim"]).succeeds().matches_snapshot();
    assert!(!path.join("target").exists() && !path.join("web/node_modules").exists());
    for kept in ["src/target/y", ".env", "work.txt", "lib/target/inner/.git"] {
        assert!(path.join(kept).exists(), "{kept}");
    }
    assert!(repo.path("target/mine").exists(), "the checkout is the user's");
    wait_until_trash_is_deleted(&repo);
    repo.cleanup(&["--reclaim"]).succeeds().matches_snapshot();
}

#[test]
fn reclaimed_folders_are_configurable_and_the_setup_command_runs_again() {
    let repo = CleanupRepo::new();
    repo.git(["config", "arborist.worktree.setup", "echo again >> ../../set-up"]).succeeds();
    let path = repo.worktree("T1");
    fill(&path);
    repo.git(["config", "arborist.cleanup.reclaim", ".env"]).succeeds();
    repo.cleanup(&["--reclaim"]).succeeds().never(".env");
    repo.git(["config", "arborist.cleanup.reclaim", "node_modules/"]).succeeds();
    repo.cleanup(&["--reclaim"]).succeeds().matches_snapshot();
    assert!(path.join("target").exists() && !path.join("web/node_modules").exists());
    assert!(path.join(".env").exists(), "a file is not what a build makes again");
    repo.worktree("T1");
    assert_eq!(fs::read_to_string(repo.root().join("set-up")).unwrap(), "again\nagain\n");
}

#[test]
fn cleanup_is_limited_to_the_named_kinds_and_tasks() {
    let repo = CleanupRepo::new();
    for task in ["T1", "T2"] {
        repo.branch(task, task, task);
        repo.land(task);
    }
    let path = repo.worktree("T1");
    repo.cleanup(&["--older-than", "0", "--only", "branches"]).succeeds().matches_snapshot();
    assert!(path.exists() && repo.has("T1") && !repo.has("T2"));
    repo.branch("T2", "T2", "again");
    repo.land("T2");
    repo.cleanup(&["--older-than", "0", "--only", "worktrees,logs"]).succeeds();
    assert!(!path.exists() && repo.has("T1") && repo.has("T2"));
    repo.cleanup(&["--older-than", "0", "T2"]).succeeds().never("T1");
    assert!(repo.has("T1") && !repo.has("T2"));
}

#[test]
fn the_age_limit_is_configurable_and_an_invalid_value_is_reported() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.land("T1");
    repo.write(".arborist/config.toml", "[cleanup]\nolder-than = \"0\"\n");
    assert_eq!(repo.verdict(&[], "branch", "main/T1").0, "remove");
    repo.write(".arborist/config.toml", "[cleanup]\nolder-than = \"soon\"\n");
    repo.cleanup(&[]).exits(1).matches_snapshot();
}

#[test]
fn commands_suggest_cleanup_if_worktrees_are_many_or_disk_space_is_low() {
    let repo = CleanupRepo::new();
    repo.agent("echo done > done.txt");
    repo.worktree("T1");
    repo.arborist(["worktree", "list"]).succeeds().never("git arborist cleanup");
    repo.git(["config", "arborist.cleanup.warn-worktrees", "1"]).succeeds();
    let said = repo.arborist(["worktree", "list"]).succeeds().matches_snapshot();
    said.matches_snapshot();
    repo.arborist(["worktree", "add", "--allow-dirty", "T2"]).succeeds().matches_snapshot();
    let said = repo.arborist(["garden", "-m", "do it"]);
    assert!(said.stderr().contains("worktrees in '"), "{}", said.report());
    repo.git(["config", "arborist.cleanup.warn-worktrees", "0"]).succeeds();
    repo.git(["config", "arborist.cleanup.warn-free", "999999999"]).succeeds();
    repo.arborist(["worktree", "list"]).succeeds().matches_snapshot().never("worktrees in");
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_system_without_blocks_is_not_called_full() {
    let repo = CleanupRepo::new();
    let options = ["-c", "arborist.worktree.base=/proc/nope", "arborist"];
    repo.git([&options[..], &["worktree", "list"]].concat()).succeeds().never("are free");
    let said = repo.git([&options[..], &["worktree", "add", "T1"]].concat()).exits(128);
    said.err("could not write to '/proc/nope'").never("are free");
}

#[test]
fn cleanup_rows_fit_into_80_columns() {
    let repo = CleanupRepo::new();
    repo.grow("a-task-with-a-name-that-is-much-longer-than-any-name-of-a-task", "main", &[("x", "x")]);
    let path = repo.worktree("T2");
    fs::write(path.join("a-file-with-a-name-that-is-much-longer-than-is-good-for-anybody"), "").unwrap();
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "cleanup", "--older-than", "0", "--dry-run"]);
    let (_, _, shown) = Terminal::start(command, 80).ends();
    let widest = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest <= 80 && shown.contains('…'), "{shown}");
}

#[test]
fn logs_of_an_interrupted_task_are_kept_until_it_has_landed() {
    let plan =
        r#"{"nodes": {"add_the_form": {"id": "add_the_form", "name": "a"}}, "root_ids": ["add_the_form"]}"#;
    for place in [&["--jobs", "1"][..], &["--isolate"]] {
        for cut in ["implement", "test", "review", "no step"] {
            let strike = |step: &str| if step == cut { "kill -9 $PPID; sleep 60" } else { ":" };
            let agent = format!(
                "case \"$prompt\" in Review*) {}; echo APPROVED ;; *) echo x > form.txt; {} ;; esac",
                strike("review"),
                strike("implement")
            );
            let repo = TestRepo::planned("task-tree.json", plan, &agent);
            let test = format!("[ ! -e form.txt ] || {{ {}; }}", strike("test"));
            let run = repo.arborist(["gardener", "--test-command", &test].iter().chain(place));
            assert_eq!(run.code() == 0, cut == "no step", "{}", run.report());
            repo.wait(60);
            repo.arborist(["cleanup", "--older-than", "0"]).succeeds();
            let names = fs::read_dir(repo.path("spec/logs")).unwrap().flatten();
            let is_kept =
                names.into_iter().any(|name| name.file_name().to_string_lossy().starts_with("add_"));
            assert_eq!(is_kept, cut != "no step", "{place:?} {cut}");
        }
    }
}
