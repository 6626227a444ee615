//! Where this process left the refs that it owns. While a child runs, the disk may say something else.

use super::{GitError, Repository, owned::OwnedRefs};
use crate::name::{BranchName, Oid};

impl Repository {
    /// Where this process left a ref that it owns; `Some(None)` where it has none of this name, `None` if it is not owned.
    #[must_use]
    pub fn find_owned(&self, name: &str) -> Option<Option<Oid>> {
        let owned = OwnedRefs::of(self);
        let table = owned.lock();
        table.owns(name).then(|| table.values.get(name).copied())
    }

    /// The tip of a branch: the value that this process left, if it owns the branch, else what is on disk.
    pub fn find_own_branch(&self, branch: &BranchName) -> Result<Option<Oid>, GitError> {
        let name = branch.to_ref();
        match self.find_owned(&name) {
            Some(known) => Ok(known),
            None => self.find_ref(&name),
        }
    }
}
