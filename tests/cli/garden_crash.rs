//! Re-running is recovery: a run that is killed at any of its calls of git ends, run again, as if nothing had happened.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
};

use arborist_testkit::{Run, TestRepo, call_stride};

const TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form", "depends_on": ["T001"]}
  },
  "root_ids": ["T001", "T002"]
}
"#;

/// Two tasks side by side, and one that needs both.
const WIDE_TREE: &str = r#"{
  "nodes": {
    "T001": {"id": "T001", "name": "Create the schema"},
    "T002": {"id": "T002", "name": "Add the form"},
    "T003": {"id": "T003", "name": "Join them", "depends_on": ["T001", "T002"]}
  },
  "root_ids": ["T001", "T002", "T003"]
}
"#;

/// Writes the same, however often it is called.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T001:*) echo one > one.txt; echo done ;;
  *T002:*) echo two > two.txt; rm -f one.txt; mkdir -p deep; echo three > deep/three.txt; echo done ;;
  *) echo three > three.txt; echo done ;;
esac
"#;

/// The same in two turns, of which it tells as Claude Code does. The second undoes a part of the first.
const TURNER: &str = r#"
opens
case "$prompt" in
  *T001:*)
    calls 1 "Add one"; echo one > one.txt; echo rest > rest.txt; answers 1
    calls 2 "Add more"; rm rest.txt; mkdir -p src; echo more > src/more.txt; answers 2 ;;
  *T002:*)
    calls 1 "Add two"; echo two > two.txt; rm -f one.txt; answers 1
    calls 2 "Add three"; mkdir -p deep; echo three > deep/three.txt; answers 2 ;;
  *) calls 1 "Add three"; echo three > three.txt; answers 1 ;;
esac
ends done
"#;

/// A run that is killed and run again.
struct Case {
    tree: &'static str,
    worker: Worker,
    args: &'static [&'static str],
    tasks: &'static [&'static str],
    /// What is written down of each task, once.
    steps: &'static [&'static str],
    /// How many agents may have been at work when it was killed.
    jobs: usize,
    /// Every n-th call of git is tried.
    stride: usize,
    /// Where the work is.
    place: Place,
}

#[derive(PartialEq)]
enum Place {
    Checkout,
    SessionBranch,
}

/// Who works.
enum Worker {
    /// One whose steps are one commit each.
    Plain,
    /// One who tells of turns.
    Turning,
}

const IN_PLACE: Case = Case {
    tree: TREE,
    worker: Worker::Plain,
    args: &[],
    tasks: &["T001", "T002"],
    steps: &["implement-pass", "test-pass", "review-approved", "complete"],
    jobs: 1,
    stride: 31,
    place: Place::Checkout,
};

const APART: Case = Case { args: &["--session-branch"], stride: 43, place: Place::SessionBranch, ..IN_PLACE };

const TWO_JOBS_APART: Case =
    Case { args: &["--session-branch", "--jobs", "2"], stride: 149, place: Place::SessionBranch, ..TWO_JOBS };

const IN_TURNS: Case = Case { worker: Worker::Turning, stride: 53, ..IN_PLACE };

const TWO_JOBS_IN_TURNS: Case = Case { worker: Worker::Turning, stride: 101, ..TWO_JOBS };

const TWO_JOBS: Case = Case {
    tree: WIDE_TREE,
    worker: Worker::Plain,
    args: &["--jobs", "2"],
    tasks: &["T001", "T002", "T003"],
    steps: &["implement-pass", "test-pass", "review-approved", "complete", "merge"],
    jobs: 2,
    stride: 71,
    place: Place::Checkout,
};

/// The plan is not committed: that is for the run to do.
fn repo(case: &Case) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", case.tree);
    match case.worker {
        Worker::Plain => repo.agent(WORKER),
        Worker::Turning => crate::turn_scripts::agent(&repo, "claude", TURNER),
    }
    repo
}

/// A git that numbers its calls, and kills who called it instead of answering the one that is named. One that stays and is
/// told of one object after the other is called as often as it is told.
fn plant_git(repo: &TestRepo) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let calls = repo.root().join("calls");
    fs::create_dir(&calls).unwrap();
    let number = "n=1; until { true > \"$CALLS/$n\"; } 2>/dev/null; do n=$((n+1)); done";
    let kill = "if [ $n -eq \"$KILL_AT\" ]; then kill -9 $PPID; exit 1; fi";
    let told = "while IFS= read -r line; do step; printf '%s\\n' \"$line\" | \"$GIT\" \"$@\"; done; exit";
    let script = format!(
        "#!/bin/sh\nCALLS='{}'\nGIT='{}'\nset -C\nstep() {{ {number}; {kill}; }}\n\
         case \" $* \" in *\" --stdin-paths \"*) {told} ;; esac\nstep\nexec \"$GIT\" \"$@\"\n",
        calls.display(),
        git.display()
    );
    repo.plant("git", &script);
}

fn run(repo: &TestRepo, case: &Case, kill_at: usize) -> Run {
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--test-command", "true"]).args(case.args).env("KILL_AT", kill_at.to_string()), b"")
}

/// The branch that was worked on. However often it is run, there is one.
fn tip(repo: &TestRepo, case: &Case) -> String {
    let list = ["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/task-tree"];
    let branches = repo.git(list).answer();
    match case.place {
        Place::Checkout => assert_eq!(branches, ""),
        Place::SessionBranch => assert_eq!(branches.lines().count(), 1, "{branches}"),
    }
    if branches.is_empty() { "HEAD".to_owned() } else { branches }
}

/// What the work came to: every file but the reports, which name commits.
fn work(repo: &TestRepo, case: &Case) -> String {
    let tree = repo.git(["ls-tree", "-r", &tip(repo, case)]).answer();
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

/// Processes that work in the repository, where the system lists them.
fn alive(repo: &TestRepo) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let here = |entry: &fs::DirEntry| {
        fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(repo.root()))
    };
    processes.flatten().filter(here).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn count(log: &str, part: &str) -> usize {
    log.lines().filter(|line| line.contains(part)).count()
}

/// How often the agent was called for each step of a task, by the first line of what it was told.
fn calls(repo: &TestRepo) -> BTreeMap<String, usize> {
    let mut calls = BTreeMap::new();
    for call in 0..repo.calls() {
        let step = repo.prompt(call).lines().next().unwrap_or_default().to_owned();
        *calls.entry(step).or_default() += 1;
    }
    calls
}

/// Kills a run at a call, and runs it again: it must end as `expected`.
fn assert_survives_kill_at(case: &Case, kill_at: usize, expected: &str) {
    let repo = repo(case);
    plant_git(&repo);
    let killed = run(&repo, case, kill_at);
    // A run may need fewer calls than another, and end before it is killed: where several work at once, and where the clock of
    // the file system lets files be compared without git.
    let is_over = killed.code() == 0;
    assert!(killed.code() == 137 || is_over, "killed at {kill_at}: {}", killed.report());
    run(&repo, case, 0).succeeds();
    fs::remove_file(repo.bin().join("git")).unwrap();
    assert_eq!(work(&repo, case), expected, "killed at {kill_at}");
    let log = repo.git(["log", "--format=%s", &tip(&repo, case)]).answer();
    for (task, step) in case.tasks.iter().flat_map(|task| case.steps.iter().map(move |step| (task, step))) {
        assert_eq!(count(&log, &format!("@{task}@{step})")), 1, "killed at {kill_at}:\n{log}");
    }
    assert_eq!(count(&log, "@@run-start)"), 1, "killed at {kill_at}:\n{log}");
    let calls = calls(&repo);
    assert!(calls.values().all(|calls| *calls <= 2), "killed at {kill_at}: {calls:?}");
    assert!(repo.calls() <= 2 * case.tasks.len() + case.jobs, "killed at {kill_at}: {calls:?}");
    assert_nothing_of_the_crash_is_left(&repo, case, kill_at);
}

/// Nothing of the crash is left.
fn assert_nothing_of_the_crash_is_left(repo: &TestRepo, case: &Case, kill_at: usize) {
    // Apart, the user's checkout is as it was, and the plan there is as the user left it.
    let status = if case.place == Place::Checkout { "" } else { "?? task-tree.json" };
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), status, "killed at {kill_at}");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "killed at {kill_at}");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/queue/tickets"]).answer(), "", "killed at {kill_at}");
    repo.git(["fsck", "--strict", "--no-dangling"]).succeeds().silent();
    assert_eq!(locks(&repo.path(".git")), Vec::<String>::new(), "killed at {kill_at}");
    assert_eq!(alive(repo), Vec::<String>::new(), "killed at {kill_at}");
    let lanes = repo.git(["worktree", "list"]).answer();
    let in_use = lanes.lines().skip(1).filter(|lane| !lane.contains("(detached HEAD)")).count();
    assert_eq!(in_use, usize::from(case.place == Place::SessionBranch), "killed at {kill_at}: {lanes}");
}

/// Kills at every n-th call; `ARBORIST_EVERY_CALL=1` for all, `ARBORIST_EVERY_CALL=n` for another n.
fn assert_survives_kills(case: &Case) {
    let undisturbed = repo(case);
    plant_git(&undisturbed);
    run(&undisturbed, case, 0).succeeds();
    let calls = fs::read_dir(undisturbed.root().join("calls")).unwrap().count();
    let expected = work(&undisturbed, case);
    let stride = call_stride(case.stride);
    let next = AtomicUsize::new(1);
    let kill = || {
        let take = || Some(next.fetch_add(stride, Ordering::SeqCst)).filter(|at| *at <= calls);
        std::iter::from_fn(take).for_each(|at| assert_survives_kill_at(case, at, &expected));
    };
    std::thread::scope(|scope| {
        scope.spawn(kill);
        scope.spawn(kill);
    });
}

#[test]
fn a_run_killed_at_any_git_call_ends_the_same_when_it_is_run_again() {
    assert_survives_kills(&IN_PLACE);
}

#[test]
fn a_run_with_two_jobs_killed_at_any_git_call_lands_every_task_once() {
    assert_survives_kills(&TWO_JOBS);
}

#[test]
fn a_run_with_turn_commits_killed_at_any_git_call_ends_the_same_when_it_is_run_again() {
    assert_survives_kills(&IN_TURNS);
}

#[test]
fn a_run_with_turn_commits_in_lanes_killed_at_any_git_call_lands_every_task_once() {
    assert_survives_kills(&TWO_JOBS_IN_TURNS);
}

#[test]
fn a_run_on_a_session_branch_killed_at_any_git_call_continues_on_that_branch() {
    assert_survives_kills(&APART);
}

#[test]
fn a_run_with_two_jobs_on_a_session_branch_killed_at_any_git_call_continues_on_that_branch() {
    assert_survives_kills(&TWO_JOBS_APART);
}
