//! `git arborist init`: the configuration that it writes is one that holds.

use arborist_testkit::{Run, Terminal, TestRepo};

#[test]
fn init_writes_what_it_detects_as_a_valid_configuration() {
    let repo = TestRepo::init();
    repo.write("Cargo.toml", "[package]\nname = \"x\"\n");
    repo.write_script("bin/codex", "#!/bin/sh\n");
    let mut command = repo.command("git", &repo.path(""));
    let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let dirs = std::iter::once(repo.path("bin")).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(dirs).unwrap()).args(["arborist", "init"]);
    Run::of(&mut command, b"").succeeds().matches_snapshot();
    let text = repo.read(".arborist/config.toml");
    assert!(text.contains("test-command = \"cargo test\""), "{text}");
    assert!(text.contains("runner = \""), "{text}");
    for section in
        ["[steps.review]", "[runners.robot]", "[timeouts]", "[worktree]", "[[merge.gates]]", "[merge]"]
    {
        assert!(text.contains(&format!("# {section}")), "{section} in {text}");
    }
    repo.arborist(["state"]).succeeds();
    let all: String = text
        .lines()
        .map(|line| {
            line.strip_prefix("# ")
                .filter(|rest| rest.contains(" = ") || rest.starts_with('['))
                .unwrap_or(line)
                .to_owned()
                + "\n"
        })
        .collect();
    repo.write(".arborist/config.toml", all.replace("…", "x").replace("tree = \"x\"", ""));
    repo.arborist(["state"]).succeeds();
}

#[test]
fn init_never_overwrites_a_configuration_and_its_dry_run_writes_nothing() {
    let repo = TestRepo::init();
    repo.arborist(["init", "--dry-run"]).succeeds().matches_snapshot();
    assert!(!repo.path(".arborist").exists());
    repo.arborist(["init"]).succeeds();
    repo.arborist(["init"]).exits(1).matches_snapshot();
}

#[test]
fn init_installs_hooks_only_with_the_option() {
    for (option, is_installed, hint) in
        [("--hooks", true, false), ("--no-hooks", false, false), ("", false, true)]
    {
        let repo = TestRepo::init();
        let args = ["init", option].into_iter().filter(|arg| !arg.is_empty());
        let said = repo.arborist(args).succeeds();
        assert_eq!(repo.path(".git/hooks/commit-msg").exists(), is_installed, "{option}");
        assert_eq!(
            said.stderr().contains("hint: to check task commits"),
            hint,
            "{option}: {}",
            said.stderr()
        );
    }
    let repo = TestRepo::init();
    repo.arborist(["init", "--hooks"]).succeeds().matches_snapshot();
    repo.arborist(["hooks", "test"]).succeeds();
    std::fs::remove_file(repo.path(".arborist/config.toml")).unwrap();
    repo.arborist(["init"]).succeeds().never("hooks install");
}

#[test]
fn on_a_terminal_init_asks_about_hooks_and_installs_them_only_after_yes() {
    for (answer, is_installed) in
        [("y\n", true), ("Yes\n", true), ("\n", false), ("yo\n", false), ("\x04", false)]
    {
        let repo = TestRepo::init();
        let mut command = repo.command("git", &repo.path(""));
        command.args(["arborist", "init"]);
        let mut terminal = Terminal::start(command, 100);
        terminal.shows("a run's history. [y/N]");
        assert!(!repo.path(".git/hooks/commit-msg").exists(), "nothing before the answer");
        terminal.types(answer);
        let (code, screen, _) = terminal.ends();
        assert_eq!(code, 0, "{screen}");
        assert_eq!(repo.path(".git/hooks/commit-msg").exists(), is_installed, "{answer:?}: {screen}");
    }
}

#[test]
fn init_proposes_setup_commands_and_copied_files_for_worktrees() {
    for (files, setup) in [
        (&["package.json", "package-lock.json"][..], "npm ci"),
        (&["package.json", "pnpm-lock.yaml"], "pnpm install --frozen-lockfile"),
        (&["package.json", "yarn.lock"], "yarn install --frozen-lockfile"),
        (&["package.json", "bun.lock"], "bun install --frozen-lockfile"),
        (&["pyproject.toml", "uv.lock"], "uv sync --frozen"),
    ] {
        let repo = TestRepo::init();
        files.iter().for_each(|file| repo.write(file, "{}"));
        repo.write(".env", "SECRET=1");
        repo.write(".env.example", "SECRET=");
        repo.arborist(["init", "--no-hooks"]).succeeds();
        let text = repo.read(".arborist/config.toml");
        assert!(text.contains(&format!("\nsetup = [\"{setup}\"]\n")), "{text}");
        assert!(text.contains("\ncopy = [\".env\"]\n") && text.contains("\n[worktree]\n"), "{text}");
        let document = repo.arborist(["worktree", "list"]);
        assert_eq!(document.code(), 0, "the file is a configuration: {}", document.report());
    }
}
