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

const LONG_ABOUT: &str = "\
Remove finished worktrees, branches, sessions and logs.

Runs leave worktrees, branches, records of sessions and logs. This command
removes those that are no longer needed and older than a week, and it removes
them only if nothing is lost. Everything that is in use stays. The output names
each item with the reason why it was removed or kept; --dry-run prints it and
does nothing.

Unmerged work stays as well. With --force it is first saved as commits below
refs/arborist/saved/, and then removed. 'cleanup saved' lists saved work, and
'cleanup restore' brings it back. The branch of a failed task goes only if you
name the task or its session: without it, a run would do the task again.

Name tasks or sessions to clean up only those; --only selects kinds of items.
If the command is killed, run it again: it continues.";

const EXAMPLES: &str = "\
EXAMPLES
   See what would be removed, what would be kept, and why
       git arborist cleanup --dry-run

   Clean up everything older than a week
       git arborist cleanup

   Only the branches that have landed, of any age, here and at the remote
       git arborist cleanup --only branches --older-than 0 --remote

   Remove a task of a finished session that is no longer wanted; its work is
   saved first
       git arborist cleanup --older-than 0 --force T001

   See what was saved, and bring it back
       git arborist cleanup saved
       git arborist cleanup restore T001

   Delete build output in the worktrees that are kept
       git arborist cleanup --reclaim

WHAT IS REMOVED
   Worktrees and branches of tasks, branches and old records of sessions, logs,
   expired saved work, caches, claims of processes that no longer exist, and
   the trash. A branch is removed if another ref that is kept contains all of
   its commits, or if their content is in a branch that is kept. A worktree is
   removed if it has no uncommitted or untracked files. Ignored files are
   removed with it and listed, but a repository among them keeps the worktree.
   Saved work that has not expired, and logs of tasks that are not merged, are
   removed only with --force, or if you name the task or session.

WHAT IS KEPT
   Everything in use: a session that is running or paused, a run or a task
   whose lock is held, a claim, a queued task, a worktree that is locked or
   has a process in it, a branch that is checked out, being rebased or
   bisected, or not fully pushed. If this cannot be found out, the item counts
   as in use. Cleanup only removes what git arborist has made. The name of a
   branch does not prove that: the branch must also have commits of the task, an
   entry in its reflog, a worktree, a queue entry or the mark of an attempt.

WORKSPACES
   All repositories of the workspace are cleaned up. The settings for logs and
   worktrees are read in each repository; the ages (--older-than and others) are
   read only in the repository in which you run the command. Whether a session
   is over is read from the repository that recorded it; if that cannot be read,
   the branches and worktrees of the session stay. Saved work stays in its
   repository: list and restore it there. If only a tracked file, such as
   .arborist/config.toml, names a repository, you have to approve it first.

SAVED WORK
   Commits are saved as they are. Uncommitted files are saved as 'git add'
   would add them, with the configured filters and line endings, and restored
   the same way. Ignored files are not saved.

EXIT STATUS
   1  An item could not be removed.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-cleanup", bin_name = "git arborist cleanup", about = catalog::about("cleanup"), long_about = LONG_ABOUT, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct CleanupArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    sweep: sweep::SweepArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List saved work
    Saved(saved::SavedArgs),
    /// Restore saved work: a branch, or files in a new worktree
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
