//! Finished tasks that landed in another repository of the workspace, and whose changes are not there any more.

use super::{RepoSection, Workspace, WorkspaceError};
use crate::{
    git::{GitError, Repository},
    history::{FirstParentLine, RevertedPlace, Run},
    name::{BranchName, Oid, RepoName, TaskId},
    process::Cancel,
    settings::Settings,
};

/// Compares the landed tasks of a run with the other repositories of its workspace, for display: a workspace whose settings
/// are wrong is reported by the commands that work in it.
pub fn compare_for_display(
    main: &Repository,
    settings: &Settings,
    run: &mut Run,
) -> Result<(), WorkspaceError> {
    if settings.repos.iter().next().is_none() {
        return Ok(());
    }
    match Workspace::load(main, settings, &Cancel::new()) {
        Ok(workspace) => compare_elsewhere(&workspace.sections, run),
        Err(_) => Ok(()),
    }
}

/// Compares the landed tasks of a run with these repositories. Tasks without a branch there are left out.
pub fn compare_elsewhere(sections: &[RepoSection], run: &mut Run) -> Result<(), WorkspaceError> {
    let Some(session) = run.start.as_ref().map(|start| start.session.clone()) else { return Ok(()) };
    for section in sections.iter().filter(|section| !section.is_main) {
        let Ok(repository) = Repository::open_at(&section.path) else { continue };
        if let Some(target) = section.find_session_branch(&repository, &session)? {
            compare_with(&repository, (&section.name, target), run)?;
        }
    }
    Ok(())
}

/// Compares the landed tasks of a run with one repository: the session's branch there, at this commit.
pub fn compare_with(
    repository: &Repository,
    (repo, (branch, head)): (&RepoName, (BranchName, Oid)),
    run: &mut Run,
) -> Result<(), GitError> {
    let mut line = FirstParentLine::new(repository, head);
    let prefix = branch.task_refs();
    let mut path = None;
    for found in repository.list_refs(&[&prefix])? {
        let task: Option<TaskId> = found.name.strip_prefix(&prefix).and_then(|name| name.parse().ok());
        let Some(history) = run.tasks.iter_mut().find(|history| Some(&history.id) == task.as_ref()) else {
            continue;
        };
        if path.is_none() {
            let checkout = repository.checkouts_of(&branch)?.into_iter().next();
            path = Some(checkout.unwrap_or_else(|| repository.top().to_owned()));
        }
        let place = RevertedPlace { repo: repo.clone(), path: path.clone().unwrap_or_default() };
        history.compare_elsewhere(&mut line, found.target, place)?;
    }
    Ok(())
}
