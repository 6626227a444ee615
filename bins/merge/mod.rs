//! `git arborist merge`: finished tasks land in order, tested, without a forge, a daemon or a checkout.

mod add;
pub mod document;
mod open;
pub mod resolve;
mod run;
mod show;
mod tickets;
mod unqueued;
mod withheld;
mod words;

use arborist_core::{
    name::{BranchName, TaskId},
    run::refuse_here_in_step,
};
use clap::{Args, Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Land the branches of finished tasks, in order, without a server or a daemon.

A task that was worked on in its own worktree is complete on its own branch.
Landing it means merging that branch into the target, which is the branch of
the run. Gates are commands that must pass first, such as your tests. Tasks
that depend on a task wait until it has landed.

The queue is stored in refs under refs/arborist/queue/. If the command is
killed, run it again: each task has then landed once or is still queued. 'add'
only queues tasks, 'run' lands all tasks that can land, and 'git arborist
merge TASK' does both for one task. A run with several jobs lands its tasks by
itself, unless merge.auto is false.

Each task becomes one merge commit. The gates run on exactly its files, in
their own worktree. Then the target is moved to it, but only if it is still
where it was. Several tasks are merged on top of each other and tested once.
If a gate fails, this batch is halved until the bad task is found, and the
others land. A gate is broken if its command is missing, times out, is killed
or runs no tests: then nothing lands, and no task is blamed.

If the output of a gate says how many tests ran, the number is recorded in the
merge commit. A gate fails if it ran fewer tests than before on the target,
skipped more, or no longer says how many ran, unless the plan has
[allow:fewer-tests] for the task, or --allow fewer-tests is given.

Without merge.gates, the test command is the gate of every landing, together
with the task's own test commands. Without any of them, a warning says that
landings are not tested.

Gates are read from the configuration that the run has accepted, not from the
file in the checkout. If they differ, nothing lands until you accept the file
with 'git arborist gardener --accept-changes'.

If a task conflicts, an agent (the runner of steps.resolve) tries to resolve
the conflict, at most merge.resolve-attempts times. Its resolution is
reviewed, merged and tested. The trailer Arborist-Resolved-By of the landing,
'list', 'log' and the summary of the run say who resolved it. If the agent
does not succeed, the task waits for you, and 'status' shows the conflict.

'resolve' opens a worktree with the conflict in it. Edit the files there and
run the same command again: it lands your resolution, tested but without a
review, because you made it. If files without a conflict have changed, too,
they are listed and land only with --yes, because another program may have
changed them. Such a resolution is not parked (see below): it is not taken
while changed files in your checkout are in the way. A resolution that an
earlier command left in the queue is reviewed before it lands, because any of
your programs could have written it. If no reviewer can be called, the
resolution is saved and not used.

If the target is checked out, the checkout is updated too, unless that would
overwrite changed, staged, untracked or ignored files. In that case the
landing is parked below refs/arborist/landing/: later landings build on it,
and 'status' prints the command that updates the checkout.

Ctrl-C stops gates and agents and exits with 130. Tasks that have not landed
stay queued, and the interrupted try does not count.";

const EXAMPLES: &str = "\
EXIT STATUS
   1           A task did not land, for a reason that is not listed under 2.
   2           You must act: a task has a conflict, changed files in your
               checkout are in the way, a gate cannot run or already fails
               without the task, or you have not approved settings in the
               repository.
   3           A run is active on this branch, or another process is landing
               tasks on it.
   130 or 143  This command was stopped by Ctrl-C or another signal.

   'merge status' exits with 1 if a gate failed, a task waits because of
   --policy all-or-nothing, or a task has waited longer than the setting
   merge.wait-limit allows, and with 2 if you must act.

EXAMPLES
   Land a finished task now
       git arborist merge T001

   Queue several tasks, and land those that can land
       git arborist merge add T001 T002 T003
       git arborist merge run

   See which tasks wait, and why
       git arborist merge status

   Resolve a conflict by hand: run this once to open a worktree with the
   conflict, and again to land your resolution
       git arborist merge resolve T002

   Try again after you have fixed the task's branch
       git arborist merge retry T002 && git arborist merge run

   The same for a task that is not complete ('merge run' does not land it)
       git arborist merge T002 --force

   Land these tasks together, or none of them
       git arborist merge T001 T002 --policy all-or-nothing

   Land finished tasks, and check for more every minute
       git arborist merge run --watch 60

   Only queue finished tasks, and land them after you have looked at them
   (gardener exits with 1, because the tasks have not landed)
       git -c arborist.merge.auto=false arborist gardener --jobs 4
       git arborist merge run";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-merge", bin_name = "git arborist merge", about = catalog::about("merge"), long_about = LONG_ABOUT, after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, arg_required_else_help = true)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct MergeArgs {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    tasks: add::QueueAddArgs,
    #[command(flatten)]
    landing: run::LandingArgs,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Queue the branches of finished tasks
    Add(AddVerb),
    /// List queued tasks, in the order in which they will be tried
    List(QueueScopeArgs),
    /// Show the state of the queue or of one task
    Status(StatusArgs),
    /// Land all tasks that can land
    Run(run::QueueRunArgs),
    /// Remove a task from the queue and keep its branch
    Drop(TaskArgs),
    /// Queue a task again, after you have fixed it on its branch
    Retry(TaskArgs),
    /// Open a worktree to resolve a task's conflict, or land the resolution
    Resolve(ResolveArgs),
    /// Show the log of the queue
    Log(LogArgs),
}

#[derive(Debug, Args)]
struct AddVerb {
    #[command(flatten)]
    add: add::QueueAddArgs,
    #[command(flatten)]
    scope: QueueScopeArgs,
}

/// Which run is meant, and how to answer.
#[derive(Debug, Args)]
pub(crate) struct QueueScopeArgs {
    /// Use the run that commits to this branch [default: the current branch]
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct StatusArgs {
    /// Only this task, in detail
    #[arg(value_name = "TASK")]
    task: Option<TaskId>,
    #[command(flatten)]
    scope: QueueScopeArgs,
}

#[derive(Debug, Args)]
struct TaskArgs {
    /// Ids of the tasks, such as T001
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskId>,
    #[command(flatten)]
    scope: QueueScopeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The task
    #[arg(value_name = "TASK")]
    task: TaskId,
    /// The branch that the task is to land on [default: the branch of its run]
    #[arg(long, value_name = "BRANCH")]
    into: Option<BranchName>,
    #[command(flatten)]
    landing: run::LandingArgs,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// Maximum number of entries
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 50, value_parser = crate::numbers::whole::<usize>)]
    max_count: usize,
    #[command(flatten)]
    scope: QueueScopeArgs,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: MergeArgs, ui: &mut Ui) -> Outcome {
    if !matches!(args.verb, Some(Verb::List(_) | Verb::Status(_) | Verb::Log(_))) {
        refuse_here_in_step()?;
    }
    match args.verb {
        None => run::land(&args.tasks, &args.landing, ui),
        Some(Verb::Add(verb)) => add::run(&verb.add, &verb.scope, ui),
        Some(Verb::List(args)) => show::list(&args, ui),
        Some(Verb::Status(args)) => show::status(&args.scope, args.task.as_ref(), ui),
        Some(Verb::Run(args)) => run::run(&args, ui),
        Some(Verb::Drop(args)) => tickets::drop(&args.scope, &args.tasks, ui),
        Some(Verb::Retry(args)) => tickets::retry(&args.scope, &args.tasks, ui),
        Some(Verb::Resolve(args)) => resolve::run(&args, ui),
        Some(Verb::Log(args)) => show::log(&args.scope, args.max_count, ui),
    }
}
