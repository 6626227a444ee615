//! What was meant for worktrees, from the configuration.

use std::{collections::BTreeSet, time::Duration};

use crate::{
    name::{RepoName, SessionId},
    pipeline::ConfigGuard,
    process::Cancel,
    settings::{Origin, Settings, foreign_folders},
};

/// How many worktrees there may be unless something else is configured, or a run has more jobs.
const MAX: usize = 16;
/// Megabytes that must stay free.
const FREE: u64 = 500;
/// So many worktrees are worth a word.
const CROWD: usize = 12;
/// Megabytes that are worth a word when no more are free.
const SCARCE: u64 = 1000;
/// Seconds between two savings of unfinished work.
const SAVE: u64 = 30;
/// Seconds that one command of the set-up may take.
const SET_UP: u64 = 600;

/// How worktrees are made, filled and recycled.
#[derive(Debug, Clone)]
pub struct WorktreeOptions {
    /// Where they stand, if that was said.
    pub(super) base: Option<String>,
    /// How many there may be, if that is configured.
    configured_max: Option<usize>,
    /// How many lanes a run wants.
    wanted_lanes: usize,
    /// How many bytes must be free before one is made.
    pub(super) min_free: u64,
    /// From how many on a run warns of them, if that is configured.
    configured_warning: Option<usize>,
    /// Below how many free bytes they do.
    pub(super) warn_free: u64,
    /// Commands that make a new worktree fit for work.
    pub(super) setup: Vec<String>,
    /// How long each of them may take.
    pub(super) setup_time: Duration,
    /// Patterns of ignored files that a new worktree gets from the main checkout.
    pub(super) copy: Vec<String>,
    /// Patterns of tracked files that are left out.
    pub(super) exclude: Vec<String>,
    /// Patterns of ignored files that stay when a lane is recycled.
    pub(super) keep: Vec<String>,
    /// Patterns of ignored files that stay from one gate to the next.
    pub(super) merge_keep: Vec<String>,
    /// Whether large files are fetched.
    pub(super) large_files: LargeFiles,
    /// How often unfinished work is saved.
    pub save_every: Duration,
    /// What the repository is called, if it was named.
    pub repo: Option<RepoName>,
    /// The session of the run that they are for, if there is one.
    pub session: Option<SessionId>,
    /// The wish to stop.
    pub cancel: Cancel,
    /// Watches what set-up commands must leave alone, together with all that is at work in the repository.
    pub config_guard: ConfigGuard,
    setup_origin: Origin,
    /// Where worktrees are made, if a file of the repository says that and it is outside of the repository.
    foreign_base: Option<String>,
}

/// What becomes of files that git LFS keeps elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LargeFiles {
    /// They are fetched, as in any checkout.
    Fetched,
    /// Their pointers stand in for them.
    Pointers,
}

impl WorktreeOptions {
    /// From the settings that hold.
    #[must_use]
    pub fn new(settings: &Settings, cancel: &Cancel) -> Self {
        let words = |key: &str| settings.words(key).unwrap_or_default().to_vec();
        let count = |key: &str, default| settings.count(key).unwrap_or(default);
        let number =
            |key: &str| settings.count(key).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        let all = || vec!["*".to_owned()];
        let fetches = settings.switch("worktree.lfs").unwrap_or(true);
        Self {
            base: settings.text("worktree.base").map(str::to_owned),
            configured_max: number("worktree.max"),
            wanted_lanes: 0,
            min_free: count("worktree.min-free", FREE).saturating_mul(1_000_000),
            configured_warning: number("cleanup.warn-worktrees"),
            warn_free: count("cleanup.warn-free", SCARCE).saturating_mul(1_000_000),
            setup: words("worktree.setup"),
            setup_time: Duration::from_secs(count("timeouts.setup", SET_UP)),
            copy: words("worktree.copy"),
            exclude: words("worktree.exclude"),
            keep: settings.words("worktree.keep").map_or_else(all, <[String]>::to_vec),
            merge_keep: words("merge.keep"),
            large_files: if fetches { LargeFiles::Fetched } else { LargeFiles::Pointers },
            save_every: Duration::from_secs(count("worktree.save-every", SAVE).max(1)),
            repo: None,
            session: None,
            cancel: cancel.clone(),
            config_guard: ConfigGuard::default(),
            setup_origin: settings.origin("worktree.setup").unwrap_or(Origin::User),
            foreign_base: foreign_folders(settings, &["worktree.base"]).next(),
        }
    }

    /// For a run that wants so many lanes.
    pub fn want_lanes(&mut self, count: usize) {
        self.wanted_lanes = count;
    }

    /// How many worktrees there may be. Without a configured limit, a run may have a lane for each of its jobs.
    pub(super) fn max(&self) -> usize {
        self.configured_max.unwrap_or(MAX.max(self.wanted_lanes))
    }

    /// From how many worktrees on a run warns of them; 0 for never. The lanes of the run itself are no reason.
    pub(super) fn warn_worktrees(&self) -> usize {
        self.configured_warning.unwrap_or(CROWD.max(self.wanted_lanes.saturating_add(1)))
    }

    /// The commands that a repository brought along, for [`consent::require`](crate::consent::require).
    #[must_use]
    pub fn foreign_commands(&self) -> BTreeSet<String> {
        let is_foreign = self.setup_origin == Origin::Repository;
        let setup = self.setup.iter().filter(|_| is_foreign).map(|command| format!("setup: {command}"));
        setup.chain(self.foreign_base.clone()).collect()
    }
}
