//! State is ancestry: what merges, pulls, forks, renames and reverts do to it.

use arborist_testkit::{Run, TaskCommit, TestRepo, WORKER};
use serde_json::Value;

fn task(repo: &TestRepo, id: &str) -> Value {
    let document: Value = serde_json::from_str(&repo.arborist(["state", "--json", id]).answer()).unwrap();
    document["tasks"][0].clone()
}

fn state_of(repo: &TestRepo, id: &str) -> String {
    task(repo, id)["state"].as_str().unwrap().to_owned()
}

fn merge(repo: &TestRepo, branch: &str) {
    repo.git(["merge", "-q", "--no-ff", "-m", &format!("merge {branch}"), branch]).succeeds();
}

fn revert(repo: &TestRepo, args: &[&str]) {
    repo.git(["revert", "--no-commit"].iter().chain(args)).succeeds();
    repo.git(["commit", "-q", "--no-edit", "--allow-empty"]).succeeds();
}

/// The colleague commits on an older state of the branch, pulls with a merge and pushes: the merge's first
/// parent is theirs, and the run's own commits are on the second.
#[test]
fn a_merge_by_a_colleague_with_swapped_parents_does_not_change_the_state() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "implement-pass");
    repo.git(["branch", "theirs"]).succeeds();
    repo.task("T1", "test-pass");
    repo.task("T1", "complete");
    repo.task("T2", "test-fail");
    repo.git(["switch", "-q", "theirs"]).succeeds();
    repo.write("notes", "theirs");
    repo.commit("a colleague's commit\n");
    merge(&repo, "main");
    repo.git(["push", "-q", ".", "theirs:main"]).succeeds();
    repo.git(["switch", "-q", "main"]).succeeds();
    for _ in ["fresh", "cached"] {
        assert_eq!(state_of(&repo, "T1"), "complete");
        assert_eq!(state_of(&repo, "T2"), "testing");
    }
}

#[test]
fn dates_do_not_matter() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "test-fail");
    repo.wait(-400_000_000);
    repo.task("T1", "complete");
    assert_eq!(state_of(&repo, "T1"), "complete");
}

/// A start that is dated after its own descendants, beside a merge: it is still the last start that counts.
#[test]
fn the_last_run_start_is_chosen_by_ancestry_and_not_by_date() {
    let repo = TestRepo::init();
    repo.wait(500_000);
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    repo.wait(-400_000);
    repo.git(["branch", "side"]).succeeds();
    repo.run_start("main", "s2");
    repo.task("T2", "complete");
    repo.git(["switch", "-q", "side"]).succeeds();
    repo.commit("side\n");
    repo.git(["switch", "-q", "main"]).succeeds();
    merge(&repo, "side");
    let document: Value = serde_json::from_str(&repo.arborist(["state", "--json"]).answer()).unwrap();
    assert_eq!(document["session"], "s2");
    assert_eq!(document["summary"]["complete"], 1);
}

#[test]
fn two_newest_commits_of_a_task_are_a_fork_and_both_are_reported() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T2", "complete");
    repo.git(["branch", "side"]).succeeds();
    let ours = repo.task("T1", "complete");
    repo.git(["switch", "-q", "side"]).succeeds();
    let theirs = repo.task("T1", "failed");
    repo.git(["switch", "-q", "main"]).succeeds();
    merge(&repo, "side");
    let forked = task(&repo, "T1");
    assert_eq!(forked["state"], "forked");
    let mut forks: Vec<&str> =
        forked["forks"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let mut both = [ours.as_str(), theirs.as_str()];
    forks.sort_unstable();
    both.sort_unstable();
    assert_eq!(forks, both);
    assert_eq!(state_of(&repo, "T2"), "complete");
    repo.arborist(["state"]).succeeds().out("1 forked").out(&ours[..10]).out(&theirs[..10]);
    repo.task("T1", "reset");
    assert_eq!(state_of(&repo, "T1"), "pending", "a later commit follows both");
}

#[test]
fn two_merged_run_starts_are_reported_with_the_option_for_a_new_run() {
    let repo = TestRepo::init();
    repo.git(["branch", "side"]).succeeds();
    let ours = repo.run_start("main", "s1");
    repo.git(["switch", "-q", "side"]).succeeds();
    repo.write("x", "x");
    let theirs = repo.run_start("main", "s2");
    repo.git(["switch", "-q", "main"]).succeeds();
    merge(&repo, "side");
    repo.arborist(["state"]).succeeds().err(&ours[..10]).err(&theirs[..10]).err("--new-run");
}

#[test]
fn a_renamed_branch_is_found_again_with_scope() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    repo.git(["branch", "-m", "main", "trunk"]).succeeds();
    repo.arborist(["state"]).exits(2).matches_snapshot().silent();
    repo.arborist(["state", "--scope", "main"]).succeeds().matches_snapshot();
}

#[test]
fn a_branch_created_from_a_run_is_not_reported_as_renamed() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    repo.git(["switch", "-q", "-c", "feature"]).succeeds();
    repo.arborist(["state"]).succeeds().never("T1");
}

#[test]
fn task_commits_of_another_branch_do_not_count_if_merged_cherry_picked_or_squashed() {
    let repo = TestRepo::init();
    repo.git(["branch", "feature"]).succeeds();
    repo.run_start("main", "s1");
    repo.task("T1", "test-fail");
    repo.git(["switch", "-q", "feature"]).succeeds();
    repo.commit(TaskCommit::run_start("feature", "s2", &"0".repeat(40)).to_string());
    repo.write("x", "x");
    let theirs = repo.commit_complete(&TaskCommit::new("T1", "complete").branch("feature"));
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.git(["cherry-pick", "-x", &theirs]).succeeds();
    assert_eq!(state_of(&repo, "T1"), "testing", "cherry-picked");
    merge(&repo, "feature");
    assert_eq!(state_of(&repo, "T1"), "testing", "merged");
    let squash = "Squashed commit of the following:\n\ncommit 0123\n\n    task(main@T1@complete): x\n    \n    Arborist-Step: complete\n    Arborist-Result: pass\n    Arborist-Report: r\n";
    repo.commit(squash);
    assert_eq!(state_of(&repo, "T1"), "testing", "squashed");
}

#[test]
fn reverting_a_failure_makes_the_task_ready_and_restarts_its_attempt_count() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.commit(TaskCommit::new("T1", "test-fail").trailer("Retry", "4").to_string());
    let failed = repo.task("T1", "failed");
    assert_eq!(state_of(&repo, "T1"), "failed");
    revert(&repo, &[&failed]);
    let undone = task(&repo, "T1");
    assert_eq!(undone["state"], "testing", "{undone}");
    assert_eq!(undone["ready"], true);
    assert_eq!(undone["attempt"], Value::Null);
    repo.task("T1", "implement-pass");
    assert_eq!(task(&repo, "T1")["attempt"], 0);
}

#[test]
fn reverting_a_revert_restores_the_task_state_any_number_of_times() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "implement-pass");
    repo.write("done", "done");
    let mut last = repo.task("T1", "complete");
    repo.task("T2", "complete");
    for (n, state) in ["reviewing", "complete", "reviewing", "complete"].into_iter().enumerate() {
        revert(&repo, &[&last]);
        last = repo.git(["rev-parse", "HEAD"]).answer();
        assert_eq!(state_of(&repo, "T1"), state, "after {} reverts", n + 1);
    }
    assert_eq!(state_of(&repo, "T2"), "complete");
}

#[test]
fn a_revert_also_undoes_later_commits_of_the_task() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.write("a", "a");
    let implemented = repo.task("T1", "implement-pass");
    repo.task("T1", "test-pass");
    repo.task("T1", "complete");
    revert(&repo, &[&implemented]);
    assert_eq!(state_of(&repo, "T1"), "pending");
    repo.arborist(["state", "T1"]).succeeds().matches_snapshot();
}

#[test]
fn a_short_reference_in_a_revert_is_understood() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.write("a", "a");
    let done = repo.task("T1", "complete");
    repo.commit(format!("Revert it\n\nThis reverts commit {} (complete, 2025-02-16).\n", &done[..9]));
    assert_eq!(state_of(&repo, "T1"), "reviewing");
}

#[test]
fn reverting_a_landing_undoes_all_task_commits_that_it_merged() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "arborist/task/main/T1"]).succeeds();
    repo.write("a", "a");
    repo.task("T1", "implement-pass");
    repo.task("T1", "complete");
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.task("T2", "complete");
    let land = repo.landing("T1", "arborist/task/main/T1");
    repo.git(["merge", "-q", "--no-ff", "-m", &land, "arborist/task/main/T1"]).succeeds();
    repo.git(["branch", "-q", "-D", "arborist/task/main/T1"]).succeeds();
    assert_eq!(task(&repo, "T1")["landed"], true);
    let landing = repo.git(["rev-parse", "HEAD"]).answer();
    revert(&repo, &["-m", "1", &landing]);
    assert_eq!(state_of(&repo, "T1"), "pending");
    assert_eq!(state_of(&repo, "T2"), "complete");
    let undone = repo.git(["rev-parse", "HEAD"]).answer();
    revert(&repo, &[&undone]);
    assert_eq!(task(&repo, "T1")["landed"], true);
}

#[test]
fn the_history_cache_gives_the_same_state_as_git() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    let fresh = repo.arborist(["state", "--json"]).answer();
    let cache = repo.path(".git/arborist/cache/v1/main");
    assert!(cache.is_file(), "a cache was written");
    assert_eq!(repo.arborist(["state", "--json"]).answer(), fresh);
    repo.task("T2", "test-pass");
    assert_eq!(state_of(&repo, "T2"), "testing", "what is new is read");
    repo.git(["reset", "-q", "--hard", "HEAD~1"]).succeeds();
    assert_eq!(repo.arborist(["state", "--json"]).answer(), fresh, "what is gone is forgotten");
    repo.git(["reset", "-q", "--hard", "HEAD~5"]).succeeds();
    repo.arborist(["state"]).succeeds().never("T1");
}

/// While git looks for the repository, the cache of the one around us is read.
#[test]
fn the_cache_of_another_repository_or_branch_is_not_used() {
    let [repo, other] = [TestRepo::init(), TestRepo::init()];
    for (repo, status) in [(&repo, "complete"), (&other, "failed")] {
        repo.run_start("main", "s1");
        repo.write("folder/file.txt", "x\n");
        repo.task("T1", status);
        repo.arborist(["state"]).succeeds();
    }
    let states = |dir: &str, names: &[(&str, &str)]| {
        let mut command = repo.command("git", &repo.path(dir));
        command.args(["arborist", "state", "--json"]);
        command.envs(names.iter().map(|(name, path)| (name, other.path(path))));
        let document: Value = serde_json::from_str(&Run::of(&mut command, b"").answer()).unwrap();
        document["tasks"][0]["state"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(states("", &[]), "complete");
    assert_eq!(states("folder", &[]), "complete", "it is found from a folder too");
    assert_eq!(states("", &[("GIT_DIR", ".git"), ("GIT_WORK_TREE", "")]), "failed");
    repo.git(["checkout", "-q", "-b", "side", "HEAD~4"]).succeeds();
    assert_eq!(states("", &[]), "", "another branch has a run of its own");
    repo.git(["worktree", "add", "-q", "linked", "main"]).succeeds();
    assert_eq!(states("linked", &[]), "complete", "a worktree within a checkout is not that checkout");
}

#[test]
fn a_manipulated_history_cache_is_ignored() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    repo.task("T2", "failed");
    let fresh = repo.arborist(["state", "--json"]).answer();
    let cache = repo.path(".git/arborist/cache/v1/main");
    let bytes = std::fs::read_to_string(&cache).unwrap();
    let forged = bytes.replace("task(main@T2@failed)", "task(main@T2@reset) ");
    let hole: String = bytes.lines().take(1).map(|tip| format!("{tip}\n")).collect();
    let tip = repo.git(["rev-parse", "HEAD"]).answer();
    for tampered in [forged, hole, String::new(), format!("{tip}\n{tip} 99999999999\n"), "junk".to_owned()] {
        std::fs::write(&cache, &tampered).unwrap();
        assert_eq!(repo.arborist(["state", "--json"]).answer(), fresh, "{tampered}");
    }
}

/// The cache keeps the tip and the start but leaves out a commit between them.
#[test]
fn a_history_cache_that_lacks_a_commit_does_not_change_the_state() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.task("T1", "complete");
    repo.git(["branch", "side"]).succeeds();
    repo.task("T1", "failed");
    repo.commit("tip\n");
    let fresh = repo.arborist(["state", "--json"]).answer();
    let cache = repo.path(".git/arborist/cache/v1/main");
    let bytes = std::fs::read_to_string(&cache).unwrap();
    let failed = repo.git(["rev-parse", "HEAD~1"]).answer();
    let begin = bytes.find(&format!("{failed} ")).unwrap();
    let end = begin + bytes[begin..].find(&repo.git(["rev-parse", "side"]).answer()).unwrap();
    let next = bytes[end..].find(&format!("{} ", repo.git(["rev-parse", "side"]).answer())).unwrap();
    std::fs::write(&cache, format!("{}{}", &bytes[..begin], &bytes[end + next..])).unwrap();
    assert_eq!(repo.arborist(["state", "--json"]).answer(), fresh);
}

/// The format of a run has a version, and the first commit of the run names it.
#[test]
fn a_run_in_a_newer_format_is_refused_and_its_format_is_reported() {
    let repo = TestRepo::init();
    let base = repo.git(["rev-parse", "HEAD"]).answer();
    let start = TaskCommit::run_start("main", "s1", &base);
    repo.commit(start.clone().trailer("Format", "1").to_string());
    repo.task("T1", "complete");
    assert_eq!(state_of(&repo, "T1"), "complete");
    repo.commit(start.trailer("Format", "2").trailer("Shape", "new").to_string());
    repo.task("T1", "complete");
    for command in ["state", "verify", "gardener"] {
        let run = repo.arborist(command.split(' ')).exits(1);
        let error = run.stderr();
        assert!(error.contains("the run on 'main' was recorded in format 2"), "{command}: {error}");
        assert!(
            error.contains("hint: install a version of git arborist that reads format 2"),
            "{command}: {error}"
        );
    }
}

/// A newer version may write trailers that this one does not know.
#[test]
fn an_unknown_trailer_is_ignored_by_state_and_reported_by_trailers_check() {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    for step in TaskCommit::new("T1", "complete").steps_before() {
        repo.commit(step.trailer("Weather", "fine").to_string());
    }
    repo.commit(TaskCommit::new("T1", "complete").trailer("Weather", "fine").to_string());
    assert_eq!(state_of(&repo, "T1"), "complete");
    let check = repo.arborist(["trailers", "check", "HEAD"]).exits(1);
    assert!(
        check.stdout().contains("'Arborist-Weather' is not a trailer of git arborist"),
        "{}",
        check.stdout()
    );
    // git reads this key as ours, so it contradicts the other one.
    repo.commit(TaskCommit::new("T2", "failed").to_string() + "arborist-result: pass\n");
    assert!(repo.arborist(["state", "--json", "T2"]).code() != 0);
}

#[test]
fn a_renamed_branch_can_begin_a_new_run() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 the work\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    repo.git(["branch", "-m", "main", "trunk"]).succeeds();
    repo.arborist(["gardener"]).exits(2).err("git arborist gardener --new-run");
    repo.arborist(["gardener", "--new-run"]).succeeds();
    repo.arborist(["state"]).succeeds().out("trunk: 1 of 1 done");
}
