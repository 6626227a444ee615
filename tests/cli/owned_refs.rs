//! A run owns its task branches, its records and its marks: what any child process does to them is undone before anything is
//! read from it, kept beside, and charged to whoever was at work.

use arborist_testkit::{TaskCommit, TestRepo, pairs};

use crate::queue_repo::QueueRepo;

/// The second task waits for the first.
const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 do a\n- [ ] T002 do b\n";

/// Writes a whole task that nobody has worked on, by plumbing alone, and leaves its tip in `$p`.
const FORGE: &str = r#"
s=$(git for-each-ref --format='%(refname)' refs/arborist/sessions | head -1); s=${s##*/}; s=${s:-s1}
blob=$(echo evil | git hash-object -w --stdin)
tree=$( { git ls-tree main; printf '100644 blob %s\tevil.txt\n' "$blob"; } | git mktree)
p=$(git rev-parse main)
step() {
  p=$(printf 'task(main@T002@%s): %s\n\n%b\nArborist-Session: %s\n' "$1" "$2" "$3" "$s" | git commit-tree "$tree" -p "$p")
}
step implement-pass 'implement "do b"' 'Arborist-Step: implement\nArborist-Result: pass\nArborist-Retry: 0'
step test-pass 'tests pass for "do b"' 'Arborist-Step: test\nArborist-Test: pass\nArborist-Retry: 0\nArborist-Test-Runtime: 0.1'
step review-approved 'review approved for "do b"' 'Arborist-Step: review\nArborist-Review: approved\nArborist-Retry: 0'
step complete 'complete "do b"' 'Arborist-Step: complete\nArborist-Result: pass\nArborist-Report: record'
"#;

/// A repository with a script that does `deed` once, and agents that call it where `who` says.
fn repo(who: &str, deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", PLAN);
    repo.commit("a plan\n");
    let script = repo.root().join("deed.sh");
    let once = repo.root().join("once");
    let text = format!("[ -e '{0}' ] && exit 0\ntouch '{0}'\n{FORGE}\n{deed}\nexit 0\n", once.display());
    std::fs::write(&script, text).unwrap();
    let call = format!("sh '{}' >&2", script.display());
    let (agent, reviewer) = match who {
        "agent" => (call.as_str(), ":"),
        "reviewer" => (":", call.as_str()),
        _ => (":", ":"),
    };
    repo.agent(&format!(
        "case \"$prompt\" in Review*) {reviewer}; echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" >> \"$ARBORIST_TASK.txt\"
{agent}
echo done"
    ));
    match who {
        // Only once a task is worked on: a baseline that did it would stop the run before.
        "test" => set(&repo, "test-command", &format!("[ -z \"$ARBORIST_TASK\" ] || {call}")),
        "baseline" => set(&repo, "test-command", &call),
        "gate" => set(&repo, "merge.gates.check.command", &call),
        "set-up" => set(&repo, "worktree.setup", &call),
        _ => {}
    }
    repo
}

fn set(repo: &TestRepo, key: &str, value: &str) {
    repo.git(["config", &format!("arborist.{key}"), value]).succeeds();
}

fn refs(repo: &TestRepo, below: &str) -> Vec<String> {
    let listed = repo.git(["for-each-ref", "--format=%(refname)", below]).answer();
    listed.lines().map(str::to_owned).collect()
}

fn tree_of_main(repo: &TestRepo) -> String {
    repo.git(["ls-tree", "--name-only", "main"]).answer()
}

fn count(repo: &TestRepo, status: &str) -> usize {
    repo.git(["log", "--format=%s", "main"]).answer().matches(status).count()
}

/// The whole plan was done by agents, the forged commits are kept, and nothing of them landed.
fn expect_no_forged_work(repo: &TestRepo, words: &str) {
    let tree = tree_of_main(repo);
    assert!(!tree.contains("evil.txt"), "{words}: {tree}");
    assert!(tree.contains("T001.txt") && tree.contains("T002.txt"), "{words}: {tree}");
    let saved = refs(repo, "refs/arborist/saved");
    assert!(!saved.is_empty(), "{words}: what was forged is kept");
    repo.arborist(["state", "--exit-code"]).succeeds();
}

const OTHER_TASK: &str = "git update-ref refs/heads/arborist/task/main/T002 \"$p\"";

#[test]
fn a_completion_that_a_child_process_forged_on_a_task_branch_does_not_land() {
    for who in ["agent", "reviewer", "test", "gate"] {
        let repo = repo(who, OTHER_TASK);
        repo.arborist(["gardener", "--isolate"]).succeeds().out("2 completed");
        expect_no_forged_work(&repo, who);
        let failed = match who {
            "agent" => "@T001@implement-fail)",
            "test" => "@T001@test-fail)",
            _ => continue,
        };
        assert_eq!(count(&repo, failed), 1, "{who}");
    }
}

#[test]
fn a_completion_that_a_setup_command_forged_does_not_land() {
    let repo = repo("set-up", OTHER_TASK);
    // Whoever prepares a lane and moves refs has not prepared it.
    assert_ne!(repo.arborist(["gardener", "--isolate"]).code(), 0);
    assert!(refs(&repo, "refs/heads/arborist/task/main/T002").is_empty());
    repo.arborist(["gardener", "--isolate"]).succeeds();
    expect_no_forged_work(&repo, "set-up");
}

#[test]
fn a_task_that_was_forged_during_a_run_in_the_checkout_is_done_by_the_run() {
    for who in ["agent", "reviewer", "test"] {
        let repo = repo(who, OTHER_TASK);
        repo.arborist(["gardener"]).succeeds().out("2 completed");
        assert!(refs(&repo, "refs/heads/arborist/task").is_empty(), "{who}");
        expect_no_forged_work(&repo, who);
    }
}

#[test]
fn tests_that_move_the_branch_of_a_run_fail_and_the_branch_is_restored() {
    for (deed, is_kept) in [
        ("git update-ref refs/heads/main \"$p\"", true),
        ("git branch -q other \"$p\"; git symbolic-ref refs/heads/main refs/heads/other", true),
        ("git branch -q other; git symbolic-ref refs/heads/main refs/heads/other", false),
        ("git update-ref -d refs/heads/main", false),
    ] {
        let repo = repo("test", deed);
        repo.arborist(["gardener"]).succeeds().out("2 completed");
        assert_eq!(count(&repo, "@T001@test-fail)"), 1, "{deed}");
        assert_ne!(repo.git(["symbolic-ref", "-q", "refs/heads/main"]).code(), 0, "{deed}");
        assert!(!tree_of_main(&repo).contains("evil.txt"), "{deed}");
        assert_eq!(!refs(&repo, "refs/arborist/saved").is_empty(), is_kept, "{deed}");
    }
}

/// What refs of the run and of its queue hold, and what is checked out.
fn owned(repo: &TestRepo) -> String {
    let refs = repo.git(["for-each-ref", "refs/heads/arborist", "refs/heads/main", "refs/arborist"]).answer();
    let kept = |line: &&str| !line.contains("refs/arborist/saved/") && !line.contains("refs/arborist/gates/");
    let refs: Vec<&str> = refs.lines().filter(kept).collect();
    let head = repo.git(["symbolic-ref", "HEAD"]).answer();
    let config = std::fs::read_to_string(repo.path(".git/config")).unwrap();
    format!("{}\n{head}\n{config}", refs.join("\n"))
}

#[test]
fn a_baseline_that_changes_refs_or_settings_stops_the_run_and_is_undone() {
    let lanes: &[&[&str]] = &[&["gardener"], &["gardener", "--isolate"]];
    let deeds = [
        (OTHER_TASK, true),
        ("git update-ref refs/heads/main \"$p\"", true),
        ("git branch -q other \"$p\"; git symbolic-ref refs/heads/main refs/heads/other", false),
        ("git update-ref -d refs/heads/main", false),
        ("git update-ref refs/arborist/wip/main/T001/0 \"$p\"", true),
        ("git update-ref refs/arborist/landing/main \"$p\"", true),
        ("git update-ref refs/arborist/queue/tickets/main/T002 \"$p\"", true),
        ("git config core.fsmonitor evil", false),
    ];
    for ((deed, is_kept), args) in pairs(&deeds, lanes) {
        let repo = repo("baseline", deed);
        let before = owned(&repo);
        // Tests that fail are one thing, and this is another.
        let args = [args, &["--allow-red"][..]].concat();
        let run = repo.arborist(args.iter().copied());
        assert_eq!(run.code(), 1, "{deed} {args:?}: {}", run.report());
        assert_eq!(repo.calls(), 0, "{deed} {args:?}: no agent was started");
        assert_eq!(owned(&repo), before, "{deed} {args:?}");
        if is_kept {
            assert!(!refs(&repo, "refs/arborist/saved").is_empty(), "{deed} {args:?}");
            assert!(run.stderr().contains("refs/arborist/saved/"), "{deed} {args:?}: {}", run.report());
        }
        repo.arborist(args.iter().copied()).succeeds().out("2 completed");
        assert!(!tree_of_main(&repo).contains("evil.txt"), "{deed} {args:?}");
    }
}

#[test]
fn a_baseline_that_switches_the_checkout_to_another_branch_stops_the_run_and_is_undone() {
    let repo = repo("baseline", "git symbolic-ref HEAD refs/heads/other");
    let before = owned(&repo);
    repo.arborist(["gardener"]).exits(1);
    assert_eq!(owned(&repo), before);
}

#[test]
fn commits_of_the_user_during_a_baseline_in_a_worktree_are_kept() {
    let user =
        "c=$(git commit-tree -p main -m 'by the user' 'main^{tree}'); git update-ref refs/heads/main \"$c\"";
    let repo = repo("baseline", user);
    repo.arborist(["gardener", "--isolate"]).exits(2);
    assert_eq!(count(&repo, "by the user"), 1);
    assert_eq!(repo.calls(), 0);
    repo.arborist(["gardener", "--isolate"]).succeeds().out("2 completed");
}

#[test]
fn tests_in_a_lane_that_move_their_own_branch_fail_and_the_branch_is_restored() {
    let repo = repo("test", "git update-ref refs/heads/arborist/task/main/T001 \"$p\"");
    repo.arborist(["gardener", "--isolate"]).succeeds().out("2 completed");
    assert_eq!(count(&repo, "@T001@test-fail)"), 1);
    expect_no_forged_work(&repo, "own branch");
}

#[test]
fn session_records_that_a_child_process_moved_are_restored() {
    let record = "refs/arborist/sessions/$s";
    let deeds = [
        format!("git update-ref -d {record}"),
        format!("git update-ref {record} $(git rev-parse {record}^)"),
        format!("git symbolic-ref {record} refs/heads/main"),
        format!("git pack-refs --all; git update-ref {record} main"),
        format!("git update-ref -d {record}; git update-ref {record}/below main"),
        format!("git update-ref -d {record}; ln -s ../../heads/main .git/{record}"),
    ];
    for (deed, who) in pairs(&deeds, &["agent", "reviewer", "test"]) {
        let repo = repo(who, &deed);
        repo.arborist(["gardener"]).succeeds().out("2 completed");
        let records = refs(&repo, "refs/arborist/sessions");
        assert_eq!(records.len(), 1, "{who}: {deed}: {records:?}");
        assert_ne!(repo.git(["symbolic-ref", "-q", &records[0]]).code(), 0, "{who}: {deed}");
        let log = repo.git(["log", "--first-parent", "--format=%s", &records[0]]).answer();
        assert!(log.contains(": start\n"), "{who}: {deed}: {log}");
        repo.arborist(["session", "list"]).succeeds();
        let failed = match who {
            "agent" => "@T001@implement-fail)",
            "test" => "@T001@test-fail)",
            _ => continue,
        };
        assert_eq!(count(&repo, failed), 1, "{who}: {deed}");
    }
}

#[test]
fn an_agent_that_changes_marks_of_unfinished_work_fails_the_attempt() {
    for deed in [
        "git update-ref -d refs/arborist/wip/main/T001/0",
        "git update-ref refs/arborist/wip/main/T001/0 \"$p\"",
        "git update-ref refs/arborist/wip/main/T002/0 \"$p\"",
        "git update-ref -d refs/arborist/wip/main/T001/0; git update-ref refs/arborist/wip/main/T001 \"$p\"",
    ] {
        let repo = repo("agent", deed);
        repo.arborist(["gardener"]).succeeds().out("2 completed");
        assert_eq!(count(&repo, "@T001@implement-fail)"), 1, "{deed}");
        assert!(refs(&repo, "refs/arborist/wip").is_empty(), "{deed}");
        assert!(!tree_of_main(&repo).contains("evil.txt"), "{deed}");
    }
}

#[test]
fn a_branch_whose_name_blocks_task_branches_is_moved_away() {
    let repo = repo(
        "agent",
        "git update-ref -d refs/heads/arborist/task/main/T001; git update-ref refs/heads/arborist/task \"$p\"",
    );
    repo.arborist(["gardener", "--isolate"]).succeeds().out("2 completed");
    assert!(!tree_of_main(&repo).contains("evil.txt"));
}

#[test]
fn commits_of_the_user_on_the_target_during_a_run_are_kept_and_listed() {
    let user = "c=$(git commit-tree -p main -m 'by the user' $({ git ls-tree main; printf '100644 blob %s\\tuser.txt\\n' \"$blob\"; } | git mktree)); git update-ref refs/heads/main \"$c\"";
    let repo = repo("agent", user);
    repo.git(["checkout", "-q", "-b", "elsewhere"]).succeeds();
    repo.git(["checkout", "-q", "main"]).succeeds();
    repo.git(["worktree", "add", "-q", "../beside", "elsewhere"]).succeeds();
    // The target is checked out nowhere, so that only its ref moves.
    let run = repo.arborist(["gardener", "--isolate"]);
    assert!(run.stderr().contains("by the user"), "{}", run.report());
    let tree = tree_of_main(&repo);
    assert!(tree.contains("user.txt"), "{tree}");
    let log = repo.git(["log", "--format=%s", "main"]).answer();
    assert!(log.contains("by the user"), "{log}");
}

#[test]
fn a_target_that_lost_commits_stops_the_run() {
    let repo = repo("agent", "git update-ref refs/heads/main main~1");
    let before = repo.git(["rev-parse", "main"]).answer();
    repo.arborist(["gardener", "--isolate"]).exits(2);
    // It is left as it was found: what a person did there on purpose stays done.
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), before);
}

#[test]
fn forged_task_commits_on_the_target_are_removed_and_their_tasks_are_done() {
    let target = "git update-ref refs/heads/main \"$p\"";
    for deed in [
        target.to_owned(),
        // That it is parked, too, does not make it the run's own.
        format!("git update-ref refs/arborist/landing/main \"$p\"; {target}"),
        // Nor that the branch of its own task holds it.
        format!("git update-ref refs/heads/arborist/task/main/T001 \"$p\"; {target}"),
        // What is committed on top goes with it, and all of it is kept.
        format!("p=$(echo plain | git commit-tree \"$tree\" -p \"$p\"); {target}"),
    ] {
        let repo = repo("agent", &deed);
        repo.arborist(["gardener", "--isolate"]).succeeds();
        expect_no_forged_work(&repo, &deed);
        assert_eq!(count(&repo, "@T002@merge"), 1, "{deed}");
    }
}

#[test]
fn forged_task_commits_on_the_target_do_not_count_in_the_next_run() {
    // The user's own commit comes first, and stays.
    let user = "m=$(git rev-parse main); u=$(echo mine | git commit-tree \"$m^{tree}\" -p \"$m\"); git update-ref refs/heads/main \"$u\"";
    let forge = "p=$u; step implement-pass 'implement \"do b\"' 'Arborist-Step: implement\\nArborist-Result: pass\\nArborist-Retry: 0'
step test-pass 'tests pass for \"do b\"' 'Arborist-Step: test\\nArborist-Test: pass\\nArborist-Retry: 0\\nArborist-Test-Runtime: 0.1'
step review-approved 'review approved for \"do b\"' 'Arborist-Step: review\\nArborist-Review: approved\\nArborist-Retry: 0'
step complete 'complete \"do b\"' 'Arborist-Step: complete\\nArborist-Result: pass\\nArborist-Report: record'
git update-ref refs/heads/main \"$p\"";
    let repo = repo("agent", &format!("{user}\n{forge}"));
    repo.arborist(["gardener", "--isolate", "--max-retries", "1"]).exits(1);
    assert!(repo.git(["log", "--format=%s", "main"]).answer().contains("mine"));
    assert_eq!(count(&repo, "@T002@complete"), 0);
    repo.arborist(["gardener", "--isolate", "--retry-failed"]).succeeds();
    expect_no_forged_work(&repo, "after the next run");
    assert!(repo.git(["log", "--format=%s", "main"]).answer().contains("mine"));
}

#[test]
fn a_parked_commit_that_is_not_a_genuine_landing_does_not_land() {
    for is_merge in [false, true] {
        let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
        let main = queue_repo.git(["rev-parse", "main"]).answer();
        let source = queue_repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
        queue_repo.write("evil.txt", "evil");
        queue_repo.git(["add", "evil.txt"]).succeeds();
        let tree = queue_repo.git(["write-tree"]).answer();
        queue_repo.git(["rm", "-q", "-f", "evil.txt"]).succeeds();
        let message = format!(
            "task(main@T2@merge): land \"T2\"\n\nArborist-Step: merge\nArborist-Result: pass\n\
             Arborist-Source: {source}\nArborist-Gate: none\nArborist-Session: s1\n"
        );
        let commit = match is_merge {
            true => queue_repo.commit_object(&tree, &[main, source], message),
            false => queue_repo.commit_object(&tree, &[main], "evil\n"),
        };
        queue_repo.git(["update-ref", "refs/arborist/landing/main", &commit]).succeeds();
        queue_repo.merge(&["T1"]).succeeds();
        let files = queue_repo.git(["ls-tree", "--name-only", "main"]).answer();
        assert!(files.contains("T1.txt") && !files.contains("evil.txt"), "{files}");
        let saved =
            queue_repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
        assert!(saved.contains(&commit), "{saved}");
    }
}

/// Parks the landing of a task as anybody could who can write refs: nothing about it is wrong, but no gate was asked.
fn park(queue_repo: &QueueRepo, task: &str) -> String {
    let main = queue_repo.git(["rev-parse", "main"]).answer();
    let source = queue_repo.git(["rev-parse", &format!("arborist/task/main/{task}")]).answer();
    let tree = queue_repo.git(["merge-tree", "--write-tree", &main, &source]).answer();
    let message = format!(
        "task(main@{task}@merge): land \"{task}\"\n\nArborist-Step: merge\nArborist-Result: pass\n\
         Arborist-Source: {source}\nArborist-Gate: check\nArborist-Session: s1\n"
    );
    let commit = queue_repo.commit_object(&tree, &[main, source], message);
    queue_repo.git(["update-ref", "refs/arborist/landing/main", &commit]).succeeds();
    commit
}

#[test]
fn a_landing_parked_by_another_process_does_not_land_if_its_gates_fail() {
    for is_queued in [false, true] {
        let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
        set_gate(&queue_repo, "! test -e T2.txt");
        if is_queued {
            queue_repo.merge(&["add", "T2"]).succeeds();
        }
        let commit = park(&queue_repo, "T2");
        queue_repo.merge(&["T1"]).succeeds().out("1 landed (T1)");
        let files = queue_repo.git(["ls-tree", "--name-only", "main"]).answer();
        assert!(files.contains("T1.txt") && !files.contains("T2.txt"), "{is_queued}: {files}");
        let saved =
            queue_repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
        assert!(saved.contains(&commit), "{is_queued}: {saved}");
    }
}

#[test]
fn a_parked_landing_of_an_incomplete_task_does_not_land() {
    let queue_repo = QueueRepo::with_finished(&["T1", "T2"]);
    queue_repo.merge(&["add", "T2"]).succeeds();
    queue_repo.on_branch("T2", |queue_repo| {
        queue_repo.commit(TaskCommit::new("T2", "reset").trailer("Session", "s1").to_string());
    });
    park(&queue_repo, "T2");
    queue_repo.merge(&["T1"]).succeeds().out("1 landed (T1)");
    assert!(!queue_repo.git(["ls-tree", "--name-only", "main"]).answer().contains("T2.txt"));
}

#[test]
fn a_landing_parked_by_another_process_lands_after_its_gates_run_again() {
    let queue_repo = QueueRepo::with_finished(&["T1"]);
    let asked = queue_repo.root().join("asked");
    set_gate(&queue_repo, &format!("echo yes >> '{}'", asked.display()));
    let count = || std::fs::read_to_string(&asked).unwrap().lines().count();
    queue_repo.write("T1.txt", "the user's own");
    queue_repo.merge(&["T1"]).exits(2).out("1 parked (T1)");
    let (before, parked) = (count(), queue_repo.git(["rev-parse", "refs/arborist/landing/main"]).answer());
    std::fs::remove_file(queue_repo.path("T1.txt")).unwrap();
    queue_repo.merge(&["run"]).succeeds().out("1 landed (T1)");
    assert_eq!(count(), before + 1);
    assert_eq!(queue_repo.git(["rev-parse", "main"]).answer(), parked, "it is the same commit");
}

fn set_gate(queue_repo: &QueueRepo, command: &str) {
    queue_repo.git(["config", "arborist.merge.gates.check.command", command]).succeeds();
}

/// Nobody compares refs once a run was killed: its own records tell the next one what it wrote.
#[test]
fn a_task_that_was_forged_before_the_run_was_killed_does_not_land() {
    let repo = repo("agent", OTHER_TASK);
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" >> \"$ARBORIST_TASK.txt\"
[ -e \"$ROOT/once\" ] || { sh \"$ROOT/deed.sh\" >&2; kill -9 $PPID; sleep 60; }
echo done",
    );
    repo.arborist(["gardener", "--isolate"]).exits(137);
    assert!(!refs(&repo, "refs/heads/arborist/task/main/T002").is_empty());
    let added = repo.arborist(["merge", "T002"]);
    assert_ne!(added.code(), 0, "{}", added.report());
    assert!(!tree_of_main(&repo).contains("evil.txt"));
    repo.arborist(["gardener", "--isolate"]).succeeds();
    expect_no_forged_work(&repo, "killed");
}

#[test]
fn a_replace_ref_that_an_agent_packed_is_removed_and_fails_the_attempt() {
    let deed = "e=$(echo EVIL | git hash-object -w --stdin)
git replace \"$(git rev-parse HEAD:tasks.md)\" \"$e\"; git pack-refs --all";
    for args in [&["gardener"][..], &["gardener", "--isolate"]] {
        let repo = repo("agent", deed);
        repo.arborist(args).succeeds();
        assert_eq!(refs(&repo, "refs/replace"), Vec::<String>::new(), "{args:?}");
        assert_eq!(count(&repo, "@T001@implement-fail)"), 1, "{args:?}");
    }
}

#[test]
fn a_replace_ref_of_the_user_is_kept() {
    let repo = repo("agent", ":");
    let other = repo.git(["hash-object", "-w", "tasks.md"]).answer();
    let name = format!("refs/replace/{}", "1".repeat(40));
    repo.git(["update-ref", &name, &other]).succeeds();
    repo.git(["pack-refs", "--all"]).succeeds();
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(refs(&repo, "refs/replace"), [name]);
}

#[test]
fn a_reftable_folder_does_not_hide_that_a_branch_became_a_symref() {
    let deed = "mkdir \"$(git rev-parse --git-common-dir)/reftable\"
git update-ref refs/heads/release main; git symbolic-ref refs/heads/main refs/heads/release";
    let repo = repo("agent", deed);
    let begin = repo.git(["rev-parse", "main"]).answer();
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(repo.git(["symbolic-ref", "-q", "refs/heads/main"]).code(), 1);
    assert_ne!(repo.git(["rev-parse", "main"]).answer(), begin);
    assert_eq!(count(&repo, "@T001@implement-fail)"), 1);
    let log = repo.git(["log", "--format=%s", "release"]).answer();
    assert!(!log.contains("implement-pass"), "nothing was written through the other branch: {log}");
}

#[test]
fn a_folder_that_an_agent_registered_as_a_lane_is_not_used() {
    let deed = "v=$(dirname \"$0\")/docs/lane-7; mkdir -p \"$v\"; echo precious > \"$v/notes.txt\"
g=$(git rev-parse --path-format=absolute --git-common-dir); w=$g/worktrees/evil; mkdir \"$w\"
echo \"$v/.git\" > \"$w/gitdir\"; echo ../.. > \"$w/commondir\"; git rev-parse main > \"$w/HEAD\"
printf arborist > \"$w/locked\"; echo \"gitdir: $w\" > \"$v/.git\"
GIT_DIR=$w GIT_WORK_TREE=$v git read-tree main";
    let repo = repo("agent", deed);
    let _ = repo.arborist(["gardener", "--isolate"]);
    let docs = repo.root().join("docs/lane-7");
    let names = std::fs::read_dir(&docs).unwrap().map(|entry| entry.unwrap().file_name());
    let names: std::collections::BTreeSet<_> = names.collect();
    assert!(names.contains(std::ffi::OsStr::new("notes.txt")), "{names:?}");
    assert!(!names.contains(std::ffi::OsStr::new("tasks.md")), "no files were checked out there: {names:?}");
    assert!(tree_of_main(&repo).contains("T002.txt"));
}

#[cfg(target_os = "linux")]
#[test]
fn agents_cannot_write_to_the_git_processes_of_the_run() {
    // Those that the driver keeps to read, to write and to move refs.
    let deed = r#"d=$(sed -n 's/^PPid:\t//p' /proc/$PPID/status)
for p in /proc/[0-9]*; do
  case "$(sed -n 's/^PPid:\t//p' $p/status 2>/dev/null)" in "$PPID"|"$d") ;; *) continue ;; esac
  [ "$(cat $p/comm 2>/dev/null)" = git ] || continue
  echo "$p" >> "$ROOT/gits"
  { printf 'start\ncreate refs/heads/told %s\ncommit\n' "$(git rev-parse main)" > $p/fd/0; } 2>/dev/null
  timeout 1 cat $p/fd/1 >/dev/null 2>&1
done"#;
    let repo = repo("agent", &format!("ROOT='{{root}}'\n{deed}"));
    let script = repo.root().join("deed.sh");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, text.replace("{root}", repo.root().to_str().unwrap())).unwrap();
    repo.arborist(["gardener"]).succeeds();
    let gits = std::fs::read_to_string(repo.root().join("gits")).unwrap_or_default();
    assert!(!gits.is_empty(), "there was a git to speak to");
    assert!(refs(&repo, "refs/heads/told").is_empty());
}

#[test]
fn commits_made_by_tests_and_gates_are_reported_with_the_ref_that_saves_them() {
    let kept = |repo: &TestRepo| refs(repo, "refs/arborist/saved").into_iter().next().unwrap_or_default();
    let tests = repo("test", "git update-ref HEAD \"$p\"");
    let said = tests.arborist(["gardener"]).succeeds();
    let name = kept(&tests);
    assert!(name.starts_with("refs/arborist/saved/main/T001/"), "{name}");
    said.err(&format!("made commits on main; they are kept as {name}"));
    let recorded = tests.git(["log", "--grep=@T001@test-fail)", "--format=%b"]).answer();
    assert!(recorded.contains(&name), "{recorded}");

    let gate = repo("gate", "git update-ref refs/heads/arborist/task/main/T002 \"$p\"");
    let said = gate.arborist(["gardener", "--isolate"]).succeeds();
    said.err("the result of the gate 'check' does not count: refs/heads/arborist/task/main/T002 was created while an agent or a command ran")
        .err(&kept(&gate));
}

#[test]
fn a_landing_ref_without_a_parked_task_is_removed_with_the_correct_reason() {
    let repo = repo("", "");
    repo.arborist(["gardener", "--isolate", "--only", "T001"]).succeeds();
    let foreign = repo.git(["commit-tree", "-m", "foreign", "HEAD^{tree}"]).answer();
    repo.git(["update-ref", "refs/arborist/landing/main", &foreign]).succeeds();
    let said = repo.arborist(["gardener", "--isolate"]).succeeds();
    said.err("refs/arborist/landing/main is removed, because no task of this run is parked")
        .err(&format!("refs/arborist/saved/landing/main/{}", &foreign[..10]))
        .never("the parked tasks");
}
