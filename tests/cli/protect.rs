//! Protected files: a task changes them only with permission.

use arborist_testkit::{TestRepo, WORKER, pairs};

use crate::{test_workspace::TestWorkspace, turn_scripts};

const PLAN: &str = "- [ ] T001 do it\n";

/// A repository whose agent writes `work.txt` and runs `script`. Nothing is protected yet.
fn repo(plan: &str, script: &str) -> TestRepo {
    let file = if plan.starts_with('{') { "task-tree.json" } else { "tasks.md" };
    let worker = format!(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo x >> work.txt\n{script}\n;;\nesac"
    );
    let repo = TestRepo::planned(file, plan, &worker);
    repo.write("tests/old.sh", "true\n");
    repo.write("tests/other.sh", "true\n");
    repo.write("ci/run", "true\n");
    repo.commit("tests\n");
    repo
}

/// The same with a protected folder.
fn protected(plan: &str, script: &str) -> TestRepo {
    let repo = repo(plan, script);
    repo.git(["config", "arborist.protect", "tests/"]).succeeds();
    repo
}

const REFUSED: &str = "protected files were changed: tests/old.sh";

#[test]
fn an_attempt_that_changes_a_protected_file_fails_and_the_file_is_restored() {
    for args in [&["--jobs", "1"][..], &["--jobs", "2"]] {
        let script = "if test -e \"$ROOT/again\"; then cp tests/old.sh \"$ROOT/found\"; else\n\
            touch \"$ROOT/again\"; echo false > tests/old.sh; echo true > tests/new.sh; git add tests; fi";
        let repo = protected(PLAN, script);
        repo.arborist([&["gardener"], args].concat()).succeeds();
        assert_eq!(repo.calls(), 3, "two attempts and a review");
        assert!(repo.prompt(0).contains("must not change, move or delete"), "{}", repo.prompt(0));
        let feedback = repo.prompt(1);
        for part in [REFUSED, "[allow:tests/old.sh]", "--allow tests/old.sh", "they were restored"] {
            assert!(feedback.contains(part), "{part} in {feedback}");
        }
        assert_eq!(repo.read("../found"), "true\n", "the second attempt finds the file as it was");
        assert_eq!(repo.git(["show", "main:tests/old.sh"]).answer(), "true");
        assert_eq!(repo.git(["show", "main:tests/new.sh"]).answer(), "true");
        assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
        let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
        let saved = saved.lines().next().unwrap_or_default().to_owned();
        assert!(feedback.contains(&saved), "{saved} in {feedback}");
        assert_eq!(repo.git(["show", &format!("{saved}:tests/old.sh")]).answer(), "false");
    }
}

#[test]
fn a_protected_file_cannot_be_deleted_moved_or_replaced() {
    for script in [
        "rm tests/old.sh",
        "mv tests/old.sh moved.sh",
        "mv tests checks",
        "chmod +x tests/old.sh",
        "ln -sf other.sh tests/old.sh",
        "echo more >> tests/old.sh; git add tests; git commit -qm mine",
    ] {
        let repo = protected(PLAN, script);
        let ended = repo.arborist(["garden", "--max-retries", "1"]).exits(1);
        assert!(ended.stderr().contains(REFUSED), "{script}: {}", ended.stderr());
        assert_eq!(repo.git(["diff", "--stat", "HEAD", "--", "tests"]).answer(), "", "{script}");
        assert_eq!(
            repo.git(["ls-tree", "--name-only", "-r", "HEAD", "tests"]).answer(),
            "tests/old.sh\ntests/other.sh"
        );
        assert_eq!(repo.read("tests/old.sh"), "true\n", "{script}");
    }
}

#[test]
fn every_attempt_that_changes_a_protected_file_fails() {
    let repo = protected(PLAN, "echo false > tests/old.sh");
    repo.arborist(["garden", "--max-retries", "2"]).exits(1).matches_snapshot();
}

/// Two tasks, of which the first weakens the test that the second fails.
fn weakened() -> TestRepo {
    let repo = TestRepo::planned(
        "tasks.md",
        "- [ ] T001 [P] a\n- [ ] T002 [P] b\n",
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
date +%N > $ARBORIST_TASK.txt; test $ARBORIST_TASK = T002 || echo true > tests/old.sh",
    );
    repo.write("tests/old.sh", "test ! -e T002.txt\n");
    repo.commit("a test\n");
    repo.git(["config", "arborist.protect", "tests/"]).succeeds();
    repo
}

const WITH_TEST: [&str; 5] = ["gardener", "--max-retries", "1", "--test-command", "sh tests/old.sh"];

fn is_complete(repo: &TestRepo, task: &str) -> bool {
    repo.git(["log", "--all", "--format=%s"]).answer().contains(&format!("@{task}@complete)"))
}

#[test]
fn later_tasks_are_not_tested_with_a_test_that_a_failed_task_has_weakened() {
    for place in [&[][..], &["--session-branch"], &["--jobs", "2"]] {
        let repo = weakened();
        repo.arborist(WITH_TEST.iter().chain(place).chain(&["--keep-going"])).exits(1);
        assert!(!is_complete(&repo, "T002"), "{place:?}");
    }
    for next in [&["--only", "T002"][..], &["--new-run", "--only", "T002"]] {
        let repo = weakened();
        repo.arborist(WITH_TEST.iter().chain(&["--only", "T001"])).exits(1);
        repo.arborist(WITH_TEST.iter().chain(next)).exits(1);
        assert!(!is_complete(&repo, "T002"), "{next:?}");
    }
}

#[test]
fn protected_files_changed_in_a_killed_run_are_restored_before_the_next_task() {
    let deeds = [
        ("echo true > tests/old.sh", "tests/old.sh", "true"),
        ("echo 'echo APPROVED' > review.sh", "review.sh", "echo APPROVED"),
    ];
    for ((script, file, left), place) in pairs(&deeds, &[&[][..], &["--session-branch"]]) {
        let repo = weakened();
        repo.write("review.sh", "cat > /dev/null; echo 'REJECTED: no'\n");
        repo.write("tests/old.sh", if file == "review.sh" { "true\n" } else { "test ! -e T002.txt\n" });
        repo.commit("a reviewer\n");
        repo.agent(&format!(
            "date +%N > $ARBORIST_TASK.txt; test $ARBORIST_TASK = T002 || {{ {script}; git add -A; kill -9 $PPID; sleep 60; }}"
        ));
        repo.git(["config", "arborist.runners.judge.command", "sh\nreview.sh"]).succeeds();
        repo.git(["config", "arborist.steps.review.runner", "judge"]).succeeds();
        let _ = repo.arborist(WITH_TEST.iter().chain(place).chain(&["--only", "T001"]));
        let next = repo.arborist(WITH_TEST.iter().chain(place).chain(&["--only", "T002"]));
        assert_eq!(next.code(), 1, "{}", next.report());
        assert!(
            next.stderr().contains("files that a task must not change were restored"),
            "{}",
            next.report()
        );
        assert!(!is_complete(&repo, "T002"), "{file} {place:?}");
        let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
        let saved = saved.lines().next().unwrap_or_default().to_owned();
        assert_eq!(repo.git(["show", &format!("{saved}:{file}")]).answer(), left);
    }
}

#[test]
fn turn_commits_never_contain_changes_of_a_protected_file() {
    let repo = turn_scripts::repo(
        "claude",
        "opens; calls 1 'Do it'; echo x > a.txt; echo true > tests/old.sh; reads 1
calls 2 'Do more'; echo x > b.txt; reads 2; kill -9 $PPID; sleep 60",
    );
    repo.write("tests/old.sh", "false\n");
    repo.commit("a test\n");
    repo.git(["config", "arborist.protect", "tests/"]).succeeds();
    let _ = repo.arborist(["gardener"]);
    assert_eq!(repo.git(["show", "main:tests/old.sh"]).answer(), "false");
    turn_scripts::agent(&repo, "claude", "opens; calls 1 'Go on'; echo x > c.txt; answers 1; ends done");
    repo.arborist(["gardener"]).succeeds();
    assert_eq!(repo.git(["show", "main:tests/old.sh"]).answer(), "false");
    assert_eq!(repo.read("b.txt"), "x\n");
}

#[test]
fn uncommitted_changes_of_the_user_survive_the_restoring_of_a_protected_file() {
    let repo = protected(PLAN, "echo false > tests/old.sh");
    repo.write("tests/other.sh", "mine\n");
    repo.write("notes.txt", "mine\n");
    repo.arborist(["garden", "--allow-dirty", "--max-retries", "1"]).exits(1).err(REFUSED);
    assert_eq!((repo.read("tests/other.sh"), repo.read("notes.txt")), ("mine\n".into(), "mine\n".into()));
    assert_eq!(repo.read("tests/old.sh"), "true\n");
}

#[test]
fn files_behind_links_are_protected() {
    let deeds = [
        ("checks", "tests", "checks/", "echo false > tests/old.sh", "tests/old.sh"),
        ("checks", "tests", "checks", "echo false > checks/old.sh", "tests/old.sh"),
        ("checks", "tests", "checks/", "mkdir other; ln -sfn other checks", "checks"),
        ("checks", "tests", "checks/*.sh", "rm checks; mkdir checks; echo x > checks/old.sh", "checks"),
        ("ci/test.sh", "../tests/old.sh", "ci/", "echo false > tests/old.sh", "tests/old.sh"),
        ("top", ".", "top/tests", "echo false > tests/old.sh", "tests/old.sh"),
    ];
    let refused = pairs(&deeds, &["", "[allow:src]"]);
    let allowed = deeds.iter().step_by(2).map(|deed| (*deed, "[allow:PROTECTED]"));
    for ((link, target, protect, script, refused), allow) in refused.into_iter().chain(allowed) {
        let is_allowed = allow == "[allow:PROTECTED]";
        let allow = allow.replace("PROTECTED", protect);
        let repo = repo(&format!("- [ ] T001 {allow} do it\n"), script);
        std::os::unix::fs::symlink(target, repo.path(link)).unwrap();
        repo.commit("a link\n");
        repo.git(["config", "arborist.protect", protect]).succeeds();
        let run = repo.arborist(["garden", "--max-retries", "1"]);
        if is_allowed {
            run.succeeds();
            continue;
        }
        let words = format!("protected files were changed: {refused}");
        assert!(run.stderr().contains(&words), "{link} {protect} {script}: {}", run.report());
        assert_eq!(repo.read("tests/old.sh"), "true\n", "{script}");
        assert!(repo.path(link).is_symlink(), "{script}");
        assert_eq!(repo.git(["status", "--porcelain", "-uno"]).answer(), "", "{script}");
    }
}

#[test]
fn new_files_are_allowed_in_a_protected_folder() {
    let repo = protected(PLAN, "echo true > tests/new.sh; mkdir tests/more; echo true > tests/more/a.sh");
    repo.arborist(["garden"]).succeeds();
    assert_eq!(repo.git(["show", "HEAD:tests/new.sh"]).answer(), "true");
}

#[test]
fn the_plan_can_allow_a_task_to_change_protected_files() {
    let json = r#"{"nodes": {"T001": {"name": "do it", "allow": "tests/o*.sh"}}}"#;
    for plan in
        ["- [ ] T001 [allow:tests/old.sh] do it\n", "- [ ] T001 do it [allow:ci] [allow:tests/o*.sh]\n", json]
    {
        let repo = protected(plan, "echo more >> tests/old.sh");
        repo.arborist(["garden"]).succeeds();
        assert!(repo.prompt(0).contains("This task may change these of them: "), "{}", repo.prompt(0));
        let review = repo.prompt(1);
        assert!(review.contains("has permission to do so") && review.contains("- tests/old.sh"), "{review}");
        let log = repo.git(["log", "--format=%B"]).answer();
        assert!(
            log.contains("Protected files that were changed with permission:\n> tests/old.sh\n"),
            "{log}"
        );
        repo.arborist(["trailers", "check", "HEAD"]).succeeds();
    }
    let repo = protected("- [ ] T001 [allow:tests/other.sh] do it\n", "echo more >> tests/old.sh");
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).err(REFUSED);
}

#[test]
fn the_allow_option_permits_changes_of_a_protected_file() {
    for jobs in ["1", "2"] {
        let repo = protected(PLAN, "rm -f tests/old.sh");
        let run = ["gardener", "--jobs", jobs, "--max-retries", "1"];
        repo.arborist(run).exits(1).err(REFUSED);
        repo.arborist([&run[..], &["--retry-failed", "--allow", "tests/old.sh"]].concat()).succeeds();
        repo.git(["cat-file", "-e", "main:tests/old.sh"]).exits(128);
    }
}

#[test]
fn the_allow_option_still_applies_when_the_run_is_continued() {
    for (resume, jobs) in pairs(&[&["gardener", "--retry-failed"][..], &["session", "resume"]], &["1", "2"]) {
        let repo = protected(PLAN, "rm -f tests/old.sh; test -e \"$ROOT/ready\" || exit 1");
        let allow = ["--allow", ":(glob,icase)tests/O*.sh", "--allow", "ci"];
        let run = ["gardener", "--jobs", jobs, "--max-retries", "1"];
        let branch: &[&str] = if resume[0] == "session" { &["--session-branch"] } else { &[] };
        repo.arborist([&run[..], &allow[..], branch].concat()).exits(1);
        repo.write("../ready", "");
        if resume[0] == "session" {
            let list = repo.arborist(["session", "list", "--json"]).answer();
            let list: serde_json::Value = serde_json::from_str(&list).unwrap();
            let id = list["sessions"][0]["id"].as_str().unwrap().to_owned();
            repo.arborist([resume, &[&id]].concat()).succeeds();
        } else {
            repo.arborist([resume, &run[1..]].concat()).succeeds().err("--allow ci");
        }
    }
}

#[test]
fn a_permission_that_is_only_in_a_record_does_not_apply() {
    let repo = protected(PLAN, "rm -f tests/old.sh; test -e \"$ROOT/ready\" || exit 1");
    let run = ["gardener", "--max-retries", "1"];
    repo.arborist([&run[..], &["--allow", "tests/old.sh"]].concat()).exits(1);
    std::fs::remove_dir_all(repo.home().join(".local/state/git-arborist/approved")).unwrap();
    repo.write("../ready", "");
    repo.arborist([&run[..], &["--retry-failed"]].concat()).exits(1).err(REFUSED);
}

#[test]
fn protect_tests_protects_files_with_common_test_names() {
    let files =
        ["src/cart.test.ts", "pkg/test_cart.py", "a/b/tests/data.json", "cart_test.go", "conftest.py"];
    let others = ["src/cart.ts", ".github/workflows/ci.yml", "contest.py", "Cargo.lock"];
    for (files, is_protected) in [(&files[..], true), (&others, false)] {
        let repo = repo(PLAN, &format!("for file in {}; do echo more >> $file; done", files.join(" ")));
        for file in files {
            repo.write(file, "one\n");
        }
        repo.write(".arborist/config.toml", "protect = \"tests\"\n");
        repo.commit("files\n");
        let ended = repo.arborist(["garden", "--max-retries", "1"]);
        let told = ended.stderr();
        let told = told.split("protected files were changed: ").nth(1).unwrap_or_default();
        for file in files {
            assert_eq!(told.contains(file), is_protected, "{file}: {}", ended.stderr());
        }
        if is_protected {
            ended.exits(1)
        } else {
            ended.succeeds()
        };
    }
}

#[test]
fn a_tracked_configuration_adds_protected_files_but_removes_none() {
    for (script, refused) in [
        ("echo more >> tests/old.sh", Some(REFUSED)),
        ("echo more >> ci/run", Some("protected files were changed: ci/run")),
        ("echo more > tests.txt", None),
    ] {
        let repo = protected(PLAN, script);
        repo.write(".arborist/config.toml", "protect = [\"ci\", \":!tests/old.sh\"]\n");
        repo.commit("settings\n");
        let ended = repo.arborist(["garden", "--max-retries", "1"]);
        match refused {
            Some(refused) => ended.exits(1).err(refused),
            None => ended.succeeds(),
        };
    }
}

#[test]
fn an_unusable_pathspec_is_an_error_before_anything_runs() {
    for (key, plan) in [
        (":(nonsense)x", PLAN),
        ("../x", PLAN),
        (":!tests", PLAN),
        (":(attr:x)tests", PLAN),
        ("tests", "- [ ] T001 [allow:/etc] do it\n"),
    ] {
        let repo = repo(plan, "true");
        repo.git(["config", "arborist.protect", key]).succeeds();
        repo.arborist(["garden"]).exits(1).matches_snapshot();
        assert_eq!(repo.calls(), 0);
    }
}

#[test]
fn files_of_other_repositories_are_protected_too() {
    let workspace = TestWorkspace::of(&["backend"], "- [ ] T001 [repo:backend] an endpoint\n");
    workspace.agent(
        "case \"$prompt\" in\n \"Review\"*) echo APPROVED ;;\n *) echo more >> \"$(git ls-files | head -n 1)\" ;;\nesac",
    );
    workspace.git(["config", "arborist.protect", "*"]).succeeds();
    workspace
        .arborist(["gardener", "--max-retries", "1"])
        .exits(1)
        .err("protected files were changed: backend: ");
    let place =
        workspace.git_in(&workspace.clone_of("backend"), ["worktree", "list", "--porcelain"]).answer();
    let tops: Vec<&str> = place.lines().filter_map(|line| line.strip_prefix("worktree ")).collect();
    assert!(tops.len() > 1, "{place}");
    for top in tops {
        assert_eq!(
            std::fs::read_to_string(std::path::Path::new(top).join("kept.txt")).unwrap(),
            "backend",
            "{top}"
        );
    }
}

#[test]
fn a_permission_that_the_run_refuses_is_refused_by_a_dry_run() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", WORKER);
    for command in [&["gardener"][..], &["garden", "T001"]] {
        for allowed in ["**", "newer-tests"] {
            let said = repo.arborist([command, &["--allow", allowed]].concat()).exits(1).stderr();
            let foretold = repo.arborist([command, &["--dry-run", "--allow", allowed]].concat()).exits(1);
            assert_eq!(foretold.stderr(), said);
        }
    }
}

#[test]
fn a_path_that_looks_like_a_mistyped_permission_can_be_allowed() {
    let script = WORKER.replace("echo done", "echo changed > newer-tests/a");
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n", &script);
    repo.write("newer-tests/a", "as it was\n");
    repo.commit("Add tests\n");
    repo.git(["config", "arborist.protect", "newer-tests"]).succeeds();
    let said = repo.arborist(["gardener", "--allow", "newer-tests"]).exits(1);
    said.err("write fewer-tests, or ./newer-tests if a path is meant");
    repo.arborist(["gardener", "--allow", "./newer-tests"]).succeeds();
    assert_eq!(repo.git(["show", "main:newer-tests/a"]).answer(), "changed");
}

#[test]
fn permissions_of_a_plan_are_shown_before_they_are_used() {
    let repo = repo("- [ ] T001 [allow:tests/old.sh] do it\n- [ ] T002 more\n", "true");
    for args in [&["plan"][..], &["plan", "--check"], &["gardener", "--dry-run"]] {
        repo.arborist(args).succeeds().matches_snapshot();
    }
}

#[test]
fn a_permission_of_a_plan_must_name_paths() {
    let wide =
        [":!tests", ":^tests", ":(exclude)tests", "**", "*", ".", ":(glob)**", ":(glob)**/*", ":/", "?*"];
    for pathspec in wide {
        let repo = repo(&format!("- [ ] T001 [allow:{pathspec}] do it\n"), "true");
        repo.git(["config", "arborist.protect", "tests"]).succeeds();
        let refused = repo.arborist(["gardener"]).exits(1);
        refused.err(&format!("'{pathspec}' names no path; name the files or folders"));
        assert_eq!(repo.calls(), 0, "{pathspec}");
    }
}

#[test]
fn permissions_and_commands_that_a_changed_plan_adds_are_named() {
    let repo = repo("- [ ] T001 do it\n- [ ] T002 more\n", "date +%N > $ARBORIST_TASK.txt");
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.write(
        "tasks.md",
        "- [x] T001 do it\n- [ ] T002 [allow:tests/old.sh] more\n- [ ] T003 [allow:fewer-tests] new\n",
    );
    repo.arborist(["gardener"]).exits(2).matches_snapshot();
    let accepted = repo.arborist(["gardener", "--accept-changes", "--allow-dirty"]);
    let said = accepted.report();
    accepted.succeeds();
    for words in ["the plan adds to T002: [allow:tests/old.sh]", "the plan adds to T003: [allow:fewer-tests]"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
}
