//! Commits that need not be read from git again: a cache in a file, and a memory for repeated reading.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use super::{
    HistoryError,
    event::HistoryEntry,
    walk::{CommitSource, LONGEST_CACHE, RunCommits, Walker, read_verified, select_run},
};
use crate::{
    git::RawCommit,
    mutex::MutexExt,
    name::{BranchName, Oid},
    safe_files,
};

// A cache of commits, so that showing state costs only what is new. It may be deleted at any time, and it is never
// trusted: every commit is hashed again when it is used.

/// The largest cache; the commits of a run of a hundred thousand tasks are smaller.
const LARGEST_CACHE: u64 = 1 << 30;

/// The file for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cache {
    file: PathBuf,
}

/// Its content.
#[derive(Debug)]
pub(super) struct Cached {
    /// The tip at the time of writing.
    pub(super) tip: Oid,
    /// The commits of the run, in git's order.
    pub(super) commits: Vec<RawCommit>,
}

impl Cache {
    /// The cache of the run of `branch`, in the common git directory.
    pub(super) fn new(common_dir: &Path, branch: &BranchName) -> Self {
        let folder = common_dir.join("arborist/cache/v1");
        Self { file: folder.join(branch.component()) }
    }

    /// `None` if there is none, or if it cannot be read. Its commits are not verified yet.
    pub(super) fn load(&self) -> Option<Cached> {
        let bytes = Arc::new(safe_files::read_up_to(&self.file, LARGEST_CACHE).ok()?);
        let (tip, mut at) = line_at(&bytes, 0)?;
        let mut commits = Vec::new();
        while at < bytes.len() {
            let (header, begin) = line_at(&bytes, at)?;
            let (id, size) = header.split_once(' ')?;
            at = begin.checked_add(size.parse().ok()?)?;
            commits.push(RawCommit::within(&bytes, id.parse().ok()?, begin..at)?);
        }
        Some(Cached { tip: tip.parse().ok()?, commits })
    }

    /// Replaces the file atomically. A cache that cannot be written is no error.
    pub(super) fn store(&self, tip: Oid, commits: &[RawCommit]) {
        let _ = self.try_store(tip, commits);
    }

    fn try_store(&self, tip: Oid, commits: &[RawCommit]) -> std::io::Result<()> {
        let mut bytes = format!("{tip}\n").into_bytes();
        for commit in commits {
            writeln!(bytes, "{} {}", commit.id, commit.content().len())?;
            bytes.extend_from_slice(commit.content());
        }
        safe_files::write(&self.file, &bytes)
    }
}

/// The line that begins at `from`, and the start of the next one.
fn line_at(bytes: &[u8], from: usize) -> Option<(&str, usize)> {
    let end = from + memchr::memchr(b'\n', &bytes[from..])?;
    Some((std::str::from_utf8(&bytes[from..end]).ok()?, end + 1))
}

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

// Remembers the commits of a run in memory for repeated reading. Commits never change, so only new ones are read from
// git.

/// The commits of a run at the last reading. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct CommitCache(Arc<Mutex<Option<Remembered>>>);

#[derive(Debug)]
struct Remembered {
    branch: BranchName,
    tip: Oid,
    /// Whether the entries go back to the start of a run. Otherwise they are the whole history.
    has_start: bool,
    entries: Vec<HistoryEntry>,
}

impl CommitCache {
    fn lock(&self) -> MutexGuard<'_, Option<Remembered>> {
        self.0.hold()
    }

    /// Reads a run from git, without reading remembered commits again. The first time, commits are taken from the cache
    /// file: each is verified by its id, from the tip, which git names, down to the start.
    pub(super) fn walk(&self, walker: &Walker<'_>) -> Result<RunCommits, HistoryError> {
        let mut remembered = self.lock();
        let known = remembered.take().filter(|known| known.branch == *walker.branch);
        let walk = match known.and_then(|known| walker.read_since(known)) {
            Some(walk) => walk,
            None => walker.walk(CommitSource::Cached)?,
        };
        // Without a run, the whole history was read, which may be large.
        let is_kept = walk.start.is_some() || walk.graph.entries.len() <= LONGEST_CACHE;
        *remembered = is_kept.then(|| Remembered {
            branch: walker.branch.clone(),
            tip: walker.tip,
            has_start: walk.start.is_some(),
            entries: walk.graph.entries.clone(),
        });
        Ok(walk)
    }
}

impl Walker<'_> {
    /// The remembered commits, and from git only those that are newer. `None` if the memory cannot be used.
    fn read_since(&self, known: Remembered) -> Option<RunCommits> {
        if self.repository.is_shallow {
            return None;
        }
        let mut entries = Vec::new();
        if known.tip != self.tip {
            entries = self.read_all(&[self.tip.to_string(), format!("^{}", known.tip)]).ok()?.entries;
        }
        entries.extend(known.entries);
        let walk = select_run(entries, self.tip).ok()?;
        if known.has_start {
            walk.start?;
            self.has_complete_edges(&walk)?;
        }
        Some(walk)
    }
}
