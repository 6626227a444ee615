//! What a fresh clone asks for before it goes on with a session: everything that others wrote and that would be run is shown
//! first, as a whole, also where it is approved at once.

use std::fs;

use crate::test_workspace::TestWorkspace;

const PLAN: &str = "- [ ] T001 do a\n- [ ] T002 [repo:backend] do b\n";

const WORKER: &str = r#"
case "$prompt" in
  "Review"*) echo APPROVED ;;
  *T002:*) test -e "$ROOT/mended" || exit 1; echo b > b.txt ;;
  *) echo a > a.txt ;;
esac
"#;

/// The set-up would wipe out what stands before it on a terminal.
const BROUGHT: &str = "test-command = \"true # a test\"\n\
    worktree.setup = [\"true \\u001b[2K\\r# a set-up\"]\n\
    merge.gates = [{ name = \"check\", command = \"true # a gate\" }]\n\
    [workspace.repos.backend.tools]\nlint = \"true # a tool\"\n";

const SHOWN: [&str; 7] = [
    "workspace.repos.app: repository ",
    "workspace.repos.backend: repository ",
    "test: true # a test",
    "# a set-up",
    "gate: true # a gate",
    "true # a tool",
    "push on_checkpoint",
];

#[track_caller]
fn assert_each_is_shown_once(said: &str, lines: &[&str]) {
    for line in lines {
        let times = if line.starts_with("push ") { 2 } else { 1 };
        assert_eq!(said.matches(line).count(), times, "'{line}' in:\n{said}");
    }
    assert!(!said.contains('\u{1b}') && !said.contains('\r'), "{said:?}");
}

fn interrupted(workspace: &TestWorkspace) {
    workspace.agent(WORKER);
    workspace.arborist(["gardener", "--yes", "--isolate", "--max-retries", "1"]).exits(1);
    workspace.delete_container();
    workspace.clone_again();
    fs::write(workspace.root().join("mended"), "").unwrap();
}

#[test]
fn everything_that_needs_approval_is_shown_before_anything_is_fetched() {
    let workspace = TestWorkspace::of_containers(PLAN, "on_checkpoint", BROUGHT);
    interrupted(&workspace);
    let calls = workspace.calls();
    let refused = workspace.arborist(["session", "resume"]).exits(2).err("--yes");
    assert_each_is_shown_once(&refused.stderr(), &SHOWN);
    assert_eq!(workspace.calls(), calls);
    assert!(!workspace.clone_of("backend").exists() && !workspace.root().join("repo.arborist").exists());
    assert_eq!(workspace.git(["for-each-ref", "refs/arborist"]).answer(), "");

    let resumed = workspace.arborist(["session", "resume", "--yes"]).succeeds().out("1 completed (T002)");
    assert_each_is_shown_once(&resumed.stderr(), &SHOWN);
    // What is approved is not asked for again.
    workspace.arborist(["gardener", "--isolate"]).succeeds().never("# a gate").never("# a tool");
}

/// The configuration stands in no commit but those of the session.
#[test]
fn commands_configured_only_in_the_session_are_shown_once_it_is_fetched() {
    let workspace = TestWorkspace::of_containers(PLAN, "on_checkpoint", "");
    let text = format!("{BROUGHT}{}", workspace.read(".arborist/config.toml"));
    workspace.git(["rm", "-q", ".arborist/config.toml"]).succeeds();
    workspace.commit("no configuration\n");
    workspace.git(["push", "-q", "origin", "main"]).succeeds();
    workspace.write(".arborist/config.toml", text);
    interrupted(&workspace);
    assert!(!workspace.path(".arborist/config.toml").exists());
    // A worktree is set up as the checkout says, and that says nothing here; but lanes are as the session has it.
    let calls = workspace.calls();
    let refused = workspace.arborist(["session", "resume"]).exits(2).err("session refs from");
    assert_each_is_shown_once(&refused.stderr(), &SHOWN);
    assert_eq!(workspace.calls(), calls);
    assert!(!workspace.clone_of("backend").exists() && !workspace.root().join("repo.arborist").exists());
    let resumed = workspace.arborist(["session", "resume", "--yes"]).succeeds().out("1 completed (T002)");
    assert_each_is_shown_once(&resumed.stderr(), &SHOWN);
}

#[test]
fn a_new_run_with_yes_shows_what_it_approves() {
    let workspace = TestWorkspace::of_containers(PLAN, "on_checkpoint", BROUGHT);
    workspace.agent(WORKER);
    fs::write(workspace.root().join("mended"), "").unwrap();
    let run = workspace.arborist(["gardener", "--yes", "--quiet", "--isolate"]).succeeds();
    assert_each_is_shown_once(&run.stderr(), &SHOWN);
    workspace.delete_container();
    workspace.clone_again();
    let synced = workspace.arborist(["workspace", "sync", "--yes"]).succeeds();
    assert_each_is_shown_once(&synced.stderr(), &SHOWN[..2]);
    workspace.arborist(["workspace", "sync", "--yes"]).succeeds().never("workspace.repos.");
}
