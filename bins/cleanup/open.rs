//! Opens the repository, its settings and its worktrees, for all verbs, and the other repositories of its workspace.

use std::collections::BTreeSet;

use arborist_core::{
    consent::{Consent, unseen},
    failure::{Exit, Failure},
    git::{Config, Repository},
    name::BranchName,
    process::Cancel,
    settings::Settings,
    workspace::{RepoSection, Workspace},
    worktree::{Pool, WorktreeError, WorktreeOptions},
};

use crate::{approval::default_consent, ui::Ui};

/// A repository with its worktrees, of whatever run.
pub(super) struct OpenCleanup {
    pub(super) repository: Repository,
    pub(super) settings: Settings,
    pub(super) pool: Option<Pool>,
}

/// All repositories of the workspace that are here.
pub(super) struct OpenRepositories {
    /// Each with its settings in the workspace. The current one comes first.
    pub(super) all: Vec<(RepoSection, OpenCleanup)>,
    /// [`Exit::No`] if one could not be opened.
    pub(super) exit: Exit,
}

pub(super) fn open(ui: &mut Ui) -> Result<OpenCleanup, Failure> {
    let (repository, config) = crate::entry::open_repository(ui)?;
    OpenCleanup::of(repository, &config)
}

/// Opens the current repository and the others of its workspace. One that cannot be used does not prevent the cleanup of
/// the others.
pub(super) fn open_all(ui: &mut Ui) -> Result<OpenRepositories, Failure> {
    let here = open(ui)?;
    let workspace = Workspace::load(&here.repository, &here.settings, &Cancel::new())?;
    let common_dir = here.repository.common_dir.clone();
    let mut opened = OpenRepositories { all: vec![(workspace.main().clone(), here)], exit: Exit::Done };
    for section in workspace.sections.iter().filter(|section| !section.is_main) {
        let unapproved: BTreeSet<String> = section.required_approval().into_iter().collect();
        if default_consent() == Consent::None && !unseen(&common_dir, &unapproved).is_empty() {
            ui.warn(&format!("'{}' is not cleaned up: it has not been approved", section.name));
            ui.hint("look at .arborist/config.toml, then approve it with: git arborist workspace sync --yes");
            continue;
        }
        match open_other(&workspace, section) {
            Ok(other) => opened.all.extend(other.map(|other| (section.clone(), other))),
            Err(failure) => {
                ui.warn(&format!("'{}' is not cleaned up", section.name));
                ui.fail(&failure);
                opened.exit = Exit::No;
            }
        }
    }
    Ok(opened)
}

/// Opens another repository of the workspace. `None` if it was not cloned.
fn open_other(workspace: &Workspace, section: &RepoSection) -> Result<Option<OpenCleanup>, Failure> {
    let Some(repository) = workspace.open(section)? else { return Ok(None) };
    let config = Config::load(&repository)?;
    OpenCleanup::of(repository, &config).map(Some)
}

impl OpenCleanup {
    fn of(repository: Repository, config: &Config) -> Result<Self, Failure> {
        let settings = Settings::load(&repository, config)?;
        let pool = pool(&repository, &settings)?;
        Ok(Self { repository, settings, pool })
    }
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
