//! Variables of the environment that are not UTF-8 stop no command.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use arborist_testkit::{Run, TestRepo, WORKER};
use git_arborist::catalog::VERBS;

/// What each command is given. A command without a row here fails the test.
fn arguments(verb: &str) -> &'static [&'static str] {
    match verb {
        "plan" => &["plan", "tasks.md"],
        "gardener" => &["gardener", "--jobs", "2"],
        "garden" => &["garden", "T001"],
        "merge" => &["merge", "run"],
        "reset" => &["reset", "T001"],
        "demo" => &["demo"],
        "worktree" => &["worktree", "list"],
        "work" => &["work"],
        "workspace" => &["workspace", "status"],
        "tools" => &["tools"],
        "cleanup" => &["cleanup"],
        "state" => &["state"],
        "logs" => &["logs"],
        "verify" => &["verify"],
        "sandbox" => &["sandbox", "check"],
        "session" => &["session", "list"],
        "trailers" => &["trailers", "check"],
        "init" => &["init"],
        "hooks" => &["hooks", "install"],
        "install-assets" => &["install-assets"],
        other => panic!("'{other}' is a command that is not run here"),
    }
}

/// Names and values with bytes that are no UTF-8, also where the name makes the value a secret or is read by us.
const ODD: [(&[u8], &[u8]); 7] = [
    (b"ODD_VALUE", b"a\xffb"),
    (b"ODD_\xfe_NAME", b"plain"),
    (b"ODD_TOKEN", b"\xff\xfe secret \x80 value"),
    (b"\xff_SECRET", b"\xff\xff\xff\xff\xff\xff\xff\xff"),
    (b"LC_CTYPE", b"\xff"),
    (b"COLUMNS", b"\xff"),
    (b"ARBORIST_PROCESS", b"\xff"),
];

fn run(repo: &TestRepo, args: &[&str], is_irregular: bool) -> Run {
    let mut command = repo.command("git", &repo.path(""));
    command.arg("arborist").args(args);
    for (name, value) in ODD.iter().filter(|_| is_irregular) {
        command.env(OsStr::from_bytes(name), OsStr::from_bytes(value));
    }
    Run::of(&mut command, b"")
}

fn repo() -> TestRepo {
    let plan = "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n";
    TestRepo::planned("tasks.md", plan, WORKER)
}

#[test]
fn every_command_runs_with_variables_that_are_not_utf_8() {
    let verbs = VERBS.iter().map(|verb| arguments(verb.name));
    for args in verbs.chain([&["--version"][..], &["help", "--all"], &["plan", "--ai", "tasks.md"]]) {
        let (usual, odd) = (run(&repo(), args, false), run(&repo(), args, true));
        assert_eq!(odd.code(), usual.code(), "{}\nwithout them: {}", odd.report(), usual.report());
        assert!(!odd.stderr().contains("panic") && !odd.stderr().contains("bug"), "{}", odd.report());
    }
}
