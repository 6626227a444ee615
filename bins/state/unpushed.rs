//! The unpushed commits of a run, according to our tracking refs. No remote is contacted.

use arborist_core::{
    history::Run,
    settings::Settings,
    workspace::{PushSet, Workspace, WorkspaceError},
};

/// The number of unpushed commits of the run's session in each repository. Repositories without any are left out.
pub(super) fn find_unpushed(
    workspace: &Workspace,
    settings: &Settings,
    run: &Run,
) -> Result<Vec<(String, u64)>, WorkspaceError> {
    let Some(start) = &run.start else {
        return Ok(Vec::new());
    };
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
