//! `git arborist verify`: finished tasks went through their steps, and forged ones are found.

use std::fs;

use arborist_testkit::{Run, Said, TaskCommit, TestRepo, WORKER, is_installed};
use serde_json::Value;

const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";

fn repo() -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, WORKER)
}

/// A repository with a run of `main` and the first steps of a task: what `change` writes is implemented.
fn with_first_steps(change: impl Fn(&TestRepo)) -> TestRepo {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    change(&repo);
    repo.commit(step("implement-pass"));
    repo
}

fn step(status: &str) -> String {
    TaskCommit::new("T1", status).trailer("Session", "s1").to_string()
}

/// Commits these steps of T1, without changes.
fn steps(repo: &TestRepo, statuses: &[&str]) {
    for status in statuses {
        repo.commit(step(status));
    }
}

/// A complete task that was implemented, tested and approved.
fn complete() -> TestRepo {
    let repo = with_first_steps(|repo| repo.write("a.txt", "a"));
    steps(&repo, &["test-pass", "review-approved", "complete"]);
    repo
}

fn parse_report(run: &Said) -> Value {
    serde_json::from_str(&run.stdout()).unwrap()
}

/// The only problem, as its check and its words.
#[track_caller]
fn only_problem(repo: &TestRepo, args: &[&str]) -> (String, String) {
    let run = repo.arborist(["verify", "--json"].iter().chain(args)).exits(1);
    let found = parse_report(&run);
    let problems = found["problems"].as_array().unwrap();
    assert_eq!(problems.len(), 1, "{found:#}");
    let text = |key: &str| problems[0][key].as_str().unwrap().to_owned();
    (text("check"), text("problem"))
}

#[test]
fn a_run_in_place_is_verified() {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["verify", "--strict"]).succeeds().out("verified 2 tasks in HEAD");
    let found = parse_report(&repo.arborist(["verify", "--json", "HEAD~4..HEAD"]).succeeds());
    assert_eq!(found["range"], "HEAD~4..HEAD");
    assert_eq!(found["tasks"].as_array().unwrap().len(), 1, "only tasks that end in the range: {found:#}");
    assert_eq!(found["tasks"][0]["task"], "T002");
    assert_eq!(found["not_checked"].as_array().unwrap().len(), 0, "{found:#}");
}

#[test]
fn landings_of_lanes_are_verified_with_their_gates() {
    let repo = repo();
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    repo.arborist(["verify", "--strict"]).succeeds().out("verified 2 tasks in HEAD");
}

#[test]
fn a_session_branch_is_verified_by_session_id_and_after_merging() {
    let repo = repo();
    repo.arborist(["gardener", "--session-branch"]).succeeds();
    let sessions = repo.arborist(["session", "list", "--json"]).answer();
    let sessions: Value = serde_json::from_str(&sessions).unwrap();
    let session = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    repo.arborist(["verify", "--strict", &session])
        .succeeds()
        .out(&format!("verified 2 tasks in session {session}"));
    repo.arborist(["verify"]).succeeds().out("verified 0 tasks in HEAD");
    let branch = sessions["sessions"][0]["branch"].as_str().unwrap().to_owned();
    repo.git(["merge", "-q", "--no-ff", "-m", "merge it", &branch]).succeeds();
    repo.arborist(["verify", "--strict", "HEAD^..HEAD"]).succeeds().out("verified 2 tasks in HEAD^..HEAD");
}

#[test]
fn a_plain_clone_is_verified_and_missing_records_and_gates_are_reported() {
    let repo = repo();
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let clone = repo.root().join("clone");
    let clone_path = clone.to_str().unwrap();
    repo.git(["clone", "-q", ".", clone_path]).succeeds();
    let run = repo.arborist_in(&clone, ["verify"]).succeeds().out("verified 2 tasks in HEAD");
    run.out("not checked (records): the records of session").out("not checked (gates): no results");
    repo.arborist_in(&clone, ["verify", "--strict"]).exits(1);
    let trailer = ["log", "--format=%(trailers:key=Arborist-Session,valueonly)", "--grep=run-start"];
    let session = repo.git(trailer).answer();
    repo.arborist_in(&clone, ["verify", session.trim()]).succeeds().out("verified 2 tasks in session");
    let records = "refs/arborist/*:refs/arborist/*";
    repo.git_in(&clone, ["fetch", "-q", "origin", records]).succeeds();
    repo.arborist_in(&clone, ["verify", "--strict"]).succeeds();
}

#[test]
fn verify_in_a_plain_clone_says_how_to_fetch_missing_records() {
    let repo = repo();
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    let clone = repo.root().join("clone");
    repo.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
    let run = repo.arborist_in(&clone, ["verify"]).succeeds();
    let run =
        run.out("not checked (records): the merge queue's log has no entry for the landings of T001, T002");
    let run = run.out("verified 2 tasks in HEAD, except for 3 checks that could not be made");
    let said = run.stderr();
    let (_, command) = said.trim_end().split_once("get it with: ").unwrap();
    let words = command.replace('\'', "");
    repo.git_in(&clone, words.split(' ').skip(1)).succeeds();
    repo.arborist_in(&clone, ["verify", "--strict"]).succeeds().never("except for");
}

#[test]
fn verify_checks_the_commits_ahead_of_the_upstream_by_default() {
    let repo = repo();
    repo.git(["branch", "before"]).succeeds();
    repo.git(["remote", "add", "origin", "."]).succeeds();
    repo.git(["fetch", "-q"]).succeeds();
    repo.git(["branch", "-q", "--set-upstream-to", "origin/before"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["verify"]).succeeds().out("verified 2 tasks in origin/before..HEAD");
}

#[test]
fn commits_of_people_within_a_run_are_listed_and_are_no_problem() {
    let repo = repo();
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.write("mine.txt", "mine");
    repo.commit("my own work\n");
    repo.arborist(["gardener"]).succeeds();
    repo.commit("after the run\n");
    let run = repo.arborist(["verify"]).succeeds();
    run.out("made outside of the run: 1 commit").out("my own work").out("verified 2 tasks in HEAD");
}

#[test]
fn a_completion_without_a_test_step_is_found() {
    let repo = with_first_steps(|repo| repo.write("a.txt", "a"));
    steps(&repo, &["review-approved", "complete"]);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "steps");
    assert!(words.contains("passed tests"), "{words}");
}

#[test]
fn problems_are_shown_with_their_commit_task_and_check() {
    let repo = with_first_steps(|repo| repo.write("a.txt", "a"));
    steps(&repo, &["review-approved", "complete"]);
    repo.arborist(["verify"]).exits(1).matches_snapshot();
    complete().arborist(["verify"]).succeeds().matches_snapshot();
}

#[test]
fn a_review_of_another_tree_is_found() {
    let repo = with_first_steps(|repo| repo.write("a.txt", "a"));
    steps(&repo, &["test-pass"]);
    repo.write("b.txt", "not tested");
    steps(&repo, &["review-approved", "complete"]);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(
        (check.as_str(), words.as_str()),
        ("review", "the approved tree is not the tested one: 'b.txt'")
    );
}

#[test]
fn content_that_changed_after_the_approval_is_found() {
    let repo = with_first_steps(|repo| repo.write("a.txt", "a"));
    steps(&repo, &["test-pass", "review-approved"]);
    repo.write("a.txt", "changed");
    steps(&repo, &["complete"]);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "review");
    assert_eq!(
        words,
        "the 'complete' commit also changes files that were neither tested nor reviewed: 'a.txt'"
    );

    let repo = with_first_steps(|repo| repo.write("a.txt", "a"));
    steps(&repo, &["test-pass", "review-approved"]);
    repo.write("a.txt", "changed");
    repo.commit("an innocent commit\n");
    repo.write("spec/reports/T1.json", "{}");
    steps(&repo, &["complete"]);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "review");
    assert_eq!(words, "files were changed after the approved review: 'a.txt'");
}

/// A landing of T1, which was done on a branch, with what `change` does to the merge.
fn landed(change: impl Fn(&TestRepo)) -> TestRepo {
    let repo = TestRepo::init();
    repo.run_start("main", "s1");
    repo.git(["switch", "-q", "-c", "side"]).succeeds();
    repo.write("a.txt", "a");
    steps(&repo, &["implement-pass", "test-pass", "review-approved", "complete"]);
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.write("other.txt", "other");
    repo.commit("other work\n");
    repo.git(["merge", "-q", "--no-ff", "--no-commit", "side"]).succeeds();
    change(&repo);
    repo.git(["add", "-A"]).succeeds();
    let tree = repo.git(["write-tree"]).answer();
    let parents = ["HEAD", "side"].map(|name| repo.git(["rev-parse", name]).answer());
    let message = TaskCommit::new("T1", "merge").trailer("Source", &parents[1]).trailer("Gate", "test");
    let landing = repo.commit_object(&tree, &parents, message.trailer("Session", "s1").to_string());
    repo.git(["reset", "-q", "--hard", &landing]).succeeds();
    repo
}

#[test]
fn a_protected_file_that_was_changed_without_permission_is_found() {
    let repo = TestRepo::init();
    repo.write("tests/a.sh", "true\n");
    repo.write(".arborist/config.toml", "protect = [\"tests/\"]\n");
    repo.commit("Add a test\n");
    repo.run_start("main", "s1");
    repo.write("tests/a.sh", "exit 0\n");
    // What the task itself takes off the list was on it when the run started.
    repo.write(".arborist/config.toml", "");
    repo.commit(step("implement-pass"));
    steps(&repo, &["test-pass", "review-approved", "complete"]);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "protected");
    assert_eq!(words, "protected files were changed without permission: 'tests/a.sh'");
}

#[test]
fn a_protected_file_that_was_changed_with_permission_is_verified() {
    let plan = "- [ ] T001 [allow:tests/] do a\n";
    let repo =
        TestRepo::planned("tasks.md", plan, &WORKER.replace("echo done", "echo 'exit 0' > tests/a.sh"));
    repo.write("tests/a.sh", "true\n");
    repo.commit("Add a test\n");
    repo.git(["config", "arborist.protect", "tests/"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(repo.git(["show", "main:tests/a.sh"]).answer(), "exit 0");
    repo.arborist(["verify", "--strict"]).succeeds();
}

/// T002 changes the file that was protected when the run started.
fn loosened() -> TestRepo {
    let script = WORKER.replace("echo done", "[ $ARBORIST_TASK = T001 ] || echo changed > conf\necho done");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n", &script);
    repo.write("conf", "as it was\n");
    repo.commit("Add settings\n");
    repo.git(["config", "arborist.protect", "conf"]).succeeds();
    repo.arborist(["garden", "T001"]).succeeds();
    repo.git(["config", "--unset", "arborist.protect"]).succeeds();
    repo
}

#[test]
fn a_run_keeps_files_protected_until_its_user_accepts_the_change() {
    let repo = loosened();
    let kept = repo.arborist(["garden", "T002", "--max-retries", "1"]).exits(1);
    kept.err("still protected in this run, although the settings no longer list it: conf");
    assert_eq!(repo.git(["show", "main:conf"]).answer(), "as it was");
    let accepted = repo.arborist(["garden", "T002", "--retry-failed", "--accept-changes"]).succeeds();
    let accepted = accepted.err("no longer protected: conf");
    assert!(!accepted.stderr().contains("still protected"), "{}", accepted.stderr());
    assert_eq!(repo.git(["show", "main:conf"]).answer(), "changed");
    repo.arborist(["verify", "HEAD"]).succeeds();
    // It counts for what was done afterwards, and stays accepted.
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn an_accepted_list_does_not_count_for_earlier_tasks() {
    let script = WORKER.replace("echo done", "[ $ARBORIST_TASK = T002 ] || echo changed > conf\necho done");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n", &script);
    repo.write("conf", "as it was\n");
    repo.commit("Add settings\n");
    repo.arborist(["garden", "T001"]).succeeds();
    repo.git(["config", "arborist.protect", "conf"]).succeeds();
    repo.arborist(["garden", "T002", "--accept-changes"]).succeeds();
    repo.git(["config", "--unset", "arborist.protect"]).succeeds();
    repo.arborist(["verify", "HEAD"]).succeeds();
}

#[test]
fn what_only_this_machine_protects_now_is_named_as_such() {
    let script = WORKER.replace("echo done", "echo changed > conf\necho done");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", &script);
    repo.write("conf", "as it was\n");
    repo.commit("Add settings\n");
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["verify", "HEAD"]).succeeds();
    repo.git(["config", "arborist.protect", "conf"]).succeeds();
    let (check, words) = only_problem(&repo, &["HEAD"]);
    assert_eq!(check, "protected");
    assert!(words.contains("listed by 'protect' on this machine, but not when the task was done"), "{words}");
}

#[test]
fn changed_settings_are_shown_when_they_are_accepted() {
    let repo = repo();
    repo.write(".arborist/config.toml", "protect = [\"tests/\"]\n");
    repo.commit("Add settings\n");
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.write(".arborist/config.toml", "protect = []\n");
    repo.commit("Change settings\n");
    let said = repo.arborist(["gardener", "--accept-changes"]).succeeds();
    said.err("accepted the changed '.arborist/config.toml':")
        .err("protect = []")
        .err("no longer protected: tests/");
}

#[test]
fn a_merge_by_hand_with_other_changes_is_listed_and_its_gates_count_as_not_checked() {
    let merged = |change: &dyn Fn(&TestRepo)| {
        let repo = repo();
        repo.write("kept.txt", "kept");
        repo.commit("Add a file\n");
        repo.git(["config", "arborist.protect", "kept.txt"]).succeeds();
        repo.git(["config", "arborist.merge.auto", "false"]).succeeds();
        let _ = repo.arborist(["gardener", "--jobs", "2"]);
        repo.git(["merge", "-q", "--no-ff", "--no-commit", "arborist/task/main/T001"]).succeeds();
        change(&repo);
        repo.git(["add", "-A"]).succeeds();
        repo.git(["commit", "-q", "-m", "merge it by hand"]).succeeds();
        repo
    };
    merged(&|_| {}).arborist(["verify"]).succeeds().never("made outside").never("not checked (gates)");
    let repo = merged(&|repo| {
        repo.write("evil.sh", "evil");
        repo.write("kept.txt", "changed");
    });
    let said = repo.arborist(["verify"]).succeeds();
    let said = said.out("made outside of the run: 1 commit").out("merge it by hand");
    let said = said
        .out("differs from git's own merge in: evil.sh, kept.txt")
        .out("changes protected files: kept.txt");
    said.out("T001 not checked (gates)");
    repo.arborist(["verify", "--strict"]).exits(1);
}

#[test]
fn a_landing_that_changes_more_than_its_merge_is_found() {
    landed(|_| {}).arborist(["verify"]).succeeds();
    let repo = landed(|repo| repo.write("evil.sh", "evil"));
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "landing");
    assert_eq!(words, "it differs from the merge of its parents in 'evil.sh'");
}

#[test]
fn a_gate_result_for_another_tree_and_a_failed_gate_are_found() {
    let repo = landed(|_| {});
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let other = repo.git(["rev-parse", "HEAD^^{tree}"]).answer();
    let empty = repo.git(["hash-object", "-t", "tree", "-w", "/dev/null"]).answer();
    let record = |answer: &str, tested: &str| {
        let json = format!(r#"{{"answer":"{answer}","gate":{{"name":"test"}},"tree":"{tested}"}}"#);
        let commit = repo.commit_object(&empty, &[], format!("gate: test is {answer}\n\n{json}\n"));
        repo.git(["update-ref", &format!("refs/arborist/gates/0123/{tree}"), &commit]).succeeds();
    };
    record("green", &tree);
    repo.arborist(["verify"]).succeeds();
    record("green", &other);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "gates");
    assert!(words.contains("another tree"), "{words}");
    record("red", &tree);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!((check.as_str(), words.as_str()), ("gates", "gate 'test' did not pass on the landed tree"));
}

#[test]
fn task_commits_without_a_run_start_of_their_session_are_found() {
    let repo = complete();
    repo.commit(TaskCommit::new("T9", "complete").trailer("Session", "s9").to_string());
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "run");
    assert!(words.contains("session 's9'"), "{words}");
}

#[test]
fn a_message_that_is_not_valid_is_found() {
    let repo = complete();
    repo.commit("task(main@T2@complete): complete \"b\"\n\nArborist-Step: complete\n");
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "message");
    assert!(words.contains("is not valid"), "{words}");
}

#[test]
fn records_that_contradict_history_are_found() {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    let begin = repo.git(["rev-list", "--max-parents=0", "HEAD"]).answer();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]).answer();
    let elsewhere = repo.commit_object(&tree, &[begin], "elsewhere\n");
    let name = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/sessions"]).answer();
    let record = repo.git(["log", "-1", "--format=%B", &name]).answer();
    let head = repo.git(["rev-parse", "HEAD"]).answer();
    let empty = repo.git(["rev-parse", &format!("{name}^{{tree}}")]).answer();
    let forge = |new: &str| {
        let before = repo.git(["rev-parse", &name]).answer();
        let commit = repo.commit_object(&empty, &[before], format!("{}\n", record.replace(&head, new)));
        repo.git(["update-ref", &name, &commit]).succeeds();
    };
    forge(&elsewhere);
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "records");
    assert!(words.contains("is not in this history"), "{words}");
    forge(&"1".repeat(40));
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "records");
    assert!(words.contains("does not exist"), "{words}");
}

/// A run of two tasks, and a branch `topic` with a commit of its own that was made after the first of them.
fn branched_off() -> TestRepo {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    let first = repo.git(["log", "-1", "--format=%H", "--grep=^task(main@T001@complete"]).answer();
    repo.git(["switch", "-q", "-c", "topic", &first]).succeeds();
    repo.write("own.txt", "own");
    repo.commit("own work\n");
    repo
}

#[test]
fn a_branch_from_the_middle_of_a_run_is_verified_while_another_branch_has_its_end() {
    let repo = branched_off();
    repo.arborist(["verify", "--strict"]).succeeds().out("verified 1 task in HEAD");
    repo.arborist(["gardener", "--new-run", "--only", "T002"]).succeeds();
    repo.arborist(["verify", "--strict"]).succeeds().out("verified 2 tasks in HEAD");
    let session =
        repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)", "main"]).answer();
    // The branch of the session is reset, so a task was dropped from it; that another branch has it does not matter.
    repo.git(["branch", "before", "main"]).succeeds();
    repo.git(["branch", "-q", "-f", "main", "topic"]).succeeds();
    for range in ["main", "topic", session.trim()] {
        repo.arborist(["verify", range]).exits(1).out("which is not in this history");
    }
    repo.git(["branch", "-q", "-f", "main", "before"]).succeeds();
    repo.arborist(["verify", "topic"]).succeeds();
    // Nothing has the end any more.
    repo.git(["branch", "-q", "-D", "main", "before"]).succeeds();
    repo.arborist(["verify", "topic"]).exits(1).out("which is not in this history");
}

#[test]
fn a_task_forged_on_a_branch_from_the_middle_of_a_run_is_found() {
    let repo = branched_off();
    let session =
        repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)", "main"]).answer();
    repo.write("evil.txt", "evil");
    for status in ["implement-pass", "test-pass", "review-approved", "complete"] {
        repo.commit(TaskCommit::new("T002", status).trailer("Session", session.trim()).to_string());
    }
    let (check, words) = only_problem(&repo, &[]);
    assert_eq!(check, "records");
    assert!(words.contains("which is not in this history"), "{words}");
}

#[test]
fn the_branch_of_a_replay_is_verified() {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    let session = repo.git(["log", "-1", "--format=%(trailers:key=Arborist-Session,valueonly)"]).answer();
    for replay in [
        &["session", "replay", session.trim(), "--turn", "3"][..],
        &["session", "replay", session.trim(), "--turn", "3", "--offline"],
    ] {
        repo.git(["switch", "-q", "main"]).succeeds();
        repo.arborist(replay).succeeds();
        let branches = repo
            .git([
                "for-each-ref",
                "--sort=-creatordate",
                "--format=%(refname:short)",
                "refs/heads/arborist/tasks",
            ])
            .answer();
        repo.arborist(["verify", branches.lines().next().unwrap()]).succeeds().out("verified 3 tasks");
    }
}

#[test]
fn a_wrong_range_is_an_error_with_a_hint() {
    let repo = TestRepo::init();
    repo.arborist(["verify", "main...HEAD"]).exits(129).err("two dots");
    repo.arborist(["verify", "gone..HEAD"]).exits(1).err("gone");
    repo.arborist(["verify", "nothing"]).exits(1).err("session list");
}

/// A key that signs commits of the user, who is known as a signer; `None` without the program for it.
fn signing_repo() -> Option<TestRepo> {
    if !is_installed("ssh-keygen") {
        println!("skipped: ssh-keygen is not installed");
        return None;
    }
    let repo = repo();
    new_key(&repo, "key");
    let public = fs::read_to_string(repo.root().join("key.pub")).unwrap();
    fs::write(repo.root().join("signers"), format!("ada@example.com {public}")).unwrap();
    let path = |name: &str| repo.root().join(name).to_str().unwrap().to_owned();
    repo.git(["config", "gpg.format", "ssh"]).succeeds();
    repo.git(["config", "user.signingKey", &path("key")]).succeeds();
    repo.git(["config", "gpg.ssh.allowedSignersFile", &path("signers")]).succeeds();
    repo.git(["config", "arborist.sign", "true"]).succeeds();
    Some(repo)
}

fn new_key(repo: &TestRepo, name: &str) {
    let mut command = repo.command("ssh-keygen", repo.root());
    Run::of(command.args(["-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", name]), b"").succeeds();
}

#[test]
fn task_commits_and_records_are_signed_and_a_known_signer_is_required() {
    let Some(repo) = signing_repo() else { return };
    repo.git(["config", "arborist.test-command", "true"]).succeeds();
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    repo.arborist(["verify", "--signed", "--strict"]).succeeds().out("verified 2 tasks in HEAD");
    fs::write(repo.root().join("signers"), "").unwrap();
    repo.arborist(["verify"]).succeeds();
    let run = repo.arborist(["verify", "--signed"]).exits(1);
    run.out("(check 'signature'): its signature is not accepted");
}

#[test]
fn an_unsigned_commit_among_signed_ones_is_found() {
    let Some(repo) = signing_repo() else { return };
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.git(["config", "arborist.sign", "false"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    let run = repo.arborist(["verify", "--signed", "--json"]).exits(1);
    let found = parse_report(&run);
    let problems = found["problems"].as_array().unwrap();
    assert!(!problems.is_empty());
    for problem in problems {
        assert_eq!(problem["check"], "signature", "{found:#}");
        assert_eq!(problem["problem"], "it is not signed", "{found:#}");
        assert_ne!(problem["task"], "T001", "{found:#}");
    }
    assert!(problems.iter().any(|problem| problem["task"] == "T002"), "{found:#}");
}

#[test]
fn a_forged_chain_in_a_merged_branch_is_found_by_its_signatures() {
    let Some(repo) = signing_repo() else { return };
    repo.arborist(["gardener"]).succeeds();
    let start = repo.git(["log", "--grep=run-start", "--format=%B"]).answer();
    let session = start.lines().find_map(|line| line.strip_prefix("Arborist-Session: ")).unwrap();
    repo.git(["switch", "-q", "-c", "side"]).succeeds();
    repo.write("evil.txt", "evil");
    for status in ["implement-pass", "test-pass", "review-approved", "complete"] {
        repo.commit(TaskCommit::new("T9", status).trailer("Session", session).to_string());
    }
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--no-ff", "-m", "merge it", "side"]).succeeds();
    let found = parse_report(&repo.arborist(["verify", "--signed", "--json"]).exits(1));
    let problems = found["problems"].as_array().unwrap();
    let of_signatures = problems.iter().filter(|problem| problem["check"] == "signature");
    assert_eq!((problems.len(), of_signatures.count()), (5, 4), "{found:#}");
    assert!(problems.iter().all(|problem| problem["task"] == "T9"), "{found:#}");
}

#[test]
fn a_forged_chain_in_a_merged_branch_is_found_by_the_records_of_the_run() {
    for args in [&["gardener"][..], &["gardener", "--jobs", "2"]] {
        let repo = repo();
        repo.arborist(args).succeeds();
        let start = repo.git(["log", "--grep=run-start", "--format=%B"]).answer();
        let session = start.lines().find_map(|line| line.strip_prefix("Arborist-Session: ")).unwrap();
        repo.git(["switch", "-q", "-c", "side"]).succeeds();
        repo.write("evil.txt", "evil");
        for status in ["implement-pass", "test-pass", "review-approved", "complete"] {
            repo.commit(TaskCommit::new("T9", status).trailer("Session", session).to_string());
        }
        repo.git(["switch", "-q", "main"]).succeeds();
        repo.git(["merge", "-q", "--no-ff", "-m", "merge it", "side"]).succeeds();
        let (check, words) = only_problem(&repo, &[]);
        assert_eq!(check, "records");
        assert!(words.contains(&format!("session '{session}' has no record of it")), "{words}");
        // A clone without records says that they were not compared.
        let clone = repo.root().join("clone");
        repo.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
        let run = repo.arborist_in(&clone, ["verify"]).succeeds().out("verified 3 tasks in HEAD");
        run.out("not checked (records): the records of session");
        repo.arborist_in(&clone, ["verify", "--strict"]).exits(1);
    }
}

#[test]
fn files_protected_only_by_user_configuration_are_verified_in_another_clone() {
    let agent = format!("{WORKER}\ncase \"$prompt\" in Implement*) echo changed > kept.txt ;; esac\n");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", &agent);
    for file in ["kept.txt", "a \"b\", é.txt"] {
        repo.write(file, "old");
    }
    repo.commit("files\n");
    for pathspec in ["kept.txt", ":(literal)a \"b\", é.txt"] {
        repo.git(["config", "--add", "arborist.protect", pathspec]).succeeds();
    }
    let clone = repo.root().join("clone");
    let verify = || {
        let _ = fs::remove_dir_all(&clone);
        repo.git(["clone", "-q", ".", clone.to_str().unwrap()]).succeeds();
        repo.arborist_in(&clone, ["verify"])
    };
    repo.arborist(["gardener", "--allow", "kept.txt"]).succeeds();
    verify().succeeds().out("verified 1 task in HEAD");
    // The permission is taken out of the commit, as if there had been none.
    let steps = repo.git(["log", "--reverse", "--format=%H", "--grep=^task(main@T001"]).answer();
    let base = repo.git(["log", "--format=%H", "-1", "--grep=run-start"]).answer();
    let steps: Vec<&str> = steps.lines().collect();
    repo.git(["reset", "-q", "--hard", base.trim()]).succeeds();
    for step in steps {
        let message = repo.git(["log", "-1", "--format=%B", step]).answer();
        let tree = repo.git(["rev-parse", &format!("{step}^{{tree}}")]).answer();
        let lines = message
            .lines()
            .filter(|line| !line.contains("changed with permission") && !line.contains("kept.txt"));
        let message: String = lines.map(|line| format!("{line}\n")).collect();
        let parent = repo.git(["rev-parse", "HEAD"]).answer();
        let commit = repo.commit_object(tree.trim(), &[parent.trim().to_owned()], message);
        repo.git(["reset", "-q", "--hard", commit.trim()]).succeeds();
    }
    verify().exits(1).out("protected files were changed without permission: 'kept.txt");
}

#[test]
fn a_step_fails_if_its_commit_cannot_be_signed() {
    let Some(repo) = signing_repo() else { return };
    fs::remove_file(repo.root().join("key")).unwrap();
    fs::remove_file(repo.root().join("key.pub")).unwrap();
    let before = repo.git(["rev-parse", "HEAD"]).answer();
    let run = repo.arborist(["gardener"]).exits(128);
    run.err("commit-tree");
    assert_eq!(repo.git(["rev-parse", "HEAD"]).answer(), before);
}

#[test]
fn signing_can_only_be_configured_in_git_config() {
    let repo = repo();
    repo.write(".arborist/config.toml", "sign = false\n");
    repo.arborist(["state"])
        .exits(1)
        .err("can only be set in git's configuration")
        .err("git config arborist.sign");
}

#[test]
fn verify_in_a_repository_without_commits_says_so() {
    let repo = TestRepo::with_options(&[]);
    repo.arborist(["verify"])
        .exits(128)
        .err("'main' has no commits yet")
        .err("make a first commit")
        .never("fetch");
}

#[test]
fn a_history_that_is_cut_off_is_an_error() {
    let repo = repo();
    repo.arborist(["gardener"]).succeeds();
    repo.git(["commit", "-q", "--allow-empty", "-m", "by hand"]).succeeds();
    let clone = repo.root().join("clone");
    let source = format!("file://{}", repo.path("").display());
    let place = clone.to_str().unwrap();
    repo.git_in(repo.root(), ["clone", "-q", "--depth", "1", &source, place]).succeeds();
    for args in [&["verify"][..], &["verify", "HEAD"], &["verify", "--strict"]] {
        let said = repo.arborist_in(&clone, args).exits(128);
        said.err("the history to verify ends at").err("git fetch --unshallow");
    }
    repo.git_in(&clone, ["fetch", "-q", "--unshallow"]).succeeds();
    repo.arborist_in(&clone, ["verify", "HEAD"]).succeeds().out("verified 2 tasks");
}
