//! Atomic pushes with leases: either all refs are moved, each from the value that is expected, or none is.

use super::{GitError, Network, Pushed, RawCommit, RemoteError, Repository, command::checked};
use crate::name::Oid;

/// One ref of an atomic push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasedPush {
    /// Its full name at the remote.
    pub name: String,
    /// Its new value; `None` to delete it.
    pub new: Option<Oid>,
    /// The value that the remote must have; `None` if it must not exist.
    pub old: Option<Oid>,
}

impl Repository {
    /// Pushes all of these refs or none of them. Returns the refused ones; if there are none, all were moved.
    pub fn push_leased(
        &self,
        (remote, pushes): (&str, &[LeasedPush]),
        network: &Network,
    ) -> Result<Vec<Pushed>, RemoteError> {
        let mut options = vec!["--atomic".to_owned()];
        let mut refspecs = Vec::new();
        for LeasedPush { name, new, old } in pushes {
            let old = old.map(|old| old.to_string()).unwrap_or_default();
            options.push(format!("--force-with-lease={name}:{old}"));
            let new = new.map(|new| new.to_string()).unwrap_or_default();
            refspecs.push(format!("{new}:{name}"));
        }
        let mut rows = self.push((remote, &options, refspecs), network)?;
        rows.retain(|row| row.refused.is_some());
        Ok(rows)
    }

    /// Those of these objects that are commits of at most `most` bytes; `None` for all others. Nothing else is read, so
    /// objects that somebody else has written cost no memory.
    pub fn find_small_commits(&self, ids: &[Oid], most: u64) -> Result<Vec<Option<RawCommit>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let command = self.git("cat-file").arg("--batch-check=%(objecttype) %(objectsize)");
        let printed = checked("cat-file", command.finish_with(&input.into_bytes())?)?;
        let text = String::from_utf8_lossy(&printed);
        let is_small = |line: &str| {
            let size = line.strip_prefix("commit ").and_then(|size| size.parse::<u64>().ok());
            size.is_some_and(|size| size <= most)
        };
        let mut found = Vec::new();
        for (id, line) in ids.iter().zip(text.lines()) {
            let commit = if is_small(line) { self.load_commits(&[*id])?.pop() } else { None };
            found.push(commit);
        }
        Ok(found)
    }
}
