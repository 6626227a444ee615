//! `git arborist init`: the configuration that it writes is one that holds.

use arborist_testkit::{Garden, Run, Terminal};

#[test]
fn it_writes_what_it_finds_and_the_result_is_a_configuration() {
    let garden = Garden::sprout();
    garden.write("Cargo.toml", "[package]\nname = \"x\"\n");
    garden.write_script("bin/codex", "#!/bin/sh\n");
    let mut command = garden.command("git", &garden.path(""));
    let path = command.get_envs().find(|(name, _)| *name == "PATH").unwrap().1.unwrap().to_owned();
    let dirs = std::iter::once(garden.path("bin")).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(dirs).unwrap()).args(["arborist", "init"]);
    Run::of(&mut command, b"").succeeds().shows();
    let text = garden.read(".arborist/config.toml");
    assert!(text.contains("test-command = \"cargo test\""), "{text}");
    assert!(text.contains("runner = \""), "{text}");
    for section in
        ["[steps.review]", "[runners.robot]", "[timeouts]", "[worktree]", "[[merge.gates]]", "[merge]"]
    {
        assert!(text.contains(&format!("# {section}")), "{section} in {text}");
    }
    garden.arborist(["state"]).succeeds();
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
    garden.write(".arborist/config.toml", all.replace("…", "x").replace("tree = \"x\"", ""));
    garden.arborist(["state"]).succeeds();
}

#[test]
fn it_never_overwrites_and_a_dry_run_writes_nothing() {
    let garden = Garden::sprout();
    garden.arborist(["init", "--dry-run"]).succeeds().shows();
    assert!(!garden.path(".arborist").exists());
    garden.arborist(["init"]).succeeds();
    garden.arborist(["init"]).exits(1).shows();
}

#[test]
fn hooks_are_installed_only_where_the_user_says_so() {
    for (option, is_installed, hint) in
        [("--hooks", true, false), ("--no-hooks", false, false), ("", false, true)]
    {
        let garden = Garden::sprout();
        let args = ["init", option].into_iter().filter(|arg| !arg.is_empty());
        let said = garden.arborist(args).succeeds();
        assert_eq!(garden.path(".git/hooks/commit-msg").exists(), is_installed, "{option}");
        assert_eq!(said.stderr().contains("hint: guard the record"), hint, "{option}: {}", said.stderr());
    }
    let garden = Garden::sprout();
    garden.arborist(["init", "--hooks"]).succeeds().shows();
    garden.arborist(["hooks", "test"]).succeeds();
    std::fs::remove_file(garden.path(".arborist/config.toml")).unwrap();
    garden.arborist(["init"]).succeeds().never("hooks install");
}

#[test]
fn on_a_terminal_it_asks_and_anything_but_yes_is_no() {
    for (answer, is_installed) in
        [("y\n", true), ("Yes\n", true), ("\n", false), ("yo\n", false), ("\x04", false)]
    {
        let garden = Garden::sprout();
        let mut command = garden.command("git", &garden.path(""));
        command.args(["arborist", "init"]);
        let mut terminal = Terminal::start(command, 100);
        terminal.shows("lost history? [y/N]");
        assert!(!garden.path(".git/hooks/commit-msg").exists(), "nothing before the answer");
        terminal.types(answer);
        let (code, screen, _) = terminal.ends();
        assert_eq!(code, 0, "{screen}");
        assert_eq!(garden.path(".git/hooks/commit-msg").exists(), is_installed, "{answer:?}: {screen}");
    }
}

#[test]
fn it_proposes_what_worktrees_need() {
    for (files, setup) in [
        (&["package.json", "package-lock.json"][..], "npm ci"),
        (&["package.json", "pnpm-lock.yaml"], "pnpm install --frozen-lockfile"),
        (&["package.json", "yarn.lock"], "yarn install --frozen-lockfile"),
        (&["package.json", "bun.lock"], "bun install --frozen-lockfile"),
        (&["pyproject.toml", "uv.lock"], "uv sync --frozen"),
    ] {
        let garden = Garden::sprout();
        files.iter().for_each(|file| garden.write(file, "{}"));
        garden.write(".env", "SECRET=1");
        garden.write(".env.example", "SECRET=");
        garden.arborist(["init", "--no-hooks"]).succeeds();
        let text = garden.read(".arborist/config.toml");
        assert!(text.contains(&format!("\nsetup = [\"{setup}\"]\n")), "{text}");
        assert!(text.contains("\ncopy = [\".env\"]\n") && text.contains("\n[worktree]\n"), "{text}");
        let document = garden.arborist(["worktree", "list"]);
        assert_eq!(document.code(), 0, "the file is a configuration: {}", document.report());
    }
}
