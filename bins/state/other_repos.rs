//! The other repositories of a run: branches of a task that have not landed there, and unpushed commits according to our tracking
//! refs. No remote is contacted.

use arborist_core::{
    failure::Failure,
    git::Repository,
    history::Run,
    name::{BranchName, RepoName, TaskId},
    process::Cancel,
    settings::Settings,
    workspace::{PushSet, Workspace, WorkspaceError},
};

/// The branches of a task with commits that the session's branch does not have, with their repositories.
pub(super) fn find_branches(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
    task: &TaskId,
) -> Result<Vec<(RepoName, BranchName)>, Failure> {
    let Some(start) = &run.start else { return Ok(Vec::new()) };
    let workspace = Workspace::load(repository, settings, &Cancel::new())?;
    let mut found = Vec::new();
    for section in workspace.sections.iter().filter(|section| !section.is_main) {
        let Some(other) = workspace.open(section)? else { continue };
        let Some((session, head)) = section.find_session_branch(&other, &start.session)? else { continue };
        let branch = session.task_branch(task);
        if let Some(tip) = other.find_branch(&branch)?
            && !other.is_ancestor(tip, head)?
        {
            found.push((section.name.clone(), branch));
        }
    }
    Ok(found)
}

/// The number of unpushed commits of the run's session in each repository. Repositories without any are left out.
pub(super) fn find_unpushed(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
) -> Result<Vec<(String, u64)>, WorkspaceError> {
    let Some(start) = &run.start else {
        return Ok(Vec::new());
    };
    let workspace = Workspace::load(repository, settings, &Cancel::new())?;
    let push_set =
        PushSet { sessions: vec![start.session.clone()], transcripts: settings.session.transcripts };
    let mut found = Vec::new();
    for section in workspace.sections.iter().filter(|section| section.remote.is_some()) {
        if let Some(repository) = workspace.open(section)? {
            let (_, commits) = workspace.unpushed(&repository, section, &push_set)?;
            found.push((section.name.to_string(), commits));
        }
    }
    found.retain(|(_, commits)| *commits > 0);
    Ok(found)
}
