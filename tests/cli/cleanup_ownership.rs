//! What is ours is known by what we wrote, never by a name; and what a killed run left alive is not cleaned up under it.

use std::{fs, path::Path, process::Command, thread, time::Duration};

use crate::cleanup_repo::{CleanupRepo, find};
use arborist_testkit::TaskCommit;

const NOW: &[&str] = &["--older-than", "0"];
const ALL: &[&str] = &["--older-than", "0", "--force"];
const UNPROVED: &str = "nothing proves that git arborist made it";

#[test]
fn a_branch_made_by_hand_is_kept_even_if_it_has_the_name_of_a_task_branch() {
    let repo = CleanupRepo::new();
    let names = ["arborist/task/mine", "arborist/task/main/T1", "arborist/task/main/T2", "arborist/mine"];
    for name in names {
        repo.git(["branch", name]).succeeds();
    }
    let tip = repo.commit_on("main", "mine.txt", "mine", "mine\n");
    repo.git(["update-ref", "refs/heads/arborist/task/main/T2", &tip]).succeeds();
    let before = repo.git(["for-each-ref"]).answer();
    for args in [NOW, ALL] {
        let report = repo.report(args);
        for name in ["arborist/task/mine", "main/T1", "main/T2", "arborist/mine"] {
            let item = find(&report, "branch", name);
            assert_eq!((&item["outcome"], &item["reason"]), (&"kept".into(), &UNPROVED.into()), "{name}");
        }
        repo.cleanup(args).succeeds().out("arborist/task/mine").out(UNPROVED);
    }
    assert_eq!(repo.git(["for-each-ref"]).answer(), before);
}

#[test]
fn a_task_commit_proves_that_git_arborist_made_its_branch_even_after_landing() {
    let repo = CleanupRepo::new();
    let ours = repo.grow("T1", "main", &[("t.txt", "t")]);
    let tip = repo.commit_on(&ours, "u.txt", "u", "by hand\n");
    repo.git(["update-ref", "refs/heads/arborist/task/main/T1", &tip]).succeeds();
    assert_eq!(repo.verdict(NOW, "branch", "main/T1").1, "2 commits are not merged");
    repo.land("T1");
    repo.write("on.txt", "on");
    repo.commit("main goes on\n");
    assert_eq!(repo.verdict(NOW, "branch", "main/T1"), ("remove".into(), "commits are in other refs".into()));
    let other = TaskCommit::new("T9", "complete").to_string();
    let tip = repo.commit_on("main", "v.txt", "v", &other);
    let tip = repo.commit_on(&tip, "w.txt", "w", "by hand\n");
    repo.git(["update-ref", "refs/heads/arborist/task/main/T2", &tip]).succeeds();
    assert_eq!(repo.verdict(ALL, "branch", "main/T2").1, UNPROVED, "it is another task's");
}

#[test]
fn a_reflog_worktree_ticket_or_wip_ref_proves_that_git_arborist_made_a_branch() {
    for options in [&[][..], &["--ref-format=reftable"]] {
        let repo = CleanupRepo::on(options);
        repo.worktree("T1");
        assert_eq!(repo.verdict(NOW, "branch", "main/T1").0, "remove", "{options:?}");
        repo.cleanup(&["--older-than", "0", "--only", "worktrees"]).succeeds();
        assert_eq!(repo.verdict(NOW, "branch", "main/T1").0, "remove", "its log tells: {options:?}");
    }
    let repo = CleanupRepo::new();
    for task in ["T2", "T3"] {
        repo.git(["branch", &format!("arborist/task/main/{task}")]).succeeds();
    }
    repo.git(["update-ref", "refs/arborist/wip/main/T2/0", "main"]).succeeds();
    repo.git(["update-ref", "refs/arborist/queue/tickets/main/T3", "main"]).succeeds();
    assert_eq!(repo.verdict(NOW, "branch", "main/T2").0, "remove");
    assert_eq!(repo.verdict(NOW, "branch", "main/T3").1, "it is queued and has not landed yet");
    repo.cleanup(&["--dry-run", "--force"]).succeeds().err("git arborist merge drop T3 --scope main");
}

#[test]
fn unfinished_work_is_listed_by_its_task_or_session() {
    let repo = CleanupRepo::new();
    let tip = repo.commit_on("main", "x", "x", "worktree before a turn\n");
    for name in ["main/T001/0", "feature%2Fx/T001/tree", "main/@session/s1", "main/@staging/turn-1"] {
        repo.git(["update-ref", &format!("refs/arborist/wip/{name}"), &tip]).succeeds();
    }
    repo.session("s1", ("main", "run"), r#""kind":"pause","why":"lunch""#);
    let said = repo.cleanup(&["--older-than", "0", "--only", "branches"]).succeeds();
    let said = said.matches_snapshot();
    let said = said.matches_snapshot();
    said.matches_snapshot();
    repo.session("s1", ("main", "run"), r#""kind":"end","result":"complete""#);
    assert_eq!(repo.verdict(NOW, "unfinished", "turn of session s1 on main").1, "1 commit is not merged");
    repo.cleanup(ALL).succeeds();
    let kept = ["refs/arborist/wip/main/@staging/turn-1", "refs/arborist/wip/main/T001/0"];
    assert_eq!(repo.refs("refs/arborist/wip"), kept);
}

/// An agent that outlives the run that started it, which it kills.
struct Orphan(String);

impl Orphan {
    fn of_a_run_in(repo: &CleanupRepo, dir: &Path) -> Self {
        let pid = repo.root().join("pid");
        repo.agent(&format!("echo begun; echo $$ > '{}'; kill -9 $PPID; exec sleep 600", pid.display()));
        let run = repo.arborist_in(dir, ["garden", "-m", "do it"]);
        assert_ne!(run.code(), 0, "{}", run.report());
        Self(fs::read_to_string(pid).unwrap().trim().to_owned())
    }

    fn is_still_alive(&self) -> bool {
        Command::new("kill").args(["-0", &self.0]).output().unwrap().status.success()
    }

    fn end(&self) {
        let _ = Command::new("kill").args(["-9", &self.0]).output();
        while self.is_still_alive() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-9", &self.0]).output();
    }
}

#[test]
fn logs_and_branches_are_kept_while_an_agent_of_a_killed_run_is_alive() {
    let repo = CleanupRepo::new();
    let orphan = Orphan::of_a_run_in(&repo, &repo.path(""));
    let logs = || fs::read_dir(repo.path("spec/logs")).unwrap().count();
    let before = logs();
    assert_ne!(before, 0);
    let why = "processes of a run of 'main' are still alive";
    repo.cleanup(&["--older-than", "0", "--force", "--only", "logs"]).succeeds().out(why);
    assert_eq!(logs(), before);
    repo.branch("T1", "t.txt", "t");
    repo.land("T1");
    assert_eq!(repo.verdict(ALL, "branch", "main/T1").1, why);
    orphan.end();
    // Without '--force', the logs of the task that was cut off stay.
    repo.cleanup(&["--older-than", "0", "--only", "logs,branches"]).succeeds().out("its task is not merged");
    assert!(logs() == before && !repo.has("T1"));
    repo.cleanup(&["--older-than", "0", "--force", "--only", "logs"]).succeeds();
    assert_eq!(logs(), 0);
}

#[test]
fn a_run_does_not_end_agents_of_a_run_on_a_branch_with_a_similar_name() {
    let repo = CleanupRepo::new();
    repo.git(["checkout", "-q", "-b", "release/1.2"]).succeeds();
    let orphan = Orphan::of_a_run_in(&repo, &repo.path(""));
    let other = repo.root().join("other");
    repo.git(["worktree", "add", "-q", "-b", "release/1.3", other.to_str().unwrap(), "main"]).succeeds();
    repo.agent("echo done > done.txt; echo APPROVED");
    repo.arborist_in(&other, ["garden", "-m", "do it"]).succeeds();
    assert!(orphan.is_still_alive());
    orphan.end();
}

#[test]
fn a_branch_named_like_a_lane_is_kept_while_its_agent_is_alive() {
    let repo = CleanupRepo::new();
    repo.git(["checkout", "-q", "-b", "x.lane-2"]).succeeds();
    let orphan = Orphan::of_a_run_in(&repo, &repo.path(""));
    let done = TaskCommit::new("T1", "complete").branch("x.lane-2").to_string();
    let tip = repo.commit_on("x.lane-2", "t.txt", "t", &done);
    repo.git(["update-ref", "refs/heads/arborist/task/x.lane-2/T1", &tip]).succeeds();
    let why = "processes of a run of 'x.lane-2' are still alive";
    assert_eq!(repo.verdict(ALL, "branch", "x.lane-2/T1").1, why);
    orphan.end();
}

#[test]
fn cleanup_shows_and_accepts_full_branch_names() {
    let repo = CleanupRepo::new();
    repo.branch("T1", "t1.txt", "1");
    repo.land("T1");
    repo.cleanup(&["--dry-run", "--older-than", "0"]).succeeds().out("branch  arborist/task/main/T1 ");
    repo.cleanup(&["--older-than", "0", "arborist/task/main/T1"]).succeeds();
    assert!(!repo.has("T1"));
}
