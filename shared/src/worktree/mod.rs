//! Worktrees for tasks. Each task has its own worktree and branch, so that tasks do not see each other's files and the
//! user's checkout is not touched.
//!
//! Git alone tells which task has a worktree: it is locked with our reason, and the branch that is checked out names
//! the task. A lane with a detached `HEAD` is free. `HEAD` moves last, so a worktree that is only half created or half
//! filled is free too. File locks tell whether a process is at work; no other state is stored.

mod claim;
mod copied_files;
mod error;
mod fill;
mod half_made;
mod kept_files;
mod lease;
mod options;
mod orphans;
mod paths;
mod remove;
mod repair;
mod saver;
mod scratch;
mod session_worktree;
mod set_up;
mod submodules;
mod survey;
mod sync;
mod trash;

pub use claim::{BaseReason, BranchBase, LeaseStart};
pub use copied_files::take_uncopied_files;
pub use error::WorktreeError;
pub use lease::Lease;
pub use options::WorktreeOptions;
pub use remove::UncommittedPolicy;
pub use repair::RepairedWorktrees;
pub use saver::{Remembered, RestoredWorktree, Saver, Saving, Signals};
pub use scratch::{GRACE, Scratch};
pub use session_worktree::{GivenBack, SESSION_REASON, SessionWorktree};
pub use set_up::run_variables;
pub use survey::{RemainsKind, WorktreeKind, WorktreeRemains, WorktreeStatusRow};
pub use sync::{SyncCooldown, Synced};
pub use trash::{TrashState, delete_in_background};

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use copied_files::CopiedFiles;
use fill::Freed;
use paths::Places;

use crate::{
    git::{Repository, Worktree},
    name::BranchName,
    process::{Cancel, FileLock},
};

/// The lock reason of our worktrees.
const REASON: &str = "arborist";
/// How long to wait for another process that is creating or removing worktrees.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// The worktrees of one repository, for the run of one branch.
#[derive(Debug)]
pub struct Pool {
    repository: Repository,
    run: BranchName,
    options: WorktreeOptions,
    places: Places,
    freed: Freed,
    copied: Arc<CopiedFiles>,
}

impl Pool {
    /// Finds out where the worktrees are or would be. Creates nothing. The first call in a process also determines
    /// which untracked files worktrees get and keep, so call it before a child process runs.
    pub fn open(
        repository: &Repository,
        run: &BranchName,
        options: WorktreeOptions,
    ) -> Result<Self, WorktreeError> {
        let places = Places::new(repository, &find_main(repository)?, &options);
        let freed = Freed::default();
        let copied = CopiedFiles::list(repository, &places.main, &options.settings.copy)?;
        let pool = Self { repository: repository.clone(), run: run.clone(), options, places, freed, copied };
        pool.trust_kept_files()?;
        Ok(pool)
    }

    /// The run's branch.
    #[must_use]
    pub fn run(&self) -> &BranchName {
        &self.run
    }

    /// The maximal number of worktrees.
    #[must_use]
    pub fn max(&self) -> usize {
        self.options.max()
    }

    /// Takes the lock for creating and removing worktrees, and repairs what a killed process left half created.
    pub fn lock_registry(&self) -> Result<FileLock, WorktreeError> {
        let path = self.repository.lock_folder().join("worktrees");
        let registry_lock =
            FileLock::take_within(&path, "git arborist worktree", LOCK_TIMEOUT, &Cancel::new());
        let registry_lock = registry_lock.map_err(WorktreeError::Registry)?;
        self.repository.remove_stale_locks(&registry_lock)?;
        self.repair_half_made()?;
        Ok(registry_lock)
    }
}

/// The top of the main worktree. A bare repository has none, but may have linked worktrees.
fn find_main(repository: &Repository) -> Result<PathBuf, WorktreeError> {
    if let Some(top) = repository.worktree.as_ref().filter(|_| repository.git_dir == repository.common_dir) {
        return Ok(top.clone());
    }
    let main = repository.list_worktrees()?.into_iter().next();
    let is_alone = repository.git_dir == repository.common_dir;
    match main {
        Some(main) if !(main.is_bare && is_alone) => Ok(main.path),
        _ => Err(WorktreeError::Bare),
    }
}

/// Whether this worktree is one of our lanes or task worktrees.
fn is_ours(worktree: &Worktree) -> bool {
    worktree.lock.as_deref() == Some(REASON)
}

/// A note for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeNote {
    /// The files of a worktree were saved.
    Saved {
        /// The lane, or the task that had it.
        name: String,
        /// The ref that has them.
        under: String,
    },
    /// The commits of a worktree without a branch were saved.
    SavedCommits {
        /// The worktree.
        name: String,
        /// The ref that has them.
        under: String,
    },
    /// Some submodules are not checked out.
    WithoutSubmodules {
        /// Which, and why.
        which: String,
    },
    /// Files were not copied because they have changed since the list was made.
    Changed {
        /// Which.
        paths: String,
    },
    /// Files were not copied because git would commit them.
    NotCopied {
        /// Which.
        paths: String,
    },
    /// The sandbox refused something to a set-up command that succeeded.
    Denied {
        /// The command.
        command: String,
        /// What, and how to allow it.
        words: String,
    },
}

impl fmt::Display for WorktreeNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved { name, under } => write!(f, "files in '{name}' were saved as {under}"),
            Self::SavedCommits { name, under } => {
                write!(f, "commits of '{name}' that are on no branch were saved as {under}")
            }
            Self::WithoutSubmodules { which } => {
                write!(f, "these submodules are missing in the worktree: {which}")
            }
            Self::Changed { paths } => {
                write!(
                    f,
                    "not copied to the worktree, because they were changed in the checkout after the run began: {paths}"
                )
            }
            Self::NotCopied { paths } => {
                write!(f, "not copied to the worktree, because git does not ignore them there: {paths}")
            }
            Self::Denied { command, words } => write!(f, "set-up command '{command}': {words}"),
        }
    }
}
