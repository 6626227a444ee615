//! Notes that a driver leaves for the one that comes after a crash are believed only where a driver wrote them, and what is
//! done because of them destroys nothing.

use std::{
    fs,
    path::Path,
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use arborist_testkit::TestRepo;

const ONE: &str = "- [ ] T001 one\n- [ ] T002 two\n";
const LANES: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n";

/// Leaves the commit of an update of the checkout in `$to`, which would hold exactly what the user has there.
const UPDATE: &str = r#"
d=$(printf %s "$ROOT/repo" | git hash-object --stdin | cut -c1-10)
b1=$(git hash-object -w "$ROOT/repo/both.txt"); b2=$(git hash-object -w "$ROOT/repo/mine.txt")
tree=$( { git ls-tree main | grep -v both.txt; printf '100644 blob %s\tboth.txt\n100644 blob %s\tmine.txt\n' $b1 $b2; } | git mktree)
to=$(git commit-tree $tree -p main -m to)
"#;

/// A repository with files of the user's that are in no commit. The agent does `deed` once.
fn repo(plan: &str, deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("both.txt", "base\n");
    repo.write("tasks.md", plan);
    repo.commit("a plan\n");
    repo.write("both.txt", "base\nuser\n");
    repo.write("mine.txt", "precious\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > \"$ARBORIST_TASK.txt\"
if [ ! -e \"$ROOT/once\" ]; then touch \"$ROOT/once\"\n{deed}\nfi
echo done"
    ));
    repo
}

fn users_files(repo: &TestRepo) -> (String, String) {
    let read = |name: &str| fs::read_to_string(repo.path(name)).unwrap_or_default();
    (read("both.txt"), read("mine.txt"))
}

fn refs(repo: &TestRepo, below: &str) -> String {
    repo.git(["for-each-ref", "--format=%(refname)", below]).answer()
}

/// Waits until something holds.
fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A lock file that tells of a driver that died.
fn write_lock_of_dead_driver(repo: &TestRepo, name: &str) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let process = format!(r#"{{"pid":4194999,"host":"x","started":"1","boot":"{}"}}"#, boot.trim());
    let line = format!(
        r#"{{"pid":4194999,"host":"x","since":"2025-01-01T00:00:00Z","what":"x","process":{process}}}"#
    );
    repo.write(&format!(".git/arborist/locks/{name}"), line);
}

#[test]
fn a_checkout_note_forged_for_another_branch_is_removed_and_saved() {
    let deed = format!(
        "{UPDATE}\ngit update-ref refs/arborist/wip/main/@checkout/$d $to; echo '{{}}' > \"$ROOT/repo/.git/arborist/locks/landing-main\""
    );
    let repo = repo(ONE, &deed);
    repo.arborist(["gardener", "--session-branch"]).succeeds();
    assert_eq!(refs(&repo, "refs/arborist/wip"), "");
    assert!(refs(&repo, "refs/arborist/saved/moved").contains("@checkout"), "it is kept");
    write_lock_of_dead_driver(&repo, "run-main");
    repo.arborist(["gardener", "--allow-dirty", "--new-run"]).succeeds();
    assert_eq!(users_files(&repo), ("base\nuser\n".into(), "precious\n".into()));
}

#[test]
fn an_attempt_mark_forged_for_another_branch_commits_no_files_of_the_user() {
    let repo = repo(ONE, "git update-ref refs/arborist/wip/main/T001/0 main");
    repo.arborist(["gardener", "--session-branch"]).succeeds();
    assert_eq!(refs(&repo, "refs/arborist/wip"), "");
    repo.arborist(["gardener", "--allow-dirty", "--new-run"]).succeeds();
    assert_eq!(users_files(&repo), ("base\nuser\n".into(), "precious\n".into()));
    assert!(!repo.git(["ls-tree", "--name-only", "main"]).answer().contains("mine.txt"));
}

#[test]
fn a_landing_ignores_a_checkout_note_forged_by_another_task() {
    let deed = format!(
        "if [ $ARBORIST_TASK = T001 ]; then rm \"$ROOT/once\"; else
until git log -1 --format=%s arborist/task/main/T001 2>/dev/null | grep -q complete; do sleep 0.01; done
{UPDATE}\ngit update-ref refs/arborist/wip/main/@checkout/$d $to || :
n=0; until [ $n = 500 ] || git ls-tree --name-only main | grep -q T001.txt; do n=$((n+1)); sleep 0.02; done; fi"
    );
    let repo = repo(LANES, &deed);
    repo.arborist(["gardener", "--allow-dirty", "--jobs", "2"]).succeeds();
    assert_eq!(users_files(&repo), ("base\nuser\n".into(), "precious\n".into()));
}

#[test]
fn files_removed_by_undoing_a_checkout_update_are_saved_and_reported() {
    let repo = repo(ONE, "");
    let script =
        format!("ROOT='{}'\n{UPDATE}\necho refs/arborist/wip/main/@checkout/$d $to", repo.root().display());
    repo.write_script("../plant.sh", &script);
    let planned =
        arborist_testkit::Run::of(repo.command("sh", &repo.path("")).arg("../plant.sh"), b"").answer();
    let (note, to) = planned.split_once(' ').unwrap();
    repo.write_note(note, to);
    write_lock_of_dead_driver(&repo, "run-main");
    let said = repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(users_files(&repo), ("base\n".into(), String::new()), "it is undone as after a crash");
    let saved = refs(&repo, "refs/arborist/saved/landing");
    assert!(!saved.is_empty() && said.stderr().contains(&saved), "{}", said.stderr());
    for (name, text) in [("both.txt", "base\nuser"), ("mine.txt", "precious")] {
        assert_eq!(repo.git(["show", &format!("{saved}:{name}")]).answer(), text);
    }
}

#[test]
fn a_forged_note_of_a_worktree_being_created_destroys_no_other_worktree() {
    let deed = "printf %s \"$ROOT/mine\" > \"$ROOT/repo/.git/arborist/locks/worktrees.making\"";
    let repo = repo(
        "- [ ] T001 one\n- [ ] T002 [P] two (depends on T001)\n- [ ] T003 [P] three (depends on T001)\n",
        deed,
    );
    let mine = repo.root().join("mine");
    repo.git(["worktree", "add", "-q", "--detach", mine.to_str().unwrap()]).succeeds();
    fs::write(mine.join("staged.txt"), "staged\n").unwrap();
    repo.git_in(&mine, ["add", "staged.txt"]).succeeds();
    // One of the user's that lies where ours are made.
    let beside = repo.root().join("repo.arborist/beside");
    repo.git(["worktree", "add", "-q", "--detach", beside.to_str().unwrap()]).succeeds();
    repo.arborist(["gardener", "--allow-dirty", "--jobs", "2"]).succeeds();
    assert_eq!(repo.git_in(&mine, ["diff", "--cached", "--name-only"]).answer(), "staged.txt");
    repo.write(".git/arborist/locks/worktrees.making", beside.to_str().unwrap());
    let _ = repo.arborist(["worktree", "add", "T009"]);
    assert_eq!(repo.git_in(&beside, ["status", "--porcelain"]).answer(), "");
}

/// The start of a process, as the system has it.
#[cfg(target_os = "linux")]
fn start_of(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat[stat.rfind(')').unwrap() + 1..].split_ascii_whitespace().nth(19).unwrap().to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn a_forged_attempt_lock_does_not_end_a_process_of_the_user() {
    use std::os::unix::process::CommandExt;
    let repo = repo(LANES, "");
    let us = std::process::id();
    let mark = format!("{us}.{}.7", start_of(us));
    let mut victim = repo.command("sleep", repo.root());
    let mut victim = victim.arg("600").env("ARBORIST_PROCESS", &mark).process_group(0).spawn().unwrap();
    let pid = victim.id();
    let leader = format!(r#"{{"pid":{pid},"started":"{}"}}"#, start_of(pid));
    let line = format!(r#"{{"pid":1,"host":"x","since":"x","what":"x","mark":"{mark}","leader":{leader}}}"#);
    for lane in ["", "~lane-1", "~lane-2"] {
        repo.write(&format!(".git/arborist/locks/run-main{lane}~orphans"), &line);
    }
    repo.arborist(["gardener", "--allow-dirty", "--jobs", "2"]).succeeds();
    let lives = victim.try_wait().unwrap().is_none();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert!(lives);
}

fn start(repo: &TestRepo, dir: &Path) -> Child {
    let mut command = repo.command("git-arborist-gardener", dir);
    let command = command.arg("--allow-dirty").stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn the_attempt_mark_of_a_killed_run_survives_a_concurrent_run() {
    let repo = repo(ONE, "");
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
until [ -e \"$ROOT/go\" ]; do sleep 0.05; done; echo x > \"$ARBORIST_TASK.txt\"",
    );
    let other = repo.root().join("other");
    repo.git(["worktree", "add", "-q", "-b", "other", other.to_str().unwrap()]).succeeds();
    let mut first = start(&repo, &other);
    until("the first run works", || !refs(&repo, "refs/arborist/wip/other").is_empty());
    let second = start(&repo, &repo.path(""));
    until("the second run works", || !refs(&repo, "refs/arborist/wip/main").is_empty());
    first.kill().unwrap();
    first.wait().unwrap();
    fs::write(repo.root().join("go"), "").unwrap();
    assert!(second.wait_with_output().unwrap().status.success());
    assert_ne!(refs(&repo, "refs/arborist/wip/other"), "");
    repo.arborist_in(&other, ["gardener"]).succeeds();
    assert_eq!(refs(&repo, "refs/arborist/wip"), "");
}
