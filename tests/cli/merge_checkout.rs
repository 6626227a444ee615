//! Where the target of `git arborist merge` is checked out: it comes along, or what landed is parked, and nothing is harmed.

use std::fs;

use crate::orchard::Orchard;
use arborist_testkit::Run;

#[test]
fn a_checkout_in_the_way_parks_what_landed_and_the_next_stack_on_it() {
    let orchard = Orchard::grown(&["T1", "T2", "T3"]);
    orchard.write("T1.txt", "the user's own");
    let main = orchard.git(["rev-parse", "main"]).answer();
    orchard.merge(&["T1"]).exits(2).shows();
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(orchard.read("T1.txt"), "the user's own");
    orchard.merge(&["status"]).exits(2).shows();
    orchard.arborist(["state"]).succeeds().never("T1 does it  complete      not landed").shows();
    orchard.merge(&["T2"]).exits(2).shows();
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    orchard.merge(&["drop", "T1"]).exits(1).shows();

    std::fs::remove_file(orchard.path("T1.txt")).unwrap();
    orchard.git(["merge", "-q", "--ff-only", "refs/arborist/landing/main"]).succeeds();
    orchard.merge(&["T3"]).succeeds().out("1 landed (T3)");
    orchard.merge(&["list"]).succeeds().silent();
    assert_eq!(orchard.git(["for-each-ref", "refs/arborist/landing"]).answer(), "");
    assert_eq!(orchard.subjects("main").len(), 3);
}

#[test]
fn what_is_parked_lands_by_itself_once_the_checkout_is_free() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write("T1.txt", "the user's own");
    orchard.merge(&["T1"]).exits(2);
    std::fs::remove_file(orchard.path("T1.txt")).unwrap();
    orchard.merge(&["run"]).succeeds().shows();
    assert_eq!(orchard.read("T1.txt"), "T1");
}

#[test]
fn a_landing_that_the_user_overtook_is_merged_anew() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write("T1.txt", "the user's own");
    orchard.merge(&["T1"]).exits(2);
    std::fs::remove_file(orchard.path("T1.txt")).unwrap();
    orchard.commit("mine\n");
    orchard.merge(&["run"]).succeeds().shows();
    assert_eq!(orchard.git(["log", "-1", "--format=%s", "main^1"]).answer(), "mine");
    assert_ne!(orchard.git(["for-each-ref", "refs/arborist/saved/landing"]).answer(), "");
}

#[test]
fn an_ignored_file_of_the_users_is_in_the_way_too() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write(".git/info/exclude", "T1.txt\n");
    orchard.write("T1.txt", "secret");
    orchard.merge(&["T1"]).exits(2).shows();
    assert_eq!(orchard.read("T1.txt"), "secret");
}

#[test]
fn a_branch_in_the_middle_of_a_rebase_is_not_moved() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write("more.txt", "more");
    orchard.commit("more\n");
    let main = orchard.git(["rev-parse", "main"]).answer();
    let mut git = orchard.command("git", &orchard.path(""));
    git.env("GIT_SEQUENCE_EDITOR", "sed -i s/^pick/edit/").args(["rebase", "-q", "-i", "HEAD~1"]);
    arborist_testkit::Run::of(&mut git, b"").succeeds();
    orchard.merge(&["add", "T1", "--scope", "main"]).succeeds();
    orchard.merge(&["run", "--scope", "main"]).exits(2).shows();
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    orchard.git(["rebase", "--continue"]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn a_checkout_whose_folder_is_gone_is_in_nobodys_way() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.elsewhere();
    let gone = orchard.root().join("gone");
    orchard.git(["worktree", "add", "-q", gone.to_str().unwrap(), "main"]).succeeds();
    std::fs::remove_dir_all(&gone).unwrap();
    orchard.merge(&["T1"]).succeeds().shows();
    assert_eq!(orchard.show("main", "T1.txt"), "T1");
}

#[test]
fn a_checkout_on_a_disk_that_may_come_back_is_waited_for() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.elsewhere();
    let gone = orchard.root().join("gone");
    orchard.git(["worktree", "add", "-q", "--lock", gone.to_str().unwrap(), "main"]).succeeds();
    std::fs::remove_dir_all(&gone).unwrap();
    orchard.merge(&["T1"]).exits(2).shows();
    orchard.git(["worktree", "unlock", gone.to_str().unwrap()]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn a_merge_that_the_user_has_not_finished_is_not_landed_into() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.git(["checkout", "-q", "-b", "side"]).succeeds();
    orchard.write("side.txt", "side");
    orchard.commit("side\n");
    orchard.git(["checkout", "-q", "main"]).succeeds();
    orchard.git(["merge", "-q", "--no-commit", "--no-ff", "side"]).succeeds();
    orchard.merge(&["T1"]).exits(2).shows();
    orchard.git(["merge", "--abort"]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn an_ignored_folder_where_a_file_is_to_be_is_in_the_way() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write(".git/info/exclude", "T1.txt/\n");
    orchard.write("T1.txt/mine", "mine");
    orchard.merge(&["T1"]).exits(2).shows();
    assert_eq!(orchard.read("T1.txt/mine"), "mine");
}

#[test]
fn a_checkout_that_the_user_switches_away_in_the_last_moment_is_not_touched() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.git(["branch", "other"]).succeeds();
    let root = orchard.root().display().to_string();
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\n\
         case \" $* \" in *\" read-tree \"*) : > '{root}/touched' ;; esac\n\
         case \" $* \" in *\" worktree list \"*) ;; *) exec git \"$@\" ;; esac\n\
         git \"$@\" || exit\n[ -e '{root}/switched' ] || {{ : > '{root}/switched'; git switch -q other; }}\n"
    );
    orchard.plant("git", &script);
    let mut merge = orchard.command("git-arborist-merge", &orchard.path(""));
    Run::of(merge.arg("T1"), b"").succeeds().shows();
    assert!(orchard.root().join("switched").exists(), "the user was faster");
    assert!(!orchard.root().join("touched").exists(), "no file was written");
    assert_eq!(orchard.git(["branch", "--show-current"]).answer(), "other");
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), "");
    assert!(!orchard.path("T1.txt").exists());
}

#[test]
fn what_a_person_has_brought_up_is_not_parked_any_more() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write("T1.txt", "mine\n");
    orchard.merge(&["T1"]).exits(2).shows();
    fs::remove_file(orchard.path("T1.txt")).unwrap();
    orchard.git(["merge", "-q", "--ff-only", "refs/arborist/landing/main"]).succeeds();
    orchard.merge(&["status"]).succeeds().shows().never("parked");
    orchard.merge(&["status", "T1"]).succeeds().shows().never("parked");
    orchard.merge(&["list"]).succeeds().never("T1");
    orchard.merge(&["run"]).succeeds().shows();
}
