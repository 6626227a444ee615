//! `git arborist cleanup restore`: where saved work comes back to, and what is said of it.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use crate::cleanup_repo::CleanupRepo;

const FORCE: &[&str] = &["--older-than", "0", "--force"];
const DAY: i64 = 86_400;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn restoring_saved_commits_creates_a_worktree_only_with_the_option_to() {
    let repo = CleanupRepo::new();
    let tip = repo.branch("T1", "t.txt", "t");
    repo.cleanup(FORCE).succeeds();
    repo.cleanup(&["restore", "T1"]).succeeds().matches_snapshot().never("files");
    let place = repo.root().join("here");
    let said = repo.cleanup(&["restore", "T1", "--to", place.to_str().unwrap()]).succeeds();
    let said = said.matches_snapshot();
    said.matches_snapshot();
    assert_eq!(read(&place.join("t.txt")), "t");
    assert_eq!(repo.git_in(&place, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert_eq!(repo.git_in(&place, ["status", "--porcelain"]).answer(), "");
    let second = repo.root().join("second");
    let said = repo.cleanup(&["restore", "T1", "--to", second.to_str().unwrap()]).succeeds();
    said.matches_snapshot();
    assert_eq!(repo.git_in(&second, ["rev-parse", "HEAD"]).answer(), tip);
    repo.cleanup(&["restore", "T1", "--to", place.to_str().unwrap()]).exits(2).matches_snapshot();
}

#[test]
fn restoring_saved_files_reports_the_branch_that_is_created_for_them() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T1");
    fs::write(path.join("new"), "new").unwrap();
    repo.cleanup(&["--older-than", "0", "--force"]).succeeds();
    let said = repo.cleanup(&["restore", "T1"]).succeeds();
    said.matches_snapshot();
    assert_eq!(read(&path.join("new")), "new");
}

#[test]
fn restoring_session_records_into_a_worktree_is_refused() {
    let repo = CleanupRepo::new();
    repo.session("s7", ("main", "run"), r#""kind":"end","result":"complete""#);
    repo.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    repo.cleanup(&["--older-than", "0", "--only", "sessions"]).succeeds().matches_snapshot();
    let place = repo.root().join("here");
    let wish = ["restore", "sessions/s7", "--to", place.to_str().unwrap()];
    repo.cleanup(&wish).exits(129).matches_snapshot();
    assert!(!place.exists());
    assert_eq!(repo.refs("refs/arborist/sessions"), [""; 0]);
}

#[test]
fn restore_lists_the_matches_of_an_ambiguous_name_with_their_ages() {
    let repo = CleanupRepo::new();
    for text in ["1", "2"] {
        repo.branch("T1", "t.txt", text);
        repo.cleanup(FORCE).succeeds();
        repo.wait(2 * 86_400);
    }
    let said = repo.cleanup(&["restore", "T1"]).exits(1);
    let said = said.matches_snapshot();
    said.matches_snapshot();
    repo.branch("T1", "t.txt", "3");
    repo.cleanup(FORCE).succeeds();
    repo.branch("T1", "t.txt", "4");
    repo.cleanup(FORCE).succeeds();
    let said = repo.cleanup(&["restore", "2025-02-20/main/T1"]).exits(1);
    said.matches_snapshot();
}

#[test]
fn saved_work_can_be_restored_by_every_name_that_cleanup_shows() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t.txt", "t");
    let base = repo.git(["rev-parse", "main"]).answer();
    let tip = repo.commit_on(&base, "u.txt", "u", "work\n");
    let branch = "arborist/tasks/7270a1af";
    repo.session_branch(branch, &tip);
    repo.session("7270a1af", (branch, "run"), r#""kind":"end","result":"complete""#);
    repo.cleanup(FORCE).succeeds().out(branch);
    let saved = repo.refs("refs/arborist/saved");
    let name = saved.iter().find(|name| name.contains("7270a1af/branch-")).unwrap();
    let (unit, part) = name.strip_prefix("refs/arborist/saved/").unwrap().rsplit_once('/').unwrap();
    let unescaped = unit.replace("%2F", "/");
    let names = [branch, "arborist%2Ftasks%2F7270a1af", "7270a1af", unit, &unescaped, name];
    for name in
        names.into_iter().chain([format!("7270a1af/{part}").as_str(), "refs/heads/arborist/tasks/7270a1af"])
    {
        repo.git(["update-ref", "-d", &format!("refs/heads/{branch}")]).succeeds();
        let said = repo.cleanup(&["restore", name]).succeeds();
        said.out(&format!("branch '{branch}' is at")).err(&format!("git worktree add DIR '{branch}'"));
    }
    repo.cleanup(&["restore", part]).succeeds().matches_snapshot().never("hint");
    repo.cleanup(&["restore", "arborist/task/main/T1"]).succeeds().matches_snapshot();
    repo.cleanup(&["restore", "270a1af"]).exits(1);
}

#[test]
fn restore_prefers_an_exact_name_to_one_that_ends_with_it() {
    let repo = CleanupRepo::new();
    let path = repo.worktree("T2");
    let place = path.display().to_string();
    repo.git(["-C", &place, "commit", "-q", "--allow-empty", "-m", "work"]).succeeds();
    std::fs::write(path.join("new"), "saved").unwrap();
    repo.arborist(["worktree", "remove", "--force", "T2"]).succeeds();
    repo.cleanup(FORCE).succeeds();
    repo.cleanup(&["restore", "T2"]).exits(1).matches_snapshot();
    repo.cleanup(&["restore", "main/T2"]).succeeds();
}

#[test]
fn cleanup_and_cleanup_saved_agree_on_the_age_of_saved_work() {
    for options in [&[][..], &["--ref-format=reftable"]] {
        let repo = CleanupRepo::on(options);
        repo.branch("T1", "t1.txt", "1");
        repo.wait(200 * DAY);
        repo.cleanup(FORCE).succeeds();
        for (waited, age) in [(0, "0s"), (3 * DAY, "3d")] {
            repo.wait(waited);
            assert_eq!(saved_times(&repo).len(), 1, "{options:?}: 'cleanup saved' and 'cleanup' agree");
            repo.cleanup(&["saved"]).succeeds().out(&format!(" {age} "));
            repo.cleanup(&["--only", "saved"]).succeeds().out(&format!("{age} ago"));
        }
    }
}

#[test]
fn without_a_reflog_the_age_of_saved_work_is_taken_from_the_day_in_its_name() {
    for options in [&[][..], &["--ref-format=reftable"]] {
        let repo = CleanupRepo::on(options);
        repo.branch("T1", "t1.txt", "1");
        repo.wait(200 * DAY);
        repo.cleanup(FORCE).succeeds();
        repo.git(["reflog", "expire", "--all", "--expire=now"]).succeeds();
        assert_eq!(saved_times(&repo).len(), 1, "{options:?}");
        repo.cleanup(&["saved"]).succeeds().out(" 0s ");
        repo.cleanup(&["--only", "saved"]).succeeds().out("0s ago");
        repo.wait(3 * DAY);
        assert_eq!(saved_times(&repo).len(), 1, "{options:?}");
        repo.cleanup(&["saved"]).succeeds().out(" 2d ");
    }
}

/// The times that the list of saved work and a dry run have for all of it.
fn saved_times(repo: &CleanupRepo) -> BTreeSet<String> {
    let listed: Value = serde_json::from_str(&repo.cleanup(&["saved", "--json"]).answer()).unwrap();
    let planned = repo.report(&["--only", "saved", "--dry-run"]);
    let listed = listed["saved"].as_array().unwrap().iter().map(|one| &one["time"]);
    let planned = planned["items"].as_array().unwrap().iter().map(|one| &one["active"]);
    listed.chain(planned).map(|time| time.as_str().expect("a time").to_owned()).collect()
}
