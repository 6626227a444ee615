//! Gates, batches and bisection of `git arborist merge`.

use crate::orchard::Orchard;
use serde_json::Value;

/// An orchard with a gate that counts its runs and then does this.
fn gated(tasks: &[&str], gate: &str) -> Orchard {
    let orchard = Orchard::grown(tasks);
    set_gate(&orchard, gate);
    orchard
}

fn set_gate(orchard: &Orchard, gate: &str) {
    let command = format!("echo run >> '{}/runs'; {gate}", orchard.root().display());
    orchard.git(["config", "arborist.merge.gates.check.command", &command]).succeeds();
}

fn runs(orchard: &Orchard) -> usize {
    std::fs::read_to_string(orchard.root().join("runs")).map_or(0, |text| text.lines().count())
}

fn outcomes(json: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(json).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let outcomes = report["outcomes"].as_array().unwrap().iter();
    outcomes.map(|one| (text(&one["task"]), text(&one["outcome"]))).collect()
}

#[test]
fn a_gate_is_asked_about_exactly_the_commit_that_lands() {
    let orchard = gated(&["T1", "T2"], "git rev-parse HEAD >> ../../tested; cat T1.txt T2.txt kept.txt");
    let tested = orchard.root().join("tested");
    let command = format!("git rev-parse HEAD >> '{}'; cat T1.txt T2.txt kept.txt", tested.display());
    set_gate(&orchard, &command);
    orchard.write("kept.txt", "dirty");
    orchard.merge(&["T1", "T2"]).succeeds().shows();
    let tested = std::fs::read_to_string(tested).unwrap();
    assert_eq!(tested.trim(), orchard.git(["rev-parse", "main"]).answer());
    let trailers = orchard.git(["log", "-2", "--format=%(trailers)", "main"]).answer();
    assert_eq!(trailers.matches("Arborist-Gate: check").count(), 2, "{trailers}");
    assert_eq!(orchard.read("kept.txt"), "dirty");
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), " M kept.txt", "no log shows");
}

#[test]
fn a_red_gate_keeps_one_back_and_says_where_its_log_is() {
    let orchard = gated(&["T1"], "echo the roof leaks; ! test -e T1.txt");
    let main = orchard.git(["rev-parse", "main"]).answer();
    orchard.merge(&["T1"]).exits(1).shows();
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    let status = orchard.merge(&["status", "T1"]).exits(1).shows().stdout();
    let log = status.split("see ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    assert!(orchard.read(&log).contains("the roof leaks"), "{log}");
    orchard.merge(&["run"]).exits(1).shows();
    assert_eq!(runs(&orchard), 3, "it is not tried again by itself");
    orchard.merge(&["log"]).succeeds().shows();

    set_gate(&orchard, "true");
    orchard.merge(&["retry", "T1"]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn new_work_on_a_red_task_is_tried_by_itself() {
    let orchard = gated(&["T1"], "! test -e T1.txt");
    orchard.merge(&["T1"]).exits(1);
    orchard.on_branch("T1", |orchard| {
        orchard.git(["mv", "T1.txt", "T1.md"]).succeeds();
        orchard.finish("T1");
    });
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn what_a_gate_said_in_another_process_lets_nothing_through() {
    let orchard = gated(&["T1"], "true");
    orchard.elsewhere();
    orchard.merge(&["T1"]).succeeds().shows();
    let results = orchard.git(["for-each-ref", "--format=%(refname)", "refs/arborist/gates"]).answer();
    assert_eq!(results.lines().count(), 1);
    orchard.git(["update-ref", "refs/heads/main", "main^1"]).succeeds();
    orchard.merge(&["T1"]).succeeds().shows();
    assert_eq!(runs(&orchard), 2);
}

#[test]
fn the_gate_is_asked_again_if_the_target_moved_under_it() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.elsewhere();
    orchard.write("other.txt", "other");
    orchard.commit("other\n");
    let moves = format!(
        "test -e '{0}/moved' || {{ touch '{0}/moved'; cd '{1}'; git update-ref refs/heads/main $(git commit-tree -p main -m user elsewhere^{{tree}}); }}",
        orchard.root().display(),
        orchard.path("").display()
    );
    set_gate(&orchard, &moves);
    orchard.merge(&["T1"]).succeeds().shows();
    assert_eq!(orchard.git(["log", "-1", "--format=%s", "main^1"]).answer(), "user");
    assert_eq!(orchard.show("main", "T1.txt"), "T1");
}

#[test]
fn a_branch_that_a_gate_deletes_is_put_back_and_the_gate_is_red() {
    let orchard = Orchard::grown(&["T1", "T2"]);
    orchard.git(["config", "arborist.merge.batch", "1"]).succeeds();
    let deletes =
        format!("cd '{}'; git update-ref -d refs/heads/arborist/task/main/T2", orchard.path("").display());
    set_gate(&orchard, &deletes);
    let before = orchard.git(["rev-parse", "arborist/task/main/T2"]).answer();
    // It does the same on the target, and so nobody is blamed.
    orchard.merge(&["T1", "T2"]).exits(2);
    assert_eq!(orchard.git(["rev-parse", "arborist/task/main/T2"]).answer(), before);
    assert_eq!(orchard.git(["ls-tree", "--name-only", "main", "T2.txt"]).answer(), "");
}

#[test]
fn a_gate_that_cannot_answer_lands_nothing_and_blames_nobody() {
    for (gate, why) in [
        ("no-such-program", "is the command there?"),
        ("kill -9 $$", "was ended by signal 9"),
        ("echo 'test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'", "ran no tests"),
        ("echo '==== no tests ran in 0.01s ===='; exit 5", "ran no tests"),
        ("echo 'No test files found, exiting with code 1'; exit 1", "ran no tests"),
    ] {
        let orchard = gated(&["T1", "T2"], gate);
        let main = orchard.git(["rev-parse", "main"]).answer();
        orchard.merge(&["T1", "T2"]).exits(2).out("2 broken (T1, T2); 1 gate run").err(why);
        assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
        orchard.merge(&["list"]).succeeds().shows();
    }
    let orchard = gated(&["T1"], "sleep 60");
    orchard.git(["config", "arborist.merge.gates.check.timeout", "1"]).succeeds();
    orchard.merge(&["T1"]).exits(2).shows();
}

#[test]
fn a_flaky_gate_is_asked_twice_and_both_answers_are_kept() {
    let orchard = gated(&["T1"], "");
    set_gate(
        &orchard,
        &format!("f='{}/once'; test -e \"$f\" || {{ touch \"$f\"; exit 1; }}", orchard.root().display()),
    );
    orchard.merge(&["T1"]).succeeds().shows();
    let name = orchard.git(["for-each-ref", "--format=%(refname)", "refs/arborist/gates"]).answer();
    let said = orchard.git(["log", "--format=%s", &name]).answer();
    assert_eq!(said, "gate: check is green\ngate: check is red");
}

#[test]
fn what_was_red_before_is_held_or_landed_as_the_user_decides() {
    let orchard = gated(&["T1", "T2"], "! test -e kept.txt");
    orchard.merge(&["T1"]).exits(2).shows();
    orchard.merge(&["list"]).succeeds().shows();
    orchard.merge(&["run"]).exits(2).shows();
    orchard.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    orchard.merge(&["run"]).succeeds().shows();
    orchard.git(["config", "arborist.merge.red-target", "perhaps"]).succeeds();
    orchard.merge(&["run"]).exits(128).shows();
}

#[test]
fn what_was_red_before_excuses_nobody_from_the_other_gates() {
    let orchard = Orchard::grown(&["T1", "T2", "T3"]);
    let set = |gate: &str, command: &str| {
        orchard.git(["config", &format!("arborist.merge.gates.{gate}.command"), command]).succeeds();
    };
    set("lint", "false");
    set("test", "! test -e T1.txt");
    orchard.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    let main = orchard.git(["rev-parse", "main"]).answer();
    orchard.merge(&["T1"]).exits(1).shows();
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    orchard.merge(&["status", "T1"]).exits(1).shows();

    orchard.merge(&["T2", "T3"]).succeeds().shows();
    for commit in ["main", "main^1"] {
        let message = orchard.git(["log", "-1", "--format=%B", commit]).answer();
        assert!(message.contains("Arborist-Gate: test\n"), "{message}");
        assert!(message.contains("Gates that were red before:\n> lint\n"), "{message}");
    }
    orchard.arborist(["trailers", "check", "main~2..main"]).succeeds();
}

#[test]
fn a_gate_that_is_flaky_behind_one_that_was_red_before_is_asked_again() {
    let orchard = Orchard::grown(&["T1"]);
    let flaky = format!(
        "f='{}/once'; ! test -e T1.txt || test -e \"$f\" || {{ touch \"$f\"; exit 1; }}",
        orchard.root().display()
    );
    for (gate, command) in [("lint", "false"), ("test", flaky.as_str())] {
        orchard.git(["config", &format!("arborist.merge.gates.{gate}.command"), command]).succeeds();
    }
    orchard.git(["config", "arborist.merge.red-target", "land"]).succeeds();
    orchard.merge(&["T1"]).succeeds().shows();
}

#[test]
fn one_bad_task_of_eight_is_found_in_few_runs_and_the_others_land() {
    let tasks = ["T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8"];
    for bad in tasks {
        let orchard = gated(&tasks, &format!("! test -e {bad}.txt"));
        orchard.elsewhere();
        let args: Vec<&str> = tasks.iter().copied().chain(["--json"]).collect();
        let ran = orchard.merge(&args).exits(1);
        let outcomes = outcomes(&ran.stdout());
        let landed = outcomes.iter().filter(|(_, outcome)| outcome == "landed").count();
        assert_eq!(landed, 7, "{bad}: {outcomes:?}");
        assert!(outcomes.contains(&(bad.to_owned(), "red".to_owned())), "{bad}: {outcomes:?}");
        assert!(runs(&orchard) <= 9, "{bad}: {} runs", runs(&orchard));
        assert_eq!(orchard.subjects("main").len(), 7);
        let counted: Value = serde_json::from_str(&ran.stdout()).unwrap();
        assert_eq!(counted["gate_runs"], runs(&orchard));
    }
}

#[test]
fn two_that_are_good_alone_and_red_together_are_called_that() {
    let orchard = gated(&["T1", "T2", "T3"], "! test -e T1.txt || ! test -e T2.txt");
    orchard.merge(&["T1", "T2", "T3"]).exits(1).shows();
    orchard.merge(&["status", "T2"]).exits(1).shows();
}

#[test]
fn the_size_of_a_batch_is_what_the_user_says() {
    let orchard = gated(&["T1", "T2", "T3"], "true");
    orchard.git(["config", "arborist.merge.batch", "1"]).succeeds();
    orchard.merge(&["T1", "T2"]).succeeds().shows();
    orchard.git(["config", "arborist.merge.batch", "auto"]).succeeds();
    orchard.merge(&["T3"]).succeeds().shows();
    orchard.git(["config", "arborist.merge.batch", "many"]).succeeds();
    orchard.merge(&["run"]).exits(128).shows();
}

#[test]
fn a_gate_leaves_nothing_behind_for_the_next() {
    let orchard = gated(
        &["T1", "T2"],
        "! test -e left.txt && touch left.txt && git checkout -q -b mine 2>/dev/null; test -e left.txt",
    );
    orchard.git(["config", "arborist.merge.batch", "1"]).succeeds();
    orchard.merge(&["T1", "T2"]).succeeds().shows();
}

#[test]
fn ignored_files_go_before_the_next_gate_unless_they_are_kept() {
    let orchard = Orchard::bare_orchard();
    orchard.write(".gitignore", "*.o\ncache/\n.env\n");
    orchard.commit("ignore\n");
    orchard.run_start("main", "s1");
    ["T1", "T2", "T3"].iter().for_each(|task| orchard.branch_off(task, "complete"));
    orchard.write(".env", "set up");
    orchard.git(["config", "arborist.worktree.copy", ".env"]).succeeds();
    orchard.git(["config", "arborist.merge.batch", "1"]).succeeds();
    set_gate(&orchard, "test -e .env && ! test -e a.o && mkdir cache && touch a.o cache/b left.txt");
    orchard.merge(&["T1", "T2"]).succeeds().shows();

    orchard.git(["config", "arborist.merge.keep", "cache/"]).succeeds();
    set_gate(&orchard, "test -e .env && ! test -e a.o && test -e cache/b && ! test -e left.txt");
    orchard.merge(&["T3"]).succeeds().shows();
}

#[test]
fn a_gate_is_asked_only_where_its_paths_are_changed() {
    let orchard = gated(&["T1", "T2"], "false");
    orchard.git(["config", "arborist.merge.gates.check.when", "T2.*"]).succeeds();
    orchard.merge(&["T1"]).succeeds().shows().never("gate run");
    let trailers = orchard.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Gate: none"), "{trailers}");
    orchard.merge(&["T2"]).exits(2).shows();
}

#[test]
fn gates_of_the_repository_need_consent_and_are_read_from_the_accepted_commit() {
    let orchard = Orchard::bare_orchard();
    orchard.write(
        ".arborist/config.toml",
        "[merge]\ngates = [{ name = \"one\", command = \"true\", timeout = 5 }, { name = \"two\", command = \"test -e T1.txt\" }]\n",
    );
    orchard.commit("settings\n");
    orchard.run_start("main", "s1");
    orchard.branch_off("T1", "complete");
    orchard.branch_off("T2", "complete");
    orchard.merge(&["T1"]).exits(2).shows();
    orchard.write(
        ".arborist/config.toml",
        "[merge]\ngates = [{ name = \"evil\", command = \"touch ../evil\" }]\n",
    );
    orchard.elsewhere();
    orchard.merge(&["T1", "--yes"]).succeeds().shows();
    let trailers = orchard.git(["log", "-1", "--format=%(trailers)", "main"]).answer();
    assert!(trailers.contains("Arborist-Gate: one, two"), "{trailers}");
    orchard.merge(&["T2"]).succeeds();
}

#[test]
fn a_conflict_with_another_of_the_batch_waits_for_the_next_round() {
    let orchard = gated(&["T1"], "true");
    orchard.git(["branch", "arborist/task/main/T2", "main"]).succeeds();
    orchard.on_branch("T2", |orchard| {
        orchard.write("T1.txt", "mine");
        orchard.finish("T2");
    });
    orchard.merge(&["T1", "T2"]).exits(2).shows();
    assert_eq!(orchard.show("main", "T1.txt"), "T1");
}

#[test]
fn gates_that_were_changed_since_the_run_began_have_to_be_accepted_first() {
    let orchard = Orchard::grown(&["T1"]);
    orchard.write(".arborist/config.toml", "[merge]\ngates = [{ name = \"g\", command = \"false\" }]\n");
    orchard.merge(&["T1", "--yes"]).exits(2).shows();
    assert!(orchard.subjects("main").is_empty());
    std::fs::remove_file(orchard.path(".arborist/config.toml")).unwrap();
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn a_target_that_is_red_itself_is_soon_found_out() {
    let orchard = gated(&["T1", "T2", "T3", "T4"], "false");
    orchard.merge(&["T1", "T2", "T3", "T4"]).exits(2).shows();
    assert_eq!(runs(&orchard), 7);
    // Another process believes nothing that stands in refs, and finds it out for itself.
    orchard.merge(&["run"]).exits(2).shows();
    orchard.wait(3601);
    set_gate(&orchard, "false || true");
    orchard.merge(&["run"]).succeeds().shows();
}

#[test]
fn gates_with_the_same_command_are_each_asked() {
    for names in [["lint", "unit"], ["unit", "lint"]] {
        let orchard = Orchard::grown(&["T1"]);
        let asked = orchard.root().join("asked");
        let command = format!("echo $ARBORIST_GATE >> '{}'; test $ARBORIST_GATE = unit", asked.display());
        for name in names {
            let key = format!("merge.gates.{name}.command");
            orchard.git(["config", &format!("arborist.{key}"), &command]).succeeds();
        }
        assert_ne!(orchard.merge(&["T1"]).code(), 0);
        assert!(std::fs::read_to_string(&asked).unwrap().contains("lint"), "{names:?}");
        assert!(!orchard.git(["ls-tree", "--name-only", "main"]).answer().contains("T1.txt"));
    }
}
