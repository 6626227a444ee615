//! Saves the uncommitted work of a user's checkout. Each agent can reset, clean or overwrite it by mistake, also if it works
//! elsewhere. So the work is saved under a ref before the first child process starts. At the end of the run the ref is
//! removed if the work is still there or committed. The work in a submodule is saved in the repository of the submodule.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{
    git::{
        GitError, RefMove, Repository, SettingsChange, Signing, Stamp, TreeChange,
        files::snapshot::WorktreeSnapshot,
    },
    message::visible,
    name::{Oid, saved_ref},
    safe_files::ChangeStamp,
};

/// How many paths a message names.
const MAX_NAMED: usize = 3;
/// How deep nested submodules are saved.
const MAX_DEPTH: usize = 8;

/// The uncommitted work of a checkout, as it was before the first child process.
#[derive(Debug)]
pub struct SavedCheckout {
    /// The repository, opened in that checkout.
    repository: Repository,
    /// How messages name the checkout.
    place: String,
    /// How a message names the command that restores the work.
    restored_by: String,
    /// How it names the ref if the command would refuse to replace later versions.
    kept_in: String,
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
    /// Untracked repositories, whose files are not saved.
    untracked_repositories: Vec<Vec<u8>>,
}

/// The uncommitted work of a checkout and of its submodules.
#[derive(Debug, Default)]
pub struct SavedCheckouts {
    /// The checkout, if it has uncommitted work, and the submodules that have.
    pub checkouts: Vec<SavedCheckout>,
    /// Messages about work that could not be saved.
    pub failures: Vec<String>,
}

/// Saved versions that are neither in the checkout nor committed.
struct LostVersions<T> {
    /// The file is missing or as it is committed.
    undone: T,
    /// The file has another content, by a child process or by the user.
    changed: T,
    /// A repository inside the checkout is missing, or at another commit. It is not saved.
    repositories: T,
}

impl Repository {
    /// Saves the uncommitted work of this checkout, which messages call `place`, and of its submodules.
    #[must_use]
    pub fn save_uncommitted(&self, place: &str) -> SavedCheckouts {
        let mut saved = SavedCheckouts::default();
        self.save_into(&mut saved, place, None);
        self.save_submodules(&mut saved, Path::new(""), MAX_DEPTH);
        saved
    }

    fn save_into(&self, saved: &mut SavedCheckouts, place: &str, submodule: Option<&str>) {
        match self.save_checkout(place, submodule) {
            Ok(checkout) => saved.checkouts.extend(checkout),
            Err(error) => saved.failures.push(not_saved(place, &error)),
        }
    }

    /// Saves the submodules with uncommitted changes. `folder` is the path of this checkout from the outermost one.
    fn save_submodules(&self, saved: &mut SavedCheckouts, folder: &Path, depth: usize) {
        let tree = self.head.commit.and_then(|commit| self.tree_of(commit).ok());
        let paths = match self.dirty_submodules(tree) {
            Ok(paths) => paths,
            Err(error) => {
                saved.failures.push(not_saved("submodules", &error));
                return;
            }
        };
        for path in paths {
            let path = Path::new(OsStr::from_bytes(&path));
            let shown = visible(&folder.join(path).to_string_lossy());
            let place = format!("the submodule '{shown}'");
            // From now on its settings are fixed: a child may change them before they are used again.
            let open = || {
                let inner = Self::open_at(&self.top().join(path))?;
                inner.freeze_settings(SettingsChange::Accepted)?;
                Ok::<Self, GitError>(inner)
            };
            match open() {
                Ok(inner) => {
                    inner.save_into(saved, &place, Some(&shown));
                    if depth > 0 {
                        inner.save_submodules(saved, &folder.join(path), depth - 1);
                    }
                }
                Err(error) => saved.failures.push(not_saved(&place, &error)),
            }
        }
    }

    /// Saves the uncommitted work of this checkout, or of the submodule at this path; `None` if there is none that git
    /// can store.
    fn save_checkout(&self, place: &str, submodule: Option<&str>) -> Result<Option<SavedCheckout>, GitError> {
        let index = self.index_stamp();
        let WorktreeSnapshot { tree: files, left_out, .. } = self.take_snapshot()?;
        // An index with conflicts cannot be written as a tree.
        let staged = self.staged().ok();
        let parent = self.require_commit("HEAD")?;
        let head = self.tree_of(parent)?;
        let changes = self.changes(head, files)?;
        let new = changes.iter().filter(|change| change.is_gitlink() && !change.was_gitlink());
        let mut untracked_repositories: Vec<Vec<u8>> = new.map(|change| change.path.clone()).collect();
        // Those without a commit cannot be added.
        let is_repository =
            |path: &Vec<u8>| self.top().join(OsStr::from_bytes(path)).join(".git").symlink_metadata().is_ok();
        untracked_repositories.extend(left_out.into_iter().filter(is_repository));
        let is_unchanged = changes.is_empty() && staged.is_none_or(|staged| staged == head);
        if is_unchanged && untracked_repositories.is_empty() {
            return Ok(None);
        }
        let write = |what: &str, tree, parents: &[Oid]| {
            let message = format!("{what} of '{}' before a run\n", self.top().display());
            self.write_commit_with_parents(tree, parents, &message, Signing::No)
        };
        // Two parents, as in a stash, so that `git stash apply` can restore it.
        let index_commit = write("index", staged.unwrap_or(head), &[parent])?;
        let commit = write("worktree", files, &[parent, index_commit])?;
        let name = saved_ref("checkout", "worktree", commit);
        let is_new = self.save_commit(&name, commit)?;
        let dir = submodule.map(|path| format!(" -C '{path}'")).unwrap_or_default();
        let there = submodule.map(|_| " there").unwrap_or_default();
        let stamps = changes.iter().map(|change| stamp_of(self.top(), change)).collect();
        Ok(Some(SavedCheckout {
            repository: self.clone(),
            place: place.to_owned(),
            restored_by: format!("they are saved, restore them with: git{dir} stash apply"),
            kept_in: format!("the versions from its start are kept{there} in"),
            name,
            commit,
            is_new,
            head,
            files,
            staged,
            stamps,
            index,
            untracked_repositories,
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

    /// The first untracked repository in this checkout: its files and commits are not saved.
    #[must_use]
    pub fn find_untracked_repository(&self) -> Option<String> {
        self.untracked_repositories.first().map(|path| visible(&String::from_utf8_lossy(path)))
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
                let kept = self.keep(&self.restored_by);
                return Some(format!(
                    "{} could not be compared with its state before the run ({error}); {kept}",
                    self.place
                ));
            }
        };
        let LostVersions { undone, changed, repositories } = found;
        let repositories = (!repositories.is_empty()).then(|| {
            let place = &self.place;
            format!(
                "repositories in {place} are missing or at another commit than when the run began, and are not saved: {}",
                named(&repositories)
            )
        });
        let words = self.compare_files(&undone, &changed);
        if words.is_none() {
            self.remove();
        }
        let all: Vec<String> = words.into_iter().chain(repositories).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// A message about saved versions of files that are neither there nor committed.
    fn compare_files(&self, undone: &BTreeSet<String>, changed: &BTreeSet<String>) -> Option<String> {
        let place = &self.place;
        match (undone.is_empty(), changed.is_empty()) {
            (true, true) => None,
            (true, false) => Some(format!(
                "uncommitted files in {place} changed since the run began ({}); {}",
                named(changed),
                self.keep(&self.kept_in)
            )),
            (false, true) => Some(format!(
                "uncommitted changes in {place} were undone during the run ({}); {}",
                named(undone),
                self.keep(&self.restored_by)
            )),
            (false, false) => Some(format!(
                "during the run, uncommitted changes in {place} were undone ({}) and other uncommitted files changed ({}); {}",
                named(undone),
                named(changed),
                self.keep(&self.kept_in)
            )),
        }
    }

    /// Whether no changed file and no index entry was written since, as far as can be told without git.
    fn is_untouched(&self) -> bool {
        let top = self.repository.top();
        self.index == self.repository.index_stamp()
            && self.stamps.iter().all(|(path, stamp)| ChangeStamp::at(&top.join(path)) == *stamp)
    }

    /// The paths whose saved versions are gone and not committed.
    fn find_lost(&self) -> Result<LostVersions<BTreeSet<String>>, GitError> {
        let repository = &self.repository;
        let head_now = repository.tree_of(repository.require_commit("HEAD")?)?;
        let now = repository.take_snapshot()?.tree;
        let mut lost = self.compare_trees(self.files, now, &[self.head, head_now], head_now)?;
        // A file that is ignored by now is in no tree.
        let stamps: HashMap<&[u8], _> =
            self.stamps.iter().map(|(path, stamp)| (path.as_os_str().as_bytes(), stamp)).collect();
        let find =
            |change: &TreeChange| ChangeStamp::at(&repository.top().join(OsStr::from_bytes(&change.path)));
        let (ignored, undone): (Vec<_>, Vec<_>) =
            lost.undone.into_iter().partition(|change| change.after.is_none() && find(change).is_some());
        lost.undone = undone;
        let is_written = |change: &TreeChange| stamps.get(&*change.path).copied() != Some(&find(change));
        lost.changed.extend(ignored.into_iter().filter(is_written));
        if let (Some(staged), Ok(staged_now)) = (self.staged, repository.staged()) {
            let differing = |from, to| repository.changes(from, to).map(paths_of);
            let elsewhere = differing(staged, now)?;
            // Not compared with the present commit: the user may have committed a later version than the staged one.
            let mut of_index = self.compare_trees(staged, staged_now, &[self.head], head_now)?;
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
        Ok(LostVersions { undone, changed, repositories: shown(&lost.repositories) })
    }

    /// The paths that were changed in the tree `saved`, and that are different in `now`. Versions that are committed by
    /// now are not among them. Those that are missing or as in one of `commits` count as undone.
    fn compare_trees(
        &self,
        saved: Oid,
        now: Oid,
        commits: &[Oid],
        head_now: Oid,
    ) -> Result<LostVersions<Vec<TreeChange>>, GitError> {
        let changes = |from, to| self.repository.changes(from, to).map(paths_of);
        let (was_changed, uncommitted) = (changes(self.head, saved)?, changes(head_now, saved)?);
        let since: Result<Vec<_>, GitError> = commits.iter().map(|commit| changes(*commit, now)).collect();
        let since = since?;
        let mut lost = self.repository.changes(saved, now)?;
        lost.retain(|change| was_changed.contains(&change.path) && uncommitted.contains(&change.path));
        // The tree has only the commit of a repository.
        let (repositories, lost): (Vec<_>, Vec<_>) = lost.into_iter().partition(TreeChange::was_gitlink);
        let (undone, changed) = lost.into_iter().partition(|change| {
            change.after.is_none() || since.iter().any(|changed| !changed.contains(&change.path))
        });
        Ok(LostVersions { undone, changed, repositories })
    }

    /// Makes sure that the ref exists: an agent may have deleted it. Returns `words` and its name.
    fn keep(&self, words: &str) -> String {
        let name = &self.name;
        self.repository.relink_missing_objects([self.commit].into_iter());
        match self.repository.save_commit(name, self.commit) {
            Ok(_) => format!("{words} {name}"),
            Err(_) => "the versions from its start could not be saved".to_owned(),
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

fn not_saved(place: &str, error: &GitError) -> String {
    format!("the uncommitted changes in {place} are not saved: {error}")
}

/// Lists the first of these paths.
pub(in crate::git) fn named(lost: &BTreeSet<String>) -> String {
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
    let stamp = ChangeStamp::at(&top.join(&path));
    (path, stamp)
}
