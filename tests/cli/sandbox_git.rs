//! A private git directory for agents that insist on committing (`sandbox.git = private`).

use std::{
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use arborist_core::process::ConfinementBackend;
use arborist_testkit::{Run, TestRepo, pairs};

use crate::turn_scripts;

/// Approves, or does something as the implementer. `$ROOT` is the folder around the checkout.
fn agent(script: &str) -> String {
    format!("case \"$prompt\" in Review*) echo APPROVED ;; *)\n{script}\n;; esac\n")
}

/// A repository whose agents get a private git directory; `None` if that does not work here.
fn repo(script: &str) -> Option<TestRepo> {
    if !ConfinementBackend::Bwrap.works() {
        println!("skipped: bwrap does not work here");
        return None;
    }
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 [P] a\n- [ ] T002 [P] b\n", &agent(script));
    repo.git(["config", "arborist.sandbox.git", "private"]).succeeds();
    Some(repo)
}

fn run(repo: &TestRepo, args: &[&str]) -> Run {
    repo.arborist([&["gardener", "--sandbox", "auto", "--max-retries", "1"], args].concat())
}

/// All refs except those that a run writes.
fn own_refs(repo: &TestRepo) -> String {
    let refs = repo.git(["for-each-ref", "--format=%(refname)"]).answer();
    let is_own =
        |name: &&str| !name.starts_with("refs/arborist/") && !name.starts_with("refs/heads/arborist/");
    refs.lines().filter(is_own).collect::<Vec<_>>().join("\n")
}

const COMMIT: &str = "set -e
echo x > \"$ARBORIST_TASK.txt\"
git add -A
git -c user.name=Agent -c user.email=agent@example.com commit -q -m \"mine of $ARBORIST_TASK\"
[ \"$(git log -1 --format=%s)\" = \"mine of $ARBORIST_TASK\" ]
[ -z \"$(git status --porcelain)\" ]
git diff --quiet HEAD~1 HEAD && exit 1
echo y >> \"$ARBORIST_TASK.txt\"
git tag mine-of-$ARBORIST_TASK";

#[test]
fn an_agent_can_commit_and_its_commits_are_folded() {
    for args in [&[][..], &["--jobs", "2"], &["--session-branch"]] {
        let Some(repo) = repo(COMMIT) else { return };
        let ended = run(&repo, args).succeeds();
        ended.err("1 commit that the run did not make ('mine of T001') became part of the task's commit");
        let branch = if args.contains(&"--session-branch") {
            repo.git(["for-each-ref", "--format=%(refname)", "refs/heads/arborist/"]).answer()
        } else {
            "main".to_owned()
        };
        let branch = branch.lines().next().unwrap();
        assert_eq!(repo.git(["show", &format!("{branch}:T001.txt")]).answer(), "x\ny", "{args:?}");
        let log = repo.git(["log", "--format=%s", branch]).answer();
        assert!(!log.contains("mine of"), "{args:?}: {log}");
        let saved = repo.git(["for-each-ref", "--format=%(subject)", "refs/arborist/saved/"]).answer();
        assert!(saved.contains("mine of T001") && saved.contains("mine of T002"), "{args:?}: {saved}");
        assert!(!own_refs(&repo).contains("mine"), "{args:?}");
        repo.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn a_stash_in_the_private_git_directory_is_saved() {
    let script =
        "echo stashed > stashed.txt && git add -A && git stash -q && echo x > \"$ARBORIST_TASK.txt\"";
    let Some(repo) = repo(script) else { return };
    run(&repo, &[])
        .succeeds()
        .err("that the agent made outside of its branch are kept as refs/arborist/saved/");
    assert_ne!(repo.git(["rev-parse", "--verify", "--quiet", "refs/stash"]).code(), 0);
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/"]).answer();
    let has_file = |name: &str| repo.git(["show", &format!("{name}:stashed.txt")]).stdout() == "stashed\n";
    assert!(saved.lines().any(has_file), "{saved}");
}

/// What the second task does, and a file that it leaves there.
const SWITCHES: [(&str, &str); 4] = [
    ("git checkout -q other; echo x > late.txt", "late.txt"),
    ("git checkout -q other~1; echo x > late.txt", "late.txt"),
    ("git reset -q --hard other; echo x > late.txt; git add -A; git commit -q -m mine", "late.txt"),
    ("git switch -q other; echo x > late.txt; git add -A; git commit -q -m mine", "late.txt"),
];

#[test]
fn a_switch_to_another_branch_fails_the_attempt_and_deletes_nothing() {
    for ((switch, left), jobs) in pairs(&SWITCHES, &[&[][..], &["--jobs", "2"]]) {
        let script = format!(
            "case $ARBORIST_TASK in T001) echo x > T001.txt ;; *) {switch}; [ ! -e T001.txt ] ;; esac"
        );
        let Some(repo) = repo(&script) else { return };
        repo.write("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n");
        repo.git(["commit", "-aqm", "one after the other"]).succeeds();
        repo.git(["branch", "other"]).succeeds();
        let ended = run(&repo, jobs).exits(1);
        ended.err("the agent switched to another branch or to an older commit");
        assert_eq!(repo.git(["show", "main:T001.txt"]).answer(), "x", "{switch} {jobs:?}");
        assert_ne!(repo.git(["cat-file", "-e", &format!("main:{left}")]).code(), 0, "{switch} {jobs:?}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{switch} {jobs:?}");
        assert_eq!(repo.git(["symbolic-ref", "HEAD"]).answer(), "refs/heads/main");
        let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/"]).answer();
        let has_file = |name: &str| repo.git(["cat-file", "-e", &format!("{name}:{left}")]).code() == 0;
        assert!(saved.lines().any(has_file), "{switch} {jobs:?}: {saved}");
    }
}

/// What the second task does after a commit on an old branch, so that HEAD cannot be read or says something unusual.
const UNREADABLE_HEADS: [&str; 8] = [
    "rm .git/HEAD",
    "rm .git/refs/heads/old",
    "git symbolic-ref refs/heads/a refs/heads/old; git symbolic-ref HEAD refs/heads/a",
    "rm .git/HEAD; ln -s refs/heads/old .git/HEAD",
    "printf 'ref:refs/heads/old   \\n\\n' > .git/HEAD",
    "git pack-refs --all; mkdir -p .git/refs/heads; rm -f .git/refs/heads/main; ln -s nothing .git/refs/heads/main; echo 'ref: refs/heads/main' > .git/HEAD",
    "echo \"ref: refs/heads/.invalid\" > .git/HEAD",
    "echo 1234567890123456789012345678901234567890 > .git/HEAD",
];

#[test]
fn a_private_head_that_cannot_be_read_fails_the_attempt_and_deletes_nothing() {
    for head in UNREADABLE_HEADS {
        let script = format!(
            "case $ARBORIST_TASK in T001) echo x > T001.txt; exit ;; esac
             git checkout -q -b old other; [ ! -e T001.txt ] || exit 1
             echo x > late.txt; git add -A; git commit -q -m mine; {head}; true"
        );
        let Some(repo) = repo(&script) else { return };
        repo.write("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n");
        repo.git(["commit", "-aqm", "one after the other"]).succeeds();
        repo.git(["branch", "other"]).succeeds();
        run(&repo, &[]).exits(1).err("the agent left a private git directory in which HEAD cannot be read");
        assert_eq!(repo.git(["show", "main:T001.txt"]).answer(), "x", "{head}");
        assert_ne!(repo.git(["cat-file", "-e", "main:late.txt"]).code(), 0, "{head}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{head}");
        let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/"]).answer();
        let has_file = |name: &str| repo.git(["cat-file", "-e", &format!("{name}:late.txt")]).code() == 0;
        assert!(saved.lines().any(has_file), "{head}: {saved}");
    }
}

#[test]
fn after_a_crash_the_files_of_an_older_commit_are_not_committed() {
    let script = "[ $ARBORIST_TASK != T001 ] || { echo x > T001.txt; exit; }
        [ ! -e \"$ROOT/kill\" ] || { git checkout -q other; echo half > half.txt; sleep 60; }
        echo x > T002.txt";
    let Some(repo) = repo(script) else { return };
    repo.write("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n");
    repo.git(["commit", "-aqm", "one after the other"]).succeeds();
    repo.git(["branch", "other"]).succeeds();
    std::fs::write(repo.root().join("kill"), "").unwrap();
    let mut command = repo.command("git-arborist", &repo.path(""));
    command.args(["gardener", "--sandbox", "auto", "--max-retries", "1"]);
    let mut driver = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !repo.path("half.txt").exists() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    driver.kill().unwrap();
    driver.wait().unwrap();
    assert!(!repo.path("T001.txt").exists());
    std::fs::remove_file(repo.root().join("kill")).unwrap();
    run(&repo, &[]).succeeds().err("its files may belong to an older commit that the agent had checked out");
    assert_eq!(repo.git(["log", "--diff-filter=D", "--name-only", "--format=", "main"]).answer(), "");
    assert_eq!(repo.git(["show", "main:T001.txt"]).answer(), "x");
    assert_eq!(repo.git(["show", "main:T002.txt"]).answer(), "x");
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/"]).answer();
    let has_file = |name: &str| repo.git(["cat-file", "-e", &format!("{name}:half.txt")]).code() == 0;
    assert!(saved.lines().any(has_file), "{saved}");
}

#[test]
fn an_agent_may_pack_and_collect_in_its_private_git_directory() {
    let script = format!("{COMMIT}\ngit branch b; git switch -q -c c; git pack-refs --all; git gc -q");
    let Some(repo) = repo(&script) else { return };
    run(&repo, &[]).succeeds().err("became part of the task's commit");
    assert_eq!(repo.git(["show", "main:T001.txt"]).answer(), "x\ny");
}

#[test]
fn only_the_first_saved_refs_are_named() {
    let script = "echo x > \"$ARBORIST_TASK.txt\"; for n in 1 2 3 4 5; do git switch -q -c b$n main; git commit -q --allow-empty -m $n; done; git switch -q main";
    let Some(repo) = repo(script) else { return };
    run(&repo, &["--only", "T001"]).succeeds().err(" and 2 more");
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/"]).answer();
    assert_eq!(saved.lines().count(), 5, "{saved}");
}

/// Switches to another branch in its first turn, and back when the test has seen that the turn is over.
const VISITOR: &str = r#"
if [ $ARBORIST_TASK = T001 ]; then echo x > T001.txt; opens; ends done; exit; fi
opens; calls 1 'Look at the other branch'; git checkout -q other; [ ! -e T001.txt ] || exit 1
printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1"}]}}\n'
tries=0; while [ ! -e "$ROOT/go" ] && [ $tries -lt 3000 ]; do sleep 0.02; tries=$((tries+1)); done
git checkout -q main; [ -e T001.txt ] || exit 1
echo x > T002.txt; ends done
"#;

#[test]
fn no_turn_commits_the_files_of_another_branch() {
    if !ConfinementBackend::Bwrap.works() {
        println!("skipped: bwrap does not work here");
        return;
    }
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n", "");
    turn_scripts::agent(&repo, "claude", VISITOR);
    repo.git(["config", "arborist.sandbox.git", "private"]).succeeds();
    repo.git(["branch", "other"]).succeeds();
    let mut command = repo.command("git", &repo.path(""));
    command.args(["arborist", "gardener", "--sandbox", "auto", "--max-retries", "1"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let has_turn = || {
        let notes = repo.git(["log", "--format=%s", "--glob=refs/arborist/sessions", "--"]).stdout();
        notes.lines().any(|subject| subject.contains("T002") && subject.contains(": turn "))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while !has_turn() && Instant::now() < deadline && run.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(has_turn());
    std::fs::write(repo.root().join("go"), "").unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(repo.git(["log", "--diff-filter=D", "--name-only", "--format=", "main"]).answer(), "");
    assert_eq!(repo.git(["show", "main:T002.txt"]).answer(), "x");
}

/// Each of these is done in the private directory after a commit. None of it may have an effect outside.
/// With the second value `false`, HEAD cannot be read afterwards.
const HOSTILE: [(&str, bool); 9] = [
    // Programs that git would run.
    (
        "mkdir -p \"$dir/hooks\"; for hook in post-checkout reference-transaction pre-commit post-index-change; do printf '#!/bin/sh\\ntouch \"%s/ran\"\\n' \"$ROOT\" > \"$dir/hooks/$hook\"; chmod +x \"$dir/hooks/$hook\"; done",
        true,
    ),
    (
        "git config core.fsmonitor \"touch '$ROOT/ran'\"; git config uploadpack.packObjectsHook \"touch '$ROOT/ran'\"; git config core.alternateRefsCommand \"touch '$ROOT/ran'\"",
        true,
    ),
    // Other folders and files.
    (
        "echo \"$ROOT/other/.git/objects\" > \"$dir/objects/info/alternates\"; git rev-parse -q --verify \"$secret\" > /dev/null && git update-ref HEAD \"$secret\"",
        true,
    ),
    (
        "echo \"$secret\" > \"$dir/refs/heads/stolen\"; echo \"ref: refs/heads/stolen\" > \"$dir/HEAD\"; echo \"$ROOT/other/.git/objects\" > \"$dir/objects/info/alternates\"",
        false,
    ),
    (
        "mv \"$dir/objects\" \"$dir/objects.1\"; ln -s \"$ROOT/other/.git/objects\" \"$dir/objects\"; echo \"$secret\" > \"$dir/HEAD\"",
        false,
    ),
    (
        "rm \"$dir/HEAD\"; ln -s \"$ROOT/other/.git/refs/heads/main\" \"$dir/HEAD\"; ln -s \"$ROOT/other/.git/objects/pack\" \"$dir/objects/more\"",
        false,
    ),
    ("mkfifo \"$dir/refs/heads/pipe\" \"$dir/objects/pipe\"", true),
    // Content that does not belong to its id, and damage.
    (
        "file=$(git rev-parse HEAD | sed 's,..,&/,'); chmod u+w \"$dir/objects/$file\"; echo broken > \"$dir/objects/$file\"",
        false,
    ),
    ("rm -rf \"$dir\"/* 2>/dev/null; echo ref: ../../HEAD > \"$dir/HEAD\"", false),
];

#[test]
fn a_manipulated_private_git_directory_harms_nothing() {
    for ((deed, is_readable), jobs) in pairs(&HOSTILE, &[&[][..], &["--jobs", "2"]]) {
        let Some(repo) = repo("") else { return };
        let other = repo.root().join("other");
        repo.git(["init", "-q", "-b", "main", &other.display().to_string()]).succeeds();
        let git = |args: &[&str]| {
            let mut command = repo.command("git", &other);
            Run::of(command.args(args), b"").answer()
        };
        git(&["commit", "-q", "--allow-empty", "-m", "a secret"]);
        let secret = git(&["rev-parse", "HEAD"]);
        repo.agent(&agent(&format!(
            "echo x > \"$ARBORIST_TASK.txt\"; git add -A; git commit -q -m mine\ndir=$(git rev-parse --git-dir); secret={secret}\n{{ {deed}; }} 2>/dev/null; true"
        )));
        let before = own_refs(&repo);
        let ended = run(&repo, jobs);
        assert_eq!(ended.code(), i32::from(!is_readable), "{deed}: {}", ended.report());
        assert!(!repo.root().join("ran").exists(), "{deed}");
        assert_eq!(own_refs(&repo), before, "{deed}");
        assert_ne!(repo.git(["cat-file", "-e", &secret]).code(), 0, "{deed}");
        let has_file = repo.git(["cat-file", "-e", "main:T001.txt"]).code() == 0;
        assert_eq!(has_file, is_readable, "{deed}");
        repo.git(["status"]).succeeds();
        repo.git(["fsck", "--strict"]).succeeds();
    }
}

#[test]
fn commits_in_the_private_git_directory_that_are_too_large_are_not_saved() {
    let script = "echo x > \"$ARBORIST_TASK.txt\"; git add -A; git commit -q -m large; dir=$(git rev-parse --git-dir)\n\
                  mkdir -p \"$dir/objects/aa\"; truncate -s 300M \"$dir/objects/aa/$(printf %038d 0)\"";
    let Some(repo) = repo(script) else { return };
    run(&repo, &["--only", "T001"])
        .succeeds()
        .err("cannot be read, and are not kept: sandbox.git: they are too large");
    assert_eq!(repo.git(["for-each-ref", "refs/arborist/saved/"]).answer(), "");
}

#[test]
fn tests_and_reviewers_get_no_private_git_directory() {
    let Some(repo) = repo("") else { return };
    repo.agent("case \"$prompt\" in Review*) git commit -q --allow-empty -m x 2>/dev/null || echo APPROVED ;; *) echo x > \"$ARBORIST_TASK.txt\" ;; esac\n");
    run(&repo, &["--test-command", "! git commit -q --allow-empty -m x"]).succeeds();
}

#[test]
fn only_bwrap_can_provide_a_private_git_directory() {
    let Some(repo) = repo("echo x > \"$ARBORIST_TASK.txt\"") else { return };
    let args = ["gardener", "--sandbox", "landlock"];
    repo.arborist(args).exits(128).err("sandbox.git is private, which needs bubblewrap (bwrap)");
    assert_eq!(repo.calls(), 0);
    repo.git(["config", "--unset", "arborist.sandbox.git"]).succeeds();
    repo.git(["config", "arborist.runners.robot.sandbox.git", "private"]).succeeds();
    repo.arborist(args).exits(128).err("runners.robot.sandbox.git is private, which");
    // Without a sandbox, the agent would commit to the repository itself.
    repo.arborist(["gardener", "--sandbox", "off"])
        .exits(128)
        .err("runners.robot.sandbox.git is private, which");
}
