//! A session that has gone on in another clone: whoever was there before finds out, follows, and does nothing twice.

use std::{fs, path::PathBuf};

use arborist_testkit::TestRepo;

use crate::test_workspace::TestWorkspace;

const PLAN: &str = "## Phase 1: Work\n\n- [ ] T001 do a\n- [ ] T002 [repo:backend] do b (depends on T001)\n- [ ] T003 [repo:backend] do c (depends on T002)\n- [ ] T004 do d (depends on T003)\n";

/// T003 and T004 fail until each is mended.
const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED; exit ;;
  *T003:*) test -e "$ROOT/mended-3" || exit 1 ;;
  *T004:*) test -e "$ROOT/mended-4" || exit 1 ;;
esac
echo "$ARBORIST_TASK" > "$ARBORIST_TASK.txt"
"#;

fn workspace() -> TestWorkspace {
    let workspace = TestWorkspace::of_containers(PLAN, "on_checkpoint", "");
    workspace.agent(WORKER);
    workspace
}

fn let_task_pass(workspace: &TestWorkspace, task: u32) {
    fs::write(workspace.root().join(format!("mended-{task}")), "").unwrap();
}

/// Runs up to a task that fails.
fn begin(workspace: &TestWorkspace) -> String {
    workspace.arborist(["gardener", "--yes", "--max-retries", "1"]).exits(1);
    workspace.session_branch("repo").rsplit_once('/').unwrap().1.to_owned()
}

/// A first clone comes to T002, a second to T003; then the first is at work again.
fn continued_in_second_clone() -> (TestWorkspace, String) {
    let workspace = workspace();
    let session = begin(&workspace);
    workspace.move_container_away("first");
    workspace.clone_again();
    let_task_pass(&workspace, 3);
    workspace.arborist(["session", "resume", "--yes"]).exits(1).out("1 completed (T003)");
    workspace.move_container_away("second");
    workspace.move_container_back("first");
    let_task_pass(&workspace, 4);
    (workspace, session)
}

fn session_folder_of(workspace: &TestWorkspace, repo: &str, session: &str) -> PathBuf {
    workspace.root().join(format!("{repo}.arborist/session-{session}"))
}

#[test]
fn a_clone_that_worked_on_the_session_before_is_warned_and_can_continue_it() {
    let (workspace, session) = continued_in_second_clone();
    let calls = workspace.calls();
    let refused = workspace.arborist(["gardener"]).exits(2);
    refused
        .err(&format!("session '{session}' continued on another machine"))
        .err("git arborist session resume");
    assert_eq!(workspace.calls(), calls);

    let resumed = workspace.arborist(["session", "resume", "--json"]).succeeds();
    assert!(resumed.stdout().contains("\"completed\":[\"T004\"]"), "{}", resumed.stdout());
    assert_eq!(workspace.calls(), calls + 2, "what was complete is not done again");
    for (repo, files) in [("repo", ["T001.txt", "T004.txt"]), ("backend", ["T002.txt", "T003.txt"])] {
        let branch = format!("arborist/tasks/{session}");
        let there =
            workspace.git_in(&workspace.remote_of(repo), ["ls-tree", "--name-only", &branch]).answer();
        let there: Vec<&str> = there.lines().filter(|name| name.starts_with('T')).collect();
        assert_eq!(there, files);
        let house = session_folder_of(&workspace, repo, &session);
        assert!(files.iter().all(|file| house.join(file).exists()), "{repo}");
        assert_eq!(workspace.git_in(&house, ["status", "--porcelain"]).answer(), "");
    }
    workspace.arborist(["state", "--exit-code"]).succeeds().never("unpushed");
}

/// Only what is not checked out was taken over.
#[test]
fn a_clone_that_fetched_the_records_is_warned_and_can_continue_the_session() {
    let (workspace, session) = continued_in_second_clone();
    workspace
        .arborist(["workspace", "sync"])
        .succeeds()
        .out(&format!("took over refs/arborist/sessions/{session}"));
    let calls = workspace.calls();
    let refused = workspace
        .arborist(["gardener"])
        .exits(2)
        .err(&format!("session '{session}' continued on another machine"));
    refused.err(&format!("git arborist session resume {session}"));
    assert_eq!(workspace.calls(), calls);
    workspace.arborist(["session", "resume"]).succeeds().out("1 completed (T004)").never("was not pushed");
    assert!(session_folder_of(&workspace, "backend", &session).join("T003.txt").exists());
}

#[test]
fn resume_refuses_to_overwrite_uncommitted_files_of_the_first_clone() {
    for repo in ["repo", "backend"] {
        let (workspace, session) = continued_in_second_clone();
        let branch = format!("arborist/tasks/{session}");
        let file = match repo {
            "backend" => "T003.txt".to_owned(),
            _ => {
                let added = ["log", "-1", "--format=", "--name-only", "--grep=@T003@complete", &branch];
                workspace.git_in(&workspace.remote_of("repo"), added).answer()
            }
        };
        let mine = session_folder_of(&workspace, repo, &session).join(file);
        fs::create_dir_all(mine.parent().unwrap()).unwrap();
        fs::write(&mine, "mine").unwrap();
        let refused = workspace.arborist(["session", "resume"]).exits(2).err("could not be updated: ");
        refused.err("would be overwritten").err("merge --ff-only");
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        fs::remove_file(mine).unwrap();
        workspace.arborist(["session", "resume"]).succeeds().out("1 completed (T004)");
    }
}

#[test]
fn a_session_that_may_be_running_on_another_machine_is_resumed_only_by_name() {
    let (workspace, session) = continued_in_second_clone();
    // The second clone has not come to its rest yet.
    for name in [format!("refs/arborist/sessions/{session}"), format!("refs/heads/arborist/tasks/{session}")]
    {
        workspace.git_in(&workspace.remote_of("repo"), ["update-ref", &name, &format!("{name}^")]).succeeds();
    }
    let refused = workspace.arborist(["session", "resume"]).exits(2);
    refused.err(&format!("session '{session}' may be running on another machine"));
    let named = ["session", "resume", &session, "--", "--max-retries", "2"];
    workspace.arborist(named).succeeds().out("1 completed (T004)").never("was not pushed");
}

#[test]
fn a_session_that_continued_in_two_clones_is_not_merged() {
    let (workspace, session) = continued_in_second_clone();
    let bare = workspace.root().join("repo.git");
    fs::rename(&bare, workspace.root().join("away.git")).unwrap();
    // Nobody knows, offline.
    let run = workspace.arborist(["gardener", "--max-retries", "1", "--retry-failed"]).succeeds();
    run.err(&format!("offline: could not find out whether session '{session}' continued on another machine"));
    fs::rename(workspace.root().join("away.git"), &bare).unwrap();
    let refused = workspace.arborist(["gardener"]).exits(2).err("--new-run");
    refused.err(&format!("session '{session}' continued on another machine, and here too"));
}

#[test]
fn a_clone_that_is_older_than_the_session_finds_and_resumes_it() {
    let workspace = workspace();
    workspace.move_container_away("old");
    workspace.clone_again();
    let session = begin(&workspace);
    workspace.move_container_away("new");
    workspace.move_container_back("old");
    let calls = workspace.calls();
    let refused = workspace.arborist(["gardener"]).exits(2);
    refused
        .err("of 'tasks.md' was started on another machine")
        .err(&format!("git arborist session resume {session}"));
    assert_eq!(workspace.calls(), calls);
    assert!(!workspace.clone_of("backend").exists());
    let_task_pass(&workspace, 3);
    let_task_pass(&workspace, 4);
    workspace.arborist(["session", "resume"]).succeeds().out("2 completed (T003, T004)");
}

/// The session is completed in the second clone; then the first is at work again.
fn completed_elsewhere() -> (TestWorkspace, String) {
    let workspace = workspace();
    let session = begin(&workspace);
    workspace.move_container_away("first");
    workspace.clone_again();
    (3..=4).for_each(|task| let_task_pass(&workspace, task));
    workspace.arborist(["session", "resume", "--yes"]).succeeds().out("2 completed (T003, T004)");
    workspace.move_container_away("second");
    workspace.move_container_back("first");
    (workspace, session)
}

#[test]
fn resume_updates_branches_of_a_session_completed_in_another_clone() {
    for is_named in [true, false] {
        let (workspace, session) = completed_elsewhere();
        let calls = workspace.calls();
        let resume = ["session", "resume", &session];
        let resume = &resume[..if is_named { 3 } else { 2 }];
        let followed = workspace.arborist(resume).succeeds();
        followed.err(&format!("session '{session}' was completed elsewhere"));
        assert_eq!(workspace.calls(), calls);
        for (repo, files) in [("repo", ["T001.txt", "T004.txt"]), ("backend", ["T002.txt", "T003.txt"])] {
            let house = session_folder_of(&workspace, repo, &session);
            assert!(files.iter().all(|file| house.join(file).exists()), "{repo}");
            assert_eq!(workspace.git_in(&house, ["status", "--porcelain"]).answer(), "");
        }
        workspace.arborist(["workspace", "status"]).succeeds().out("pushed").never("unpushed");
        workspace.arborist(["state", "--exit-code"]).succeeds();
        workspace.arborist(resume).exits(1);
    }
}

#[test]
fn a_branch_behind_its_remote_is_not_reported_as_unpushed() {
    let (workspace, _) = completed_elsewhere();
    workspace.arborist(["workspace", "sync"]).succeeds();
    workspace.arborist(["workspace", "status"]).succeeds().never("unpushed");
    workspace.arborist(["workspace", "push"]).succeeds().never("rejected");
}

/// A session branch with a finished task was pushed to a remote, and cloned from there.
fn pushed_session_branch() -> (TestRepo, PathBuf, String) {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", arborist_testkit::WORKER);
    repo.arborist(["gardener", "--session-branch", "--only", "T001", "--test-command", "true"]).succeeds();
    let branches = repo.git(["branch", "--list", "--format=%(refname:short)", "arborist/tasks/*"]).answer();
    let branch = branches.lines().next().unwrap().to_owned();
    repo.git_in(repo.root(), ["init", "-q", "--bare", "origin.git"]).succeeds();
    repo.git(["push", "-q", "../origin.git", "main", &branch]).succeeds();
    repo.git_in(repo.root(), ["clone", "-q", "-b", "main", "origin.git", "clone"]).succeeds();
    let clone = repo.root().join("clone");
    (repo, clone, branch)
}

#[test]
fn a_session_branch_without_its_records_is_continued_as_the_hint_says() {
    let (repo, clone, branch) = pushed_session_branch();
    let session = branch.rsplit('/').next().unwrap();
    let way = format!("git switch {branch} && git arborist gardener");
    let again = ["gardener", "--session-branch", "--test-command", "true"];
    repo.arborist_in(&clone, again).exits(2).err(&format!("continue from its commits: {way}\n"));
    let resumed = repo.arborist_in(&clone, ["session", "resume", session]).exits(1);
    let resumed = resumed
        .err(&format!("the record of session '{session}' was not pushed, only its branch '{branch}'\n"));
    resumed.err(&format!("hint: continue from its commits: {way}\n")).never("there is no session");
    repo.git_in(&clone, ["switch", "-q", &branch]).succeeds();
    let continued = repo.arborist_in(&clone, ["gardener", "--test-command", "true"]).succeeds();
    continued.out("1 completed (T002)");
}

#[test]
fn a_session_without_its_records_is_neither_listed_nor_called_finished() {
    let (repo, clone, _) = pushed_session_branch();
    let listed = repo.arborist_in(&clone, ["session", "list"]).succeeds();
    let listed = listed.err(
        "if its sessions were pushed to 'origin', fetch them: git fetch origin 'refs/arborist/sessions/*:",
    );
    listed.err("to continue the run of this branch, run the command again that started it\n");
    let resumed = repo.arborist_in(&clone, ["session", "resume"]).exits(1);
    resumed.err("no unfinished session is recorded in this repository\n");
}

#[test]
fn uncommitted_files_in_the_worktree_of_a_session_are_named_where_they_are() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n- [ ] T002 two\n", arborist_testkit::WORKER);
    repo.arborist(["gardener", "--session-branch", "--only", "T001", "--test-command", "true"]).succeeds();
    let folder = fs::read_dir(repo.root().join("repo.arborist")).unwrap().flatten();
    let worktree =
        folder.map(|entry| entry.path()).find(|path| path.to_string_lossy().contains("session-")).unwrap();
    let session = worktree.to_str().unwrap().rsplit_once("session-").unwrap().1.to_owned();
    fs::write(worktree.join("extra.txt"), "mine\n").unwrap();
    let refused = repo.arborist(["session", "resume", &session, "--turn", "1"]).exits(2);
    let stash = format!("git -C '{}' stash -u", worktree.display());
    refused.err(&format!("hint: commit them, or stash them with: {stash}\n"));
    let resumed = repo.arborist(["session", "resume", &session, "--", "--yes"]).succeeds();
    resumed.err(&format!("warning: uncommitted changes stay in '{}', and the tasks", worktree.display()));
    assert_eq!(fs::read_to_string(worktree.join("extra.txt")).unwrap(), "mine\n");
}
