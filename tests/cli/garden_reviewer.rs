//! A reviewer that works in the checkout may only read: what it changes is put back, and its word does not count.

use arborist_testkit::Garden;

/// A reviewer that does this the first time, and only approves afterwards.
fn garden(deed: &str) -> Garden {
    let garden = Garden::sprout();
    garden.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    garden.write("kept.txt", "kept\n");
    garden.commit("a plan\n");
    garden.agent(&format!(
        "case \"$prompt\" in Review*) [ -e \"$ROOT/once\" ] || {{ touch \"$ROOT/once\"; {deed}; }}; echo APPROVED ;; *) echo work > work.txt ;; esac"
    ));
    garden.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
    garden
}

const DEEDS: [(&str, &str); 4] = [
    ("echo more >> work.txt; echo new > new.txt; rm kept.txt", "it changed what it may only read"),
    ("echo more >> work.txt; git add -A", "it changed what it may only read: work.txt"),
    ("echo more >> work.txt; git commit -qam mine", "it committed by itself"),
    ("git config core.editor evil", "config was changed while it ran"),
];

#[test]
fn what_a_reviewer_changed_is_put_back_and_it_is_asked_again() {
    for (deed, words) in DEEDS {
        for place in [[].as_slice(), &["--isolate"]] {
            let garden = garden(deed);
            garden.arborist(["gardener"].iter().chain(place)).succeeds().err("asked again").err(words);
            assert_eq!(garden.calls(), 3, "{deed}: one who works, two reviews");
            let files = garden.git(["ls-tree", "--name-only", "HEAD"]).answer();
            assert_eq!(files, "kept.txt\nspec\ntask-tree.json\nwork.txt", "{deed}");
            assert_eq!(garden.git(["show", "HEAD:work.txt"]).answer(), "work", "{deed}");
            assert_eq!(garden.read("work.txt"), "work\n", "{deed}");
            assert_eq!(garden.git(["status", "--porcelain"]).answer(), "", "{deed}");
            let log = garden.git(["log", "--format=%s"]).answer();
            assert!(!log.contains("mine") && !log.contains("rejected"), "{deed}: {log}");
        }
    }
}

#[test]
fn what_the_reviewer_made_of_it_is_kept() {
    let garden = garden("echo more >> work.txt");
    garden.arborist(["gardener"]).succeeds();
    let kept = garden.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(garden.git(["show", &format!("{kept}:work.txt")]).answer(), "work\nmore");
}

#[test]
fn a_file_that_the_user_saves_while_a_reviewer_runs_can_be_got_back_as_it_is_said() {
    let garden = garden("echo mine > notes.txt");
    let said = garden.arborist(["gardener"]).succeeds().shows().stderr();
    assert!(!garden.path("notes.txt").exists());
    let (_, command) = said.split_once("if you saved it: git ").unwrap();
    let words: Vec<&str> = command.lines().next().unwrap().split_whitespace().collect();
    garden.git(words).succeeds();
    assert_eq!(garden.read("notes.txt"), "mine\n");
    let apart = self::garden("echo more >> work.txt");
    let apart = apart.arborist(["gardener", "--isolate"]).succeeds().shows();
    apart.never("git restore");
}

#[test]
fn what_the_user_has_not_committed_is_safe_from_a_reviewer() {
    let garden = garden("echo x > notes.txt; echo x > staged.txt; git add -A; rm kept.txt");
    garden.write("notes.txt", "mine\n");
    garden.write("staged.txt", "mine\n");
    garden.git(["add", "staged.txt"]).succeeds();
    garden.write("staged.txt", "mine, and more\n");
    let before = garden.git(["status", "--porcelain"]).answer();
    garden.arborist(["gardener", "--allow-dirty"]).succeeds().shows();
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), before);
    assert_eq!(garden.git(["show", ":staged.txt"]).answer(), "mine");
    assert_eq!(
        (garden.read("notes.txt"), garden.read("staged.txt")),
        ("mine\n".into(), "mine, and more\n".into())
    );
}

#[test]
fn a_reviewer_that_always_writes_has_approved_nothing() {
    let garden = garden("rm \"$ROOT/once\"; echo x > x.txt");
    let said = garden.arborist(["gardener", "--max-retries", "1"]).exits(2);
    said.shows();
    assert_eq!(garden.calls(), 4, "one who works, three reviews");
    assert_eq!(garden.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_reviewer_without_a_verdict_is_said_to_have_given_none_and_a_budget_that_nobody_measures_is_told() {
    let garden = garden("");
    garden.agent("case \"$prompt\" in Review*) [ $n = 1 ] && echo 'looks fine to me' || echo APPROVED ;; *) echo $n > work.txt ;; esac");
    garden.arborist(["garden", "--max-cost", "5"]).succeeds().shows();
    garden
        .arborist(["garden", "-m", "more", "--new-run", "--max-time", "500"])
        .succeeds()
        .never("may not tell");
}

#[test]
fn a_repository_cannot_switch_the_review_off_in_silence() {
    for settings in ["[steps.review]\nrunner = \"demo\"\n", "[steps.review]\nfallback = [\"demo\"]\n"] {
        let garden = Garden::planned("tasks.md", "- [ ] T001 do a\n", arborist_testkit::WORKER);
        garden.write(".arborist/config.toml", settings);
        garden.commit("settings\n");
        garden.arborist(["garden"]).exits(2).shows();
        assert_eq!(garden.calls(), 0);
        garden.arborist(["garden", "--yes"]).succeeds();
    }
}
