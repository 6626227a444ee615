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

const LONG_ABOUT: &str = "\
Clone, fetch and push the repositories of a plan, or run a command in each.

A workspace is the list of repositories that one plan works on. The repository
that has the plan also has the list, in its configuration. A task says in which
repository it works: '[repo:backend]' in Markdown, \"repo\" in JSON.

In a workspace, each run has a session branch in every repository, in
worktrees beside your checkouts. Your own branches and files are not touched.
When you are satisfied, merge the session branch in each repository.

Only session branches and records are pushed, never by force. They are enough
to continue the session on another machine. A push that fails is a warning,
and it is tried again.

The list usually is a tracked file that others can change. Its remotes and
paths are used only after you have approved them with --yes.";

const EXAMPLES: &str = "\
EXAMPLES
   The state of every repository
       git arborist workspace status

   Clone missing repositories and fetch the others
       git arborist workspace sync

   Push only the branches and records of sessions
       git arborist workspace push

   Run a command in each repository
       git arborist workspace foreach git log -1 --oneline

EXIT STATUS
   2  Remotes and paths have not been approved.

   'workspace foreach' exits with the code of the command that failed.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-workspace", bin_name = "git arborist workspace", about = catalog::about("workspace"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
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
