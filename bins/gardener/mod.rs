//! `git arborist gardener`: runs all tasks that can be run, in order.

use arborist_core::{
    failure::Exit,
    gardener::{Failed, GardenerError, KeepGoing, Selection, refuse_reverted, wanted},
    history::State,
    name::TaskId,
    plan::Task,
    progress::{Boxes, NodeProgress, Progress},
    queue::FanIn,
    run::{CallSource, LaneRequest, Planned, RunRequest},
};
use clap::Parser;

use crate::{
    catalog,
    entry::Outcome,
    gardening::{GardeningArgs, Reporter, approve, foretell, give_back_here, open, tell_prompts},
    ui::Ui,
};

const LONG_ABOUT: &str = "\
Run every task of the plan that can be run, in the order of the plan.

An agent implements a task, the tests run, a reviewer decides. What fails is
tried again with the feedback in the prompt, as often as --max-retries says;
then the task is failed, and the run ends unless --keep-going is given. Each
step is a commit before the next one begins, so the same command goes on after
a crash, and does nothing where nothing is left to do. What goes on is tested
and limited as before: the session's test command and budgets hold until they
are given anew.

The plan and the configuration are frozen when the run begins: the copies in
the run's first commit count, not the files as an agent may have left them. If
they differ from the files, the run shows how and stops; --accept-changes takes
the new ones.

With one job the agent works in this checkout. With --jobs or --isolate each
task has a worktree and a branch of its own, and lands through the merge queue.
A landing that would touch files that are changed in the checkout is parked,
and the summary names the one command that brings the checkout up.

With --session-branch, with session.branch in the configuration, or where a
workspace is configured, the run has a branch of its own,
arborist/<plan>/<session>, in a worktree beside this checkout. The checkout,
its branch and what is not committed there are left alone; the branch stays
when the run ends, and 'git merge' brings the work over. Run again, it goes on
with the session that was begun last for this plan; --new-run begins another.

Ctrl-C stops the agents, commits what they have left, and ends with 130; a
second one ends at once. Nothing is lost either way, and the attempt does not
count: it begins again with the same number. After three interruptions of one
task in a row (signals, crashes, outages of a provider, errors of our own) the
run stops with 2; --retry-failed continues.";

const EXAMPLES: &str = "\
WHAT AGENTS ARE TOLD
   A prompt names the task, the goal of its phase, the tasks that it builds on
   and what they changed, the plan, the documents beside it (spec.md, plan.md,
   the constitution) and the files of the setting 'context'. After a failure it
   also has the feedback of all earlier attempts of the run, newest first: failed
   tests with their messages, the command, its exit code and its log. Templates
   in .arborist/prompts/implement.md and review.md replace the built-in prompts
   once you have approved them; see prompts.* in git-arborist(1). --dry-run -v
   prints the prompts.

   An agent gets its prompt as its runner says: as an argument, on standard
   input or in a file. A prompt of more than 100 KiB is not passed as an
   argument: the argument names a file with it. It need not use git. A reviewer ends with a line
   APPROVED, or REJECTED: and the reasons; anything else is a rejection. One that
   fails three times has decided nothing: the run stops, and goes on there. How
   a runner of your own tells of a limit stands at runners.*.events in
   git-arborist(1).

EXIT STATUS
   1 if a task failed or is left, 2 if a person is needed (a conflict, a parked
   landing, a forked task, a reviewer that fails), 3 if another run has this
   branch, 130 or 143 if it was stopped.

EXAMPLES
   Run the plan of this repository, or go on with it after a crash
       git arborist gardener

   Look first at what would be run, or also at the prompts
       git arborist gardener --dry-run
       git arborist gardener --dry-run -v

   With another agent and a test command
       git arborist gardener --runner codex --test-command 'cargo test'

   Four tasks at once, each in a worktree of its own
       git arborist gardener --jobs 4 --keep-going

   On a branch of its own, whatever is checked out or changed here
       git arborist gardener --session-branch

   Another reviewer, and no more than five dollars
       git arborist gardener --review-runner gemini --max-cost 5";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-gardener", bin_name = "git arborist gardener", about = catalog::about("gardener"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct GardenerArgs {
    #[command(flatten)]
    common: GardeningArgs,
    /// Only these tasks, or the tasks of these phases
    #[arg(long, value_name = "TASK")]
    only: Vec<TaskId>,
    /// Up to this task or phase, in the order of the plan, and nothing behind it
    #[arg(long, value_name = "TASK")]
    until: Option<TaskId>,
    /// How many tasks are worked on at once, each in a worktree of its own: a number, or auto
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<String>,
    /// Use a worktree also for one task at a time, and leave the checkout alone
    #[arg(long)]
    isolate: bool,
    /// What lands of what was worked on at once: keep-clean (all that can), all-or-nothing, first, or a number of them
    #[arg(long, value_name = "POLICY", default_value = "keep-clean")]
    policy: FanIn,
    /// Go on with other tasks when one fails
    #[arg(long)]
    keep_going: bool,
    /// Let failed tasks begin again, and continue those that were interrupted too often
    #[arg(long)]
    retry_failed: bool,
    /// Call nobody: play again what was recorded in the session that this one was forked from
    #[arg(long, hide = true)]
    offline: bool,
    /// Give the branch back to the user's checkout when the run ends
    #[arg(long, hide = true)]
    give_back: bool,
}

impl GardenerArgs {
    /// The options as a request.
    pub(crate) fn request(&self) -> RunRequest {
        RunRequest {
            lanes: LaneRequest { jobs: self.jobs.clone(), isolate: self.isolate, policy: self.policy },
            selection: Selection {
                only: self.only.clone(),
                until: self.until.clone(),
                keeps_going: if self.keep_going { KeepGoing::Yes } else { KeepGoing::No },
                failed: if self.retry_failed { Failed::Retry } else { Failed::Stay },
            },
            source: if self.offline { CallSource::Records } else { CallSource::Agents },
            is_guest: self.give_back,
            ..self.common.request()
        }
    }

    /// The tasks for which there is something to do: work, or a landing.
    fn due<'a>(&self, planned: &'a Planned, progress: &Progress<'_>, wish: &Selection) -> Vec<&'a Task> {
        let is_due = |task: &&Task| match progress.find(&task.id).map(|standing| standing.state) {
            Some(State::Failed) => self.retry_failed,
            _ => progress.is_left(&task.id),
        };
        wanted(&planned.plan, wish).into_iter().filter(is_due).collect()
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: GardenerArgs, ui: &mut Ui) -> Outcome {
    let outcome = run_plan(&args, ui);
    if args.give_back {
        give_back_here(ui);
    }
    outcome
}

fn run_plan(args: &GardenerArgs, ui: &mut Ui) -> Outcome {
    let mut opened = open(args.request(), ui)?;
    let run = opened.scan_to_show()?;
    let planned = opened.plan(&run)?;
    let selection = opened.request.selection.clone();
    if let Some(unknown) = selection.unknown(&planned.plan) {
        return Err(GardenerError::NoTask(unknown.clone()).into());
    }
    let jobs = opened.request.lanes.count(&opened.settings)?;
    let progress = Progress::new(Some(&planned.plan), &run, Boxes::Count);
    let due = args.due(&planned, &progress, &selection);
    refuse_reverted(&due, &progress)?;
    opened.is_idle = due.is_empty();
    if !opened.is_idle {
        opened.inherit_options(&planned, &run)?;
    }
    if args.common.is_dry_run() {
        opened.require_repositories(&planned)?;
        if due.is_empty() {
            ui.line("nothing is left to do");
        }
        for task in due {
            let is_apart = progress.find(&task.id).is_some_and(NodeProgress::is_apart);
            match (is_apart, jobs) {
                // In the checkout, the run would fail with this error.
                (true, None) => return Err(GardenerError::apart(&run, &opened.branch, &task.id).into()),
                (true, Some(_)) => ui.line(&format!("{} is complete and would be landed", task.id)),
                (false, _) => {
                    foretell(ui, &opened.options, task)?;
                    if args.common.is_verbose() {
                        tell_prompts(ui, &opened.preview_prompts(&planned, &run, task));
                    }
                }
            }
        }
        return Ok(Exit::Done);
    }
    approve(&opened, &opened.require_runnable(&planned, jobs)?, ui)?;
    let mut reporter = Reporter::new(&args.common, ui);
    let opened = opened.settle(&planned, &run, &mut reporter)?;
    let lanes = jobs.map(|jobs| opened.lanes(jobs, &planned, &run)).transpose()?;
    let ended = opened.drive(&planned, lanes.as_ref(), &selection, &mut reporter)?;
    reporter.end(ended)
}
