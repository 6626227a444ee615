//! Where a session continues: the worktree with its branch, and the run that is executed there.

use anyhow::Context;
use arborist_core::{
    failure::Failure,
    name::{BranchName, SessionId},
    process::{Cancel, Program},
    record::Unfinished,
    session::Record,
    settings::Settings,
    workspace::Workspace,
    worktree::{Pool, SessionWorktree, WorktreeOptions},
};

use super::{
    onward::{Onward, ResumeOptions},
    open::OpenSessions,
};
use crate::{approval, entry::Outcome, ui::Ui};

/// The worktree that has the branch checked out, or a new one.
pub(super) fn session_worktree(
    opened: &OpenSessions,
    branch: &BranchName,
    session: &SessionId,
    onward: &Onward,
    ui: &mut Ui,
) -> Result<SessionWorktree, Failure> {
    let settings = Settings::load(&opened.repository, &opened.config)?;
    let options = WorktreeOptions::new(&settings, &Cancel::new());
    let commands = options.foreign_commands();
    let pool = Pool::open(&opened.repository, branch, options)?;
    if let Some(session_worktree) = pool.find_session_worktree()? {
        return Ok(session_worktree);
    }
    approval::require(&opened.repository, &commands, onward.consent(), ui)?;
    let session_worktree = pool.session_worktree(session)?;
    session_worktree.notes.iter().for_each(|note| ui.note(&note.to_string()));
    Ok(session_worktree)
}

/// Whether a branch was created for its session. Otherwise it is the user's, who may want it back.
pub(super) fn is_own_branch(opened: &OpenSessions, record: &Record) -> Result<bool, Failure> {
    let settings = Settings::load(&opened.repository, &opened.config)?;
    let workspace = Workspace::load(&opened.repository, &settings, &Cancel::new())?;
    Ok(workspace.main().is_session_branch(&record.context.branch, &record.session))
}

/// Executes the run that continues. If the checkout has uncommitted changes that are not from a killed run, tasks work
/// in their own worktrees.
pub(super) fn go_on(
    session_worktree: &SessionWorktree,
    branch: &BranchName,
    mut wishes: ResumeOptions<'_>,
) -> Outcome {
    let is_killed = !Unfinished::find_all(&session_worktree.repository, branch)?.is_empty();
    if !is_killed && !session_worktree.repository.is_clean()? {
        wishes.switch("isolate");
    }
    let beside = std::env::current_exe().context("could not find the program itself")?;
    let program = Program::new(beside.with_file_name("git-arborist-gardener"))
        .dir(&session_worktree.path)
        .args(wishes.into_options());
    let local = ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"];
    // The session has its branch, whatever is configured for new ones.
    let program = program.env("ARBORIST_SESSION_BRANCH", "false");
    let error = local.iter().fold(program, Program::env_remove).exec();
    Err(Failure::from(error))
}
