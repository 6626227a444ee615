//! `git arborist cleanup`: deletes what is no longer needed, without losing work.

pub mod document;
mod open;
mod restore;
mod saved;
mod show;
mod sweep;

use arborist_core::run::refuse_here_in_step;
use clap::{Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const EXAMPLES: &str = "\
EXAMPLES
   See what would go, what would stay, and why
       git arborist cleanup --dry-run

   Clean up what is older than a week
       git arborist cleanup

   Only the branches that have landed, however young, here and at the remote
       git arborist cleanup --only branches --older-than 0 --remote

   Be rid of a task that came to nothing; its work is saved first
       git arborist cleanup --older-than 0 --force T001

   See what was saved, and bring it back
       git arborist cleanup saved
       git arborist cleanup restore T001

   Free what builds left in the worktrees that are kept
       git arborist cleanup --reclaim

WHAT GOES
   Worktrees and branches of tasks, branches and old records of sessions, logs,
   saved work past its limit, caches, claims of the dead and what was thrown
   away before. A branch goes if a ref that stays leads to all of its commits,
   or if their content is in a branch that stays; a worktree if nothing
   uncommitted or untracked is in it. Ignored files do not count, and are named
   where they go with it; a repository among them keeps the worktree. Saved
   work goes before its limit only with --force.

WHAT STAYS
   Whatever is in use: a session that runs or rests, a run or a task that
   somebody holds the lock of, a claim, a queued task, a worktree with a
   process in it or locked by somebody else, a branch that is checked out,
   rebased, bisected or not wholly pushed. What cannot be found out counts as
   in use. Nothing that git arborist did not make is ever touched: a branch is
   its work only if commits of the task stand on it, or if its log, a worktree,
   a ticket or a mark of an attempt tells so, whatever its name is.

WORKSPACES
   All repositories of the workspace are cleaned up, each by its own settings
   for logs and worktrees and by the ages of this one. A session is over when
   the repository that recorded it says so; if that one cannot be read, its
   branches and worktrees stay. Saved work stays in its repository: list and
   restore it there. A repository that only a tracked file names has to be
   approved first.

SAVED WORK
   Commits are saved as they are. Files that no commit holds are saved as 'git
   add' would take them, so through the filters and line endings that the
   repository configures; restoring checks them out the same way. Ignored files
   are not saved.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-cleanup", bin_name = "git arborist cleanup", about = catalog::about("cleanup"), after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct CleanupArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    sweep: sweep::SweepArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List what was saved
    Saved(saved::SavedArgs),
    /// Bring back what was saved: its branch, and what lay in its worktree into a fresh one
    Restore(restore::CleanupRestoreArgs),
}

/// Runs the command.
pub fn run(args: CleanupArgs, ui: &mut Ui) -> Outcome {
    let is_reading = match &args.verb {
        Some(Verb::Saved(_)) => true,
        Some(Verb::Restore(_)) => false,
        None => args.sweep.dry_run,
    };
    if !is_reading {
        refuse_here_in_step()?;
    }
    match args.verb {
        Some(Verb::Saved(args)) => saved::run(&args, ui),
        Some(Verb::Restore(args)) => restore::run(&args, ui),
        None => sweep::run(&args.sweep, ui),
    }
}
