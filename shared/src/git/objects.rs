//! Objects by id, many in one call.

use super::{GitError, RawCommit, Repository, command::checked};
use crate::name::{ObjectKind, Oid};

/// So many are asked for one after the other; for more a git of their own is started.
const FEW: usize = 16;

impl Repository {
    /// The exact bytes of these commits, in order. All of them must exist, and be what their ids say: git itself does not
    /// hash what it reads.
    pub fn load_commits(&self, ids: &[Oid]) -> Result<Vec<RawCommit>, GitError> {
        let commits = if ids.len() <= FEW {
            ids.iter().map(|id| self.load_commit(*id)).collect::<Result<_, _>>()?
        } else {
            self.load_many(ids)?
        };
        match commits.iter().find(|commit| !commit.is_authentic()) {
            Some(commit) => Err(GitError::Corrupt(commit.id.to_string(), "commit")),
            None => Ok(commits),
        }
    }

    fn load_commit(&self, id: Oid) -> Result<RawCommit, GitError> {
        let content = self.read_object(ObjectKind::Commit, id)?;
        content
            .map(|content| RawCommit::new(id, content))
            .ok_or_else(|| GitError::Unknown(id.to_string(), "commit"))
    }

    fn load_many(&self, ids: &[Oid]) -> Result<Vec<RawCommit>, GitError> {
        let input = ids.iter().map(|id| format!("{id}\n")).collect::<String>();
        let command = self.git("cat-file").arg("--batch");
        let printed = checked("cat-file", command.finish_with(&input.into_bytes())?)?;
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
        match self.find_tree(commit)? {
            Some(tree) => self.find_entry(tree, path.as_bytes()),
            None => Ok(None),
        }
    }

    /// The commits that are reachable from `tips` and not from `others`, newest first. Both go to git on its
    /// standard input, since there may be more of them than arguments may be.
    pub fn list_between(&self, tips: &[Oid], others: &[Oid]) -> Result<Vec<Oid>, GitError> {
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(commits) = self.walk_range(tips, others)? {
            return Ok(commits.iter().map(|commit| commit.id).collect());
        }
        let tips = tips.iter().map(|tip| format!("{tip}\n"));
        let input: String = tips.chain(others.iter().map(|other| format!("^{other}\n"))).collect();
        let command = self.git("rev-list").arg("--stdin");
        let printed = checked("rev-list", command.finish_with(&input.into_bytes())?)?;
        let strange = |line: &str| GitError::Strange { command: "rev-list".into(), what: line.to_owned() };
        let text = String::from_utf8_lossy(&printed);
        text.lines().map(|line| line.parse().map_err(|_| strange(line))).collect()
    }

    /// The commit that each of these objects is or, as a tag, names; `None` where it is not here or no commit.
    pub fn find_commits(&self, ids: &[Oid]) -> Result<Vec<Option<Oid>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input = ids.iter().map(|id| format!("{id}^{{commit}}\n")).collect::<String>();
        let command = self.git("cat-file").arg("--batch-check=%(objectname) %(objecttype)");
        let printed = checked("cat-file", command.finish_with(&input.into_bytes())?)?;
        let text = String::from_utf8_lossy(&printed);
        let found: Vec<_> = text.lines().map(|line| line.strip_suffix(" commit")?.parse().ok()).collect();
        if found.len() != ids.len() {
            let what = format!("{} answers to {} questions", found.len(), ids.len());
            return Err(GitError::Strange { command: "cat-file".into(), what });
        }
        Ok(found)
    }

    /// The bytes of a blob, if it is here.
    pub fn find_blob(&self, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        self.read_object(ObjectKind::Blob, id)
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
