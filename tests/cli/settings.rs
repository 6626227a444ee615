//! Configuration: which place wins, and what is said about what cannot be used.

use arborist_testkit::{Run, TestRepo, WORKER};

fn tree(id: &str) -> String {
    format!(r#"{{"nodes": {{"{id}": {{"id": "{id}", "name": "a"}}}}, "root_ids": ["{id}"]}}"#)
}

/// A repository with one plan for each place that can name one; the id tells which.
fn repo() -> TestRepo {
    let repo = TestRepo::init();
    for id in ["flag", "environment", "git", "repository", "user", "default"] {
        repo.write(&format!("{id}.json"), tree(id));
    }
    std::fs::rename(repo.path("default.json"), repo.path("task-tree.json")).unwrap();
    repo
}

#[test]
fn a_configuration_source_of_higher_precedence_wins() {
    let repo = repo();
    repo.arborist(["state"]).succeeds().matches_snapshot();
    std::fs::create_dir_all(repo.home().join(".config/git-arborist")).unwrap();
    std::fs::write(repo.home().join(".config/git-arborist/config.toml"), "tree = \"user.json\"\n").unwrap();
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.write(".arborist/config.toml", "# ours\ntree = \"repository.json\"\n");
    repo.arborist(["state"]).succeeds().matches_snapshot();
    repo.git(["config", "arborist.tree", "git.json"]).succeeds();
    repo.arborist(["state"]).succeeds().matches_snapshot();
    let mut command = repo.command("git", &repo.path(""));
    Run::of(command.env("ARBORIST_TREE", "environment.json").args(["arborist", "state"]), b"")
        .succeeds()
        .matches_snapshot();
    let mut command = repo.command("git", &repo.path(""));
    command.env("ARBORIST_TREE", "environment.json").args(["arborist", "state", "--tree", "flag.json"]);
    Run::of(&mut command, b"").succeeds().matches_snapshot();
    repo.git(["-c", "arborist.tree=user.json", "arborist", "state"]).succeeds().matches_snapshot();
}

#[test]
fn an_unknown_key_is_reported_with_file_line_and_nearest_key() {
    let repo = repo();
    repo.write(".arborist/config.toml", "# ours\n\ntre = \"x\"\n");
    repo.arborist(["state"]).exits(1).matches_snapshot().silent();
    repo.write(".arborist/config.toml", "[deep]\n[deep.er]\nkey = \"x\"\n");
    repo.arborist(["state"]).exits(1).matches_snapshot();
    repo.write(".arborist/config.toml", "");
    repo.git(["config", "arborist.treee", "x"]).succeeds();
    repo.arborist(["state"]).exits(1).matches_snapshot();
}

#[test]
fn errors_name_the_command_line_or_the_environment_as_source() {
    use std::os::unix::ffi::OsStrExt;
    let repo = repo();
    repo.git(["-c", "arborist.treee=x", "arborist", "state"]).exits(1).matches_snapshot();
    let mut command = repo.command("git", &repo.path(""));
    command.env("ARBORIST_TREE", std::ffi::OsStr::from_bytes(b"\xff")).args(["arborist", "state"]);
    Run::of(&mut command, b"").exits(1).matches_snapshot();
}

#[test]
fn values_of_the_wrong_type_and_broken_files_are_reported_with_their_line() {
    let repo = repo();
    repo.write(".arborist/config.toml", "\ntree = 7\n");
    repo.arborist(["state"]).exits(1).matches_snapshot();
    repo.write(".arborist/config.toml", "tree = \"a\"\ntree = \"b\"\n");
    repo.arborist(["state"]).exits(1).matches_snapshot();
    repo.write(".arborist/config.toml", "tree = \n");
    repo.arborist(["state"]).exits(1).matches_snapshot();
    repo.write(".arborist/config.toml", "tree = \"a\n");
    repo.arborist(["state"]).exits(1).err("config.toml:1: this text has no closing quote").err("hint: ");
    repo.write(".arborist/config.toml", "tree = \"gone.json\"\n");
    repo.arborist(["state"]).exits(1).matches_snapshot();
}

#[test]
fn default_plan_paths_are_tried_in_order() {
    let repo = TestRepo::init();
    let paths = ["tasks.md", "spec/tasks.md", "specs/main/tasks.md", "task-tree.json"];
    for (n, path) in paths.into_iter().enumerate() {
        repo.write(path, tree(&format!("T{n}")));
        if path.ends_with(".json") {
            repo.arborist(["state"]).succeeds().out(&format!("T{n}"));
        }
    }
}

#[test]
fn jobs_accepts_numbers_and_auto_and_invalid_numbers_are_refused_from_every_source() {
    let repo = repo();
    repo.commit("plans\n");
    for jobs in ["4", "\"4\"", "\"auto\""] {
        repo.write(".arborist/config.toml", format!("jobs = {jobs}\n"));
        repo.arborist(["gardener", "--dry-run", "--runner", "demo"]).succeeds();
    }
    for wrong in ["jobs = \"many\"", "jobs = true", "max-retries = 0", "max-retries = -1"] {
        repo.write(".arborist/config.toml", wrong);
        repo.arborist(["state"]).exits(1).matches_snapshot();
    }
    repo.write(".arborist/config.toml", "jobs = 0\n");
    repo.arborist(["gardener", "--dry-run", "--runner", "demo"]).exits(1).matches_snapshot();
    repo.write(".arborist/config.toml", "");
    for (name, value) in [("ARBORIST_JOBS", "x"), ("ARBORIST_MAX_RETRIES", "0")] {
        let mut command = repo.command("git", &repo.path(""));
        command.env(name, value).args(["arborist", "gardener", "--dry-run", "--runner", "demo"]);
        Run::of(&mut command, b"").exits(1).err(&format!("{name}: '"));
    }
}

#[test]
fn a_value_for_a_key_that_is_a_table_is_reported_with_the_key_to_use() {
    let repo = repo();
    repo.write(".arborist/config.toml", "[merge.gates]\ncheck = \"make test\"\n");
    let said = repo.arborist(["state"]).exits(1).matches_snapshot();
    said.matches_snapshot();
    repo.write(".arborist/config.toml", "[workspace.repos]\nb = \"../b\"\n");
    repo.arborist(["state"]).exits(1).matches_snapshot();
}

#[test]
fn a_key_with_the_prefix_of_git_config_is_reported_with_the_plain_key() {
    let repo = repo();
    for text in ["arborist.runner = \"demo\"\n", "[arborist]\nrunner = \"demo\"\n"] {
        repo.write(".arborist/config.toml", text);
        let said = repo.arborist(["state"]).exits(1).err("unknown key 'arborist.runner'");
        said.err("hint: leave out 'arborist.', which only git's configuration needs: runner\n");
    }
}

#[test]
fn a_report_folder_outside_the_worktree_is_refused_before_an_agent_is_called() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 do it\n", WORKER);
    for folder in ["/nope", "../out", ".git/x"] {
        let run = repo.arborist(["gardener", "--test-command", "true", "--report-dir", folder]).exits(1);
        run.err(&format!("the report-dir '{folder}' ")).err("choose another folder with --report-dir");
    }
    assert_eq!(repo.calls(), 0);
}

#[test]
fn a_gate_without_a_command_is_refused() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", WORKER);
    for (text, what) in [
        ("[[merge.gates]]\nname = \"t\"\n", "config.toml:1: a table of 'merge.gates' has only a name"),
        ("[merge.gates.t]\ntimeout = 3\n", "config.toml:2: the gate 't' has no command"),
    ] {
        repo.write(".arborist/config.toml", text);
        repo.arborist(["gardener", "--jobs", "2", "--yes"]).exits(1).err(what);
    }
}

#[test]
fn the_hint_about_quotes_appears_only_if_quotes_are_missing() {
    let repo = TestRepo::init();
    for text in ["[merge\n", "jobs = 1\njobs = 2\n"] {
        repo.write(".arborist/config.toml", text);
        repo.arborist(["state"]).exits(1).never("text is in quotes");
    }
    repo.write(".arborist/config.toml", "runner = claude\n");
    repo.arborist(["state"]).exits(1).err("text is in quotes");
}

#[test]
fn a_prompt_template_shown_for_approval_ends_with_its_quote() {
    let repo = TestRepo::planned("tasks.md", "- [ ] T001 a\n", WORKER);
    repo.write(".arborist/prompts/implement.md", "do it\n");
    repo.arborist(["gardener"]).exits(2).err("prompts.implement = \"do it\"\n");
}

#[test]
fn an_empty_command_in_a_setting_is_refused() {
    for key in ["test-command", "merge.gates.check.command", "workspace.repos.app.tools.test"] {
        for command in ["", "  "] {
            let repo = repo();
            let hint = "an empty command checks nothing; name a command, or remove the key";
            let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
            let section = if section.is_empty() { String::new() } else { format!("[{section}]\n") };
            repo.write(".arborist/config.toml", format!("{section}{name} = \"{command}\"\n"));
            let said = repo.arborist(["gardener", "--isolate", "--yes"]).exits(1);
            said.err(&format!("'{key}' must be a command for a shell")).err(hint);
            repo.write(".arborist/config.toml", "");
            repo.git(["config", &format!("arborist.{key}"), command]).succeeds();
            repo.arborist(["merge", "run"]).exits(1).err(hint);
        }
    }
    let repo = repo();
    let mut command = repo.command("git", &repo.path(""));
    command.env("ARBORIST_TEST_COMMAND", " ").args(["arborist", "gardener"]);
    Run::of(&mut command, b"").exits(1).err("ARBORIST_TEST_COMMAND");
}

#[test]
fn values_that_could_only_fail_are_refused() {
    let seconds = "a number of seconds, 1 or more";
    let amount = "an amount in US dollars above 0, such as 2.50";
    let values = [
        ("timeouts", "runner", "0", seconds),
        ("timeouts", "silence", "0", seconds),
        ("timeouts", "test", "0", seconds),
        ("timeouts", "setup", "0", seconds),
        ("timeouts", "network", "0", seconds),
        ("merge.gates.check", "timeout", "0", seconds),
        ("budget", "cost", "0", amount),
        ("budget", "task-cost", "0.0", amount),
        ("steps.review", "model", "\"\"", "the name of a model"),
    ];
    for (section, name, value, expected) in values {
        let repo = repo();
        repo.write(".arborist/config.toml", format!("[{section}]\n{name} = {value}\n"));
        repo.arborist(["gardener", "--dry-run"])
            .exits(1)
            .err(&format!("'{section}.{name}' must be {expected}"));
        repo.write(".arborist/config.toml", "");
        let value = value.trim_matches('"');
        repo.git(["config", &format!("arborist.{section}.{name}"), value]).succeeds();
        repo.arborist(["gardener", "--dry-run"])
            .exits(1)
            .err(&format!("{section}.{name}' must be {expected}"));
    }
    let repo = repo();
    repo.git(["config", "arborist.model", " "]).succeeds();
    repo.arborist(["gardener", "--dry-run"]).exits(1).err("'arborist.model' must be the name of a model");
    repo.git(["config", "--unset", "arborist.model"]).succeeds();
    repo.arborist(["gardener", "--dry-run", "--model", ""]).exits(129).err("--model <MODEL>");
    // Without waiting for a provider.
    repo.git(["config", "arborist.timeouts.limit", "0"]).succeeds();
    repo.arborist(["gardener", "--dry-run"]).succeeds();
}
