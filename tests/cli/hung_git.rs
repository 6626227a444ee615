//! A git that hangs, fails for a moment or cannot take in a file: signals, retries and errors that name the cause.

use std::{
    fs,
    io::Read,
    os::unix::process::{CommandExt, ExitStatusExt},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::{Run, TestRepo};

const WORKER: &str =
    "case \"$prompt\" in Review*) echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac";

/// A git whose first `add` after the agent's work hangs, with a child of its own.
const HANGING: &str = "#!/bin/sh
case \" $* \" in *' add '*)
  if [ -e 'ROOT/repo/T001.txt' ]; then
    TRAP
    touch 'ROOT/hangs'
    while :; do sleep 600 & wait $!; done
  fi ;;
esac
exec REAL_GIT \"$@\"
";

fn real_git() -> String {
    let found = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

fn wait_for(what: &str, mut is_there: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_there() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn one_signal_ends_a_run_whose_git_hangs() {
    for trap in ["", "trap '' TERM"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", WORKER);
        let root = repo.root().display().to_string();
        let script = HANGING.replace("ROOT", &root).replace("TRAP", trap).replace("REAL_GIT", &real_git());
        repo.plant("git", &script);
        let mut command = repo.command("git-arborist-gardener", &repo.path(""));
        let mut run = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        wait_for("git hangs", || repo.root().join("hangs").exists());
        let began = Instant::now();
        let killed = Command::new("kill").args(["-TERM", &run.id().to_string()]).status().unwrap();
        assert!(killed.success());
        wait_for("the run ends", || run.try_wait().unwrap().is_some());
        let took = began.elapsed();
        assert_eq!(run.wait().unwrap().code(), Some(143), "'{trap}'");
        assert!(took < Duration::from_secs(60), "'{trap}': {took:?}");
        // The real git is found again, and the task is done.
        fs::remove_file(repo.bin().join("git")).unwrap();
        repo.arborist(["gardener"]).succeeds();
    }
}

/// A git that hangs with a child, whatever it is asked, and ignores SIGTERM.
const ALWAYS_HANGING: &str = "#!/bin/sh
trap '' TERM INT
while :; do
  sleep 600 &
  echo $$ $! >> 'ROOT/hangs'
  wait $!
done
";

#[test]
fn a_hung_git_is_ended_when_its_command_is_interrupted() {
    let commands = ["state", "plan", "verify", "session list", "worktree list", "merge status", "cleanup -n"];
    for (at, words) in commands.iter().enumerate() {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", WORKER);
        repo.plant("git", &ALWAYS_HANGING.replace("ROOT", &repo.root().display().to_string()));
        let mut words = words.split(' ');
        let program = format!("git-arborist-{}", words.next().unwrap());
        let mut command = repo.command(&program, &repo.path(""));
        command.args(words).process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut run = command.spawn().unwrap();
        wait_for("git hangs", || repo.root().join("hangs").exists());
        let (signal, number) = if at % 2 == 0 { ("-TERM", 15) } else { ("-INT", 2) };
        assert!(Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap().success());
        wait_for("the command ends", || run.try_wait().unwrap().is_some());
        let ended = run.wait().unwrap();
        assert_eq!(ended.signal().or(ended.code().map(|code| code - 128)), Some(number), "{program}");
        let mut said = String::new();
        run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{program}");
        let hung = fs::read_to_string(repo.root().join("hangs")).unwrap();
        for process in hung.split_whitespace() {
            let is_there = || Command::new("kill").args(["-0", process]).output().unwrap().status.success();
            wait_for("git and its child end", || !is_there());
        }
    }
}

#[test]
fn a_deleted_working_directory_is_named_as_the_cause() {
    let repo = TestRepo::init();
    fs::create_dir(repo.path("gone")).unwrap();
    let programs =
        ["git-arborist-state", "git-arborist-gardener", "git-arborist-session list", "git-arborist-tools"];
    for program in programs {
        let mut command = repo.command("sh", &repo.path(""));
        command.args(["-c", &format!("mkdir -p gone && cd gone && rmdir ../gone && exec {program}")]);
        let said = Run::of(&mut command, b"").exits(128);
        said.err("the current directory cannot be read (was it deleted?)").never("is git installed");
    }
}

#[test]
fn a_file_that_safecrlf_refuses_fails_the_attempt_and_not_the_run() {
    let worker = "case \"$prompt\" in
Review*) echo APPROVED ;;
*safecrlf* | *'would be replaced'*) printf 'a\\nb\\n' > a.txt ;;
*) printf 'a\\r\\nb\\n' > a.txt ;; esac";
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", worker);
    repo.git(["config", "core.autocrlf", "input"]).succeeds();
    repo.git(["config", "core.safecrlf", "true"]).succeeds();
    repo.arborist(["gardener", "--max-retries", "2"]).succeeds();
    let why = repo.git(["log", "--format=%B", "--grep=T001@implement-fail"]).answer();
    assert!(why.contains("CRLF would be replaced by LF in a.txt"), "{why}");
    assert_eq!(repo.git(["show", "HEAD:a.txt"]).answer(), "a\nb");
}

/// A git that fails once in each of these commands, as beside a `git pack-refs` of the user.
const FAILING_ONCE: &str = "#!/bin/sh
for name in add commit-tree rev-parse status write-tree; do
  case \" $* \" in *\" $name \"*)
    if mkdir \"ROOT/failed-$name\" 2>/dev/null; then
      echo \"fatal: COMPLAINT\" >&2
      exit 128
    fi ;;
  esac
done
exec REAL_GIT \"$@\"
";

#[test]
fn a_git_command_that_fails_because_a_file_was_moved_is_retried() {
    for complaint in [
        "unable to resolve reference 'refs/heads/main': No such file or directory",
        "Unable to create '/r/.git/refs/heads/a/b.lock': No such file or directory",
        "failed to read /r/.git/worktrees/lane-1/commondir: No such file or directory",
    ] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", WORKER);
        let root = repo.root().display().to_string();
        let script = FAILING_ONCE.replace("ROOT", &root).replace("COMPLAINT", complaint);
        repo.plant("git", &script.replace("REAL_GIT", &real_git()));
        Run::of(&mut repo.command("git-arborist-gardener", &repo.path("")), b"").succeeds();
        for name in ["commit-tree", "rev-parse", "status"] {
            assert!(repo.root().join(format!("failed-{name}")).exists(), "git {name} was not called");
        }
    }
}

#[test]
fn a_git_command_that_fails_for_another_reason_is_not_retried() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", WORKER);
    let root = repo.root().display().to_string();
    let script = FAILING_ONCE.replace("ROOT", &root).replace("COMPLAINT", "the disk is full");
    repo.plant("git", &script.replace("REAL_GIT", &real_git()));
    Run::of(&mut repo.command("git-arborist-gardener", &repo.path("")), b"")
        .exits(128)
        .err("the disk is full");
}
