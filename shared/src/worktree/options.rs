//! The options of worktrees, from the settings.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    name::{RepoName, SessionId},
    pipeline::ConfigGuard,
    process::Cancel,
    sandbox::Sandbox,
    settings::{Origin, Settings},
};

/// The default maximal number of worktrees, unless a run has more jobs.
const MAX_WORKTREES: usize = 16;
/// From this number of worktrees on, a run warns.
const CROWD: usize = 12;
/// How worktrees are created, filled and recycled.
#[derive(Debug, Clone)]
pub struct WorktreeOptions {
    /// The directory of worktrees, if it is configured.
    pub(super) base: Option<String>,
    /// The configured maximal number.
    configured_max: Option<usize>,
    /// How many lanes a run wants.
    wanted_lanes: usize,
    /// How many bytes must be free before a worktree is created.
    pub(super) min_free: u64,
    /// The configured number from which on a run warns.
    configured_warning: Option<usize>,
    /// The number of free bytes below which a run warns.
    pub(super) warn_free: u64,
    /// Commands that set up a new worktree.
    pub(super) setup: Vec<String>,
    /// The time limit of each of them.
    pub(super) setup_time: Duration,
    /// Patterns of ignored files that are copied from the main checkout to a new worktree.
    pub(super) copy: Vec<String>,
    /// Patterns of tracked files that are left out (sparse checkout).
    pub(super) exclude: Vec<String>,
    /// Patterns of ignored files that stay when a lane is recycled.
    pub(super) keep: Vec<String>,
    /// Patterns of ignored files that stay in a gate's worktree for the next gate.
    pub(super) merge_keep: Vec<String>,
    /// Whether files of git LFS are fetched.
    pub(super) large_files: LargeFiles,
    /// How often unfinished work is saved.
    pub save_every: Duration,
    /// The name of the repository, if it has one.
    pub repo: Option<RepoName>,
    /// The session of the run, if there is one.
    pub session: Option<SessionId>,
    /// Cancelled when the user wants to stop.
    pub cancel: Cancel,
    /// Watches what set-up commands must not change, together with all other child processes.
    pub config_guard: ConfigGuard,
    /// Limits where set-up commands, gates and resolvers can change files.
    pub sandbox: Sandbox,
    setup_origin: Origin,
    /// The settings of the repository's files that need approval.
    tracked_lines: BTreeSet<String>,
}

/// What happens to files of git LFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LargeFiles {
    /// They are fetched, as in any checkout.
    Fetched,
    /// Their pointer files are checked out instead.
    Pointers,
}

impl WorktreeOptions {
    /// Reads the settings.
    #[must_use]
    pub fn new(settings: &Settings, cancel: &Cancel) -> Self {
        let Settings { worktree, cleanup, .. } = settings;
        let setup = worktree.setup.as_ref();
        Self {
            base: worktree.base.clone(),
            configured_max: worktree.max,
            wanted_lanes: 0,
            min_free: worktree.min_free.saturating_mul(1_000_000),
            configured_warning: cleanup.warn_worktrees,
            warn_free: cleanup.warn_free.saturating_mul(1_000_000),
            setup: setup.map(|setup| setup.value.clone()).unwrap_or_default(),
            setup_time: settings.timeouts.setup,
            copy: worktree.copy.clone(),
            exclude: worktree.exclude.clone(),
            keep: worktree.keep.clone(),
            merge_keep: settings.merge.keep.clone(),
            large_files: if worktree.lfs { LargeFiles::Fetched } else { LargeFiles::Pointers },
            save_every: worktree.save_every.max(Duration::from_secs(1)),
            repo: None,
            session: None,
            cancel: cancel.clone(),
            config_guard: ConfigGuard::default(),
            sandbox: Sandbox::new(settings),
            setup_origin: setup.map_or(Origin::User, |setup| setup.origin),
            tracked_lines: settings.tracked_lines(),
        }
    }

    /// Sets the number of lanes that a run wants.
    pub fn want_lanes(&mut self, count: usize) {
        self.wanted_lanes = count;
    }

    /// The maximal number of worktrees. If none is configured, a run may have a lane for each of its jobs.
    pub(super) fn max(&self) -> usize {
        self.configured_max.unwrap_or(MAX_WORKTREES.max(self.wanted_lanes))
    }

    /// The number of worktrees from which on a run warns; 0 for never. The run's own lanes do not cause a warning.
    pub(super) fn warn_worktrees(&self) -> usize {
        self.configured_warning.unwrap_or(CROWD.max(self.wanted_lanes.saturating_add(1)))
    }

    /// The commands and settings that come from files of the repository, for [`consent::require`](crate::consent::require).
    #[must_use]
    pub fn commands_to_approve(&self) -> BTreeSet<String> {
        let is_from_repository = self.setup_origin == Origin::Repository;
        let setup =
            self.setup.iter().filter(|_| is_from_repository).map(|command| format!("setup: {command}"));
        setup.chain(self.tracked_lines.iter().cloned()).collect()
    }
}
