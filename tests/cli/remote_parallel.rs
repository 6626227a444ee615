//! Several remotes are asked at once: one that hangs costs its own time, and keeps nobody from the others.

use std::{
    fs,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::test_workspace::{TestWorkspace, remotes::WORKER};

/// Two remotes that are reached by ssh, of which neither answers before the other has been reached.
fn workspace_of_two_repos(policy: &str) -> TestWorkspace {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| format!("ssh://{repo}/x"), policy);
    let script = r#"#!/bin/sh
for word in "$@"; do host=$service; service=$word; done
: > "$ROOT/reached-$host"
until test -e "$ROOT/reached-repo" && test -e "$ROOT/reached-backend"; do sleep 0.02; done
exec "${service%% *}" "$ROOT/$host.git"
"#;
    workspace.plant("ssh", &script.replace("$ROOT", &workspace.root().display().to_string()));
    workspace
}

/// They are to be reached anew.
fn reset_contacts(workspace: &TestWorkspace) {
    for host in ["repo", "backend"] {
        fs::remove_file(workspace.root().join(format!("reached-{host}"))).unwrap();
    }
}

#[test]
fn sync_and_push_contact_all_remotes_at_once_and_report_in_order() {
    let workspace = workspace_of_two_repos("never");
    fs::remove_dir_all(workspace.clone_of("backend")).unwrap();
    let said =
        workspace.arborist(["workspace", "sync", "--repo", "backend", "--repo", "app", "--repo", "backend"]);
    assert_eq!(said.stdout(), "backend: cloned from ssh://backend/x\napp: fetched from ssh://repo/x\n");
    reset_contacts(&workspace);
    let said = workspace.arborist(["workspace", "sync"]);
    assert_eq!(said.stdout(), "app: fetched from ssh://repo/x\nbackend: fetched from origin\n");
    workspace.arborist(["gardener"]).succeeds().out("3 completed");
    reset_contacts(&workspace);
    let said = workspace.arborist(["workspace", "push"]).succeeds();
    let repos: Vec<String> =
        said.stdout().lines().map(|line| line.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(repos, ["app", "app", "backend"], "{}", said.stdout());
    assert!(workspace.has("repo", "T003.txt") && workspace.has("backend", "T002.txt"));
}

#[test]
fn a_run_fetches_from_all_remotes_at_once_when_it_starts() {
    let workspace = workspace_of_two_repos("never");
    fs::remove_dir_all(workspace.clone_of("backend")).unwrap();
    let said = workspace.arborist(["gardener", "--until", "T001"]).succeeds().never("offline");
    let said = said.stderr();
    let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("no '{words}' in {said}"));
    assert!(at("fetched 'app' from ssh://repo/x") < at("cloned 'backend' from ssh://backend/x"), "{said}");
    reset_contacts(&workspace);
    workspace.arborist(["gardener", "--new-run"]).succeeds().out("3 completed").never("offline");
}

/// The first push to the one is over when the last task is, which waits for a push to the other.
#[test]
fn a_hanging_push_does_not_delay_checkpoint_pushes_of_other_repositories() {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| workspace.remote_of(repo).display().to_string(), "on_checkpoint");
    let root = workspace.root().display().to_string();
    let wait = |file: &str| format!("until test -e '{root}/{file}'; do sleep 0.02; done");
    let hook = |repo: &str, name: &str, script: &str| {
        workspace.write_script(&format!("../{repo}.git/hooks/{name}"), &format!("#!/bin/sh\n{script}\n"));
    };
    hook("repo", "pre-receive", &format!(": > '{root}/hangs'\n{}", wait("done")));
    hook("backend", "post-receive", &format!("test ! -e '{root}/hangs' || : > '{root}/pushed'"));
    let last = format!("{}\n{}\n : > '{root}/done'", wait("hangs"), wait("pushed"));
    workspace.agent(&format!("case \"$prompt\" in Review*) ;; *T003:*) {last} ;; esac\n{WORKER}"));
    let plan = "## Phase 1: Work\n\n- [ ] T001 do a\n- [ ] T002 [repo:backend] do b\n- [ ] T003 [repo:backend] do c\n";
    workspace.write("tasks.md", plan);
    workspace.commit("another plan\n");
    workspace.arborist(["gardener"]).succeeds().out("3 completed").never("was not pushed");
    assert!(workspace.has("repo", "spec/reports") && workspace.has("backend", "T003.txt"));
}

#[test]
fn a_signal_ends_the_wait_for_remotes() {
    let workspace = workspace_of_two_repos("never");
    workspace.set_network_timeout(600);
    let script = format!("#!/bin/sh\n: > '{}'\nexec sleep 300\n", workspace.root().join("hangs").display());
    workspace.plant("ssh", &script);
    for verb in [&["gardener"][..], &["workspace", "sync"]] {
        let mut command = workspace.command(&format!("git-arborist-{}", verb[0]), &workspace.path(""));
        let piped =
            command.args(&verb[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = piped.spawn().unwrap();
        while !workspace.root().join("hangs").exists() {
            thread::sleep(Duration::from_millis(10));
        }
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = [ended.stdout, ended.stderr].map(|stream| String::from_utf8(stream).unwrap()).concat();
        assert_eq!(ended.status.code(), Some(130), "{said}");
        fs::remove_file(workspace.root().join("hangs")).unwrap();
    }
    assert_eq!(workspace.git(["branch", "--list", "arborist/*"]).answer(), "", "nothing was begun");
}
