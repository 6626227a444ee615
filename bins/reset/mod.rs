//! `git arborist reset`: resets a task, so that it is done again. Its work stays in history.

use std::path::Path;

use arborist_core::{
    failure::{Exit, Explain, Failure},
    gardener::{GardenerError, LeftoverWork, TypedOptions, find_started_in_lane, save_own_branch},
    git::{Config, Repository},
    history::{CommitSource, Run, RunScope, State, TaskHistory},
    message::{Status, SubjectParts},
    name::{Attempt, BranchName, Oid, TaskId},
    plan::{Mark, Plan, Task},
    process::shell_word,
    queue::{LogEntry, LoggedOutcome, OutcomeWritten, Store, TicketState},
    record::{RunRecorder, TaskEvent, UnfinishedAttempt},
    run::{lock_branch, refuse_in_step},
    settings::Settings,
};
use clap::Parser;

use crate::{catalog, clock, entry::Outcome, scope, ui::Ui};

const EXAMPLES: &str = "\
EXAMPLES
   Let a failed task start over, with the full number of attempts
       git arborist reset T003

   Also undo its changes; they are saved under a ref first
       git arborist reset --drop T003

   In the run of a session that has its own branch
       git arborist reset T003 --scope arborist/tasks/3f9a2c1b

EXIT STATUS
   1  The run has no commit of the task.
   2  The changes of the task cannot be undone: later commits have changed the
      same lines, or the files have uncommitted changes.
   3  A run is using the branch.";

const LONG_ABOUT: &str = "\
Let a task start over, with the full number of attempts.

The state of a task is decided by its newest commit. 'reset' adds a commit
after which the task counts as not started; the earlier commits stay in
history. The next run works on the task again. Nothing else changes: tasks that
depend on it keep their state.

Use it for a task that has failed, or for one that is complete but should be
done differently. If the task has its own branch, the branch is saved below
refs/arborist/saved/ and the next run starts from the current state of the run.
If the task waits in the merge queue, it is removed from the queue.

The files that the task has added or changed stay, and the next attempt finds
them. With --drop its changes are undone too, after they were saved below
refs/arborist/saved/. 'git arborist cleanup restore' brings saved work
back.";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-reset", bin_name = "git arborist reset", about = catalog::about("reset"), long_about = LONG_ABOUT, after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct ResetArgs {
    /// The tasks
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskId>,
    /// Also undo the changes of the tasks; they are saved under a ref first
    #[arg(long)]
    drop: bool,
    /// Use the run that commits to this branch [default: the current branch]
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: ResetArgs, ui: &mut Ui) -> Outcome {
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    refuse_in_step(&repository)?;
    let config = config.finish()?;
    ui.configure(&config);
    let scope = scope::resolve(&repository, args.scope.as_ref())?;
    if repository.find_branch(&scope.branch)?.is_none() {
        if repository.head.branch.as_ref() == Some(&scope.branch) {
            return Err(GardenerError::Unborn(scope.branch).into());
        }
        let words = format!("there is no branch '{}'", scope.branch);
        return Err(Failure::new(Exit::No, words).hint("see the branches with: git branch"));
    }
    let _lock = lock_branch(&repository, &scope.branch, "git arborist reset", None)?;
    // A run may have ended, or a turn may have been finished, since the branch was read.
    let unborn = || GardenerError::Unborn(scope.branch.clone());
    let head = repository.find_branch(&scope.branch)?.ok_or_else(unborn)?;
    let scope = RunScope { tip: Some(head), ..scope };
    let run = Run::scan(&repository, scope, CommitSource::Fresh)?;
    let Some(start) = &run.start else {
        let settings = Settings::load(&repository, &config)?;
        let unknown = args.tasks.iter().find_map(|task| scope::not_in_plan(&repository, &settings, task));
        if let Some(unknown) = unknown {
            return Err(unknown);
        }
        let tasks: Vec<&str> = args.tasks.iter().map(TaskId::as_str).collect();
        let drop = if args.drop { " --drop" } else { "" };
        let again = format!("git arborist reset{drop} {}", tasks.join(" "));
        return Err(Failure::new(Exit::No, format!("'{}' has no run yet", run.scope.branch))
            .hint(scope::hint_without_run(&repository, &settings, &run, "", &again)));
    };
    if let Some(unknown) = args.tasks.iter().find(|task| run.find(task).is_none()) {
        return Err(untouched(&repository, &Settings::load(&repository, &config)?, &run, unknown)?);
    }
    let place = find_checkout(&repository, &run.scope.branch)?;
    let at = place.as_ref().unwrap_or(&repository);
    let mut recorder = RunRecorder::new(at, run.scope.branch.clone(), start.session.clone(), head)?;
    let selection = ResetSelection {
        repository: &repository,
        run: &run,
        place: place.as_ref(),
        tasks: &args.tasks,
        drop: args.drop,
    };
    args.tasks.iter().try_for_each(|task| selection.reset(task, &mut recorder, ui))?;
    Ok(Exit::Done)
}

/// The tasks to reset, and where.
struct ResetSelection<'r> {
    repository: &'r Repository,
    run: &'r Run,
    /// The checkout of the run's branch, if there is one.
    place: Option<&'r Repository>,
    tasks: &'r [TaskId],
    /// Whether the changes of the tasks are undone, too.
    drop: bool,
}

impl ResetSelection<'_> {
    /// Resets a task. The caller holds the lock of the run. If the process is killed in between, the same command
    /// continues:
    ///
    /// 1. Refuse what cannot be done although the task is already reset. Nothing is written before.
    /// 2. Save the task's own branch. The ref is named after the commit, so it is found again.
    /// 3. Undo the changes and write the `reset` commit. [`LeftoverWork::undo_work`] does both.
    /// 4. Take the ticket out of the queue. This also happens if the task was reset before.
    fn reset(&self, task: &TaskId, recorder: &mut RunRecorder<'_>, ui: &mut Ui) -> Result<(), Failure> {
        let Self { repository, run, .. } = *self;
        let is_reset = run.find(task).is_some_and(is_reset);
        let leftover = LeftoverWork::find(repository, run, task, recorder.head())?;
        if self.drop && is_reset && !leftover.contested.is_empty() {
            return Err(contested_after_reset(task, &leftover.contested));
        }
        let saved_branch = save_own_branch(repository, &run.scope.branch, task, recorder.head())?;
        let recorded = self.record(task, &leftover, recorder, ui);
        let left_queue = recorded.and_then(|()| leave_queue(repository, &run.scope.branch, task));
        if left_queue == Ok(true) {
            ui.note(&format!("removed {task} from the merge queue"));
        }
        // Also if the changes could not be undone: the next call does not save the branch again.
        if let Some(saved) = saved_branch {
            ui.note(&format!(
                "its task branch is saved as {saved}; the next run with --jobs or --isolate starts a new one"
            ));
        }
        left_queue?;
        if !self.drop && !leftover.describe_work().is_empty() {
            self.report_leftover(task, &leftover, ui);
        }
        Ok(())
    }

    /// Writes the `reset` commit, unless the task is reset and there is nothing to undo.
    fn record(
        &self,
        task: &TaskId,
        leftover: &LeftoverWork,
        recorder: &mut RunRecorder<'_>,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let Self { repository, run, .. } = *self;
        let history = run.find(task);
        let name = history.and_then(|history| history.name()).unwrap_or(task.as_str());
        if self.drop && !leftover.changes.is_empty() {
            let (commit, saved) = leftover.undo_work(recorder, task, name, self.place)?;
            tell_reset(ui, repository, run, task, commit)?;
            ui.note(&format!("undid the changes of {task}: {}", leftover.describe_removal()));
            ui.note(&format!("they are saved as {saved}"));
            return self.report_dependents(task, ui);
        }
        if history.is_some_and(is_reset) {
            ui.line(&format!("{task} is already reset"));
            return Ok(());
        }
        let wording = SubjectParts { name, attempt: Attempt(0), max: 0 };
        let event = recorder.record(TaskEvent::new(task.clone(), Status::Reset, wording), recorder.tree())?;
        tell_reset(ui, repository, run, task, event.commit)
    }

    /// Names complete tasks that build on changes that were undone.
    fn report_dependents(&self, task: &TaskId, ui: &mut Ui) -> Result<(), Failure> {
        let mut builds_on = complete_dependents(self.repository, self.run, task)?;
        builds_on.retain(|dependent| !self.tasks.iter().any(|reset| reset.as_str() == *dependent));
        if !builds_on.is_empty() {
            ui.note(&format!("complete tasks that depend on {task} stay complete: {}", builds_on.join(", ")));
        }
        Ok(())
    }

    /// Names changes of the task that stay, and what removes them.
    fn report_leftover(&self, task: &TaskId, leftover: &LeftoverWork, ui: &mut Ui) {
        ui.note(&format!("the changes of {task} are still there: {}", leftover.describe_work()));
        let scope = scope::option(self.repository, &self.run.scope.branch);
        ui.hint(&match leftover.contested.is_empty() {
            true => format!("to undo them, run: git arborist reset --drop {task}{scope}"),
            false => format!(
                "later commits have changed the same lines of {}; to undo the changes of {task} there, edit {} by hand",
                leftover.contested.join(", "),
                if leftover.contested.len() == 1 { "it" } else { "them" }
            ),
        });
    }
}

/// The error for changes that later commits build on, of a task that starts over anyway.
fn contested_after_reset(task: &TaskId, files: &[String]) -> Failure {
    let error = GardenerError::Contested(task.clone(), files.join(", "));
    let paths: Vec<String> = files.iter().map(|file| shell_word(file)).collect();
    Failure::new(error.exit(), error.to_string()).hint(format!(
        "'{task}' is already reset; edit the files, or revert the later commits first; see them with: git log --oneline -- {}",
        paths.join(" ")
    ))
}

fn tell_reset(
    ui: &mut Ui,
    repository: &Repository,
    run: &Run,
    task: &TaskId,
    commit: Oid,
) -> Result<(), Failure> {
    let commit = commit.short();
    let plan = frozen_plan(repository, run)?;
    if plan.and_then(|plan| plan.find(task).map(|found| found.mark)) == Some(Mark::Skipped) {
        ui.line(&format!("{task} is reset (commit {commit}), but the plan skips it, because its box is [-]"));
        ui.hint("to run it, change its box to [ ], then run: git arborist gardener --accept-changes");
        return Ok(());
    }
    ui.line(&format!("{task} is reset, and the next run starts it again (commit {commit})"));
    Ok(())
}

/// Takes a reset task out of the merge queue: its old work will not land, and its conflict no longer has
/// to be resolved. Returns whether it was there. A parked landing stays, because the task has landed.
fn leave_queue(repository: &Repository, run: &BranchName, task: &TaskId) -> Result<bool, Failure> {
    let store = Store::new(repository);
    let queued = store.load(Some(run))?.into_iter().find(|stored| stored.ticket.task == *task);
    match queued {
        Some(stored) if !matches!(stored.ticket.state, TicketState::Parked { .. }) => {
            let entry = LogEntry::new(&stored.ticket, LoggedOutcome::Dropped, None, clock::now());
            let into = stored.ticket.into.clone();
            store.log(&into, &[entry], &[stored], OutcomeWritten::New)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// The worktree that has a branch checked out: its files must follow the branch.
fn find_checkout(repository: &Repository, branch: &BranchName) -> Result<Option<Repository>, Failure> {
    if repository.worktree.is_some() && repository.head.branch.as_ref() == Some(branch) {
        return Ok(Some(repository.clone()));
    }
    let worktrees = repository.list_worktrees()?;
    let found = worktrees.iter().find(|worktree| worktree.branch.as_ref() == Some(branch));
    Ok(found.filter(|worktree| worktree.path.is_dir()).and_then(|worktree| repository.linked(worktree)))
}

fn is_reset(history: &TaskHistory) -> bool {
    history.forks.is_empty() && history.last().is_some_and(|last| last.status() == Status::Reset)
}

/// The complete tasks that depend on a task, directly or through others.
fn complete_dependents(repository: &Repository, run: &Run, task: &TaskId) -> Result<Vec<String>, Failure> {
    let Some(plan) = frozen_plan(repository, run)? else { return Ok(Vec::new()) };
    let is_complete = |leaf: &Task| run.state_of(&leaf.id) == State::Complete;
    let readiness = plan.readiness(|other| other.id != *task);
    let depends = |leaf: &Task| leaf.id != *task && readiness.leaves_waited_for(&leaf.id).contains(task);
    let dependents = plan.leaves().filter(|leaf| is_complete(leaf) && depends(leaf));
    Ok(dependents.map(|leaf| leaf.id.to_string()).collect())
}

fn frozen_plan(repository: &Repository, run: &Run) -> Result<Option<Plan>, Failure> {
    Ok(Plan::read_frozen(repository, run.frozen_plan())?.and_then(Result::ok))
}

/// The error for a task without history: it needs no reset, or the name is wrong.
fn untouched(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    task: &TaskId,
) -> Result<Failure, Failure> {
    let scope = scope::option(repository, &run.scope.branch);
    let plan = frozen_plan(repository, run)?;
    let planned = plan.as_ref().and_then(|plan| plan.find(task).map(|found| (plan, found)));
    if let Some((plan, phase)) = planned.filter(|(_, found)| !found.is_leaf()) {
        let has_begun = |leaf: &&Task| run.find(&leaf.id).is_some_and(|history| !is_reset(history));
        let begun = plan.leaves_of(&phase.id).filter(has_begun);
        let begun: Vec<&str> = begun.map(|leaf| leaf.id.as_str()).collect();
        let failure = Failure::new(Exit::No, format!("'{task}' is a phase, not a task"));
        return Ok(match begun.is_empty() {
            true => failure.hint(format!("see its tasks with: git arborist state {task}{scope}")),
            false => failure.hint(format!(
                "to reset its tasks that have started: git arborist reset {}{scope}",
                begun.join(" ")
            )),
        });
    }
    if planned.is_some() {
        let marks = repository.list_refs(&[UnfinishedAttempt::REFS])?;
        let is_marked =
            |mark: &str| UnfinishedAttempt::task_of(mark, &run.scope.branch).as_ref() == Some(task);
        if marks.iter().any(|mark| is_marked(&mark.name)) {
            let words = format!(
                "task '{task}' was interrupted in its first attempt and has committed nothing, so there is nothing to reset"
            );
            let found = planned.map(|(_, found)| found).into_iter().collect::<Vec<_>>();
            let is_in_lane = find_started_in_lane(repository, run, &found)?.is_some();
            let switches = if is_in_lane { format!(" --isolate --only {task}") } else { String::new() };
            let hint = format!("the next run continues it: git arborist gardener{switches}{scope}");
            return Ok(Failure::new(Exit::No, words).hint(hint));
        }
        let words = format!("task '{task}' has not started, so there is nothing to reset");
        return Ok(
            Failure::new(Exit::No, words).hint(format!("see all tasks with: git arborist state{scope}"))
        );
    }
    if let Some(failure) = scope::added_later(repository, run, task) {
        return Ok(failure);
    }
    if scope::is_of_another_plan(repository, settings, run, task) {
        let words = format!("task '{task}' has not run yet, so there is nothing to reset");
        return Ok(Failure::new(Exit::No, words).hint(format!("run it with: git arborist garden {task}")));
    }
    let options = TypedOptions { tree: scope, ..TypedOptions::default() };
    let known = run.tasks.iter().map(|history| history.id.as_str());
    Ok(GardenerError::no_task(task, known).into_failure(&options))
}
