//! The selected run: errors and hints if it does not exist, so that a mistyped name does not look like an empty run, and the
//! option that selects it.

use arborist_core::{
    failure::{Exit, Failure},
    gardener::{GardenerError, start::difference},
    git::Repository,
    history::{CommitSource, HistoryError, Run, RunScope},
    message::nearest,
    name::{BranchName, TaskId},
    plan::{Plan, configured_plan_path, find_usual_plan},
    process::Cancel,
    run::Continuation,
    safe_files,
    settings::Settings,
    workspace::{SessionFilter, Workspace},
};

/// The run of the branch that was asked for, or of the one that is checked out, for a command with `--scope`.
pub(crate) fn resolve(repository: &Repository, requested: Option<&BranchName>) -> Result<RunScope, Failure> {
    RunScope::resolve(repository, requested).map_err(name_scope)
}

/// The error of a command with `--scope`, which is the other way to select a run.
fn name_scope(error: HistoryError) -> Failure {
    let HistoryError::Detached { branch, .. } = &error else { return error.into() };
    let branch = branch.as_ref().map_or("<branch>", BranchName::as_str).to_owned();
    Failure::from(error).hint(format!("or name the branch of the run with: --scope {branch}"))
}

/// The hint for an unknown name: the nearest known one, or else `all`, which says how to see them.
pub(crate) fn hint_nearest<'a>(
    name: &str,
    known: impl IntoIterator<Item = &'a str>,
    all: impl Into<String>,
) -> String {
    nearest(name, known).map_or_else(|| all.into(), |meant| format!("did you mean '{meant}'?"))
}

/// The error if there is neither the branch nor a run of it.
pub(crate) fn unknown(repository: &Repository, run: &Run) -> Failure {
    let branch = &run.scope.branch;
    let failure = Failure::new(Exit::No, format!("there is no branch '{branch}', and no run with that name"));
    let branches = repository.list_refs(&["refs/heads/"]).unwrap_or_default();
    let names = branches.iter().filter_map(|found| found.name.strip_prefix("refs/heads/"));
    if let Some(meant) = nearest(branch.as_str(), names) {
        return failure.hint(format!("did you mean '{meant}'?"));
    }
    match run.others.first() {
        Some(other) => {
            failure.hint(format!("see the run of '{other}' with: git arborist state --scope {other}"))
        }
        None => failure.hint("see the branches with: git branch"),
    }
}

/// The error for a task that was added to the plan after the run had started; `None` for any other task.
pub(crate) fn added_later(repository: &Repository, run: &Run, task: &TaskId) -> Option<Failure> {
    let frozen = run.start.as_ref()?.plan.as_ref()?;
    let bytes = safe_files::read_beneath(repository.worktree.as_ref()?, &frozen.path).ok()?;
    Plan::read(&frozen.path, &bytes).ok()?.find(task)?;
    let words =
        format!("'{task}' was added to '{}' after the run started, so the run does not have it", frozen.path);
    let next = Continuation::of(repository, run).continue_run(" --accept-changes");
    Some(Failure::new(Exit::No, words).hint(format!("add it to the run with: {next}")))
}

/// Whether a task belongs to the plan in this checkout, and the run to none: it was started with a task given as text.
pub(crate) fn is_of_another_plan(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    task: &TaskId,
) -> bool {
    let is_unplanned = run.start.as_ref().is_some_and(|start| start.plan.is_none());
    is_unplanned
        && plan_here(repository, settings).is_some()
        && not_in_plan(repository, settings, task).is_none()
}

/// The error for a task that the plan in this checkout does not have; `None` if it has it, or there is no plan.
pub(crate) fn not_in_plan(repository: &Repository, settings: &Settings, task: &TaskId) -> Option<Failure> {
    let path = plan_here(repository, settings)?;
    let bytes = safe_files::read_beneath(repository.worktree.as_ref()?, &path).ok()?;
    let plan = Plan::read(&path, &bytes).ok().filter(|plan| plan.find(task).is_none())?;
    Some(GardenerError::no_task(task, plan.tasks.iter().map(|task| task.id.as_str())).into())
}

/// The option that selects the run of `branch` in a hint, with a space before it; empty if it is selected without one.
pub(crate) fn option(repository: &Repository, branch: &BranchName) -> String {
    let is_usual = RunScope::resolve(repository, None).is_ok_and(|found| found.branch == *branch);
    if is_usual { String::new() } else { format!(" --scope {branch}") }
}

/// Refuses a missing branch, unless history has a run of it: then it was renamed.
pub(crate) fn require(repository: &Repository, scope: &RunScope) -> Result<(), Failure> {
    if repository.find_branch(&scope.branch)?.is_some()
        || repository.head.branch.as_ref() == Some(&scope.branch)
    {
        return Ok(());
    }
    let run = Run::scan(repository, scope.clone(), CommitSource::Cached)?;
    if run.start.is_none() && run.tasks.is_empty() { Err(unknown(repository, &run)) } else { Ok(()) }
}

/// The hint for a command that needs a run where none has begun: the command `again` for the last session with its own
/// branch, or else the command that starts a run, with these switches.
pub(crate) fn hint_without_run(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    switches: &str,
    again: &str,
) -> String {
    let is_usual = option(repository, &run.scope.branch).is_empty();
    let workspace = Workspace::load(repository, settings, &Cancel::new()).ok();
    let apart = workspace
        .and_then(|workspace| find_last_session_run(&workspace, repository, settings).ok().flatten());
    match apart.filter(|_| is_usual && run.start.is_none()) {
        Some(scope) => hint_session_branch(again, &scope.branch),
        None => format!("start a run with: {}", Continuation::of(repository, run).continue_run(switches)),
    }
}

/// The hint that the last session with its own branch, which need not be the last session, is on `branch`.
pub(crate) fn hint_session_branch(again: &str, branch: &BranchName) -> String {
    format!("the last session has its own branch; for that session, run: {again} --scope {branch}")
}

/// The run of the last session with its own branch. Other branches never affect the state of this one.
pub(crate) fn find_last_session_run(
    workspace: &Workspace,
    repository: &Repository,
    settings: &Settings,
) -> Result<Option<RunScope>, Failure> {
    let plan = plan_here(repository, settings);
    let meant = plan.as_deref().map_or(SessionFilter::Any, SessionFilter::Plan);
    let Some(last) = workspace.main().find_last_session(repository, meant)? else {
        return Ok(None);
    };
    let branch = last.record.context.branch;
    Ok(Some(RunScope { tip: repository.find_branch(&branch)?, branch }))
}

/// The path of the plan in this checkout.
pub(crate) fn plan_here(repository: &Repository, settings: &Settings) -> Option<String> {
    let top = repository.worktree.as_ref()?;
    configured_plan_path(repository, settings)
        .or_else(|| find_usual_plan(top, repository.head.branch.as_ref()))
}

/// The selected run. If runs have session branches, the last one of the plan in this checkout.
pub(crate) fn find_shown(
    workspace: &Workspace,
    repository: &Repository,
    settings: &Settings,
    requested: Option<&BranchName>,
) -> Result<RunScope, Failure> {
    let here = match RunScope::resolve(repository, requested) {
        Err(error @ HistoryError::Detached { .. }) => {
            return Err(detached(workspace, repository, settings, error));
        }
        resolved => resolved?,
    };
    if requested.is_some() {
        return Ok(here);
    }
    let is_apart = workspace.wants_session_branches(settings)
        && workspace.main().find_session_of(repository, &here.branch)?.is_none();
    let last = if is_apart { find_last_session_run(workspace, repository, settings)? } else { None };
    match last {
        Some(last) => {
            let run = Run::scan(repository, last.clone(), CommitSource::Cached)?;
            Ok(if has_plan_of(repository, settings, &run)? { last } else { here })
        }
        None => Ok(here),
    }
}

/// The run of the newest session that was merged into the branch of `here`, which has no run itself. Only sessions of the
/// plan in this checkout count.
pub(crate) fn find_merged(
    repository: &Repository,
    settings: &Settings,
    here: &Run,
) -> Result<Option<RunScope>, Failure> {
    for branch in &here.others {
        let scope = RunScope { branch: branch.clone(), tip: here.scope.tip };
        let run = match Run::scan(repository, scope.clone(), CommitSource::Fresh) {
            Ok(run) => run,
            Err(error @ HistoryError::Git(_)) => return Err(error.into()),
            // A run that is not clear is not shown instead of this one.
            Err(_) => continue,
        };
        if run.has_session_branch() && has_plan_of(repository, settings, &run)? {
            return Ok(Some(scope));
        }
    }
    Ok(None)
}

/// Whether a run was frozen with the tasks of the plan in this checkout. True if there is none.
fn has_plan_of(repository: &Repository, settings: &Settings, run: &Run) -> Result<bool, Failure> {
    let top = repository.worktree.as_ref();
    let file = plan_here(repository, settings);
    let now = file.and_then(|path| Some((safe_files::read_beneath(top?, &path).ok()?, path)));
    let Some((bytes, path)) = now else {
        return Ok(true);
    };
    let Some(before) = Plan::read_frozen(repository, run.frozen_plan())?.transpose()? else {
        return Ok(false);
    };
    Ok(difference(&before, &Plan::read(&path, &bytes)?).is_empty())
}

fn detached(
    workspace: &Workspace,
    repository: &Repository,
    settings: &Settings,
    error: HistoryError,
) -> Failure {
    let failure = name_scope(error);
    match find_last_session_run(workspace, repository, settings) {
        Ok(Some(last)) => failure.hint(format!("see the run of the last session: --scope {}", last.branch)),
        _ => failure,
    }
}
