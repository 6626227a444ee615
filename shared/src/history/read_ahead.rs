//! What the cache holds, read before git has told where the repository is: git takes about as long to find it as we take to
//! hash and read the commits of a hundred tasks.

use std::path::Path;

use super::{
    cache::{Cache, Cached},
    entry::HistoryEntry,
    walk::read_proved,
};
use crate::{name::BranchName, safe_files};

/// What begins a `HEAD` that names a branch.
const BRANCH: &str = "ref: refs/heads/";

/// The commits of a run that the cache holds, each of them proved by its id. They are of no use for any other run.
#[derive(Debug)]
pub struct ReadAhead {
    cache: Cache,
    branch: BranchName,
    pub(super) cached: Cached,
    pub(super) entries: Vec<HistoryEntry>,
}

impl ReadAhead {
    /// Reads the cache of the branch that is probably checked out in the repository that is probably the one around `dir`.
    /// A wrong guess costs time and nothing else: only the cache that belongs to what git tells is used.
    #[must_use]
    pub fn guess(dir: &Path) -> Option<Self> {
        let common_dir = dir.ancestors().map(|dir| dir.join(".git")).find(|git_dir| git_dir.is_dir())?;
        let head = safe_files::read_text(&common_dir.join("HEAD")).ok()?;
        let branch: BranchName = head.trim_end().strip_prefix(BRANCH)?.parse().ok()?;
        Self::read(Cache::new(&common_dir, &branch), &branch)
    }

    /// Reads and proves what the cache of `branch` holds. `None` if there is none, or if a commit is not what its id stands for.
    pub(super) fn read(cache: Cache, branch: &BranchName) -> Option<Self> {
        let cached = cache.load()?;
        let entries = read_proved(&cached.commits, branch)?;
        Some(Self { cache, branch: branch.clone(), cached, entries })
    }

    /// Whether it is what the cache of this run holds.
    pub(super) fn is_of(&self, cache: &Cache, branch: &BranchName) -> bool {
        self.cache == *cache && self.branch == *branch
    }
}
