//! Fills a worktree with a task's branch. In a recycled lane only the differences are written, and ignored files, such
//! as build caches, stay.

use std::{
    collections::HashMap,
    ffi::OsString,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use super::{Pool, WorktreeError, WorktreeNote, claim::WorktreeOrigin, survey};
use crate::{
    git::{
        Checkout, GitError, HiddenMarks, NewCommit, OperationInProgress, ReachabilityCheck, Repository,
        Signing, TreeChange, UncommittedPath, Worktree, checkout_locks, has_valid_head, has_valid_index,
        target_of,
    },
    message::visible,
    mutex::MutexExt,
    name::{BranchName, Oid, saved_ref},
    safe_files,
};

/// State of interrupted operations that a killed git or an agent may have left in a worktree.
const HALF_DONE: [&str; 3] = ["rebase-merge", "rebase-apply", "sequencer"];
/// Up to this many paths are given to git individually. It matches each of them against every file, so more would cost
/// as much as a complete checkout.
const FEW: usize = 50;
/// Settings that make git use the sparse-checkout file.
pub(super) const SPARSE: [&str; 2] = ["core.sparseCheckout=true", "core.sparseCheckoutCone=false"];

impl Pool {
    /// Checks out `branch` in a free lane. The lane stays free until the last step, which puts `HEAD` on the branch.
    pub(super) fn fill(
        &self,
        lane: &Repository,
        branch: &BranchName,
        origin: WorktreeOrigin,
    ) -> Result<Vec<WorktreeNote>, WorktreeError> {
        let tip = lane.require_commit(&branch.to_ref())?;
        let _head_exemption = lane.exempt_git_dir();
        clear_locks(lane);
        // The last agent there could write the index.
        lane.make_index_known(HiddenMarks::Cleared)?;
        // A lane that was never filled completely has no index, and no work of anyone.
        let was_filled = origin == WorktreeOrigin::Reused && lane.git_dir.join("index").exists();
        let head = lane.head.commit.filter(|_| origin == WorktreeOrigin::Reused);
        // A commit that no branch has is saved, and git needs time to find out whether a ref still leads to it. Meanwhile the
        // files are compared.
        let unsaved = match head {
            Some(head) if !self.is_held_by_branch(&lane.dir, head)? => Some(head),
            _ => None,
        };
        let reachability_check = unsaved.map(|head| (head, self.repository.start_reachability_check(head)));
        let is_clean = !was_filled || is_clean_at(lane, head)?;
        if !is_clean {
            lane.move_closed_aside()?;
        }
        let changed_paths = if is_clean { Vec::new() } else { lane.changed_paths()? };
        refuse_dirty_submodules(lane, &changed_paths)?;
        let changes = match head.filter(|_| was_filled) {
            Some(before) => lane.changes(lane.tree_of(before)?, lane.tree_of(tip)?)?,
            None => Vec::new(),
        };
        let clears_untracked =
            !changed_paths.is_empty() || changes.iter().any(|change| change.is_called(".gitignore"));
        let clears_ignored = was_filled && !self.options.settings.keep.iter().any(|pattern| pattern == "*");
        if clears_untracked || clears_ignored {
            refuse_inner(lane, &changed_paths)?;
        }
        let mut notes = Vec::new();
        if !changed_paths.is_empty() {
            notes.extend(self.save(lane, &survey::name_of(&lane.dir))?);
        }
        if let Some((head, check)) = reachability_check {
            notes.extend(self.save_unheld(&survey::name_of(&lane.dir), head, check)?);
        }
        end_operations(lane);
        // If only `HEAD` is left to be moved to the branch, git does that itself as its last step.
        let is_last = !clears_untracked && !clears_ignored && lane.list_submodules(tip)?.is_empty();
        let checkout = if is_last { Checkout::Branch(branch) } else { Checkout::Commit(tip) };
        // All files have just been compared, and a checkout would compare them again. So if only a few differ, write
        // them individually. A checkout is still needed to end a merge or the like, and if attributes change.
        let is_light = is_last
            && was_filled
            && changes.iter().all(|change| !change.concerns_gitlink() && !change.is_called(".gitattributes"))
            && OperationInProgress::find_operation(&lane.git_dir).is_none()
            && !self.leaves_out(lane);
        let is_brought = is_light
            && (is_clean && lane.update_without_git(tip, &changes)?
                || changes.len() <= FEW && lane.restore_paths_from(tip, &changes, self.smudging()).is_ok());
        if !is_brought {
            self.write_files(lane, checkout)?;
        }
        if clears_untracked {
            lane.remove_untracked()?;
        }
        if clears_ignored {
            lane.remove_ignored(&self.options.settings.keep)?;
        }
        if !is_last {
            notes.extend(self.fill_submodules(lane, branch, tip)?);
        }
        if lane.find_head_branch()?.as_ref() != Some(branch) {
            lane.attach(branch)?;
        }
        Ok(notes)
    }

    /// Whether a branch is known to hold the commit that is checked out in a free lane. If this run has not used the lane,
    /// the branch of its last task is looked for: for git, every further lane would be a walk from all refs. It walks once,
    /// because that also reports broken refs.
    fn is_held_by_branch(&self, lane: &Path, head: Oid) -> Result<bool, WorktreeError> {
        if self.freed.is_still_on_its_branch(&self.repository, lane, head)? {
            return Ok(true);
        }
        if !self.freed.has_walked_refs.swap(true, Ordering::Relaxed) {
            return Ok(false);
        }
        Ok(self.repository.list_refs(&["refs/heads/"])?.iter().any(|found| found.target == head))
    }

    fn write_files(&self, lane: &Repository, wanted: Checkout<'_>) -> Result<(), WorktreeError> {
        let settings: &[&str] = if self.leave_out(lane)? { &SPARSE } else { &[] };
        Ok(lane.check_out(wanted, settings, self.smudging())?)
    }

    /// Environment variables for filters that write files.
    fn smudging(&self) -> &'static [(&'static str, &'static str)] {
        if self.options.settings.lfs { &[] } else { &[("GIT_LFS_SKIP_SMUDGE", "1")] }
    }

    /// Writes the sparse-checkout file. Returns whether git has to use it.
    pub(super) fn leave_out(&self, lane: &Repository) -> Result<bool, WorktreeError> {
        if !self.leaves_out(lane) {
            return Ok(false);
        }
        let file = lane.git_dir.join("info/sparse-checkout");
        let left_out: String =
            self.options.settings.exclude.iter().map(|pattern| format!("!{pattern}\n")).collect();
        safe_files::write(&file, format!("/*\n{left_out}").as_bytes())
            .map_err(WorktreeError::file("write", &file))?;
        Ok(true)
    }

    fn leaves_out(&self, lane: &Repository) -> bool {
        !self.options.settings.exclude.is_empty() || lane.git_dir.join("info/sparse-checkout").exists()
    }

    /// Saves the files of a worktree under a ref that contains `name`, before they are discarded.
    pub(super) fn save(&self, lane: &Repository, name: &str) -> Result<Option<WorktreeNote>, WorktreeError> {
        let Some(head) = lane.find_commit("HEAD")? else {
            return Ok(None);
        };
        let (tree, head_tree) = (lane.snapshot()?, lane.tree_of(head)?);
        if tree == head_tree {
            return Ok(None);
        }
        let changes = lane.changes(head_tree, tree)?;
        let known = lane.list_submodules(head)?;
        refuse_embedded(
            lane,
            changes.iter().filter(|change| !known.iter().any(|known| known.path.as_bytes() == change.path)),
        )?;
        let under = self.save_tree(lane, name, tree, head)?;
        Ok(Some(WorktreeNote::Saved { name: name.to_owned(), under }))
    }

    /// Saves the commits that only `HEAD` of a worktree leads to, before it moves.
    pub(super) fn save_head(&self, name: &str, head: Oid) -> Result<Option<WorktreeNote>, WorktreeError> {
        self.save_unheld(name, head, self.repository.start_reachability_check(head))
    }

    fn save_unheld(
        &self,
        name: &str,
        head: Oid,
        holding: ReachabilityCheck,
    ) -> Result<Option<WorktreeNote>, WorktreeError> {
        if holding.finish()? {
            return Ok(None);
        }
        let under = saved_ref(&format!("{}/{name}", self.run.component()), "head", head);
        self.repository.save_commit(&under, head)?;
        Ok(Some(WorktreeNote::SavedCommits { name: name.to_owned(), under }))
    }

    /// Saves a tree under a ref, as a child of `parent`.
    pub(super) fn save_tree(
        &self,
        lane: &Repository,
        name: &str,
        tree: Oid,
        parent: Oid,
    ) -> Result<String, WorktreeError> {
        let unit = format!("{}/{name}", self.run.component());
        let under = saved_ref(&unit, &format!("worktree-{}", tree.short()), parent);
        if !is_tree_saved(lane, &under, tree, parent)? {
            let message = format!("files in {name}\n");
            let commit =
                lane.write_commit(NewCommit { tree, parent, message: &message, author: None }, Signing::No)?;
            lane.save_commit(&under, commit)?;
        }
        Ok(under)
    }

    /// Repairs the `.git` file of a worktree, which an agent may have changed.
    pub(super) fn repair_link(&self, lane: &Repository) -> Result<(), WorktreeError> {
        let file = lane.dir.join(".git");
        let mut wanted = OsString::from("gitdir: ");
        wanted.push(&lane.git_dir);
        let is_same = |found: Vec<u8>| leads_to(&lane.dir, &found, &lane.git_dir);
        if safe_files::read(&file).is_ok_and(is_same) {
            return Ok(());
        }
        // An empty folder in its place holds nothing.
        if file.is_dir() && safe_files::remove_folder(&file).is_err() {
            return Err(WorktreeError::Embedded { path: lane.dir.clone(), what: ".git".into() });
        }
        wanted.push("\n");
        safe_files::write(&file, wanted.as_bytes()).map_err(WorktreeError::file("write", file))
    }
}

/// Whether git finds the repository in a worktree: its `.git` file leads to its git directory, which has a valid `HEAD`
/// and index, and leads to the repository.
pub(super) fn is_connected(repository: &Repository, worktree: &Worktree) -> bool {
    let is_valid = |git_dir: &Path| {
        has_valid_head(git_dir) && repository.is_common_dir_of(git_dir) && has_valid_index(git_dir)
    };
    if worktree.git_dir.as_deref().is_some_and(|git_dir| !is_valid(git_dir)) {
        return false;
    }
    let link = safe_files::read(&worktree.path.join(".git")).ok();
    let found = link.and_then(|link| target_of(&worktree.path, &link));
    found.zip(worktree.git_dir.as_deref()).is_some_and(|(found, wanted)| is_same_folder(&found, wanted))
}

/// Removes the locks that a killed git has left in a worktree of ours.
pub(super) fn clear_locks(lane: &Repository) {
    for name in ["index.lock", "HEAD.lock"] {
        checkout_locks::clear(&lane.git_dir.join(name));
    }
}

/// Ends a rebase or the like that was begun in a worktree of ours.
pub(super) fn end_operations(lane: &Repository) {
    for name in HALF_DONE {
        let _ = safe_files::remove_all(&lane.git_dir.join(name));
    }
}

/// Whether both paths lead to the same directory.
pub(super) fn is_same_folder(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether a `.git` file leads to this git directory. A relative path starts at `top`.
fn leads_to(top: &Path, content: &[u8], git_dir: &Path) -> bool {
    target_of(top, content).as_deref() == Some(git_dir)
}

/// Whether the ref `under` holds this tree on top of `parent`. Something else may have written a ref of this name.
fn is_tree_saved(lane: &Repository, under: &str, tree: Oid, parent: Oid) -> Result<bool, GitError> {
    let Some(saved) = lane.find_ref(under)? else { return Ok(false) };
    Ok(lane.tree_of(saved)? == tree && lane.is_ancestor(parent, saved)?)
}

/// Refuses nested repositories: their content is in no snapshot.
fn refuse_embedded<'a>(
    lane: &Repository,
    changes: impl Iterator<Item = &'a TreeChange>,
) -> Result<(), WorktreeError> {
    let embedded: Vec<String> = changes.filter(|change| change.is_gitlink()).map(TreeChange::shown).collect();
    if embedded.is_empty() {
        return Ok(());
    }
    Err(WorktreeError::Embedded { path: lane.dir.clone(), what: embedded.join(", ") })
}

/// Whether a used lane has exactly the files of `head`, except ignored ones, as far as can be told without git.
fn is_clean_at(lane: &Repository, head: Option<Oid>) -> Result<bool, WorktreeError> {
    let Some(head) = head else { return Ok(false) };
    Ok(lane.is_clean_by_scan(lane.tree_of(head)?))
}

/// Refuses uncommitted changes in submodules, which are in no snapshot either.
pub(super) fn refuse_dirty_submodules(
    lane: &Repository,
    changed_paths: &[UncommittedPath],
) -> Result<(), WorktreeError> {
    let dirty: Vec<String> = changed_paths
        .iter()
        .filter(|changed_path| changed_path.is_inside_submodule)
        .map(UncommittedPath::shown)
        .collect();
    if dirty.is_empty() {
        return Ok(());
    }
    Err(WorktreeError::Embedded { path: lane.dir.clone(), what: dirty.join(", ") })
}

/// Refuses nested repositories among untracked files, which would be deleted with them.
pub(super) fn refuse_inner(
    lane: &Repository,
    changed_paths: &[UncommittedPath],
) -> Result<(), WorktreeError> {
    match Repository::find_inner(&lane.dir, changed_paths, &lane.list_ignored()?) {
        Some(inner) => {
            let what = visible(&inner.to_string_lossy());
            Err(WorktreeError::Embedded { path: lane.dir.clone(), what })
        }
        None => Ok(()),
    }
}

/// Remembers lanes that this process freed, and the branch that led to the checked out commit. When such a lane is filled
/// again, only that branch has to be checked to know that the commit is reachable; searching all refs takes longer with
/// every task. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Freed {
    lanes: Arc<Mutex<HashMap<PathBuf, (Oid, BranchName)>>>,
    /// Whether git has walked from all refs.
    has_walked_refs: Arc<AtomicBool>,
}

impl Freed {
    /// Remembers a freed lane.
    pub(super) fn note(&self, lane: PathBuf, left: (Oid, BranchName)) {
        self.lanes.hold().insert(lane, left);
    }

    /// Whether the branch of a freed lane is still at `head`, which is checked out there.
    pub(super) fn is_still_on_its_branch(
        &self,
        repository: &Repository,
        lane: &Path,
        head: Oid,
    ) -> Result<bool, WorktreeError> {
        let left = self.lanes.hold().get(lane).cloned();
        match left {
            Some((commit, branch)) if commit == head => Ok(repository.find_branch(&branch)? == Some(head)),
            _ => Ok(false),
        }
    }
}
