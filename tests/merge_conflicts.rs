//! Conflicts of `git arborist merge`: typed, resolved by an agent or by hand, and never landed untested.

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod orchard;

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::PathBuf};

use orchard::Orchard;
use serde_json::Value;

/// An orchard whose task T1 has landed, and whose task T2 began beside it. Both did their work on a file `a.txt`.
fn clash(base: impl Fn(&Orchard), ours: impl Fn(&Orchard), theirs: impl Fn(&Orchard)) -> Orchard {
    let orchard = Orchard::bare_orchard();
    base(&orchard);
    orchard.commit("a base\n");
    orchard.run_start("main", "s1");
    for (task, work) in [("T1", &ours as &dyn Fn(&Orchard)), ("T2", &theirs)] {
        orchard.git(["branch", &format!("arborist/task/main/{task}")]).succeeds();
        orchard.on_branch(task, |orchard| {
            work(orchard);
            orchard.finish(task);
        });
    }
    orchard.merge(&["T1"]).succeeds();
    orchard
}

/// Both changed the same line.
fn content() -> Orchard {
    clash(
        |orchard| orchard.write("a.txt", "one\n"),
        |orchard| orchard.write("a.txt", "ours\n"),
        |orchard| orchard.write("a.txt", "theirs\n"),
    )
}

fn ticket(orchard: &Orchard) -> Value {
    let queue: Value = serde_json::from_str(&orchard.merge(&["list", "--json"]).answer()).unwrap();
    queue["tickets"][0].clone()
}

#[test]
fn a_conflict_is_told_with_its_file_its_kind_and_all_three_versions() {
    let orchard = content();
    let main = orchard.git(["rev-parse", "main"]).answer();
    orchard
        .merge(&["T2"])
        .exits(2)
        .err("T2 is in conflict: content in a.txt; a person is needed")
        .err("git arborist merge resolve T2");
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), "");
    let conflict = &ticket(&orchard)["conflicts"][0];
    assert_eq!((&conflict["kind"], &conflict["paths"][0]), (&"content".into(), &"a.txt".into()));
    let text = |side: &str| orchard.git(["cat-file", "-p", conflict[side]["id"].as_str().unwrap()]).answer();
    assert_eq!([text("base"), text("ours"), text("theirs")], ["one", "ours", "theirs"]);
    orchard
        .merge(&["status", "T2"])
        .succeeds()
        .out("escalated")
        .out("CONFLICT (content)")
        .out("theirs 100644");
    orchard.merge(&["run"]).exits(2).out("1 escalated (T2)").never("git arborist merge resolve");
}

#[test]
fn every_kind_of_conflict_has_its_name() {
    type Work = fn(&Orchard);
    let nothing: Work = |_| {};
    let file: Work = |orchard| orchard.write("a.txt", "1\n2\n3\n4\n5\n6\n");
    let table: [(&str, Work, Work, Work); 8] = [
        ("add/add", nothing, |o| o.write("a.txt", "x\n"), |o| o.write("a.txt", "y\n")),
        ("modify/delete", file, |o| o.write("a.txt", "x\n"), |o| fs::remove_file(o.path("a.txt")).unwrap()),
        (
            "rename/rename",
            file,
            |o| fs::rename(o.path("a.txt"), o.path("b.txt")).unwrap(),
            |o| fs::rename(o.path("a.txt"), o.path("c.txt")).unwrap(),
        ),
        (
            "rename/delete",
            file,
            |o| fs::rename(o.path("a.txt"), o.path("b.txt")).unwrap(),
            |o| fs::remove_file(o.path("a.txt")).unwrap(),
        ),
        ("file/directory", nothing, |o| o.write("d", "a file\n"), |o| o.write("d/e", "inside\n")),
        (
            "mode",
            nothing,
            |o| o.write("a.txt", "a file\n"),
            |o| std::os::unix::fs::symlink("kept.txt", o.path("a.txt")).unwrap(),
        ),
        (
            "binary",
            |o| o.write("a.txt", b"\0base"),
            |o| o.write("a.txt", b"\0ours"),
            |o| o.write("a.txt", b"\0theirs"),
        ),
        ("content", file, |o| o.write("a.txt", "x\n"), |o| o.write("a.txt", "y\n")),
    ];
    for (kind, base, ours, theirs) in table {
        let orchard = clash(base, ours, theirs);
        orchard.merge(&["T2"]).exits(2);
        let ticket = ticket(&orchard);
        let kinds: Vec<&str> =
            ticket["conflicts"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
        assert!(!kinds.contains(&"unknown"), "{kind}: {kinds:?}");
        if kind == "binary" {
            assert_eq!(kinds, ["binary"]);
        }
    }
}

#[test]
fn a_submodule_that_both_moved_is_a_conflict() {
    let orchard = Orchard::bare_orchard();
    let link = |orchard: &Orchard, id: &str| {
        orchard.git(["update-index", "--add", "--cacheinfo", &format!("160000,{id},sub")]).succeeds();
    };
    link(&orchard, &"1".repeat(40));
    let tree = orchard.git(["write-tree"]).answer();
    let head = orchard.git(["rev-parse", "HEAD"]).answer();
    let base = orchard.commit_object(&tree, &[head], "sub\n");
    orchard.git(["reset", "-q", "--soft", &base]).succeeds();
    fs::create_dir(orchard.path("sub")).unwrap();
    let start = arborist_testkit::TaskCommit::run_start("main", "s1", &base).to_string();
    let start = orchard.commit_object(&tree, &[base], start);
    orchard.git(["reset", "-q", "--soft", &start]).succeeds();
    for (task, digit) in [("T1", "2"), ("T2", "3")] {
        link(&orchard, &digit.repeat(40));
        let tree = orchard.git(["write-tree"]).answer();
        let done = arborist_testkit::TaskCommit::new(task, "complete").trailer("Session", "s1").to_string();
        let commit = orchard.commit_object(&tree, std::slice::from_ref(&start), done);
        orchard.git(["branch", &format!("arborist/task/main/{task}"), &commit]).succeeds();
    }
    orchard.git(["read-tree", "HEAD"]).succeeds();
    orchard.elsewhere();
    orchard.merge(&["T1", "T2"]).exits(2).err("T2 is in conflict: submodule in sub");
}

#[test]
fn one_conflict_does_not_hold_up_the_queue() {
    let orchard = content();
    orchard.branch_off("T3", "complete");
    orchard.merge(&["add", "T2", "T3"]).succeeds();
    orchard.merge(&["run"]).exits(2).out("1 landed (T3), 1 escalated (T2)");
    assert!(orchard.git(["rev-parse", "-q", "--verify", "arborist/task/main/T2"]).code() == 0);
}

#[test]
fn an_agent_resolves_it_with_both_tasks_before_its_eyes() {
    let orchard = content();
    orchard.agent("printf 'ours\\ntheirs\\n' > a.txt; echo done");
    orchard.merge(&["T2"]).succeeds().out("1 landed (T2)").err("an agent resolves the conflict of T2, try 1");
    assert_eq!(orchard.show("main", "a.txt"), "ours\ntheirs");
    let prompt = orchard.prompt(0);
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
    let parents = orchard.git(["rev-parse", "main^2"]).answer();
    assert_eq!(
        parents,
        orchard.git(["rev-parse", "arborist/task/main/T2"]).answer(),
        "one merge for the task"
    );
    assert_eq!(orchard.git(["status", "--porcelain"]).answer(), "");
    assert_eq!(orchard.git(["worktree", "list", "--porcelain"]).answer().matches("worktree ").count(), 1);
}

#[test]
fn what_an_agent_resolved_goes_through_the_gate_like_everything_else() {
    let orchard = content();
    orchard
        .git(["config", "arborist.merge.gates.check.command", "grep -q both a.txt || grep -q ours$ a.txt"])
        .succeeds();
    orchard.agent("if test -e \"$ROOT/again\"; then echo both > a.txt; else touch \"$ROOT/again\"; echo neither > a.txt; fi");
    orchard.merge(&["T2"]).succeeds().out("1 landed (T2)").err("try 2");
    assert_eq!(orchard.show("main", "a.txt"), "both");
    assert!(
        orchard.prompt(1).contains("Earlier tries failed:\n- the gate 'check' is red"),
        "{}",
        orchard.prompt(1)
    );
}

#[test]
fn marks_of_conflict_are_no_resolution_and_two_tries_are_enough() {
    let orchard = content();
    orchard.agent("echo more >> a.txt");
    orchard
        .merge(&["T2"])
        .exits(2)
        .out("1 escalated (T2)")
        .err("try 2")
        .err("resolve it:    git arborist merge resolve T2");
    assert_eq!(orchard.calls(), 2);
    orchard.merge(&["status", "T2"]).succeeds().out("try 2: marks of conflict are left in a.txt");
    orchard.merge(&["run"]).exits(2);
    assert_eq!(orchard.calls(), 2, "it is escalated once, and tries are counted in git");
    orchard.git(["config", "arborist.merge.resolve-attempts", "1"]).succeeds();
    orchard.merge(&["retry", "T2"]).succeeds();
    orchard.merge(&["run"]).exits(2);
    assert_eq!(orchard.calls(), 3);
}

#[test]
fn an_agent_that_does_nothing_or_fails_has_resolved_nothing() {
    for (script, why) in [("true", "nothing was changed"), ("exit 3", "robot failed")] {
        let orchard = content();
        orchard.agent(script);
        orchard.merge(&["T2"]).exits(2);
        orchard.merge(&["status", "T2"]).succeeds().out(why);
    }
}

#[test]
fn people_may_want_to_resolve_everything_themselves() {
    let orchard = content();
    orchard.agent("echo both > a.txt");
    orchard.git(["config", "arborist.merge.assist", "false"]).succeeds();
    orchard.merge(&["T2"]).exits(2).out("1 escalated (T2)");
    assert_eq!(orchard.calls(), 0);
}

#[test]
fn a_person_resolves_it_in_a_worktree_and_the_result_is_merged_and_tested() {
    let orchard = content();
    orchard.git(["config", "arborist.merge.gates.check.command", "true"]).succeeds();
    orchard.merge(&["resolve", "T2"]).exits(1).err("'T2' is not in the queue");
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("<<<<<<<"));
    orchard.merge(&["resolve", "T2"]).exits(1).err("not resolved yet: a.txt");
    orchard.branch_off("T3", "complete");
    orchard.merge(&["T3"]).succeeds();
    fs::write(place.join("a.txt"), "both\n").unwrap();
    orchard.git_in(&place, ["add", "a.txt"]).succeeds();
    orchard.merge(&["resolve", "T2"]).succeeds().out("T2 is in the queue again");
    assert!(!place.exists());
    orchard.merge(&["run"]).succeeds().out("1 landed (T2); 1 gate run");
    assert_eq!(orchard.show("main", "a.txt"), "both");
    assert_eq!(orchard.show("main", "T3.txt"), "T3");
    orchard.arborist(["state", "--exit-code"]).succeeds();
}

#[test]
fn a_task_can_be_done_anew_instead() {
    let orchard = content();
    orchard.git(["config", "arborist.merge.on-conflict", "reimplement"]).succeeds();
    let tip = orchard.git(["rev-parse", "arborist/task/main/T2"]).answer();
    orchard.merge(&["T2"]).exits(1).err("T2 waits for to be done anew");
    let saved = orchard.git(["for-each-ref", "--format=%(objectname)", "refs/arborist/saved"]).answer();
    assert_eq!(saved, tip);
    assert_eq!(orchard.git(["for-each-ref", "refs/heads/arborist/task/main/T2"]).answer(), "");
    orchard.merge(&["list"]).succeeds().silent();
    orchard.git(["config", "arborist.merge.on-conflict", "argue"]).succeeds();
    orchard.merge(&["run"]).exits(128).err("must be resolve or reimplement");
}

#[test]
fn all_land_or_none_if_that_is_wanted() {
    let orchard = content();
    orchard.branch_off("T3", "complete");
    orchard.branch_off("T4", "complete");
    let main = orchard.git(["rev-parse", "main"]).answer();
    orchard
        .merge(&["T3", "T2", "T4", "--policy", "all-or-nothing"])
        .exits(1)
        .out("1 conflict (T2), 2 waiting (T3, T4)")
        .err("T3 waits for all of them: not all of them can be merged");
    orchard.merge(&["T3", "T2", "--policy", "all-or-nothing"]).exits(1).out("1 waiting (T3)");
    assert_eq!(orchard.git(["rev-parse", "main"]).answer(), main);
    orchard.merge(&["T3", "T4", "--policy", "all-or-nothing"]).succeeds().out("2 landed (T3, T4)");

    orchard.branch_off("T5", "complete");
    orchard.branch_off("T6", "complete");
    orchard.git(["config", "arborist.merge.gates.check.command", "! test -e T6.txt"]).succeeds();
    orchard
        .merge(&["T5", "T6", "--policy", "all-or-nothing"])
        .exits(1)
        .out("2 waiting (T5, T6)")
        .err("together they are red");
    orchard.merge(&["T5", "T6"]).exits(1).out("1 landed (T5), 1 red (T6)");
}

#[test]
fn of_several_the_first_that_can_land_are_chosen() {
    let orchard = content();
    for task in ["T3", "T4", "T5"] {
        orchard.branch_off(task, "complete");
    }
    orchard.git(["config", "arborist.merge.assist", "false"]).succeeds();
    orchard
        .merge(&["T2", "T3", "T4", "--policy", "first"])
        .exits(2)
        .out("1 landed (T3), 1 not chosen (T4)")
        .err("T4 is not needed: others have landed");
    orchard.merge(&["log"]).succeeds().out("T4 not-chosen");
    orchard.merge(&["T3", "T5", "--policy", "1"]).succeeds().out("1 not chosen (T5)");
    orchard.merge(&["T5", "--policy", "most"]).exits(129).err("it must be keep-clean, all-or-nothing, first");
}

#[test]
fn paths_cannot_speak_to_the_terminal() {
    let name = "a\u{1b}[31mb.txt";
    let orchard = clash(
        |orchard| orchard.write(name, "one\n"),
        |orchard| orchard.write(name, "ours\n"),
        |orchard| orchard.write(name, "theirs\n"),
    );
    orchard.merge(&["T2"]).exits(2).never("\u{1b}");
    orchard.merge(&["status", "T2"]).succeeds().out("theirs 100644").never("\u{1b}");
    orchard.merge(&["resolve", "T2"]).succeeds();
    orchard.merge(&["resolve", "T2"]).exits(1).err("not resolved yet: ab.txt").never("\u{1b}");
}

#[test]
fn marks_of_any_length_and_in_files_of_any_name_are_no_resolution() {
    let odd = OsStr::from_bytes(b"odd\xff.txt");
    let write = |orchard: &Orchard, text: &str| {
        orchard.write("a.txt", text);
        fs::write(orchard.path("").join(odd), text).unwrap();
    };
    let orchard = clash(
        |orchard| {
            orchard.write(".gitattributes", "a.txt conflict-marker-size=32\n");
            write(orchard, "one\n");
        },
        |orchard| write(orchard, "ours\n"),
        |orchard| write(orchard, "theirs\n"),
    );
    orchard.git(["config", "arborist.merge.resolve-attempts", "1"]).succeeds();
    for (script, left) in
        [("echo more >> a.txt; echo both > odd*", "a.txt"), ("echo both > a.txt; echo x >> odd*", "odd")]
    {
        orchard.agent(script);
        orchard.merge(&["T2"]).exits(2).out("1 escalated (T2)");
        orchard
            .merge(&["status", "T2"])
            .succeeds()
            .out(&format!("try 1: marks of conflict are left in {left}"));
        orchard.merge(&["drop", "T2"]).succeeds();
    }
    orchard.git(["config", "arborist.merge.assist", "false"]).succeeds();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    orchard.git_in(&place, ["add", "-A"]).succeeds();
    orchard.merge(&["resolve", "T2"]).exits(1).err("not resolved yet: a.txt, odd");
}

#[test]
fn an_agent_has_to_do_something_about_every_conflict() {
    let orchard = clash(
        |orchard| {
            orchard.write("a.txt", "one\n");
            orchard.write("b.bin", b"\0base");
        },
        |orchard| {
            orchard.write("a.txt", "ours\n");
            orchard.write("b.bin", b"\0ours");
        },
        |orchard| {
            orchard.write("a.txt", "theirs\n");
            orchard.write("b.bin", b"\0theirs");
        },
    );
    orchard.agent("echo both > a.txt");
    orchard.merge(&["T2"]).exits(2);
    orchard.merge(&["status", "T2"]).succeeds().out("try 1: nothing was done about b.bin");
}

#[test]
fn what_a_person_began_stays_while_an_agent_tries() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    orchard.agent("echo more >> a.txt");
    orchard.merge(&["retry", "T2"]).succeeds();
    orchard.merge(&["run"]).exits(2).err("try 1");
    assert_eq!(fs::read_to_string(place.join("a.txt")).unwrap(), "by hand\n");
    orchard.merge(&["resolve", "T2"]).succeeds().out("T2 is in the queue again");
    orchard.merge(&["run"]).succeeds().out("1 landed (T2)");
    assert_eq!(orchard.show("main", "a.txt"), "by hand");
}

#[test]
fn what_a_person_left_is_saved_before_another_merge_takes_its_place() {
    let orchard = content();
    orchard.merge(&["T2"]).exits(2);
    let place = PathBuf::from(orchard.merge(&["resolve", "T2"]).answer());
    fs::write(place.join("a.txt"), "by hand\n").unwrap();
    orchard.on_branch("T2", |orchard| {
        orchard.write("a.txt", "theirs again\n");
        orchard.finish("T2");
    });
    orchard.merge(&["run"]).exits(2);
    orchard.merge(&["resolve", "T2"]).succeeds().err("is kept under refs/arborist/saved/main/resolve-T2/");
    assert!(fs::read_to_string(place.join("a.txt")).unwrap().contains("theirs again"));
    let saved = orchard.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(orchard.show(&saved, "a.txt"), "by hand");
}

#[test]
fn an_agent_that_resolves_leaves_the_repository_alone() {
    let table = [
        ("git branch mine", "refs/heads/mine was moved while it ran"),
        ("git branch -D spare", "refs/heads/spare was moved while it ran"),
        (
            "git update-ref refs/arborist/landing/main HEAD",
            "refs/arborist/landing/main was moved while it ran",
        ),
        (
            "git update-ref refs/heads/arborist/task/main/T2 main",
            "arborist/task/main/T2 was moved while it ran",
        ),
        ("git config alias.x '!evil'", "config was changed while it ran"),
        (
            "h=$(git rev-parse --git-common-dir)/hooks; mkdir -p \"$h\"; echo evil > \"$h/post-merge\"",
            "the hook post-merge was added while it ran",
        ),
    ];
    for (trespass, said) in table {
        let orchard = content();
        orchard.git(["branch", "spare"]).succeeds();
        orchard.git(["config", "arborist.merge.resolve-attempts", "1"]).succeeds();
        orchard.agent(&format!("{trespass}; echo both > a.txt"));
        let state = || {
            let refs = orchard.git(["for-each-ref", "refs/heads", "refs/arborist/landing"]).answer();
            (refs, orchard.git(["config", "--local", "--list"]).answer())
        };
        let before = state();
        orchard.merge(&["T2"]).exits(2).out("1 escalated (T2)");
        orchard.merge(&["status", "T2"]).succeeds().out(said);
        assert_eq!(state(), before, "{trespass}");
        assert!(!orchard.path(".git/hooks/post-merge").exists());
    }
}

#[test]
fn commits_of_a_resolving_agent_are_folded_and_saved() {
    let orchard = content();
    orchard.agent("echo both > a.txt; git commit -qam mine");
    orchard.merge(&["T2"]).succeeds().out("1 landed (T2)");
    assert_eq!(orchard.show("main", "a.txt"), "both");
    let saved = orchard.git(["for-each-ref", "--format=%(subject)", "refs/arborist/saved/main/T2"]).answer();
    assert_eq!(saved, "mine");
    assert!(!orchard.git(["log", "--format=%s", "main"]).answer().contains("mine"));
}
