//! Verifies the files that a checkout of ours has written. git does not hash the objects that it reads, and an agent in
//! another worktree can replace an object file at any time. Only if the written files are hashed, tests, gates and
//! reviewers see what will land.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    git::{GitError, IndexWriter, Repository, index::index_entries::IndexEntries},
    name::{ObjectKind, Oid},
    safe_files::{self, FileKind},
};

/// Larger files are hashed by git.
const LARGEST_HASHED_FILE: u64 = 32 * 1024 * 1024;

impl Repository {
    /// Runs a checkout of ours. Compares every written file with its id, and the index with the commit.
    pub(in crate::git) fn write_checkout<T>(
        &self,
        commit: Option<Oid>,
        write: impl FnOnce(&IndexWriter<'_>) -> Result<T, GitError>,
    ) -> Result<T, GitError> {
        let before = self.recall_entries();
        let written = self.write_index(write)?;
        // Before the first child process, no object can have been replaced.
        if self.has_watched_objects() {
            commit.map_or(Ok(()), |commit| self.require_staged(commit))?;
            self.require_written(before.as_deref())?;
        }
        Ok(written)
    }

    /// Fails if the index does not contain the files of the commit: then git found another commit, or another tree
    /// under the id of a folder, and wrote files accordingly.
    fn require_staged(&self, commit: Oid) -> Result<(), GitError> {
        if self.index_file().is_none() {
            return Ok(());
        }
        let tree = self.tree_of(commit)?;
        let entries = self.read_entries();
        // git is not asked for the tree: the index caches ids of trees that git has read, whatever they contained.
        if entries.as_ref().is_some_and(|entries| entries.staged_tree(self.format) == Some(tree)) {
            return Ok(());
        }
        // Trees of very old commits have modes that an index does not have.
        let files = self.changes(self.empty_tree()?, tree)?;
        if entries.is_some_and(|entries| entries.are_those_of(&files)) {
            return Ok(());
        }
        Err(GitError::Corrupt(tree.to_string(), ObjectKind::Tree.as_str()))
    }

    fn require_written(&self, before: Option<&IndexEntries>) -> Result<(), GitError> {
        let Some(after) = self.read_entries() else { return Ok(()) };
        let is_other =
            |(path, id): &(&[u8], Oid)| !self.is_content(&self.top().join(OsStr::from_bytes(path)), *id);
        let doubtful: Vec<(&[u8], Oid)> = after.files_changed_since(before).filter(is_other).collect();
        // A filter or a line ending may change the content, so git hashes it. A name with a line feed cannot be passed
        // together with others.
        let (alone, together): (Vec<_>, Vec<_>) =
            doubtful.into_iter().partition(|(path, _)| path.contains(&b'\n') || path.starts_with(b"\""));
        for (path, id) in alone {
            let command = self.git("hash-object").arg("--").arg(OsStr::from_bytes(path));
            require_ids(&command.stdout()?, &[(path, id)])?;
        }
        if together.is_empty() {
            return Ok(());
        }
        let input: Vec<u8> = together.iter().flat_map(|(path, _)| [path, &b"\n"[..]].concat()).collect();
        let command = self.git("hash-object").arg("--stdin-paths");
        require_ids(&command.stdout_with(&input)?, &together)
    }

    /// Whether a file has the content of an id. A missing file was left out of the checkout, or is gone again.
    pub(in crate::git) fn is_content(&self, file: &Path, id: Oid) -> bool {
        let content = match safe_files::kind_of(file) {
            Some(FileKind::File) => safe_files::read_up_to(file, LARGEST_HASHED_FILE).ok(),
            Some(FileKind::Link) => {
                std::fs::read_link(file).ok().map(|target| target.as_os_str().as_bytes().to_vec())
            }
            _ => return true,
        };
        content.is_some_and(|content| Oid::of(ObjectKind::Blob, &content, self.format) == id)
    }

    fn read_entries(&self) -> Option<IndexEntries> {
        let bytes = safe_files::read(&self.index_file()?).ok()?;
        IndexEntries::parse(&bytes, self.format)
    }
}

/// Fails if the printed ids, one on each line, are not those of the files.
fn require_ids(printed: &[u8], files: &[(&[u8], Oid)]) -> Result<(), GitError> {
    let mut ids = printed.split(|byte| *byte == b'\n');
    let is_other = |(_, id): &&(&[u8], Oid)| ids.next() != Some(id.to_string().as_bytes());
    match files.iter().find(is_other) {
        Some((_, id)) => Err(GitError::Corrupt(id.to_string(), ObjectKind::Blob.as_str())),
        None => Ok(()),
    }
}
