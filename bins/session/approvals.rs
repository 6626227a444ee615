//! Approval of everything that a continued session may run and that others have written. It is shown as a whole before
//! anything runs.

use std::collections::BTreeSet;

use arborist_core::{
    consent::{self, Consent},
    failure::Failure,
    message::PlanRef,
    name::{BranchName, Oid},
    plan::Plan,
    process::Cancel,
    run::{find_plan, require_given},
    safe_files,
    settings::Settings,
    workspace::{RepoSection, Workspace},
    worktree::WorktreeOptions,
};

use super::{
    open::OpenSessions,
    resume_options::{ContinueArgs, ResumeOptions},
};
use crate::{approval, ui::Ui};

/// Refuses to contact a remote that the user has not approved. Everything else that is known at this point is shown
/// with it, so that few approvals are needed; what the session itself contains is known only after fetching.
pub(super) fn require_remote(
    opened: &OpenSessions,
    workspace: &Workspace,
    main: &RepoSection,
    continue_args: &ContinueArgs,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let mut approvals: BTreeSet<String> = main.required_approval().into_iter().collect();
    let consent = continue_args.consent();
    if consent == Consent::None && !consent::unseen(&opened.repository.common_dir, &approvals).is_empty() {
        approvals.extend(in_checkout(opened, workspace, continue_args));
    }
    Ok(approval::require(&opened.repository, &approvals, consent, ui)?)
}

/// Commands from files of the checkout. Files that cannot be read are reported later, if they matter.
fn in_checkout(
    opened: &OpenSessions,
    workspace: &Workspace,
    continue_args: &ContinueArgs,
) -> BTreeSet<String> {
    let mut commands = workspace.required_approvals();
    commands.extend(workspace.tool_commands_to_approve());
    let repository = &opened.repository;
    let more = || -> Option<BTreeSet<String>> {
        let settings = Settings::load_for_run(repository, &opened.config).ok()?;
        // It is not known yet whether the session has lanes.
        let mut resume_options = continue_args.alone();
        resume_options.switch("isolate");
        let request = resume_options.read().ok()?;
        let path = find_plan(repository, &request, &settings)?;
        let bytes = safe_files::read_beneath(repository.top(), &path).ok()?;
        request.commands_to_approve(&settings, workspace, &Plan::read(&path, &bytes).ok()?).ok()
    };
    commands.extend(more().unwrap_or_default());
    commands
}

/// Refuses everything unapproved that a session may run: from the configuration and the plan in `commit`, from its
/// records, and from the checkout if a worktree has to be created for its branch.
pub(super) fn require(
    opened: &OpenSessions,
    resume_options: &ResumeOptions<'_>,
    commit: Oid,
    plan: Option<&PlanRef>,
    branch: Option<&BranchName>,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let repository = &opened.repository;
    let settings = Settings::load_at(repository, &opened.config, commit)?;
    let workspace = Workspace::load(repository, &settings, &Cancel::new())?;
    require_given(repository, resume_options.test.as_ref())?;
    let mut commands = resume_options.approvals.clone();
    match Plan::read_frozen(repository, plan)?.transpose()? {
        Some(plan) => {
            commands.extend(resume_options.read()?.commands_to_approve(&settings, &workspace, &plan)?);
        }
        None => commands.extend(workspace.required_approvals()),
    }
    let is_housed = match branch {
        Some(branch) => {
            repository.list_worktrees()?.iter().any(|found| found.branch.as_ref() == Some(branch))
        }
        None => false,
    };
    if !is_housed {
        let here = Settings::load(repository, &opened.config)?;
        commands.extend(WorktreeOptions::new(&here, &Cancel::new()).commands_to_approve());
    }
    Ok(approval::require(repository, &commands, resume_options.consent(), ui)?)
}
