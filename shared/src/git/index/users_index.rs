//! The indexes of the user's checkouts while children of a run work. A mark (`assume-unchanged`, `skip-worktree`) hides
//! later edits of the user, so one that appears meanwhile is cleared and named. What is staged there meanwhile, and a
//! `HEAD` that moves to another branch, may be the user's doing, so that is only named.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use crate::{
    git::{
        GitError, Repository, TreeChange, UsersCheckout, add_notice,
        files::saved_checkout::named,
        index::{
            hidden_files::clear_marks,
            index_format::{HiddenEntry, find_hidden},
        },
        locks,
        worktrees::worktree_git_dirs::is_own_git_dir,
    },
    message::visible,
    name::{ObjectFormat, Oid},
    safe_files::{self, ChangeStamp},
};

/// The marks in the indexes of all checkouts of the user, as they were before the first of the running children.
#[derive(Debug)]
pub struct UsersMarks {
    repository: Repository,
    indexes: Vec<MarkedIndex>,
}

/// The marked paths of one index.
#[derive(Debug)]
struct MarkedIndex {
    checkout: UsersCheckout,
    /// The index file when it was last read.
    stamp: Option<ChangeStamp>,
    marked: BTreeSet<Vec<u8>>,
    /// In a sparse checkout, git itself sets `skip-worktree`.
    is_sparse: bool,
}

impl UsersMarks {
    /// Records the present marks. An index that has not changed since `last` is not read again.
    #[must_use]
    pub fn record(repository: &Repository, last: Option<Self>) -> Self {
        let mut known = last.map(|last| last.indexes).unwrap_or_default();
        let own = repository.worktree.clone().filter(|_| !is_own_git_dir(&repository.git_dir));
        let own = own.map(|top| UsersCheckout { git_dir: repository.git_dir.clone(), top });
        let read = |checkout: UsersCheckout| {
            let stamp = stamp_of(&checkout.git_dir);
            let at = known.iter().position(|index| index.checkout == checkout && index.stamp == stamp);
            at.map(|at| known.swap_remove(at))
                .unwrap_or_else(|| MarkedIndex::read(checkout, stamp, repository.format))
        };
        let indexes = repository.users_checkouts().into_iter().chain(own).map(read).collect();
        Self { repository: repository.clone(), indexes }
    }

    /// Clears marks that have appeared since, and names them.
    pub fn clear_new(&mut self) {
        for index in &mut self.indexes {
            let stamp = stamp_of(&index.checkout.git_dir);
            if stamp == index.stamp {
                continue;
            }
            let new = index.find_new(self.repository.format);
            if !new.is_empty() {
                let cleared = clear(&self.repository, &index.checkout, &new);
                let paths = new.iter().map(|path| visible(&String::from_utf8_lossy(path))).collect();
                let done = match cleared {
                    Ok(()) => "cleared".to_owned(),
                    Err(error) => format!("could not be cleared: {error}"),
                };
                add_notice(format!(
                    "during the run, a mark that hides changes (assume-unchanged or skip-worktree) was set for {} in {}; it was {done}",
                    named(&paths),
                    describe(&self.repository, &index.checkout),
                ));
            }
            index.stamp = stamp_of(&index.checkout.git_dir);
        }
    }
}

impl MarkedIndex {
    fn read(checkout: UsersCheckout, stamp: Option<ChangeStamp>, format: ObjectFormat) -> Self {
        let is_sparse = safe_files::kind_of(&checkout.git_dir.join("info/sparse-checkout")).is_some();
        let mut index = Self { checkout, stamp, marked: BTreeSet::new(), is_sparse };
        index.marked = index.find_new(format);
        index
    }

    /// The paths that are marked and were not.
    fn find_new(&self, format: ObjectFormat) -> BTreeSet<Vec<u8>> {
        let hidden = find_hidden(&self.checkout.git_dir.join("index"), format).unwrap_or_default();
        let is_new =
            |entry: &HiddenEntry| (entry.is_assumed || !self.is_sparse) && !self.marked.contains(&entry.path);
        hidden.into_iter().filter(is_new).map(|entry| entry.path).collect()
    }
}

fn stamp_of(git_dir: &Path) -> Option<ChangeStamp> {
    ChangeStamp::at(&git_dir.join("index"))
}

/// Clears all marks of these paths.
fn clear(
    repository: &Repository,
    checkout: &UsersCheckout,
    paths: &BTreeSet<Vec<u8>>,
) -> Result<(), GitError> {
    let Some(at) = repository.at_checkout(&checkout.top)? else {
        return Err(GitError::Unknown(checkout.top.display().to_string(), "worktree"));
    };
    if at.is_index_held() {
        return Err(locks::held(&at.git_dir.join("index.lock")));
    }
    at.write_index(|index| clear_marks(paths, || index.of(at.change("update-index")).dir(at.top())))
}

/// Whether the run works in the checkout that it was started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnCheckout {
    /// It works there.
    Used,
    /// Its agents work elsewhere, and the checkout is the user's.
    LeftAlone,
}

/// `HEAD` and what is staged in one of the user's checkouts.
#[derive(Debug)]
pub(in crate::git) struct StagedState {
    checkout: UsersCheckout,
    /// The ref that `HEAD` leads to; `None` if it is detached or in a reftable.
    branch: Option<String>,
    /// `None` during a merge with conflicts.
    staged: Option<StagedFiles>,
}

#[derive(Debug)]
struct StagedFiles {
    /// The tree of the index.
    tree: Oid,
    /// The differences between `HEAD` and the index.
    changes: Vec<TreeChange>,
}

impl StagedState {
    /// Reads the state of all checkouts of the user.
    pub(in crate::git) fn read_all(repository: &Repository, own: OwnCheckout) -> Vec<Self> {
        let left_alone = repository
            .worktree
            .clone()
            .filter(|_| own == OwnCheckout::LeftAlone && !is_own_git_dir(&repository.git_dir));
        let left_alone = left_alone.map(|top| UsersCheckout { git_dir: repository.git_dir.clone(), top });
        let checkouts = left_alone.into_iter().chain(repository.users_checkouts());
        checkouts.map(|checkout| Self::read(repository, checkout)).collect()
    }

    fn read(repository: &Repository, checkout: UsersCheckout) -> Self {
        let head = safe_files::read(&checkout.git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.strip_prefix(b"ref: ").map(|name| String::from_utf8_lossy(name).trim().to_owned());
        let staged = StagedFiles::read(repository, &checkout.top).ok().flatten();
        Self { checkout, branch, staged }
    }

    /// Messages about what has changed since.
    pub(in crate::git) fn compare(&self, repository: &Repository) -> Vec<String> {
        let now = Self::read(repository, self.checkout.clone());
        let place = describe(repository, &self.checkout);
        let mut messages = Vec::new();
        if now.branch != self.branch {
            let shown = |branch: &Option<String>| {
                let name = branch.as_deref().map(|name| name.strip_prefix("refs/heads/").unwrap_or(name));
                name.map_or_else(|| "a commit".to_owned(), visible)
            };
            let (before, after) = (shown(&self.branch), shown(&now.branch));
            messages.push(format!("HEAD of {place} was switched from {before} to {after} during the run"));
        }
        if let (Some(before), Some(after)) = (&self.staged, now.staged) {
            let new = before.find_new(repository, &after);
            if !new.is_empty() {
                let verb = if new.len() == 1 { "was" } else { "were" };
                messages.push(format!("{} {verb} staged in {place} during the run", named(&new)));
            }
        }
        messages
    }
}

impl StagedFiles {
    /// `None` if there is no commit yet.
    fn read(repository: &Repository, top: &Path) -> Result<Option<Self>, GitError> {
        let Some(at) = repository.at_checkout(top)? else { return Ok(None) };
        let Some(head) = at.find_commit("HEAD")? else { return Ok(None) };
        let tree = at.staged()?;
        Ok(Some(Self { tree, changes: at.changes(at.tree_of(head)?, tree)? }))
    }

    /// The paths that are staged `now` and were not. If only the branch has moved, nothing was staged.
    fn find_new(&self, repository: &Repository, now: &Self) -> BTreeSet<String> {
        let written = repository.changes(self.tree, now.tree).unwrap_or_default();
        let is_new = |change: &&TreeChange| {
            let is_known = |known: &TreeChange| known.path == change.path && known.after == change.after;
            written.iter().any(|written| written.path == change.path) && !self.changes.iter().any(is_known)
        };
        now.changes.iter().filter(is_new).map(TreeChange::shown).collect()
    }
}

/// The checkout in which the run was started, or the main one, needs no path.
fn describe(repository: &Repository, checkout: &UsersCheckout) -> String {
    let is_main = checkout.git_dir == repository.common_dir || checkout.git_dir == repository.git_dir;
    let path: PathBuf = checkout.top.clone();
    if is_main { "your checkout".to_owned() } else { format!("your worktree {}", path.display()) }
}
