//! The branches of one task in other repositories, as far as its work has not landed there.

use arborist_core::{
    failure::Failure,
    git::Repository,
    history::Run,
    name::{BranchName, RepoName, TaskId},
    process::Cancel,
    settings::Settings,
    workspace::Workspace,
};

/// The branches of a task with commits that the session's branch does not have, with their repositories.
pub(super) fn find(
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
