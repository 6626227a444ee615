//! Submodules that a child added to an index. `git status` looks into every submodule of the index and obeys the settings
//! of the repository there, and the commands of a run cannot add files around a submodule that is ignored. A task does not
//! add submodules, so the index is restored. A repository that is not ignored is found by the next snapshot.

use std::collections::BTreeSet;

use super::{GitError, Repository, TreeChange};

impl Repository {
    /// Takes all submodules out of the index that are not `known`, and returns their paths.
    pub fn take_out_gitlinks(&self, known: &BTreeSet<Vec<u8>>) -> Result<Vec<Vec<u8>>, GitError> {
        let Some(commit) = self.head.commit.filter(|_| self.worktree.is_some()) else {
            return Ok(Vec::new());
        };
        // An index that cannot be read is reported elsewhere.
        let mut new = self.list_gitlinks().unwrap_or_default();
        new.retain(|path| !known.contains(path));
        let changes = new.iter().map(|path| TreeChange { path: path.clone(), before: None, after: None });
        self.stage_as_in(&commit.to_string(), &changes.collect::<Vec<_>>())?;
        Ok(new)
    }
}
