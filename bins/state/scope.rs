//! Which run is shown: that of the branch that is checked out, or of the session that works apart from it.

use arborist_core::{
    failure::Failure,
    git::Repository,
    history::{HistoryError, Scope},
    name::BranchName,
    plan::usual_places,
    process::Cancel,
    settings::Settings,
    workspace::{Meant, Workspace},
};

/// The run that is asked for. Where runs are to have branches of their own, the last of these.
pub(super) fn find(
    repository: &Repository,
    settings: &Settings,
    asked: Option<&BranchName>,
) -> Result<Scope, Failure> {
    let here = match Scope::resolve(repository, asked) {
        Err(error @ HistoryError::Detached) => return Err(detached(repository, settings, error)),
        resolved => resolved?,
    };
    if asked.is_some() {
        return Ok(here);
    }
    let workspace = Workspace::load(repository, settings, &Cancel::new())?;
    let is_apart = workspace.wants_session_branches(settings)
        && workspace.main().find_session_of(repository, &here.branch)?.is_none();
    let last = if is_apart { last_in(&workspace, repository, settings)? } else { None };
    Ok(last.unwrap_or(here))
}

/// The run of the last session that works apart, for the plan that lies here if there is one.
pub(super) fn find_apart(repository: &Repository, settings: &Settings) -> Result<Option<Scope>, Failure> {
    last_in(&Workspace::load(repository, settings, &Cancel::new())?, repository, settings)
}

fn last_in(
    workspace: &Workspace,
    repository: &Repository,
    settings: &Settings,
) -> Result<Option<Scope>, Failure> {
    let top = repository.worktree.as_ref();
    let lies_here = |name: &String| top.is_some_and(|top| top.join(name).is_file());
    let usual = || usual_places(repository.head.branch.as_ref()).into_iter().find(lies_here);
    let plan = settings.tree().map(str::to_owned).or_else(usual);
    let meant = plan.as_deref().map_or(Meant::Any, Meant::Plan);
    let Some(last) = workspace.main().find_last_session(repository, meant)? else {
        return Ok(None);
    };
    let branch = last.record.context.branch;
    Ok(Some(Scope { tip: repository.find_branch(&branch)?, branch }))
}

fn detached(repository: &Repository, settings: &Settings, error: HistoryError) -> Failure {
    let failure = Failure::from(error);
    match find_apart(repository, settings) {
        Ok(Some(scope)) => failure.hint(format!("see the run of the last session: --scope {}", scope.branch)),
        _ => failure,
    }
}
