//! Which run is shown: that of the checked out branch, or that of the last session with its own branch.

use arborist_core::{
    failure::Failure,
    gardener::start::difference,
    git::Repository,
    history::{CommitSource, HistoryError, Run, RunScope},
    name::BranchName,
    plan::Plan,
    process::Cancel,
    safe_files,
    settings::Settings,
    workspace::Workspace,
};

use crate::scope::{find_apart, find_last_apart, plan_here};

/// The selected run. If runs have session branches, the last one of the plan in this checkout.
pub(super) fn find(
    repository: &Repository,
    settings: &Settings,
    asked: Option<&BranchName>,
) -> Result<RunScope, Failure> {
    let here = match RunScope::resolve(repository, asked) {
        Err(error @ HistoryError::Detached) => return Err(detached(repository, settings, error)),
        resolved => resolved?,
    };
    if asked.is_some() {
        return Ok(here);
    }
    let workspace = Workspace::load(repository, settings, &Cancel::new())?;
    let is_apart = workspace.wants_session_branches(settings)
        && workspace.main().find_session_of(repository, &here.branch)?.is_none();
    let last = if is_apart { find_last_apart(&workspace, repository, settings)? } else { None };
    match last {
        Some(last) => {
            let run = Run::scan(repository, last.clone(), CommitSource::Cached)?;
            Ok(if has_plan_of(repository, settings, run)? { last } else { here })
        }
        None => Ok(here),
    }
}

/// The run of the newest session that was merged into the branch of `here`, which has no run itself. Only sessions of the
/// plan in this checkout count.
pub(super) fn find_merged(
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
        if run.has_session_branch() && has_plan_of(repository, settings, run)? {
            return Ok(Some(scope));
        }
    }
    Ok(None)
}

/// Whether a run was frozen with the tasks of the plan in this checkout. True if there is none.
fn has_plan_of(repository: &Repository, settings: &Settings, run: Run) -> Result<bool, Failure> {
    let top = repository.worktree.as_ref();
    let file = plan_here(repository, settings);
    let now = file.and_then(|path| Some((safe_files::read_beneath(top?, &path).ok()?, path)));
    let Some((bytes, path)) = now else {
        return Ok(true);
    };
    let Some(frozen) = run.start.and_then(|start| start.plan) else {
        return Ok(false);
    };
    let Some(before) = repository.find_blob(frozen.blob)? else {
        return Ok(false);
    };
    let (before, now) = (Plan::read(&frozen.path, &before)?, Plan::read(&path, &bytes)?);
    Ok(difference(&before, &now).is_empty())
}

fn detached(repository: &Repository, settings: &Settings, error: HistoryError) -> Failure {
    let failure = Failure::from(error);
    match find_apart(repository, settings) {
        Ok(Some(branch)) => failure.hint(format!("see the run of the last session: --scope {branch}")),
        _ => failure,
    }
}
