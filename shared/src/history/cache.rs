//! A cache of commits, so that showing state costs only what is new. It may be deleted at any time, and it is never
//! trusted: every commit is hashed again when it is used.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::{
    git::RawCommit,
    name::{BranchName, Oid},
    safe_files,
};

/// The largest cache; the commits of a run of a hundred thousand tasks are smaller.
const LARGEST: u64 = 1 << 30;

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
        let bytes = Arc::new(safe_files::read_up_to(&self.file, LARGEST).ok()?);
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
