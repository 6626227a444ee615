//! The sandbox: where agents, reviewers, tests, gates and set-up commands can write. The kit turns it off for all other
//! tests, because their agents leave marks outside of the worktree.

use arborist_core::process::Confinement;
use arborist_testkit::{Run, TestRepo, pairs};

use crate::sandbox_modes::{agent, has_bwrap, repo, working_modes};

/// Tries to write to each place that a child must not change. Every attempt that works leaves a line in a file of the
/// worktree, which is committed.
const TRY: &str = r#"
try() { if "$@" 2>/dev/null; then echo "$*" >> escaped.txt; fi; }
git_dir=$(git rev-parse --git-common-dir)
try touch "$ROOT/planted"
try touch "$HOME/planted"
try touch "$ROOT/repo/planted"
try touch "$git_dir/planted"
try touch "$git_dir/hooks/pre-commit"
try cp "$git_dir/HEAD" "$git_dir/refs/heads/planted"
try git config user.name planted
try git update-ref refs/heads/planted HEAD
try git commit -q --allow-empty -m planted
driver=$$
until [ "$driver" -le 1 ] || grep -q ^git-arborist /proc/$driver/comm; do
  driver=$(sed -n "s/^PPid:\t//p" /proc/$driver/status)
done
if [ "$driver" -gt 1 ]; then
  try readlink /proc/$driver/fd/1
  try dd if=/proc/$driver/mem of=/dev/null count=0
fi
for lane in "$ROOT"/repo.arborist/*/; do
  [ "$lane" -ef . ] || try touch "$lane/planted"
done
"#;

/// The command line that runs `script` in a shell, with `$ROOT` as the kit's agents have it.
fn shell_test_command(repo: &TestRepo, script: &str) -> String {
    repo.write_script("../try.sh", &format!("ROOT='{}'\n{script}", repo.root().display()));
    format!("sh '{}'", repo.path("../try.sh").display())
}

fn assert_contained(repo: &TestRepo) {
    let files = repo.git(["ls-tree", "-r", "--name-only", "main"]).answer();
    assert!(files.contains("T001.txt") && files.contains("T002.txt"), "{files}");
    let escaped = repo.git(["show", "main:escaped.txt"]);
    assert_ne!(escaped.code(), 0, "{}", escaped.stdout());
    assert!(!repo.home().join("planted").exists() && !repo.path("planted").exists());
}

#[test]
fn an_agent_in_a_lane_changes_nothing_outside_of_it() {
    for mode in working_modes() {
        let repo = repo(TRY);
        repo.arborist(["gardener", "--jobs", "2", "--sandbox", mode]).succeeds();
        assert_contained(&repo);
    }
}

#[test]
fn tests_gates_and_set_up_commands_change_nothing_outside_of_the_worktree() {
    for mode in working_modes() {
        let repo = repo("");
        // A test fails if it finds what it or another command could do.
        let command = shell_test_command(
            &repo,
            &format!("{TRY}\n! test -e escaped.txt || {{ cat escaped.txt; exit 1; }}\n"),
        );
        repo.git(["config", "arborist.merge.gates.try.command", &command]).succeeds();
        repo.git(["config", "arborist.worktree.setup", &command]).succeeds();
        repo.arborist(["gardener", "--jobs", "2", "--sandbox", mode, "--test-command", &command]).succeeds();
        assert_contained(&repo);
    }
}

#[test]
fn not_even_root_can_create_devices_in_the_sandbox() {
    for (mode, jobs) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let repo = repo("if mknod node c 1 3 2>/dev/null; then rm node; echo made > escaped.txt; fi\n");
        repo.arborist([&["gardener", "--sandbox", mode], jobs].concat()).succeeds();
        assert_contained(&repo);
    }
}

#[test]
fn root_keeps_only_capabilities_for_files_and_ports_in_the_sandbox() {
    // chown, dac_override, fowner, fsetid, setgid, setuid, net_bind_service and setfcap.
    let script = "rights=$(sed -n 's/^CapEff:\t//p' /proc/self/status)\n\
                  [ $((0x$rights & ~0x800004db)) = 0 ] || echo \"$rights\" > escaped.txt\n\
                  if mount -t tmpfs none \"$PWD\" 2>/dev/null; then echo mounted > escaped.txt; fi\n";
    for (mode, jobs) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        let repo = repo(script);
        repo.arborist([&["gardener", "--sandbox", mode], jobs].concat()).succeeds();
        assert_contained(&repo);
    }
}

/// Whether Landlock can keep signals inside: Linux 6.12 or newer.
fn can_keep_signals_inside() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(12))
}

#[test]
fn no_signal_reaches_the_driver_from_the_sandbox() {
    let script = "if kill -0 \"${ARBORIST_PROCESS%%.*}\" 2>/dev/null; then echo sent > escaped.txt; fi\n\
                  sleep 600 & kill $! || exit 1\n";
    for (mode, jobs) in pairs(&working_modes(), &[&[][..], &["--jobs", "2"]]) {
        if mode == "landlock" && !can_keep_signals_inside() {
            println!("skipped: this kernel lets programs in Landlock send signals");
            continue;
        }
        let repo = repo(script);
        repo.arborist([&["gardener", "--sandbox", mode, "--max-retries", "1"], jobs].concat()).succeeds();
        assert_contained(&repo);
    }
}

/// The reviewer of the first task changes a tracked file of its worktree while the second task is being implemented.
const WRITE_IN_REVIEW: &str = r#"
case "$ARBORIST_TASK$prompt" in
  T001Review*) echo changed >> tasks.md; : > "$ROOT/prompts/reviewed" ;;
  T002Implement*) until [ -e "$ROOT/prompts/reviewed" ]; do sleep 0.02; done ;;
esac
"#;

#[test]
fn a_reviewer_may_write_its_worktree_only_in_the_sandbox() {
    for mode in working_modes() {
        let repo = repo(WRITE_IN_REVIEW);
        let run = repo.arborist(["gardener", "--jobs", "2", "--sandbox", mode]).succeeds();
        run.never("trying again");
        assert_contained(&repo);
    }
    // Without a sandbox, another task could have written it.
    let repo = repo(WRITE_IN_REVIEW);
    let said = repo.arborist(["gardener", "--jobs", "2"]).stderr();
    assert!(said.contains("trying again (2 of 3): a reviewer may not change files"), "{said}");
}

#[test]
fn the_proposed_command_to_continue_a_run_names_its_sandbox() {
    for mode in working_modes() {
        let repo = repo("exit 1\n");
        let run = repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "1"]).exits(1);
        let words = format!("--sandbox {mode}");
        let next =
            |said: &str| said.lines().any(|line| line.contains("git arborist gar") && line.contains(&words));
        assert!(next(&run.stdout()) || next(&run.stderr()), "{}{}", run.stdout(), run.stderr());
        let state = repo.arborist(["state", "T001"]).succeeds().stdout();
        assert!(next(&state), "{state}");
    }
}

#[test]
fn bwrap_protects_a_git_directory_that_is_not_named_dot_git() {
    if !has_bwrap() {
        return;
    }
    let repo = repo("if touch gitdata/planted 2>/dev/null; then echo planted > escaped.txt; fi\n");
    std::fs::rename(repo.path(".git"), repo.path("gitdata")).unwrap();
    std::fs::write(repo.path("gitdata/info/exclude"), "gitdata\n").unwrap();
    let named = |args: &[&str]| {
        let mut command = repo.command("git", &repo.path(""));
        command.env("GIT_DIR", repo.path("gitdata")).env("GIT_WORK_TREE", repo.path(""));
        Run::of(command.args(args), b"")
    };
    named(&["arborist", "gardener", "--sandbox", "bwrap"]).succeeds();
    assert_ne!(named(&["show", "main:escaped.txt"]).code(), 0);
    assert!(!repo.path("gitdata/planted").exists());
}

#[test]
fn git_reads_as_usual_in_the_sandbox() {
    let script = "set -e\ngit status >/dev/null; git log -1 >/dev/null; git diff HEAD >/dev/null; git show >/dev/null\n";
    for (mode, jobs) in pairs(&working_modes(), &[&["--jobs", "2"][..], &[]]) {
        let repo = repo(script);
        repo.arborist([&["gardener", "--sandbox", mode], jobs].concat()).succeeds();
        assert_contained(&repo);
    }
}

/// Attacks on the repository of an agent that works in the user's own checkout, and on what is around it.
const TRY_IN_PLACE: &str = r#"
try() { if "$@" 2>/dev/null; then echo "$*" >> escaped.txt; fi; }
try touch .git/planted
try cp /bin/true .git/hooks/pre-commit
try git config user.name planted
try git update-ref refs/heads/planted HEAD
try git commit -q --allow-empty -m planted
touch added && try git add added && rm added
try mv .git aside
try rm -rf .git/refs
try unshare -Urm mount -o remount,rw,bind "$PWD/.git"
try unshare -Urm umount "$PWD/.git"
try unshare -Urm sh -c 'mkdir -p m && mount --bind . m && touch m/.git/planted'
try mount -o remount,rw /
try sh -c ': >> /proc/sys/kernel/core_pattern'
try touch "$HOME/planted"
try cat "$HOME/.ssh/id"
try grep -q secret "$HOME/.netrc"
try kill -9 "${ARBORIST_PROCESS%%.*}"
env -i setsid sh -c 'sleep 600; true' "$ROOT/daemon" >/dev/null 2>&1 &
rm -rf m
"#;

#[test]
fn bwrap_makes_the_git_directory_of_the_users_checkout_read_only() {
    if !has_bwrap() {
        return;
    }
    for mode in ["bwrap", "auto"] {
        let repo = repo("");
        std::fs::create_dir_all(repo.home().join(".ssh")).unwrap();
        std::fs::write(repo.home().join(".ssh/id"), "secret").unwrap();
        std::fs::write(repo.home().join(".netrc"), "secret").unwrap();
        repo.agent(&agent(TRY_IN_PLACE));
        let config = std::fs::read(repo.path(".git/config")).unwrap();
        repo.arborist(["gardener", "--sandbox", mode]).succeeds();
        assert_contained(&repo);
        assert_eq!(std::fs::read(repo.path(".git/config")).unwrap(), config);
        assert_ne!(repo.git(["rev-parse", "--verify", "-q", "planted"]).code(), 0);
        assert_eq!(find_processes(&repo.root().join("daemon").display().to_string()), 0);
    }
}

/// Leaves a process that the driver does not know, which tries to write the git directory until `go` is there.
const LEAVE: &str = r#"
env -i setsid sh -c '
  until [ -e "$1/go" ]; do
    echo x >> "$1/tries"
    echo x > "$2/planted"
    sleep 0.02
  done' "$ROOT/daemon" "$ROOT/prompts" "$ROOT/repo/.git" >/dev/null 2>&1 &
until [ -e "$ROOT/prompts/go" ]; do sleep 0.02; done
"#;

#[test]
fn processes_that_survive_a_killed_driver_are_killed_or_cannot_write_the_git_directory() {
    for mode in working_modes() {
        // With one task only: that of another one might just be starting, see below.
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", &agent(LEAVE));
        let tries = || std::fs::read(repo.path("../prompts/tries")).map_or(0, |tries| tries.len());
        let daemon = repo.root().join("daemon").display().to_string();
        let mut command = repo.command("git-arborist-gardener", &repo.path(""));
        command.args(["--jobs", "2", "--sandbox", mode]).stdin(std::process::Stdio::null());
        let mut driver = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        until("the process begins", || tries() > 0);
        driver.kill().unwrap();
        driver.wait().unwrap();
        if mode == "bwrap" {
            until("the process is killed", || find_processes(&daemon) == 0);
        } else {
            let before = tries();
            until("the process continues", || tries() > before + 4);
        }
        assert!(!repo.path(".git/planted").exists(), "{mode}");
        std::fs::write(repo.path("../prompts/go"), "").unwrap();
        until("the process ends", || find_processes(&daemon) == 0);
    }
}

/// Tries to write the git directory until it is ended, if it is the first agent.
const NEVER_END: &str = r#"
[ -e "$ROOT/prompts/second" ] || while :; do
  echo x >> "$ROOT/prompts/tries"
  echo x > "$ROOT/repo/.git/planted"
  sleep 0.02
done 2>/dev/null
"#;

/// Lets the agent begin only when the driver was killed. bubblewrap itself is only killed with its parent after it has set
/// everything up.
const SLOW_BWRAP: &str = r#"#!/bin/sh
case "$*" in
  *agent.sh*) : > "$ROOT/prompts/starting"; until [ -e "$ROOT/prompts/killed" ]; do sleep 0.02; done ;;
esac
PATH=${PATH#*:} exec bwrap "$@"
"#;

#[test]
fn an_agent_that_starts_while_the_driver_is_killed_is_confined_and_ended_by_the_next_run() {
    if !has_bwrap() {
        return;
    }
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", &agent(NEVER_END));
    repo.plant("bwrap", &SLOW_BWRAP.replace("$ROOT", &repo.root().display().to_string()));
    let file = |name: &str| repo.path("../prompts").join(name);
    let mut command = repo.command("git-arborist-gardener", &repo.path(""));
    command.args(["--sandbox", "bwrap"]).stdin(std::process::Stdio::null());
    let mut driver = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    until("the agent is being started", || file("starting").exists());
    driver.kill().unwrap();
    driver.wait().unwrap();
    std::fs::write(file("killed"), "").unwrap();
    until("the agent works", || std::fs::read(file("tries")).is_ok_and(|tries| tries.len() > 4));
    let script = repo.root().join("agent.sh").display().to_string();
    assert_ne!(find_processes(&script), 0);
    std::fs::write(file("second"), "").unwrap();
    repo.arborist(["gardener", "--sandbox", "bwrap"]).succeeds();
    assert_eq!(find_processes(&script), 0);
    assert!(!repo.path(".git/planted").exists());
}

/// Waits until something is so.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(120), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// How many processes have this in their command line.
fn find_processes(words: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap();
    let lines = processes.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(words)).count()
}

/// Runs a command with a `bwrap` that does not work before the real one.
fn without_bwrap(repo: &TestRepo, args: &[&str]) -> Run {
    repo.write_script("../broken/bwrap", "#!/bin/sh\nexit 1\n");
    run_with_path(repo, &repo.path("../broken"), args)
}

fn run_with_path(repo: &TestRepo, folder: &std::path::Path, args: &[&str]) -> Run {
    let mut command = repo.command("git", &repo.path(""));
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
    let path = path.map_or_else(|| std::env::var_os("PATH").unwrap(), std::ffi::OsStr::to_owned);
    let path = std::env::join_paths([folder.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    command.arg("arborist").args(args).env("PATH", path.unwrap());
    Run::of(&mut command, b"")
}

#[test]
fn an_explicit_backend_that_does_not_work_is_refused() {
    let repo = repo("");
    let run = without_bwrap(&repo, &["gardener", "--sandbox", "bwrap"]);
    run.exits(128).err("sandbox.mode is bwrap, but").err("git arborist sandbox check");
}

#[test]
fn auto_uses_landlock_where_bwrap_does_not_work() {
    if Confinement::is_enforced() {
        let repo = repo(TRY);
        without_bwrap(&repo, &["gardener", "--jobs", "2", "--sandbox", "auto"]).succeeds();
        assert_contained(&repo);
    }
}

#[test]
fn a_bwrap_in_the_repository_is_not_used() {
    let repo = repo("");
    repo.write_script(
        "bin/bwrap",
        &format!("#!/bin/sh\ntouch '{}'\nexit 1\n", repo.root().join("used").display()),
    );
    repo.commit("a program\n");
    run_with_path(&repo, &repo.path("bin"), &["gardener", "--sandbox", "auto"]).succeeds();
    assert!(!repo.root().join("used").exists());
}

#[test]
fn network_access_cannot_be_denied_without_a_sandbox() {
    if !has_bwrap() {
        return;
    }
    for (network, mode, sandbox) in [
        ("arborist.sandbox.network", "arborist.sandbox.mode", "off"),
        ("arborist.sandbox.network", "arborist.steps.test.sandbox.mode", "auto"),
        ("arborist.runners.robot.sandbox.network", "arborist.runners.robot.sandbox.mode", "auto"),
    ] {
        let repo = repo("");
        repo.git(["config", network, "none"]).succeeds();
        repo.git(["config", mode, "off"]).succeeds();
        let run = repo.arborist(["gardener", "--sandbox", sandbox]).exits(128);
        run.err("network is none, but").err("is off, so nothing would take the network away");
        assert_eq!(repo.calls(), 0);
    }
}

#[test]
fn only_bwrap_can_deny_network_access() {
    let repo = repo("[ \"$(grep -c : /proc/net/dev)\" = 1 ] || exit 1\n");
    repo.git(["config", "arborist.sandbox.network", "none"]).succeeds();
    without_bwrap(&repo, &["gardener", "--sandbox", "auto"]).exits(128).err("sandbox.network is none, which");
    if has_bwrap() {
        repo.arborist(["gardener", "--sandbox", "landlock"]).exits(128).err("sandbox.network is none, ");
        repo.arborist(["gardener", "--sandbox", "auto", "--max-retries", "1"]).succeeds();
    }
}

#[test]
fn bwrap_hides_deny_read_paths_from_agents_but_setup_commands_may_read_keys() {
    if !has_bwrap() {
        return;
    }
    let repo = repo("! test -e \"$HOME/private/x\" && test -e \"$HOME/.ssh/x\" || exit 1\n");
    for folder in ["private", ".ssh"] {
        std::fs::create_dir_all(repo.home().join(folder)).unwrap();
        std::fs::write(repo.home().join(folder).join("x"), "x").unwrap();
    }
    repo.git(["config", "arborist.runners.robot.sandbox.deny-read", "~/private"]).succeeds();
    repo.git(["config", "arborist.worktree.setup", "test -e \"$HOME/.ssh/x\""]).succeeds();
    let test = "! test -e \"$HOME/.ssh/x\"";
    let args = ["gardener", "--jobs", "2", "--sandbox", "auto", "--max-retries", "1", "--test-command", test];
    repo.arborist(args).succeeds();
}

#[test]
fn a_change_to_the_git_directory_is_reported_as_such() {
    if !has_bwrap() {
        return;
    }
    let repo = repo("");
    let command = shell_test_command(&repo, "echo x > \"$PWD/.git/new\"\n");
    let run = repo.arborist(["gardener", "--sandbox", "auto", "--test-command", &command]).exits(1);
    run.err("the sandbox allows no changes to").err("git-arborist makes the commits");

    let repo = self::repo("touch \"$PWD/.git/new\" || exit 3\n");
    let run = repo.arborist(["gardener", "--sandbox", "auto", "--max-retries", "1"]).exits(1);
    run.err("  T001: the sandbox allows no changes to");
}

#[test]
fn child_processes_write_no_core_dumps() {
    for mode in ["off"].into_iter().chain(working_modes()) {
        let repo = repo("[ \"$(ulimit -Hc)\" = 0 ] || exit 1\n");
        let test = "[ \"$(ulimit -c)\" = 0 ]";
        let args = ["gardener", "--sandbox", mode, "--max-retries", "1", "--test-command", test];
        repo.arborist(args).succeeds();
    }
}

#[test]
fn sandbox_check_reports_each_rule() {
    let repo = repo("");
    std::fs::create_dir_all(repo.home().join(".ssh")).unwrap();
    std::fs::write(repo.home().join(".ssh/id"), "secret").unwrap();
    let check = |mode: &str, args: &[&str]| {
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "sandbox", "check"]).args(args).env("ARBORIST_SANDBOX", mode);
        Run::of(command.env_remove("ARBORIST_SANDBOX_WRITE"), b"")
    };
    let look = || (repo.git(["status", "--porcelain", "--ignored"]).answer(), list(&repo.home()));
    let before = look();
    for mode in working_modes() {
        let run = check(mode, &[]);
        let expected = |rule: &str| match rule {
            _ if mode == "bwrap" => "denied",
            "read .git of repositories beside this one" => "not enforced",
            "send signals to other processes" if can_keep_signals_inside() => "denied",
            _ if rule.starts_with("read") || rule == "/.ssh" => "denied",
            _ => "not enforced",
        };
        for rule in [
            "write .git in the worktree",
            "replace .git in the worktree",
            "/.ssh",
            "read worktrees of other tasks",
            "read .git of other repositories of the workspace",
            "read .git of repositories beside this one",
            "send signals to other processes",
            "read the environment of other processes",
            "let processes outlive their step",
        ] {
            let output = run.stdout();
            let line = output.lines().find(|line| line.contains(rule)).unwrap_or_else(|| panic!("{output}"));
            assert!(line.ends_with(expected(rule)), "{mode}: {line}");
        }
        run.exits(i32::from(mode != "bwrap")).out(match mode {
            "bwrap" => "git directory: agents can only read it",
            _ => "git directory: agents can write to it",
        });
        check(mode, &["--runner", "claude", "--json"]).exits(i32::from(mode != "bwrap"));
    }
    check("off", &[]).exits(1);
    assert_eq!(look(), before);
}

/// The names in a folder.
fn list(folder: &std::path::Path) -> std::collections::BTreeSet<std::ffi::OsString> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn temporary_files_go_to_a_folder_that_is_removed_after_the_step() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("file=$(mktemp) && echo kept > \"$file\" && echo \"$file\" > where.$ARBORIST_TASK\n");
    repo.arborist(["gardener", "--sandbox", "auto"]).succeeds();
    let file = repo.git(["show", "main:where.T001"]).answer();
    assert!(file.contains("git-arborist-"), "{file}");
    assert!(!std::path::Path::new(file.trim()).exists(), "{file}");
}

#[test]
fn folders_in_the_sandbox_write_setting_can_be_written() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("touch \"$HOME/shared/$ARBORIST_TASK\" || exit 1\n");
    std::fs::create_dir_all(repo.home().join("shared")).unwrap();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--max-retries", "1"]).exits(1);
    repo.git(["config", "arborist.runners.robot.sandbox.write", "~/shared"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--retry-failed"]).succeeds();
    assert!(repo.home().join("shared/T002").exists());
}

#[test]
fn paths_that_the_sandbox_denied_are_reported_with_the_setting_that_allows_them() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("");
    std::fs::create_dir_all(repo.home().join("data")).unwrap();
    let command = shell_test_command(&repo, "echo x > \"$HOME/data/file\"\n");
    let run = repo.arborist(["gardener", "--sandbox", "auto", "--test-command", &command]).exits(1);
    run.err("the sandbox allows no changes to").err("/data/file").err("arborist.sandbox.write");
}

#[test]
fn paths_denied_to_a_test_are_in_its_log_and_in_the_state_of_its_task() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("touch made\n");
    std::fs::create_dir_all(repo.home().join("data")).unwrap();
    let command = shell_test_command(&repo, "test ! -e made || echo x > \"$HOME/data/file\"\n");
    let args = ["gardener", "--sandbox", "auto", "--max-retries", "1", "--test-command", &command];
    repo.arborist(args).exits(1);
    let refused = "the sandbox allows no changes to";
    repo.arborist(["state", "T001"]).succeeds().out(refused).out("arborist.sandbox.write");
    repo.arborist(["logs", "T001", "--step", "test"]).succeeds().out(refused);
}

#[test]
fn paths_denied_to_an_agent_are_in_its_log_and_in_the_state_of_its_task() {
    if !Confinement::is_enforced() {
        return;
    }
    let repo = repo("echo x > \"$HOME/data/file\" || exit 1\n");
    std::fs::create_dir_all(repo.home().join("data")).unwrap();
    repo.arborist(["gardener", "--sandbox", "auto", "--max-retries", "1"]).exits(1);
    repo.arborist(["state", "T001"])
        .succeeds()
        .out("the sandbox allows no changes to")
        .out("arborist.sandbox.write");
    repo.arborist(["logs", "T001", "--step", "implement"]).succeeds().out("the sandbox allows no changes to");
}

#[test]
fn the_sandbox_can_be_turned_off_for_one_step() {
    let repo = repo("");
    let command = shell_test_command(&repo, "touch \"$ROOT/tested\"\n");
    repo.git(["config", "arborist.steps.test.sandbox.mode", "off"]).succeeds();
    repo.git(["config", "arborist.steps.gate.sandbox.mode", "off"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2", "--sandbox", "auto", "--test-command", &command]).succeeds();
    assert!(repo.root().join("tested").exists());
}

#[test]
fn tracked_configuration_cannot_loosen_the_sandbox_without_approval() {
    for (settings, line) in [
        ("[sandbox]\nmode = \"off\"\n", "sandbox.mode = \"off\""),
        ("[sandbox]\nwrite = [\"~/x\"]\n", "sandbox.write = [\"~/x\"]"),
        ("[steps.test.sandbox]\nmode = \"off\"\n", "steps.test.sandbox.mode = \"off\""),
        ("[runners.robot.sandbox]\nwrite = [\"/\"]\n", "runners.robot.sandbox.write = [\"/\"]"),
        ("[sandbox]\nmode = \"landlock\"\n", "sandbox.mode = \"landlock\""),
        ("[sandbox]\nnetwork = \"all\"\n", "sandbox.network = \"all\""),
        ("[sandbox]\ndeny-read = [\"~/.ssh\"]\n", "sandbox.deny-read = [\"~/.ssh\"]"),
    ] {
        let repo = repo("");
        repo.write(".arborist/config.toml", settings);
        repo.commit("settings\n");
        let gardener = |args: &[&str]| {
            let mut command = repo.command("git", &repo.path(""));
            command.args(["arborist", "gardener"]).args(args);
            Run::of(command.env_remove("ARBORIST_SANDBOX").env_remove("ARBORIST_SANDBOX_WRITE"), b"")
        };
        gardener(&[]).exits(2).err(line);
        gardener(&["--dry-run", "--yes"]).succeeds();
    }
}

#[test]
fn a_whole_git_directory_cannot_be_made_writable_but_a_folder_in_it_can() {
    let script = "for place in cache hooks; do echo x > \"$ROOT/repo/.git/$place/planted\"; done";
    let repo = repo(script);
    let git_dir = repo.path(".git").canonicalize().unwrap();
    let key = "arborist.runners.robot.sandbox.write";
    repo.git(["config", key, git_dir.to_str().unwrap()]).succeeds();
    repo.arborist(["gardener"])
        .exits(128)
        .err("runners.robot.sandbox.write names '")
        .err("is a git directory");
    // By a link of the user that leads there.
    std::os::unix::fs::symlink(&git_dir, repo.home().join("linked")).unwrap();
    repo.git(["config", key, "~/linked"]).succeeds();
    let said =
        repo.arborist(["sandbox", "check"]).exits(128).err("names '~/linked', which is a git directory");
    drop(said.err("hint: name only the folder in it that programs need, such as ~/linked/lfs"));
    repo.git(["config", key, git_dir.join("cache").to_str().unwrap()]).succeeds();
    for (mode, args) in
        [("bwrap", &["--jobs", "1"][..]), ("bwrap", &["--jobs", "2"]), ("landlock", &["--jobs", "2"])]
    {
        if !working_modes().contains(&mode) {
            continue;
        }
        std::fs::create_dir_all(git_dir.join("cache")).unwrap();
        let _ = std::fs::remove_file(git_dir.join("cache/planted"));
        let run = ["arborist", "gardener", "--sandbox", mode, "--new-run", "--allow-dirty"];
        repo.git(run[..].iter().chain(args)).succeeds();
        assert!(git_dir.join("cache/planted").is_file(), "{mode} {args:?}");
        assert!(!git_dir.join("hooks/planted").exists(), "{mode} {args:?}");
    }
}

#[test]
fn a_relative_path_in_a_sandbox_setting_is_refused() {
    let repo = repo("");
    repo.git(["config", "arborist.sandbox.write", "somewhere"]).succeeds();
    repo.arborist(["gardener"]).exits(1).err("'arborist.sandbox.write' must be a list of folders");
}
