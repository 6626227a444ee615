//! Opens the plan's repository, the others and their sessions, for all verbs.

use arborist_core::{
    failure::Failure,
    gardener::GardenerError,
    git::Repository,
    history::{CommitSource, HistoryError, Run, RunScope},
    name::SessionId,
    pipeline::PipelineError,
    settings::Settings,
    workspace::{PushSet, RepoSection, Workspace, WorkspaceError},
};
use clap::Args;

use crate::{approval, gardening::watch_signals, ui::Ui};

/// Which repositories are meant.
#[derive(Debug, Args)]
pub(super) struct ChoiceArgs {
    /// Only these repositories
    #[arg(long = "repo", value_name = "NAME")]
    repos: Vec<String>,
}

/// Whether the user has seen what files of the repository want.
#[derive(Debug, Args)]
pub(super) struct ConsentArgs {
    /// Approve the remotes and paths in files of the repository
    #[arg(long)]
    yes: bool,
}

/// How remotes are met, whichever way the exchange goes.
#[derive(Debug, Args)]
pub(super) struct ExchangeArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) choice: ChoiceArgs,
    #[command(flatten)]
    pub(super) consent: ConsentArgs,
}

/// A workspace, seen from the plan's repository.
pub(super) struct OpenWorkspace {
    repository: Repository,
    pub(super) workspace: Workspace,
    /// The default session: that of the checked out run, or else the newest.
    pub(super) session: Option<SessionId>,
    /// All sessions.
    pub(super) push_set: PushSet,
}

pub(super) fn open(ui: &mut Ui) -> Result<OpenWorkspace, Failure> {
    let (repository, config) = crate::entry::open_repository(ui)?;
    if repository.worktree.is_none() {
        return Err(GardenerError::Bare.into());
    }
    let settings = Settings::load(&repository, &config)?;
    let workspace = Workspace::load(&repository, &settings, &watch_signals())?;
    let recorded = workspace.sessions(&repository)?;
    let run = find_run(&repository)?;
    let session = run.clone().or_else(|| recorded.first().cloned());
    let mut sessions = recorded;
    sessions.extend(run.filter(|run| !sessions.contains(run)));
    let transcripts = settings.session.transcripts;
    Ok(OpenWorkspace { repository, workspace, session, push_set: PushSet { sessions, transcripts } })
}

/// The session of the checked out run.
fn find_run(repository: &Repository) -> Result<Option<SessionId>, Failure> {
    if repository.head.branch.is_none() {
        return Ok(None);
    }
    let scope = RunScope::resolve(repository, None)?;
    match Run::scan(repository, scope, CommitSource::Cached) {
        Ok(run) => Ok(run.start.map(|start| start.session)),
        // Its start may be missing in a shallow clone; recorded sessions are known anyway.
        Err(HistoryError::Shallow { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl OpenWorkspace {
    /// The selected repositories, or all.
    pub(super) fn chosen(&self, args: &ChoiceArgs) -> Result<Vec<&RepoSection>, WorkspaceError> {
        if args.repos.is_empty() {
            return Ok(self.workspace.sections.iter().collect());
        }
        let find = |name: &String| self.workspace.find(name).ok_or_else(|| self.workspace.unknown(name));
        let mut chosen: Vec<&RepoSection> = Vec::new();
        for name in &args.repos {
            let section = find(name)?;
            // A repository that is named twice is used once.
            if !chosen.iter().any(|known| known.name == section.name) {
                chosen.push(section);
            }
        }
        Ok(chosen)
    }

    /// Fails if the user has asked to stop, to distinguish that from an unreachable remote.
    pub(super) fn require_unstopped(&self) -> Result<(), PipelineError> {
        let cancel = &self.workspace.network.cancel;
        if cancel.is_cancelled() { Err(PipelineError::stopped(cancel)) } else { Ok(()) }
    }

    /// Refuses what the user has not approved.
    pub(super) fn require_consent(&self, args: &ConsentArgs, ui: &mut Ui) -> Result<(), Failure> {
        Ok(approval::require(
            &self.repository,
            &self.workspace.required_approvals(),
            approval::consent(args.yes),
            ui,
        )?)
    }
}
