//! `git arborist hooks`: installs the hooks that keep recorded state well-formed, and is what they run.

mod agent;
mod change;
mod commit_msg;
mod event;
pub(crate) mod fault;
mod plan;
mod probe;
mod push;
mod site;
mod status;
mod words;

pub use self::{
    event::HookEvent,
    site::Manager,
    status::{HookState, HookStatus, HooksStatus},
};

use std::{ffi::OsString, path::PathBuf};

use arborist_core::{
    failure::{Exit, Failure},
    git::{Config, Repository},
    run::refuse_here_in_step,
};
use clap::{Args, Parser, Subcommand};

use self::{
    agent::SettingsRequest,
    change::HookOptions,
    probe::ProbeResult,
    push::{PushedValue, RefUpdate},
    site::HookSite,
};
use crate::{catalog, document, entry::Outcome, session::Agent, ui::Ui};

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "git-arborist-hooks",
    bin_name = "git arborist hooks",
    about = catalog::about("hooks"),
    long_about = words::LONG_ABOUT,
    after_help = words::EXAMPLES
)]
pub struct HooksArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Install hooks; existing ones are kept
    #[command(after_help = words::INSTALL_EXAMPLES)]
    Install(InstallArgs),
    /// Remove the hooks of git arborist, and restore the earlier hooks byte for byte
    #[command(after_help = words::UNINSTALL_EXAMPLES)]
    Uninstall(UninstallArgs),
    /// Show which hooks are installed, and why one does not run
    #[command(after_help = words::STATUS_EXAMPLES)]
    Status {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Check that git runs the hooks in this worktree
    #[command(after_help = words::TEST_EXAMPLES)]
    Test {
        /// The hooks [default: those that 'install' would install]
        #[arg(value_enum, value_name = "HOOK")]
        names: Vec<HookEvent>,
    },
    /// Run the check of a hook; the installed hooks call this
    #[command(subcommand, after_help = words::RUN_EXAMPLES)]
    Run(Call),
}

#[derive(Debug, Args)]
struct InstallArgs {
    #[command(flatten)]
    manner: Manner,
    /// Record the turns of an interactive agent; this installs hooks in .claude/settings.local.json instead of git
    /// hooks
    #[arg(long, value_enum, value_name = "AGENT", conflicts_with = "names")]
    agent: Option<Agent>,
    /// Which hooks; without any, commit-msg and pre-push (in a bare repository: pre-receive)
    #[arg(value_enum, value_name = "HOOK")]
    names: Vec<HookEvent>,
}

#[derive(Debug, Args)]
struct UninstallArgs {
    #[command(flatten)]
    manner: Manner,
    /// Remove the hooks from the settings of an interactive agent, instead of git hooks
    #[arg(long, value_enum, value_name = "AGENT", conflicts_with = "names")]
    agent: Option<Agent>,
    /// The hooks [default: all that git arborist installed]
    #[arg(value_enum, value_name = "HOOK")]
    names: Vec<HookEvent>,
}

#[derive(Debug, Args)]
struct Manner {
    /// Show what would be done without doing it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Call {
    /// Refuse a task commit whose message is not valid
    CommitMsg {
        /// The file that holds the message
        file: PathBuf,
    },
    /// Refuse pushes of invalid task commits and pushes that lose records; reads git's lines on standard input
    PrePush {
        /// The name of the remote
        remote: OsString,
        /// The URL of the remote
        url: OsString,
    },
    /// Check a push in the repository that receives it; reads git's lines on standard input
    PreReceive,
    /// Check one ref of a push; the update hook of earlier versions calls this
    Update {
        /// The ref
        name: OsString,
        /// The old value of the ref
        old: PushedValue,
        /// The new value of the ref
        new: PushedValue,
    },
}

/// Runs the command.
pub fn run(args: HooksArgs, ui: &mut Ui) -> Outcome {
    if matches!(args.action, Action::Install(_) | Action::Uninstall(_)) {
        refuse_here_in_step()?;
    }
    match args.action {
        Action::Install(args) => {
            let options = HookOptions { names: args.names, manner: args.manner };
            match args.agent {
                Some(Agent::Claude) => change::change_agent(SettingsRequest::Install, &options, ui),
                None => change::install(&options, ui),
            }
        }
        Action::Uninstall(args) => {
            let options = HookOptions { names: args.names, manner: args.manner };
            match args.agent {
                Some(Agent::Claude) => change::change_agent(SettingsRequest::Uninstall, &options, ui),
                None => change::uninstall(&options, ui),
            }
        }
        Action::Status { json } => {
            let status = status(ui)?;
            if json {
                return document::print(ui, &status);
            }
            words::status(&status, ui);
            Ok(Exit::Done)
        }
        Action::Test { names } => test(&names, ui),
        Action::Run(call) => {
            let outcome = answer(call, ui);
            if outcome.is_err() {
                probe::sign(ui);
            }
            outcome
        }
    }
}

/// Installs the hooks that make sense here, as `git arborist hooks install` does.
pub(crate) fn install(ui: &mut Ui) -> Outcome {
    let manner = Manner { dry_run: false, quiet: false };
    change::install(&HookOptions { names: Vec::new(), manner }, ui)
}

/// Whether the hooks that make sense here are all in place.
pub(crate) fn are_installed(repository: &Repository, config: &Config) -> Result<bool, Failure> {
    for event in chosen(&[], repository, config) {
        if HookStatus::of(&HookSite::load(event, repository, config)?).state != HookState::Installed {
            return Ok(false);
        }
    }
    Ok(true)
}

fn answer(call: Call, ui: &mut Ui) -> Outcome {
    match call {
        Call::CommitMsg { file } => commit_msg::run(&file),
        Call::PrePush { remote, .. } => push::pre_push(&remote.to_string_lossy(), ui),
        Call::PreReceive => push::pre_receive(ui),
        Call::Update { name, old, new } => {
            push::update(RefUpdate::new(&name.to_string_lossy(), old.0, new.0), ui)
        }
    }
}

fn status(ui: &mut Ui) -> Result<HooksStatus, Failure> {
    let repository = Repository::discover()?;
    let config = Config::load(&repository)?;
    ui.configure(&config);
    let load = |event| Ok(HookStatus::of(&HookSite::load(event, &repository, &config)?));
    let mut hooks = HookEvent::ALL.into_iter().map(load).collect::<Result<Vec<_>, Failure>>()?;
    hooks.retain(|hook| hook.event != HookEvent::Update || hook.state != HookState::Missing);
    let agents = agent::status(&repository).into_iter().collect();
    Ok(HooksStatus::new(repository.version, &repository.hooks_dir(&config)?, hooks, agents))
}

/// The named hooks, or those that make sense here; each once.
fn chosen(names: &[HookEvent], repository: &Repository, config: &Config) -> Vec<HookEvent> {
    let is_bare = repository.worktree.is_none() && config.find_text("core.bare") == Some("true");
    match names {
        [] if is_bare => vec![HookEvent::PreReceive],
        [] => vec![HookEvent::CommitMsg, HookEvent::PrePush],
        _ => HookEvent::ALL.into_iter().filter(|event| names.contains(event)).collect(),
    }
}

fn test(names: &[HookEvent], ui: &mut Ui) -> Outcome {
    let repository = Repository::discover()?;
    let config = Config::load(&repository)?;
    let mut exit = Exit::Done;
    for event in chosen(names, &repository, &config) {
        let fired = probe::fire(event, &repository)?;
        if fired != ProbeResult::Ours {
            exit = Exit::No;
        }
        let status = HookStatus::of(&HookSite::load(event, &repository, &config)?);
        words::tested(&fired, &status, ui);
    }
    Ok(exit)
}
