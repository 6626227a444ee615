//! What people do in their first hours with git-arborist: mistyped names, files in the wrong place, and programs that do not
//! start.

use arborist_testkit::{Run, TestRepo, WORKER};

use crate::pasted_hints::{hinted, paste};

fn planned(plan: &str) -> TestRepo {
    TestRepo::planned("tasks.md", plan, WORKER)
}

fn one_task() -> TestRepo {
    planned("- [ ] T001 one\n")
}

fn arborist_with(repo: &TestRepo, variables: &[(&str, &str)], args: &[&str]) -> Run {
    let mut command = repo.command("git", &repo.path(""));
    command.arg("arborist").args(args).envs(variables.iter().copied());
    Run::of(&mut command, b"")
}

#[test]
fn plan_output_does_not_overwrite_a_file_of_another_format() {
    let repo = one_task();
    repo.write("notes.md", "# Notes\n");
    repo.write("empty.json", "");
    let hint = "hint: choose another name with -o, or move the file away";
    for (file, args) in [
        ("tasks.md", &["plan", "tasks.md", "-o", "tasks.md"][..]),
        ("notes.md", &["plan", "-o", "notes.md"]),
        ("notes.md", &["plan", "--format", "dot", "-o", "notes.md"]),
    ] {
        let before = repo.read(file);
        repo.arborist(args).exits(1).err(&format!("'{file}' exists and is not a")).err(hint);
        assert_eq!(repo.read(file), before);
    }
    repo.arborist(["plan", "-o", "new.md"]).exits(1).err("would read 'new.md' as Markdown");
    assert!(!repo.path("new.md").exists());
    std::fs::create_dir(repo.path("folder")).unwrap();
    repo.arborist(["plan", "-o", "folder"]).exits(128).err("could not write 'folder': it is a folder");
    for (file, format) in
        [("tree.json", "json"), ("empty.json", "json"), ("g.dot", "dot"), ("g.mmd", "mermaid")]
    {
        for _ in 0..2 {
            repo.arborist(["plan", "tasks.md", "--format", format, "-o", file]).succeeds();
        }
    }
}

#[test]
fn json_in_a_markdown_file_is_reported_as_such() {
    let repo = one_task();
    repo.arborist(["plan", "-o", "tree.json"]).succeeds();
    std::fs::rename(repo.path("tree.json"), repo.path("tasks.md")).unwrap();
    repo.arborist(["plan", "tasks.md"])
        .exits(1)
        .err("this is JSON, but the name of the file says Markdown")
        .err("rename it");
}

#[test]
fn a_step_that_does_not_exist_cannot_be_configured() {
    let repo = one_task();
    repo.git(["-c", "arborist.steps.revew.runner=codex", "arborist", "gardener", "--dry-run"])
        .exits(1)
        .err("there is no step 'revew'\nhint: did you mean 'review'?");
    for (text, message) in [
        (
            "[steps.revew]\nrunner = \"demo\"\n",
            "config.toml:2: there is no step 'revew'\nhint: did you mean 'review'?",
        ),
        (
            "[steps]\nfoo = 3\n",
            "there is no step 'foo'\nhint: known steps: implement, review, plan, resolve, commit-message, test, hook, gate, setup\n",
        ),
        (
            "[steps.gate]\ntimeout = 3\n",
            "unknown key 'steps.gate.timeout'\nhint: known keys: steps.gate.sandbox.mode, steps.gate.sandbox.deny-read",
        ),
        (
            "[steps.test]\nrunner = \"demo\"\n",
            "the step 'test' calls no agent, so 'steps.test.runner' has no effect",
        ),
        ("[runners.robot]\ncommand = []\n", "config.toml:2: 'runners.robot.command' must be a list of words"),
    ] {
        repo.write(".arborist/config.toml", text);
        repo.arborist(["gardener", "--dry-run"]).exits(1).err(message);
    }
}

#[test]
fn an_invalid_gate_configuration_is_reported_with_a_complete_example() {
    let repo = one_task();
    let gate = "hint: write a gate as three lines: [[merge.gates]], then name = \"test\", then command = \"npm test\"";
    for text in [
        "[merge]\ngates = \"npm test\"\n",
        "[merge.gates]\ncommand = \"npm test\"\n",
        "[[merge.gates]]\nname = \"t\"\n",
        "[merge.gates.t]\ntimeout = 3\n",
    ] {
        repo.write(".arborist/config.toml", text);
        repo.arborist(["gardener", "--dry-run"]).exits(1).err(gate);
    }
    std::fs::remove_file(repo.path(".arborist/config.toml")).unwrap();
    let said = repo.git(["-c", "arborist.merge.gates=npm test", "arborist", "gardener", "--dry-run"]);
    said.exits(1).err("git config arborist.merge.gates.test.command 'npm test'");
}

#[test]
fn a_mistyped_environment_variable_is_an_error() {
    let repo = one_task();
    let run = ["gardener", "--dry-run"];
    arborist_with(&repo, &[("ARBORIST_RUNER", "codex")], &run)
        .exits(1)
        .err("unknown environment variable 'ARBORIST_RUNER'\nhint: did you mean 'ARBORIST_RUNNER'?");
    arborist_with(&repo, &[("ARBORIST_MAX_RETRYS", "3")], &run).exits(1).err("'ARBORIST_MAX_RETRIES'");
    let own =
        [("ARBORIST_TASK", "T001"), ("ARBORIST_PORT", "3"), ("ARBORIST_TRUST", "1"), ("ARBORIST_RUNER", "")];
    arborist_with(&repo, &own, &run).succeeds();
    // Protected files are not silently left out of the verification.
    repo.arborist(["gardener"]).succeeds();
    arborist_with(&repo, &[("ARBORIST_RUNER", "codex")], &["verify"])
        .exits(1)
        .err("did you mean 'ARBORIST_RUNNER'?");
    // Kubernetes sets such variables in every pod beside a service of the name 'arborist'.
    let foreign = [("ARBORIST_SERVICE_HOST", "10.0.0.1"), ("ARBORIST_PORT_80_TCP", "tcp://10.0.0.1:80")];
    arborist_with(&repo, &foreign, &run).succeeds();
}

#[test]
fn a_log_folder_outside_the_repository_is_refused() {
    let repo = one_task();
    for folder in ["../logs", "/tmp/logs-of-arborist", "a/../../logs"] {
        repo.arborist(["gardener", "--log-dir", folder]).exits(1).err("the log-dir").err("--log-dir");
        repo.git(["config", "arborist.log-dir", folder]).succeeds();
        let said = repo.arborist(["gardener"]).exits(1);
        let said = said.err(&format!("'arborist.log-dir' cannot be used: '{folder}' "));
        said.err("hint: name a folder from the top of the repository, such as spec/logs");
        repo.git(["config", "--unset", "arborist.log-dir"]).succeeds();
    }
    assert!(!repo.path("../logs").exists());
    repo.arborist(["gardener", "--log-dir", "logs/"]).succeeds();
    assert!(repo.path("logs").is_dir());
}

#[test]
fn a_path_as_the_name_of_a_runner_is_refused() {
    let repo = one_task();
    let said = repo.arborist(["gardener", "--runner", "./agent.sh"]);
    said.exits(129).err("a runner is a name, not a path").err("arborist.runners.NAME.command ./agent.sh");
    repo.git(["config", "arborist.runners../agent.sh.command", "x"]).succeeds();
    let hint = "git config --unset-all arborist.runners../agent.sh.command";
    repo.arborist(["gardener", "--dry-run"]).exits(1).err(hint);
    repo.git(["config", "--unset-all", "arborist.runners../agent.sh.command"]).succeeds();
    repo.arborist(["gardener", "--dry-run"]).succeeds();
}

#[test]
fn a_runner_that_cannot_start_stops_the_run_before_an_attempt() {
    let repo = one_task();
    repo.write("plain.sh", "true\n");
    repo.write_script("odd.sh", "#!/nosuch/interp\ntrue\n");
    repo.commit("scripts\n");
    let top = repo.path("").canonicalize().unwrap();
    let top = top.display();
    for (program, message) in [
        (
            "./nosuch.sh",
            format!(
                "error: the runner 'robot' cannot start: there is no file '{top}/nosuch.sh'\nhint: correct arborist.runners.robot.command in .git/config\n"
            ),
        ),
        (
            "./plain.sh",
            format!(
                "'{top}/plain.sh' is not executable\nhint: make it executable with: chmod +x '{top}/plain.sh'\n"
            ),
        ),
        (
            "./odd.sh",
            format!(
                "the interpreter '/nosuch/interp' of '{top}/odd.sh' does not exist\nhint: correct the first line"
            ),
        ),
    ] {
        repo.git(["config", "arborist.runners.robot.command", program]).succeeds();
        repo.arborist(["gardener", "--runner", "robot"]).exits(1).err(&message);
    }
    assert!(!repo.git(["log", "--format=%s"]).answer().contains("@T001@"));
}

#[test]
fn a_runner_with_a_relative_path_is_found_from_subfolders_and_worktrees() {
    for place in [&[][..], &["--isolate"]] {
        let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
        repo.write_script("tools/agent.sh", &format!("#!/bin/sh\nprompt=$(cat)\n{WORKER}\n"));
        repo.write("sub/file", "");
        repo.commit("an agent\n");
        repo.git(["config", "arborist.runners.robot.command", "./tools/agent.sh"]).succeeds();
        let args = [&["gardener", "--runner", "robot", "--only", "T001"], place].concat();
        repo.arborist_in(&repo.path("sub"), &args).succeeds();
        let args = [&["gardener", "--runner", "robot"], place].concat();
        repo.arborist(&args).succeeds().out("2 of 2");
    }
}

#[test]
fn the_current_run_is_not_guessed_during_a_rebase() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.git(["branch", "topic", "HEAD~1"]).succeeds();
    repo.git(["-c", "sequence.editor=sed -i.bak -e 1s/pick/edit/", "rebase", "-i", "HEAD~2"]).succeeds();
    let said = repo.arborist(["state"]).exits(128);
    said.err("HEAD is detached during a rebase")
        .err("or name the branch of the run with: --scope main")
        .never("git switch");
    repo.arborist(["plan", "--tick"])
        .exits(128)
        .err("finish or cancel it, as 'git status' says")
        .never("git switch");
    repo.arborist(["state", "--scope", "main"]).succeeds().out("T001");
    repo.git(["rebase", "--abort"]).succeeds();
}

#[test]
fn on_a_detached_head_the_hint_for_a_finished_task_needs_no_branch() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.git(["switch", "--detach"]).succeeds();
    let said = repo.arborist(["garden", "T001", "--session-branch"]).exits(2);
    said.err("to do all tasks again, use --new-run").never("--tick");
}

#[test]
fn a_run_whose_plan_was_replaced_suggests_the_other_plan() {
    let repo = planned("- [ ] T001 one\n- [ ] T002 two\n");
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.arborist(["plan", "-o", "task-tree.json"]).succeeds();
    let noted = "using the plan 'tasks.md', with which this run began, not 'task-tree.json'";
    repo.commit("a tree\n");
    repo.arborist(["gardener", "--dry-run"]).succeeds();
    repo.git(["rm", "-q", "tasks.md"]).succeeds();
    repo.commit("only a tree\n");
    let said = repo.arborist(["gardener"]).exits(1);
    said.err("this run uses the plan 'tasks.md', which no longer exists")
        .err("hint: continue it with another plan: git arborist gardener --tree task-tree.json\n");
    repo.git(["revert", "--no-edit", "HEAD"]).succeeds();
    repo.arborist(["gardener"]).succeeds().err(noted);
}

#[test]
fn merging_an_unplanned_task_does_not_suggest_running_it_first() {
    let repo = one_task();
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    let place = repo.arborist(["worktree", "add", "--unplanned", "spike"]).succeeds().stdout();
    let place = std::path::PathBuf::from(place.trim());
    std::fs::write(place.join("spike.txt"), "x\n").unwrap();
    repo.git_in(&place, ["add", "-A"]).succeeds();
    repo.git_in(&place, ["commit", "-qm", "a spike"]).succeeds();
    let said = repo.arborist(["merge", "spike"]).exits(1).never("run it first");
    said.err("'spike' is not in the plan, so no run completes it")
        .err("hint: land it although it is not complete");
    repo.arborist(["merge", "add", "spike"]).exits(1).err("hint: queue it although it is not complete");
    let said = repo.arborist(["merge", "--force", "spike"]).succeeds();
    said.out("1 landed (spike)")
        .err("'spike' is not in the plan, so nothing is left to do")
        .never("tick its box")
        .never("garden spike");
}

#[test]
fn worktree_add_is_suggested_only_for_tasks_of_the_plan() {
    let repo = one_task();
    for args in [&["worktree", "path", "nope"][..], &["worktree", "run", "nope", "--", "true"]] {
        let said = repo.arborist(args).exits(1).never("worktree add nope");
        said.err("'nope' has no worktree").err("see all worktrees with: git arborist worktree list");
    }
    repo.arborist(["worktree", "path", "T001"]).exits(1).err("make one with: git arborist worktree add T001");
}

#[test]
fn work_on_the_branch_of_a_task_that_runs_in_the_checkout_can_be_seen() {
    let repo = one_task();
    repo.agent("case \"$prompt\" in\n \"Review\"*) echo REJECTED: no ;;\n *) echo x >> work.txt ;;\nesac");
    repo.arborist(["gardener", "--isolate", "--max-retries", "1"]).exits(1);
    let said = repo.arborist(["gardener", "--retry-failed", "--max-retries", "1"]).exits(1);
    let said =
        said.err("is not used by this run").err("it stays on the branch 'arborist/task/main/T001'").stderr();
    paste(&repo, &hinted(&said, "see it with: ")).succeeds().out("+++ b/work.txt");
}

#[test]
fn a_branch_without_changed_files_has_no_work_that_is_not_used() {
    let repo = one_task();
    repo.agent("exit 3");
    repo.arborist(["gardener", "--isolate", "--max-retries", "1"]).exits(1);
    let again = ["gardener", "--retry-failed", "--max-retries", "1"];
    repo.arborist(again).exits(1).never("is not used by this run");
}

#[test]
fn a_task_that_was_reset_has_no_reason_of_an_earlier_attempt() {
    let repo = one_task();
    repo.agent("exit 3");
    // Logs have the time of the system, so commits must have it, too.
    let arborist = |args: &[&str]| {
        let mut command = repo.command("git", &repo.path(""));
        for variable in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE", "GIT_TEST_DATE_NOW"] {
            command.env_remove(variable);
        }
        Run::of(command.arg("arborist").args(args), b"")
    };
    arborist(&["gardener", "--max-retries", "1"]).exits(1);
    for reset in [&["reset", "T001"][..], &["reset", "--drop", "T001"]] {
        arborist(reset).succeeds();
        let said = arborist(&["state", "T001"]).succeeds();
        said.out("state        ready").never("  why ").never("without a result");
    }
}

#[test]
fn the_demo_ignores_the_settings_of_the_user() {
    let repo = TestRepo::init();
    let file = repo.home().join(".config/git-arborist/config.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "test-command = \"false\"\n").unwrap();
    repo.git(["config", "--global", "arborist.max-retries", "1"]).succeeds();
    repo.arborist(["demo", "--into", "garden"]).succeeds().out("5 completed");
}

#[test]
fn a_demo_that_stops_says_which_command_failed() {
    let repo = TestRepo::init();
    let run = arborist_with(&repo, &[("ARBORIST_TEST_COMMAND", "false")], &["demo", "--into", "garden"]);
    let failed =
        "error: the demo stopped, because this command failed: git arborist gardener --runner demo --yes\n";
    let said = run.exits(128).err(failed).never("it ended with").stderr();
    paste(&repo, &hinted(&said, "remove its repository with: ")).succeeds();
    assert!(!repo.path("garden").exists());
}

#[test]
fn the_only_line_of_a_failed_test_command_is_quoted() {
    let repo = one_task();
    let said = repo.arborist(["gardener", "--test-command", "echo nothing works >&2; exit 2"]).exits(1);
    said.err("failed with exit code 2: nothing works; log:");
}

#[test]
fn invalid_paths_in_allow_are_refused_by_every_command_and_in_plans() {
    let repo = one_task();
    let names_no_path = "'**' names no path; name the files or folders that may be changed";
    let mistyped = "'fewer-test' is probably a typing error; write fewer-tests";
    let outside = "'tests/..' must be a path from the top of the repository, without '..'";
    for (path, message) in [("**", names_no_path), ("tests/..", outside), ("fewer-test", mistyped)] {
        repo.arborist(["gardener", "--allow", path]).exits(1).err(message);
        repo.arborist(["merge", "run", "--allow", path]).exits(1).err(message);
        repo.write("other.md", format!("- [ ] T001 [allow:{path}] one\n"));
        let said = repo.arborist(["plan", "--check", "other.md"]).exits(1);
        said.out(&format!("other.md:1:1: error: [allow:{path}] of 'T001': {message}"));
        std::fs::remove_file(repo.path("other.md")).unwrap();
    }
    let said =
        repo.arborist(["gardener", "--allow", "nosuch", "--allow", "tasks.md", "--allow", "fewer-tests"]);
    said.succeeds().err("warning: --allow 'nosuch' matches no committed file").never("'tasks.md' matches");
}

#[test]
fn a_budget_of_zero_is_refused() {
    let repo = one_task();
    for key in ["time", "tokens", "task-time", "task-tokens"] {
        repo.git(["config", &format!("arborist.budget.{key}"), "0"]).succeeds();
        repo.arborist(["gardener", "--dry-run"]).exits(1).err("1 or more");
        repo.git(["config", "--unset", &format!("arborist.budget.{key}")]).succeeds();
    }
}

#[test]
fn a_landing_that_was_amended_is_reported_as_such() {
    let repo = one_task();
    repo.arborist(["gardener", "--isolate", "--test-command", "true"]).succeeds();
    repo.write("more.txt", "more\n");
    repo.git(["add", "more.txt"]).succeeds();
    repo.git(["commit", "-q", "--amend", "--no-edit"]).succeeds();
    let head = repo.git(["rev-parse", "--short=10", "HEAD"]).answer();
    let run = repo.arborist(["verify"]);
    let said = format!("{}{}", run.stdout(), run.stderr());
    assert!(said.contains(&format!("no result of gate 'test' is about {head}")), "{said}");
    assert!(!said.contains("git fetch"), "{said}");
}

#[test]
fn a_planned_task_beside_a_run_without_a_plan_has_not_run_yet() {
    let repo = one_task();
    repo.arborist(["garden", "-m", "another thing"]).succeeds();
    for command in
        [&["reset", "T001"][..], &["reset", "--drop", "T001"], &["merge", "T001"], &["logs", "T001"]]
    {
        let said = repo.arborist(command).exits(1).never("there is no task").never("has no task");
        let run = hinted(&said.err("has not run yet").stderr(), "run it with: ");
        assert_eq!(run, "git arborist garden T001");
    }
    repo.arborist(["reset", "T0001"]).exits(1).err("has no task or phase 'T0001'");
}

#[test]
fn a_run_without_tasks_is_not_called_no_run() {
    let repo = TestRepo::init();
    repo.git(["branch", "other"]).succeeds();
    repo.run_start("main", "11111111");
    repo.git(["switch", "-q", "other"]).succeeds();
    repo.run_start("main", "22222222");
    repo.git(["switch", "-q", "main"]).succeeds();
    repo.git(["merge", "-q", "--no-edit", "other"]).succeeds();
    let said = repo.arborist(["state"]).succeeds().never("has no run yet");
    said.out("the run of 'main' has no tasks yet").err("both sides of a merge started a run");
}

#[test]
fn a_run_and_state_find_a_plan_where_plan_finds_it() {
    let repo = TestRepo::init();
    repo.write("specs/001-x/tasks.md", "- [ ] T001 do it\n");
    repo.commit("Add a plan\n");
    repo.arborist(["state"]).succeeds().out("T001");
    repo.write("specs/002-y/tasks.md", "- [ ] T001 do it\n");
    repo.commit("Add another plan\n");
    let several = repo.arborist(["gardener", "--runner", "demo"]).exits(1);
    let several = several.err("error: 2 plans were found: specs/001-x/tasks.md, specs/002-y/tasks.md");
    several.err("--tree specs/001-x/tasks.md");
}

#[test]
fn a_mistyped_runner_of_the_settings_is_recognised() {
    let repo = one_task();
    repo.git(["config", "arborist.runners.robot.command", "sh\nagent.sh"]).succeeds();
    repo.arborist(["gardener", "--runner", "robto"]).exits(129).err("hint: did you mean 'robot'?\n");
    let listed = repo.arborist(["gardener", "--runner", "xyz"]).exits(129);
    listed.err("hint: known runners: robot, claude, codex,");
    let with_model = repo.arborist(["gardener", "--runner", "robot:opus"]).exits(129);
    with_model.err("hint: to choose a model: --runner robot --model opus\n").never("git config");
}

#[test]
fn an_empty_runner_name_gets_no_hint_that_defines_it() {
    let repo = one_task();
    let refused = repo.arborist(["gardener", "--runner", ""]).exits(129);
    let refused = refused.err("name a runner; known runners: ");
    assert!(!refused.stderr().contains("git config"), "{}", refused.stderr());
}

#[test]
fn a_mistyped_table_of_a_section_is_recognised() {
    let repo = one_task();
    repo.write(".arborist/config.toml", "[merge]\ngate = \"true\"\n");
    repo.arborist(["gardener", "--dry-run"]).exits(1).err("did you mean 'merge.gates'?");
}

#[test]
fn the_known_keys_of_a_section_include_those_of_its_tables() {
    let repo = one_task();
    let said = repo.git(["-c", "arborist.merge.policy=always", "arborist", "gardener", "--dry-run"]);
    said.exits(1).err(", arborist.merge.gates.*.command, arborist.merge.gates.*.timeout");
}

#[test]
fn a_list_of_tables_with_a_wrong_name_or_only_names_is_explained() {
    let repo = one_task();
    let refused = |text: &str| {
        repo.write(".arborist/config.toml", text);
        repo.arborist(["gardener", "--dry-run"]).exits(1)
    };
    for more in ["", "path = \"../api\"\n"] {
        let said = refused(&format!("[[workspace.repositories]]\nname = \"api\"\n{more}"));
        said.err("unknown key 'workspace.repositories'").err("hint: did you mean 'workspace.repos'?");
    }
    let said = refused("[[workspace.repos]]\nname = \"api\"\n");
    said.err("has only a name").err("then path = \"../api\"");
}

#[test]
fn tasks_that_are_reset_together_are_not_said_to_stay_complete() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do a\n- [ ] T002 do b\n- [ ] T003 do c\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    let reset = repo.arborist(["reset", "--drop", "T001", "T002"]).succeeds();
    assert!(!reset.stderr().contains("stay complete: T002"), "{}", reset.stderr());
    reset.err("stay complete: T003");
}
