//! Hints can be pasted: their commands have the options that matter, and do what the hint says.

use std::{fs, os::unix::fs::PermissionsExt};

use arborist_testkit::{Run, TestRepo, WORKER};

const TWO: &str = "- [ ] T001 one\n- [ ] T002 two\n";
const ABREAST: &str = "- [ ] T001 [P] one\n- [ ] T002 [P] two\n";

/// The command after `label` in a hint.
pub(crate) fn hinted(stderr: &str, label: &str) -> String {
    let line = stderr.lines().find_map(|line| line.strip_prefix("hint: ")?.split_once(label));
    line.unwrap_or_else(|| panic!("no '{label}' in {stderr}")).1.to_owned()
}

/// Runs a command as a shell does.
pub(crate) fn paste(repo: &TestRepo, command: &str) -> Run {
    Run::of(repo.command("sh", &repo.path("")).args(["-c", command]), b"")
}

#[test]
fn the_hint_splits_a_runner_command_in_one_string_as_a_shell_does() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let command = format!("sh -c \"sh '{}/agent.sh'\"", repo.root().display());
    repo.git(["config", "arborist.runners.other.command", &command]).succeeds();
    let said = repo.arborist(["gardener", "--runner", "other"]).exits(1).stderr();
    let toml = hinted(&said, "as a separate value: ");
    let file = repo.home().join(".config/git-arborist/config.toml");
    let before = fs::read_to_string(&file).unwrap();
    // Both forms of the hint work.
    paste(&repo, &hinted(&said, "a line for each word: ")).succeeds();
    repo.arborist(["gardener", "--runner", "other"]).succeeds();
    repo.git(["config", "--unset-all", "arborist.runners.other.command"]).succeeds();
    fs::write(&file, format!("{before}\n[runners.other]\n{toml}\n")).unwrap();
    repo.arborist(["gardener", "--runner", "other", "--new-run"]).succeeds().never("error");
}

#[test]
fn a_command_with_an_open_quotation_mark_gets_an_example() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.git(["config", "arborist.runners.other.command", "sh -c \"echo"]).succeeds();
    let said = repo.arborist(["gardener", "--runner", "other"]).exits(1);
    said.err(r#"command = ["robot", "{prompt}"]"#);
}

#[test]
fn a_list_of_toml_in_gits_configuration_is_explained() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let agent = repo.root().join("agent.sh");
    let list = serde_json::json!(["sh", agent]).to_string();
    repo.git(["config", "arborist.runners.other.command", &list]).succeeds();
    let said = repo.arborist(["gardener", "--runner", "other"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "a line for each word: ")).succeeds();
    repo.arborist(["gardener", "--runner", "other"]).succeeds().out("1 completed (T001)");
}

#[test]
fn an_unknown_runner_is_defined_by_the_command_of_the_hint() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let said = repo.arborist(["gardener", "--runner", "helper"]).exits(129).stderr();
    let define = hinted(&said, "to define your own runner, name its program: ");
    paste(&repo, &define.replace("my-program", "true")).succeeds();
    repo.arborist(["gardener", "--runner", "helper"]).exits(1).never("unknown").err("no file");
}

#[test]
fn a_list_in_gits_configuration_may_have_several_values() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let key = "arborist.runners.other.command";
    let agent = repo.root().join("agent.sh");
    // A value of a lower level is replaced as a whole, and an empty value removes those before it.
    repo.git(["config", "--global", key, "missing"]).succeeds();
    for word in ["missing", "", "sh", agent.to_str().unwrap()] {
        repo.git(["config", "--add", key, word]).succeeds();
    }
    repo.arborist(["gardener", "--runner", "other"]).succeeds().out("1 completed (T001)");
}

#[test]
fn a_quiet_run_that_succeeds_prints_nothing() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    let said = repo.arborist(["gardener", "--until", "T001", "-q"]).succeeds().silent();
    assert_eq!(said.stderr(), "");
    repo.arborist(["gardener", "--until", "T001", "--new-run"]).succeeds().err("no test command");
    repo.agent("exit 3");
    let said = repo.arborist(["gardener", "--new-run", "-q", "--max-retries", "1"]).exits(1);
    said.err("exited with code 3").out("1 failed (T001)").never("no test command");
}

#[test]
fn a_changed_configuration_is_shown_as_a_line_diff() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.write(".arborist/config.toml", "jobs = 1\nmax-retries = 2\n");
    repo.commit("configuration\n");
    repo.arborist(["gardener", "--until", "T001"]).succeeds();
    repo.write(".arborist/config.toml", "jobs = 1\nmax-retries = 3\n");
    let said = repo.arborist(["gardener"]).exits(2);
    said.err("has changed since the run began:\n  - max-retries = 2\n  + max-retries = 3\nhint")
        .never("jobs");
    let many: String = (0..30).map(|number| format!("\"{number}\",\n")).collect();
    repo.write(".arborist/config.toml", format!("jobs = 1\nmax-retries = 2\ncontext = [\n{many}]\n"));
    let said = repo.arborist(["gardener"]).exits(2);
    said.err("  + \"18\",\n  [12 more changed lines not shown]\n").never("\"19\"");
}

#[test]
fn hints_keep_the_plan_and_the_runners_that_the_command_named() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.write("other plan.md", "- [ ] X001 one\n- [ ] X002 two\n");
    repo.commit("another plan\n");
    let named = ["--tree", "other plan.md"];
    let said = repo.arborist(["gardener", "--only", "Z9"].into_iter().chain(named)).exits(1).stderr();
    paste(&repo, &hinted(&said, "see all tasks with: ")).succeeds().out("X001").never("T001");
    let said = repo.arborist(["plan", "other plan.md", "--explain", "Z9"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "see all tasks with: ")).succeeds().out("X001").never("T001");
    let said = repo.arborist(["state", "Z9"].into_iter().chain(named)).exits(1).stderr();
    paste(&repo, &hinted(&said, "see all tasks with: ")).succeeds().out("X001").never("T001");
    let asked = ["garden", "X002", "--runner", "demo", "--review-runner", "demo"];
    let said = repo.arborist(asked.into_iter().chain(named)).exits(1).stderr();
    let all = hinted(&said, "to run all tasks in order: ");
    assert!(all.contains("--runner demo") && all.ends_with("--tree 'other plan.md'"), "{all}");
    paste(&repo, &all).succeeds().out("2 completed (X001, X002)");
    assert_eq!(repo.calls(), 0, "the configured runner was not called");
}

#[test]
fn a_task_starts_over_with_the_options_of_its_run() {
    // Both are at work before one of them lands.
    let both = "touch \"$ROOT/at-$ARBORIST_TASK\"; until [ -e \"$ROOT/at-T001\" ] && [ -e \"$ROOT/at-T002\" ]; do sleep 0.02; done";
    let worker = format!("case \"$prompt\" in Review*) ;; *) {both} ;; esac\n{WORKER}");
    let repo = TestRepo::planned("tasks.md", ABREAST, &worker);
    let test = "test $(ls T00* 2>/dev/null | wc -l) -lt 2";
    let asked = ["--jobs", "2", "--max-retries", "2", "--test-command", test];
    repo.arborist(["gardener"].into_iter().chain(asked)).exits(1);
    let said = repo.arborist(["merge", "status"]).exits(1).stderr();
    let again = hinted(&said, "on top of what has landed: ");
    let options = " && git arborist gardener --jobs 2 --max-retries 2 --test-command 'test $(ls T00*";
    assert!(again.contains(options), "{again}");
    // It fails again, but in its own worktree.
    paste(&repo, &again).exits(1).err("fail");
    assert_eq!(repo.git(["status", "--porcelain"]).answer(), "");
}

#[test]
fn a_stopped_new_run_is_continued_without_starting_another() {
    let stop =
        "case \"$prompt\" in *T002*) kill -INT $PPID; sleep 60 ;; *) echo x > \"$ARBORIST_TASK\" ;; esac";
    let script = format!("case \"$prompt\" in Review*) echo APPROVED; exit ;; esac\n{stop}");
    let repo = TestRepo::planned("tasks.md", TWO, &script);
    repo.arborist(["gardener"]).exits(130).err("run the same command again to continue");
    repo.arborist(["gardener", "--new-run"]).exits(130).err("run the same command again without --new-run");
    repo.agent(WORKER);
    repo.arborist(["gardener"]).succeeds().out("1 completed (T002)");
}

#[test]
fn a_negative_number_is_the_value_of_its_option() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    let said = repo.arborist(["gardener", "--max-cost", "-1"]).exits(129);
    said.err("invalid value '-1' for '--max-cost <DOLLARS>': must be more than 0");
    repo.arborist(["gardener", "--max-time", "-5"]).exits(129).err("invalid value '-5' for '--max-time");
    repo.arborist(["merge", "add", "T001", "--priority", "-3"]).exits(129).err("invalid value '-3'");
    repo.arborist(["gardener", "--jobs", "-1"]).exits(129).err("'-1' is not a number of jobs");
    repo.arborist(["gardener", "-1"]).exits(129).err("unexpected argument '-1'");
}

#[test]
fn a_mistyped_subcommand_gets_the_nearest_one() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.arborist(["hooks", "instal"]).exits(129).err("did you mean 'install'?").never("uninstall");
    repo.arborist(["gardener", "--runer", "demo"]).exits(129).err("did you mean '--runner'?");
}

#[test]
fn a_landed_task_has_no_conflict_to_resolve() {
    let repo = TestRepo::planned("tasks.md", ABREAST, WORKER);
    repo.arborist(["gardener", "--jobs", "2"]).succeeds();
    repo.arborist(["merge", "resolve", "T001"]).exits(1).err("'T001' has already landed (");
    repo.arborist(["merge", "resolve", "T009"]).exits(1).err("'T009' is not in the queue");
}

#[test]
fn a_base_that_does_not_exist_is_reported_with_a_hint() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    let said = repo.arborist(["worktree", "add", "T001", "--base", "nowhere"]).exits(1);
    paste(&repo, &hinted(&said.err("'nowhere' names no commit").stderr(), "see the branches with: "))
        .succeeds();
}

#[test]
fn workers_without_a_remote_get_a_hint_how_to_add_one() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.arborist(["work"]).exits(1).err("there is no remote 'origin'").err("git remote add origin <url>");
    repo.git(["remote", "add", "there", "/nowhere"]).succeeds();
    repo.arborist(["work"]).exits(1).err("hint: known remotes: there");
}

#[test]
fn a_file_of_the_user_that_git_cannot_add_is_named() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.write(".gitattributes", "*.wide text working-tree-encoding=UTF-16\n");
    repo.commit("attributes\n");
    repo.write("my own.wide", "ab");
    for options in [&[][..], &["--allow-dirty"]] {
        let said = repo.arborist(["gardener"].iter().chain(options)).exits(2);
        said.err("git cannot add 'my own.wide': BOM is required").never("git add failed");
    }
    assert_eq!(repo.calls(), 0, "no agent was called");
    let said = repo.arborist(["gardener"]).exits(2).stderr();
    paste(&repo, &hinted(&said, "let git ignore it: ")).succeeds();
    repo.arborist(["gardener"]).succeeds();
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.write("secret", "x");
    fs::set_permissions(repo.path("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(repo.path("secret")).is_ok() {
        eprintln!("skipped: this user may read every file");
        return;
    }
    repo.arborist(["gardener", "--allow-dirty"]).exits(2).err("git cannot add 'secret'");
}

#[test]
fn a_damaged_record_is_named_by_resume() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.arborist(["gardener", "--session-branch", "--only", "T001"]).succeeds();
    let name = repo.git(["for-each-ref", "--format=%(refname)", "refs/arborist/sessions"]).answer();
    let session = name.rsplit('/').next().unwrap();
    let blob = repo.git(["hash-object", "-w", "tasks.md"]).answer();
    repo.git(["update-ref", &name, &blob]).succeeds();
    for args in [&["session", "resume"][..], &["session", "resume", session]] {
        let said = repo.arborist(args).exits(2);
        said.err(&format!("session '{session}' is damaged: its record '{name}' could not be read"))
            .err("git arborist gardener --session-branch");
    }
    repo.arborist(["session", "resume", "zzz"]).exits(1).err("there is no session 'zzz'");
}

#[test]
fn resume_does_not_offer_a_running_session() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    let asked = ["gardener", "--session-branch", "--only", "T001", "--new-run"];
    repo.arborist(asked).succeeds();
    repo.agent(
        "git arborist session resume > \"$ROOT/asked\" 2>&1; echo \"exit $?\" >> \"$ROOT/asked\"; exit 3",
    );
    repo.arborist(["gardener", "--only", "T001", "--max-retries", "1"]).exits(1);
    let said = fs::read_to_string(repo.root().join("asked")).unwrap();
    assert!(!said.contains("several sessions") && !said.contains("main"), "{said}");
}

#[test]
fn a_parked_task_is_not_shown_as_done() {
    let script = "case \"$prompt\" in Review*) echo APPROVED ;; *) echo work >> f ;; esac";
    let repo = TestRepo::planned("tasks.md", ABREAST, script);
    repo.write("f", "x\n");
    repo.commit("a file\n");
    repo.write("f", "mine\n");
    let said = repo.arborist(["gardener", "--jobs", "2", "--only", "T001", "-q"]).exits(2);
    said.out("parked main: not updated yet, changed files are in the way (f); see what to do with: git arborist merge status");
    let said = repo.arborist(["state"]).succeeds();
    said.out("0 of 2 done, 1 parked").out("> T001 one  complete      not on the branch yet (parked)");
    let said = repo.arborist(["gardener"]).exits(2).stderr();
    paste(&repo, &hinted(&said, "update the checkout of main: ")).succeeds();
    repo.arborist(["state"]).succeeds().out("1 of 2 done").out("x T001 one  complete");
}

#[test]
fn output_of_an_agent_is_marked_as_cut_only_if_it_was_cut() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", "echo nothing done; exit 3");
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1);
    repo.arborist(["state", "T001"]).succeeds().out("Output of the agent:\n").never("truncated");
    repo.agent("head -c 5000 /dev/zero | tr '\\0' y; exit 3");
    repo.arborist(["gardener", "--max-retries", "1", "--new-run"]).exits(1);
    repo.arborist(["state", "T001"]).succeeds().out("Output of the agent (cut to 2000 characters):\n");
}

#[test]
fn a_long_reason_is_cut_between_words() {
    let says =
        |text: &str| format!("case \"$prompt\" in Review*) echo 'REJECTED: {text}' ;; *) echo x > x ;; esac");
    let (little, long) = ("abcdefghi ".repeat(10), "abcdefghi ".repeat(20));
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", &says(&little));
    repo.arborist(["gardener", "--max-retries", "1"]).exits(1).out("abcdefghi\n").never("...");
    repo.agent(&says(&long));
    repo.arborist(["gardener", "--max-retries", "1", "--new-run", "-q"])
        .exits(1)
        .out(" abcdefghi...; see all of it with: git arborist state T001\n");
}

#[test]
fn state_says_when_a_task_was_reset() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    repo.arborist(["reset", "T001"]).succeeds();
    repo.arborist(["state"]).succeeds().out("ready         reset 0s ago");
}

#[test]
fn commands_for_a_branch_without_a_run_hint_how_to_start_one() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.git(["branch", "other"]).succeeds();
    let scope = ["--scope", "other"];
    let said = repo.arborist(["reset", "T001"].into_iter().chain(scope)).exits(1).stderr();
    assert_eq!(hinted(&said, "start a run with: "), "git switch other && git arborist gardener");
    let said = repo.arborist(["merge", "add", "T001"].into_iter().chain(scope)).exits(1).stderr();
    assert_eq!(hinted(&said, "start a run with: "), "git switch other && git arborist gardener --isolate");
    let said = repo.arborist(["logs", "T001"]).exits(1).stderr();
    paste(&repo, &hinted(&said, "start a run with: ")).succeeds().out("2 completed");
}

#[test]
fn commands_without_a_run_hint_at_the_last_session_with_its_own_branch() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.arborist(["gardener", "--session-branch", "--jobs", "2", "--only", "T001"]).succeeds();
    std::fs::remove_dir_all(repo.path("spec")).unwrap();
    let label = "the last session has its own branch; for that session, run: ";
    let said = repo.arborist(["logs", "T001"]).exits(1).stderr();
    paste(&repo, &hinted(&said, label)).succeeds().out("1 of 2 done");
    let said = repo.arborist(["merge", "add", "T001"]).exits(1).stderr();
    paste(&repo, &hinted(&said, label)).succeeds().out("T001 has already landed");
    let said = repo.arborist(["reset", "--drop", "T001"]).exits(1).stderr();
    paste(&repo, &hinted(&said, label)).succeeds().out("T001 is reset").err("undid the changes of T001");
}

#[test]
fn changes_of_a_reset_task_on_another_branch_are_undone_with_the_printed_command() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.arborist(["gardener", "--session-branch", "--only", "T001"]).succeeds();
    let branch = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/arborist"]).answer();
    let said = repo.arborist(["reset", "T001", "--scope", &branch]).succeeds().stderr();
    paste(&repo, &hinted(&said, "to undo them, run: ")).succeeds().err("undid the changes of T001");
}

#[test]
fn a_task_added_after_the_start_of_the_run_is_not_reported_as_unknown() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    repo.arborist(["gardener"]).succeeds();
    repo.write("tasks.md", TWO);
    for command in ["state", "reset", "merge", "logs"] {
        let run = repo.arborist([command, "T002"]).exits(1);
        run.err("'T002' was added to 'tasks.md' after the run started").never("did you mean");
    }
    let said = repo.arborist(["state", "T002"]).exits(1).stderr();
    repo.git(["commit", "-qam", "Add a task"]).succeeds();
    paste(&repo, &hinted(&said, "add it to the run with: ")).succeeds().out("1 completed (T002)");
}

#[test]
fn a_run_with_nothing_left_to_do_needs_no_agent() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", "");
    repo.arborist(["gardener", "--runner", "demo"]).succeeds();
    repo.git(["config", "arborist.runner", "missing-agent"]).succeeds();
    repo.git(["config", "arborist.runners.missing-agent.command", "missing-agent"]).succeeds();
    repo.arborist(["gardener"]).succeeds().out("nothing is left to do");
}

#[test]
fn a_configuration_with_comments_only_does_not_stop_a_run() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.arborist(["gardener", "--only", "T001"]).succeeds();
    repo.write(".arborist/config.toml", "# runner = \"other\"\n");
    repo.arborist(["gardener", "--allow-dirty"]).succeeds().out("1 completed (T002)");
    repo.write(".arborist/config.toml", "max-retries = 4\n");
    repo.arborist(["gardener", "--allow-dirty"]).exits(2).err("has changed since the run began");
}

#[test]
fn the_error_for_run_options_of_a_replay_shows_them_after_two_dashes() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 one\n", WORKER);
    let run = repo.arborist(["session", "replay", "abcd1234", "--turn", "4", "--model", "other"]).exits(129);
    run.err(
        "options of the run come after '--': git arborist session replay abcd1234 --turn 4 -- --model other",
    );
}

#[test]
fn the_next_command_resets_a_failed_task_whose_changes_break_the_tests() {
    let agent = "case \"$prompt\" in *T001*) echo bad > bad ;; *) echo good > T002.txt ;; esac";
    let repo = TestRepo::planned("tasks.md", ABREAST, &format!("{agent}\necho APPROVED\n"));
    let run =
        repo.arborist(["gardener", "--keep-going", "--max-retries", "1", "--test-command", "test ! -f bad"]);
    let said = run.exits(1).stdout();
    let next = said.lines().find_map(|line| line.trim().strip_prefix("next ")).unwrap().trim().to_owned();
    assert!(next.starts_with("git arborist reset --drop T001 && git arborist gardener"), "{said}");
}

#[test]
fn a_command_as_a_list_is_written_as_one_text() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.write(".arborist/config.toml", "test-command = [\"npm\", \"run test\"]\n");
    let said = repo.arborist(["gardener", "--dry-run"]).exits(1).never("checks nothing");
    let line = hinted(&said.stderr(), "write the command as one text: ");
    assert_eq!(line, "test-command = \"npm 'run test'\"");
    repo.write(".arborist/config.toml", line + "\n");
    repo.arborist(["gardener", "--dry-run"]).succeeds().out("npm 'run test'");
}

#[test]
fn an_empty_command_of_a_runner_has_an_example_for_gits_configuration() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.git(["config", "arborist.runners.other.command", ""]).succeeds();
    let run = ["gardener", "--dry-run", "--runner", "other"];
    let said = repo.arborist(run).exits(1).err("must be a list of words, one on each line, but it is empty");
    paste(&repo, &hinted(&said.stderr(), "for example: ")).succeeds();
    repo.arborist(["gardener", "--runner", "other"]).exits(1).err("'robot' is not installed");
}

#[test]
fn brackets_and_commas_are_no_part_of_the_words_of_a_command() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    for list in ["[robot, {prompt}]", "['robot', \"{prompt}\"]"] {
        repo.git(["config", "--replace-all", "arborist.runners.other.command", list]).succeeds();
        let said = repo.arborist(["gardener", "--runner", "other"]).exits(1);
        let said = said.err(r#"command = ["robot", "{prompt}"]"#).stderr();
        paste(&repo, &hinted(&said, "a line for each word: ")).succeeds();
        repo.arborist(["gardener", "--runner", "other"]).exits(1).err("'robot' is not installed");
    }
}

#[test]
fn known_keys_are_named_as_their_source_names_them() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    let said = repo.git(["-c", "arborist.sandbox=off", "arborist", "gardener", "--dry-run"]).exits(1);
    said.err("known keys: arborist.sandbox.mode, arborist.sandbox.");
    repo.write(".arborist/config.toml", "sandbox = \"off\"\n");
    repo.arborist(["gardener", "--dry-run"]).exits(1).err("known keys: sandbox.mode, sandbox.");
}

#[test]
fn the_source_of_a_wrong_command_or_plan_is_named() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.git(["config", "arborist.runners.other.command", "/no/such"]).succeeds();
    let said = repo.arborist(["gardener", "--runner", "other"]).exits(1);
    said.err("hint: correct arborist.runners.other.command in .git/config\n");
    repo.git(["config", "arborist.tree", "nope.md"]).succeeds();
    for command in ["gardener", "state"] {
        let said = repo.arborist([command]).exits(1).err("there is no file 'nope.md'");
        said.err("hint: correct arborist.tree in .git/config, or name the plan with --tree");
        repo.arborist([command, "--tree", "nope.md"]).exits(1).never("hint: correct");
    }
    let file = repo.home().join(".config/git-arborist/config.toml");
    let text = fs::read_to_string(&file).unwrap() + "\n[runners.third]\ncommand = [\"/no/such\"]\n";
    fs::write(&file, text).unwrap();
    let said = repo.arborist(["gardener", "--tree", "tasks.md", "--runner", "third"]).exits(1);
    said.err("hint: correct runners.third.command in ").err("git-arborist/config.toml:");
}

#[test]
fn a_folder_is_no_plan() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.write("plans/notes.txt", "x\n");
    for command in ["gardener", "state"] {
        let said = repo.arborist([command, "--tree", "."]).exits(1);
        said.err("error: '.' is a folder\nhint: name the file with the plan: tasks.md\n");
        let said = repo.arborist([command, "--tree", "plans"]).exits(1);
        said.err("error: 'plans' is a folder\nhint: name the file with the plan\n");
    }
}

#[test]
fn landlock_is_named_if_it_keeps_the_network_on() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    repo.git(["config", "arborist.sandbox.network", "none"]).succeeds();
    let said = repo.arborist(["gardener", "--dry-run", "--sandbox", "landlock"]).exits(128);
    said.never("install bubblewrap").err("sandbox.mode is landlock, which cannot turn the network off");
}

#[test]
fn a_task_that_is_described_and_not_named_needs_an_option() {
    let repo = TestRepo::planned("tasks.md", TWO, WORKER);
    let said = repo.arborist(["garden", "do it's thing"]).exits(129).stderr();
    paste(&repo, &hinted(&said, "to describe a new task: ")).succeeds().out("1 completed");
    let said = repo.arborist(["garden", "T001", "-m", "a thing"]).exits(129);
    said.err("hint: name a task, or describe one with -m, not both");
}
