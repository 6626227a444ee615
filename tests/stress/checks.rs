//! What must hold after a run that was killed has ended.

use std::{
    fs,
    path::{Path, PathBuf},
};

use arborist_testkit::Garden;

use crate::round::{Mode, Round, TASKS};

/// The user's files, as they are in the checkout and in the index.
pub(crate) fn work_of_user(garden: &Garden) -> String {
    let files = ["staged.txt", "edited.txt", "both.txt", "notes.txt"];
    let staged = garden.git(["ls-files", "-s", "--"].iter().chain(&files)).answer();
    let lying = files.map(|file| fs::read_to_string(garden.path(file)).unwrap_or_else(|_| "gone".into()));
    format!("{staged}\n{}", lying.join("--\n"))
}

pub(crate) fn all(round: &Round, before: &str) -> Result<(), String> {
    let after = work_of_user(&round.garden);
    require(after == before, || format!("the user's files were\n{before}\nand are\n{after}"))?;
    status(round)?;
    tasks(round)?;
    remains(round)
}

fn require(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// The checkout holds what the user has changed, and nothing else.
fn status(round: &Round) -> Result<(), String> {
    let expected = "MM both.txt\n M edited.txt\nM  staged.txt\n?? notes.txt";
    let found = round.garden.git(["status", "--porcelain"]).answer();
    require(found == expected, || format!("git status says\n{found}"))?;
    if round.mode == Mode::TwoRepositories {
        let found = round.garden.git_in(&round.repository("backend"), ["status", "--porcelain"]).answer();
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
    let found = round.garden.git_in(&round.repository(repository), list).answer();
    let branches: Vec<&str> = found.lines().filter(|name| !name.contains("/task/")).collect();
    match branches.as_slice() {
        [one] => Ok((*one).to_owned()),
        _ => Err(format!("there should be one session branch in '{repository}': {branches:?}")),
    }
}

/// Every task is complete, was landed once, and its files are in history.
fn tasks(round: &Round) -> Result<(), String> {
    let own = branch(round, "repo")?;
    let state = round.garden.arborist(["state", "--exit-code", "--scope", &own]);
    require(state.code() == 0, || state.report())?;
    let log = round.garden.git(["log", "--format=%s", &own]).answer();
    for task in TASKS {
        let count = |status: &str| log.matches(&format!("@{task}@{status})")).count();
        require(count("complete") == 1, || {
            format!("'{task}' is complete {} times:\n{log}", count("complete"))
        })?;
        let landings = usize::from(round.mode == Mode::Lanes);
        require(count("merge") == landings, || {
            format!("'{task}' has landed {} times:\n{log}", count("merge"))
        })?;
        let repository = round.mode.repository_of(task);
        let tip = branch(round, repository)?;
        for (file, content) in [
            (format!("{task}.txt"), format!("work of {task}")),
            (format!("src/{task}.part"), format!("part of {task}")),
        ] {
            let show = ["show".to_owned(), format!("{tip}:{file}")];
            let shown = round.garden.git_in(&round.repository(repository), show);
            require(shown.code() == 0 && shown.stdout().trim_end() == content, || shown.report())?;
        }
    }
    require(log.matches("@@run-start)").count() == 1, || format!("more than one run:\n{log}"))?;
    records(round, &own)
}

/// Every turn that a record names is on the branch of its repository.
fn records(round: &Round, own: &str) -> Result<(), String> {
    let garden = &round.garden;
    let records =
        garden.git(["log", "--first-parent", "--format=%b", "--glob=refs/arborist/sessions"]).answer();
    for line in records.lines() {
        let Ok(record) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let is_on = |repository: &str, commit: &serde_json::Value, branch: &str| {
            let Some(commit) = commit.as_str() else { return true };
            let asked = ["merge-base", "--is-ancestor", commit, branch];
            garden.git_in(&round.repository(repository), asked).code() == 0
        };
        let why = || format!("the record of a turn names a commit that is not on its branch: {line}");
        require(is_on("repo", &record["commit"], own), why)?;
        for other in record["others"].as_array().into_iter().flatten() {
            require(is_on("backend", &other["commit"], &branch(round, "backend")?), why)?;
        }
    }
    Ok(())
}

/// No lock, no mark, no ticket, no process.
fn remains(round: &Round) -> Result<(), String> {
    for name in ["repo", "backend"] {
        let place = round.repository(name);
        if !place.is_dir() {
            continue;
        }
        let locks = locks_in(&place.join(".git"));
        require(locks.is_empty(), || format!("locks are left: {locks:?}"))?;
        let marks =
            ["for-each-ref", "refs/arborist/wip", "refs/arborist/queue/tickets", "refs/arborist/claims"];
        let marks = round.garden.git_in(&place, marks).answer();
        require(marks.is_empty(), || format!("marks are left:\n{marks}"))?;
        let fsck = round.garden.git_in(&place, ["fsck", "--no-dangling", "--no-progress"]);
        require(fsck.code() == 0, || fsck.report())?;
    }
    let alive = alive(round.garden.root());
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
