//! What must hold after a run that was killed has ended.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::TestRepo;
use serde_json::Value;

use crate::round::{Mode, Round, TASKS};

/// The user's files, as they are in the checkout and in the index.
pub(crate) fn work_of_user(repo: &TestRepo) -> String {
    let files = ["staged.txt", "edited.txt", "both.txt", "notes.txt"];
    let staged = repo.git(["ls-files", "-s", "--"].iter().chain(&files)).answer();
    let lying = files.map(|file| fs::read_to_string(repo.path(file)).unwrap_or_else(|_| "gone".into()));
    format!("{staged}\n{}", lying.join("--\n"))
}

pub(crate) fn all(round: &Round, before: &str) -> Result<(), String> {
    let after = work_of_user(&round.repo);
    require(after == before, || format!("the user's files were\n{before}\nand are\n{after}"))?;
    status(round)?;
    tasks(round)?;
    check_leftovers(round)
}

/// Whether a task of the run was interrupted so often in a row that the run needs a person.
pub(crate) fn has_interruptions(round: &Round, count: usize) -> Result<bool, String> {
    let own = branch(round, "repo")?;
    let state = round.repo.arborist(["state", "--json", "--scope", &own]);
    let report = state.report();
    let state: Value = serde_json::from_str(&state.stdout()).map_err(|_| report)?;
    let tasks = state["tasks"].as_array().into_iter().flatten();
    Ok(tasks.filter_map(|task| task["interruptions"].as_u64()).any(|found| found >= count as u64))
}

/// Where all branches are.
pub(crate) fn branches(round: &Round) -> String {
    let repositories = ["repo", "backend"].map(|name| round.repository(name));
    let list = ["for-each-ref", "refs/heads"];
    let there = repositories.iter().filter(|place| place.is_dir());
    there.map(|place| round.repo.git_in(place, list).answer()).collect::<Vec<_>>().join("\n")
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The checkout holds what the user has changed, and nothing else.
fn status(round: &Round) -> Result<(), String> {
    let expected = "MM both.txt\n M edited.txt\nM  staged.txt\n?? notes.txt";
    let found = round.repo.git(["status", "--porcelain"]).answer();
    require(found == expected, || format!("git status says\n{found}"))?;
    if round.mode.has_backend() {
        let found = round.repo.git_in(&round.repository("backend"), ["status", "--porcelain"]).answer();
        require(found == " M kept.txt", || format!("in the other repository, git status says\n{found}"))?;
    }
    Ok(())
}

/// The branch that a run has worked on in a repository.
fn branch(round: &Round, repository: &str) -> Result<String, String> {
    if matches!(round.mode, Mode::InPlace | Mode::Lanes) {
        return Ok("main".into());
    }
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist"];
    let found = round.repo.git_in(&round.repository(repository), list).answer();
    let branches: Vec<&str> = found.lines().filter(|name| !name.contains("/task/")).collect();
    match branches.as_slice() {
        [one] => Ok((*one).to_owned()),
        _ => Err(format!("there should be one session branch in '{repository}': {branches:?}")),
    }
}

/// Every task is complete, was landed once, and its files are in history.
fn tasks(round: &Round) -> Result<(), String> {
    let own = branch(round, "repo")?;
    let state = round.repo.arborist(["state", "--exit-code", "--scope", &own]);
    require(state.code() == 0, || state.report())?;
    let log = round.repo.git(["log", "--format=%s", &own]).answer();
    for task in TASKS {
        let count = |status: &str| log.matches(&format!("@{task}@{status})")).count();
        require(count("complete") == 1, || {
            format!("'{task}' is complete {} times:\n{log}", count("complete"))
        })?;
        let has_lanes = matches!(round.mode, Mode::Lanes | Mode::LanesInTwoRepositories);
        let landings = usize::from(has_lanes);
        require(count("merge") == landings, || {
            format!("'{task}' has landed {} times:\n{log}", count("merge"))
        })?;
        let repository = round.mode.repository_of(task);
        let tip = branch(round, repository)?;
        for (file, content) in [
            (format!("{task}.txt"), format!("work of {task}, call ")),
            (format!("src/{task}.part"), format!("part of {task}, call ")),
        ] {
            let show = ["show".to_owned(), format!("{tip}:{file}")];
            let shown = round.repo.git_in(&round.repository(repository), show);
            require(shown.code() == 0 && shown.stdout().starts_with(&content), || shown.report())?;
        }
    }
    require(log.matches("@@run-start)").count() == 1, || format!("more than one run:\n{log}"))?;
    records(round, &own)
}

/// Every turn has one record and one transcript, and its commits are on the branches of their repositories.
fn records(round: &Round, own: &str) -> Result<(), String> {
    let repo = &round.repo;
    let read = |kind: &str, format: &str| {
        repo.git(["log", "--first-parent", format, &format!("--glob=refs/arborist/{kind}")]).answer()
    };
    let transcripts = read("transcripts", "--format=%s");
    let mut turns = BTreeSet::new();
    // The first record follows the commit that the session began at, so commits of the code come behind it.
    for line in read("sessions", "--format=%b").lines().filter(|line| line.starts_with('{')) {
        let record: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        if record["kind"] != "turn" {
            continue;
        }
        let number = record["number"].as_u64().ok_or_else(|| format!("a turn without a number: {line}"))?;
        require(turns.insert(number), || format!("two records of one turn: {line}"))?;
        let is_kept = transcripts.contains(&format!(": turn {number} of "));
        require(is_kept, || format!("turn {number} has no transcript:\n{transcripts}"))?;
        let is_on = |repository: &str, commit: &Value, branch: &str| {
            let Some(commit) = commit.as_str() else { return true };
            let asked = ["merge-base", "--is-ancestor", commit, branch];
            repo.git_in(&round.repository(repository), asked).code() == 0
        };
        let why = || format!("the record of a turn names a commit that is not on its branch: {line}");
        require(is_on("repo", &record["commit"], own), why)?;
        for other in record["others"].as_array().into_iter().flatten() {
            require(is_on("backend", &other["commit"], &branch(round, "backend")?), why)?;
        }
    }
    // Each task was implemented and reviewed, and each of these calls is a turn at least.
    require(turns.len() >= 2 * TASKS.len(), || format!("only {} turns are recorded", turns.len()))
}

/// No lock, no mark, no ticket, no process.
fn check_leftovers(round: &Round) -> Result<(), String> {
    for name in ["repo", "backend"] {
        let place = round.repository(name);
        if !place.is_dir() {
            continue;
        }
        let locks = locks_in(&place.join(".git"));
        require(locks.is_empty(), || format!("locks are left: {locks:?}"))?;
        let marks =
            ["for-each-ref", "refs/arborist/wip", "refs/arborist/queue/tickets", "refs/arborist/claims"];
        let marks = round.repo.git_in(&place, marks).answer();
        require(marks.is_empty(), || format!("marks are left:\n{marks}"))?;
        // Git reads every worktree that is registered, so this fails for one that is half made, too.
        let fsck = round.repo.git_in(&place, ["fsck", "--no-dangling", "--no-progress"]);
        require(fsck.code() == 0, || fsck.report())?;
    }
    let alive = alive(round.repo.root());
    require(alive.is_empty(), || format!("processes are left: {alive:?}"))
}

fn locks_in(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| match entry.path() {
            path if path.is_dir() => locks_in(&path),
            path if path.extension().is_some_and(|ending| ending == "lock") => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

fn alive(root: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_here = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|place| place.starts_with(root))
    };
    let shown = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
    processes.filter(is_here).map(shown).filter(|line| !line.is_empty()).collect()
}
