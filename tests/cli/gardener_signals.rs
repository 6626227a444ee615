//! Ctrl-C and its relatives while `git arborist gardener --jobs 4` waits for four agents.

use std::{
    fs,
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TestRepo, call_stride};

const TASKS: [&str; 4] = ["T001", "T002", "T003", "T004"];

const PLAN: &str =
    "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n- [ ] T003 [P] do c\n- [ ] T004 [P] do d\n";

/// Leaves half a file and its process id, then does not end unless `$ROOT/well` is there.
const SLEEPER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo half >> "$ARBORIST_TASK.txt"
     [ -e "$ROOT/well" ] || { echo $$ > "$ROOT/pid-$ARBORIST_TASK"; sleep 600; } ;;
esac
"#;

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, SLEEPER)
}

/// Waits until something is there, and gives it.
fn wait_for<T>(what: &str, find: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(300), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A gardener with four agents at work, and who these are.
fn start(repo: &TestRepo) -> (Child, Vec<String>) {
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    let quiet = command.args(["--jobs", "4"]).stdin(Stdio::null()).stdout(Stdio::null());
    let child = quiet.stderr(Stdio::piped()).spawn().unwrap();
    let agent = |task: &&str| {
        wait_for("the agent was not called", || {
            let pid = fs::read_to_string(repo.root().join(format!("pid-{task}"))).ok()?;
            pid.ends_with('\n').then(|| pid.trim().to_owned())
        })
    };
    (child, TASKS.iter().map(agent).collect())
}

fn is_alive(pid: &str) -> bool {
    let listed = Command::new("ps").args(["-o", "stat=", "-p", pid]).output().unwrap();
    let state = String::from_utf8_lossy(&listed.stdout).trim().to_owned();
    !state.is_empty() && !state.starts_with('Z')
}

#[test]
fn a_signal_ends_all_agents_and_keeps_their_work_and_lanes_for_the_next_run() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let repo = repo();
        let (child, agents) = start(&repo);
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert!(said.contains("\nstopped\n") && said.contains("hint: run the same command again"), "{said}");
        assert!(!agents.iter().any(|agent| is_alive(agent)), "an agent was left alive");
        let lanes = repo.git(["worktree", "list"]).answer();
        for task in TASKS {
            let branch = format!("arborist/task/main/{task}");
            assert!(lanes.contains(&format!("[{branch}]")), "its lane is kept: {lanes}");
            assert_eq!(repo.git(["show", &format!("{branch}:{task}.txt")]).answer(), "half");
            let told = repo.git(["log", "-1", "--format=%B", &branch]).answer();
            assert!(
                told.contains("@implement-fail") && told.contains("Arborist-Interrupted: stopped by "),
                "{told}"
            );
        }
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
        assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
        fs::write(repo.root().join("well"), "").unwrap();
        repo.arborist(["gardener", "--jobs", "4"]).succeeds().out("4 completed");
        for task in TASKS {
            repo.arborist(["state", task]).succeeds().out("complete, attempt 1");
            assert_eq!(repo.read(&format!("{task}.txt")), "half\nhalf\n", "it goes on with what was there");
        }
    }
}

/// A git that numbers its calls, and at the one that is named signals the whole group of the gardener, as a terminal does.
fn plant_git(repo: &TestRepo) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let root = repo.root().display();
    fs::create_dir(repo.root().join("calls")).unwrap();
    repo.plant(
        "git",
        &format!(
            "#!/bin/sh\nset -C\nn=1; until {{ true > '{root}/calls/'$n; }} 2>/dev/null; do n=$((n+1)); done\n\
             [ $n -ne \"$SIGNAL_AT\" ] || kill -INT -- -$(cat '{root}/group')\nexec '{}' \"$@\"\n",
            git.display()
        ),
    );
}

/// Runs four jobs in a group of their own.
fn run_in_group(repo: &TestRepo, signal_at: usize) -> Run {
    let mut command = repo.command("sh", &repo.path(""));
    let script = "echo $$ >| \"$0\"; exec git-arborist-gardener --jobs 4";
    command.args(["-c", script]).arg(repo.root().join("group")).process_group(0);
    Run::of(command.env("SIGNAL_AT", signal_at.to_string()), b"")
}

/// Ctrl-C reaches everybody in the terminal's group. Whatever git is doing then, it is the wish to stop, and no failure.
#[test]
fn a_signal_to_the_process_group_stops_the_run_without_an_error_at_any_git_call() {
    let quick =
        || TestRepo::planned("tasks.md", PLAN, &SLEEPER.replace("[ -e \"$ROOT/well\" ] ||", "true ||"));
    let undisturbed = quick();
    plant_git(&undisturbed);
    run_in_group(&undisturbed, 0).succeeds().out("4 completed");
    let calls = fs::read_dir(undisturbed.root().join("calls")).unwrap().count();
    for at in (10..calls).step_by(call_stride((calls / 4).max(1))) {
        let repo = quick();
        plant_git(&repo);
        let stopped = run_in_group(&repo, at);
        // What comes when all is done stops nothing.
        let is_over = stopped.code() == 0 && stopped.stdout().contains("4 completed");
        assert!(stopped.code() == 130 || is_over, "at {at} of {calls}: {}", stopped.report());
        assert!(!stopped.stderr().contains("error: git"), "at {at}: {}", stopped.report());
        run_in_group(&repo, 0).succeeds();
        fs::remove_file(repo.bin().join("git")).unwrap();
        for task in TASKS {
            assert!(repo.read(&format!("{task}.txt")).starts_with("half\n"), "at {at}");
        }
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "at {at}");
        assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "at {at}");
        repo.git(["fsck", "--strict", "--no-dangling"]).succeeds().silent();
    }
}

/// A repository whose run was ended by a second signal, and its agents with it, which do not end when they are asked to. `None`
/// if it was ended in order: on a busy machine the agents' time may be over before the second signal arrives.
fn ended_at_once() -> Option<TestRepo> {
    let repo = repo();
    repo.agent(&format!("trap '' TERM INT\n{}", SLEEPER.replace("sleep 600", "while :; do sleep 1; done")));
    let (mut child, agents) = start(&repo);
    let pid = child.id().to_string();
    let send = || assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    // One that follows too soon is the same wish, and a busy run hears of both at the same time.
    let mut ends_soon = || {
        (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            child.try_wait().unwrap().is_some()
        })
    };
    send();
    while !ends_soon() {
        send();
    }
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    wait_for("an agent was left alive", || (!agents.iter().any(|agent| is_alive(agent))).then_some(()));
    (!said.contains("\nstopped\n")).then_some(repo)
}

#[test]
fn a_second_signal_ends_all_agents_at_once_and_the_next_run_keeps_their_work() {
    let repo = (0..3).find_map(|_| ended_at_once()).expect("nobody is asked politely any more");
    fs::write(repo.root().join("well"), "").unwrap();
    repo.arborist(["gardener", "--jobs", "4"]).succeeds().err("was interrupted").out("4 completed");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/wip"]).answer(), "");
}
