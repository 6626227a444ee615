//! `git arborist sandbox`: what agents and tests can do on this machine.

pub mod document;

use anyhow::Context;
use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, Repository},
    pipeline::{NamedRunner, RunnerFlags, RunnerTable, StepRunner},
    process::{ConfinementBackend, InnerSandbox},
    sandbox::{CheckedRule, RuleOutcome, Sandbox, SandboxUse, SandboxedChild},
    settings::{SandboxMode, Settings},
};
use clap::{Args, Parser, Subcommand};

use self::document::{RuleDocument, SandboxDocument};
use crate::{
    catalog,
    document::print,
    entry::Outcome,
    ui::{Tone, Ui, table},
};

const LONG_ABOUT: &str = "\
Check what agents and tests can do on this machine.

Agents, reviewers, tests, gates, set-up commands and your pre-commit hook run
in a sandbox. They can write only to their worktree, to the files in which the
agent program keeps its sessions and its login, to caches of package managers
and to temporary files. They can read your other files and use the network,
unless the configuration forbids it.

Linux offers two sandboxes. bubblewrap (bwrap) makes .git in your checkout
read-only, and can turn the network off. Landlock can do neither, and it leaves
the names of hidden files visible. The mode 'auto' uses bwrap if it works, or
else Landlock; the modes 'bwrap' and 'landlock' refuse to run without it; 'off'
sets no limits. On macOS, 'auto' uses sandbox-exec. What works depends on the
kernel and on the installed programs.

In every mode, sandbox.max-file-size and sandbox.max-processes limit how large
a file may become and how many processes a program may have. Neither is set by
default. The system does not limit the processes of root.

'sandbox check' starts a program in the sandbox, lets it try each rule, and
prints what it could do.";

const EXAMPLES: &str = "\
EXAMPLES
   What tests can do here
       git arborist sandbox check

   What the agent claude can do here
       git arborist sandbox check --runner claude

   For a script: exit code 0 if everything is enforced as configured
       git arborist sandbox check --json

EXIT STATUS
   1  A rule is not enforced as configured.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-sandbox", bin_name = "git arborist sandbox", about = catalog::about("sandbox"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct SandboxArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Test each rule of the sandbox
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// Check the sandbox of this runner instead of that of tests
    #[arg(long, value_name = "NAME")]
    runner: Option<String>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: SandboxArgs, ui: &mut Ui) -> Outcome {
    let Verb::Check(args) = args.verb;
    check(&args, ui)
}

fn check(args: &CheckArgs, ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let config = Config::load(&repository)?;
    ui.configure(&config);
    let settings = Settings::load(&repository, &config)?;
    let git_dirs = [repository.git_dir.as_path(), &repository.common_dir];
    let sandbox =
        Sandbox::new(&settings).closing(repository.worktree.clone().into_iter().collect(), &git_dirs);
    let step_runner = args.runner.as_deref().map(|name| find_runner(name, &settings)).transpose()?;
    let child = match &step_runner {
        Some(step_runner) => step_runner.sandboxed("implement", Vec::new()),
        None => SandboxedChild { step: "test", ..SandboxedChild::default() },
    };
    let mode = sandbox.mode_of(&child);
    let git = if sandbox.has_private_git(&SandboxedChild { step: "implement", ..child.clone() }) {
        "private"
    } else {
        "closed"
    };
    if !args.json {
        describe_backends(ui, mode, git, &sandbox, &child);
    }
    let mut uses = RunnerTable::new(&RunnerFlags::default(), &settings).list_sandbox_uses();
    uses.extend(args.runner.clone().map(|runner| SandboxUse { step: "implement", runner: Some(runner) }));
    sandbox.require_supported(&uses)?;
    sandbox.require_closed(&[], &git_dirs, &uses)?;
    let rules = sandbox.check(&child).context("could not check the sandbox")?;
    let is_enforced = rules.iter().all(|rule| rule.outcome.is_as_configured());
    let exit = if is_enforced { Exit::Done } else { Exit::No };
    if args.json {
        let rules =
            rules.into_iter().map(|rule| RuleDocument { result: rule.outcome.to_string(), rule: rule.rule });
        let document = SandboxDocument {
            mode: mode.as_str().to_owned(),
            backend: used_backend(&sandbox, &child).map(|backend| backend.as_str().to_owned()),
            git: git.to_owned(),
            is_enforced,
            rules: rules.collect(),
        };
        print(ui, &document)?;
        return Ok(exit);
    }
    let shown = |rule: &CheckedRule| match rule.outcome {
        RuleOutcome::Blocked => "blocked, but should be allowed".to_owned(),
        outcome => outcome.to_string(),
    };
    let rows: Vec<[String; 2]> = rules.iter().map(|rule| [rule.rule.clone(), shown(rule)]).collect();
    let tone = |row: usize, column: usize| {
        let is_off = column == 1 && !rules[row].outcome.is_as_configured();
        is_off.then_some(Tone::Bad)
    };
    table(ui, ["rule", "result"], &rows, tone);
    let has_bwrap = ConfinementBackend::Bwrap.works();
    let is_unenforced = rules.iter().any(|rule| rule.outcome == RuleOutcome::NotEnforced);
    if is_unenforced && cfg!(target_os = "linux") && !has_bwrap && mode == SandboxMode::Auto {
        ui.hint("install bubblewrap (bwrap), which enforces more than Landlock");
    }
    Ok(exit)
}

fn find_runner(name: &str, settings: &Settings) -> Result<StepRunner, Failure> {
    let all = NamedRunner { runner: Some(name.to_owned()), model: None };
    let flags = RunnerFlags { all, ..RunnerFlags::default() };
    Ok(RunnerTable::new(&flags, settings).planner()?)
}

/// What limits the child; `None` if nothing of ours does.
fn used_backend(sandbox: &Sandbox, child: &SandboxedChild<'_>) -> Option<ConfinementBackend> {
    sandbox.mode_of(child).backend().filter(|_| !sandbox.is_left_alone(child))
}

fn describe_backends(
    ui: &mut Ui,
    mode: SandboxMode,
    git: &str,
    sandbox: &Sandbox,
    child: &SandboxedChild<'_>,
) {
    for backend in ConfinementBackend::of_system() {
        let state = if backend.works() { "works here" } else { "does not work here" };
        ui.line(&format!("{}: {state}", backend.as_str()));
    }
    let inner = match sandbox.inner_sandbox(child) {
        InnerSandbox::None => "",
        InnerSandbox::Nested => ", and its own sandbox inside of it",
        InnerSandbox::Off => ", and turns its own sandbox off",
    };
    let used = match used_backend(sandbox, child) {
        Some(backend) => format!("uses {}{inner}", backend.as_str()),
        None if sandbox.is_left_alone(child) => "leaves it to its own sandbox".to_owned(),
        None => "sets no limits".to_owned(),
    };
    let can_take_away = used_backend(sandbox, child).map(ConfinementBackend::can_take_away);
    let words = match (git, can_take_away) {
        ("private", _) => "agents get a copy that is thrown away",
        (_, Some(true)) => "agents can only read it",
        (_, Some(false)) => "agents can write to it if they work in your checkout",
        (_, None) => "agents can write to it",
    };
    ui.line(&format!("git directory: {words}"));
    ui.line(&format!("mode {}: {used}\n", mode.as_str()));
}
