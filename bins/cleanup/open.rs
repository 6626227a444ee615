//! Opens the repository, its settings and its worktrees, for all verbs.

use std::path::Path;

use arborist_core::{
    failure::Failure,
    git::{Config, Repository},
    name::BranchName,
    process::Cancel,
    settings::Settings,
    worktree::{Pool, WorktreeError, WorktreeOptions},
};

use crate::ui::Ui;

/// A repository with its worktrees, of whatever run.
pub(super) struct OpenCleanup {
    pub(super) repository: Repository,
    pub(super) settings: Settings,
    pub(super) pool: Option<Pool>,
}

pub(super) fn open(ui: &mut Ui) -> Result<OpenCleanup, Failure> {
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    let config = config.finish()?;
    ui.configure(&config);
    let settings = Settings::load(&repository, &config)?;
    let pool = pool(&repository, &settings)?;
    Ok(OpenCleanup { repository, settings, pool })
}

/// The pool of worktrees. The run does not matter here, so any branch name will do. A bare repository may have none.
fn pool(repository: &Repository, settings: &Settings) -> Result<Option<Pool>, Failure> {
    let any: Option<BranchName> = repository.head.branch.clone().or_else(|| "main".parse().ok());
    let Some(any) = any else { return Ok(None) };
    let options = WorktreeOptions::new(settings, &Cancel::new());
    match Pool::open(repository, &any, options) {
        Ok(pool) => Ok(Some(pool)),
        Err(WorktreeError::Bare) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
