//! The user's checkout is theirs: what was not committed there stays as it is, and what an agent does to the repository itself
//! is caught.

use arborist_testkit::TestRepo;

const PLAN: &str = "- [ ] T001 create the schema\n- [ ] T002 add the form (depends on T001)\n";

/// Writes a file for each task and approves of everything.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) echo "$ARBORIST_TASK" >> "$ARBORIST_TASK.txt"; echo "wrote $ARBORIST_TASK.txt" ;;
esac
"#;

fn repo(agent: &str) -> TestRepo {
    TestRepo::planned("tasks.md", PLAN, agent)
}

#[test]
fn a_dirty_checkout_is_refused_or_with_allow_dirty_left_unchanged() {
    let repo = repo(WORKER);
    repo.write("begun", "mine");
    repo.write("staged", "mine too");
    repo.git(["add", "staged"]).succeeds();
    repo.arborist(["garden"]).exits(2).matches_snapshot();
    assert_eq!(repo.calls(), 0);
    repo.arborist(["garden", "--allow-dirty"]).succeeds();
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "A  staged\n?? begun");
    let tracked = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]).answer();
    assert!(
        tracked.contains("T001.txt") && !tracked.contains("begun") && !tracked.contains("staged"),
        "{tracked}"
    );
}

#[test]
fn a_run_in_the_checkout_warns_about_unused_work_in_the_worktree_of_a_task() {
    let repo = repo(WORKER);
    let path = repo.arborist(["worktree", "add", "T001"]).answer();
    let warning = format!("warning: work on T001 in '{path}' is not used");
    let dry = repo.arborist(["gardener", "--only", "T001", "--dry-run"]).succeeds();
    dry.never("is not used");
    std::fs::write(std::path::Path::new(&path).join("begun"), "mine").unwrap();
    repo.arborist(["gardener", "--only", "T001"]).succeeds().err(&warning);
    repo.arborist(["gardener"]).succeeds().never("is not used");
}

/// Appends to three files that the user has changed, staged and deleted, and writes one of its own.
const MEDDLER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *) for file in begun staged deleted; do echo agent >> $file; done; echo agent > own; [ ! -e "$ROOT/kill" ] || { rm "$ROOT/kill"; kill -9 $PPID; sleep 30; }; echo done ;;
esac
"#;

fn with_dirt(agent: &str) -> TestRepo {
    let repo = repo(agent);
    for file in ["begun", "staged", "deleted"] {
        repo.write(file, "theirs\n");
    }
    repo.commit("files\n");
    repo.write("begun", "mine\n");
    repo.write("staged", "mine too\n");
    repo.git(["add", "staged"]).succeeds();
    repo.write("staged", "theirs\n");
    std::fs::remove_file(repo.path("deleted")).unwrap();
    repo
}

fn expect_dirt(repo: &TestRepo) {
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), " M begun\n D deleted\nMM staged");
    assert_eq!((repo.read("begun"), repo.read("staged")), ("mine\n".into(), "theirs\n".into()));
    assert_eq!(repo.git(["show", ":staged"]).answer(), "mine too");
    assert_eq!(
        repo.git(["diff", "--name-only", "HEAD~2", "HEAD", "--", "begun", "staged", "deleted"]).answer(),
        ""
    );
}

#[test]
fn an_agent_that_changes_dirty_files_fails_and_both_versions_are_saved() {
    let repo = with_dirt(MEDDLER);
    repo.arborist(["garden", "--allow-dirty", "--max-retries", "1"]).exits(1).matches_snapshot();
    expect_dirt(&repo);
    assert_eq!(repo.git(["show", "HEAD:own"]).answer(), "agent", "what is its own is committed");
    let saved = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/saved"]).answer();
    assert_eq!(repo.git(["show", &format!("{saved}:begun")]).answer(), "mine\nagent");
    assert_eq!(repo.git(["show", &format!("{saved}^:begun")]).answer(), "mine");
}

#[test]
fn dirty_files_are_restored_after_a_killed_run_changed_them() {
    let repo = with_dirt(&MEDDLER.replace("begun staged deleted", "begun"));
    std::fs::write(repo.root().join("kill"), "").unwrap();
    let run = repo.arborist(["garden", "--allow-dirty"]);
    assert_ne!(run.code(), 0, "{}", run.report());
    repo.arborist(["garden", "--allow-dirty", "--max-retries", "1"]).exits(1).matches_snapshot();
    expect_dirt(&repo);
    let told = repo.git(["log", "--format=%b"]).answer();
    assert!(told.contains("it changed uncommitted files that are not its own: begun"), "{told}");
}

#[test]
fn commits_of_an_agent_are_folded_into_its_step_and_saved() {
    let repo =
        repo(&WORKER.replace("echo \"wrote", "git add -A; git commit -qm 'by the agent'; echo \"wrote"));
    repo.arborist(["gardener"]).succeeds();
    let log = repo.git(["log", "--format=%s"]).answer();
    assert!(!log.contains("by the agent"), "{log}");
    assert_eq!(repo.read("T001.txt"), "T001\n");
    let saved = repo.git(["for-each-ref", "--format=%(refname) %(subject)", "refs/arborist/saved"]).answer();
    assert_eq!(saved.lines().filter(|line| line.contains("by the agent")).count(), 2, "{saved}");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

/// Whoever commits while an agent is at work, it cannot be told who it was: so it is said.
#[test]
fn a_commit_made_while_an_agent_works_is_reported_with_the_ref_that_saves_it() {
    for args in [&["gardener"][..], &["gardener", "--isolate"]] {
        let deed = "echo mine > mine.txt; git add mine.txt; git commit -qm 'user commit'; echo \"wrote";
        let repo = repo(&WORKER.replace("echo \"wrote", deed));
        let said = repo.arborist(args).succeeds();
        let said = said.matches_snapshot();
        let said = said.stderr();
        let name = said.split("the original is kept as ").nth(1).unwrap().lines().next().unwrap();
        assert!(name.starts_with("refs/arborist/saved/"), "{name}");
        assert_eq!(repo.git(["log", "-1", "--format=%s", name]).answer(), "user commit");
        let told = repo.git(["log", "--grep=@T001@implement-pass", "--format=%b"]).answer();
        assert!(told.contains("Folded in:\n> 1 commit that the run did not make ('user commit')"), "{told}");
        assert!(told.contains(name), "{told}");
        repo.arborist(["trailers", "check", "HEAD"]).succeeds();
    }
}

#[test]
fn files_left_by_a_killed_attempt_are_listed_and_those_staged_since_are_marked() {
    let kill =
        "[ -e \"$ROOT/killed\" ] || { touch \"$ROOT/killed\"; kill -9 $PPID; sleep 30; }; echo \"wrote";
    let repo = repo(&WORKER.replace("echo \"wrote", kill));
    assert_ne!(repo.arborist(["gardener"]).code(), 0);
    for file in ["a", "b", "c", "d", "e", "f"] {
        repo.write(file, "the user's\n");
    }
    repo.git(["add", "b"]).succeeds();
    repo.arborist(["gardener"]).succeeds().matches_snapshot();
}

/// A repository in which nothing was committed cannot even be taken into a snapshot.
#[test]
fn a_nested_repository_made_by_an_agent_is_moved_away_before_the_next_attempt() {
    let commit = "git -C deep/sub -c user.name=a -c user.email=a@b commit -q --allow-empty -m x";
    for deed in [
        "true",
        commit,
        &format!("{commit}; git add -A"),
        &format!("{commit}; git add -A; git commit -qm all"),
    ] {
        for args in [&["gardener"][..], &["gardener", "--isolate"]] {
            let once = format!(
                "[ -e \"$ROOT/once\" ] || {{ touch \"$ROOT/once\"; git init -q deep/sub; echo inner > deep/sub/file; {deed}; }}; echo \"wrote"
            );
            let repo = repo(&WORKER.replace("echo \"wrote", &once));
            let said = repo.arborist(args).succeeds().matches_snapshot();
            let said = said.matches_snapshot().stderr();
            let folder = said.split("it is kept in ").nth(1).unwrap().lines().next().unwrap();
            let file = std::path::Path::new(folder).join("deep/sub/file");
            assert_eq!(std::fs::read_to_string(file).unwrap(), "inner\n", "{deed}");
            assert_eq!(repo.git(["status", "--porcelain"]).answer(), "", "{deed}");
            let log = repo.git(["log", "--format=%s"]).answer();
            assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{deed}: {log}");
            assert!(!repo.git(["ls-tree", "-r", "HEAD"]).answer().contains("deep"), "{deed}");
        }
    }
}

#[test]
fn a_nested_repository_of_the_user_in_the_checkout_is_not_moved() {
    for deed in ["true", "git -C mine -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"] {
        let repo = repo(&WORKER.replace("APPROVED", "APPROVED; git init -q of-the-reviewer"));
        repo.git(["config", "arborist.steps.review.place", "checkout"]).succeeds();
        repo.git(["init", "-q", "mine"]).succeeds();
        repo.write("mine/file", "mine\n");
        // No agent works beside an untracked repository that is not ignored.
        repo.write(".git/info/exclude", "/mine/\n");
        assert!(
            std::process::Command::new("sh")
                .args(["-c", deed])
                .current_dir(repo.path(""))
                .status()
                .unwrap()
                .success()
        );
        repo.arborist(["garden", "--allow-dirty"]).exits(2).matches_snapshot();
        assert_eq!(repo.read("mine/file"), "mine\n", "{deed}");
        assert_eq!(repo.git(["status", "--porcelain", "--ignored", "mine"]).answer(), "!! mine/", "{deed}");
        assert_eq!(repo.read("T001.txt"), "T001\n", "nobody has rejected it");
    }
}

#[test]
fn changes_of_an_agent_to_branches_hooks_or_git_config_are_undone_and_fail_the_attempt() {
    for (deed, sentence) in [
        ("git switch -qc elsewhere", "switched to another branch"),
        ("git config core.editor evil", "config was changed while an agent or a command ran"),
        (
            "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
            "the hook pre-commit was added while an agent or a command ran",
        ),
        (
            "git init -q nested; git -C nested -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
            "a repository inside the repository",
        ),
        ("git checkout -q --detach; git branch -qD main", "deleted or renamed the branch"),
    ] {
        let repo = repo(&WORKER.replace("echo \"wrote", &format!("{deed}; echo \"wrote")));
        let config = repo.read(".git/config");
        repo.arborist(["garden", "--max-retries", "1"]).exits(1).err(sentence);
        assert_eq!(repo.read(".git/config"), config);
        assert!(!repo.path(".git/hooks/pre-commit").exists());
        assert_eq!(repo.git(["symbolic-ref", "HEAD"]).answer(), "refs/heads/main", "{deed}");
        repo.arborist(["state"]).succeeds().matches_snapshot();
    }
}

#[test]
fn files_of_a_branch_that_an_agent_switches_to_are_not_committed_as_its_work() {
    for (deed, sentence) in [
        ("git checkout -q other", "switched to another branch"),
        ("git checkout -q -f --detach other", "switched to another branch"),
        ("git checkout -q -b new other; git branch -qD main", "deleted or renamed the branch"),
        ("git switch -q --orphan new", "switched to another branch"),
        ("git reset -q --hard other", "no longer contains the commits"),
    ] {
        for args in [&["--allow-dirty"][..], &["--isolate"]] {
            let repo = repo(&format!(
                "[ \"$ARBORIST_TASK\" = T001 ] || case \"$prompt\" in
Review*) ;;
*) [ -e \"$ROOT/once\" ] || {{ touch \"$ROOT/once\"; echo built > cache/built; {deed}; echo precious > new.txt; echo \"$ARBORIST_TASK\" > T002.txt; exit; }} ;;
esac
{WORKER}"
            ));
            repo.git(["switch", "-qc", "other"]).succeeds();
            repo.write("theirs", "of the other branch\n");
            repo.commit("other\n");
            repo.git(["switch", "-q", "main"]).succeeds();
            repo.write(".gitignore", "/cache/\n");
            repo.commit("ignore rules\n");
            repo.write("cache/deep", "ignored\n");
            let is_dirty = args == ["--allow-dirty"];
            if is_dirty {
                repo.write("begun", "mine");
                repo.write("staged", "mine too");
                repo.git(["add", "staged"]).succeeds();
            }
            let run = repo.arborist(["gardener"].iter().chain(args));
            let said = run.stderr();
            run.succeeds();
            // In the worktree of a task, `main` is not the branch that was deleted.
            assert!(said.contains(sentence) || !is_dirty, "{deed} {args:?}: {said}");
            assert_eq!(repo.git(["symbolic-ref", "HEAD"]).answer(), "refs/heads/main", "{deed}");
            let status = if is_dirty { "A  staged\n?? begun" } else { "" };
            assert_eq!(repo.git(["status", "--porcelain"]).answer(), status, "{deed} {args:?}");
            assert_eq!(repo.read("T001.txt"), "T001\n", "{deed} {args:?}");
            assert_eq!(repo.read("cache/deep"), "ignored\n", "{deed} {args:?}");
            assert_eq!(repo.path("cache/built").exists(), is_dirty, "{deed} {args:?}");
            assert!(!repo.path("theirs").exists() && !repo.path("new.txt").exists(), "{deed} {args:?}");
            let removed = repo.git(["log", "--format=%h", "--diff-filter=D", "main", "--", "T001.txt"]);
            assert_eq!(removed.answer(), "", "{deed} {args:?}");
            let (_, at) = said.split_once("what it left is kept in ").unwrap();
            let saved = at.split(',').next().unwrap();
            repo.git(["show", &format!("{saved}:new.txt")]).succeeds().out("precious");
        }
    }
}

#[test]
fn a_pre_commit_hook_can_refuse_the_work_of_an_agent() {
    let repo = repo(WORKER);
    repo.write_script(
        ".git/hooks/pre-commit",
        "#!/bin/sh\ngit diff --cached --name-only HEAD; echo no tabs please; exit 1\n",
    );
    repo.arborist(["garden", "--max-retries", "1"]).exits(1).matches_snapshot();
    let body = repo.git(["log", "-1", "--format=%b", "HEAD~1"]).answer();
    assert!(body.contains("> T001.txt\n> no tabs please"), "{body}");
    repo.arborist(["state", "T001"]).succeeds().matches_snapshot();
}

#[test]
fn an_ignored_file_of_a_rejected_task_is_listed_for_the_reviewers_of_later_tasks() {
    let agent = "case \"$prompt\" in
\"Review the changes for task T001\"*) echo REJECTED: no ;;
Review*) echo \"$prompt\" >> \"$ROOT/asked\"; echo APPROVED ;;
*T001*) mkdir cache; echo x > cache/run.sh; echo x > T001.txt ;;
*) echo x > \"$ARBORIST_TASK.txt\" ;;
esac";
    for mode in [[].as_slice(), &["--session-branch"]] {
        let plan = "- [ ] T001 [P] a\n- [ ] T002 [P] b\n- [ ] T003 [P] c\n";
        let repo = TestRepo::planned("tasks.md", plan, agent);
        repo.write(".gitignore", "cache/\n");
        repo.commit("ignored files\n");
        let run = ["gardener", "--keep-going", "--max-retries", "1", "--test-command", "true"];
        repo.arborist(run.iter().chain(mode)).exits(1);
        let asked = std::fs::read_to_string(repo.root().join("asked")).unwrap();
        let named: Vec<bool> =
            asked.split("Review the").skip(1).map(|one| one.contains("- cache/")).collect();
        // The reviewer of T002 was told and approved.
        assert_eq!(named, [true, false], "{mode:?}: {asked}");
    }
}
