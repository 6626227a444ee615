//! Whether new objects are what their ids say. Neither does git hash what it reads, nor does it write an object anew of which
//! it finds a file: whoever stores something else under the id of what is about to be taken in decides what a reviewer sees.

use std::{collections::HashSet, ffi::OsStr, fs, os::unix::ffi::OsStrExt, path::Path};

use super::{GitError, Repository, Stock, TreeChange};
use crate::{
    name::{ObjectKind, Oid},
    process::ProcessError,
    safe_files,
};

/// So often false objects are removed before it is given up: each time shows only those that the last ones did not hide.
const TRIES: usize = 20;

/// An object whose content is not what its id says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseObject {
    /// The id that it is stored under.
    pub id: Oid,
    kind: ObjectKind,
    /// The file that it should be the content of.
    change: Option<TreeChange>,
}

impl Repository {
    /// What lies in the worktree, as objects that are what their ids say as far as the tree `known` does not hold them.
    /// False ones were removed, and are given.
    pub fn take_proven_snapshot(&self, known: Oid) -> Result<(Stock, Vec<FalseObject>), GitError> {
        let mut removed = Vec::new();
        for _ in 0..TRIES {
            let stock = self.take_snapshot()?;
            let found = self.find_false(known, stock.tree)?;
            if found.is_empty() {
                return Ok((stock, removed));
            }
            for object in found {
                self.replace_false(&object)?;
                removed.push(object);
            }
        }
        Err(removed.pop().map_or_else(|| GitError::Unknown("HEAD".into(), "tree"), |last| last.error()))
    }

    /// Refuses a tree with objects that are not what their ids say, or that git does not have.
    pub fn require_proven(&self, known: Oid, tree: Oid) -> Result<(), GitError> {
        self.find_false(known, tree)?.first().map_or(Ok(()), |found| Err(found.error()))
    }

    /// Whether all objects of `tree` that `known` does not hold are what their ids say.
    pub fn is_proven(&self, known: Oid, tree: Oid) -> Result<bool, GitError> {
        Ok(self.find_false(known, tree)?.is_empty())
    }

    /// The false objects of `tree` that `known` does not hold. Folders come first: what a false one holds is not known.
    fn find_false(&self, known: Oid, tree: Oid) -> Result<Vec<FalseObject>, GitError> {
        // What is remembered of trees says nothing about their files, which git reads.
        self.forgetting_trees().find_false_on_disk(known, tree)
    }

    fn find_false_on_disk(&self, known: Oid, tree: Oid) -> Result<Vec<FalseObject>, GitError> {
        let mut found = Vec::new();
        self.add_false_trees(Some(known), tree, &mut found)?;
        if !found.is_empty() || known == tree {
            return Ok(found);
        }
        let mut seen = HashSet::new();
        for change in self.changes(known, tree)? {
            // What a diff is made against decides what it shows. It cannot be written anew: the user must mend it.
            if let Some((_, id)) = change.before.filter(|_| !change.was_gitlink())
                && seen.insert(id)
                && self.find_proven(ObjectKind::Blob, id)?.is_none()
            {
                return Err(GitError::Corrupt(id.to_string(), ObjectKind::Blob.as_str()));
            }
            if let Some((_, id)) = change.after.filter(|_| !change.is_gitlink())
                && seen.insert(id)
                && self.find_proven(ObjectKind::Blob, id)?.is_none()
            {
                found.push(FalseObject { id, kind: ObjectKind::Blob, change: Some(change) });
            }
        }
        Ok(found)
    }

    fn add_false_trees(
        &self,
        known: Option<Oid>,
        tree: Oid,
        found: &mut Vec<FalseObject>,
    ) -> Result<(), GitError> {
        let mut open = vec![(known, tree)];
        while let Some((known, tree)) = open.pop() {
            if known == Some(tree) {
                continue;
            }
            if self.find_proven(ObjectKind::Tree, tree)?.is_none() {
                found.push(FalseObject { id: tree, kind: ObjectKind::Tree, change: None });
                continue;
            }
            let old = known.map_or_else(|| Ok(Vec::new()), |known| self.folders_of(known))?;
            for (name, id) in self.folders_of(tree)? {
                open.push((old.iter().find(|(old, _)| *old == name).map(|(_, id)| *id), id));
            }
        }
        Ok(())
    }

    /// The content of an object, if it is what its id says.
    fn find_proven(&self, kind: ObjectKind, id: Oid) -> Result<Option<Vec<u8>>, GitError> {
        match self.read_object(kind, id) {
            Err(GitError::Corrupt(..)) => Ok(None),
            Ok(None) if self.loose_file(id).symlink_metadata().is_err() => {
                Err(GitError::Unknown(id.to_string(), kind.as_str()))
            }
            found => found,
        }
    }

    /// Removes the file of a false object, so that git writes it anew. One in a pack stays, and is an error.
    fn replace_false(&self, object: &FalseObject) -> Result<(), GitError> {
        if safe_files::remove(&self.loose_file(object.id)).is_err() {
            return Err(object.error());
        }
        // Where the index says that a file is unchanged, git does not read it again.
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

impl FalseObject {
    fn error(&self) -> GitError {
        GitError::Corrupt(self.id.to_string(), self.kind.as_str())
    }
}
