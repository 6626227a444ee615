//! Gates, batches and bisection of `git arborist merge`.

use crate::queue_repo::QueueRepo;
use serde_json::Value;

/// A repository with a gate that counts its runs and then does this.
fn gated(tasks: &[&str], gate: &str) -> QueueRepo {
    let repo = QueueRepo::with_finished(tasks);
    set_gate(&repo, gate);
    repo
}

fn set_gate(repo: &QueueRepo, gate: &str) {
    let command = format!("echo run >> '{}/runs'; {gate}", repo.root().display());
    repo.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
}

fn runs(repo: &QueueRepo) -> usize {
    std::fs::read_to_string(repo.root().join("runs")).map_or(0, |text| text.lines().count())
}

fn outcomes(json: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let outcomes = report["outcomes"].as_array().unwrap().iter();
    outcomes.map(|one| (text(&one["task"]), text(&one["outcome"]))).collect()
}

#[test]
fn a_gate_runs_on_exactly_the_commit_that_lands() {
    let repo = gated(&["T1", "T2"], "git rev-parse HEAD >> ../../tested; cat T1.txt T2.txt kept.txt");
    let tested = repo.root().join("tested");
    let command = format!("git rev-parse HEAD >> '{}'; cat T1.txt T2.txt kept.txt", tested.display());
    set_gate(&repo, &command);
    repo.write("kept.txt", "dirty");
    repo.merge(&["T1", "T2"]).succeeds().matches_snapshot();
    let tested = std::fs::read_to_string(tested).unwrap();
    assert_eq!(tested.trim(), repo.git(["rev-parse", "main"]).answer());
    let trailers = repo.git(["log", "-2", "--format=%(trailers)", "main"]).answer();
    assert_eq!(trailers.matches("Arborist-Gate: check").count(), 2, "{trailers}");
    assert_eq!(repo.read("kept.txt"), "dirty");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), " M kept.txt", "no log shows");
}

#[test]
fn a_failed_gate_keeps_a_task_in_the_queue_and_names_its_log() {
    let repo = gated(&["T1"], "echo the roof leaks; ! test -e T1.txt");
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.merge(&["T1"]).exits(1).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    let status = repo.merge(&["status", "T1"]).exits(1).matches_snapshot().stdout();
    let log = status.split("(log: ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    assert!(repo.read(&log).contains("the roof leaks"), "{log}");
    repo.merge(&["run"]).exits(1).matches_snapshot();
    assert_eq!(runs(&repo), 3, "it is not tried again by itself");
    repo.merge(&["log"]).succeeds().matches_snapshot();

    set_gate(&repo, "true");
    repo.merge(&["retry", "T1"]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn a_task_that_failed_a_gate_is_tried_again_after_new_commits() {
    let repo = gated(&["T1"], "! test -e T1.txt");
    repo.merge(&["T1"]).exits(1);
    repo.on_branch("T1", |repo| {
        repo.git(["mv", "T1.txt", "T1.md"]).succeeds();
        repo.finish("T1");
    });
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn gate_results_recorded_by_another_process_are_not_trusted() {
    let repo = gated(&["T1"], "true");
    repo.elsewhere();
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    let results = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/gates"]).answer();
    assert_eq!(results.lines().count(), 1);
    repo.git(["update-ref", "refs/heads/main", "main^1"]).succeeds();
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    assert_eq!(runs(&repo), 2);
}

#[test]
fn a_gate_runs_again_if_the_target_moved_meanwhile() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.elsewhere();
    repo.write("other.txt", "other");
    repo.commit("other\n");
    let moves = format!(
        "test -e '{0}/moved' || {{ touch '{0}/moved'; cd '{1}'; git update-ref refs/heads/main $(git commit-tree -p main -m user elsewhere^{{tree}}); }}",
        repo.root().display(),
        repo.path("").display()
    );
    set_gate(&repo, &moves);
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["log", "-1", "--format=%s", "main^1"]).answer(), "user");
    assert_eq!(repo.show("main", "T1.txt"), "T1");
}

#[test]
fn a_branch_that_a_gate_deletes_is_restored_and_the_gate_does_not_count() {
    let repo = QueueRepo::with_finished(&["T1", "T2"]);
    repo.git(["config", "arborist.merge.batch", "1"]).succeeds();
    let deletes =
        format!("cd '{}'; git update-ref -d refs/heads/arborist/task/main/T2", repo.path("").display());
    set_gate(&repo, &deletes);
    let before = repo.git(["rev-parse", "arborist/task/main/T2"]).answer();
    // It does the same on the target, and so nobody is blamed.
    repo.merge(&["T1", "T2"]).exits(2);
    assert_eq!(repo.git(["rev-parse", "arborist/task/main/T2"]).answer(), before);
    assert_eq!(repo.git(["ls-tree", "--name-only", "main", "T2.txt"]).answer(), "");
}

#[test]
fn a_gate_that_cannot_run_lands_nothing_and_fails_no_task() {
    for (gate, why) in [
        ("no-such-program", "(command not found)"),
        ("kill -9 $$", "was ended by signal 9"),
        ("echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'", "ran no tests"),
        ("echo '==== no tests ran in 0.01s ===='; exit 5", "ran no tests"),
        ("echo 'No test files found, exiting with code 1'; exit 1", "ran no tests"),
    ] {
        let repo = gated(&["T1", "T2"], gate);
        let main = repo.git(["rev-parse", "main"]).answer();
        repo.merge(&["T1", "T2"])
            .exits(2)
            .out("2 waiting for a gate that could not run (T1, T2); 1 gate run")
            .err(why);
        assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
        repo.merge(&["list"]).succeeds().matches_snapshot();
    }
    let repo = gated(&["T1"], "sleep 60");
    repo.git(["config", "arborist.merge.gates.check.timeout", "1"]).succeeds();
    repo.merge(&["T1"]).exits(2).matches_snapshot();
}

#[test]
fn a_flaky_gate_runs_twice_and_both_results_are_recorded() {
    let repo = gated(&["T1"], "");
    set_gate(
        &repo,
        &format!("f='{}/once'; test -e \"$f\" || {{ touch \"$f\"; exit 1; }}", repo.root().display()),
    );
    repo.merge(&["T1"]).succeeds().matches_snapshot();
    let name = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/gates"]).answer();
    let said = repo.git(["log", "--format=%s", &name]).answer();
    assert_eq!(said, "gate: check is green\ngate: check is red");
}

#[test]
fn red_target_decides_whether_tasks_land_on_a_target_that_already_fails_the_gate() {
    let repo = gated(&["T1", "T2"], "! test -e kept.txt");
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    repo.merge(&["list"]).succeeds().matches_snapshot();
    repo.merge(&["run"]).exits(2).matches_snapshot();
    repo.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    repo.merge(&["run"]).succeeds().matches_snapshot();
    repo.git(["config", "arborist.merge.red-target", "perhaps"]).succeeds();
    repo.merge(&["run"]).exits(1).matches_snapshot();
}

#[test]
fn if_one_gate_failed_before_tasks_must_still_pass_the_other_gates() {
    let repo = QueueRepo::with_finished(&["T1", "T2", "T3"]);
    let set = |gate: &str, command: &str| {
        repo.git(["config", &format!("arborist.merge.gates.{gate}.command"), command]).succeeds();
    };
    set("lint", "false");
    set("test", "! test -e T1.txt");
    repo.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    let main = repo.git(["rev-parse", "main"]).answer();
    repo.merge(&["T1"]).exits(1).matches_snapshot();
    assert_eq!(repo.git(["rev-parse", "main"]).answer(), main);
    repo.merge(&["status", "T1"]).exits(1).matches_snapshot();

    repo.merge(&["T2", "T3"]).succeeds().matches_snapshot();
    for commit in ["main", "main^1"] {
        let message = repo.git(["log", "-1", "--format=%B", commit]).answer();
        assert!(message.contains("Arborist-Gate: test\n"), "{message}");
        assert!(message.contains("Gates that failed before:\n> lint\n"), "{message}");
    }
    repo.arborist(["trailers", "check", "main~2..main"]).succeeds();
}

#[test]
fn a_flaky_gate_after_one_that_failed_before_runs_again() {
    let repo = QueueRepo::with_finished(&["T1"]);
    let flaky = format!(
        "f='{}/once'; ! test -e T1.txt || test -e \"$f\" || {{ touch \"$f\"; exit 1; }}",
        repo.root().display()
    );
    for (gate, command) in [("lint", "false"), ("test", flaky.as_str())] {
        repo.git(["config", &format!("arborist.merge.gates.{gate}.command"), command]).succeeds();
    }
    repo.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    repo.merge(&["T1"]).succeeds().matches_snapshot();
}

#[test]
fn one_failing_task_of_eight_is_found_in_few_gate_runs_and_the_others_land() {
    let tasks = ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8"];
    // The first, the last, and one inside of each half.
    let bad_ones = if std::env::var_os("ARBORIST_EVERY_VARIANT").is_some() {
        tasks.to_vec()
    } else {
        vec!["T1", "T3", "T6", "T8"]
    };
    for bad in bad_ones {
        let repo = gated(&tasks, &format!("! test -e {bad}.txt"));
        repo.elsewhere();
        let args: Vec<&str> = tasks.iter().copied().chain(["--json"]).collect();
        let ran = repo.merge(&args).exits(1);
        let outcomes = outcomes(&ran.stdout());
        let landed = outcomes.iter().filter(|(_, outcome)| outcome == "landed").count();
        assert_eq!(landed, 7, "{bad}: {outcomes:?}");
        assert!(outcomes.contains(&(bad.to_owned(), "red".to_owned())), "{bad}: {outcomes:?}");
        assert!(runs(&repo) <= 9, "{bad}: {} runs", runs(&repo));
        assert_eq!(repo.subjects("main").len(), 7);
        let counted: Value = serde_json::from_str(&ran.stdout()).unwrap();
        assert_eq!(counted["gate_runs"], runs(&repo));
    }
}

#[test]
fn two_tasks_that_fail_a_gate_only_together_are_reported_as_such() {
    let repo = gated(&["T1", "T2", "T3"], "! test -e T1.txt || ! test -e T2.txt");
    repo.merge(&["T1", "T2", "T3"]).exits(1).matches_snapshot();
    repo.merge(&["status", "T2"]).exits(1).matches_snapshot();
}

#[test]
fn a_task_that_fails_only_with_a_recently_landed_one_is_reported_as_an_interaction() {
    let repo = gated(&["T1", "T2", "T3", "T4"], "! test -e T2.txt || ! test -e T4.txt");
    for landed in ["T1", "T2", "T3"] {
        repo.merge(&[landed]).succeeds();
    }
    repo.merge(&["T4"]).exits(1).err("T4 passes alone, but fails together with T2");
    repo.merge(&["status", "T4"]).exits(1).matches_snapshot();
}

#[test]
fn a_task_that_fails_on_its_own_is_not_reported_as_an_interaction() {
    let repo = gated(&["T1", "T2"], "! test -e T2.txt");
    repo.merge(&["T1"]).succeeds();
    repo.merge(&["T2"]).exits(1).err("T2 did not land, because the gate").never("together");
    repo.merge(&["status"]).exits(1).never("together");
}

#[test]
fn the_reason_why_a_gate_could_not_run_is_kept_until_it_runs() {
    let repo = gated(&["T1"], "no-such-program");
    repo.merge(&["T1"]).exits(2);
    repo.merge(&["status"]).exits(2).matches_snapshot();
    repo.merge(&["status", "--json"]).exits(2).out("could not run");
    repo.merge(&["log"]).succeeds().err("no queued task has an outcome yet");
    repo.plant("no-such-program", "#!/bin/sh\n");
    repo.merge(&["run"]).succeeds();
    repo.merge(&["status"]).succeeds();
}

#[test]
fn the_batch_size_can_be_configured() {
    let repo = gated(&["T1", "T2", "T3"], "true");
    repo.git(["config", "arborist.merge.batch", "1"]).succeeds();
    repo.merge(&["T1", "T2"]).succeeds().matches_snapshot();
    repo.git(["config", "arborist.merge.batch", "auto"]).succeeds();
    repo.merge(&["T3"]).succeeds().matches_snapshot();
    repo.git(["config", "arborist.merge.batch", "many"]).succeeds();
    repo.merge(&["run"]).exits(1).matches_snapshot();
}

#[test]
fn files_and_branches_of_a_gate_are_not_seen_by_the_next_gate() {
    let repo = gated(
        &["T1", "T2"],
        "! test -e left.txt && touch left.txt && git checkout -q -b mine 2>/dev/null; test -e left.txt",
    );
    repo.git(["config", "arborist.merge.batch", "1"]).succeeds();
    repo.merge(&["T1", "T2"]).succeeds().matches_snapshot();
}

#[test]
fn ignored_files_are_removed_before_the_next_gate_unless_merge_keep_names_them() {
    let repo = QueueRepo::empty_queue_repo();
    repo.write(".gitignore", "*.o\ncache/\n.env\n");
    repo.commit("ignore\n");
    repo.run_start("main", "s1");
    ["T1", "T2", "T3"].iter().for_each(|task| repo.branch_off(task, "complete"));
    repo.write(".env", "set up");
    repo.git(["config", "arborist.worktree.copy", ".env"]).succeeds();
    repo.git(["config", "arborist.merge.batch", "1"]).succeeds();
    set_gate(&repo, "test -e .env && ! test -e a.o && mkdir cache && touch a.o cache/b left.txt");
    repo.merge(&["T1", "T2"]).succeeds().matches_snapshot();

    repo.git(["config", "arborist.merge.keep", "cache/"]).succeeds();
    set_gate(&repo, "test -e .env && ! test -e a.o && test -e cache/b && ! test -e left.txt");
    repo.merge(&["T3"]).succeeds().matches_snapshot();
}

#[test]
fn a_gate_runs_only_if_its_paths_are_changed() {
    let repo = gated(&["T1", "T2"], "false");
    repo.git(["config", "arborist.merge.gates.check.when", "T2.*"]).succeeds();
    repo.merge(&["T1"]).succeeds().matches_snapshot().never("gate run");
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Gate: none"), "{trailers}");
    repo.merge(&["T2"]).exits(2).matches_snapshot();
}

#[test]
fn gates_of_the_repository_need_consent_and_are_read_from_the_accepted_commit() {
    let repo = QueueRepo::empty_queue_repo();
    repo.write(
        ".arborist/config.toml",
        "[merge]\ngates = [{ name = \"one\", command = \"true\", timeout = 5 }, { name = \"two\", command = \"test -e T1.txt\" }]\n",
    );
    repo.commit("settings\n");
    repo.run_start("main", "s1");
    repo.branch_off("T1", "complete");
    repo.branch_off("T2", "complete");
    repo.merge(&["T1"]).exits(2).matches_snapshot();
    repo.write(
        ".arborist/config.toml",
        "[merge]\ngates = [{ name = \"evil\", command = \"touch ../evil\" }]\n",
    );
    repo.elsewhere();
    repo.merge(&["T1", "--yes"]).succeeds().matches_snapshot();
    let trailers = repo.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Gate: one, two"), "{trailers}");
    repo.merge(&["T2"]).succeeds();
}

#[test]
fn a_task_that_conflicts_with_another_of_its_batch_waits_for_the_next_batch() {
    let repo = gated(&["T1"], "true");
    repo.git(["branch", "arborist/task/main/T2", "main"]).succeeds();
    repo.on_branch("T2", |repo| {
        repo.write("T1.txt", "mine");
        repo.finish("T2");
    });
    repo.merge(&["T1", "T2"]).exits(2).matches_snapshot();
    assert_eq!(repo.show("main", "T1.txt"), "T1");
}

#[test]
fn gates_changed_since_the_start_of_the_run_must_be_accepted_first() {
    let repo = QueueRepo::with_finished(&["T1"]);
    repo.write(".arborist/config.toml", "[merge]\ngates = [{ name = \"g\", command = \"false\" }]\n");
    repo.merge(&["T1", "--yes"]).exits(2).matches_snapshot();
    assert!(repo.subjects("main").is_empty());
    std::fs::remove_file(repo.path(".arborist/config.toml")).unwrap();
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn a_target_that_fails_the_gate_itself_is_detected_in_few_gate_runs() {
    let repo = gated(&["T1", "T2", "T3", "T4"], "false");
    repo.merge(&["T1", "T2", "T3", "T4"]).exits(2).matches_snapshot();
    assert_eq!(runs(&repo), 7);
    // Another process believes nothing that stands in refs, and finds it out for itself.
    repo.merge(&["run"]).exits(2).matches_snapshot();
    repo.wait(3601);
    set_gate(&repo, "false || true");
    repo.merge(&["run"]).succeeds().matches_snapshot();
}

#[test]
fn gates_with_the_same_command_each_run() {
    for names in [["lint", "unit"], ["unit", "lint"]] {
        let repo = QueueRepo::with_finished(&["T1"]);
        let asked = repo.root().join("asked");
        let command = format!("echo $ARBORIST_GATE >> '{}'; test $ARBORIST_GATE = unit", asked.display());
        for name in names {
            let key = format!("merge.gates.{name}.command");
            repo.git(["config", &format!("arborist.{key}"), &command]).succeeds();
        }
        assert_ne!(repo.merge(&["T1"]).code(), 0);
        assert!(std::fs::read_to_string(&asked).unwrap().contains("lint"), "{names:?}");
        assert!(!repo.git(["ls-tree", "--name-only", "main"]).answer().contains("T1.txt"));
    }
}

#[test]
fn the_sandbox_of_gates_can_be_chosen() {
    use arborist_core::process::ConfinementBackend;
    for (mode, backend) in [("landlock", ConfinementBackend::Landlock), ("bwrap", ConfinementBackend::Bwrap)]
    {
        if !backend.works() {
            println!("skipped: {mode} does not work here");
            continue;
        }
        let repo = QueueRepo::with_finished(&["T1"]);
        let gate = format!("test ! -e T1.txt || touch '{}/escaped'", repo.root().display());
        repo.git(["config", "arborist.merge.gates.check.command", &gate]).succeeds();
        repo.merge(&["T1", "--sandbox", mode]).exits(1);
        assert!(!repo.root().join("escaped").exists(), "{mode}");
        repo.merge(&["retry", "T1"]).succeeds();
        repo.merge(&["run", "--sandbox", "off"]).succeeds();
        assert!(repo.root().join("escaped").exists(), "{mode}");
    }
}
