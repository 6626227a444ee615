//! A landing that is interrupted while it updates the user's checkout. The next one recognises what it has written itself,
//! and never touches what is the user's.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use arborist_testkit::Run;

use crate::orchard::Orchard;

/// A `git read-tree` that does what a killed one leaves: some files of the new commit, no index, and a dead driver.
const KILLED: &str = r#"#!/bin/sh
case " $* " in
*" read-tree "*" -u "*)
    for to; do :; done
    WRITES
    kill -9 $PPID
    exit 1 ;;
esac
exec REAL_GIT "$@"
"#;

fn plant(orchard: &Orchard, script: &str, writes: &str) {
    let path = std::env::var_os("PATH").unwrap();
    let git = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file()).unwrap();
    let script = script.replace("WRITES", writes).replace("REAL_GIT", git.to_str().unwrap());
    orchard.plant("git", &script.replace("GIT_ ", &format!("{} ", git.display())));
}

fn merge(orchard: &Orchard) -> Run {
    let mut command = orchard.command("git-arborist-merge", &orchard.path(""));
    Run::of(command.args(["run", "--scope", "main"]), b"")
}

/// A task that adds, changes, deletes, links and makes executable, queued for a target that is checked out.
fn orchard() -> Orchard {
    let orchard = Orchard::bare_orchard();
    orchard.write("changed.txt", "old\n");
    orchard.write("gone.txt", "gone\n");
    orchard.write("tool.sh", "echo\n");
    orchard.write("user.txt", "first\n");
    orchard.commit("files\n");
    orchard.run_start("main", "s1");
    orchard.git(["branch", "arborist/task/main/T1"]).succeeds();
    orchard.on_branch("T1", |orchard| {
        orchard.write("new/added.txt", "added by the task\n".repeat(100));
        orchard.write("changed.txt", "new\n");
        fs::remove_file(orchard.path("gone.txt")).unwrap();
        symlink("changed.txt", orchard.path("link")).unwrap();
        fs::set_permissions(orchard.path("tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        orchard.finish("T1");
    });
    orchard.merge(&["add", "T1"]).succeeds();
    orchard.write("user.txt", "first\nstaged\n");
    orchard.git(["add", "user.txt"]).succeeds();
    orchard.write("user.txt", "first\nstaged\nnot staged\n");
    orchard
}

fn has_landed(orchard: &Orchard, what: &str) {
    let run = merge(orchard);
    assert_eq!(run.code(), 0, "{what}: {}", run.report());
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), "MM user.txt", "{what}");
    assert_eq!(orchard.read("user.txt"), "first\nstaged\nnot staged\n", "{what}");
    assert_eq!(orchard.read("changed.txt"), "new\n", "{what}");
    assert!(!orchard.path("gone.txt").exists() && orchard.path("link").is_symlink(), "{what}");
    assert_eq!(orchard.git(["for-each-ref", "refs/arborist/wip"]).answer(), "", "{what}");
}

#[test]
fn a_landing_that_was_killed_in_the_checkout_is_finished_by_the_next_one() {
    for (what, writes) in [
        ("nothing", "true"),
        ("an added file", "mkdir new; GIT_ show $to:new/added.txt > new/added.txt"),
        ("a part of an added file", "mkdir new; GIT_ show $to:new/added.txt | head -c 70 > new/added.txt"),
        ("an empty file", "mkdir new; true > new/added.txt"),
        ("a changed file", "GIT_ show $to:changed.txt > changed.txt"),
        ("a changed file that is removed first", "GIT_ show $to:changed.txt > changed.txt; rm tool.sh"),
        ("a deleted file", "rm gone.txt; GIT_ show $to:changed.txt > changed.txt"),
        ("a link and a mode", "ln -s changed.txt link; chmod +x tool.sh"),
        ("all files and the index", "GIT_ \"$@\""),
        ("all files, the index as it was", "cp .git/index saved; GIT_ \"$@\"; mv saved .git/index"),
    ] {
        let orchard = orchard();
        plant(&orchard, KILLED, writes);
        merge(&orchard).exits(137);
        fs::remove_file(orchard.bin().join("git")).unwrap();
        has_landed(&orchard, what);
    }
}

#[test]
fn files_of_the_user_where_a_landing_was_interrupted_are_neither_removed_nor_written_over() {
    let orchard = orchard();
    plant(&orchard, KILLED, "GIT_ show $to:changed.txt > changed.txt; mkdir new; echo mine > new/added.txt");
    merge(&orchard).exits(137);
    fs::remove_file(orchard.bin().join("git")).unwrap();
    merge(&orchard).exits(2);
    assert_eq!(orchard.read("new/added.txt"), "mine\n");
    assert_eq!(orchard.read("changed.txt"), "old\n", "what was written is taken back");
    fs::remove_dir_all(orchard.path("new")).unwrap();
    has_landed(&orchard, "once the user's file is out of the way");
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_landing_leaves_the_checkout_as_it_was() {
    let orchard = orchard();
    let full = KILLED.replace("kill -9 $PPID\n", "echo 'error: unable to write file new/added.txt' >&2\n");
    plant(&orchard, &full, "[ -e changed.new ] || GIT_ show $to:changed.txt > changed.txt");
    merge(&orchard).exits(2);
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), "MM user.txt");
    fs::remove_file(orchard.bin().join("git")).unwrap();
    has_landed(&orchard, "once there is space");
}
