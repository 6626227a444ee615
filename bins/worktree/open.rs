//! What every verb begins with: the repository, the run, and its worktrees.

use std::path::Path;

use arborist_core::{
    failure::Failure,
    git::{Config, Repository},
    history::Scope,
    name::{BranchName, Oid},
    process::Cancel,
    settings::Settings,
    worktree::{Pool, WorktreeError, WorktreeOptions},
};
use clap::Args;

use crate::{gardening::CLEAN_UP, scope, ui::Ui};

/// Which run is meant.
#[derive(Debug, Args)]
pub(super) struct ScopeArgs {
    /// The run of this branch, not of the one that is checked out
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
}

/// Says when worktrees or what is left of the disk call for cleaning up.
pub(super) fn tell_of_crowding(opened: &Opened, ui: &mut Ui) {
    let words = opened.pool.find_crowding();
    words.iter().for_each(|words| ui.warn(words));
    if !words.is_empty() {
        ui.hint(CLEAN_UP);
    }
}

/// A repository with the worktrees of a run.
pub(super) struct Opened {
    pub(super) repository: Repository,
    pub(super) settings: Settings,
    pub(super) options: WorktreeOptions,
    pub(super) scope: Scope,
    pub(super) pool: Pool,
}

impl Opened {
    /// Where the run's branch is.
    pub(super) fn require_tip(&self) -> Result<Oid, WorktreeError> {
        self.scope.tip.ok_or_else(|| WorktreeError::Unborn(self.scope.branch.clone()))
    }
}

pub(super) fn open(args: &ScopeArgs, ui: &mut Ui) -> Result<Opened, Failure> {
    open_until(args, ui, &Cancel::new())
}

/// The same with a wish to stop for what takes long.
pub(super) fn open_until(args: &ScopeArgs, ui: &mut Ui, cancel: &Cancel) -> Result<Opened, Failure> {
    let config = Config::start(Path::new("."))?;
    let repository = Repository::discover()?;
    let config = config.finish()?;
    ui.configure(&config);
    let settings = Settings::load(&repository, &config)?;
    let scope = Scope::resolve(&repository, args.scope.as_ref())?;
    if args.scope.is_some() {
        scope::require(&repository, &scope)?;
    }
    let options = WorktreeOptions::new(&settings, cancel);
    let pool = Pool::open(&repository, &scope.branch, options.clone())?;
    Ok(Opened { repository, settings, options, scope, pool })
}
