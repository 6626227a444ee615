//! Runs whose remotes are on a network: `git daemon` serves them; and one that hangs, refuses or vanishes costs a warning.

use std::{
    fs,
    net::TcpListener,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::git_daemon::GitDaemon;
use crate::test_workspace::{TestWorkspace, remotes::WORKER};

#[test]
fn a_run_with_git_daemon_remotes_can_be_resumed_from_a_new_clone() {
    let workspace = TestWorkspace::of_remotes();
    let daemon = GitDaemon::start(&workspace);
    workspace.use_remotes(|repo| daemon.url(repo), "on_checkpoint");
    workspace.git(["config", "--global", "arborist.session.transcripts", "push"]).succeeds();
    for name in ["repo", "backend"] {
        fs::remove_dir_all(workspace.root().join(name)).unwrap();
    }
    workspace.git_in(workspace.root(), ["clone", "-q", &daemon.url("repo"), "repo"]).succeeds();
    workspace
        .arborist(["gardener", "--max-retries", "1"])
        .exits(1)
        .err("cloned 'backend' from git://127.0.0.1");
    assert!(workspace.has("repo", "T001.txt") && workspace.has("backend", "T002.txt"));
    for name in ["repo", "backend", "repo.arborist", "backend.arborist"] {
        fs::remove_dir_all(workspace.root().join(name)).unwrap();
    }
    workspace.let_tests_pass();
    workspace.git_in(workspace.root(), ["clone", "-q", &daemon.url("repo"), "repo"]).succeeds();
    workspace.arborist(["session", "resume"]).succeeds().out("1 completed (T003)");
    assert!(workspace.has("repo", "T003.txt"));
    let kinds: Vec<String> = workspace
        .pushed("repo")
        .iter()
        .map(|name| name.split('/').take(3).collect::<Vec<_>>().join("/"))
        .collect();
    let expected = ["refs/arborist/sessions", "refs/arborist/transcripts", "refs/heads/arborist"];
    assert_eq!(kinds, expected, "what was asked for, and nothing else");
}

#[test]
fn a_git_daemon_that_ends_during_a_run_causes_a_warning_and_loses_no_work() {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    let daemon = GitDaemon::start(&workspace);
    workspace.use_remotes(|repo| daemon.url(repo), "on_checkpoint");
    workspace
        .agent(&format!("case \"$prompt\" in *T002:*) kill {} 2>/dev/null ;; esac\n{WORKER}", daemon.pid()));
    let run = workspace.arborist(["gardener"]).succeeds().out("3 completed");
    run.err("warning: 'app' was not pushed").err("warning: 'backend' was not pushed");
    workspace
        .arborist(["state", "--exit-code"])
        .succeeds()
        .out("app: unpushed by ")
        .out("backend: unpushed by ");
    drop(daemon);
    // Somebody else may have its port by now.
    let again = GitDaemon::start(&workspace);
    workspace.use_remotes(|repo| again.url(repo), "on_checkpoint");
    workspace.arborist(["workspace", "push"]).succeeds();
    assert!(workspace.has("repo", "T003.txt") && workspace.has("backend", "T002.txt"));
    workspace.arborist(["state"]).succeeds().never("unpushed");
}

#[test]
fn a_remote_that_hangs_times_out_when_a_run_starts_and_when_it_is_resumed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.set_network_timeout(2);
    workspace.use_remotes(|repo| format!("git://{address}/{repo}.git"), "on_completion");
    let base = workspace.git(["rev-parse", "--short=10", "HEAD"]).answer();
    let run = workspace.arborist(["gardener", "--until", "T001"]).succeeds().never("asked to stop");
    run.err(&format!("the remote of 'app' could not be reached (no answer for 2 s); starting at {base}"));
    let resumed = workspace.arborist(["session", "resume"]).succeeds().out("2 completed (T002, T003)");
    resumed.err("offline: could not ask the remote for sessions (");
    workspace.arborist(["state"]).succeeds().out("app: unpushed by ");
}

#[test]
fn a_refused_push_is_reported_and_never_forced() {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| workspace.remote_of(repo).display().to_string(), "on_completion");
    let hook = workspace.remote_of("repo").join("hooks/update");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    workspace
        .write_script(&format!("../{}", "repo.git/hooks/update"), "#!/bin/sh\necho not today >&2\nexit 1\n");
    let run = workspace.arborist(["gardener"]).succeeds().out("3 completed");
    run.err("'app' was not pushed")
        .err("was refused: [remote rejected] (hook declined): not today")
        .never("'backend' was not pushed");
    assert_eq!(workspace.pushed("repo"), [""; 0]);
    assert!(workspace.has("backend", "T002.txt"));
    workspace.arborist(["state"]).succeeds().out("app: unpushed by ").never("backend: unpushed");
    fs::remove_file(hook).unwrap();
    // Somebody else has a branch of the same name there, with other commits.
    let branch = workspace.session_branch("repo");
    let other = workspace
        .git_in(&workspace.remote_of("repo"), ["commit-tree", "-m", "other", "main^{tree}"])
        .answer();
    workspace
        .git_in(&workspace.remote_of("repo"), ["update-ref", &format!("refs/heads/{branch}"), &other])
        .succeeds();
    workspace.arborist(["workspace", "push"]).exits(1).err("refused");
    assert_eq!(
        workspace.git_in(&workspace.remote_of("repo"), ["rev-parse", &branch]).answer(),
        other,
        "never forced"
    );
}

/// Its records go through after each commit, its branch does not.
#[test]
fn a_ref_that_a_remote_keeps_refusing_is_reported_once() {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| workspace.remote_of(repo).display().to_string(), "on_checkpoint");
    let hook = "#!/bin/sh\ncase $1 in refs/heads/*) echo not today >&2; exit 1 ;; esac\n";
    fs::create_dir_all(workspace.remote_of("repo").join("hooks")).unwrap();
    workspace.write_script("../repo.git/hooks/update", hook);
    let run = workspace.arborist(["gardener"]).succeeds().out("unpushed app: the last push failed");
    assert_eq!(run.stderr().matches("'app' was not pushed").count(), 1, "{}", run.stderr());
    workspace.arborist(["state"]).succeeds().out("app: unpushed by ");
}

#[test]
fn a_ref_that_a_remote_starts_to_refuse_later_is_reported_too() {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.use_remotes(|repo| workspace.remote_of(repo).display().to_string(), "on_checkpoint");
    // Not before a push is over in which a branch was refused, however slow the pushes are.
    let later = "i=0; until [ -e \"$ROOT/pushed\" ] || [ $i = 600 ]; do i=$((i+1)); sleep 0.02; done; : > \"$ROOT/later\"";
    workspace.agent(&format!("case \"$prompt\" in *T003:*) {later} ;; esac\n{WORKER}"));
    let root = workspace.root().display();
    let hook = format!(
        "#!/bin/sh\ncase $1 in refs/heads/*) : > '{root}/refused'; exit 1 ;; *) test ! -e '{root}/later' ;; esac\n"
    );
    fs::create_dir_all(workspace.remote_of("repo").join("hooks")).unwrap();
    workspace.write_script("../repo.git/hooks/update", &hook);
    let over = format!("#!/bin/sh\ntest ! -e '{root}/refused' || : > '{root}/pushed'\n");
    workspace.write_script("../repo.git/hooks/post-receive", &over);
    let run = workspace.arborist(["gardener"]).succeeds().out("unpushed app: the last push failed");
    let said = run.stderr();
    assert_eq!(said.matches("'app' was not pushed: refs/heads/").count(), 1, "{said}");
    assert!(said.contains("'app' was not pushed: refs/arborist/"), "{said}");
}

/// The remote has taken the last push, and does not answer.
#[test]
fn a_signal_also_ends_the_last_push_of_a_run() {
    let workspace = TestWorkspace::of_remotes();
    workspace.let_tests_pass();
    workspace.set_network_timeout(600);
    workspace.use_remotes(|repo| workspace.remote_of(repo).display().to_string(), "on_completion");
    let hook = format!("#!/bin/sh\n: > '{}'\nexec sleep 300\n", workspace.root().join("hangs").display());
    fs::create_dir_all(workspace.remote_of("repo").join("hooks")).unwrap();
    workspace.write_script("../repo.git/hooks/pre-receive", &hook);
    let mut command = workspace.command("git-arborist-gardener", &workspace.path(""));
    let piped = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = piped.spawn().unwrap();
    while !workspace.root().join("hangs").exists() {
        thread::sleep(Duration::from_millis(10));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let ended = child.wait_with_output().unwrap();
    let said = [ended.stdout, ended.stderr].map(|stream| String::from_utf8(stream).unwrap()).concat();
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains("3 completed") && said.contains("unpushed app"), "{said}");
    assert!(said.contains("'app' was not pushed: the run ended before its remote answered"), "{said}");
    // All of the work is done, and all of it is here.
    workspace.arborist(["state", "--exit-code"]).succeeds().out("app: unpushed by ");
}
