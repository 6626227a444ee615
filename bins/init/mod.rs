//! `git arborist init`: writes a commented configuration with what was detected.

mod template;

use std::path::Path;

use anyhow::Context;
use arborist_core::{
    agent::Preset,
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{Config, Repository},
    plan::propose_test,
    process::find_program,
    safe_files,
};
use clap::Parser;

use crate::{catalog, entry::Outcome, hooks, ui::Ui};

const FILE: &str = ".arborist/config.toml";

const EXAMPLES: &str = "\
EXAMPLES
   Write .arborist/config.toml with the agents and the test command found
       git arborist init

   The same, and install the hooks
       git arborist init --hooks

   See the file without writing it
       git arborist init --dry-run

EXIT STATUS
   1  There is a configuration already.";

const LONG_ABOUT: &str = "\
Write a configuration for this repository: .arborist/config.toml.

The file has every setting as a comment, with its meaning and its default. Four
settings are filled in if they can be found out: the first agent program on
PATH (runner), how the project is tested (test-command), how a new worktree is
set up (worktree.setup), and which ignored files it needs (worktree.copy).
Check them, and commit the file.

The file is tracked, so everyone who clones the repository has these settings.
Commands in it do not run on a machine until its user has approved them with
--yes. Settings for you alone belong in 'git config arborist.KEY' or in
~/.config/git-arborist/config.toml.

On a terminal, init asks whether to install the git hooks that refuse malformed
task commits and pushes that lose records. An existing file is never changed.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-init", bin_name = "git arborist init", about = catalog::about("init"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct InitArgs {
    /// Print the file instead of writing it
    #[arg(long)]
    dry_run: bool,
    /// Install the hooks without asking
    #[arg(long, conflicts_with_all = ["no_hooks", "dry_run"])]
    hooks: bool,
    /// Install no hooks, and do not ask
    #[arg(long)]
    no_hooks: bool,
}

/// What to do about the hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    Install,
    Leave,
    Ask,
}

impl InitArgs {
    fn hooks(&self) -> Hooks {
        match (self.hooks, self.no_hooks) {
            (true, _) => Hooks::Install,
            (_, true) => Hooks::Leave,
            _ => Hooks::Ask,
        }
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: InitArgs, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let top = repository.worktree.as_deref().ok_or(GardenerError::Bare)?;
    let agents = installed();
    let test = propose_test(|name| safe_files::read_text(&top.join(name)).ok());
    let needs = WorktreeProposal::find(&repository, top)?;
    let test = test.as_ref().map(|found| found.test.command.as_str());
    let text = template::write(agents.first().copied(), test, &needs);
    if args.dry_run {
        ui.out(&text);
        return Ok(Exit::Done);
    }
    write(&top.join(FILE), &text)?;
    ui.line(&format!("wrote {FILE}"));
    ui.line(&match agents.as_slice() {
        [] => "no agent program was found on PATH; to try git-arborist without one: git arborist gardener --runner demo"
            .to_owned(),
        found => format!("agents on PATH: {}", found.join(", ")),
    });
    offer_hooks(args.hooks(), &repository, ui)
}

/// Installs hooks only if the user agrees. Without a terminal, the question is not asked.
fn offer_hooks(wish: Hooks, repository: &Repository, ui: &mut Ui) -> Outcome {
    const QUESTION: &str = "Install git hooks? They refuse malformed task commits, and pushes that would delete a run's history.";
    if wish == Hooks::Install {
        return hooks::install(ui);
    }
    if wish == Hooks::Leave || hooks::are_installed(repository, &Config::load(repository)?)? {
        return Ok(Exit::Done);
    }
    match ui.ask(QUESTION) {
        Some(true) => hooks::install(ui),
        _ => {
            ui.hint("to check task commits and pushes with git hooks, run: git arborist hooks install");
            Ok(Exit::Done)
        }
    }
}

/// The agent programs on `PATH`, in the order in which we know them.
fn installed() -> Vec<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |preset: &&Preset| find_program(preset.program(), &path).is_some();
    Preset::ALL.iter().filter(is_there).map(|preset| preset.name).collect()
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    if file.exists() {
        return Err(Failure::new(Exit::No, format!("'{FILE}' already exists"))
            .hint("see what would be written with: git arborist init --dry-run"));
    }
    safe_files::write_new(file, text.as_bytes())
        .with_context(|| format!("could not write '{}'", file.display()))?;
    Ok(())
}

/// Lock files, the file that must be next to them, and the command that installs exactly what they name. The first of a
/// kind counts.
const INSTALLERS: [(&str, &[(&str, &str)]); 5] = [
    (
        "package.json",
        &[
            ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
            (".yarnrc.yml", "yarn install --immutable"),
            ("yarn.lock", "yarn install --frozen-lockfile"),
            ("bun.lock", "bun install --frozen-lockfile"),
            ("bun.lockb", "bun install --frozen-lockfile"),
            ("package-lock.json", "npm ci"),
            ("npm-shrinkwrap.json", "npm ci"),
            ("package.json", "npm install"),
        ],
    ),
    ("pyproject.toml", &[("uv.lock", "uv sync --frozen"), ("poetry.lock", "poetry install")]),
    ("Pipfile", &[("Pipfile.lock", "pipenv sync --dev")]),
    ("Gemfile", &[("Gemfile.lock", "bundle install")]),
    ("composer.json", &[("composer.lock", "composer install")]),
];

/// For a virtual environment that exists here and would be missing in a worktree.
const VENV: &str = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt";

/// What is proposed for `worktree.setup` and `worktree.copy`.
#[derive(Debug, Default, PartialEq, Eq)]
struct WorktreeProposal {
    setup: Vec<String>,
    copy: Vec<String>,
}

impl WorktreeProposal {
    /// Detects it from the files at the top of the checkout.
    fn find(repository: &Repository, top: &Path) -> Result<Self, Failure> {
        let has = |name: &str| top.join(name).is_file();
        let of_kind = |(project, locks): &(&str, &[(&str, &str)])| {
            let lock = locks.iter().find(|(lock, _)| has(project) && has(lock))?;
            Some(lock.1.to_owned())
        };
        let mut setup: Vec<String> = INSTALLERS.iter().filter_map(of_kind).collect();
        if has("requirements.txt") && top.join(".venv").is_dir() && !has("uv.lock") {
            setup.push(VENV.to_owned());
        }
        let mut copy = Vec::new();
        for name in local_files(top) {
            let tracked = repository.head.commit.map(|head| repository.find_path(head, &name)).transpose()?;
            if tracked.flatten().is_none() {
                copy.push(name);
            }
        }
        Ok(Self { setup, copy })
    }
}

/// `.env` and similar files, without samples.
fn local_files(top: &Path) -> Vec<String> {
    let is_local = |name: &String| {
        let is_sample = ["example", "sample", "template", "dist"].iter().any(|word| name.contains(word));
        (name == ".env" || name.starts_with(".env.")) && !is_sample
    };
    let entries = std::fs::read_dir(top).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(is_local);
    names.sort();
    names
}
