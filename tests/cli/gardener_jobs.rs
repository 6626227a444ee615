//! `git arborist gardener --jobs N`: several tasks at once, each in a worktree of its own.

use std::{fs, time::Duration};

use arborist_testkit::{Run, TestRepo};

/// Four tasks side by side, and one that needs them all.
const PLAN: &str = "\
## Phase 1: Ground

- [ ] T001 [P] do a
- [ ] T002 [P] do b
- [ ] T003 [P] do c
- [ ] T004 [P] do d

## Phase 2: House

- [ ] T005 build on it

## Dependencies

- T005 depends on T001, T002, T003, T004
";

/// Writes a file for each task, says what it sees of the others, and approves of everything.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p')
     mkdir -p "$ROOT/seen"; ls T*.txt 2>/dev/null | tr '\n' ' ' > "$ROOT/seen/$task"; pwd > "$ROOT/seen/$task.dir"
     echo "$ARBORIST_WORKTREE" > "$ROOT/seen/$task.worktree"
     if grep -qs "$task" "$ROOT/broken"; then echo "cannot do $task" >&2; exit 1; fi
     echo "$task" > "$task.txt" ;;
esac
"#;

fn repo(agent: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", PLAN);
    repo.write(".gitignore", "*.log\n");
    repo.commit("a plan\n");
    repo.agent(agent);
    repo
}

fn tracked(repo: &TestRepo) -> String {
    repo.git(["ls-files", "T*.txt"]).answer().replace('\n', " ")
}

fn seen(repo: &TestRepo, name: &str) -> String {
    fs::read_to_string(repo.root().join("seen").join(name)).unwrap_or_default().trim().to_owned()
}

fn merges(repo: &TestRepo) -> usize {
    repo.git(["log", "--merges", "--format=%s"])
        .answer()
        .lines()
        .filter(|line| line.contains("@merge)"))
        .count()
}

#[test]
fn parallel_tasks_run_in_separate_worktrees_and_each_lands_as_one_merge() {
    // The first four have all begun before one of them lands.
    let work = "echo \"$task\" > \"$task.txt\"";
    let begun =
        "[ $task = T005 ] || until [ $(ls \"$ROOT\"/seen/*.worktree | wc -l) -ge 4 ]; do sleep 0.02; done";
    let repo = repo(&WORKER.replace(work, &format!("{begun}\n     {work}")));
    repo.arborist(["gardener", "--jobs", "4"]).succeeds().out("5 completed");
    assert_eq!(tracked(&repo), "T001.txt T002.txt T003.txt T004.txt T005.txt");
    assert_eq!(merges(&repo), 5);
    assert_eq!(seen(&repo, "T003"), "", "no task sees another that has not landed");
    assert_eq!(
        seen(&repo, "T005"),
        "T001.txt T002.txt T003.txt T004.txt",
        "a dependant begins with what landed"
    );
    assert_ne!(seen(&repo, "T001.dir"), repo.path("").display().to_string());
    assert_eq!(seen(&repo, "T001.dir"), seen(&repo, "T001.worktree"));
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "the checkout is up to date and clean");
    repo.arborist(["state", "--exit-code"]).succeeds();
    repo.arborist(["trailers", "check", "HEAD~5.."]).succeeds();
    repo.arborist(["gardener", "--jobs", "4"]).succeeds().out("nothing is left to do");
    assert_eq!(repo.calls(), 10, "what is done is not done again");
    let lanes = repo.git(["worktree", "list"]).answer();
    assert!(lanes.lines().skip(1).all(|lane| lane.contains("detached")), "all lanes are free again: {lanes}");
}

#[test]
fn the_isolate_option_runs_a_single_job_in_a_lane() {
    let repo = repo(WORKER);
    repo.arborist(["gardener", "--isolate", "--until", "T002"]).succeeds().out("2 completed");
    assert_ne!(seen(&repo, "T001.dir"), repo.path("").display().to_string());
    assert_eq!(seen(&repo, "T001.dir"), seen(&repo, "T002.dir"), "the lane is used again");
    assert_eq!(merges(&repo), 2);
}

#[test]
fn the_number_of_jobs_is_configurable() {
    let repo = repo(WORKER);
    repo.arborist(["gardener", "--jobs", "none"]).exits(129).err("not a number of jobs");
    repo.git(["config", "arborist.jobs", "2"]).succeeds();
    repo.arborist(["gardener", "--until", "T002"]).succeeds();
    assert_eq!(merges(&repo), 2);
}

#[test]
fn a_failed_task_keeps_its_lane_and_stops_only_its_dependants() {
    let repo = repo(WORKER);
    repo.write("../broken", "T002\n");
    let flags = ["gardener", "--jobs", "2", "--max-retries", "1", "--keep-going"];
    repo.arborist(flags).exits(1).out("1 failed (T002)").out("T005").out("waits for T002");
    assert_eq!(tracked(&repo), "T001.txt T003.txt T004.txt");
    repo.arborist(["state", "T002"]).succeeds().out("failed");
    let lanes = repo.git(["worktree", "list"]).answer();
    assert!(lanes.contains("[arborist/task/main/T002]"), "it stays for inspection: {lanes}");
    repo.write("../broken", "");
    repo.arborist(["gardener", "--jobs", "2", "--retry-failed"]).succeeds().out("2 completed");
    assert_eq!(tracked(&repo), "T001.txt T002.txt T003.txt T004.txt T005.txt");
}

#[test]
fn uncommitted_changes_in_the_checkout_are_kept_when_tasks_land() {
    let repo = repo(WORKER);
    repo.write("notes.txt", "mine\n");
    repo.write(".gitignore", "*.log\nmine\n");
    let before = repo.git(["status", "--porcelain"]).answer();
    repo.arborist(["gardener", "--jobs", "2", "--until", "T002"]).succeeds().err("stay in your checkout");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), before);
    assert_eq!(repo.read("notes.txt"), "mine\n");
    assert_eq!(tracked(&repo), "T001.txt T002.txt");
}

#[test]
fn a_landing_that_would_overwrite_changes_of_the_user_is_parked() {
    let repo = repo(WORKER);
    repo.write("T001.txt", "mine\n");
    repo.arborist(["gardener", "--jobs", "2"])
        .exits(2)
        .out("parked")
        .out("next   git add -A && git stash && git merge --ff-only --no-overwrite-ignore refs/arborist/landing/main\n  then   git stash pop\n");
    assert_eq!(repo.read("T001.txt"), "mine\n");
    repo.arborist(["state", "--exit-code"]).exits(1).out(" done, ").out(" parked").out(
        "update the checkout of main: git add -A && git stash && git merge --ff-only --no-overwrite-ignore refs/arborist/landing/main",
    );
    assert_eq!(
        seen(&repo, "T005"),
        "T001.txt T002.txt T003.txt T004.txt",
        "dependants build on what is parked"
    );
    repo.git(["stash", "-q", "-u"]).succeeds();
    repo.git(["merge", "-q", "--ff-only", "--no-overwrite-ignore", "refs/arborist/landing/main"]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds().never("parked");
    repo.arborist(["gardener", "--jobs", "2"]).succeeds().out("nothing is left to do");
    assert_eq!(tracked(&repo), "T001.txt T002.txt T003.txt T004.txt T005.txt");
}

#[test]
fn a_parked_landing_is_compared_with_its_merge_once_in_a_run() {
    let repo = repo(WORKER);
    repo.write("T001.txt", "mine\n");
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let (git, root) = (git.display(), repo.root().display());
    let note = format!(r#"case " $* " in *" merge-tree "*) echo "$*" >> '{root}/merges' ;; esac"#);
    repo.plant("git", &format!("#!/bin/sh\n{note}\nexec '{git}' \"$@\"\n"));
    // Not by way of git, which puts its own folder first on `PATH`.
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    Run::of(command.args(["--jobs", "2", "--until", "T003"]), b"").exits(2).out("parked");
    let merges = fs::read_to_string(repo.root().join("merges")).unwrap();
    for merge in merges.lines() {
        let count = merges.lines().filter(|other| *other == merge).count();
        assert!(count <= 2, "once to land, and once to compare, but {count} times: {merge}");
    }
}

#[test]
fn a_parked_landing_that_lands_again_after_a_commit_of_the_user_is_complete() {
    let repo = repo(WORKER);
    repo.write("T001.txt", "mine\n");
    repo.arborist(["gardener", "--jobs", "2", "--until", "T005"]).exits(2).out("parked");
    fs::remove_file(repo.path("T001.txt")).unwrap();
    repo.write("other.txt", "mine\n");
    repo.commit("something of the user's\n");
    repo.arborist(["merge", "run"]).succeeds();
    repo.arborist(["state", "--exit-code"]).succeeds().never("forked");
    repo.arborist(["gardener", "--jobs", "2"]).succeeds().out("nothing is left to do");
}

#[test]
fn of_two_conflicting_tasks_one_lands_and_the_other_is_reported() {
    let both = "echo \"$task\" > same.txt; touch \"$ROOT/at-$task\"; until [ -e \"$ROOT/at-T001\" ] && [ -e \"$ROOT/at-T002\" ]; do sleep 0.02; done";
    let repo = repo(&WORKER.replace("echo \"$task\" > \"$task.txt\"", both));
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--until", "T002", "--keep-going"])
        .exits(2)
        .out("1 completed")
        .out("1 did not land")
        .out("same.txt");
    let state = repo.arborist(["state", "--json"]).succeeds().stdout();
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    let tasks = state["tasks"].as_array().unwrap();
    let landed = |id: &str| tasks.iter().find(|task| task["id"] == id).unwrap()["landed"].clone();
    assert_ne!(landed("T001"), landed("T002"), "{state}");
}

#[test]
fn the_tests_of_a_phase_gate_the_landing_of_its_last_task() {
    let repo = TestRepo::init();
    let tree = r#"{"nodes": {
      "P1": {"id": "P1", "name": "Phase", "children": ["T001", "T002"],
             "test_commands": [{"type": "integration", "command": "test -e T001.txt && test -e T002.txt"}]},
      "T001": {"id": "T001", "name": "a", "parent": "P1"},
      "T002": {"id": "T002", "name": "b", "parent": "P1"}},
      "root_ids": ["P1"]}"#;
    repo.write("task-tree.json", tree);
    repo.commit("a plan\n");
    repo.agent(WORKER);
    repo.arborist(["gardener", "--jobs", "2", "--yes"]).succeeds().out("2 completed");
    repo.arborist(["state", "--exit-code"]).succeeds();
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(log.contains("task(main@P1@test-pass)"), "{log}");
    let branches = repo.git(["branch", "--list", "arborist/task/main/P1"]).answer();
    assert_eq!(branches, "", "a place for tests leaves no branch");
}

#[test]
fn a_killed_run_continues_in_its_lanes_and_loses_nothing() {
    let repo = repo(
        r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p')
     echo "$task" >> "$task.txt"
     if [ ! -e "$ROOT/calm" ]; then touch "$ROOT/begun-$task"; sleep 600; fi ;;
esac
"#,
    );
    let mut driver = repo.command("git-arborist-gardener", &repo.path(""));
    let quiet = std::process::Stdio::null;
    let mut child = driver.args(["--jobs", "2"]).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let begun = |task: &str| repo.root().join(format!("begun-{task}"));
    let are_begun = (0..3600).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        begun("T001").exists() && begun("T002").exists()
    });
    assert!(are_begun);
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(repo.root().join("calm"), "").unwrap();
    repo.arborist(["gardener", "--jobs", "2"])
        .succeeds()
        .err("ended processes that a crashed run had left:")
        .out("5 completed");
    let history = repo.git(["log", "--format=%s", "--all"]).answer();
    assert!(history.contains("task(main@T001@implement-fail)"), "{history}");
    assert_eq!(repo.read("T001.txt"), "T001\nT001\n", "what the first attempt left was there for the second");
    repo.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_task_of_a_killed_run_in_a_lane_is_not_started_again_in_the_checkout() {
    let repo = repo("echo half > half.txt; kill -9 $PPID; exit 1\n");
    assert_ne!(repo.arborist(["gardener", "--isolate", "--only", "T002"]).code(), 0);
    repo.agent(WORKER);
    let hint = "git arborist gardener --isolate --only T002";
    let said = repo.arborist(["garden", "T002"]).exits(2);
    said.err("task 'T002' was started on its own branch, 'arborist/task/main/T002'").err(hint);
    repo.arborist(["gardener"]).exits(2).err(hint);
    repo.arborist(["worktree", "list"]).succeeds().out("arborist/task/main/T002").never("free");
    repo.arborist(["garden", "T001"]).succeeds();
    repo.arborist(["gardener", "--isolate", "--only", "T002"]).succeeds();
    assert_eq!(repo.git(["show", "arborist/task/main/T002:half.txt"]).answer(), "half", "nothing is lost");
    repo.arborist(["gardener", "--new-run"]).succeeds();
}

#[test]
fn the_task_of_a_worktree_added_before_the_run_lands() {
    let repo = repo(WORKER);
    repo.arborist(["worktree", "add", "T001"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--only", "T001"]).succeeds();
    let calls = repo.calls();
    repo.arborist(["state", "--exit-code", "T001"]).succeeds();
    repo.git(["cat-file", "-e", "main:T001.txt"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--only", "T001"]).succeeds();
    assert_eq!(repo.calls(), calls, "nothing is done twice");
}

#[test]
fn a_task_that_has_not_landed_when_a_run_is_stopped_is_not_reported_as_completed() {
    let repo = repo(WORKER);
    // The third run of the tests is the gate's: the first is the baseline, the second the task's.
    let test =
        r#"echo x >> "$ROOT/runs"; [ $(wc -l < "$ROOT/runs") -ne 3 ] || { kill -INT $PPID; sleep 30; }"#;
    let test = test.replace("$ROOT", &repo.root().display().to_string());
    let run = ["gardener", "--jobs", "2", "--only", "T001", "--test-command", &test];
    repo.arborist(run).exits(130).out("1 did not land (T001)").never("completed");
    repo.arborist(run).succeeds().out("1 completed (T001)");
}

/// Goes on once as many agents are at work as there are tasks, or fails.
const CROWD: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) task=$(printf '%s' "$prompt" | sed -n '1s/Implement task \([^:]*\):.*/\1/p')
     mkdir -p "$ROOT/crowd"; : > "$ROOT/crowd/$task"; n=0
     while [ "$(ls "$ROOT/crowd" | wc -l)" -lt 17 ]; do
       n=$((n + 1)); [ $n -lt 6000 ] || exit 1; sleep 0.05
     done
     echo "$task" > "$task.txt" ;;
esac
"#;

#[test]
fn each_of_many_jobs_gets_its_own_lane() {
    let repo = repo(CROWD);
    let tasks: String = (1..=17).map(|n| format!("- [ ] T{n:03} [P] do it\n")).collect();
    repo.write("tasks.md", format!("## Phase 1: All\n\n{tasks}"));
    repo.commit("many tasks\n");
    repo.arborist(["gardener", "--jobs", "17", "--max-retries", "1"]).succeeds().out("17 completed");
    // The run's own lanes are no reason to clean up.
    repo.arborist(["gardener", "--jobs", "17"]).succeeds().never("git arborist cleanup");
}

#[test]
fn worktree_max_limits_the_number_of_jobs_with_a_warning() {
    let repo = repo(WORKER);
    repo.git(["config", "arborist.worktree.max", "1"]).succeeds();
    repo.arborist(["gardener", "--jobs", "3"]).succeeds().err("worktree.max is 1").out("5 completed");
    let lanes = repo.git(["worktree", "list"]).answer().lines().filter(|line| line.contains("lane-")).count();
    assert_eq!(lanes, 1);
}

#[test]
fn commits_of_the_user_on_a_task_branch_from_before_the_run_land_with_the_task() {
    let repo = repo(WORKER);
    let path = repo.arborist(["worktree", "add", "T001"]).answer();
    let lane = std::path::Path::new(&path);
    fs::write(lane.join("by-hand"), "x").unwrap();
    repo.git_in(lane, ["add", "by-hand"]).succeeds();
    repo.git_in(lane, ["commit", "-qm", "a start"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    assert_eq!(tracked(&repo), "T001.txt T002.txt T003.txt T004.txt T005.txt");
    repo.git(["cat-file", "-e", "main:by-hand"]).succeeds();
    repo.arborist(["verify"]).succeeds();
}

#[test]
fn commits_from_before_the_run_that_conflict_with_it_are_left_to_the_user() {
    let repo = repo(WORKER);
    let path = repo.arborist(["worktree", "add", "T001"]).answer();
    let lane = std::path::Path::new(&path);
    let top = repo.path("");
    for place in [lane, top.as_path()] {
        fs::write(place.join("contested"), place.display().to_string()).unwrap();
        repo.git_in(place, ["add", "contested"]).succeeds();
        repo.git_in(place, ["commit", "-qm", "contested"]).succeeds();
    }
    let before = repo.git(["rev-parse", "arborist/task/main/T001"]).answer();
    let said = repo.arborist(["gardener", "--jobs", "2", "--keep-going"]).exits(1).err("T001 was stopped: ");
    said.err("merge the run there by hand: git -C ");
    assert_eq!(repo.git(["rev-parse", "arborist/task/main/T001"]).answer(), before);
}

#[test]
fn many_jobs_need_no_more_open_files_than_a_usual_limit_allows() {
    for (limit, jobs) in [("ulimit -n 256", 10), ("ulimit -Sn 128", 16)] {
        let plan: String = (1..=jobs).map(|n| format!("- [ ] T{n:03} [P] do {n}\n")).collect();
        let repo = TestRepo::planned("tasks.md", &plan, arborist_testkit::WORKER);
        // Each agent waits until all of them work at the same time.
        repo.agent(&format!(
            "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
mkdir -p \"$ROOT/at-work\"; touch \"$ROOT/at-work/$ARBORIST_TASK\"; n=0
until [ $(ls \"$ROOT/at-work\" | wc -l) = {jobs} ] || [ $n = 3000 ]; do n=$((n+1)); sleep 0.02; done
echo x > \"$ARBORIST_TASK.txt\""
        ));
        let command = format!("{limit}; exec git arborist gardener --jobs {jobs}");
        let run = Run::of(repo.command("sh", &repo.path("")).args(["-c", &command]), b"");
        run.succeeds().out(&format!("{jobs} completed"));
    }
}
