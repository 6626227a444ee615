//! Verifies that new objects match their ids. git does not hash objects when it reads them, and does not write an
//! object for which it finds a file. So a process that stores another content under the id of a future object decides
//! what a reviewer sees.

use std::{collections::HashSet, ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path};

use crate::{
    git::{GitError, Repository, TreeChange, WorktreeSnapshot},
    name::{ObjectKind, Oid},
    process::ProcessError,
    safe_files,
};

/// How often forged objects are removed before a snapshot fails: each round finds only those that earlier ones did not
/// hide.
const MAX_ROUNDS: usize = 20;

/// An object whose content does not match its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgedObject {
    /// The id under which it is stored.
    pub id: Oid,
    kind: ObjectKind,
    /// The file whose content it should be.
    change: Option<TreeChange>,
}

impl Repository {
    /// A snapshot of the worktree. All its objects that are not in the tree `known` match their ids; forged ones were
    /// removed and are returned.
    pub fn take_verified_snapshot(
        &self,
        known: Oid,
    ) -> Result<(WorktreeSnapshot, Vec<ForgedObject>), GitError> {
        let mut removed = Vec::new();
        for _ in 0..MAX_ROUNDS {
            let stock = self.take_snapshot()?;
            let found = self.find_forged(known, stock.tree)?;
            if found.is_empty() {
                return Ok((stock, removed));
            }
            for object in found {
                self.replace_forged(&object)?;
                removed.push(object);
            }
        }
        Err(removed.pop().map_or_else(|| GitError::Unknown("HEAD".into(), "tree"), |last| last.error()))
    }

    /// Fails if objects of `tree` do not match their ids, or are missing.
    pub fn require_verified(&self, known: Oid, tree: Oid) -> Result<(), GitError> {
        self.find_forged(known, tree)?.first().map_or(Ok(()), |found| Err(found.error()))
    }

    /// Whether all objects of `tree` that are not in `known` match their ids.
    pub fn is_proven(&self, known: Oid, tree: Oid) -> Result<bool, GitError> {
        Ok(self.find_forged(known, tree)?.is_empty())
    }

    /// The forged objects of `tree` that are not in `known`. Trees come first: the content of a forged one is unknown.
    fn find_forged(&self, known: Oid, tree: Oid) -> Result<Vec<ForgedObject>, GitError> {
        // A cached tree proves nothing about its file, which git reads.
        self.without_cached_trees().find_forged_on_disk(known, tree)
    }

    fn find_forged_on_disk(&self, known: Oid, tree: Oid) -> Result<Vec<ForgedObject>, GitError> {
        let mut found = Vec::new();
        self.add_forged_trees(Some(known), tree, &mut found)?;
        if !found.is_empty() || known == tree {
            return Ok(found);
        }
        let mut seen = HashSet::new();
        for change in self.changes(known, tree)? {
            // The old side of a diff decides what it shows, too. We cannot write it again, so the user has to repair
            // it.
            if let Some((_, id)) = change.before.filter(|_| !change.was_gitlink())
                && seen.insert(id)
                && self.read_verified(ObjectKind::Blob, id)?.is_none()
            {
                return Err(GitError::Corrupt(id.to_string(), ObjectKind::Blob.as_str()));
            }
            if let Some((_, id)) = change.after.filter(|_| !change.is_gitlink())
                && seen.insert(id)
                && self.read_verified(ObjectKind::Blob, id)?.is_none()
            {
                found.push(ForgedObject { id, kind: ObjectKind::Blob, change: Some(change) });
            }
        }
        Ok(found)
    }

    fn add_forged_trees(
        &self,
        known: Option<Oid>,
        tree: Oid,
        found: &mut Vec<ForgedObject>,
    ) -> Result<(), GitError> {
        let mut open = vec![(known, tree)];
        while let Some((known, tree)) = open.pop() {
            if known == Some(tree) {
                continue;
            }
            if self.read_verified(ObjectKind::Tree, tree)?.is_none() {
                found.push(ForgedObject { id: tree, kind: ObjectKind::Tree, change: None });
                continue;
            }
            let old = known.map_or_else(|| Ok(Vec::new()), |known| self.folders_of(known))?;
            for (name, id) in self.folders_of(tree)? {
                open.push((old.iter().find(|(old, _)| *old == name).map(|(_, id)| *id), id));
            }
        }
        Ok(())
    }

    /// The content of an object; `None` if it does not match its id.
    fn read_verified(&self, kind: ObjectKind, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        match self.read_object(kind, id) {
            Err(GitError::Corrupt(..)) => Ok(None),
            Ok(None) if self.loose_file(id).symlink_metadata().is_err() => {
                Err(GitError::Unknown(id.to_string(), kind.as_str()))
            }
            found => found,
        }
    }

    /// Removes the file of a forged object, so that git writes it again. It fails if the object is in a pack.
    fn replace_forged(&self, object: &ForgedObject) -> Result<(), GitError> {
        if safe_files::remove(&self.loose_file(object.id)).is_err() {
            return Err(object.error());
        }
        // git does not read a file again that the index calls unchanged, so the object is written here.
        if let Some(change) = &object.change {
            let path = Path::new(OsStr::from_bytes(&change.path));
            let file = self.top().join(path);
            let failed = |source| ProcessError { program: "git".into(), source };
            match file.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    let target = fs::read_link(&file).map_err(failed)?;
                    self.write_blob(target.as_os_str().as_bytes())?;
                }
                Ok(found) if found.is_file() => {
                    self.change("hash-object").args(["-w", "--"]).arg(path).stdout()?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl ForgedObject {
    fn error(&self) -> GitError {
        GitError::Corrupt(self.id.to_string(), self.kind.as_str())
    }
}
