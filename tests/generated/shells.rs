//! A definition with everything in it that completions know, driven through the real shells.

use std::fs;

use arborist_testkit::{Shell, TestRepo};
use clap::{Arg, ArgAction, Command};

use crate::{bash, fish, shape::Shape, zsh};

/// `git arborist sample`, with a command of its own.
pub(crate) fn sample() -> Command {
    let value = |id: &'static str, name: &'static str| Arg::new(id).long(id).value_name(name);
    let hook = Arg::new("hook").value_name("HOOK").num_args(0..).help("Which hook");
    let install = Command::new("install")
        .about("Install a hook: it's there")
        .arg(hook.value_parser(["commit-msg", "pre-push"]))
        .arg(value("scope", "BRANCH").help("The run's branch"));
    let show = Command::new("show")
        .about("Show a task")
        .after_help("EXAMPLES\n   Show one\n       git arborist sample show 'T001'\n\nEXIT STATUS\n   1  It's not there.\n      Or it was removed.")
        .arg(Arg::new("task").value_name("TASK").num_args(0..))
        .arg(value("tree", "FILE").short('t').help("The plan"))
        .arg(value("session", "SESSION").help("The session"));
    Command::new("git-arborist-sample")
        .bin_name("git arborist sample")
        .about("Show everything [at once]")
        .subcommand_required(true)
        .subcommands([install, show])
        .after_help("EXAMPLES\n   Install all\n       git arborist sample install")
        .arg(Arg::new("hidden").long("hidden").hide(true).action(ArgAction::SetTrue))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print: JSON"))
}

/// `git arborist merge`, with a command of its own and tasks as operands.
fn both() -> Command {
    Command::new("git-arborist-merge")
        .bin_name("git arborist merge")
        .about("Land tasks")
        .subcommand(Command::new("status").about("Show the queue"))
        .arg(Arg::new("task").value_name("TASK").num_args(0..))
        .arg(Arg::new("into").long("into").value_name("BRANCH").help("The target"))
}

/// A repository with the completions of the sample, two branches, two tasks and a command of somebody else.
fn repo_with_completions() -> TestRepo {
    let repo = TestRepo::init();
    let shapes = [Shape::of(&sample()), Shape::of(&both())];
    for (place, text) in [
        (".local/share/bash-completion/completions/git-arborist", bash::completion(&shapes)),
        (".local/share/zsh/site-functions/_git-arborist", zsh::completion(&shapes)),
        (".config/fish/completions/git-arborist.fish", fish::completion(&shapes)),
        (".config/fish/conf.d/git-arborist.fish", fish::START.to_owned()),
    ] {
        let file = repo.home().join(place);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, text).expect("a file");
    }
    repo.install(&repo.bin());
    repo.plant(
        "git-arborist-state",
        "#!/bin/sh\ntest \"$1\" = --list-ids && printf 'T001\\tadd: it\\nT002\\t\\n'\n",
    );
    repo.plant("git-arborist-prune", "#!/bin/sh\n");
    repo.git(["branch", "feature/x"]).succeeds();
    repo.git(["update-ref", "refs/arborist/sessions/3f9a2c1b", "HEAD"]).succeeds();
    repo.write("notes.md", "");
    repo
}

/// A shell in a repository.
struct ShellSession<'a>(Shell, &'a TestRepo);

impl ShellSession<'_> {
    /// For `line`, everything in `expected` is offered, and nothing in `unexpected`.
    #[track_caller]
    fn offers(&self, line: &str, expected: &[&str], unexpected: &[&str]) {
        let Some(offered) = self.0.offers(self.1, line) else { return };
        let all = expected.iter().all(|word| offered.contains(*word));
        let none = !unexpected.iter().any(|word| offered.contains(*word));
        assert!(all && none, "{:?} offers {offered:?} for '{line}'", self.0);
    }
}

#[test]
fn every_shell_offers_commands() {
    let repo = repo_with_completions();
    for shell in Shell::ALL.map(|shell| ShellSession(shell, &repo)) {
        shell.offers("git arborist ", &["state", "hooks", "install-assets", "prune"], &["notes.md"]);
        shell.offers("git-arborist ", &["state", "hooks", "install-assets", "prune"], &["notes.md"]);
        shell.offers("git -C . arborist st", &["state"], &["hooks"]);
        shell.offers("git arborist help ho", &["hooks"], &["state"]);
    }
}

#[test]
fn every_shell_offers_subcommands_and_their_options() {
    let repo = repo_with_completions();
    for shell in Shell::ALL.map(|shell| ShellSession(shell, &repo)) {
        shell.offers("git arborist sample ", &["install", "show"], &["notes.md"]);
        shell.offers("git arborist sample install --", &["--help"], &["--hidden", "--json"]);
        shell.offers("git arborist sample install ", &["commit-msg", "pre-push"], &["notes.md", "show"]);
    }
}

#[test]
fn every_shell_offers_tasks_together_with_commands() {
    let repo = repo_with_completions();
    for shell in Shell::ALL.map(|shell| ShellSession(shell, &repo)) {
        shell.offers("git arborist merge ", &["status", "T001", "T002"], &["notes.md"]);
        shell.offers("git arborist merge T001 T", &["T002"], &["status", "notes.md"]);
        shell.offers("git arborist merge T001 --", &["--help"], &["notes.md"]);
    }
}

#[test]
fn every_shell_offers_task_ids() {
    let repo = repo_with_completions();
    for shell in Shell::ALL.map(|shell| ShellSession(shell, &repo)) {
        shell.offers("git arborist sample show ", &["T001", "T002"], &["notes.md", "main"]);
        shell.offers("git arborist sample show T001 T", &["T002"], &["main"]);
    }
}

#[test]
fn every_shell_offers_sessions() {
    let repo = repo_with_completions();
    for shell in Shell::ALL.map(|shell| ShellSession(shell, &repo)) {
        shell.offers("git arborist sample show --session ", &["3f9a2c1b"], &["main", "notes.md"]);
    }
}

#[test]
fn every_shell_offers_branches_and_files_for_options_that_take_them() {
    let repo = repo_with_completions();
    let [bash, zsh, fish] = Shell::ALL.map(|shell| ShellSession(shell, &repo));
    for shell in [&bash, &zsh, &fish] {
        shell.offers("git arborist sample install --scope ", &["main", "feature/x"], &["commit-msg"]);
    }
    bash.offers("git arborist sample install --scope=fe", &["feature/x"], &["main"]);
    zsh.offers("git arborist sample show --tree ", &["notes.md"], &["main"]);
    fish.offers("git arborist sample show --tree ", &["notes.md"], &["main"]);
}

#[test]
fn completions_come_from_the_repository_selected_with_git_dash_c() {
    let repo = repo_with_completions();
    repo.git_in(repo.root(), ["init", "-q", "-b", "elsewhere", "other"]).succeeds();
    let other = repo.root().join("other");
    repo.git_in(&other, ["commit", "-q", "--allow-empty", "-m", "begin"]).succeeds();
    for shell in [Shell::Bash, Shell::Zsh].map(|shell| ShellSession(shell, &repo)) {
        let line = "git -C ../other arborist sample install --scope ";
        shell.offers(line, &["elsewhere"], &["main"]);
    }
}
