//! `git arborist cleanup restore`: where saved work comes back to, and what is said of it.

use std::{fs, path::Path};

use crate::compost::Compost;

const FORCE: &[&str] = &["--older-than", "0", "--force"];

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn where_only_commits_were_saved_a_worktree_of_them_is_made_if_a_place_is_named() {
    let compost = Compost::new();
    let tip = compost.branch("T1", "t.txt", "t");
    compost.cleanup(FORCE).succeeds();
    compost.cleanup(&["restore", "T1"]).succeeds().shows().never("files");
    let place = compost.root().join("here");
    let said = compost.cleanup(&["restore", "T1", "--to", place.to_str().unwrap()]).succeeds();
    let said = said.shows();
    said.shows();
    assert_eq!(read(&place.join("t.txt")), "t");
    assert_eq!(compost.git_in(&place, ["branch", "--show-current"]).answer(), "arborist/task/main/T1");
    assert_eq!(compost.git_in(&place, ["status", "--porcelain"]).answer(), "");
    let second = compost.root().join("second");
    let said = compost.cleanup(&["restore", "T1", "--to", second.to_str().unwrap()]).succeeds();
    said.shows();
    assert_eq!(compost.git_in(&second, ["rev-parse", "HEAD"]).answer(), tip);
    compost.cleanup(&["restore", "T1", "--to", place.to_str().unwrap()]).exits(2).shows();
}

#[test]
fn a_branch_that_is_made_for_files_is_told() {
    let compost = Compost::new();
    let path = compost.worktree("T1");
    fs::write(path.join("new"), "new").unwrap();
    compost.cleanup(&["--older-than", "0", "--force"]).succeeds();
    let said = compost.cleanup(&["restore", "T1"]).succeeds();
    said.shows();
    assert_eq!(read(&path.join("new")), "new");
}

#[test]
fn what_is_no_branch_has_no_worktree() {
    let compost = Compost::new();
    compost.session("s7", ("main", "run"), r#""kind":"end","result":"complete""#);
    compost.git(["config", "arborist.cleanup.keep-records", "0"]).succeeds();
    compost.cleanup(&["--older-than", "0", "--only", "sessions"]).succeeds().shows();
    let place = compost.root().join("here");
    let wish = ["restore", "sessions/s7", "--to", place.to_str().unwrap()];
    compost.cleanup(&wish).exits(129).shows();
    assert!(!place.exists());
    assert_eq!(compost.refs("refs/arborist/sessions"), [""; 0]);
}

#[test]
fn names_that_mean_several_are_listed_with_their_ages() {
    let compost = Compost::new();
    for text in ["1", "2"] {
        compost.branch("T1", "t.txt", text);
        compost.cleanup(FORCE).succeeds();
        compost.wait(2 * 86_400);
    }
    let said = compost.cleanup(&["restore", "T1"]).exits(1);
    let said = said.shows();
    said.shows();
    compost.branch("T1", "t.txt", "3");
    compost.cleanup(FORCE).succeeds();
    compost.branch("T1", "t.txt", "4");
    compost.cleanup(FORCE).succeeds();
    let said = compost.cleanup(&["restore", "2025-02-20/main/T1"]).exits(1);
    said.shows();
}

#[test]
fn it_goes_by_every_name_that_is_shown_of_it() {
    let compost = Compost::new();
    compost.branch("T1", "t.txt", "t");
    let base = compost.git(["rev-parse", "main"]).answer();
    let tip = compost.commit_on(&base, "u.txt", "u", "work\n");
    let branch = "arborist/tasks/7270a1af";
    compost.session_branch(branch, &tip);
    compost.session("7270a1af", (branch, "run"), r#""kind":"end","result":"complete""#);
    compost.cleanup(FORCE).succeeds().out(branch);
    let saved = compost.refs("refs/arborist/saved");
    let name = saved.iter().find(|name| name.contains("7270a1af/branch-")).unwrap();
    let (unit, part) = name.strip_prefix("refs/arborist/saved/").unwrap().rsplit_once('/').unwrap();
    let unescaped = unit.replace("%2F", "/");
    let names = [branch, "arborist%2Ftasks%2F7270a1af", "7270a1af", unit, &unescaped, name];
    for name in
        names.into_iter().chain([format!("7270a1af/{part}").as_str(), "refs/heads/arborist/tasks/7270a1af"])
    {
        compost.git(["update-ref", "-d", &format!("refs/heads/{branch}")]).succeeds();
        let said = compost.cleanup(&["restore", name]).succeeds();
        said.out(&format!("branch '{branch}' is at")).err(&format!("git worktree add DIR '{branch}'"));
    }
    compost.cleanup(&["restore", part]).succeeds().shows().never("hint");
    compost.cleanup(&["restore", "arborist/task/main/T1"]).succeeds().shows();
    compost.cleanup(&["restore", "270a1af"]).exits(1);
}

#[test]
fn a_whole_name_is_meant_although_another_ends_with_it() {
    let compost = Compost::new();
    let path = compost.worktree("T2");
    let place = path.display().to_string();
    compost.git(["-C", &place, "commit", "-q", "--allow-empty", "-m", "work"]).succeeds();
    std::fs::write(path.join("new"), "saved").unwrap();
    compost.arborist(["worktree", "remove", "--force", "T2"]).succeeds();
    compost.cleanup(FORCE).succeeds();
    compost.cleanup(&["restore", "T2"]).exits(1).shows();
    compost.cleanup(&["restore", "main/T2"]).succeeds();
}
