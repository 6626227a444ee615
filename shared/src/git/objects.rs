//! Objects by id, many in one call.

use super::{GitError, RawCommit, Repository, command::checked};
use crate::name::Oid;

impl Repository {
    /// The exact bytes of these commits, in order. All of them must exist.
    pub fn load_commits(&self, ids: &[Oid]) -> Result<Vec<RawCommit>, GitError> {
        let input = ids.iter().map(|id| format!("{id}\n")).collect::<String>();
        let command = self.git("cat-file").arg("--batch");
        let printed = checked("cat-file", command.finish_with(input.into_bytes())?)?;
        let mut rest = printed.as_slice();
        ids.iter()
            .map(|id| {
                let content = take_object(&mut rest, id, "commit")?;
                Ok(RawCommit::new(*id, content))
            })
            .collect()
    }

    /// The blob at `path` in a commit, if there is one.
    pub fn find_path(&self, commit: Oid, path: &str) -> Result<Option<Oid>, GitError> {
        let command = self.git("rev-parse").args(["--verify", "--quiet", "--end-of-options"]);
        let found = command.arg(format!("{commit}:{path}")).finish()?;
        Ok(String::from_utf8_lossy(&found.stdout).trim().parse().ok())
    }

    /// The bytes of a blob, if it is here.
    pub fn find_blob(&self, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        let command = self.git("cat-file").arg("--batch");
        let printed = checked("cat-file", command.finish_with(format!("{id}\n").into_bytes())?)?;
        Ok(take_object(&mut printed.as_slice(), &id, "blob").ok())
    }
}

/// Cuts one record `<id> <kind> <size>LF<content>LF` from the front of `rest`.
fn take_object(rest: &mut &[u8], id: &Oid, kind: &'static str) -> Result<Vec<u8>, GitError> {
    let missing = || GitError::Unknown(id.to_string(), kind);
    let end = memchr::memchr(b'\n', rest).ok_or_else(missing)?;
    let header = std::str::from_utf8(&rest[..end]).map_err(|_| missing())?;
    let size: usize = header
        .strip_prefix(&format!("{id} {kind} "))
        .and_then(|size| size.parse().ok())
        .ok_or_else(missing)?;
    let content = rest.get(end + 1..end + 1 + size).ok_or_else(missing)?.to_vec();
    *rest = rest.get(end + 2 + size..).unwrap_or_default();
    Ok(content)
}
