//! Opens the repository and its sessions, for all verbs.

use arborist_core::{
    failure::Failure,
    git::{Config, Repository},
    history::{CommitSource, Run, RunScope},
    name::{Oid, WorkerName},
    process::Cancel,
    run::SharedWork,
    session::{SessionList, SessionReader, SessionState, StoredRecord},
    settings::Settings,
    workspace::Workspace,
};
use clap::Args;

use crate::{clock, ui::Ui};

/// How to answer.
#[derive(Debug, Args)]
pub(super) struct JsonArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

/// Which session is meant.
#[derive(Debug, Args)]
pub(super) struct IdArgs {
    /// The session: its id, or a unique prefix
    #[arg(value_name = "SESSION")]
    pub(super) id: String,
}

/// Whose records of a session are meant.
#[derive(Debug, Args)]
pub(super) struct WorkerArgs {
    /// The records of this worker, as 'git arborist state --remote' names it
    #[arg(long, value_name = "WORKER")]
    worker: Option<WorkerName>,
    /// The remote through which the workers share the plan
    #[arg(long, value_name = "NAME", default_value = "origin", requires = "worker")]
    remote: String,
}

impl WorkerArgs {
    /// The newest record of the session, here or from the remote.
    pub(super) fn newest(&self, opened: &OpenSessions, id: &IdArgs) -> Result<StoredRecord, Failure> {
        let Some(worker) = &self.worker else { return opened.require(id).cloned() };
        let settings = Settings::load(&opened.repository, &opened.config)?;
        let shared = SharedWork::find(&opened.repository, &settings, &self.remote, clock::now)?;
        // The session need not be here.
        let session = match opened.require(id) {
            Ok(known) => known.record.session.clone(),
            Err(unknown) => id.id.parse().map_err(|_| unknown)?,
        };
        shared.find_record(&session, worker)
    }
}

/// A repository and its sessions.
pub(super) struct OpenSessions {
    pub(super) repository: Repository,
    pub(super) config: Config,
    pub(super) session_list: SessionList,
}

impl OpenSessions {
    pub(super) fn session_reader(&self) -> SessionReader<'_> {
        SessionReader::new(&self.repository)
    }

    pub(super) fn require(&self, args: &IdArgs) -> Result<&StoredRecord, Failure> {
        Ok(self.session_list.require(&args.id)?)
    }

    /// The workspace of the repository. `cancel` ends what waits for remotes.
    pub(super) fn workspace(&self, cancel: &Cancel) -> Result<Workspace, Failure> {
        let settings = Settings::load(&self.repository, &self.config)?;
        Ok(Workspace::load(&self.repository, &settings, cancel)?)
    }

    /// The run of a session as it was at a commit of its branch.
    pub(super) fn run_at(&self, newest: &StoredRecord, tip: Oid) -> Result<Run, Failure> {
        let scope = RunScope { branch: newest.record.context.branch.clone(), tip: Some(tip) };
        Ok(Run::scan(&self.repository, scope, CommitSource::Fresh)?)
    }

    pub(super) fn state_of(&self, stored: &StoredRecord) -> SessionState {
        self.session_list.state_of(&self.repository, stored)
    }
}

pub(super) fn open(ui: &mut Ui) -> Result<OpenSessions, Failure> {
    let (repository, config) = crate::entry::open_repository(ui)?;
    let session_list = SessionReader::new(&repository).list()?;
    Ok(OpenSessions { repository, config, session_list })
}
