//! A reviewer that works in the checkout may only read: what it changes is put back, and its word does not count.

use arborist_testkit::{TestRepo, pairs};

/// A reviewer that does this the first time, and only approves afterwards.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.write("kept.txt", "kept\n");
    repo.commit("a plan\n");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) [ -e \"$ROOT/once\" ] || {{ touch \"$ROOT/once\"; {deed}; }}; echo APPROVED ;; *) echo work > work.txt ;; esac"
    ));
    repo.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
    repo
}

const DEEDS: [(&str, &str); 4] = [
    ("echo more >> work.txt; echo new > new.txt; rm kept.txt", "it changed files that it may only read:"),
    ("echo more >> work.txt; git add -A", "it changed files that it may only read: work.txt"),
    ("echo more >> work.txt; git commit -qam mine", "it made commits"),
    ("git config core.editor evil", "config was changed while an agent or a command ran"),
];

#[test]
fn changes_of_a_reviewer_are_undone_and_it_is_called_again() {
    for ((deed, words), place) in pairs(&DEEDS, &[[].as_slice(), &["--isolate"]]) {
        let repo = repo(deed);
        repo.arborist(["gardener"].iter().chain(place)).succeeds().err("trying again").err(words);
        assert_eq!(repo.calls(), 3, "{deed}: one who works, two reviews");
        let files = repo.git(["ls-tree", "--name-only", "HEAD"]).answer();
        assert_eq!(files, "kept.txt\nspec\ntask-tree.json\nwork.txt", "{deed}");
        assert_eq!(repo.git(["show", "HEAD:work.txt"]).answer(), "work", "{deed}");
        assert_eq!(repo.read("work.txt"), "work\n", "{deed}");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{deed}");
        let log = repo.git(["log", "--format=%s"]).answer();
        assert!(!log.contains("mine") && !log.contains("rejected"), "{deed}: {log}");
    }
}

#[test]
fn changes_of_a_reviewer_are_saved() {
    let repo = repo("echo more >> work.txt");
    repo.arborist(["gardener"]).succeeds();
    let kept = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(repo.git(["show", &format!("{kept}:work.txt")]).answer(), "work\nmore");
}

#[test]
fn a_file_of_the_user_saved_during_a_review_can_be_restored_with_the_printed_command() {
    let repo = repo("echo mine > notes.txt");
    let said = repo.arborist(["gardener"]).succeeds().matches_snapshot().stderr();
    assert!(!repo.path("notes.txt").exists());
    let (_, command) = said.split_once("if it is yours, run: git ").unwrap();
    let words: Vec<&str> = command.lines().next().unwrap().split_whitespace().collect();
    repo.git(words).succeeds();
    assert_eq!(repo.read("notes.txt"), "mine\n");
    let apart = self::repo("echo more >> work.txt");
    let apart = apart.arborist(["gardener", "--isolate"]).succeeds().matches_snapshot();
    apart.never("git restore");
}

#[test]
fn uncommitted_changes_of_the_user_survive_a_reviewer_that_overwrites_them() {
    let repo = repo("echo x > notes.txt; echo x > staged.txt; git add -A; rm kept.txt");
    repo.write("notes.txt", "mine\n");
    repo.write("staged.txt", "mine\n");
    repo.git(["add", "staged.txt"]).succeeds();
    repo.write("staged.txt", "mine, and more\n");
    let before = repo.git(["status", "--porcelain"]).answer();
    repo.arborist(["gardener", "--allow-dirty"]).succeeds().matches_snapshot();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), before);
    assert_eq!(repo.git(["show", ":staged.txt"]).answer(), "mine");
    assert_eq!(
        (repo.read("notes.txt"), repo.read("staged.txt")),
        ("mine\n".into(), "mine, and more\n".into())
    );
}

#[test]
fn the_approval_of_a_reviewer_that_always_changes_files_does_not_count() {
    let repo = repo("rm \"$ROOT/once\"; echo x > x.txt");
    let said = repo.arborist(["gardener", "--max-retries", "1"]).exits(2);
    said.matches_snapshot();
    assert_eq!(repo.calls(), 4, "one who works, three reviews");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_missing_verdict_and_a_budget_that_the_runner_cannot_measure_are_reported() {
    let repo = repo("");
    repo.agent("case \"$prompt\" in Review*) [ $n = 1 ] && echo 'looks fine to me' || echo APPROVED ;; *) echo $n > work.txt ;; esac");
    repo.arborist(["garden", "--max-cost", "5"]).succeeds().matches_snapshot();
    repo.arborist(["garden", "-m", "more", "--new-run", "--max-time", "500"])
        .succeeds()
        .never("limits on costs and tokens have no effect");
}

#[test]
fn a_tracked_configuration_that_changes_the_reviewer_needs_approval() {
    for settings in ["[steps.review]\nrunner = \"demo\"\n", "[steps.review]\nfallback = [\"demo\"]\n"] {
        let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", arborist_testkit::WORKER);
        repo.write(".arborist/config.toml", settings);
        repo.commit("settings\n");
        repo.arborist(["garden"]).exits(2).matches_snapshot();
        assert_eq!(repo.calls(), 0);
        repo.arborist(["garden", "--yes"]).succeeds();
    }
}

#[test]
fn text_in_utf_16_is_shown_to_the_reviewer() {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.commit("a plan\n");
    // "evil\n" with a byte order mark, and without one.
    repo.agent(
        r#"case "$prompt" in Review*) echo APPROVED; exit ;; esac
printf '\377\376e\0v\0i\0l\0 \0o\0n\0e\0\n\0' > one.ps1
printf '\0e\0v\0i\0l\0 \0t\0w\0o\0\n' > two.ps1"#,
    );
    repo.arborist(["gardener"]).succeeds();
    let review = repo.prompt(1);
    assert!(review.contains("evil one") && review.contains("+evil two"), "{review}");
}
