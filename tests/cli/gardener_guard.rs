//! What an agent in a lane can reach and may not touch: the lane's link to its repository, and what all lanes share.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use arborist_testkit::{TestRepo, pairs};

const PLAN: &str = "## Phase 1: All\n\n- [ ] T001 [P] do a\n- [ ] T002 [P] do b\n";

/// Does a deed in the first attempt of T001, then its work.
fn test_repo(deed: &str) -> TestRepo {
    let test_repo = TestRepo::init();
    test_repo.write("tasks.md", PLAN);
    test_repo.commit("a plan\n");
    test_repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" >> \"$ARBORIST_TASK.txt\"
[ \"$ARBORIST_TASK\" = T001 ] && [ ! -e \"$ROOT/once\" ] && {{ touch \"$ROOT/once\"; {deed}; }}
true"
    ));
    test_repo
}

#[test]
fn a_lane_whose_git_link_or_branch_was_changed_is_repaired_and_the_attempt_fails() {
    for (deed, words) in [
        ("echo 'gitdir: /nowhere' > .git", ".git was changed while an agent or a command ran"),
        ("rm .git", ".git was changed while an agent or a command ran"),
        ("rm .git; git init -q; git add -A; git commit -qm mine", "the changed version is kept in"),
        (
            "echo /nowhere > $(git rev-parse --git-dir)/commondir",
            "commondir was changed while an agent or a command ran",
        ),
        ("git switch -qc elsewhere", "switched to another branch"),
        ("git checkout -q --detach", "switched to another branch"),
    ] {
        let test_repo = test_repo(deed);
        test_repo.arborist(["gardener", "--isolate"]).succeeds().err(words).out("2 completed");
        let log = test_repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{deed}: {log}");
        assert_eq!(test_repo.read("T001.txt"), "T001\nT001\n", "{deed}");
        let lanes = test_repo.git(["worktree", "list"]).answer();
        assert!(lanes.lines().skip(1).all(|lane| lane.contains("(detached HEAD)")), "{deed}: {lanes}");
        test_repo.git(["fsck", "--strict", "--no-dangling"]).succeeds().silent();
    }
}

#[test]
fn an_attempt_in_a_lane_that_changes_a_tracked_file_named_in_git_config_fails() {
    for (setting, path) in [("include.path", "../.gitconfig"), ("core.hooksPath", "hooks")] {
        let deed = "printf '[core]\\n\\tfsmonitor = false\\n' > .gitconfig; echo planted > hooks/file";
        let test_repo = test_repo(deed);
        test_repo.write(".gitconfig", "[alias]\n\tx = log\n");
        test_repo.write("hooks/file", "old\n");
        test_repo.commit("settings\n");
        let path = if setting == "core.hooksPath" {
            test_repo.path(path).display().to_string()
        } else {
            path.to_owned()
        };
        test_repo.git(["config", setting, &path]).succeeds();
        test_repo
            .arborist(["gardener", "--isolate"])
            .succeeds()
            .err("was changed while an agent or a command ran");
        let log = test_repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{setting}: {log}");
    }
}

#[test]
fn hooks_that_husky_runs_are_restored_if_an_agent_changes_them() {
    let places = [(".husky/_", ".husky/"), ("config/_", "config/"), ("_", "")];
    let modes = [["gardener", "--max-retries=1"].as_slice(), &["gardener", "--isolate", "--max-retries=1"]];
    for ((folder, hook), args) in pairs(&places, &modes) {
        let deed = format!("echo planted > {hook}post-checkout; echo planted >> {hook}pre-commit");
        let test_repo = test_repo(&deed);
        test_repo.write(&format!("{hook}pre-commit"), "true\n");
        test_repo.commit("hooks\n");
        test_repo.write(&format!("{folder}/.gitignore"), "*\n");
        test_repo.write(&format!("{folder}/h"), "#!/bin/sh\n");
        test_repo.git(["config", "core.hooksPath", folder]).succeeds();
        let run = test_repo.arborist(args);
        let said = run.stderr();
        assert!(
            said.contains("was changed while an agent or a command ran") && said.contains("post-checkout"),
            "{folder}: {said}"
        );
        assert!(!test_repo.path(&format!("{hook}post-checkout")).exists(), "{folder}");
        assert_eq!(test_repo.read(&format!("{hook}pre-commit")), "true\n", "{folder}");
        let planted = test_repo.git(["log", "--all", "--format=%h", "-S", "planted"]);
        assert_eq!(planted.answer(), "", "{folder} {args:?}");
    }
}

/// A rebase that the user has stopped in another worktree before its second of three steps.
fn stopped_rebase(test_repo: &TestRepo) -> PathBuf {
    let top = test_repo.root().join("own");
    test_repo.git(["worktree", "add", "-q", "-b", "own", top.to_str().unwrap()]).succeeds();
    let script = "for i in 1 2 3; do echo $i > f$i; git add .; git commit -qm c$i; done
GIT_SEQUENCE_EDITOR='sed -i 2s/pick/edit/' git rebase -q -i HEAD~3 2>/dev/null";
    let ended = test_repo.command("sh", &top).args(["-c", script]).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    top
}

/// Changes the files of the stopped rebase in the first attempt of T001.
fn tamper(deed: &str) -> TestRepo {
    test_repo(&format!("cd \"$ROOT/repo/.git/worktrees/own/rebase-merge\"; {deed}"))
}

#[test]
fn files_of_a_stopped_rebase_of_the_user_are_restored_if_an_agent_changes_them() {
    let deeds = [
        ("echo 'exec touch ../planted' >> git-rebase-todo", "rebase-merge/git-rebase-todo was changed"),
        (
            "echo 'exec touch ../planted' >> git-rebase-todo; echo x >> done",
            "rebase-merge/git-rebase-todo was changed",
        ),
        ("echo evil > strategy", "rebase-merge/strategy was changed"),
    ];
    for ((deed, words), args) in pairs(&deeds, &[&["gardener"][..], &["gardener", "--isolate"]]) {
        let test_repo = tamper(deed);
        let top = stopped_rebase(&test_repo);
        test_repo.arborist(args).succeeds().err(words);
        let mut git = test_repo.command("git", &top);
        let ended = git.args(["rebase", "--continue"]).env("GIT_EDITOR", "true").output().unwrap();
        assert!(ended.status.success(), "{deed}: {ended:?}");
        assert!(!test_repo.root().join("planted").exists(), "{deed}");
    }
}

#[test]
fn a_stopped_rebase_of_the_user_that_an_agent_replaces_is_reported() {
    let test_repo = tamper(
        "cd ..; cp -r rebase-merge new; rm -r rebase-merge; mv new rebase-merge; echo exec true > rebase-merge/git-rebase-todo",
    );
    stopped_rebase(&test_repo);
    test_repo
        .arborist(["gardener"])
        .succeeds()
        .err("rebase-merge was replaced while an agent or a command ran");
}

#[test]
fn the_user_may_continue_a_rebase_while_agents_work() {
    for deed in
        ["GIT_EDITOR=true git -C \"$ROOT/own\" rebase --continue", "git -C \"$ROOT/own\" rebase --abort"]
    {
        let test_repo =
            test_repo(&format!("unset $(git rev-parse --local-env-vars); {deed} >/dev/null 2>&1"));
        let top = stopped_rebase(&test_repo);
        test_repo.arborist(["gardener", "--isolate"]).succeeds();
        let log = test_repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 0, "{deed}: {log}");
        let mut git = test_repo.command("git", &top);
        let branch = git.args(["branch", "--show-current"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&branch.stdout), "own\n", "{deed}");
    }
}

/// T001 changes the configuration when T002 is at work, and stays until T002 has ended.
#[test]
fn a_change_of_the_shared_git_config_fails_all_running_attempts_and_is_undone() {
    let test_repo = test_repo("true");
    let repo = test_repo.path("").display().to_string();
    test_repo.agent(&format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac
echo \"$ARBORIST_TASK\" > \"$ARBORIST_TASK.txt\"
wait_for() {{ until \"$@\"; do sleep 0.02; done; }}
[ -e \"$ROOT/once-$ARBORIST_TASK\" ] && exit
touch \"$ROOT/once-$ARBORIST_TASK\"
if [ $ARBORIST_TASK = T001 ]; then
  wait_for test -e \"$ROOT/once-T002\"; git config core.editor evil; touch \"$ROOT/changed\"
  wait_for sh -c \"git -C '{repo}' log --format=%s arborist/task/main/T002 | grep -q implement-fail\"
else
  wait_for test -e \"$ROOT/changed\"
fi"
    ));
    let before = fs::read_to_string(test_repo.path(".git/config")).unwrap();
    test_repo
        .arborist(["gardener", "--jobs", "2"])
        .succeeds()
        .err("config was changed while an agent or a command ran");
    assert_eq!(fs::read_to_string(test_repo.path(".git/config")).unwrap(), before);
    let log = test_repo.git(["log", "--format=%s"]).answer();
    for task in ["T001", "T002"] {
        assert_eq!(log.matches(&format!("@{task}@implement-fail)")).count(), 1, "{log}");
    }
}

#[test]
fn a_hook_that_an_agent_makes_non_executable_is_restored_and_run() {
    let test_repo = test_repo("chmod -x \"$(git rev-parse --git-common-dir)/hooks/pre-commit\"");
    test_repo.write_script(
        ".git/hooks/pre-commit",
        &format!("#!/bin/sh\ntouch '{}'\n", test_repo.path(".git/asked").display()),
    );
    test_repo
        .arborist(["gardener", "--isolate", "--only", "T001"])
        .succeeds()
        .err("pre-commit was changed while an agent or a command ran");
    assert!(test_repo.path(".git/asked").exists());
}

/// What `git commit` holds until the editor or a hook ends: killed there, it leaves all of it.
const LOCKS: &str = "for lock in index.lock HEAD.lock $(git symbolic-ref HEAD).lock; do
  touch \"$(git rev-parse --git-path $lock)\"
done";

#[test]
fn git_locks_left_by_a_killed_agent_do_not_stop_a_lane() {
    let test_repo = test_repo(LOCKS);
    test_repo.arborist(["gardener", "--isolate"]).succeeds().out("2 completed");
    let log = test_repo.git(["log", "--format=%s"]).answer();
    assert!(!log.contains("-fail)"), "{log}");
    assert_eq!(locks_in(&test_repo.path(".git")), Vec::<PathBuf>::new());
}

#[test]
#[cfg(target_os = "linux")]
fn git_locks_left_by_a_killed_agent_do_not_stop_a_run_in_the_checkout() {
    let test_repo = test_repo(LOCKS);
    test_repo.arborist(["gardener"]).succeeds().out("2 completed");
    let log = test_repo.git(["log", "--format=%s"]).answer();
    assert!(!log.contains("-fail)"), "{log}");
    assert_eq!(locks_in(&test_repo.path(".git")), Vec::<PathBuf>::new());
}

/// The user's `git commit` has closed the file that it will need, and waits for an editor.
#[test]
fn the_index_lock_of_a_running_git_commit_of_the_user_is_not_removed() {
    let test_repo = test_repo("touch \"$ROOT/begun\"; until [ -e .git/index.lock ]; do sleep 0.02; done");
    let [begun, edited] = ["begun", "edited"].map(|name| test_repo.root().join(name));
    let script = format!("until [ -e '{}' ]; do sleep 0.02; done; echo 'by the user' >", edited.display());
    std::thread::scope(|scope| {
        let run = test_repo
            .command("git-arborist-garden", &test_repo.path(""))
            .arg("T001")
            .stderr(Stdio::piped())
            .spawn();
        while !begun.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut commit = test_repo.command("git", &test_repo.path(""));
        commit.args(["commit", "-q", "-a", "--allow-empty"]).env("GIT_EDITOR", script);
        let commit = scope.spawn(move || commit.status());
        let ended = run.unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(128), "{said}");
        assert!(said.contains("index.lock' has existed for "), "{said}");
        fs::write(&edited, "").unwrap();
        assert!(commit.join().unwrap().unwrap().success());
    });
    assert_eq!(test_repo.git(["log", "-1", "--format=%s"]).answer(), "by the user");
}

#[test]
fn a_lane_deleted_by_its_agent_is_reported_with_its_task_and_the_next_run_continues() {
    let deed = "cd /; rm -rf \"$ARBORIST_WORKTREE\"";
    let test_repo = test_repo(deed);
    let run = test_repo.arborist(["gardener", "--isolate", "--keep-going"]);
    let said = run.stderr();
    assert!(said.contains("the worktree of task 'T001' is gone: "), "{}", run.report());
    assert!(!said.contains("is git installed"), "{said}");
    test_repo.arborist(["state", "T002"]).succeeds().out("complete");
    test_repo.arborist(["gardener", "--isolate"]).succeeds();
    test_repo.arborist(["state"]).succeeds().out("2 of 2 done");
}

fn locks_in(dir: &Path) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| path.is_dir());
    let locks = files.into_iter().filter(|file| file.extension().is_some_and(|ending| ending == "lock"));
    locks.chain(folders.iter().flat_map(|folder| locks_in(folder))).collect()
}

#[test]
fn an_index_lock_in_the_checkout_is_reported_before_an_agent_is_called() {
    let test_repo = test_repo("true");
    let lock = test_repo.path(".git/index.lock");
    fs::write(&lock, "").unwrap();
    test_repo
        .arborist(["garden", "T001"])
        .exits(128)
        .err("index.lock' has existed for ")
        .err("hint: wait until that process ends; if no git is running in this repository, run: rm '");
    assert!(!test_repo.root().join("once").exists(), "no agent was asked");
    assert!(lock.exists(), "the lock of somebody else is left alone");
    fs::remove_file(lock).unwrap();
    test_repo.arborist(["garden", "T001"]).succeeds();
    test_repo.git(["status", "--porcelain"]).succeeds().silent();
}

/// Two branches that conflict, and what leaves the meeting of them unfinished.
fn meeting(deed: &str) -> TestRepo {
    let test_repo = test_repo(deed);
    test_repo.git(["switch", "-q", "-c", "side"]).succeeds();
    test_repo.write("met.txt", "side\n");
    test_repo.commit("side\n");
    test_repo.git(["switch", "-q", "main"]).succeeds();
    test_repo.write("met.txt", "main\n");
    test_repo.commit("main\n");
    test_repo
}

#[test]
fn an_unfinished_merge_rebase_or_bisect_of_an_agent_is_aborted_and_fails_the_attempt() {
    let deeds = [
        ("git merge -q side", "left a merge of "),
        ("git merge -q --no-commit -s ours side", "left a merge of "),
        ("git rebase -q side", "left a rebase unfinished"),
        ("git cherry-pick side", "left a cherry-pick of "),
        ("git revert --no-commit HEAD~1; git revert --no-edit HEAD", "left a revert of "),
        ("git format-patch -q -1 side; git am -q --3way 0001*; rm 0001*", "left a rebase unfinished"),
        ("git bisect start -q; git bisect bad", "left a bisect unfinished"),
        (
            "git add -A; git commit -qm mine; echo more >> met.txt; git rebase -q --autostash side",
            "left a rebase unfinished, and its stash is kept as refs/arborist/saved/",
        ),
    ];
    for ((deed, what), args) in pairs(&deeds, &[&["gardener"][..], &["gardener", "--isolate"]]) {
        let test_repo = meeting(&format!("{deed} >/dev/null 2>&1"));
        test_repo.arborist(args).succeeds().err(what).out("2 completed");
        let log = test_repo.git(["log", "--format=%s"]).answer();
        assert_eq!(log.matches("@T001@implement-fail)").count(), 1, "{deed}: {log}");
        let said = test_repo.git(["status"]).answer();
        assert!(said.contains("On branch main\nnothing to commit"), "{deed}: {said}");
        test_repo.git(["stash", "list"]).succeeds().silent();
    }
}

#[test]
fn a_run_is_refused_while_a_merge_is_in_progress_in_the_checkout() {
    let test_repo = meeting("true");
    test_repo.git(["merge", "-q", "side"]).exits(1);
    for args in [&["gardener"][..], &["gardener", "--allow-dirty"]] {
        test_repo
            .arborist(args)
            .exits(2)
            .err("error: a merge is in progress in this checkout")
            .err("hint: finish or cancel it, as 'git status' says");
    }
    assert!(test_repo.path(".git/MERGE_HEAD").exists());
    test_repo.arborist(["gardener", "--session-branch"]).succeeds().out("2 completed");
    assert!(test_repo.path(".git/MERGE_HEAD").exists(), "the user goes on with it");
}

#[test]
fn progress_notes_of_tasks_are_never_written_through_a_link() {
    let deed = "for note in \"$ROOT\"/repo/.git/arborist/doing/*/T001; do ln -sf \"$ROOT/precious\" \"$note\"; done; ls -l \"$ROOT\"/repo/.git/arborist/doing/* > \"$ROOT/planted\"";
    let test_repo = test_repo(deed);
    fs::write(test_repo.root().join("precious"), "theirs\n").unwrap();
    test_repo.arborist(["gardener", "--jobs", "2"]).succeeds().out("2 completed");
    assert!(fs::read_to_string(test_repo.root().join("planted")).unwrap().contains("-> "));
    assert_eq!(fs::read_to_string(test_repo.root().join("precious")).unwrap(), "theirs\n");
}

#[test]
fn a_plan_or_configuration_changed_by_an_agent_is_reported_with_a_command_that_restores_it() {
    let plan = "- [ ] T001 a\n- [ ] T002 b\n";
    let deeds = [
        ("tasks.md", "echo '- [ ] T009 mine' > tasks.md"),
        ("tasks.md", "rm tasks.md"),
        ("tasks.md", "printf -- '- [ ] T001 a\\n- [ ] T001 b\\n' > tasks.md"),
        (".arborist/config.toml", "mkdir -p .arborist; echo 'max-retries = 9' > .arborist/config.toml"),
    ];
    for (file, deed) in deeds {
        let worker = format!(
            "case \"$prompt\" in Review*) echo APPROVED ;; *T001:*) {deed} ;; *) echo b > b.txt ;; esac"
        );
        let test_repo = TestRepo::planned("tasks.md", plan, &worker);
        test_repo.arborist(["garden"]).succeeds();
        let said = test_repo.arborist(["gardener"]);
        assert_ne!(said.code(), 0, "{deed}: {}", said.report());
        let told = said.report();
        let commit = test_repo.git(["log", "-1", "--format=%H", "--", file]).answer();
        let did = if deed.starts_with("rm ") { "deleted" } else { "changed" };
        let who = format!("commit {} of T001 {did} {file}: git show {}", &commit[..10], &commit[..10]);
        assert!(told.contains(&who), "{deed}: {told}");
        let (_, back) = told.split_once(", run: ").unwrap();
        let mut shell = test_repo.command("sh", &test_repo.path(""));
        shell.args(["-c", back.lines().next().unwrap()]);
        arborist_testkit::Run::of(&mut shell, b"").succeeds();
        test_repo.arborist(["gardener"]).succeeds().out("1 completed (T002)");
    }
}

#[test]
fn a_lock_that_cannot_be_created_is_not_reported_as_another_run() {
    let test_repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", "echo APPROVED");
    std::fs::write(test_repo.path(".git/arborist"), "in the way").unwrap();
    for verb in [["gardener"].as_slice(), &["cleanup"], &["gardener", "--isolate"]] {
        let said = test_repo.arborist(verb).exits(128).err("error: could not lock '");
        said.never("going on").never("wait").never("under way");
    }
}
