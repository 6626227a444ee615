//! `git arborist merge`: finished tasks land in order, tested, without a forge, a daemon or a checkout.

mod add;
mod change;
pub mod document;
mod elsewhere;
mod open;
pub mod resolve;
mod run;
mod show;
mod unqueued;
mod words;

use arborist_core::{
    name::{BranchName, TaskId},
    run::refuse_here_in_step,
};
use clap::{Args, Parser, Subcommand};

use crate::{catalog, entry::Outcome, ui::Ui};

const LONG_ABOUT: &str = "\
Land the branches of finished tasks, in order, without a forge, a daemon or a
checkout.

What is queued stands in refs below refs/arborist/queue/, and every call
rebuilds the queue from there: kill it at any moment, run it again, and each
task has landed once or is still queued. 'add' only queues; 'run' lands all
that can be landed, and 'git arborist merge TASK' does both for one task. A run
of several jobs lands what it finishes by itself, unless merge.auto is false.

Each task becomes one merge commit. The gates are asked about exactly that
commit in a worktree of their own, and then the target moves there by
compare-and-swap. Several tasks are stacked and tested once; a red stack is
halved until the bad one stands alone, and the good ones land. A gate that is
missing, times out, is killed or runs no tests is broken: nothing lands, and
nobody is blamed.

Without merge.gates, the test command is the gate of every landing, together
with the test commands that a task has of its own. Without any of them, a
warning says that landings are not tested.

Gates are read from the configuration as the run accepted it, not from the file
as it lies in the checkout. If they differ, nothing lands until 'git arborist
gardener --accept-changes' was said.

A conflict steps aside, and an agent, the runner of steps.resolve, tries to
resolve it, as often as merge.resolve-attempts says. What comes of that is
reviewed, merged and tested. The trailer Arborist-Resolved-By of the landing,
'list', 'log' and the summary of a run say whose it is, and the calls are turns
of the session. Then a person is asked for.

'resolve' opens a worktree with the conflict in it. Edit the files there and run
the same command again: it lands your resolution, tested but without a review,
because you made it. Changes to files that are not in conflict are listed, and
land only with --yes: another program may have made them. A resolution that an
earlier command left in the queue is reviewed before it lands, since any program
of yours can write a queue entry. Where no reviewer can be called, it is saved
and not used.

If the target is checked out, the checkout comes along, but only if nothing
that is changed, staged, untracked or ignored there is in the way. Otherwise
what landed is parked below refs/arborist/landing/: later landings go on top of
it, and 'status' names the command that brings the checkout up.

Ctrl-C stops gates and agents and ends with 130. What was not landed is still
queued, and no try is used up.";

const EXAMPLES: &str = "\
EXIT STATUS
   1 if something did not land or waits for too long, 2 if a person is needed
   (a conflict, a parked landing, a broken gate, a target that is red itself,
   changed settings), 3 if somebody else lands on the target, 130 or 143 if it
   was stopped.

EXAMPLES
   Land a finished task now
       git arborist merge T001

   Queue several, and land what can be landed
       git arborist merge add T001 T002 T003
       git arborist merge run

   See what waits, and for what
       git arborist merge status

   Resolve a conflict by hand: once to open it, once more to land it
       git arborist merge resolve T002

   Try again after a conflict or a red gate was mended
       git arborist merge retry T002 && git arborist merge run

   Land all of these together, or none
       git arborist merge T001 T002 --policy all-or-nothing

   Land whatever is finished, looking again every minute
       git arborist merge run --watch 60

   Let a run queue what it finishes, and land it when it was looked at
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
    /// List what is queued, in the order in which it will be tried
    List(ListArgs),
    /// Say how the queue or one task stands; exit 1 while something is red or waits for too long, 2 if a person is needed
    Status(StatusArgs),
    /// Land all that can be landed
    Run(run::QueueRunArgs),
    /// Take a task out of the queue; its branch stays
    Drop(TaskArgs),
    /// Try a task again that stands aside
    Retry(TaskArgs),
    /// Open a worktree with the conflict of a task in it, or land what was made of it there
    Resolve(ResolveArgs),
    /// Show what became of what was queued
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
    /// The run of this branch, not of the one that is checked out
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ListArgs {
    #[command(flatten)]
    scope: QueueScopeArgs,
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
    /// The tasks
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
    /// The task was queued for this branch, not for that of its run
    #[arg(long, value_name = "BRANCH")]
    into: Option<BranchName>,
    #[command(flatten)]
    landing: run::LandingArgs,
}

#[derive(Debug, Args)]
struct LogArgs {
    /// How many entries at most
    #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 50)]
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
        Some(Verb::List(args)) => show::list(&args.scope, ui),
        Some(Verb::Status(args)) => show::status(&args.scope, args.task.as_ref(), ui),
        Some(Verb::Run(args)) => run::run(&args, ui),
        Some(Verb::Drop(args)) => change::drop(&args.scope, &args.tasks, ui),
        Some(Verb::Retry(args)) => change::retry(&args.scope, &args.tasks, ui),
        Some(Verb::Resolve(args)) => resolve::run(&args, ui),
        Some(Verb::Log(args)) => show::log(&args.scope, args.max_count, ui),
    }
}
