//! What the sandbox refused is named, with the setting that allows it: in logs, in the state of tasks, and before an agent is
//! called if only the sandbox makes the tests fail.

use std::fs;

use arborist_testkit::TestRepo;

use crate::{
    pasted_hints::{hinted, paste},
    sandbox_modes::{has_bwrap, working_modes},
};

fn repo(script: &str) -> TestRepo {
    let agent = format!(
        "case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\necho x > \"$ARBORIST_TASK.txt\"\n{script}\n"
    );
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", &agent);
    fs::create_dir_all(repo.home().join("data")).unwrap();
    repo
}

/// The advice about the folder in the home directory.
fn advice(repo: &TestRepo, folder: &str) -> String {
    let home = repo.home().canonicalize().unwrap();
    format!("git config --add arborist.sandbox.write '{}'", home.join(folder).display())
}

#[test]
fn the_folder_that_a_program_needs_is_proposed_but_never_the_home_directory() {
    for mode in working_modes() {
        for (command, proposed) in [
            ("echo x > ~/data/file", Some("data")),
            ("bash -c 'echo x > ~/data/file'", Some("data")),
            ("mkdir ~/.newtool", Some(".newtool")),
            ("mkdir -p ~/.newtool/cache/x", Some(".newtool")),
            ("touch ~/.toolrc", None),
            ("cp tasks.md ~/data/copy", Some("data")),
            ("python3 -c 'import os; open(os.path.expanduser(\"~/data/py\"), \"w\")'", Some("data")),
            ("git init -q ~/data/clone", Some("data/clone")),
        ] {
            let repo = repo("");
            let test = format!("test ! -e T001.txt || {command}");
            let args = ["gardener", "--sandbox", mode, "--max-retries", "1", "--test-command", &test];
            repo.arborist(args).exits(1);
            let state = repo.arborist(["state", "T001"]).succeeds().stdout().replace("\n          > ", " ");
            assert!(state.contains("the sandbox allows no changes to"), "{mode} {command}: {state}");
            let home = repo.home().canonicalize().unwrap();
            assert!(
                !state.contains(&format!("sandbox.write '{}'", home.display())),
                "{mode} {command}: {state}"
            );
            assert!(!state.contains("sandbox.write /usr/bin"), "{mode} {command}: {state}");
            match proposed {
                Some(folder) => assert!(state.contains(&advice(&repo, folder)), "{mode} {command}: {state}"),
                None => {
                    assert!(
                        state.contains("let the program use another folder"),
                        "{mode} {command}: {state}"
                    );
                }
            }
        }
    }
}

#[test]
fn granting_the_proposed_folder_makes_the_step_pass() {
    for mode in working_modes() {
        let repo = repo("mkdir -p ~/.newtool/cache || exit 1");
        let said = repo.arborist(["gardener", "--sandbox", mode, "--max-retries", "1"]).exits(1).stderr();
        let (_, command) = said.lines().find_map(|line| line.split_once("to allow it, run: ")).unwrap();
        assert!(command.starts_with("mkdir -p "), "{command}");
        // The environment of these tests sets sandbox.write, which counts more than git's configuration.
        let command = command.replace("arborist.sandbox.write", "arborist.runners.robot.sandbox.write");
        paste(&repo, &command).succeeds();
        repo.arborist(["gardener", "--sandbox", mode, "--retry-failed"]).succeeds();
    }
}

#[test]
fn a_folder_that_node_could_not_create_is_proposed() {
    if !has_bwrap() {
        return;
    }
    let repo = repo("");
    let test = "test ! -e T001.txt || { echo \"npm error ENOENT: no such file or directory, mkdir '$HOME/.newtool'\"; false; }";
    let args = ["gardener", "--sandbox", "bwrap", "--max-retries", "1", "--test-command", test];
    repo.arborist(args).exits(1).err(&advice(&repo, ".newtool"));
}

#[test]
fn steps_that_pass_report_what_the_sandbox_denied() {
    for mode in working_modes() {
        let repo = repo("touch ~/data/by-agent || true\necho done");
        let test = "test ! -e T001.txt || touch ~/data/by-test || true";
        let run = repo.arborist(["gardener", "--sandbox", mode, "--test-command", test]).succeeds();
        assert!(!run.stderr().contains("the sandbox"), "{}", run.stderr());
        let state = repo.arborist(["state", "T001"]).succeeds();
        state
            .out("Denied by the sandbox:")
            .out("/data/by-agent")
            .out("/data/by-test")
            .out(&advice(&repo, "data"));
        for step in ["implement", "test"] {
            repo.arborist(["logs", "T001", "--step", step]).succeeds().out(&advice(&repo, "data"));
        }
    }
}

#[test]
fn a_gate_that_the_sandbox_stops_is_explained_in_its_log_and_in_the_state_of_the_task() {
    for mode in working_modes() {
        let repo = repo("");
        let gate = "test ! -e T001.txt || touch ~/data/by-gate";
        repo.git(["config", "arborist.merge.gates.try.command", gate]).succeeds();
        repo.arborist(["gardener", "--isolate", "--sandbox", mode, "--max-retries", "1"]).exits(1);
        repo.arborist(["state", "T001"]).succeeds().out("/data/by-gate").out(&advice(&repo, "data"));
        let logs = fs::read_dir(repo.path("spec/logs")).unwrap().map(|entry| entry.unwrap().path());
        let of_gate = |path: &std::path::PathBuf| path.display().to_string().contains("gate-try");
        let log = logs.filter(of_gate).map(|path| fs::read_to_string(path).unwrap()).collect::<String>();
        assert!(log.contains(&advice(&repo, "data")), "{log}");
    }
}

#[test]
fn paths_denied_to_a_gate_that_passed_are_in_the_state_of_the_task() {
    for mode in working_modes() {
        let repo = repo("");
        let gate = "test ! -e T001.txt || touch ~/data/by-gate || true";
        repo.git(["config", "arborist.merge.gates.try.command", gate]).succeeds();
        repo.arborist(["gardener", "--isolate", "--sandbox", mode]).succeeds();
        let state = repo.arborist(["state", "T001"]).succeeds();
        state.out("the gate 'try': the sandbox allows no changes to").out(&advice(&repo, "data"));
        repo.arborist(["verify"]).succeeds();
    }
}

#[test]
fn paths_denied_to_setup_commands_are_recorded_with_the_task() {
    for mode in working_modes() {
        let repo = repo("");
        repo.git(["config", "arborist.worktree.setup", "touch ~/data/by-setup || true"]).succeeds();
        repo.arborist(["gardener", "--isolate", "--sandbox", mode]).succeeds();
        repo.arborist(["state", "T001"]).succeeds().out("/data/by-setup").out(&advice(&repo, "data"));
        repo.arborist(["logs", "T001", "--step", "implement"]).succeeds().out("/data/by-setup");
    }
}

#[test]
fn a_folder_with_keys_is_never_proposed() {
    for mode in working_modes() {
        let repo = repo("");
        fs::create_dir(repo.home().join(".ssh")).unwrap();
        fs::write(repo.home().join(".ssh/id"), "key").unwrap();
        let setup = "cat ~/.ssh/id && echo host >> ~/.ssh/known_hosts || true";
        repo.git(["config", "arborist.worktree.setup", setup]).succeeds();
        repo.arborist(["gardener", "--isolate", "--sandbox", mode]).succeeds();
        let state = repo.arborist(["state", "T001"]).succeeds().out("/.ssh/known_hosts");
        state.never("git config --add").never("hides");
    }
}

#[test]
fn hidden_files_are_reported_with_the_setting_that_hides_them() {
    for mode in working_modes() {
        let repo = repo("");
        fs::create_dir(repo.home().join(".aws")).unwrap();
        fs::write(repo.home().join(".aws/credentials"), "secret").unwrap();
        let test = "test ! -e T001.txt || cat ~/.aws/credentials";
        let args = ["gardener", "--sandbox", mode, "--max-retries", "1", "--test-command", test];
        repo.arborist(args).exits(1);
        let state = repo.arborist(["state", "T001"]).succeeds();
        state
            .out("the sandbox hides")
            .out("/.aws/credentials")
            .out("set sandbox.deny-read to a list without");
    }
}

#[test]
fn unreachable_hosts_are_reported_with_the_setting_that_denies_network_access() {
    if !has_bwrap() {
        return;
    }
    let repo = repo("");
    repo.git(["config", "arborist.steps.test.sandbox.network", "none"]).succeeds();
    let test = "test ! -e T001.txt || { echo 'ssh: connect to host 192.0.2.1 port 22: Network is unreachable'; false; }";
    let args = ["gardener", "--sandbox", "auto", "--max-retries", "1", "--test-command", test];
    repo.arborist(args).exits(1);
    let state = repo.arborist(["state", "T001"]).succeeds();
    let state = state.out("the sandbox has no network, so 192.0.2.1:22 cannot be reached");
    state.out("set steps.test.sandbox.network to \"all\"");
}

/// Lets `auto` use this backend. bubblewrap is preferred to Landlock, unless the first one on `PATH` does not work.
fn select_backend(repo: &TestRepo, backend: &str) {
    if backend == "landlock" {
        repo.plant("bwrap", "#!/bin/sh\nexit 1\n");
    }
}

#[test]
fn tests_that_fail_only_in_the_sandbox_are_reported_as_such_before_an_agent_is_called() {
    for backend in working_modes() {
        for place in [&[][..], &["--isolate"]] {
            let repo = repo("");
            select_backend(&repo, backend);
            let args = ["gardener", "--sandbox", "auto", "--test-command", "echo x > ~/data/file"];
            let run = repo.arborist([&args[..], place].concat()).exits(1);
            let run = run.err("error: the tests fail in the sandbox, but pass outside of it: 'echo x > ~/data/file' failed with exit code ");
            let run = run.err("hint: the sandbox allows no changes to");
            run.err(&advice(&repo, "data")).err("arborist.steps.test.sandbox.mode off");
            assert_eq!(repo.calls(), 0);
        }
        // The output does not say why.
        let repo = repo("");
        select_backend(&repo, backend);
        let args = ["gardener", "--sandbox", "auto", "--test-command", "echo x 2>/dev/null > ~/data/file"];
        repo.arborist(args)
            .exits(1)
            .err("hint: the output of the tests does not say what the sandbox refused");
        assert_eq!(repo.calls(), 0);
    }
}

#[test]
fn tests_that_fail_everywhere_are_reported_as_failing() {
    for backend in working_modes() {
        let repo = repo("");
        select_backend(&repo, backend);
        repo.git(["config", "arborist.steps.test.sandbox.write", "~/data"]).succeeds();
        let test = "echo run >> ~/data/runs; false";
        let run = repo.arborist(["gardener", "--sandbox", "auto", "--test-command", test]).exits(1);
        run.err("failed with exit code 1, in the sandbox and outside of it").never("green");
        let runs = fs::read_to_string(repo.home().join("data/runs")).unwrap();
        assert_eq!((repo.calls(), runs.lines().count()), (0, 2));
    }
}

#[test]
fn tests_are_not_run_outside_a_sandbox_that_the_user_chose() {
    let test = "touch ~/data/file";
    for mode in working_modes() {
        for is_of_step in [false, true] {
            let repo = repo("");
            if is_of_step {
                repo.git(["config", "arborist.steps.test.sandbox.mode", mode]).succeeds();
            }
            let chosen = if is_of_step { "auto" } else { mode };
            let run = repo.arborist(["gardener", "--sandbox", chosen, "--test-command", test]).exits(1);
            let run = run.err("were not tried outside of the sandbox, because a sandbox was chosen for it");
            assert!(!repo.home().join("data/file").exists(), "{mode}");
            let said = run.err(&advice(&repo, "data")).stderr();
            // Both commands of the hints work.
            paste(&repo, &hinted(&said, "run them yourself: ")).succeeds();
            fs::remove_file(repo.home().join("data/file")).unwrap();
            paste(&repo, &hinted(&said, "run them without the sandbox: ")).succeeds();
            repo.arborist(["gardener", "--sandbox", mode, "--test-command", test]).succeeds();
        }
    }
}

#[test]
fn tests_are_not_run_outside_the_sandbox_if_history_may_contain_code_of_agents() {
    let test = "touch ~/data/file";
    for backend in working_modes() {
        // Work of an agent, with a commit of the user on top of it.
        let repo = repo("");
        select_backend(&repo, backend);
        repo.git(["branch", "before"]).succeeds();
        repo.arborist(["gardener", "--sandbox", "auto"]).succeeds();
        repo.write("tasks.md", "- [ ] T001 a\n- [ ] T002 b\n");
        repo.commit("a commit of the user\n");
        for place in [&["--new-run"][..], &["--new-run", "--session-branch"], &["--accept-changes"]] {
            let args = ["gardener", "--sandbox", "auto", "--test-command", test];
            let run = repo.arborist([&args, place].concat()).exits(1);
            let run = run.err("the sandbox allows no changes to");
            run.err("were not tried outside of the sandbox, because a run has worked in this clone");
            assert!(!repo.home().join("data/file").exists(), "{backend} {place:?}");
        }
        // Ignored files of the run are still in the checkout.
        repo.git(["switch", "-q", "before"]).succeeds();
        let run = repo.arborist(["gardener", "--sandbox", "auto", "--test-command", test]).exits(1);
        run.err("were not tried outside of the sandbox, because a run has worked in this clone");
        assert!(!repo.home().join("data/file").exists(), "{backend}");
    }
}

#[test]
fn network_access_cannot_be_denied_to_a_runner_whose_step_uses_landlock() {
    if !has_bwrap() || !working_modes().contains(&"landlock") {
        return;
    }
    let repo = repo("");
    repo.git(["config", "arborist.runners.robot.sandbox.network", "none"]).succeeds();
    repo.git(["config", "arborist.steps.review.sandbox.mode", "landlock"]).succeeds();
    let run = repo.arborist(["gardener", "--sandbox", "auto"]).exits(128);
    run.err("runners.robot.sandbox.network is none, but steps.review.sandbox.mode is landlock");
    assert_eq!(repo.calls(), 0);
    // Another reviewer may use the network.
    repo.git(["config", "arborist.steps.review.sandbox.network", "all"]).succeeds();
    repo.arborist(["gardener", "--sandbox", "auto"]).succeeds();
}
