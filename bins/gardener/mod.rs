//! `git arborist gardener`: runs all tasks of the plan, in order.

use std::collections::HashSet;

use arborist_core::{
    failure::Exit,
    gardener::{
        GardenerError, Selection, TypedOptions, due, find_due_phase, refuse_reverted, refuse_waiting, wanted,
    },
    history::State,
    name::TaskId,
    plan::{Plan, Task},
    progress::{NodeProgress, PlanMarks, Progress},
    queue::LandingPolicy,
    run::{CallSource, LaneRequest, RunRequest},
};
use clap::Parser;

use crate::{
    catalog,
    entry::Outcome,
    gardening::{
        GardeningArgs, Reporter, approve_and_remember, open, print_forecast, print_phase_forecast,
        print_prompts, release_branch_here, watch_signals,
    },
    ui::Ui,
};

const LONG_ABOUT: &str = "\
Run all tasks of the plan, in order.

For each task, an agent changes files, the tests run, and a reviewer approves
or rejects the changes. Each step is committed before the next one starts. If a
step fails, the next attempt begins, with the reason in its prompt.
--max-retries is the number of attempts. If the last one fails, the task has
failed, and the run ends unless --keep-going is given. The failure is recorded
in a commit; 'after 5 retries' in its subject means that there were five
attempts, the first one included.

Of your git hooks for commits, only pre-commit runs. If it refuses the changes
of an agent, the attempt fails, and the changes stay on the branch as those of
a failed attempt. A commit-msg hook does not run, because the messages of a run
have a fixed form.

After a crash, run the same command again: the run continues. If all tasks are
done, the command does nothing. A continued run keeps its test command and its
budgets unless you give new ones. It does not keep the runner, so give --runner
again. In another clone, give all options again: the commits of a run do not
contain them. If tasks of the run were tested and the test command is not known
there, the run does not continue.

The first commit of a run contains the plan and the configuration, also if you
had not committed them. The run uses these copies, so an agent cannot change
its task by editing the files. If you change the files later, the run stops and
shows the difference; --accept-changes accepts it.

Before the first task, the tests run once. If they fail, or if the program of
the test command is not installed, the run stops before an agent is called. A
project without tests is an exception: the run starts, with a note, if the test
command says that it finds no tests or no project file (such as package.json).
It also starts if the test command is a script that does not exist yet (such as
./run-tests.sh), or changes into a folder that does not exist yet, in a
repository that contains only documents.

Phases run in order, and so do the tasks of a phase, except that adjacent tasks
marked [P] (parallel) may run at the same time. A task is ready when the tasks
that it waits for are complete. With --jobs or --isolate, those tasks must also
have landed (see below). 'git arborist plan --explain TASK' shows why a task
waits.

With one job, the agent works in this checkout. With --jobs or --isolate, each
task has its own worktree and its own branch. When the task is complete, it
lands through the merge queue: its branch is merged into the branch of the run,
and the merged commit is tested in another worktree. If a landing would
overwrite files that you have changed in the checkout, the landing is parked.
Later tasks build on a parked landing, but your branch does not move until you
run the command that the summary prints.

With --session-branch, the run works on its own branch,
arborist/<plan>/<session>, in a worktree beside this checkout. Your checkout
and its branch do not change. When the run has ended, merge the branch with
'git merge'. The same command continues the newest session of the plan;
--new-run starts another. The setting session.branch makes this the default. It
is on in a workspace, where one plan works on several repositories; see
git-arborist-workspace(1).

Ctrl-C stops the agents, commits their unfinished work and exits with 130;
a second Ctrl-C exits at once. No work is lost, and the interrupted attempt
does not count. If a task is interrupted three times in a row (by signals,
crashes, provider outages or internal errors), the run stops with exit code 2;
to continue it, add --retry-failed.

A git command that runs for 30 minutes is stopped, and the error names it. The
attempt does not count; run the same command again to continue.";

const EXAMPLES: &str = "\
WHAT AGENTS ARE TOLD
   A prompt names the task and the goal of its phase, then the tasks that it
   depends on and what they changed. It lists documents to read: the plan,
   spec-kit's documents beside it (spec.md, plan.md, constitution.md) and the
   files that the setting 'context' names. After a failure, the prompt also
   contains the feedback on all earlier attempts in this run, newest first. For
   failed tests, the feedback has their names and messages, the test command,
   its exit code and its log. To replace the built-in prompts, write templates
   to .arborist/prompts/implement.md and review.md; they are used after you
   have approved them. See prompts.* in git-arborist(1). --dry-run -v prints
   the prompts.

   A runner gets its prompt on standard input, unless its command contains
   {prompt} (the prompt as an argument) or {prompt-file} (the path of a file
   with the prompt). {prompt} is replaced by a reference to such a file if the
   prompt has more than 100 KiB.
   Agents need not use git.

   An agent that finds nothing to change ends its reply with the line 'NOTHING
   TO DO: <reason>'. The tests and the reviewer then decide. An attempt without
   this line that changes no file fails. There is one exception: if an earlier
   attempt has left changes that no test and no reviewer has rejected, these go
   through the pre-commit hook, the tests and the review.

   The last line of a review must be 'APPROVED' or 'REJECTED: <reasons>'. Any
   other last line, or no reply, counts as a rejection. If the reviewer's
   program exits with an error three times, the run stops; run the same command
   again to repeat the review. How your own runner reports a rate limit is described under
   runners.*.events in git-arborist(1).

PROTECTED TESTS
   An attempt fails if it changes or deletes a file that the setting 'protect'
   names; the file is restored. New files are allowed. An attempt also fails if
   a test command runs fewer tests than before the task, skips more, or no
   longer prints how many tests ran. The same is true for the gates, which are
   checks before landing: a task whose gate runs fewer tests does not land.

   To allow this for one task, write it into the plan:
       - [ ] T007 [allow:tests/old.rs] [allow:fewer-tests] text
   T007 may then change that file and run fewer tests. --allow does the same
   for all tasks of the run, also when a later command continues it. See
   'protect' and 'test.allow-fewer' in git-arborist(1).

EXIT STATUS
   1           A task failed or did not land, or the run could not start or had
               to stop.
   2           You must act. Examples: a conflict, a parked landing, a reviewer
               that fails, a task that was interrupted three times, a task that
               an earlier run left unfinished in its own worktree, a changed
               plan or configuration, uncommitted changes, commands that you
               have not approved.
   3           Another run is using this branch, or workers on other machines
               ('git arborist work') have tasks of the plan.
   130 or 143  This command was stopped by Ctrl-C or another signal.

EXAMPLES
   Run the plan of this repository, or continue it after a crash
       git arborist gardener

   See which tasks would run, and with -v also the prompts
       git arborist gardener --dry-run
       git arborist gardener --dry-run -v

   With another agent and a test command
       git arborist gardener --runner codex --test-command 'cargo test'

   Run four tasks at once, each in its own worktree
       git arborist gardener --jobs 4 --keep-going

   Run on a separate branch and leave this checkout alone
       git arborist gardener --session-branch

   Use another reviewer, and spend at most five dollars
       git arborist gardener --review-runner gemini --max-cost 5";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-gardener", bin_name = "git arborist gardener", about = catalog::about("gardener"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct GardenerArgs {
    #[command(flatten)]
    common: GardeningArgs,
    /// Run only this task, or the tasks of this phase. Can be repeated
    #[arg(long, value_name = "TASK")]
    only: Vec<TaskId>,
    /// Run the plan up to and including this task or phase. 'git arborist plan' shows the ids
    #[arg(long, value_name = "TASK")]
    until: Option<TaskId>,
    /// How many tasks to run at once, each in its own worktree: a number, or auto (one per core)
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<String>,
    /// Use worktrees even for one task at a time; your checkout changes only when a finished task lands
    #[arg(long)]
    isolate: bool,
    /// Which parallel tasks land: keep-clean (all that pass), all-or-nothing, first (only the first that passes), or a
    /// number (at most that many)
    #[arg(long, value_name = "POLICY", default_value = "keep-clean")]
    policy: LandingPolicy,
    /// Continue with other tasks when one fails
    #[arg(long)]
    keep_going: bool,
    /// Try failed tasks again, and continue tasks that were interrupted three times in a row
    #[arg(long)]
    retry_failed: bool,
    /// Call no agent; replay the records of the session that this one was started from
    #[arg(long, hide = true)]
    offline: bool,
    /// Switch the user's checkout back to the branch when the run ends
    #[arg(long, hide = true)]
    give_back: bool,
    /// Print hints for the command 'session resume', which started this one
    #[arg(long, hide = true)]
    resumed: bool,
}

impl GardenerArgs {
    /// The options as a request.
    pub(crate) fn request(&self) -> RunRequest {
        RunRequest {
            lanes: LaneRequest { jobs: self.jobs.clone(), isolate: self.isolate, policy: self.policy },
            selection: Selection {
                only: self.only.clone(),
                until: self.until.clone(),
                keep_going: self.keep_going,
                retry_failed: self.retry_failed,
            },
            source: if self.offline { CallSource::Records } else { CallSource::Agents },
            has_borrowed_branch: self.give_back,
            is_resumed: self.resumed,
            ..self.common.request()
        }
    }
}

/// Tasks that a run does not start, because they have failed or wait for one that has; and their phases.
struct Stuck(HashSet<TaskId>);

impl Stuck {
    /// The tasks that have failed and are not tried again.
    fn find(plan: &Plan, progress: &Progress<'_>, selection: &Selection) -> Self {
        let mut stuck = Self(HashSet::new());
        if !selection.retry_failed {
            let has_failed = |task: &&Task| {
                progress.find(&task.id).is_some_and(|standing| standing.state == State::Failed)
            };
            plan.leaves().filter(has_failed).for_each(|task| stuck.add(plan, task));
        }
        stuck
    }

    fn has(&self, task: &TaskId) -> bool {
        self.0.contains(task)
    }

    fn add(&mut self, plan: &Plan, task: &Task) {
        let mut next = Some(task);
        while let Some(task) = next.filter(|task| self.0.insert(task.id.clone())) {
            next = task.parent.as_ref().and_then(|parent| plan.find(parent));
        }
    }

    /// Adds tasks that wait for these, directly or not.
    fn add_waiting(&mut self, plan: &Plan, due: &[&Task], progress: &Progress<'_>) {
        let mut before = 0;
        while before < self.0.len() {
            before = self.0.len();
            for task in due {
                let waits_for = progress.find(&task.id).map(|standing| standing.waits_for.as_slice());
                if waits_for.unwrap_or_default().iter().any(|need| self.has(need)) {
                    self.add(plan, task);
                }
            }
        }
    }
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: GardenerArgs, ui: &mut Ui) -> Outcome {
    let outcome = run_plan(&args, ui);
    if args.give_back {
        release_branch_here(ui);
    }
    outcome
}

fn run_plan(args: &GardenerArgs, ui: &mut Ui) -> Outcome {
    let mut opened = open(args.request(), watch_signals(), ui)?;
    let run = opened.scan_recorded()?;
    let planned = opened.plan(&run)?;
    if let Some(answer) = planned.find_merged_answer() {
        Reporter::new(&args.common, ui).answer(&answer);
        let TypedOptions { common, lanes, .. } = opened.request.typed_options();
        ui.hint(&format!("to do all tasks again: git arborist gardener --new-run{common}{lanes}"));
        return Ok(Exit::Done);
    }
    opened.refuse_merged(&planned)?;
    let selection = opened.request.selection.clone();
    if let Some(unknown) = selection.unknown(&planned.plan) {
        let known = planned.plan.tasks.iter().map(|task| task.id.as_str());
        return Err(opened.with_hints(GardenerError::no_task(unknown, known)));
    }
    selection.refuse_empty(&planned.plan)?;
    let jobs = opened.request.lanes.count(&opened.settings)?;
    let progress = Progress::new(Some(&planned.plan), &run, PlanMarks::Count);
    let due = due(&planned.plan, &progress, &selection);
    refuse_reverted(&due, &progress)?;
    if !selection.only.is_empty() {
        refuse_waiting(&due, &progress).map_err(|error| opened.with_hints(error))?;
    }
    opened.has_no_task_left = due.is_empty();
    if !opened.has_no_task_left {
        opened.inherit_options(&planned, &run)?;
    }
    if args.common.dry_run {
        opened.require_repositories(&planned)?;
        opened.require_pathspecs(&planned)?;
        let mut stuck = Stuck::find(&planned.plan, &progress, &selection);
        for failed in wanted(&planned.plan, &selection).iter().filter(|task| stuck.has(&task.id)) {
            ui.line(&format!("{} failed earlier; to try it again, add --retry-failed", failed.id));
        }
        stuck.add_waiting(&planned.plan, &due, &progress);
        if due.is_empty() && stuck.0.is_empty() {
            ui.line("nothing is left to do");
        } else if let Some(phase) = find_due_phase(&planned.plan, &progress) {
            print_phase_forecast(ui, phase);
        }
        for task in due {
            if stuck.has(&task.id) {
                ui.line(&format!("{} would not run, because it waits for a task that failed", task.id));
                continue;
            }
            let is_unlanded = progress.find(&task.id).is_some_and(NodeProgress::is_unlanded);
            match (is_unlanded, jobs) {
                // In the checkout, the run would fail with this error.
                (true, None) => {
                    let error = GardenerError::in_lane(&opened.repository, &run, &opened.branch, &task.id);
                    return Err(opened.with_hints(error));
                }
                (true, Some(_)) => ui.line(&format!("{} is complete and would be landed", task.id)),
                (false, _) => {
                    print_forecast(ui, &opened.options, task)?;
                    if args.common.verbose {
                        print_prompts(ui, &opened.preview_prompts(&planned, &run, task)?);
                    }
                }
            }
        }
        return Ok(Exit::Done);
    }
    approve_and_remember(&opened, &opened.require_runnable(&planned, jobs)?, ui)?;
    let mut reporter = Reporter::new(&args.common, ui);
    let opened = opened.enter_workplace(&planned, &run, &mut reporter)?;
    let lanes = jobs.map(|jobs| opened.lanes(jobs, &planned, &run)).transpose()?;
    let ended = opened.drive(&planned, lanes.as_ref(), &selection, &mut reporter)?;
    reporter.end(ended)
}
