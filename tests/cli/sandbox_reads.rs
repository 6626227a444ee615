//! What programs in the sandbox cannot read, and what a run says if it has no sandbox, or one that leaves `.git` open.

use std::{fs, path::Path};

use arborist_testkit::{Run, TestRepo, pairs};

use crate::{
    sandbox_modes::{agent, repo, working_modes},
    test_workspace::TestWorkspace,
};

/// Fails if a hidden file can be read, or if another one cannot.
const TRY: &str = r#"
for file in "$HOME/.ssh/id" "$HOME/.aws/deep/credentials" "$HOME/.netrc" "$HOME/linked/id"; do
  if grep -q secret "$file" 2>/dev/null; then echo "read $file" >&2; exit 1; fi
done
grep -q fine "$HOME/settings" && grep -q fine "$HOME/folder/file" && ls "$HOME" / >/dev/null || exit 1
"#;

#[test]
fn keys_cannot_be_read_but_other_files_in_the_home_directory_can() {
    for (mode, place) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let repo = repo(TRY);
        let home = repo.home();
        for folder in [".ssh", ".aws/deep", "folder"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        for file in [".ssh/id", ".aws/deep/credentials", ".netrc"] {
            fs::write(home.join(file), "secret").unwrap();
        }
        for file in ["settings", "folder/file"] {
            fs::write(home.join(file), "fine").unwrap();
        }
        std::os::unix::fs::symlink(".ssh", home.join("linked")).unwrap();
        let args = ["gardener", "--sandbox", mode, "--max-retries", "1"];
        repo.arborist([&args[..], place].concat()).succeeds();
    }
}

#[test]
fn common_programs_work_although_keys_cannot_be_read() {
    let script = r#"
set -e
for program in git python3 node perl; do
  if command -v $program >/dev/null; then $program --version >/dev/null; fi
done
git log -1 >/dev/null; git status >/dev/null; mktemp >/dev/null
: > new.sh; echo 'echo ran' > new.sh; sh new.sh >/dev/null; cat /etc/passwd /proc/self/status >/dev/null; ls /tmp >/dev/null
rm new.sh
"#;
    for (mode, place) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let repo = repo(script);
        fs::create_dir_all(repo.home().join(".ssh")).unwrap();
        let args = ["gardener", "--sandbox", mode, "--max-retries", "1"];
        repo.arborist([&args[..], place].concat()).succeeds();
    }
}

#[test]
fn other_worktrees_of_the_repository_cannot_be_read() {
    for (mode, place) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let script = "if cat \"$ROOT/repo.arborist/mine/secret\" 2>/dev/null; then exit 1; fi\ncat tasks.md >/dev/null || exit 1\n";
        let repo = repo(script);
        repo.git(["worktree", "add", "-q", "../repo.arborist/mine", "-b", "mine"]).succeeds();
        fs::write(repo.root().join("repo.arborist/mine/secret"), "secret").unwrap();
        let args = ["gardener", "--sandbox", mode, "--max-retries", "1"];
        repo.arborist([&args[..], place].concat()).succeeds();
        // A list of the user replaces the default.
        repo.agent(&agent("cat \"$ROOT/repo.arborist/mine/secret\" >/dev/null || exit 1"));
        repo.git(["config", "arborist.sandbox.deny-read", "~/.ssh"]).succeeds();
        repo.arborist([&args[..], &["--new-run"], place].concat()).succeeds();
    }
}

#[test]
fn git_directories_of_repositories_that_a_task_does_not_work_in_cannot_be_read() {
    let plan = "- [ ] T001 [repo:backend] one\n- [ ] T002 two\n";
    let script = r#"
case $ARBORIST_TASK in
  T001) git -C "$ROOT/backend" log -1 >/dev/null || exit 1 ;;
  T002) if cat "$ROOT/backend/.git/HEAD" 2>/dev/null; then exit 1; fi; ls "$ROOT/backend" >/dev/null || exit 1 ;;
esac
git log -1 >/dev/null || exit 1
"#;
    for (mode, place) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let workspace = TestWorkspace::of(&["backend"], plan);
        workspace.agent(&agent(script));
        let args = ["gardener", "--yes", "--sandbox", mode, "--max-retries", "1"];
        workspace.arborist([&args[..], place].concat()).succeeds();
    }
}

/// Prints the name of each repository beside the checkout of the run whose git directory can be read.
const READ_NEIGHBOURS: &str = r#"
if ! test -e "read.$ARBORIST_TASK"; then
  for name in other lender granted; do
    if grep -q ref "$ROOT/$name/.git/HEAD" 2>/dev/null; then echo "$name" >> "read.$ARBORIST_TASK"; fi
  done
fi
ls "$ROOT/other" >/dev/null && git log -1 >/dev/null && git status >/dev/null || exit 1
"#;

#[test]
fn bubblewrap_hides_git_directories_of_repositories_next_to_the_checkout() {
    for (mode, place) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let repo = repo(READ_NEIGHBOURS);
        for name in ["other", "lender", "granted"] {
            let folder = repo.root().join(name);
            repo.git(["clone", "-q", ".", folder.to_str().unwrap()]).succeeds();
        }
        // A repository that borrows objects cannot be read without those of the other.
        let lender = repo.root().join("lender/.git/objects");
        fs::write(repo.path(".git/objects/info/alternates"), format!("{}\n", lender.display())).unwrap();
        let granted = repo.root().join("granted");
        repo.git(["config", "arborist.runners.robot.sandbox.write", granted.to_str().unwrap()]).succeeds();
        let args = ["gardener", "--sandbox", mode, "--max-retries", "1"];
        repo.arborist([&args[..], place].concat()).succeeds();
        let read = repo.git(["show", "main:read.T001"]).answer();
        let expected = if mode == "bwrap" { "lender\ngranted" } else { "other\nlender\ngranted" };
        assert_eq!(read, expected, "{mode} {place:?}");
    }
}

#[test]
fn the_environment_of_the_driver_cannot_be_read() {
    let script = r#"
driver=$$
until [ "$driver" -le 1 ] || grep -q ^git-arborist /proc/$driver/comm; do
  driver=$(sed -n "s/^PPid:\t//p" /proc/$driver/status)
done
if [ "$driver" -gt 1 ] && head -c 1 /proc/$driver/environ | grep -q .; then exit 1; fi
"#;
    for mode in working_modes() {
        let repo = repo(script);
        repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "1"]).succeeds();
    }
}

const SANDBOX_WAS_OFF: &str = "  note   agents, or tests of their code, ran without a sandbox: they could change .git and every file of your account\n";

#[test]
fn the_summary_says_that_the_sandbox_was_off() {
    for args in [&["gardener"][..], &["gardener", "--jobs", "2"]] {
        let repo = repo("");
        repo.arborist([args, &["--sandbox", "off"]].concat()).succeeds().out(SANDBOX_WAS_OFF);
        // No agent has worked.
        let said = repo.arborist([args, &["--sandbox", "off"]].concat()).succeeds();
        assert!(!said.stdout().contains("sandbox"), "{}", said.stdout());
    }
}

#[test]
fn the_summary_says_if_agents_could_write_to_the_git_directory_of_the_checkout() {
    for mode in working_modes() {
        let repo = repo("");
        let run = repo.arborist(["gardener", "--sandbox", mode]).succeeds();
        assert_eq!(
            run.stdout().contains("agents could write to .git"),
            mode == "landlock",
            "{}",
            run.stdout()
        );
        // The mode of the agent's runner counts.
        let repo = self::repo("");
        repo.git(["config", "arborist.runners.robot.sandbox.mode", "off"]).succeeds();
        repo.arborist(["gardener", "--sandbox", mode]).succeeds().out(SANDBOX_WAS_OFF);
        let repo = self::repo("");
        let run = repo.arborist(["gardener", "--isolate", "--sandbox", mode]).succeeds();
        assert!(!run.stdout().contains("agents could write to .git"), "{}", run.stdout());
    }
}

/// Runs a command as if the kernel had no Landlock: the system call does not exist.
const WITHOUT_LANDLOCK: &str = r"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *rule) for rule in rules))
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
program = Program(len(rules), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
";

#[test]
fn a_run_without_a_sandbox_warns_once_and_records_it() {
    let repo = repo("");
    let has_python = Path::new("/usr/bin/python3").exists();
    if !cfg!(target_os = "linux") || !has_python {
        println!("skipped: /usr/bin/python3 is missing");
        return;
    }
    repo.write_script("../broken/bwrap", "#!/bin/sh\nexit 1\n");
    let broken = repo.path("../broken");
    let gardener = |repo: &TestRepo, args: &[&str]| {
        let mut command = repo.command("/usr/bin/python3", &repo.path(""));
        let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
        let path = path.map_or_else(|| std::env::var_os("PATH").unwrap(), std::ffi::OsStr::to_owned);
        let path = [broken.clone()].into_iter().chain(std::env::split_paths(&path));
        command.args(["-c", WITHOUT_LANDLOCK, "git", "arborist", "gardener", "--sandbox", "auto"]).args(args);
        Run::of(command.env("PATH", std::env::join_paths(path).unwrap()), b"")
    };
    let warning = "this system has no sandbox";
    gardener(&repo, &["--only", "T001"]).succeeds().err(warning);
    let again = gardener(&repo, &[]).succeeds();
    assert!(!again.stderr().contains(warning), "{}", again.stderr());
    let start = repo.git(["log", "--format=%B", "--grep=Step: run-start"]).answer();
    assert!(start.contains("\nArborist-Sandbox: none"), "{start}");
    repo.arborist(["state"]).succeeds().out("without a sandbox");
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
    // A run that began with a sandbox warns where it continues without one.
    let other = self::repo("");
    other.arborist(["gardener", "--sandbox", "auto", "--only", "T001"]).succeeds();
    gardener(&other, &[]).succeeds().err(warning);
}

#[test]
fn a_worktree_stays_writable_if_a_folder_above_all_worktrees_is_granted() {
    for (mode, is_above) in pairs(&working_modes(), &[true, false]) {
        let repo = repo("");
        let folder = if is_above { repo.root().to_owned() } else { repo.root().join("repo.arborist") };
        repo.git(["config", "arborist.sandbox.write", folder.to_str().unwrap()]).succeeds();
        let args = ["gardener", "--jobs", "2", "--sandbox", mode, "--test-command", "ls tasks.md"];
        repo.arborist(args).succeeds().out("2 completed");
    }
}
