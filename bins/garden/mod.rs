//! `git arborist garden`: runs one task to its end.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{GardenerError, Selection, TypedOptions, refuse_reverted},
    history::State,
    name::TaskId,
    plan::Task,
    progress::{NodeProgress, PlanMarks, Progress},
    run::{RunRequest, SingleTask},
};
use clap::Parser;

use crate::{
    catalog,
    entry::Outcome,
    gardening::{
        GardeningArgs, Reporter, approve_and_remember, open, print_forecast, print_prompts, watch_signals,
    },
    ui::Ui,
};

const LONG_ABOUT: &str = "\
Implement, test and review one task in this checkout, with retries.

Name a task of the plan, or leave the name out to run the next task that is
ready. With -m, describe a task in your own words; no plan is needed.

A task has three steps. In the first, an agent implements it; then the test
command runs; then a reviewer, usually another agent, approves or rejects the
change. If a step fails, the next attempt begins with the first step again,
and its prompt has the output of the tests or the reasons of the reviewer.
Each step is one commit on this branch. git-arborist-gardener(1) describes the
prompts.

The task becomes part of the run of this branch, and a later 'git arborist
gardener' builds on it. A task that waits for another one cannot be run:
complete the other one first. If the task has failed before, --retry-failed
tries it again.";

const EXAMPLES: &str = "\
EXIT STATUS
   1           The task failed or is not ready.
   2           You must act; git-arborist-gardener(1) has examples.
   3           Another run is using this branch, or workers on other machines
               ('git arborist work') have tasks of the plan.
   130 or 143  This command was stopped by Ctrl-C or another signal.

EXAMPLES
   Run the next task that is ready
       git arborist garden

   Run a certain task with a certain agent
       git arborist garden T003 --runner claude

   One task without any plan
       git arborist garden -m 'Add a health endpoint'";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-garden", bin_name = "git arborist garden", about = catalog::about("garden"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct GardenArgs {
    /// The task [default: the next one that is ready]
    #[arg(value_name = "TASK")]
    task: Option<TaskId>,
    /// Run one task described in these words, without a plan
    #[arg(short, long, value_name = "WORDS", conflicts_with_all = ["task", "tree"])]
    message: Option<String>,
    /// Run the task even if it has failed, or was interrupted three times in a row
    #[arg(long)]
    retry_failed: bool,
    #[command(flatten)]
    common: GardeningArgs,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: GardenArgs, ui: &mut Ui) -> Outcome {
    let single = args.message.clone().map(SingleTask::Words);
    let request = RunRequest { single, ..args.common.request() };
    let mut opened = open(request, watch_signals(), ui)?;
    let run = opened.scan_recorded()?;
    let planned = match &args.message {
        Some(words) => opened.plan_of_words(&run, words)?,
        None => opened.plan(&run)?,
    };
    opened.refuse_merged(&planned)?;
    let progress = Progress::new(Some(&planned.plan), &run, PlanMarks::Count);
    // A run starts with the failed tests of phases, so a task that waits only for those can be run.
    let can_run = |task: &TaskId| {
        progress.find(task).is_some_and(NodeProgress::is_ready) || progress.waits_for_tests_only(task)
    };
    let next = || {
        let order = planned.plan.order();
        order.into_iter().find(|task| can_run(&task.id)).map(|task| task.id.clone())
    };
    let worded =
        || args.message.as_ref().and_then(|_| planned.plan.tasks.first()).map(|task| task.id.clone());
    let Some(task) = args.task.clone().or_else(worded).or_else(next) else {
        let share = progress.share();
        if share.done != share.total
            && let Some(failed) = progress.counted().find(|node| node.state == State::Failed)
        {
            return Err(blocked(failed, &progress, &opened.request.typed_options()));
        }
        let answer = if share.done == share.total { "all tasks are done" } else { "no task is ready" };
        Reporter::new(&args.common, ui).answer(answer);
        return Ok(Exit::Done);
    };
    opened.request.single.get_or_insert_with(|| SingleTask::Planned(task.clone()));
    let node = progress.find(&task).ok_or_else(|| {
        let known = progress.leaves().map(|node| node.id.as_str());
        opened.with_hints(GardenerError::no_task(&task, known))
    })?;
    if node.is_unlanded() {
        return Err(
            opened.with_hints(GardenerError::in_lane(&opened.repository, &run, &opened.branch, &task))
        );
    }
    refuse_reverted(node.planned.as_slice(), &progress)?;
    if node.state.is_done() {
        let words = format!("{task} is {}", node.state.as_str());
        Reporter::new(&args.common, ui).answer(&words);
        return Ok(Exit::Done);
    }
    let is_retried = args.retry_failed && node.state == State::Failed;
    if !can_run(&task) && !is_retried {
        if !node.is_leaf() {
            return Err(opened.with_hints(GardenerError::IsPhase { task }));
        }
        let mut waits: Vec<TaskId> = node.waits_for.clone();
        if waits.is_empty() && node.state == State::Failed {
            let command = opened.request.typed_command();
            return Err(opened.with_hints(GardenerError::NoAttemptLeft { task, command }));
        }
        if waits.is_empty() {
            let is_open = |leaf: &&Task| {
                progress.find(&leaf.id).is_none_or(|leaf| !leaf.state.is_done() || !leaf.is_landed())
            };
            waits.extend(planned.plan.leaves_of(&task).filter(is_open).map(|leaf| leaf.id.clone()));
        }
        if let Some([one, other, ..]) = run.find(&task).map(|history| &*history.forks) {
            return Err(opened.with_hints(GardenerError::Forked { task, commits: [*one, *other] }));
        }
        return Err(opened.with_hints(GardenerError::not_ready(&task, &waits, &progress)));
    }
    opened.inherit_options(&planned, &run)?;
    if args.common.dry_run {
        opened.require_repositories(&planned)?;
        opened.require_pathspecs(&planned)?;
        if let Some(task) = node.planned {
            print_forecast(ui, &opened.options, task)?;
            if args.common.verbose {
                print_prompts(ui, &opened.preview_prompts(&planned, &run, task)?);
            }
        }
        return Ok(Exit::Done);
    }
    let wish = Selection { only: vec![task], retry_failed: args.retry_failed, ..Selection::default() };
    approve_and_remember(&opened, &opened.require_runnable(&planned, None)?, ui)?;
    let mut reporter = Reporter::new(&args.common, ui);
    let opened = opened.enter_workplace(&planned, &run, &mut reporter)?;
    let ended = opened.drive(&planned, None, &wish, &mut reporter)?;
    reporter.end(ended)
}

/// The error if no task can be run because one failed.
fn blocked(failed: &NodeProgress<'_>, progress: &Progress<'_>, options: &TypedOptions) -> Failure {
    let is_other = |other: &&NodeProgress<'_>| progress.is_left(other.id) && other.id != failed.id;
    let others = match progress.counted().filter(is_other).count() {
        0 => String::new(),
        1 => ", and 1 other task is not ready".to_owned(),
        count => format!(", and {count} other tasks are not ready"),
    };
    Failure::new(Exit::No, format!("no task is ready: '{}' failed{others}", failed.id)).hint(format!(
        "try it again with: git arborist garden {} --retry-failed{}",
        failed.id, options.common
    ))
}
