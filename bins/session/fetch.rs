//! Fetches sessions from a remote before one is resumed, so that a fresh clone can continue it.

use arborist_core::{
    failure::Failure,
    git::shown_url,
    message::visible,
    session::SessionReader,
    settings::Settings,
    workspace::{FetchScope, RepoSection, SyncOutcome, Workspace},
};

use super::{brought::require_remote, onward::Onward, open::OpenSessions};
use crate::{gardening::watch_signals, ui::Ui};

/// Fetches sessions from the configured remote of this repository; or, for a session that is not known here, from the
/// remote that it was cloned from. An unreachable remote causes a warning.
pub(super) fn fetch(
    opened: &mut OpenSessions,
    (is_known, onward): (bool, &Onward),
    ui: &mut Ui,
) -> Result<(), Failure> {
    let settings = Settings::load(&opened.repository, &opened.config)?;
    let workspace = Workspace::load(&opened.repository, &settings, &watch_signals())?;
    let mut main = workspace.main().clone();
    if main.remote.is_none() && !is_known {
        main.remote = origin(opened)?;
    }
    if main.remote.is_none() {
        return Ok(());
    }
    require_remote(opened, (&workspace, &main), onward, ui)?;
    take_over(opened, (&workspace, &main), ui)?;
    opened.session_list = SessionReader::new(&opened.repository).list()?;
    Ok(())
}

/// The remote that a clone has by default.
fn origin(opened: &OpenSessions) -> Result<Option<String>, Failure> {
    let remotes = opened.repository.list_remotes()?;
    Ok(match remotes.as_slice() {
        [only] => Some(only.clone()),
        several => several.iter().find(|name| *name == "origin").cloned(),
    })
}

fn take_over(
    opened: &OpenSessions,
    (workspace, main): (&Workspace, &RepoSection),
    ui: &mut Ui,
) -> Result<(), Failure> {
    let repository = &opened.repository;
    match workspace.refresh(repository, main, &FetchScope::Everything)? {
        SyncOutcome::Offline { why, trouble } => {
            ui.warn(&format!("offline: could not ask the remote for sessions ({})", visible(&why)));
            trouble.hint().iter().for_each(|hint| ui.hint(hint));
        }
        SyncOutcome::Fetched { remote } | SyncOutcome::Cloned { remote } => {
            let taken = workspace.adopt(repository, main)?;
            if !taken.is_empty() {
                ui.note(&format!("fetched {} session refs from {}", taken.len(), shown_url(&remote)));
                let branches: Vec<&str> =
                    taken.iter().filter_map(|name| name.strip_prefix("refs/heads/")).collect();
                if !branches.is_empty() {
                    let branches = visible(&branches.join(", "));
                    ui.note(&format!("these branches came from the remote: {branches}"));
                }
            }
        }
        SyncOutcome::Local => {}
    }
    Ok(())
}
