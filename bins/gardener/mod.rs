//! `git arborist gardener`: every task that can be run, in order.

use std::collections::{BTreeMap, BTreeSet};

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{Failed, GardenerError, KeepGoing, Selection, wanted},
    git::Repository,
    history::State,
    name::TaskId,
    pipeline::RunOptions,
    plan::{Plan, Task},
    progress::{Boxes, NodeProgress, Progress},
    queue::FanIn,
    session::Asked,
    settings::Settings,
    workspace::Workspace,
};
use clap::Parser;

use crate::{
    catalog,
    entry::Outcome,
    gardening::{
        Brought, CallSource, GardeningArgs, Planned, Reporter, find_plan, foretell, give_back_here, open,
    },
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
   An agent gets its prompt as its runner says: as an argument, on standard
   input or in a file. It need not use git. A reviewer ends with a line
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

   Look first at what would be run
       git arborist gardener --dry-run

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
    /// How many tasks are worked on at once, in lanes; `None` for one after the other where the run is.
    fn lanes(&self, settings: &Settings) -> Result<Option<usize>, Failure> {
        let number = || settings.count("jobs").map(|jobs| jobs.to_string());
        let named = self.jobs.clone().or_else(|| settings.text("jobs").map(str::to_owned)).or_else(number);
        let count = match named.as_deref().unwrap_or("1") {
            "auto" => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            number => number.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
                Failure::new(Exit::Usage, format!("'{number}' is not a number of jobs"))
                    .hint("give a number from 1, or auto for one to a core")
            })?,
        };
        Ok((count > 1 || self.isolate).then_some(count))
    }

    /// What stands in the session's records beside what all commands have.
    fn told(&self) -> BTreeMap<String, String> {
        let jobs = self.jobs.clone().map(|jobs| ("jobs".to_owned(), jobs));
        let switches = [("isolate", self.isolate), ("keep-going", self.keep_going)];
        let on = switches.into_iter().filter(|(_, is_on)| *is_on);
        let policy =
            (self.policy != FanIn::default()).then(|| ("policy".to_owned(), self.policy.to_string()));
        on.map(|(name, _)| (name.to_owned(), "true".to_owned())).chain(jobs).chain(policy).collect()
    }

    /// Which tasks are wanted.
    fn chosen(&self) -> Vec<(&'static str, String)> {
        let only = self.only.iter().map(|task| ("only", task.to_string()));
        only.chain(self.until.iter().map(|task| ("until", task.to_string()))).collect()
    }

    /// What a session writes down of what it is asked for like this.
    pub(crate) fn asked(mut self) -> Result<Asked, Failure> {
        self.common.more = self.told();
        self.common.asked()
    }

    /// What files of the repository bring along for a run that is asked for like this, which need not be here.
    pub(crate) fn brought(
        &self,
        (settings, workspace): (&Settings, &Workspace),
        plan: &Plan,
    ) -> Result<BTreeSet<String>, Failure> {
        let options = &RunOptions::new(&self.common.flags(), settings)?;
        Brought { settings, options, workspace, plan }.commands(self.lanes(settings)?)
    }

    /// The plan that a run would begin with that is asked for like this, from the top.
    pub(crate) fn find_plan(&self, repository: &Repository, settings: &Settings) -> Option<String> {
        find_plan(repository, &self.common, settings)
    }

    /// The tasks that there is something to do for: work, or a landing.
    fn due<'a>(&self, planned: &'a Planned, progress: &Progress<'_>, wish: &Selection) -> Vec<&'a Task> {
        let is_due = |task: &&Task| match progress.find(&task.id).map(|standing| standing.state) {
            Some(State::Failed) => self.retry_failed,
            _ => progress.is_left(&task.id),
        };
        wanted(&planned.plan, wish).into_iter().filter(is_due).collect()
    }

    fn wish(&self) -> Selection {
        Selection {
            only: self.only.clone(),
            until: self.until.clone(),
            keeps_going: if self.keep_going { KeepGoing::Yes } else { KeepGoing::No },
            failed: if self.retry_failed { Failed::Retry } else { Failed::Stay },
        }
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(mut args: GardenerArgs, ui: &mut Ui) -> Outcome {
    args.common.more = args.told();
    args.common.choice = args.chosen();
    args.common.source = if args.offline { CallSource::Records } else { CallSource::Agents };
    args.common.is_guest = args.give_back;
    let outcome = grow(&mut args, ui);
    if args.give_back {
        give_back_here(ui);
    }
    outcome
}

fn grow(args: &mut GardenerArgs, ui: &mut Ui) -> Outcome {
    let mut opened = open(&args.common, ui)?;
    let run = opened.scan_to_show()?;
    let planned = opened.plan(&args.common, &run)?;
    let wish = args.wish();
    if let Some(unknown) = wish.unknown(&planned.plan) {
        return Err(GardenerError::NoTask(unknown.clone()).into());
    }
    let jobs = args.lanes(&opened.settings)?;
    let progress = Progress::new(Some(&planned.plan), &run, Boxes::Count);
    let due = args.due(&planned, &progress, &wish);
    args.common.is_idle = due.is_empty();
    if !args.common.is_idle {
        opened.take_up(&mut args.common, (&planned, &run))?;
    }
    if args.common.is_dry_run() {
        opened.require_repositories(&planned)?;
        if due.is_empty() {
            ui.line("nothing is left to do");
        }
        for task in due {
            let is_apart = progress.find(&task.id).is_some_and(NodeProgress::is_apart);
            match (is_apart, jobs) {
                // In the checkout the run would refuse, with these words.
                (true, None) => return Err(GardenerError::apart(&run, &opened.branch, &task.id).into()),
                (true, Some(_)) => ui.line(&format!("{} is complete and would be landed", task.id)),
                (false, _) => foretell(ui, &opened.options, task)?,
            }
        }
        return Ok(Exit::Done);
    }
    opened.approve(&args.common, &planned, jobs, ui)?;
    let mut reporter = Reporter::new(&args.common, ui);
    let opened = opened.settle(&args.common, (&planned, &run), &mut reporter)?;
    let lanes = match jobs {
        None => None,
        Some(jobs) => {
            let session = opened.session(&args.common, &run);
            let mut lanes = opened.lanes((jobs, args.policy), &planned, session)?;
            if args.offline {
                lanes.queue.resolver = None;
            }
            Some(lanes)
        }
    };
    let ended = opened.begin(&args.common, &planned, &mut reporter, lanes.as_ref())?.run(&wish);
    reporter.end(&opened, &planned, ended)
}
