//! Ignored files that an attempt leaves in the user's checkout: no commit holds them, but the tests there see them.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    git::{GitError, Repository},
    name::Oid,
};

/// So many are named.
const MOST: usize = 50;

/// What git ignores in a checkout, task by task. Copies share it: what one task left is there before the next.
#[derive(Debug, Clone, Default)]
pub struct IgnoredFiles(Arc<Mutex<Looks>>);

#[derive(Debug, Default)]
struct Looks {
    /// When the task began.
    before: BTreeSet<String>,
    /// When it was last looked at. Nobody asks git for it twice.
    last: Option<BTreeSet<String>>,
    /// What came in between.
    new: Vec<String>,
}

impl IgnoredFiles {
    /// A task begins in a worktree that holds `tree`.
    pub fn begin(&self, repository: &Repository, tree: Oid) -> Result<(), GitError> {
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        looks.before = match looks.last.take() {
            Some(last) => last,
            None => list(repository, tree)?,
        };
        looks.new.clear();
        Ok(())
    }

    /// What is ignored in a worktree that holds `tree` now and was not there when the task began, outside folders that were
    /// ignored then. What lies in `own`, a folder of ours, is not named.
    pub fn look(&self, repository: &Repository, tree: Oid, own: &str) -> Result<Vec<String>, GitError> {
        let now = list(repository, tree)?;
        let mut looks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = format!("{}/", own.trim_matches('/'));
        let is_known = |path: &&String| {
            let is_in = |folder: &String| folder.ends_with('/') && path.starts_with(folder.as_str());
            path.starts_with(&own)
                || own.starts_with(path.as_str())
                || looks.before.contains(*path)
                || looks.before.iter().any(is_in)
        };
        looks.new = now.iter().filter(|path| !is_known(path)).take(MOST).cloned().collect();
        looks.last = Some(now);
        Ok(looks.new.clone())
    }

    /// What the last look found.
    #[must_use]
    pub fn found(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).new.clone()
    }
}

fn list(repository: &Repository, tree: Oid) -> Result<BTreeSet<String>, GitError> {
    let paths = repository.list_matching_ignored(tree)?;
    Ok(paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}
