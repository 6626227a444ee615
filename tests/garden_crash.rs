//! Re-running is recovery: a run that is killed at any of its calls of git ends, run again, as if nothing had happened.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use arborist_testkit::{Garden, Run};

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form", "depends_on": ["T001"]}
  },
  "root_ids": ["T001", "T002"]
}
"#;

/// Writes the same, however often it is called.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T001:*) echo one > one.txt; echo done ;;
  *) echo two > two.txt; rm -f one.txt; mkdir -p deep; echo three > deep/three.txt; echo done ;;
esac
"#;

/// How many calls of an undisturbed run of the agent: each task is implemented and reviewed.
const CALLS: usize = 4;

fn garden() -> Garden {
    let garden = Garden::sprout();
    garden.write("task-tree.json", TREE);
    garden.commit("a plan\n");
    garden.agent(WORKER);
    garden
}

/// A git that numbers its calls, and kills who called it instead of answering the one that is named.
fn plant_git(garden: &Garden) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let calls = garden.root().join("calls");
    fs::create_dir(&calls).unwrap();
    let number = "set -C; n=1; until { true > \"$CALLS/$n\"; } 2>/dev/null; do n=$((n+1)); done";
    let kill = "if [ $n -eq \"$KILL_AT\" ]; then kill -9 $PPID; exit 1; fi";
    let script = format!(
        "#!/bin/sh\nCALLS='{}'\n{number}\n{kill}\nexec '{}' \"$@\"\n",
        calls.display(),
        git.display()
    );
    garden.plant("git", &script);
}

fn run(garden: &Garden, kill_at: usize) -> Run {
    let mut command = garden.command("git-arborist-gardener", &garden.path(""));
    Run::of(command.args(["--test-command", "true"]).env("KILL_AT", kill_at.to_string()), b"")
}

/// What the work came to: every file but the reports, which name commits.
fn work(garden: &Garden) -> String {
    let tree = garden.git(["ls-tree", "-r", "HEAD"]).answer();
    tree.lines().filter(|line| !line.contains("\tspec/reports/")).collect::<Vec<_>>().join("\n")
}

fn locks(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .flat_map(|entry| {
            let path = entry.path();
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            if path.is_dir() {
                locks(&path)
            } else {
                is_lock.then(|| path.display().to_string()).into_iter().collect()
            }
        })
        .collect()
}

/// Processes that work in the garden, where the system lists them.
fn alive(garden: &Garden) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let here = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(garden.root()))
    };
    processes.flatten().filter(here).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn count(log: &str, part: &str) -> usize {
    log.lines().filter(|line| line.contains(part)).count()
}

/// Kills a run at a call, and runs it again: it must end as `expected`.
fn survives(kill_at: usize, expected: &str) {
    let garden = garden();
    plant_git(&garden);
    assert_eq!(run(&garden, kill_at).code(), 137, "killed at {kill_at}");
    run(&garden, 0).succeeds();
    fs::remove_file(garden.bin().join("git")).unwrap();
    assert_eq!(work(&garden), expected, "killed at {kill_at}");
    let log = garden.git(["log", "--format=%s"]).answer();
    for task in ["T001", "T002"] {
        for step in ["implement-pass", "test-pass", "review-approved", "complete"] {
            assert_eq!(count(&log, &format!("@{task}@{step})")), 1, "killed at {kill_at}:\n{log}");
        }
    }
    assert_eq!(count(&log, "@@run-start)"), 1, "killed at {kill_at}:\n{log}");
    assert!(garden.calls() <= CALLS + 1, "killed at {kill_at}: {} calls", garden.calls());
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "killed at {kill_at}");
    assert_eq!(garden.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "killed at {kill_at}");
    garden.git(["fsck", "--strict", "--no-dangling"]).succeeds().silent();
    assert_eq!(locks(&garden.path(".git")), Vec::<String>::new(), "killed at {kill_at}");
    assert_eq!(alive(&garden), Vec::<String>::new(), "killed at {kill_at}");
}

/// Every third call by default; `ARBORIST_EVERY_CALL=1` for all.
#[test]
fn a_run_that_is_killed_at_any_call_of_git_ends_the_same_when_it_is_run_again() {
    let undisturbed = garden();
    plant_git(&undisturbed);
    run(&undisturbed, 0).succeeds();
    let calls = fs::read_dir(undisturbed.root().join("calls")).unwrap().count();
    let expected = work(&undisturbed);
    let stride = if std::env::var_os("ARBORIST_EVERY_CALL").is_some() { 1 } else { 3 };
    let next = AtomicUsize::new(1);
    let kill = || {
        let take = || Some(next.fetch_add(stride, Ordering::SeqCst)).filter(|at| *at <= calls);
        std::iter::from_fn(take).for_each(|at| survives(at, &expected));
    };
    std::thread::scope(|scope| {
        scope.spawn(kill);
        scope.spawn(kill);
    });
}
