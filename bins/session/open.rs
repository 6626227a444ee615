//! Opens the repository and its sessions, for all verbs.

use std::path::Path;

use arborist_core::{
    failure::Failure,
    git::{Config, Repository},
    session::{SessionList, SessionReader, SessionState, StoredRecord},
};
use clap::Args;

use crate::ui::Ui;

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

    pub(super) fn standing(&self, stored: &StoredRecord) -> SessionState {
        self.session_list.standing(&self.repository, stored)
    }
}

pub(super) fn open(ui: &mut Ui) -> Result<OpenSessions, Failure> {
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    let config = config.finish()?;
    ui.configure(&config);
    let session_list = SessionReader::new(&repository).list()?;
    Ok(OpenSessions { repository, config, session_list })
}
