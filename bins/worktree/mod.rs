//! `git arborist worktree`: a worktree and a branch for each task, next to the user's checkout.

mod add;
pub mod document;
mod list;
mod open;
mod remove;
mod rows;
mod run;
mod show;
mod sync;

use arborist_core::run::refuse_here_in_step;
use clap::{Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Give each task its own worktree and branch.

A worktree is a second checkout of the same repository in another folder. With
--jobs or --isolate, 'git arborist gardener' works on each task in a worktree,
on the branch arborist/task/<branch>/<task>. So several agents can work at
once, and your checkout stays as it is. With this command you can work on a
task yourself in the same way.

A lane is a worktree that one task after another uses. Build caches stay in it,
so that the next task starts faster. A lane is free when no task uses it any
more.

A new worktree has only tracked files. The settings worktree.setup and
worktree.copy add what else it needs. Programs that run there get ten free
ports in ARBORIST_PORTS, so that several test servers can run at once.

Work is not lost: while an agent or 'worktree run' works, uncommitted files
are saved below refs/arborist/wip/, and 'worktree restore' brings them back. A
worktree with uncommitted files is removed only with --force, after they have
been saved.";

const EXAMPLES: &str = "\
EXAMPLES
   Work on a task by hand, beside your checkout
       cd \"$(git arborist worktree add T001)\"

   Go to the worktree of a task
       cd \"$(git arborist worktree path T001)\"

   See all worktrees, who is working in them, and their size
       git arborist worktree list --long

   Let an agent work there; its work is saved every 30 seconds
       git arborist worktree run T001 -- claude

   Restore unfinished work that was lost
       git arborist worktree restore T001

   Remove a worktree and keep its branch
       git arborist worktree remove T001

EXIT STATUS
   1  There is no such task.
   2  You must act: 'worktree sync' found a conflict.

   'worktree run' exits with the code of its program.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-worktree", bin_name = "git arborist worktree", about = catalog::about("worktree"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct WorktreeArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Create a worktree for a task, unless it has one, and print the path
    Add(add::WorktreeAddArgs),
    /// List the worktrees of tasks and of sessions
    List(list::WorktreeListArgs),
    /// Show one worktree in detail
    Show(show::WorktreeShowArgs),
    /// Print the path of a task's worktree
    Path(show::PathArgs),
    /// Run a program in a task's worktree, and save its work regularly
    Run(run::WorktreeRunArgs),
    /// Restore saved unfinished work
    Restore(run::WorktreeRestoreArgs),
    /// Merge the run's branch into the branches of tasks; uncommitted changes are kept
    Sync(sync::SyncArgs),
    /// Remove a worktree and keep its branch
    Remove(remove::RemoveArgs),
    /// Free a task's lane (a reusable worktree) for the next task, and keep its branch
    Recycle(remove::RecycleArgs),
    /// Forget worktrees whose folders were deleted
    Prune(open::WorktreeScopeArgs),
    /// Repair worktrees after folders were moved or processes were killed
    Repair(open::WorktreeScopeArgs),
}

/// Runs the command.
pub fn run(args: WorktreeArgs, ui: &mut Ui) -> Outcome {
    if !matches!(args.verb, Verb::List(_) | Verb::Show(_) | Verb::Path(_)) {
        refuse_here_in_step()?;
    }
    match args.verb {
        Verb::Add(args) => add::run(&args, ui),
        Verb::List(args) => list::run(&args, ui),
        Verb::Show(args) => show::run(&args, ui),
        Verb::Path(args) => show::run_path(&args, ui),
        Verb::Run(args) => run::run(&args, ui),
        Verb::Restore(args) => run::run_restore(&args, ui),
        Verb::Sync(args) => sync::run(&args, ui),
        Verb::Remove(args) => remove::run(&args, ui),
        Verb::Recycle(args) => remove::run_recycle(&args, ui),
        Verb::Repair(scope) => remove::run_repair(&scope, ui),
        Verb::Prune(scope) => remove::run_prune(&scope, ui),
    }
}
