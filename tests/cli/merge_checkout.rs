//! Where the target of `git arborist merge` is checked out: it comes along, or what landed is parked, and nothing is harmed.

use std::fs;

use crate::queue_repo::QueueRepo;
use arborist_testkit::Run;

#[test]
fn a_landing_that_would_overwrite_files_is_parked_and_later_landings_stack_on_it() {
    let repo = QueueRepo::with_finished(&["T1", "T2", "T3"]);
    repo.write("T1.txt", "the user's own");
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(repo.read("T1.txt"), "the user's own");
    repo.merge(&["status"]).exits(2).matches_snapshot();
    repo.arborist(["state"]).succeeds().never("T1 does it  complete      not landed").matches_snapshot();
    repo.merge(&["T2"]).exits(2).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    repo.merge(&["drop", "T1"]).exits(1).matches_snapshot();

    std::fs::remove_file(repo.path("T1.txt")).unwrap();
    repo.git(["merge", "-q", "--ff-only", "refs/arborist/landing/main"]).succeeds();
    repo.merge(&["T3"]).succeeds().out("1 landed (T3)");
    repo.merge(&["list"]).succeeds().silent();
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/landing"]).answer(), "");
    assert_eq!(repo.subjects("main").len(), 3);
}

#[test]
fn merge_status_names_what_blocks_a_parked_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "the user's own");
    repo.merge(&["T1"]).exits(2);
    repo.merge(&["status"]).exits(2).out("in your checkout of main, changed files are in the way (T1.txt)\n");
    fs::remove_file(repo.path("T1.txt")).unwrap();
    repo.git(["merge", "--no-ff", "--no-commit", "--allow-unrelated-histories", "arborist/task/main/T1"])
        .succeeds();
    repo.merge(&["status"])
        .exits(2)
        .out("in your checkout of main, a merge is not finished\n")
        .err("hint: finish or cancel the merge, as 'git status' says, then run: git arborist merge run");
}

#[test]
fn a_parked_landing_lands_with_the_next_merge_run_once_the_checkout_is_clean() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "the user's own");
    repo.merge(&["T1"]).exits(2);
    std::fs::remove_file(repo.path("T1.txt")).unwrap();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    assert_eq!(repo.read("T1.txt"), "T1");
}

#[test]
fn state_does_not_count_a_parked_task_as_landed() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.merge(&["T2"]).succeeds();
    repo.write("T1.txt", "the user's own");
    repo.merge(&["T1"]).exits(2);
    let scope = ["--scope", "main"];
    for (task, has_landed) in [("T1", false), ("T2", true)] {
        let json = repo.arborist(["state", task, "--json"].iter().chain(&scope)).succeeds().stdout();
        let state: serde_json::Value = serde_json::from_str(&json).unwrap();
        let row = state["tasks"].as_array().unwrap().iter().find(|row| row["id"] == task).unwrap();
        assert_eq!(row["landed"], has_landed, "{task}: {json}");
        let code = i32::from(!has_landed);
        repo.arborist(["state", task, "--exit-code"].iter().chain(&scope)).exits(code);
    }
}

#[test]
fn merging_a_parked_task_again_hints_how_to_update_the_checkout() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "the user's own");
    repo.merge(&["T1"]).exits(2);
    let said = repo.merge(&["T1"]).exits(2).err("T1 is already queued; its landing is parked");
    said.err("hint: to land it, run: git add -A && git stash").never("git arborist reset");
}

#[test]
fn a_parked_landing_is_merged_again_if_the_user_has_committed_to_the_target() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "the user's own");
    repo.merge(&["T1"]).exits(2);
    std::fs::remove_file(repo.path("T1.txt")).unwrap();
    repo.commit("mine\n");
    repo.merge(&["run"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["log", "-1", "--format=%s", "main^1"]).answer(), "mine");
    assert_ne!(repo.git(["for-each-ref", "refs/arborist/saved/landing"]).answer(), "");
}

#[test]
fn an_ignored_file_that_would_be_overwritten_parks_the_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write(".git/info/exclude", "T1.txt\n");
    repo.write("T1.txt", "secret");
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    assert_eq!(repo.read("T1.txt"), "secret");
}

#[test]
fn a_target_in_the_middle_of_a_rebase_is_not_moved() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("more.txt", "more");
    repo.commit("more\n");
    let main = repo.git(["rev-parse", "main"]).answer();
    let mut git = repo.command("git", &repo.path(""));
    git.env("GIT_SEQUENCE_EDITOR", "sed -i s/^pick/edit/").args(["rebase", "-q", "-i", "HEAD~1"]);
    arborist_testkit::Run::of(&mut git, b"").succeeds();
    repo.merge(&["add", "T1", "--scope", "main"]).succeeds();
    repo.merge(&["run", "--scope", "main"]).exits(2).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    repo.git(["rebase", "--continue"]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn a_checkout_whose_folder_is_gone_does_not_block_a_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.elsewhere();
    let gone = repo.root().join("gone");
    repo.git(["worktree", "add", "-q", gone.to_str().unwrap(), "main"]).succeeds();
    std::fs::remove_dir_all(&gone).unwrap();
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.show("main", "T1.txt"), "T1");
}

#[test]
fn a_missing_but_locked_worktree_of_the_target_parks_the_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.elsewhere();
    let gone = repo.root().join("gone");
    repo.git(["worktree", "add", "-q", "--lock", gone.to_str().unwrap(), "main"]).succeeds();
    std::fs::remove_dir_all(&gone).unwrap();
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    repo.git(["worktree", "unlock", gone.to_str().unwrap()]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn an_unfinished_merge_of_the_user_in_the_target_parks_the_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.git(["checkout", "-q", "-b", "side"]).succeeds();
    repo.write("side.txt", "side");
    repo.commit("side\n");
    repo.git(["checkout", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--no-commit", "--no-ff", "side"]).succeeds();
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    repo.git(["merge", "--abort"]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn an_ignored_folder_at_the_path_of_a_new_file_parks_the_landing() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write(".git/info/exclude", "T1.txt/\n");
    repo.write("T1.txt/mine", "mine");
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    assert_eq!(repo.read("T1.txt/mine"), "mine");
}

#[test]
fn a_checkout_that_the_user_switches_just_before_its_update_is_not_touched() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.git(["branch", "other"]).succeeds();
    let root = repo.root().display().to_string();
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\n\
         case \" $* \" in *\" read-tree \"*) : > '{root}/touched' ;; esac\n\
         case \" $* \" in *\" worktree list \"*) ;; *) exec git \"$@\" ;; esac\n\
         git \"$@\" || exit\n[ -e '{root}/switched' ] || {{ : > '{root}/switched'; git switch -q other; }}\n"
    );
    repo.plant("git", &script);
    let mut merge = repo.command("git-arborist-merge", &repo.path(""));
    Run::of(merge.arg("T1"), b"").succeeds().matches_snapshot();
    assert!(repo.root().join("switched").exists(), "the user was faster");
    assert!(!repo.root().join("touched").exists(), "no file was written");
    assert_eq!(repo.git(["branch", "--show-current"]).answer(), "other");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    assert!(!repo.path("T1.txt").exists());
}

#[test]
fn a_parked_landing_that_the_user_has_merged_is_no_longer_parked() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write("T1.txt", "mine\n");
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    fs::remove_file(repo.path("T1.txt")).unwrap();
    repo.git(["merge", "-q", "--ff-only", "refs/arborist/landing/main"]).succeeds();
    repo.merge(&["status"]).succeeds().matches_snapshot().never("parked");
    repo.merge(&["status", "T1"]).succeeds().matches_snapshot().never("parked");
    repo.merge(&["list"]).succeeds().never("T1");
    repo.merge(&["run"]).succeeds().matches_snapshot();
}
