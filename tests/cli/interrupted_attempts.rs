//! An attempt that is interrupted is recorded, does not count, and begins again under the same number.

use arborist_testkit::{TaskCommit, TestRepo};

const PLAN: &str = r#"{"nodes": {
  "T1": {"id": "T1", "name": "a"}, "T2": {"id": "T2", "name": "b"}}, "root_ids": ["T1", "T2"]}"#;

/// Kills the driver while `$ROOT/$1` is there. The driver is the parent of the agent.
const KILL: &str = r#"
strike() { [ ! -e "$ROOT/$1" ] || { kill -9 "$PPID"; sleep 60; }; }
"#;

fn repo(implement: &str, review: &str) -> TestRepo {
    let script = format!("{KILL}case \"$prompt\" in \"Review\"*) {review} ;; *) {implement} ;; esac");
    TestRepo::planned("task-tree.json", PLAN, &script)
}

fn state(repo: &TestRepo, task: &str) -> serde_json::Value {
    let document: serde_json::Value =
        serde_json::from_str(&repo.arborist(["state", "--json", task]).answer()).unwrap();
    document["tasks"][0].clone()
}

/// Status, attempt and reason of a task's commits, oldest first.
fn recorded(repo: &TestRepo, task: &str) -> Vec<(String, String, String)> {
    let format = "--format=%s%x00%(trailers:key=Arborist-Retry,valueonly,separator=)%x00%(trailers:key=Arborist-Interrupted,valueonly,separator=)";
    let log = repo.git(["log", "--reverse", format]).answer();
    let mark = format!("task(main@{task}@");
    let parts = log.lines().filter_map(|line| {
        let mut parts = line.split('\0');
        let status = parts.next()?.strip_prefix(&mark)?.split_once(')')?.0.to_owned();
        Some((status, parts.next()?.to_owned(), parts.next()?.to_owned()))
    });
    parts.collect()
}

fn statuses(repo: &TestRepo, task: &str) -> Vec<String> {
    recorded(repo, task).into_iter().map(|(status, ..)| status).collect()
}

#[test]
fn a_killed_driver_does_not_use_up_the_last_attempt() {
    let repo = repo("date +%N > t1.txt; strike kill", "echo APPROVED");
    let trigger = repo.root().join("kill");
    std::fs::write(&trigger, "").unwrap();
    let run = repo.arborist(["garden", "--max-retries", "1"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    std::fs::remove_file(&trigger).unwrap();
    repo.arborist(["garden", "--max-retries", "1"]).succeeds();
    let recorded = recorded(&repo, "T1");
    assert_eq!((recorded[0].0.as_str(), recorded[0].1.as_str()), ("implement-fail", "0"));
    assert!(!recorded[0].2.is_empty(), "the reason is recorded: {recorded:?}");
    assert_eq!(recorded.last().map(|(status, ..)| status.as_str()), Some("complete"));
    assert_eq!(state(&repo, "T1")["attempt"], 0);
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
}

#[test]
fn after_three_interruptions_in_a_row_only_retry_failed_continues_a_task() {
    let repo = repo("strike kill; date +%N > t.txt; echo done", "echo APPROVED");
    let trigger = repo.root().join("kill");
    std::fs::write(&trigger, "").unwrap();
    for _ in 0..3 {
        assert_ne!(repo.arborist(["garden"]).code(), 2);
    }
    assert_eq!(repo.calls(), 3);
    std::fs::remove_file(&trigger).unwrap();
    for _ in 0..2 {
        repo.arborist(["garden"]).exits(2).matches_snapshot();
        repo.arborist(["gardener"]).exits(2).matches_snapshot();
    }
    assert_eq!(repo.calls(), 3, "nobody is called");
    let task = state(&repo, "T1");
    assert_eq!((&task["interruptions"], &task["attempt"]), (&3.into(), &0.into()), "{task}");
    assert!(task["interrupted"].is_string(), "{task}");
    let shown =
        repo.arborist(["state", "T1"]).succeeds().out("paused; attempt 1 was interrupted while implementing");
    shown.out("git arborist garden T1 --retry-failed");
    repo.arborist(["gardener", "--retry-failed"]).succeeds();
    let task = state(&repo, "T1");
    assert_eq!((&task["state"], &task["attempt"]), (&"complete".into(), &0.into()), "{task}");
    assert_eq!(task["interruptions"], 0);
    assert!(!statuses(&repo, "T1").contains(&"reset".to_owned()), "the same attempt continues");
}

#[test]
fn a_kill_during_the_tests_or_the_review_repeats_only_that_step_and_is_recorded() {
    let repo = repo("echo x > x.txt; echo done", "strike kill; echo APPROVED");
    let trigger = repo.root().join("kill");
    std::fs::write(&trigger, "").unwrap();
    assert_ne!(repo.arborist(["garden"]).code(), 0);
    std::fs::remove_file(&trigger).unwrap();
    repo.arborist(["garden"]).succeeds();
    let expected = ["implement-pass", "test-pass", "implement-fail", "review-approved", "complete"];
    assert_eq!(statuses(&repo, "T1"), expected);
    assert_eq!(repo.calls(), 3, "the work is not done again");

    // The baseline of the new command is left alone.
    let test = format!("[ ! -e '{}' ] || [ -z \"$ARBORIST_TASK\" ] || kill -9 $PPID", trigger.display());
    std::fs::write(&trigger, "").unwrap();
    for _ in 0..3 {
        assert_ne!(repo.arborist(["garden", "T2", "--test-command", &test]).code(), 2);
    }
    repo.arborist(["garden", "T2", "--test-command", &test]).exits(2);
    std::fs::remove_file(&trigger).unwrap();
    repo.arborist(["garden", "T2", "--test-command", &test, "--retry-failed"]).succeeds();
    let recorded = recorded(&repo, "T2");
    assert!(recorded.iter().all(|(_, attempt, _)| attempt.is_empty() || attempt == "0"), "{recorded:?}");
}

#[test]
fn unfinished_turns_from_a_lost_machine_do_not_use_up_an_attempt() {
    let repo = repo("echo x > x.txt; echo done", "echo APPROVED");
    repo.run_start("main", "s1");
    let turn = TaskCommit::new("T1", "turn")
        .trailer("Step", "implement")
        .trailer("Model", "m")
        .trailer("Provider", "p");
    let turn = turn.trailer("Node", "T1").trailer("Pipeline", "p").trailer("Session", "s1");
    repo.write("half.txt", "half\n");
    repo.commit(turn.trailer("Turn", "1").to_string());
    assert_eq!(state(&repo, "T1")["state"], "implementing");
    repo.arborist(["garden", "-m", "unused", "--dry-run"]).succeeds();
    repo.arborist(["garden", "T1", "--max-retries", "1", "--tree", "task-tree.json"]).succeeds();
    let recorded = recorded(&repo, "T1");
    assert_eq!(recorded[1].0, "implement-fail", "{recorded:?}");
    assert!(!recorded[1].2.is_empty(), "{recorded:?}");
    assert_eq!(state(&repo, "T1")["attempt"], 0);
}

#[test]
fn an_agent_that_is_ended_by_a_time_limit_uses_up_an_attempt() {
    let repo = repo("sleep 60", "echo APPROVED");
    let silence = ["-c", "arborist.timeouts.silence=1", "arborist", "garden", "--max-retries", "2"];
    repo.git(silence).exits(1);
    let recorded = recorded(&repo, "T1");
    let shape: Vec<_> =
        recorded.iter().map(|(status, attempt, why)| (&status[..], &attempt[..], &why[..])).collect();
    assert_eq!(shape, [("implement-fail", "0", ""), ("implement-fail", "1", ""), ("failed", "", "")]);
}

#[test]
fn an_interruption_is_not_given_as_feedback_to_the_next_call() {
    let repo = repo("echo x > x.txt; strike kill; echo done", "echo APPROVED");
    let trigger = repo.root().join("kill");
    std::fs::write(&trigger, "").unwrap();
    assert_ne!(repo.arborist(["garden"]).code(), 0);
    std::fs::remove_file(&trigger).unwrap();
    repo.arborist(["garden"]).succeeds();
    assert!(!repo.prompt(1).contains("Previous attempt (failed)"), "{}", repo.prompt(1));
}

#[test]
fn the_interrupted_trailer_is_valid_only_on_a_failed_implement_step() {
    let repo = TestRepo::init();
    let sound = TaskCommit::new("T1", "implement-fail").trailer("Interrupted", "power loss");
    repo.commit(sound.to_string());
    repo.arborist(["trailers", "check", "HEAD"]).succeeds();
    for status in ["implement-pass", "test-fail", "review-rejected", "failed"] {
        let forged = TaskCommit::new("T1", status).trailer("Interrupted", "power loss");
        repo.commit(forged.to_string());
        repo.arborist(["trailers", "check", "HEAD"]).exits(1);
    }
    assert_eq!(state(&repo, "T1")["state"], "implementing", "what is not sound does not count");
}

#[test]
fn the_hint_after_the_third_signal_continues_the_task() {
    for place in [&[][..], &["--isolate"], &["--session-branch"]] {
        let repo = repo(
            "[ ! -e \"$ROOT/stop\" ] || { kill -TERM $PPID; sleep 60; }; date +%N > t.txt",
            "echo APPROVED",
        );
        let trigger = repo.root().join("stop");
        std::fs::write(&trigger, "").unwrap();
        let run = |more: &[&str]| repo.arborist([&["gardener", "--only", "T1"], place, more].concat());
        for _ in 0..2 {
            run(&[])
                .exits(143)
                .err("hint: run ")
                .never("hint: run the same command again with --retry-failed");
        }
        let hint = match place.contains(&"--session-branch") {
            false => "hint: run the same command again with --retry-failed to continue",
            true => "-- --retry-failed' to continue",
        };
        run(&[]).exits(143).err(hint);
        let said = run(&["--retry-failed"]).exits(143);
        said.err("hint: run ").never("hint: run the same command again with --retry-failed");
        std::fs::remove_file(&trigger).unwrap();
        run(&[]).exits(2);
        run(&["--retry-failed"]).succeeds();
    }
}

#[test]
fn changes_made_before_an_interruption_count_as_changes_of_the_task() {
    for place in [&[][..], &["--isolate"]] {
        let repo = repo("echo same > t.txt; strike kill", "echo APPROVED");
        let trigger = repo.root().join("kill");
        std::fs::write(&trigger, "").unwrap();
        let run = || repo.arborist([&["gardener", "--only", "T1"], place].concat());
        assert_ne!(run().code(), 0);
        std::fs::remove_file(&trigger).unwrap();
        run().succeeds().never("no file was changed");
        assert_eq!(repo.git(["show", "HEAD:t.txt"]).answer(), "same");
    }
}

#[test]
fn all_changes_that_were_undone_after_a_step_are_named_even_if_it_was_interrupted() {
    // Three kinds at once: a repository in a folder of the checkout, the user's uncommitted file, and a protected one.
    let deed = "git init -q src; echo evil > mine.txt; echo weak > check.sh";
    let stop =
        "[ ! -e \"$ROOT/stop\" ] || { kill -TERM $PPID; sleep 60; }; [ ! -e \"$ROOT/fail\" ] || exit 1";
    for (step, is_stopped) in
        [("implement", true), ("test", true), ("review", true), ("test", false), ("implement", false)]
    {
        let hostile = format!("[ ! -e \"$ROOT/hostile-{step}\" ] || {{ {deed}; {stop}; }}");
        let of = |name: &str| if name == step { hostile.as_str() } else { "true" };
        let repo = repo(
            &format!("date +%N > t.txt; {}", of("implement")),
            &format!("{}; echo APPROVED", of("review")),
        );
        repo.write("src/a.txt", "a\n");
        repo.write("check.sh", "check\n");
        repo.commit("more files\n");
        repo.write("mine.txt", "mine\n");
        repo.git(["config", "arborist.protect", "check.sh"]).succeeds();
        repo.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
        let root = repo.root().display().to_string();
        let test = format!("ROOT='{root}'; [ -z \"$ARBORIST_TASK\" ] || {{ {}; }}", of("test"));
        for mark in [format!("hostile-{step}"), if is_stopped { "stop" } else { "fail" }.to_owned()] {
            std::fs::write(repo.root().join(mark), "").unwrap();
        }
        let options = ["--only", "T1", "--allow-dirty", "--max-retries", "1", "--test-command", &test];
        let run = repo.arborist([&["gardener"], &options[..]].concat());
        let said = run.report();
        run.exits(if is_stopped { 143 } else { 1 });
        let commits = repo.git(["log", "--format=%B"]).answer();
        let state = repo.arborist(["state", "T1"]).succeeds().stdout();
        for text in [said, commits, state] {
            for name in ["src", "mine.txt", "check.sh"] {
                assert!(
                    text.contains(name),
                    "{step}, stopped: {is_stopped}: {name} is not named in:\n{text}"
                );
            }
        }
        assert_eq!(repo.read("mine.txt") + &repo.read("check.sh"), "mine\ncheck\n");
        assert!(!repo.path("src/.git").exists(), "{step}");
    }
}

#[test]
fn files_that_were_committed_after_the_tests_are_tested_before_the_task_is_complete() {
    for place in [&["--jobs", "1"][..], &["--isolate"]] {
        for text in ["good", "bad"] {
            let repo = repo("echo work > t1.txt; echo done", "strike kill; echo APPROVED");
            repo.write("checked.txt", "good\n");
            repo.commit("a file\n");
            let trigger = repo.root().join("kill");
            std::fs::write(&trigger, "").unwrap();
            let test = "! grep -q bad checked.txt";
            let args = ["gardener", "--only", "T1", "--max-retries", "2", "--test-command", test];
            let run = || repo.arborist(args.iter().chain(place));
            assert_ne!(run().code(), 0);
            std::fs::remove_file(&trigger).unwrap();
            let dir = match place {
                ["--isolate"] => repo.arborist(["worktree", "path", "T1"]).answer().into(),
                _ => repo.path(""),
            };
            std::fs::write(dir.join("checked.txt"), format!("{text}, by the user\n")).unwrap();
            repo.git_in(&dir, ["commit", "-q", "-a", "-m", "of the user"]).succeeds();
            let ended = run();
            assert_eq!(ended.code() == 0, text == "good", "{place:?} {text}: {}", ended.report());
            if text == "good" {
                assert!(ended.report().contains("its attempt begins again"), "{}", ended.report());
                let log = repo.git(["log", "--format=%s", "main"]).answer();
                assert_eq!(log.matches("@T1@test-pass)").count(), 2, "{log}");
                repo.arborist(["verify"]).succeeds();
            } else {
                assert_ne!(state(&repo, "T1")["state"], "complete", "{}", ended.report());
            }
        }
    }
}
