//! `git arborist` itself: it finds a command, becomes it, and says clearly when there is none.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
};

use arborist_testkit::{Run, TestRepo};

#[test]
fn a_third_party_command_gets_all_arguments_and_its_exit_code_is_returned() {
    let repo = TestRepo::init();
    repo.plant("git-arborist-prune", "#!/bin/sh\nprintf '<%s>' \"$@\"\npwd\nexit 7\n");
    let said = repo.arborist(["prune", "--json", "a b", "", "--", "-h"]).exits(7);
    said.matches_snapshot();
    repo.arborist(Vec::<&str>::new()).succeeds().matches_snapshot();
    repo.arborist(["--list-cmds"]).succeeds().matches_snapshot();
}

#[test]
fn the_exit_code_tells_the_signal_that_ended_a_third_party_command() {
    let repo = TestRepo::init();
    repo.plant("git-arborist-prune", "#!/bin/sh\nkill -TERM $$\n");
    repo.arborist(["prune"]).exits(143).silent();
}

#[test]
fn a_file_that_is_not_executable_is_not_a_command() {
    let repo = TestRepo::init();
    repo.write("../bin/git-arborist-notes", "#!/bin/sh\n");
    repo.arborist(["notes"]).exits(129).matches_snapshot();
}

#[test]
fn a_command_that_cannot_be_started_exits_with_128() {
    let repo = TestRepo::init();
    repo.plant("git-arborist-prune", "#!/no/such/interpreter\n");
    repo.arborist(["prune"]).exits(128).matches_snapshot();
}

#[test]
fn a_mistyped_command_is_answered_with_a_suggestion() {
    let repo = TestRepo::init();
    repo.plant("git-arborist-prune", "#!/bin/sh\n");
    repo.arborist(["sttae"]).exits(129).matches_snapshot().silent();
    repo.arborist(["prunes"]).exits(129).matches_snapshot();
    repo.arborist(["quux"]).exits(129).matches_snapshot();
    repo.arborist([""]).exits(129).matches_snapshot();
    repo.arborist(["--frobnicate"]).exits(129).matches_snapshot();
}

#[test]
fn command_names_with_slashes_or_invalid_bytes_are_refused() {
    let repo = TestRepo::init();
    repo.plant("evil", "#!/bin/sh\necho ran\n");
    for name in ["/../evil", "../bin/evil", "x/../../bin/evil"] {
        repo.arborist([name]).exits(129).matches_snapshot().never("ran");
    }
    let odd = OsStr::from_bytes(b"st\xffte\x1b[31m");
    repo.arborist([odd]).exits(129).matches_snapshot().never("\u{1b}");
}

#[test]
fn commands_run_in_the_folder_and_git_directory_that_git_was_given() {
    let repo = TestRepo::init();
    repo.plant("git-arborist-where", "#!/bin/sh\npwd\ngit rev-parse --show-prefix\n");
    repo.write("a folder/x", "");
    let run = repo.git_in(repo.root(), ["-C", "repo/a folder", "arborist", "where"]);
    run.succeeds().matches_snapshot();
    let dir = format!("--git-dir={}", repo.path(".git").display());
    repo.plant("git-arborist-where", "#!/bin/sh\ngit rev-parse --git-dir\n");
    repo.git_in(repo.root(), [&dir, "arborist", "where"]).succeeds().matches_snapshot();
}

#[test]
fn version_and_usage_are_printed_to_standard_output() {
    let repo = TestRepo::init();
    for option in ["--version", "-v", "version"] {
        let said = repo.arborist([option]).succeeds();
        assert_eq!(said.stdout(), format!("git-arborist {}\n", env!("CARGO_PKG_VERSION")));
    }
    repo.arborist(["-h"]).succeeds().matches_snapshot();
    repo.arborist(["help"]).succeeds().matches_snapshot();
    repo.git(["--list-cmds=others"]).succeeds().matches_snapshot();
}

#[test]
fn long_help_without_a_manual_page_is_longer_than_short_help() {
    let repo = TestRepo::init();
    let short = repo.arborist(["install-assets", "-h"]).succeeds().matches_snapshot();
    let long = repo.arborist(["install-assets", "--help"]).succeeds().matches_snapshot();
    assert!(long.stdout().len() > short.stdout().len());
}

#[test]
fn a_closed_output_pipe_is_not_an_error() {
    let repo = TestRepo::init();
    for args in [&["-h"][..], &["--list-cmds"], &["install-assets", "-h"]] {
        let mut child = repo.command("git-arborist", &repo.path(""));
        let mut child =
            child.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
        drop(child.stdout.take());
        let mut complaint = String::new();
        child.stderr.take().expect("a pipe").read_to_string(&mut complaint).expect("text");
        let status = child.wait().expect("an end");
        assert_eq!((status.code(), complaint.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn output_to_a_full_disk_is_an_error() {
    if !std::path::Path::new("/dev/full").exists() {
        eprintln!("skipped: there is no /dev/full here");
        return;
    }
    let repo = TestRepo::init();
    let script = "git arborist -h >/dev/full";
    let mut shell: Command = repo.command("sh", &repo.path(""));
    Run::of(shell.args(["-c", script]), b"").exits(128).matches_snapshot();
}
