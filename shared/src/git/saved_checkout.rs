//! Saves the uncommitted work of a user's checkout. Each agent can reset, clean or overwrite it by mistake, also if it works
//! elsewhere. So the work is saved under a ref before the first child process starts. At the end of the run the ref is
//! removed if the work is still there or committed.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{GitError, RefMove, Repository, Signing, Stamp, TreeChange};
use crate::{name::Oid, safe_files::ChangeStamp};

/// The folder of these refs. `worktree-` tells `git arborist cleanup restore` that files were saved.
const FOLDER: &str = "refs/arborist/saved/checkout/worktree-";
/// How many paths a message names.
const MAX_NAMED: usize = 3;
/// How a message names the command that restores the work.
const RESTORED_BY: &str = "they are saved, restore them with: git stash apply";
/// How it names the ref if the command would refuse to replace later versions.
const KEPT_IN: &str = "the versions from its start are kept in";

/// The uncommitted work of a checkout, as it was before the first child process.
#[derive(Debug)]
pub struct SavedCheckout {
    /// The repository, opened in that checkout.
    repository: Repository,
    /// How messages name the checkout.
    place: String,
    /// The ref that holds the work.
    name: String,
    /// The commit of the work, in the form of a stash.
    commit: Oid,
    /// Whether this run made the ref. An older one may have been named to the user, and stays.
    is_new: bool,
    /// The tree of `HEAD`.
    head: Oid,
    /// The tree of the worktree.
    files: Oid,
    /// The tree of the index. `None` during a merge with conflicts.
    staged: Option<Oid>,
    /// The stamps of all files that differed from `HEAD`.
    stamps: Vec<(PathBuf, Option<ChangeStamp>)>,
    index: Option<Stamp>,
}

/// Saved versions that are neither in the checkout nor committed.
struct LostVersions<T> {
    /// The file is missing or as it is committed.
    undone: T,
    /// The file has another content, by a child process or by the user.
    changed: T,
}

impl Repository {
    /// Saves the uncommitted work of this checkout, which messages call `place`; `None` if there is none that git can store.
    pub fn save_uncommitted(&self, place: &str) -> Result<Option<SavedCheckout>, GitError> {
        let index = self.index_stamp();
        let files = self.take_snapshot()?.tree;
        // An index with conflicts cannot be written as a tree.
        let staged = self.staged().ok();
        let parent = self.require_commit("HEAD")?;
        let head = self.tree_of(parent)?;
        let changes = self.changes(head, files)?;
        if changes.is_empty() && staged.is_none_or(|staged| staged == head) {
            return Ok(None);
        }
        let write = |what: &str, tree, parents: &[Oid]| {
            let message = format!("{what} of '{}' before a run\n", self.top().display());
            self.write_commit_with_parents(tree, parents, &message, Signing::No)
        };
        // Two parents, as in a stash, so that `git stash apply` can restore it.
        let index_commit = write("index", staged.unwrap_or(head), &[parent])?;
        let commit = write("worktree", files, &[parent, index_commit])?;
        let name = format!("{FOLDER}{}", commit.short());
        let is_new = self.find_ref(&name)?.is_none();
        if is_new {
            let made = RefMove { name: &name, new: Some(commit), old: None };
            self.move_refs(&[made], "arborist: saved before a run")?;
        }
        let stamps = changes.iter().map(|change| stamp_of(self.top(), change)).collect();
        Ok(Some(SavedCheckout {
            repository: self.clone(),
            place: place.to_owned(),
            name,
            commit,
            is_new,
            head,
            files,
            staged,
            stamps,
            index,
        }))
    }
}

impl SavedCheckout {
    /// The paths with uncommitted changes that are as they were saved. The others were changed by the user's own tests
    /// if only these have run since.
    pub fn find_unchanged(&self) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let repository = &self.repository;
        let mut paths = paths_of(repository.changes(self.head, self.files)?);
        if let Some(staged) = self.staged {
            paths.extend(paths_of(repository.changes(self.head, staged)?));
        }
        let changed = paths_of(repository.changes(self.files, repository.take_snapshot()?.tree)?);
        Ok(&paths - &changed)
    }

    /// Whether it is the checkout of this repository.
    #[must_use]
    pub fn is_of(&self, repository: &Repository) -> bool {
        self.repository.top() == repository.top()
    }

    /// Compares the checkout at the end of the run. Returns a message if saved versions of files are neither there nor
    /// committed; otherwise the ref is removed.
    pub fn compare(&self) -> Option<String> {
        if self.is_untouched() {
            self.remove();
            return None;
        }
        let found = match self.find_lost() {
            Ok(found) => found,
            Err(error) => {
                let kept = self.keep(RESTORED_BY);
                return Some(format!(
                    "your checkout could not be compared with what it was before the run ({error}); {kept}"
                ));
            }
        };
        let LostVersions { undone, changed } = found;
        let place = &self.place;
        match (undone.is_empty(), changed.is_empty()) {
            (true, true) => {
                self.remove();
                None
            }
            (true, false) => Some(format!(
                "uncommitted files in {place} changed since the run began ({}); {}",
                named(&changed),
                self.keep(KEPT_IN)
            )),
            (false, true) => Some(format!(
                "uncommitted changes in {place} were undone during the run ({}); {}",
                named(&undone),
                self.keep(RESTORED_BY)
            )),
            (false, false) => Some(format!(
                "uncommitted changes in {place} were undone during the run ({}), and others changed since it \
                 began ({}); {}",
                named(&undone),
                named(&changed),
                self.keep(KEPT_IN)
            )),
        }
    }

    /// Whether no changed file and no index entry was written since, as far as can be told without git.
    fn is_untouched(&self) -> bool {
        let top = self.repository.top();
        self.index == self.repository.index_stamp()
            && self.stamps.iter().all(|(path, stamp)| find_stamp(&top.join(path)) == *stamp)
    }

    /// The paths whose saved versions are gone and not committed.
    fn find_lost(&self) -> Result<LostVersions<BTreeSet<String>>, GitError> {
        let repository = &self.repository;
        let head_now = repository.tree_of(repository.require_commit("HEAD")?)?;
        let now = repository.take_snapshot()?.tree;
        let mut lost = self.compare_trees((self.files, now), &[self.head, head_now], head_now)?;
        if let (Some(staged), Ok(staged_now)) = (self.staged, repository.staged()) {
            let differing = |from, to| repository.changes(from, to).map(paths_of);
            let elsewhere = differing(staged, now)?;
            // Not compared with the present commit: the user may have committed a later version than the staged one.
            let mut of_index = self.compare_trees((staged, staged_now), &[self.head], head_now)?;
            of_index.undone.retain(|change| elsewhere.contains(&change.path));
            // The user may have staged or committed the version of the worktree.
            let (unsaved, uncommitted) =
                (differing(self.files, staged_now)?, differing(head_now, staged_now)?);
            of_index.changed.retain(|change| {
                [&elsewhere, &unsaved, &uncommitted].iter().all(|paths| paths.contains(&change.path))
            });
            lost.undone.append(&mut of_index.undone);
            lost.changed.append(&mut of_index.changed);
        }
        let shown = |changes: &[TreeChange]| changes.iter().map(TreeChange::shown).collect::<BTreeSet<_>>();
        let undone = shown(&lost.undone);
        let changed = &shown(&lost.changed) - &undone;
        Ok(LostVersions { undone, changed })
    }

    /// The paths that were changed in the tree `saved`, and that are different in `now`. Versions that are committed by now
    /// are not among them. Those that are missing or as in one of `commits` count as undone.
    fn compare_trees(
        &self,
        (saved, now): (Oid, Oid),
        commits: &[Oid],
        head_now: Oid,
    ) -> Result<LostVersions<Vec<TreeChange>>, GitError> {
        let changes = |from, to| self.repository.changes(from, to).map(paths_of);
        let (was_changed, uncommitted) = (changes(self.head, saved)?, changes(head_now, saved)?);
        let since: Result<Vec<_>, GitError> = commits.iter().map(|commit| changes(*commit, now)).collect();
        let since = since?;
        let mut lost = self.repository.changes(saved, now)?;
        lost.retain(|change| was_changed.contains(&change.path) && uncommitted.contains(&change.path));
        let (undone, changed) = lost.into_iter().partition(|change| {
            change.after.is_none() || since.iter().any(|changed| !changed.contains(&change.path))
        });
        Ok(LostVersions { undone, changed })
    }

    /// Makes sure that the ref exists: an agent may have deleted it. Returns `words` and its name.
    fn keep(&self, words: &str) -> String {
        let name = &self.name;
        self.repository.put_back_objects([self.commit].into_iter());
        let made = RefMove { name, new: Some(self.commit), old: None };
        let is_kept = match self.repository.find_ref(name) {
            Ok(None) => self.repository.move_refs(&[made], "arborist: saved before a run").is_ok(),
            found => found.is_ok_and(|found| found == Some(self.commit)),
        };
        match is_kept {
            true => format!("{words} {name}"),
            false => "the versions from its start could not be saved".to_owned(),
        }
    }

    /// Removes the ref. If that fails, there is one saved ref too many, which cleanup removes one day.
    fn remove(&self) {
        if self.is_new {
            let gone = RefMove { name: &self.name, new: None, old: Some(self.commit) };
            let _ = self.repository.move_refs(&[gone], "arborist: still in the checkout");
        }
    }
}

/// Lists the first of these paths.
pub(super) fn named(lost: &BTreeSet<String>) -> String {
    let mut names: Vec<String> = lost.iter().take(MAX_NAMED).cloned().collect();
    let more = lost.len().saturating_sub(MAX_NAMED);
    names.extend((more > 0).then(|| format!("and {more} more")));
    names.join(", ")
}

fn paths_of(changes: Vec<TreeChange>) -> BTreeSet<Vec<u8>> {
    changes.into_iter().map(|change| change.path).collect()
}

fn stamp_of(top: &Path, change: &TreeChange) -> (PathBuf, Option<ChangeStamp>) {
    let path = PathBuf::from(OsStr::from_bytes(&change.path));
    let stamp = find_stamp(&top.join(&path));
    (path, stamp)
}

fn find_stamp(path: &Path) -> Option<ChangeStamp> {
    path.symlink_metadata().ok().map(|found| ChangeStamp::of(&found))
}
