//! Objects: reading, writing and checking them. This file reads them by id, many in one call.

pub(super) mod ancestry;
pub(super) mod author;
pub(super) mod commits;
pub(super) mod held_objects;
pub(super) mod object_files;
pub(super) mod odb;
pub(super) mod open_objects;
pub(super) mod packing;
pub(super) mod signatures;
pub(super) mod trees;
pub(super) mod verified_objects;
pub(super) mod write;

use crate::{
    git::{
        GitError, RawCommit, Repository,
        command::range_input,
        objects::odb::{StoredKind, StoredObject},
    },
    name::{ObjectKind, Oid},
};

/// How many are read one by one. For more, a git is started, which caches what it unpacks.
const MAX_SINGLE_READS: usize = 16;

impl Repository {
    /// The exact bytes of these commits, in order. Fails if one does not exist or does not match its id: git itself
    /// does not hash what it reads.
    pub fn load_commits(&self, ids: &[Oid]) -> Result<Vec<RawCommit>, GitError> {
        let commits = if ids.len() <= MAX_SINGLE_READS && self.reads_objects_in_process() {
            ids.iter().map(|id| self.load_commit(*id)).collect::<Result<_, _>>()?
        } else {
            self.load_many(ids)?
        };
        match commits.iter().find(|commit| !commit.is_authentic()) {
            Some(commit) => Err(GitError::Corrupt(commit.id.to_string(), "commit")),
            None => Ok(commits),
        }
    }

    /// Those of these objects that are commits of at most `most` bytes; `None` for all others. The size is asked
    /// for first, so that a large object from a remote is never loaded.
    pub fn find_small_commits(&self, ids: &[Oid], most: u64) -> Result<Vec<Option<RawCommit>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let command = self.git("cat-file").arg("--batch-check=%(objecttype) %(objectsize)");
        let text = command.text_with(&input.into_bytes())?;
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

    fn load_commit(&self, id: Oid) -> Result<RawCommit, GitError> {
        let content = self.read_object(ObjectKind::Commit, id)?;
        content
            .map(|content| RawCommit::new(id, content))
            .ok_or_else(|| GitError::Unknown(id.to_string(), "commit"))
    }

    fn load_many(&self, ids: &[Oid]) -> Result<Vec<RawCommit>, GitError> {
        let found = self.ask_git_for_objects(ids, ObjectKind::Commit.as_str())?;
        let commit = |(id, found): (&Oid, Option<StoredObject>)| match found {
            Some(StoredObject { kind: StoredKind::Known(ObjectKind::Commit), content }) => {
                Ok(RawCommit::new(*id, content))
            }
            _ => Err(GitError::Unknown(id.to_string(), ObjectKind::Commit.as_str())),
        };
        ids.iter().zip(found).map(commit).collect()
    }

    /// The object with this id, read by git. git does not hash what it reads, so that is done here.
    pub(in crate::git) fn ask_git_for_object(
        &self,
        id: Oid,
        name: &'static str,
    ) -> Result<Option<StoredObject>, GitError> {
        let found = self.ask_git_for_objects(&[id], name)?.pop().flatten();
        let is_forged = found.as_ref().is_some_and(|found| match found.kind {
            StoredKind::Known(kind) => Oid::of(kind, &found.content, id.format()) != id,
            StoredKind::Tag => false,
        });
        if is_forged { Err(GitError::Corrupt(id.to_string(), name)) } else { Ok(found) }
    }

    /// The objects with these ids, in order, read by one git process. They are not hashed.
    fn ask_git_for_objects(
        &self,
        ids: &[Oid],
        name: &'static str,
    ) -> Result<Vec<Option<StoredObject>>, GitError> {
        let input = ids.iter().map(|id| format!("{id}\n")).collect::<String>();
        let command = self.git("cat-file").args(["--batch", "--buffer"]);
        let printed = command.finish_with(&input.into_bytes())?.stdout;
        let mut rest = printed.as_slice();
        // git stops at a file that it cannot read.
        let corrupt = |id: &Oid| GitError::Corrupt(id.to_string(), name);
        ids.iter().map(|id| take_object(&mut rest, id).ok_or_else(|| corrupt(id))).collect()
    }

    /// The blob at `path` in a commit, if there is one.
    pub fn find_path(&self, commit: Oid, path: &str) -> Result<Option<Oid>, GitError> {
        match self.find_tree(commit)? {
            Some(tree) => self.find_entry(tree, path.as_bytes()),
            None => Ok(None),
        }
    }

    /// The commits that are reachable from `tips` and not from `others`, newest first. Both are passed on standard
    /// input, because there may be more than fit into arguments.
    pub fn list_between(&self, tips: &[Oid], others: &[Oid]) -> Result<Vec<Oid>, GitError> {
        if tips.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(commits) = self.walk_range(tips, others)? {
            return Ok(commits.iter().map(|commit| commit.id).collect());
        }
        let text = self.git("rev-list").arg("--stdin").text_with(&range_input(tips, others))?;
        text.lines().map(|line| line.parse().map_err(|_| GitError::unexpected("rev-list", line))).collect()
    }

    /// The commit that each of these objects is or, for a tag, points to; `None` if it is missing or is not a commit.
    pub fn find_commits(&self, ids: &[Oid]) -> Result<Vec<Option<Oid>>, GitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let input = ids.iter().map(|id| format!("{id}^{{commit}}\n")).collect::<String>();
        let command = self.git("cat-file").arg("--batch-check=%(objectname) %(objecttype)");
        let text = command.text_with(&input.into_bytes())?;
        let found: Vec<_> = text.lines().map(|line| line.strip_suffix(" commit")?.parse().ok()).collect();
        if found.len() != ids.len() {
            let what = format!("{} answers to {} questions", found.len(), ids.len());
            return Err(GitError::unexpected("cat-file", what));
        }
        Ok(found)
    }

    /// The bytes of a blob, if it exists.
    pub fn find_blob(&self, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        self.read_object(ObjectKind::Blob, id)
    }
}

/// Takes one answer off the front of `rest`: `<id> <kind> <size>LF<content>LF`, or `<id> missing`.
fn take_object(rest: &mut &[u8], id: &Oid) -> Option<Option<StoredObject>> {
    let end = memchr::memchr(b'\n', rest)?;
    let header = std::str::from_utf8(&rest[..end]).ok()?.strip_prefix(&format!("{id} "))?;
    *rest = &rest[end + 1..];
    if header == "missing" {
        return Some(None);
    }
    let (kind, size) = header.split_once(' ')?;
    let kind = match kind {
        "blob" => StoredKind::Known(ObjectKind::Blob),
        "tree" => StoredKind::Known(ObjectKind::Tree),
        "commit" => StoredKind::Known(ObjectKind::Commit),
        _ => StoredKind::Tag,
    };
    let size = size.parse().ok()?;
    let content = rest.get(..size)?.to_vec();
    *rest = rest.get(size + 1..)?;
    Some(Some(StoredObject { kind, content }))
}
