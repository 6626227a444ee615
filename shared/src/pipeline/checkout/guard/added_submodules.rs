//! Moves away submodules that a child added: their git directories, and repositories at their paths in the user's
//! checkouts. The settings of each run programs as soon as git looks into it.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::operations::StoppedOperation;
use crate::{
    git::{Repository, UsersCheckout, find_module_dirs, is_inner_path, move_aside},
    safe_files,
};

/// The git directories of submodules that existed below a git directory.
#[derive(Debug, Default)]
pub(super) struct Modules {
    git_dir: PathBuf,
    known: BTreeSet<PathBuf>,
}

impl Modules {
    pub(super) fn find(git_dir: &Path) -> Self {
        Self { git_dir: git_dir.to_owned(), known: find_module_dirs(git_dir) }
    }

    /// Moves submodules that were added: git runs programs of a submodule's configuration as soon as it looks into it.
    pub(super) fn move_new(&self) -> Vec<String> {
        let new = find_module_dirs(&self.git_dir).into_iter().filter(|path| !self.known.contains(path));
        new.map(|path| move_away(&path, &self.git_dir, &self.git_dir)).collect()
    }
}

/// The submodules that existed in the index of one of the user's checkouts, and the operation that is stopped there.
#[derive(Debug)]
pub(super) struct CheckoutLinks {
    repository: Repository,
    checkout: UsersCheckout,
    known: BTreeSet<Vec<u8>>,
    operation: StoppedOperation,
}

impl CheckoutLinks {
    pub(super) fn find(repository: &Repository) -> Vec<Self> {
        let checkouts = repository.users_checkouts().into_iter();
        let find = |checkout: UsersCheckout| {
            let operation = StoppedOperation::find(&repository.common_dir, &checkout.git_dir);
            let repository = repository.clone();
            let mut links = Self { repository, checkout, known: BTreeSet::new(), operation };
            links.known = links.list();
            links
        };
        checkouts.map(find).collect()
    }

    fn list(&self) -> BTreeSet<Vec<u8>> {
        let found = self.repository.list_gitlinks_at(&self.checkout.git_dir);
        found.unwrap_or_default().into_iter().collect()
    }

    /// Restores what a child changed, and returns messages about it.
    pub(super) fn restore(&self) -> Vec<String> {
        let mut found = self.move_new();
        found.extend(self.operation.restore());
        found
    }

    /// Moves repositories at the paths of submodules that were added to the index, because git looks into every
    /// submodule of the index and obeys the settings of the repository there.
    pub(super) fn move_new(&self) -> Vec<String> {
        let mut moved = Vec::new();
        // The summary names the others: what is outside of the checkout may be the user's.
        for path in self.list().difference(&self.known).filter(|path| is_inner_path(path)) {
            let link = self.checkout.top.join(OsStr::from_bytes(path)).join(".git");
            if safe_files::kind_of(&link).is_some() {
                moved.push(move_away(&link, &self.checkout.top, &self.repository.common_dir));
            }
        }
        moved
    }
}

/// Moves something that was added below `top` to a free place in a git directory.
pub(super) fn move_away(path: &Path, top: &Path, git_dir: &Path) -> String {
    let shown = path.strip_prefix(top).unwrap_or(path).display();
    match move_aside(git_dir, path) {
        Ok(kept) => {
            format!("{shown} was added while an agent or a command ran, and is kept in {}", kept.display())
        }
        Err(error) => {
            format!("{shown} was added while an agent or a command ran, and could not be moved away: {error}")
        }
    }
}
