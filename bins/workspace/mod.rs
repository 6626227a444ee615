//! `git arborist workspace`: the repositories that one plan works in.

pub mod document;
mod foreach;
mod open;
mod push;
mod status;
mod sync;

use arborist_core::run::refuse_here_in_step;
use clap::{Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const EXAMPLES: &str = "\
CONFIGURATION
   A second repository, in .arborist/config.toml of the one that has the plan
       [workspace.repos.backend]
       path = \"../backend\"
       remote = \"git@example.com:org/backend.git\"
       push = \"on_checkpoint\"
       tools = { run-tests = \"cargo test\" }

EXAMPLES
   The state of every repository
       git arborist workspace status

   Clone missing repositories and fetch the others
       git arborist workspace sync

   Push only the branches and records of sessions
       git arborist workspace push

   Run a command in each repository
       git arborist workspace foreach git log -1 --oneline";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-workspace", bin_name = "git arborist workspace", about = catalog::about("workspace"), after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct WorkspaceArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Show the state of each repository, without network access
    Status(status::StatusArgs),
    /// Clone repositories that are missing, and fetch the others with the branches and records of sessions
    Sync(open::ExchangeArgs),
    /// Push only the branches and records of sessions, by fast-forward
    Push(open::ExchangeArgs),
    /// Run a command in each repository
    Foreach(foreach::ForeachArgs),
}

/// Runs the command.
pub fn run(args: WorkspaceArgs, ui: &mut Ui) -> Outcome {
    if matches!(args.verb, Verb::Sync(_) | Verb::Push(_)) {
        refuse_here_in_step()?;
    }
    match args.verb {
        Verb::Status(args) => status::run(&args, ui),
        Verb::Sync(args) => sync::run(&args, ui),
        Verb::Push(args) => push::run(&args, ui),
        Verb::Foreach(args) => foreach::run(&args, ui),
    }
}
