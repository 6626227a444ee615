//! Opens the repository, the run and its worktrees, for all verbs.

use arborist_core::{
    failure::Failure,
    git::Repository,
    history::RunScope,
    name::{BranchName, Oid},
    process::Cancel,
    run::CLEAN_UP,
    settings::Settings,
    worktree::{Pool, WorktreeError, WorktreeOptions},
};
use clap::Args;

use crate::{scope, ui::Ui};

/// Which run is meant.
#[derive(Debug, Args)]
pub(super) struct WorktreeScopeArgs {
    /// Use the run that commits to this branch [default: the current branch]
    #[arg(long, value_name = "BRANCH")]
    scope: Option<BranchName>,
}

/// Warns about too many worktrees, or too little disk space.
pub(super) fn warn_of_many_worktrees(opened: &OpenWorktrees, ui: &mut Ui) {
    for (path, why) in opened.pool.find_failed_deletions() {
        ui.warn(&format!("the trash '{}' could not be deleted: {why}", path.display()));
    }
    let words = opened.pool.find_warnings();
    words.iter().for_each(|words| ui.warn(words));
    if !words.is_empty() {
        ui.hint(CLEAN_UP);
    }
}

/// A repository with the worktrees of a run.
pub(super) struct OpenWorktrees {
    pub(super) repository: Repository,
    pub(super) settings: Settings,
    pub(super) options: WorktreeOptions,
    pub(super) scope: RunScope,
    pub(super) pool: Pool,
}

impl OpenWorktrees {
    /// The commit of the run's branch.
    pub(super) fn require_tip(&self) -> Result<Oid, WorktreeError> {
        self.scope.tip.ok_or_else(|| WorktreeError::Unborn(self.scope.branch.clone()))
    }
}

pub(super) fn open(args: &WorktreeScopeArgs, ui: &mut Ui) -> Result<OpenWorktrees, Failure> {
    open_until(args, ui, &Cancel::new())
}

/// Like [`open`], with a token that cancels long operations.
pub(super) fn open_until(
    args: &WorktreeScopeArgs,
    ui: &mut Ui,
    cancel: &Cancel,
) -> Result<OpenWorktrees, Failure> {
    let (repository, _, settings) = crate::entry::open_with_settings(ui)?;
    let scope = scope::resolve(&repository, args.scope.as_ref())?;
    if args.scope.is_some() {
        scope::require(&repository, &scope)?;
    }
    let options = WorktreeOptions::new(&settings, cancel);
    let pool = Pool::open(&repository, &scope.branch, options.clone())?;
    Ok(OpenWorktrees { repository, settings, options, scope, pool })
}
