//! Commits that were read before, so that showing state costs only what is new. It may be deleted at any time,
//! and it is never believed: every commit is hashed again when it is loaded.

use std::{fs, io::Write, path::PathBuf};

use crate::{
    git::{RawCommit, Repository},
    name::{BranchName, Oid},
};

/// The file for one run.
#[derive(Debug)]
pub(super) struct Cache {
    file: PathBuf,
}

/// What it holds.
#[derive(Debug)]
pub(super) struct Cached {
    /// The tip that was read up to.
    pub(super) tip: Oid,
    /// The commits of the run, in the order in which git gave them.
    pub(super) commits: Vec<RawCommit>,
}

impl Cache {
    pub(super) fn new(repository: &Repository, branch: &BranchName) -> Self {
        let folder = repository.common_dir.join("arborist/cache/v1");
        Self { file: folder.join(branch.component()) }
    }

    /// `None` if there is none, or if anything in it is not what it should be.
    pub(super) fn load(&self) -> Option<Cached> {
        let bytes = fs::read(&self.file).ok()?;
        let (tip, mut rest) = take_line(&bytes)?;
        let mut commits = Vec::new();
        while !rest.is_empty() {
            let (header, after) = take_line(rest)?;
            let (id, size) = header.split_once(' ')?;
            let size: usize = size.parse().ok()?;
            let commit = RawCommit { id: id.parse().ok()?, content: after.get(..size)?.to_vec() };
            if !commit.is_authentic() {
                return None;
            }
            commits.push(commit);
            rest = &after[size..];
        }
        Some(Cached { tip: tip.parse().ok()?, commits })
    }

    /// Replaces the file in one step. A cache that cannot be written is no error, and commits whose bytes git
    /// did not give in full make it worthless.
    pub(super) fn store(&self, tip: Oid, commits: &[RawCommit]) {
        if commits.iter().all(RawCommit::is_authentic) {
            let _ = self.try_store(tip, commits);
        }
    }

    fn try_store(&self, tip: Oid, commits: &[RawCommit]) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(&self.file);
        fs::create_dir_all(folder)?;
        let mut bytes = format!("{tip}\n").into_bytes();
        for commit in commits {
            writeln!(bytes, "{} {}", commit.id, commit.content.len())?;
            bytes.extend_from_slice(&commit.content);
        }
        let draft = folder.join(format!(".{}.tmp", std::process::id()));
        fs::write(&draft, bytes)?;
        fs::rename(draft, &self.file)
    }
}

fn take_line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = memchr::memchr(b'\n', bytes)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}
