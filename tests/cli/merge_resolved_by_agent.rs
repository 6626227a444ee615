//! Conflicts of `git arborist merge` that are resolved: by an agent, or by doing the task anew; never landed untested.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    process::{Command, Stdio},
};

use arborist_testkit::TestRepo;

use crate::queue_repo::{QueueRepo, conflicting_tasks, content};

#[test]
fn an_agent_resolves_a_conflict_with_both_tasks_in_its_prompt() {
    let repo = content();
    repo.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    repo.merge(&["T2"])
        .succeeds()
        .out("1 landed (T2)")
        .err("an agent is resolving the conflict of T2 (attempt 1)");
    assert_eq!(repo.show("main", "a.txt"), "ours\ntheirs");
    let prompt = repo.prompt(0);
    for part in [
        "Resolve the merge conflict of task T2: T2 does it",
        "Task T1",
        "content in a.txt",
        "--- a.txt as both found it ---\none\n",
        "--- a.txt on main ---\nours\n",
        "--- a.txt of the task ---\ntheirs\n",
    ] {
        assert!(prompt.contains(part), "{part} in {prompt}");
    }
    let parents = repo.git(["rev-parse", "main^2"]).answer();
    assert_eq!(parents, repo.git(["rev-parse", "arborist/task/main/T2"]).answer(), "one merge for the task");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
    assert_eq!(repo.git(["worktree", "list", "--porcelain"]).answer().matches("worktree ").count(), 1);
}

#[test]
fn every_report_of_a_landing_names_the_agent_that_resolved_its_conflict() {
    let repo = content();
    repo.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    let whose = "its conflict was resolved by the agent robot";
    repo.merge(&["T2"]).succeeds().err(whose);
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Resolved-By: agent robot"), "{trailers}");
    assert!(trailers.contains("Arborist-Runtime: "), "{trailers}");
    repo.arborist(["trailers", "check", "main"]).succeeds();
    repo.merge(&["log"]).succeeds().out(whose);
    repo.merge(&["status", "T2"]).succeeds().out(whose);

    let repo = content();
    repo.write("a.txt", "mine\n");
    repo.agent("echo both > a.txt");
    repo.merge(&["T2"]).exits(2).out("1 parked (T2)").err(whose);
    repo.merge(&["list"]).succeeds().out(whose);
    let queue = repo.merge(&["list", "--json"]).answer();
    assert!(queue.contains("\"resolved_by\": \"agent robot\""), "{queue}");
}

#[test]
fn a_resolution_by_an_agent_must_pass_the_gates() {
    let repo = content();
    repo.git(["config", "arborist.merge.gates.check.command", "grep -q both a.txt || grep -q ours$ a.txt"])
        .succeeds();
    repo.agent("if test -e \"$ROOT/again\"; then echo both > a.txt; else touch \"$ROOT/again\"; echo neither > a.txt; fi");
    repo.merge(&["T2"]).succeeds().out("1 landed (T2)").err("(attempt 2)");
    assert_eq!(repo.show("main", "a.txt"), "both");
    assert!(
        repo.prompt(2).contains("Earlier tries failed:\n- the gate 'check' failed"),
        "{}",
        repo.prompt(2)
    );
}

#[test]
fn an_agent_cannot_resolve_a_conflict_by_dropping_tests() {
    let write = |text: &'static str| move |repo: &QueueRepo| repo.write("a.txt", text);
    let repo = conflicting_tasks(write("one\n"), write("ours\ntwo\nthree\n"), write("theirs\n"));
    let gate = "echo \"== $(wc -l < a.txt) passed in 0.1s ==\"";
    repo.git(["config", "arborist.merge.gates.check.command", gate]).succeeds();
    repo.agent("echo both > a.txt");
    repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
    repo.merge(&["status", "T2"]).exits(2).out("ran 1 test (3 before)");
    assert_eq!(repo.show("main", "a.txt"), "ours\ntwo\nthree");
    repo.merge(&["retry", "T2"]).succeeds();
    repo.merge(&["run", "--allow", "fewer-tests"]).succeeds().out("1 landed (T2)");
}

#[test]
fn an_agent_cannot_resolve_a_conflict_in_a_protected_file() {
    let repo = content();
    repo.git(["config", "arborist.protect", "a.txt"]).succeeds();
    repo.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
    repo.merge(&["status", "T2"]).exits(2).out("protected files were changed: a.txt");
    assert_eq!(repo.show("main", "a.txt"), "ours");
}

#[test]
fn a_resolution_with_conflict_markers_fails_and_the_agent_gets_two_attempts() {
    let repo = content();
    repo.agent("echo more >> a.txt");
    repo.merge(&["T2"])
        .exits(2)
        .out("1 in conflict (T2)")
        .err("(attempt 2)")
        .err("resolve it:    git arborist merge resolve T2");
    assert_eq!(repo.calls(), 2);
    repo.merge(&["status", "T2"]).exits(2).out("attempt 2: conflict markers are left in a.txt");
    repo.merge(&["run"]).exits(2);
    assert_eq!(repo.calls(), 2, "it is escalated once, and tries are counted in git");
    repo.git(["config", "arborist.merge.resolve-attempts", "1"]).succeeds();
    repo.merge(&["retry", "T2"]).succeeds();
    repo.merge(&["run"]).exits(2);
    assert_eq!(repo.calls(), 3);
}

#[test]
fn an_agent_that_does_nothing_or_fails_resolves_no_conflict() {
    for (script, why) in [("true", "nothing was changed"), ("exit 3", "robot failed")] {
        let repo = content();
        repo.agent(script);
        repo.merge(&["T2"]).exits(2);
        repo.merge(&["status", "T2"]).exits(2).out(why);
    }
}

#[test]
fn on_conflict_reimplement_withdraws_the_task_and_saves_its_work() {
    let repo = content();
    repo.git(["config", "arborist.merge.on-conflict", "reimplement"]).succeeds();
    let tip = repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
    repo.merge(&["T2"])
        .exits(1)
        .out("1 withdrawn (T2)")
        .err("conflicts with tasks that landed meanwhile, and will be done again on top of them");
    let saved = repo.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
    assert_eq!(saved, tip);
    assert_eq!(repo.git(["for-each-ref", "refs/heads/arborist/task/main/T2"]).answer(), "");
    repo.merge(&["list"]).succeeds().silent();
    repo.git(["config", "arborist.merge.on-conflict", "argue"]).succeeds();
    repo.merge(&["run"]).exits(1).err("must be resolve or reimplement");
}

#[test]
fn conflict_markers_of_any_length_and_in_files_of_any_name_are_found() {
    let odd = OsStr::from_bytes(b"odd\xff.txt");
    let write = |repo: &QueueRepo, text: &str| {
        repo.write("a.txt", text);
        fs::write(repo.path("").join(odd), text).unwrap();
    };
    let repo = conflicting_tasks(
        |repo| {
            repo.write(".gitattributes", "a.txt conflict-marker-size=32\n");
            write(repo, "one\n");
        },
        |repo| write(repo, "ours\n"),
        |repo| write(repo, "theirs\n"),
    );
    repo.git(["config", "arborist.merge.resolve-attempts", "1"]).succeeds();
    for (script, left) in
        [("echo more >> a.txt; echo both > odd*", "a.txt"), ("echo both > a.txt; echo x >> odd*", "odd")]
    {
        repo.agent(script);
        repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
        repo.merge(&["status", "T2"])
            .exits(2)
            .out(&format!("attempt 1: conflict markers are left in {left}"));
        repo.merge(&["drop", "T2"]).succeeds();
    }
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2);
    let place = PathBuf::from(repo.merge(&["resolve", "T2"]).answer());
    repo.git_in(&place, ["add", "-A"]).succeeds();
    repo.merge(&["resolve", "T2"]).exits(1).err("not resolved yet: a.txt, odd");
}

#[test]
fn an_agent_must_resolve_every_conflicting_file() {
    let repo = conflicting_tasks(
        |repo| {
            repo.write("a.txt", "one\n");
            repo.write("b.bin", b"\0base");
        },
        |repo| {
            repo.write("a.txt", "ours\n");
            repo.write("b.bin", b"\0ours");
        },
        |repo| {
            repo.write("a.txt", "theirs\n");
            repo.write("b.bin", b"\0theirs");
        },
    );
    repo.agent("echo both > a.txt");
    repo.merge(&["T2"]).exits(2);
    repo.merge(&["status", "T2"]).exits(2).out("attempt 1: b.bin is still unresolved");
}

#[test]
fn a_resolving_agent_cannot_change_refs_settings_or_hooks() {
    let table = [
        ("git branch mine", "refs/heads/mine was moved while an agent or a command ran"),
        ("git branch -D spare", "refs/heads/spare was moved while an agent or a command ran"),
        (
            "git update-ref refs/arborist/landing/main HEAD",
            "refs/arborist/landing/main was moved while an agent or a command ran",
        ),
        (
            "git update-ref refs/heads/arborist/task/main/T2 main",
            "arborist/task/main/T2 was moved while an agent or a command ran",
        ),
        ("git config alias.x '!evil'", "config was changed while an agent or a command ran"),
        (
            "h=$(git rev-parse --git-common-dir)/hooks; mkdir -p \"$h\"; echo evil > \"$h/post-merge\"",
            "the hook post-merge was added while an agent or a command ran",
        ),
    ];
    for (trespass, said) in table {
        let repo = content();
        repo.git(["branch", "spare"]).succeeds();
        repo.git(["config", "arborist.merge.resolve-attempts", "1"]).succeeds();
        repo.agent(&format!("{trespass}; echo both > a.txt"));
        let state = || {
            let refs = repo.git(["for-each-ref", "refs/heads", "refs/arborist/landing"]).answer();
            (refs, repo.git(["config", "--local", "--list"]).answer())
        };
        let before = state();
        repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
        repo.merge(&["status", "T2"]).exits(2).out(said);
        assert_eq!(state(), before, "{trespass}");
        assert!(!repo.path(".git/hooks/post-merge").exists());
    }
}

#[test]
fn commits_of_a_resolving_agent_are_folded_and_saved() {
    let repo = content();
    repo.agent("echo both > a.txt; git commit -qam mine");
    repo.merge(&["T2"]).succeeds().out("1 landed (T2)");
    assert_eq!(repo.show("main", "a.txt"), "both");
    let saved = repo.git(["for-each-ref", "--format=%(subject)", "refs/arborist/saved/main/T2"]).answer();
    assert_eq!(saved, "mine");
    assert!(!repo.git(["log", "--format=%s", "main"]).answer().contains("mine"));
}

#[test]
fn a_resolving_agent_gets_the_current_target_and_the_task_id() {
    let repo = content();
    repo.git(["config", "arborist.merge.assist", "false"]).succeeds();
    repo.merge(&["T2"]).exits(2);
    repo.git(["branch", "arborist/task/main/T3"]).succeeds();
    repo.on_branch("T3", |repo| {
        repo.write("a.txt", "ours, later\n");
        repo.finish("T3");
    });
    repo.merge(&["T3"]).succeeds();
    repo.git(["config", "arborist.merge.assist", "true"]).succeeds();
    repo.agent("echo \"$ARBORIST_TASK in $(basename \"$ARBORIST_WORKTREE\")\" > a.txt");
    let stale = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/queue/tickets"]).answer();
    let body = repo.git(["log", "-1", "--format=%b", &stale]).answer();
    let waiting = body.replace("\"escalated\":true", "\"escalated\":false");
    let tree = repo.git(["rev-parse", &format!("{stale}^{{tree}}")]).answer();
    let parent = repo.git(["rev-parse", &stale]).answer();
    let ticket = repo.commit_object(&tree, &[parent], format!("queue: T2 is conflict\n\n{waiting}\n"));
    repo.git(["update-ref", &stale, &ticket]).succeeds();
    repo.merge(&["run"]).succeeds().out("1 landed (T2)");
    assert_eq!(repo.calls(), 2, "one resolves, one reviews");
    assert!(repo.prompt(0).contains("--- a.txt on main ---\nours, later\n"), "{}", repo.prompt(0));
    assert_eq!(repo.show("main", "a.txt"), "T2 in agent-T2");
}

#[test]
fn without_gates_a_resolution_has_to_pass_the_tests_of_its_task() {
    let repo = content();
    repo.git(["config", "arborist.test-command", "grep -q good a.txt"]).succeeds();
    repo.agent(
        "if test -e \"$ROOT/again\"; then echo good > a.txt; else touch \"$ROOT/again\"; echo bad > a.txt; fi",
    );
    repo.merge(&["T2"]).succeeds().out("1 landed (T2)").err("(attempt 2)");
    assert_eq!(repo.show("main", "a.txt"), "good");
    assert!(repo.prompt(2).contains("- the gate 'test' failed"), "{}", repo.prompt(2));
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Gate: test\n"), "{trailers}");

    let repo = content();
    repo.git(["config", "arborist.test-command", "grep -q good a.txt"]).succeeds();
    repo.agent("echo bad > a.txt");
    repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
    assert_eq!(repo.show("main", "a.txt"), "ours", "that the target fails it too is no excuse");
}

#[test]
fn a_signal_stops_the_resolving_agent_and_uses_up_no_attempt() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let repo = content();
        repo.agent("test -e \"$ROOT/well\" || { touch \"$ROOT/there\"; sleep 60; }; echo both > a.txt");
        let mut command = repo.command("git-arborist-merge", &repo.path(""));
        let quiet = command.args(["T2", "--scope", "main"]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = quiet.stderr(Stdio::piped()).spawn().unwrap();
        while !repo.root().join("there").exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(code), "{said}");
        assert!(said.contains("stopped"), "{said}");
        let queue = repo.merge(&["list", "--json"]).answer();
        assert!(queue.contains("\"tries\": []"), "{queue}");
        fs::write(repo.root().join("well"), "").unwrap();
        repo.merge(&["run"]).succeeds().out("1 landed (T2)").err("(attempt 1)");
    }
}

#[test]
fn a_resolution_lands_only_after_its_review() {
    let repo = content();
    // The first is rejected, and what the reviewer said is told to the next.
    TestRepo::agent(&repo,
        "case \"$prompt\" in
  Review*) if grep -q evil a.txt; then echo 'REJECTED: it calls evil'; else echo APPROVED; fi ;;
  *) if test -e \"$ROOT/again\"; then echo both > a.txt; else touch \"$ROOT/again\"; echo 'evil()' > a.txt; fi ;;
esac",
    );
    repo.merge(&["T2"]).succeeds().out("1 landed (T2)").err("(attempt 2)");
    assert_eq!(repo.show("main", "a.txt"), "both");
    let review = repo.prompt(1);
    assert!(
        review.contains("+evil()") && review.contains("-<<<<<<<") && !review.contains("+both"),
        "{review}"
    );
    assert!(repo.prompt(2).contains("REJECTED: it calls evil"), "{}", repo.prompt(2));

    let repo = content();
    TestRepo::agent(&repo, "echo 'evil()' > a.txt; echo REJECTED: always");
    repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
    assert_eq!(repo.show("main", "a.txt"), "ours");
}

#[test]
fn a_repository_in_place_of_a_conflicting_file_is_not_a_resolution() {
    let commit = "git -C a.txt -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";
    for more in ["true", commit] {
        let repo = content();
        repo.agent(&format!("rm a.txt; git init -q a.txt; {more}"));
        repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
        let why = "it left a repository or a folder that git cannot add: a.txt";
        repo.merge(&["status", "T2"]).exits(2).out(why);
        assert_eq!(repo.show("main", "a.txt"), "ours", "{more}");
    }
}

#[test]
fn a_resolution_by_an_agent_may_change_only_conflicting_files() {
    for more in [
        "echo x > evil.txt",
        "echo x >> kept.txt",
        "rm kept.txt",
        "chmod +x kept.txt",
        "mkdir d; echo x > d/a.txt",
    ] {
        let repo = content();
        repo.agent(&format!("echo both > a.txt; {more}"));
        repo.merge(&["T2"]).exits(2).out("1 in conflict (T2)");
        repo.merge(&["status", "T2"]).exits(2).out("which had no conflict");
        assert_eq!(repo.show("main", "a.txt"), "ours", "{more}");
    }
}
