//! Sessions of other clones: they are fetched before one is resumed, and the branches of completed ones follow here.

use arborist_core::{
    failure::Failure,
    git::{FastForward, Repository, shown_url},
    message::visible,
    name::BranchName,
    session::{Driver, SessionReader, SessionState, StoredRecord},
    workspace::{FetchScope, RepoSection, SyncOutcome, Workspace},
    worktree::SESSION_REASON,
};

use super::{
    approvals::require_remote, open::OpenSessions, resume_options::ContinueArgs, session_worktree::Follow,
};
use crate::{gardening::watch_signals, ui::Ui};

/// Fetches sessions from the configured remote of this repository; or, for a session that is not known here, from the
/// remote that it was cloned from. An unreachable remote causes a warning.
pub(super) fn fetch(
    opened: &mut OpenSessions,
    is_known: bool,
    continue_args: &ContinueArgs,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let workspace = opened.workspace(&watch_signals())?;
    let mut main = workspace.main().clone();
    if main.remote.is_none() && !is_known {
        main.remote = origin(opened)?;
    }
    if main.remote.is_none() {
        return Ok(());
    }
    require_remote(opened, &workspace, &main, continue_args, ui)?;
    take_over(opened, &workspace, &main, ui)?;
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
    workspace: &Workspace,
    main: &RepoSection,
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

/// Brings the branches of completed sessions to where their records are: of the session `id`, or else of all. Only
/// branches that were created for a session and that still exist here are moved. Returns whether one was.
pub(super) fn follow(
    opened: &OpenSessions,
    id: Option<&str>,
    continue_args: &ContinueArgs,
    ui: &mut Ui,
) -> Result<bool, Failure> {
    let workspace = opened.workspace(&watch_signals())?;
    let selected: Vec<&StoredRecord> = match id {
        Some(id) => vec![opened.session_list.require(id)?],
        None => opened.session_list.sessions.iter().collect(),
    };
    let mut has_moved = false;
    for stored in selected {
        if !is_behind(opened, &workspace, stored)? {
            continue;
        }
        let record = &stored.record;
        Follow::find(&opened.repository, record)?.go(ui)?;
        ui.note(&format!("session '{}' was completed elsewhere", record.session));
        for section in workspace.sections.iter().filter(|section| !section.is_main) {
            follow_in(opened, &workspace, section, stored, continue_args, ui)?;
        }
        has_moved = true;
    }
    Ok(has_moved)
}

/// Whether a session is complete and the branch that was created for it is behind its records here.
fn is_behind(opened: &OpenSessions, workspace: &Workspace, stored: &StoredRecord) -> Result<bool, Failure> {
    let (repository, context) = (&opened.repository, &stored.record.context);
    let is_own = workspace.main().is_session_branch(&context.branch, &stored.record.session);
    let is_complete = context.driver == Driver::Run && opened.state_of(stored) == SessionState::Complete;
    let Some(here) = repository.find_branch(&context.branch)?.filter(|_| is_own && is_complete) else {
        return Ok(false);
    };
    let is_known = repository.find_commits(&[context.tip])?.iter().all(Option::is_some);
    Ok(is_known && here != context.tip && repository.is_ancestor(here, context.tip)?)
}

/// Moves the session's branch in another repository to where its records say, after fetching that repository.
fn follow_in(
    opened: &OpenSessions,
    workspace: &Workspace,
    section: &RepoSection,
    stored: &StoredRecord,
    continue_args: &ContinueArgs,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let Some(repository) = workspace.open(section)?.filter(|_| section.remote.is_some()) else {
        return Ok(());
    };
    let Some((branch, here)) = section.find_session_branch(&repository, &stored.record.session)? else {
        return Ok(());
    };
    require_remote(opened, workspace, section, continue_args, ui)?;
    workspace.refresh(&repository, section, &FetchScope::Everything)?;
    let Some(there) = workspace.find_seen(&repository, section, &branch.to_ref())? else {
        return Ok(());
    };
    if here == there || !repository.is_ancestor(here, there)? {
        return Ok(());
    }
    match repository.fast_forward_branch(&branch, here, there, SESSION_REASON)? {
        FastForward::Done => {
            ui.note(&format!(
                "updated '{branch}' to {} in '{}', as at its remote",
                there.short(),
                section.name
            ));
        }
        FastForward::Refused(why) => warn_behind(&repository, section, &branch, &why, ui),
        FastForward::BranchChanged => {
            warn_behind(&repository, section, &branch, "another process is moving it", ui);
        }
    }
    Ok(())
}

fn warn_behind(repository: &Repository, section: &RepoSection, branch: &BranchName, why: &str, ui: &mut Ui) {
    ui.warn(&format!(
        "'{branch}' is behind its remote in '{}', and could not be updated: {why}",
        section.name
    ));
    let place = repository.checkouts_of(branch).ok().and_then(|mut places| places.pop());
    let place = place.unwrap_or_else(|| section.path.clone());
    ui.hint(&format!("inspect it, then run 'git arborist session resume' again: {}", place.display()));
}
