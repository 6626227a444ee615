//! The options of worktrees, from the settings.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    name::{RepoName, SessionId},
    pipeline::ConfigGuard,
    process::Cancel,
    sandbox::Sandbox,
    settings::{Settings, WorktreeSettings},
};

/// The default maximal number of worktrees, unless a run has more jobs.
const MAX_WORKTREES: usize = 16;
/// From this number of worktrees on, a run warns.
const CROWD: usize = 12;

/// How worktrees are created, filled and recycled.
#[derive(Debug, Clone)]
pub struct WorktreeOptions {
    pub(super) settings: WorktreeSettings,
    /// Patterns of ignored files that stay in a gate's worktree for the next gate.
    pub(super) merge_keep: Vec<String>,
    /// The time limit of each command that sets up a new worktree.
    pub(super) setup_time: Duration,
    /// How many lanes a run wants.
    wanted_lanes: usize,
    /// The configured number from which on a run warns.
    configured_warning: Option<usize>,
    /// The number of free bytes below which a run warns.
    pub(super) warn_free: u64,
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
    /// The settings of the repository's files that need approval.
    tracked_lines: BTreeSet<String>,
}

impl WorktreeOptions {
    /// Reads the settings.
    #[must_use]
    pub fn new(settings: &Settings, cancel: &Cancel) -> Self {
        Self {
            settings: settings.worktree.clone(),
            merge_keep: settings.merge.keep.clone(),
            setup_time: settings.timeouts.setup,
            wanted_lanes: 0,
            configured_warning: settings.cleanup.warn_worktrees,
            warn_free: settings.cleanup.warn_free.saturating_mul(1_000_000),
            repo: None,
            session: None,
            cancel: cancel.clone(),
            config_guard: ConfigGuard::default(),
            sandbox: Sandbox::new(settings),
            tracked_lines: settings.tracked_lines(),
        }
    }

    /// Sets the number of lanes that a run wants.
    pub fn want_lanes(&mut self, count: usize) {
        self.wanted_lanes = count;
    }

    /// How often unfinished work is saved.
    #[must_use]
    pub fn save_every(&self) -> Duration {
        self.settings.save_every.max(Duration::from_secs(1))
    }

    /// Commands that set up a new worktree.
    pub(super) fn setup(&self) -> &[String] {
        self.settings.setup.as_ref().map_or(&[], |setup| &setup.value)
    }

    /// How many bytes must be free before a worktree is created.
    pub(super) fn min_free(&self) -> u64 {
        self.settings.min_free.saturating_mul(1_000_000)
    }

    /// The maximal number of worktrees. If none is configured, a run may have a lane for each of its jobs.
    pub(super) fn max(&self) -> usize {
        self.settings.max.unwrap_or(MAX_WORKTREES.max(self.wanted_lanes))
    }

    /// The number of worktrees from which on a run warns; 0 for never. The run's own lanes do not cause a warning.
    pub(super) fn warn_worktrees(&self) -> usize {
        self.configured_warning.unwrap_or(CROWD.max(self.wanted_lanes.saturating_add(1)))
    }

    /// The commands and settings that come from files of the repository, for [`consent::require`](crate::consent::require).
    #[must_use]
    pub fn commands_to_approve(&self) -> BTreeSet<String> {
        let tracked = self.settings.setup.as_ref().filter(|setup| setup.is_tracked());
        let setup = tracked.into_iter().flat_map(|setup| &setup.value);
        setup.map(|command| format!("setup: {command}")).chain(self.tracked_lines.iter().cloned()).collect()
    }
}
