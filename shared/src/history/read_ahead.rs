//! Reads the cache while git looks for the repository: both take about equally long for a run of a hundred tasks.

use std::path::Path;

use super::{
    cache::{Cache, Cached},
    entry::HistoryEntry,
    walk::read_verified,
};
use crate::{name::BranchName, safe_files};

/// The prefix of a `HEAD` that names a branch.
const BRANCH: &str = "ref: refs/heads/";

/// The commits of one run from its cache, each of them verified by its id.
#[derive(Debug)]
pub struct ReadAhead {
    cache: Cache,
    branch: BranchName,
    pub(super) cached: Cached,
    pub(super) entries: Vec<HistoryEntry>,
}

impl ReadAhead {
    /// Guesses the repository around `dir` and its current branch, and reads the cache of that branch. A wrong guess
    /// only costs time: the result is used only if git then names the same git directory and branch.
    #[must_use]
    pub fn guess(dir: &Path) -> Option<Self> {
        let common_dir = dir.ancestors().map(|dir| dir.join(".git")).find(|git_dir| git_dir.is_dir())?;
        let head = safe_files::read_text(&common_dir.join("HEAD")).ok()?;
        let branch: BranchName = head.trim_end().strip_prefix(BRANCH)?.parse().ok()?;
        Self::read(Cache::new(&common_dir, &branch), &branch)
    }

    /// Reads and verifies the cache of `branch`. `None` if there is none, or if a commit does not match its id.
    pub(super) fn read(cache: Cache, branch: &BranchName) -> Option<Self> {
        let cached = cache.load()?;
        let entries = read_verified(&cached.commits, branch)?;
        Some(Self { cache, branch: branch.clone(), cached, entries })
    }

    /// Whether it is the cache of this run.
    pub(super) fn is_of(&self, cache: &Cache, branch: &BranchName) -> bool {
        self.cache == *cache && self.branch == *branch
    }
}
