//! Uncommitted work in the user's checkout while agents work elsewhere: what an agent undoes there is kept and named.

use arborist_testkit::TestRepo;
use serde_json::Value;

const MODES: [&[&str]; 3] = [&["--jobs", "2"], &["--session-branch"], &["--session-branch", "--isolate"]];

/// A repository with uncommitted changes: a tracked file, a staged one with further edits, and an untracked one.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "- [ ] T001 one\n");
    repo.write("a.txt", "committed\n");
    repo.write("staged.txt", "committed\n");
    repo.commit("a plan\n");
    let user = repo.path("");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"\n\
         cd '{}' && {{ {deed}\n}} >&2",
        user.display()
    ));
    repo.write("a.txt", "mine\n");
    repo.write("staged.txt", "staged\n");
    repo.git(["add", "staged.txt"]).succeeds();
    repo.write("staged.txt", "edited further\n");
    repo.write("new.txt", "untracked\n");
    repo
}

fn moved(repo: &TestRepo, args: &[&str], code: i32) -> Vec<String> {
    let printed = repo.arborist([&["gardener", "--json"], args].concat()).exits(code).stdout();
    let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let words = last["summary"]["moved_refs"].as_array().unwrap();
    words.iter().map(|words| words.as_str().unwrap().to_owned()).collect()
}

fn saved(repo: &TestRepo) -> String {
    repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer()
}

#[test]
fn uncommitted_work_that_an_agent_resets_is_saved_and_reported() {
    for args in MODES {
        let repo = repo("git reset -q --hard; git clean -fdq");
        let moved = moved(&repo, args, 0);
        assert_eq!(moved.len(), 1, "{args:?}: {moved:?}");
        for word in ["a.txt, new.txt, staged.txt", "git stash apply refs/arborist/saved/checkout/"] {
            assert!(moved[0].contains(word), "{word}: {moved:?}");
        }
        let name = saved(&repo);
        assert_eq!(repo.git(["show", &format!("{name}^2:staged.txt")]).answer(), "staged");
        repo.git(["stash", "apply", &name]).succeeds();
        assert_eq!(repo.read("a.txt") + &repo.read("staged.txt"), "mine\nedited further\n");
        assert_eq!(repo.read("new.txt"), "untracked\n");
    }
}

#[test]
fn uncommitted_work_is_saved_even_if_the_run_fails_and_the_ref_is_deleted() {
    let forget = "git for-each-ref --format='delete %(refname)' refs/arborist/saved | git update-ref --stdin";
    let repo = repo(&format!("git checkout -q .; {forget}; exit 1"));
    let moved = moved(&repo, &["--jobs", "2", "--max-retries", "1"], 1);
    assert!(moved[0].contains("(a.txt, staged.txt)") || moved[0].contains("a.txt"), "{moved:?}");
    assert_eq!(repo.git(["show", &format!("{}:a.txt", saved(&repo))]).answer(), "mine");
}

#[test]
fn unchanged_uncommitted_work_is_not_reported_and_leaves_no_ref() {
    let commit = "git commit -qam mine --no-verify";
    for (args, deed) in [(MODES[0], "true"), (MODES[1], "true"), (MODES[1], commit)] {
        let repo = repo(deed);
        let named = moved(&repo, args, 0);
        assert!(named.iter().all(|line| !line.contains("saved/")), "{args:?}: {named:?}");
        assert_eq!(saved(&repo), "", "{args:?}");
        assert!(repo.read("new.txt").starts_with("untracked\n"));
    }
}

#[test]
fn uncommitted_work_that_is_overwritten_is_saved_and_reported() {
    let overwrite = "echo garbage | tee a.txt > new.txt; : > staged.txt; git add staged.txt";
    for args in MODES {
        let repo = repo(overwrite);
        let moved = moved(&repo, args, 0);
        let moved: Vec<&String> = moved.iter().filter(|words| words.contains("saved/")).collect();
        let name = saved(&repo);
        let wanted = format!(
            "uncommitted files in your checkout changed since the run began (a.txt, new.txt, staged.txt); \
             the versions from its start are kept in {name}"
        );
        assert_eq!(moved, [&wanted], "{args:?}");
        let read = |path: &str| repo.git(["show", &format!("{name}{path}")]).answer();
        assert_eq!([":a.txt", ":new.txt", "^2:staged.txt"].map(read), ["mine", "untracked", "staged"]);
        // The user may have edited the files, so they stay.
        assert_eq!(repo.read("a.txt"), "garbage\n", "{args:?}");
    }
}

#[test]
fn uncommitted_work_that_is_partly_undone_and_overwritten_is_reported_in_one_line() {
    let repo = repo("git checkout -q a.txt; echo garbage > new.txt");
    let moved = moved(&repo, &["--jobs", "2"], 0);
    assert_eq!(moved.len(), 1, "{moved:?}");
    assert!(moved[0].contains("undone (a.txt) and other uncommitted files changed (new.txt)"));
}

#[test]
fn resuming_a_session_in_its_worktree_saves_uncommitted_work_in_the_checkout() {
    let repo = repo("git reset -q --hard; git clean -fdq");
    repo.git(["stash", "-q", "-u"]).succeeds();
    let fails = ["gardener", "--session-branch", "--test-command", "test -e ok", "--max-retries", "1"];
    repo.git(["config", "arborist.test.allow-red", "true"]).succeeds();
    repo.arborist(fails).exits(1);
    repo.write("a.txt", "mine again\n");
    let listed =
        repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist/tasks"]).answer();
    let id = listed.rsplit_once('/').unwrap().1.to_owned();
    repo.wait(5);
    repo.arborist(["session", "resume", &id, "--", "--retry-failed", "--test-command", "true"])
        .succeeds()
        .out("uncommitted changes in your checkout were undone during the run (a.txt)");
    assert_eq!(repo.git(["show", &format!("{}:a.txt", saved(&repo))]).answer(), "mine again");
}

/// A clean repository with two tasks, whose agents do this once in the user's checkout.
fn clean_repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("tasks.md", "## Phase 1: Work\n\n- [ ] T001 one\n- [ ] T002 two\n");
    repo.write("a.txt", "committed\n");
    repo.write("b.txt", "committed\n");
    repo.write("hidden.txt", "committed\n");
    repo.commit("a plan\n");
    let user = repo.path("");
    repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"\n\
         [ $ARBORIST_TASK = T001 ] || exit 0\ncd '{}' && {{ {deed}\n}} >&2",
        user.display()
    ));
    repo
}

#[test]
fn index_flags_that_hide_changes_are_cleared_and_reported() {
    let deed = "git update-index --assume-unchanged a.txt; git update-index --skip-worktree b.txt";
    for args in [&[][..], &["--jobs", "2"], &["--session-branch"]] {
        let repo = clean_repo(deed);
        repo.git(["update-index", "--assume-unchanged", "hidden.txt"]).succeeds();
        let moved = moved(&repo, args, 0);
        let is_named = |words: &String| words.contains("was set for a.txt, b.txt in your checkout");
        assert!(moved.iter().any(is_named), "{args:?}: {moved:?}");
        let listed = repo.git(["ls-files", "-v", "a.txt", "b.txt", "hidden.txt"]).answer();
        assert_eq!(listed, "H a.txt\nH b.txt\nh hidden.txt", "{args:?}");
        repo.write("a.txt", "mine\n");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), " M a.txt", "{args:?}");
    }
}

#[test]
fn files_that_an_agent_stages_in_the_users_checkout_are_reported() {
    let deed =
        "x=$(echo EVIL | git hash-object -w --stdin)\ngit update-index --add --cacheinfo 100644,$x,evil.txt";
    for args in MODES {
        let repo = clean_repo(deed);
        repo.write("a.txt", "staged before\n");
        repo.git(["add", "a.txt"]).succeeds();
        let moved = moved(&repo, args, 0);
        let wanted = "evil.txt was staged in your checkout during the run";
        assert_eq!(moved, [wanted], "{args:?}");
        // It may have been the user, so it stays.
        assert!(repo.git(["ls-files", "evil.txt"]).answer() == "evil.txt", "{args:?}");
    }
}

#[test]
fn a_checkout_that_an_agent_switches_to_another_branch_is_reported() {
    for args in [&["--session-branch"][..], &["--jobs", "2"]] {
        let repo = clean_repo("git symbolic-ref HEAD refs/heads/zzz; git update-ref refs/heads/zzz main");
        let printed = repo.arborist([&["gardener", "--json"], args].concat()).stdout();
        let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        let moved = last["summary"]["moved_refs"].to_string();
        let wanted = "HEAD of your checkout was switched from main to zzz during the run";
        assert!(moved.contains(wanted), "{args:?}: {moved}");
    }
}

#[test]
fn landings_and_commits_in_the_checkout_are_not_reported_as_staged() {
    let repo = clean_repo("echo mine > mine.txt; git add mine.txt; git commit -qm mine --no-verify");
    let moved = moved(&repo, &["--jobs", "2"], 0);
    assert!(moved.iter().all(|words| !words.contains("staged")), "{moved:?}");
}
