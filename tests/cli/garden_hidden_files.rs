//! Files that git is told not to look at, that a sparse checkout leaves out, or that belong to a submodule: what an agent does
//! there is committed or said to be not, and what the user has there stays out.

use std::fs;

use arborist_testkit::TestRepo;

/// A repository with `d/g` and `e/f`, and an agent that does this.
fn repo(deed: &str) -> TestRepo {
    let repo = TestRepo::init();
    repo.write("task-tree.json", r#"{"nodes": {"T1": {"id": "T1", "name": "a"}}, "root_ids": ["T1"]}"#);
    repo.write("d/g", "old\n");
    repo.write("e/f", "old\n");
    repo.commit("a plan\n");
    repo.agent(&format!("case \"$prompt\" in Review*) echo APPROVED ;; *) {deed} ;; esac"));
    repo
}

#[test]
fn agent_changes_to_assume_unchanged_files_are_committed_and_those_of_the_user_are_not() {
    for mark in ["--skip-worktree", "--assume-unchanged"] {
        let repo = repo("echo new > d/g");
        repo.git(["update-index", mark, "d/g", "e/f"]).succeeds();
        repo.write("e/f", "mine\n");
        repo.arborist(["gardener"]).succeeds();
        assert_eq!(repo.git(["show", "HEAD:d/g"]).answer(), "new", "{mark}");
        assert_eq!(repo.git(["show", "HEAD:e/f"]).answer(), "old", "{mark}");
        assert_eq!(repo.read("e/f"), "mine\n", "{mark}");
    }
}

#[test]
fn work_outside_of_a_sparse_checkout_is_committed() {
    let repo = repo("mkdir -p d; echo new > d/g; echo new > d/h");
    repo.git(["sparse-checkout", "set", "--cone", "e"]).succeeds();
    assert!(!repo.path("d/g").exists());
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(repo.git(["show", "HEAD:d/g", "HEAD:d/h"]).answer(), "new\nnew");
    assert_eq!(repo.git(["show", "HEAD:e/f"]).answer(), "old");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn changes_in_a_submodule_fail_the_attempt_and_are_reported() {
    let repo = repo("echo new > sm/g");
    let _module = add_submodule(&repo);
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1).matches_snapshot();
    assert_eq!(repo.read("sm/g"), "new\n", "nothing is lost");
}

/// Adds a submodule `sm` with a file `g`, and returns its repository.
fn add_submodule(repo: &TestRepo) -> TestRepo {
    let other = TestRepo::init();
    other.write("g", "old\n");
    other.commit("a module\n");
    let url = other.path("").display().to_string();
    repo.git(["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "sm"]).succeeds();
    repo.commit("a submodule\n");
    other
}

const IN_SUBMODULE: &str = "changed files in the submodule 'sm'";

#[test]
fn changes_in_a_submodule_fail_every_attempt_until_they_are_undone() {
    let repo = repo("echo new > sm/g; echo new > d/g");
    let _module = add_submodule(&repo);
    let said = repo.arborist(["gardener"]).exits(1);
    assert_eq!(said.stderr().matches(IN_SUBMODULE).count(), repo.calls(), "{}", said.stderr());
    let calls = repo.calls();
    repo.arborist(["gardener", "--retry-failed", "--max-retries", "1"]).exits(1).err(IN_SUBMODULE);
    assert_eq!(repo.calls(), calls + 1, "the next run compares with the same state");
    repo.git(["-C", "sm", "checkout", "-q", "g"]).succeeds();
    repo.agent("case \"$prompt\" in Review*) echo APPROVED ;; *) echo new > d/g ;; esac");
    repo.arborist(["gardener", "--retry-failed"]).succeeds();
}

/// The agent commits in the submodule once, and works beside it in each attempt.
const COMMIT_IN_SUBMODULE: &str = "[ -e \"$ROOT/once\" ] || { : > \"$ROOT/once\"; cd sm; echo new > g; git -c user.name=a -c user.email=a@a commit -qam mine; cd ..; }; echo \"$ARBORIST_TASK$(cat d/g)\" > d/g";

#[test]
fn a_commit_in_a_submodule_fails_every_attempt_until_the_submodule_is_restored() {
    for options in [&[][..], &["--isolate"]] {
        let repo = repo(COMMIT_IN_SUBMODULE);
        let _module = add_submodule(&repo);
        repo.git(["config", "--global", "protocol.file.allow", "always"]).succeeds();
        let recorded = repo.git(["rev-parse", "HEAD:sm"]).answer();
        let args = ["gardener", "--max-retries", "2"];
        let said = repo.arborist(args.iter().chain(options)).exits(1).never("made a repository");
        let words = "committed or checked out another commit in a submodule: 'sm' is at ";
        assert_eq!(said.stderr().matches(words).count(), 2, "{}", said.stderr());
        assert!(said.stderr().contains(&format!("git -C 'sm' checkout {recorded}")), "{}", said.stderr());
        if !options.is_empty() {
            continue;
        }
        assert!(said.stderr().contains("T1 attempt 2: an earlier attempt committed"), "{}", said.stderr());
        let commit = repo.git(["-C", "sm", "rev-parse", "HEAD"]).answer();
        assert!(commit != recorded && said.stderr().contains(&commit), "it is left there, and named");
        let args = ["gardener", "--retry-failed", "--max-retries", "1"];
        repo.arborist(args).exits(2).err("there are uncommitted changes: sm");
        repo.arborist(args.iter().chain(&["--allow-dirty"])).exits(1).err(words);
        repo.git(["-C", "sm", "checkout", "-q", &recorded]).succeeds();
        repo.arborist(["gardener", "--retry-failed"]).succeeds();
        assert_eq!(repo.git(["rev-parse", "HEAD:sm"]).answer(), recorded);
    }
}

#[test]
fn a_commit_of_the_user_in_a_submodule_fails_no_attempt() {
    let repo = repo("echo new > d/g");
    let _module = add_submodule(&repo);
    repo.write("sm/g", "mine\n");
    repo.git(["-C", "sm", "commit", "-qam", "mine"]).succeeds();
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), " M sm");
}

#[test]
fn changes_of_the_user_in_a_submodule_fail_no_attempt_unless_the_agent_adds_to_them() {
    let repo = repo("echo new > d/g");
    let _module = add_submodule(&repo);
    repo.write("sm/g", "mine\n");
    repo.arborist(["gardener", "--allow-dirty"]).succeeds();
    assert_eq!(repo.read("sm/g"), "mine\n");
    let repo = self::repo("echo new > d/g; echo more >> sm/g");
    let _module = add_submodule(&repo);
    repo.write("sm/g", "mine\n");
    repo.arborist(["gardener", "--allow-dirty", "--max-retries", "2"]).exits(1).err(IN_SUBMODULE);
}

#[test]
fn files_in_the_folder_of_a_submodule_that_is_not_checked_out_fail_the_attempt() {
    let repo = repo("mkdir -p sm; echo new > sm/g; echo new > d/g");
    let _module = add_submodule(&repo);
    repo.git(["submodule", "--quiet", "deinit", "-f", "sm"]).succeeds();
    std::fs::remove_dir_all(repo.path(".git/modules/sm")).unwrap();
    for options in [&["--isolate"][..], &[]] {
        repo.arborist(["gardener", "--retry-failed"].iter().chain(options)).exits(1).err(IN_SUBMODULE);
    }
    let tree = repo.git(["log", "--format=%s", "main"]).answer();
    assert!(!tree.contains("@complete"), "{tree}");
}

#[test]
fn a_worktree_with_changes_in_assume_unchanged_files_is_not_removed() {
    let repo = repo("true");
    for (mark, task) in [("--skip-worktree", "A"), ("--assume-unchanged", "B")] {
        repo.arborist(["worktree", "add", "--unplanned", task]).succeeds();
        let place = repo.arborist(["worktree", "path", task]).answer();
        repo.git(["-C", &place, "update-index", mark, "d/g"]).succeeds();
        std::fs::write(format!("{place}/d/g"), "mine\n").unwrap();
        repo.arborist(["worktree", "remove", task]).exits(1).matches_snapshot();
        repo.arborist(["cleanup", "--older-than", "0"]).succeeds().matches_snapshot();
        assert_eq!(std::fs::read_to_string(format!("{place}/d/g")).unwrap(), "mine\n", "{mark}");
    }
}

#[test]
fn ignored_files_of_the_user_are_not_committed_when_a_task_stops_ignoring_them() {
    for deed in [": > .gitignore", "git add -f .env local/old", "git add -Af; git commit -qm mine"] {
        let repo = repo(&format!("echo new > d/g; echo new > local/new; touch .env; {deed}"));
        repo.write(".gitignore", ".env\nlocal/\n");
        repo.commit("rules\n");
        repo.write(".env", "mine\n");
        repo.write("local/old", "mine\n");
        repo.arborist(["gardener"]).succeeds().err("are not committed: .env, local/old");
        let tracked = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
        assert!(!tracked.contains(".env") && !tracked.contains("local/old"), "{deed}: {tracked}");
        assert_eq!(tracked.contains("local/new"), !deed.contains(".env"), "{deed}: {tracked}");
        assert_eq!(repo.git(["log", "--format=%h", "main", "--", ".env", "local/old"]).answer(), "");
        assert_eq!(repo.git(["ls-files", ".env", "local/old"]).answer(), "");
        assert_eq!(repo.read(".env") + &repo.read("local/old"), "mine\nmine\n");
    }
}

#[test]
fn a_test_that_changes_a_submodule_fails_and_its_change_is_not_taken_for_one_of_the_user() {
    for (options, deed) in [
        (&[][..], "echo test > sm/g"),
        (&["--isolate"], "echo test > sm/g"),
        (&[], "git -C sm -c user.name=a -c user.email=a@a commit -q --allow-empty -m test"),
    ] {
        let repo = repo("echo new > d/g");
        let _module = add_submodule(&repo);
        repo.git(["config", "--global", "protocol.file.allow", "always"]).succeeds();
        let test = format!("grep -q old d/g || {{ {deed}; }}");
        let args = ["gardener", "--max-retries", "2", "--sandbox", "off", "--test-command", &test];
        let said = repo.arborist(args.iter().chain(options)).exits(1);
        let said = said.err("the tests changed files or checked out another commit in a submodule");
        said.err("T1 attempt 2: an earlier attempt ");
    }
}

#[test]
fn new_files_of_a_test_in_a_submodule_do_not_fail_it() {
    let repo = repo("echo new > d/g");
    let _module = add_submodule(&repo);
    repo.arborist(["gardener", "--test-command", "echo cache > sm/cache"]).succeeds();
}

#[test]
fn changes_in_a_submodule_hidden_by_index_flags_fail_the_attempt() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        for (deed, options) in
            [("echo new > sm/g", &[][..]), ("echo new > sm/g", &["--isolate"]), ("rm sm/g", &[])]
        {
            let repo = repo(&format!("git -C sm update-index {mark} g; {deed}; echo new > d/g"));
            let _module = add_submodule(&repo);
            let run = ["gardener", "--max-retries", "1"];
            repo.arborist(run.iter().chain(options)).exits(1).err(IN_SUBMODULE);
        }
    }
}

#[test]
fn index_flags_of_the_user_in_a_submodule_fail_no_attempt() {
    for mark in ["--assume-unchanged", "--skip-worktree"] {
        let repo = repo("echo new > d/g");
        let _module = add_submodule(&repo);
        repo.git(["-C", "sm", "update-index", mark, "g"]).succeeds();
        repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
        assert_ne!(repo.git(["-C", "sm", "ls-files", "-v", "g"]).answer(), "H g", "the mark is kept");
    }
}

#[test]
fn a_sparse_checkout_of_a_submodule_fails_no_attempt() {
    let repo = repo("echo new > d/g");
    let _module = add_submodule(&repo);
    repo.git(["-C", "sm", "config", "core.sparseCheckout", "true"]).succeeds();
    repo.git(["-C", "sm", "update-index", "--skip-worktree", "g"]).succeeds();
    fs::remove_file(repo.path("sm/g")).unwrap();
    repo.arborist(["gardener", "--max-retries", "1"]).succeeds();
}

#[test]
fn uncommitted_work_of_the_user_in_a_submodule_is_saved_if_an_agent_or_test_changes_it() {
    let deed = "echo evil > sm/g; rm -f sm/notes sm/staged";
    for by_test in [false, true] {
        let repo = if by_test { repo("echo new > d/g") } else { repo(&format!("echo new > d/g; {deed}")) };
        let _module = add_submodule(&repo);
        if by_test {
            let test = format!("grep -q old d/g || {{ {deed}; }}; true");
            repo.git(["config", "arborist.test-command", &test]).succeeds();
        }
        repo.write("sm/g", "mine\n");
        repo.write("sm/notes", "notes\n");
        repo.write("sm/staged", "staged\n");
        repo.git(["-C", "sm", "add", "staged"]).succeeds();
        let run = repo.arborist(["gardener", "--allow-dirty", "--max-retries", "1"]);
        let said = run.report();
        assert_eq!(run.code(), 1, "{said}");
        assert!(said.contains("the submodule 'sm'") && said.contains("notes"), "{said}");
        let saved =
            repo.git(["-C", "sm", "for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
        assert!(said.contains(&saved) && !saved.is_empty(), "{said}");
        for (file, content) in [("g", "mine"), ("notes", "notes"), ("staged", "staged")] {
            assert_eq!(repo.git(["-C", "sm", "show", &format!("{saved}:{file}")]).answer(), content);
        }
    }
}

#[test]
fn uncommitted_work_of_the_user_in_a_nested_submodule_is_saved() {
    let repo = repo("echo new > d/g; rm sm/inner/notes");
    let module = add_submodule(&repo);
    let url = module.path("").display().to_string();
    let add = ["-C", "sm", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", &url, "inner"];
    repo.git(add).succeeds();
    repo.git(["-C", "sm", "commit", "-qm", "inner"]).succeeds();
    repo.commit("a submodule of the submodule\n");
    repo.write("sm/inner/notes", "notes\n");
    let run = repo.arborist(["gardener", "--max-retries", "1"]);
    assert!(run.report().contains("git -C 'sm/inner' stash apply refs/"), "{}", run.report());
    let saved = repo.git(["-C", "sm/inner", "for-each-ref", "--format=%(refname)", "refs/arborist"]).answer();
    repo.git(["-C", "sm/inner", "stash", "apply", &saved]).succeeds();
    assert_eq!(repo.read("sm/inner/notes"), "notes\n");
}

#[test]
fn unchanged_work_of_the_user_in_a_submodule_leaves_no_saved_ref_there() {
    let repo = repo("echo new > d/g");
    let _module = add_submodule(&repo);
    repo.write("sm/g", "mine\n");
    repo.arborist(["gardener", "--allow-dirty"]).succeeds().never("sm");
    assert_eq!(repo.git(["-C", "sm", "for-each-ref", "refs/arborist"]).answer(), "");
}

#[test]
fn a_run_in_a_checkout_that_contains_an_untracked_repository_is_refused() {
    for is_born in [true, false] {
        let repo = repo("rm -rf tool; echo new > d/g");
        repo.git(["init", "-q", "tool"]).succeeds();
        repo.write("tool/notes", "mine\n");
        if is_born {
            repo.git(["-C", "tool", "add", "-A"]).succeeds();
            repo.git(["-C", "tool", "commit", "-qm", "mine"]).succeeds();
        }
        repo.arborist(["gardener", "--allow-dirty"]).exits(2).matches_snapshot();
        assert_eq!((repo.calls(), repo.read("tool/notes").as_str()), (0, "mine\n"));
        assert_eq!(repo.git(["for-each-ref", "refs/arborist/saved"]).answer(), "");
        repo.arborist(["gardener", "--session-branch"]).succeeds();
        assert_eq!(repo.read("tool/notes"), "mine\n");
    }
}

#[test]
fn a_deleted_repository_of_the_user_is_not_reported_as_saved() {
    let repo = repo("echo new > d/g; rm -rf \"$ROOT/repo/tool\"");
    repo.git(["clone", "-q", ".", "tool"]).succeeds();
    let run = repo.arborist(["gardener", "--session-branch", "--sandbox", "off"]);
    assert!(run.report().contains("are not saved: tool"), "{}", run.report());
    assert!(!run.report().contains("they are saved"), "{}", run.report());
}

#[test]
fn changed_ignored_files_in_a_submodule_are_listed_for_the_reviewer() {
    for (deed, named) in
        [("echo x > sm/build/new", "sm/build/new"), ("echo x > sm/build/old", "sm/build/old")]
    {
        let repo = repo("");
        let _module = add_submodule(&repo);
        repo.write(".git/modules/sm/info/exclude", "build/\n");
        repo.write("sm/build/old", "old\n");
        repo.agent(&format!(
            "case \"$prompt\" in Review*) cp \"$ROOT/prompts/$n\" \"$ROOT/review\"; echo APPROVED; exit ;; esac
echo new > d/g; {deed}"
        ));
        repo.arborist(["gardener"]).succeeds();
        let prompt = std::fs::read_to_string(repo.root().join("review")).unwrap();
        assert!(prompt.contains(named), "{deed}: {prompt}");
    }
}

#[test]
fn a_file_of_the_user_that_becomes_ignored_and_is_overwritten_is_saved_and_reported() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n", "");
    repo.agent(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo x > $ARBORIST_TASK.txt
case $ARBORIST_TASK in T001) echo notes.txt > .gitignore ;; *) echo other > notes.txt ;; esac",
    );
    repo.write("notes.txt", "mine\n");
    let run = repo.arborist(["gardener", "--allow-dirty", "--keep-going", "--max-retries", "1"]);
    let said = run.report();
    assert!(said.contains("changed since the run began (notes.txt)") && !said.contains("undone"), "{said}");
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved/checkout"]).answer();
    assert_eq!(repo.git(["show", &format!("{saved}:notes.txt")]).answer(), "mine");
}
