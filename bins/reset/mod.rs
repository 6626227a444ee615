//! `git arborist reset`: a task begins anew. What it did stays in history.

use std::path::Path;

use arborist_core::{
    failure::{Exit, Failure},
    gardener::GardenerError,
    git::{Config, Repository},
    history::{Reading, Run, Scope, TaskHistory},
    message::{Status, Wording, nearest},
    name::{Attempt, BranchName, TaskId},
    plan::Plan,
    process::FileLock,
    record::{Entry, Recorder},
};
use clap::Parser;

use crate::{catalog, entry::Outcome, ui::Ui};

const EXAMPLES: &str = "\
EXAMPLES
   Let a failed task be tried again, with all its attempts
       git arborist reset T003

   In the run of a session that has a branch of its own
       git arborist reset T003 --scope arborist/tasks/3f9a2c1b";

#[derive(Debug, Parser)]
#[command(name = "git-arborist-reset", bin_name = "git arborist reset", about = catalog::about("reset"), after_help = EXAMPLES)]
#[allow(missing_docs, reason = "the text for people stands in the attributes")]
pub struct ResetArgs {
    /// The tasks
    #[arg(value_name = "TASK", required = true)]
    tasks: Vec<TaskId>,
    /// The run of this branch, not of the one that is checked out
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
}

/// Runs the command.
#[allow(clippy::needless_pass_by_value, reason = "every command takes its arguments")]
pub fn run(args: ResetArgs, ui: &mut Ui) -> Outcome {
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    ui.configure(&config.finish()?);
    let scope = Scope::resolve(&repository, args.scope.as_ref())?;
    if repository.find_branch(&scope.branch)?.is_none() {
        let words = format!("there is no branch '{}'", scope.branch);
        return Err(Failure::new(Exit::No, words).hint("see the branches with: git branch"));
    }
    let head = scope.tip.ok_or_else(|| GardenerError::Unborn(scope.branch.clone()))?;
    let locked = FileLock::try_take(&repository.run_lock(&scope.branch), "git arborist reset");
    let _lock = locked.map_err(|source| GardenerError::Locked { branch: scope.branch.clone(), source })?;
    repository.recover_locks()?;
    let run = Run::scan(&repository, scope, Reading::Fresh)?;
    let no_run = || {
        Failure::new(Exit::No, format!("'{}' has no run yet", run.scope.branch))
            .hint("begin one with: git arborist gardener")
    };
    let start = run.start.as_ref().ok_or_else(no_run)?;
    if let Some(unknown) = args.tasks.iter().find(|task| run.find(task).is_none()) {
        return Err(untouched(&repository, &run, unknown)?);
    }
    let mut recorder = Recorder::new(&repository, run.scope.branch.clone(), start.session.clone(), head)?;
    let mut has_reset = false;
    for task in &args.tasks {
        let history = run.find(task);
        if history.is_some_and(is_reset) {
            ui.line(&format!("{task} is reset already"));
            continue;
        }
        let name = history.and_then(|history| history.name()).unwrap_or(task.as_str());
        let entry = Entry::new(task.clone(), Status::Reset, Wording { name, attempt: Attempt(0), max: 0 });
        let event = recorder.record(entry, recorder.tree())?;
        ui.line(&format!("{} reset {task}", event.commit.short()));
        has_reset = true;
    }
    if has_reset {
        ui.hint("what the task has committed stays; 'git revert' takes it back");
    }
    Ok(Exit::Done)
}

fn is_reset(history: &TaskHistory) -> bool {
    history.forks.is_empty() && history.last().is_some_and(|last| last.status() == Status::Reset)
}

/// A task that history does not know needs no reset, or is another one than was meant.
fn untouched(repository: &Repository, run: &Run, task: &TaskId) -> Result<Failure, Failure> {
    let frozen = run.start.as_ref().and_then(|start| start.plan.as_ref());
    let bytes = frozen.map(|plan| repository.find_blob(plan.blob)).transpose()?.flatten();
    let plan = frozen.zip(bytes).and_then(|(frozen, bytes)| Plan::read(&frozen.path, &bytes).ok());
    if plan.is_some_and(|plan| plan.find(task).is_some()) {
        let words = format!("task '{task}' has not begun: there is nothing to reset");
        return Ok(Failure::new(Exit::No, words).hint("see all tasks with: git arborist state"));
    }
    let failure = Failure::new(Exit::No, format!("no commit of this run is about '{task}'"));
    Ok(match nearest(task.as_str(), run.tasks.iter().map(|history| history.id.as_str())) {
        Some(meant) => failure.hint(format!("did you mean '{meant}'?")),
        None => failure.hint("a task that was never taken up needs no reset; see: git arborist state"),
    })
}
