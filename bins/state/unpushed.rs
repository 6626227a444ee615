//! What of a run its remotes have not, as far as was heard. Nobody is asked, and nothing is where no remote is configured.

use arborist_core::{
    git::Repository,
    history::Run,
    process::Cancel,
    settings::Settings,
    workspace::{PushSet, Transcripts, Workspace, WorkspaceError},
};

/// How many commits of the run's session each repository has that its remote has not. Those that have none are left out.
pub(super) fn find(
    repository: &Repository,
    settings: &Settings,
    run: &Run,
) -> Result<Vec<(String, u64)>, WorkspaceError> {
    let Some(start) = &run.start else {
        return Ok(Vec::new());
    };
    let workspace = Workspace::load(repository, settings, &Cancel::new())?;
    let cargo = PushSet { sessions: vec![start.session.clone()], transcripts: Transcripts::of(settings) };
    let mut found = Vec::new();
    for section in workspace.sections.iter().filter(|section| section.remote.is_some()) {
        if let Some(repository) = workspace.open(section)? {
            let (_, commits) = workspace.unpushed(&repository, section, &cargo)?;
            found.push((section.name.to_string(), commits));
        }
    }
    found.retain(|(_, commits)| *commits > 0);
    Ok(found)
}
