//! Names of folders are foreign text too: nothing in them reaches the terminal as a command.

use std::{fs, path::PathBuf};

use arborist_testkit::TestRepo;

/// A repository whose folder would set the title of a terminal.
fn init_folder_with_escape_sequence(repo: &TestRepo) -> PathBuf {
    let dir = repo.root().join("esc\u{1b}]0;title\u{7}");
    fs::create_dir(&dir).unwrap();
    repo.git_in(&dir, ["init", "-q", "-b", "main"]).succeeds();
    fs::write(dir.join("tasks.md"), "- [ ] T001 a\n").unwrap();
    repo.git_in(&dir, ["add", "-A"]).succeeds();
    repo.git_in(&dir, ["commit", "-q", "-m", "a plan"]).succeeds();
    dir
}

#[test]
fn no_command_prints_escape_sequences_from_the_name_of_the_repository_folder() {
    let repo = TestRepo::init();
    let dir = init_folder_with_escape_sequence(&repo);
    repo.agent("echo x > x.txt; echo APPROVED");
    for args in [
        &["hooks", "status"][..],
        &["hooks", "install"],
        &["hooks", "install", "--agent", "claude"],
        &["hooks", "status"],
        &["gardener", "--session-branch"],
        &["worktree", "list"],
        &["cleanup", "--older-than", "0", "--dry-run"],
        &["hooks", "uninstall"],
    ] {
        let run = repo.arborist_in(&dir, args);
        assert_eq!(run.code(), 0, "{}", run.report());
        assert!(!run.stdout().contains(['\u{1b}', '\u{7}']), "{args:?}: {:?}", run.stdout());
        assert!(!run.stderr().contains(['\u{1b}', '\u{7}']), "{args:?}: {:?}", run.stderr());
    }
}
