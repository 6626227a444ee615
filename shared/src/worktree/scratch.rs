//! Scratch worktrees: at a commit, on no branch, for gates, reviews and conflicts. They hold no work of tasks, so they
//! are not listed with task worktrees.

use std::{path::PathBuf, time::Duration};

use super::{Pool, WorktreeError, claim::WorktreeOrigin, fill, set_up::forget_set_up, survey};
use crate::{
    git::{Repository, Worktree},
    name::{Oid, TaskId},
    process::{FileLock, OrphanLock},
    safe_files,
};

/// The lock reason of scratch worktrees.
pub(super) const REASON: &str = "arborist scratch";
/// How long processes that a killed run, test or gate left may take to end by themselves.
pub const GRACE: Duration = Duration::from_secs(5);
/// How many may be in use at the same time.
const MAX_IN_USE: usize = 100;

/// A scratch worktree that no other process can take while this exists. It stays when this is dropped, so that caches
/// stay valid.
#[derive(Debug)]
pub struct Scratch {
    /// The repository, opened there.
    pub repository: Repository,
    /// The top of the worktree.
    pub path: PathBuf,
    /// Tells whether a process that was started there is alive.
    pub orphan_lock: OrphanLock,
    lock: FileLock,
}

/// A scratch worktree whose lock we hold.
struct ChosenScratch {
    worktree: Worktree,
    /// The name that its lock shows.
    task: TaskId,
    origin: WorktreeOrigin,
    lock: FileLock,
}

impl Scratch {
    /// The parts that a worker needs. The worktree is free again when the lock is dropped.
    #[must_use]
    pub fn into_parts(self) -> (Repository, OrphanLock, FileLock) {
        (self.repository, self.orphan_lock, self.lock)
    }
}

impl Pool {
    /// The first of `{kind}-1`, `{kind}-2` and so on that is not in use, created at `commit` if it does not exist.
    /// Processes that a killed driver left there are ended.
    pub fn scratch(&self, kind: &str, commit: Oid) -> Result<Scratch, WorktreeError> {
        let registry_lock = self.lock_registry()?;
        let worktrees = self.list_registered()?;
        let mut names = (1..=MAX_IN_USE).map(|number| format!("{kind}-{number}"));
        let chosen = names.find_map(|name| self.choose_scratch(&name, commit, &worktrees).transpose());
        // Other processes need not wait until it is filled.
        drop(registry_lock);
        let occupied = || WorktreeError::Occupied(self.places.base.clone());
        self.open_scratch(chosen.ok_or_else(occupied)??, commit)
    }

    /// The scratch worktree of this name, created at `commit` if it does not exist; `None` if it is in use.
    pub fn take_scratch(&self, name: &str, commit: Oid) -> Result<Option<Scratch>, WorktreeError> {
        let registry_lock = self.lock_registry()?;
        let chosen = self.choose_scratch(name, commit, &self.list_registered()?)?;
        drop(registry_lock);
        chosen.map(|chosen| self.open_scratch(chosen, commit)).transpose()
    }

    /// All worktrees, except those whose paths are now something else.
    fn list_registered(&self) -> Result<Vec<Worktree>, WorktreeError> {
        let mut worktrees = self.repository.list_worktrees()?;
        self.forget_replaced(&mut worktrees)?;
        Ok(worktrees)
    }

    /// Takes the scratch worktree of this name; `None` if it is in use. A new one is empty.
    fn choose_scratch(
        &self,
        name: &str,
        commit: Oid,
        worktrees: &[Worktree],
    ) -> Result<Option<ChosenScratch>, WorktreeError> {
        let path = self.places.prepared(&self.repository, worktrees)?.base.join(name);
        let Ok(task) = name.parse::<TaskId>() else { return Ok(None) };
        // Waiting for a process that works there would block all others.
        if FileLock::find_holder(&self.repository.worktree_lock(&path)).is_some() {
            return Ok(None);
        }
        let Ok(lock) = self.lock_worktree(&path, &task) else { return Ok(None) };
        match worktrees.iter().find(|worktree| worktree.path == path) {
            Some(found) if found.lock.as_deref() != Some(REASON) => return Ok(None),
            Some(found) if is_sparse(found) => {
                safe_files::remove_all(&path).map_err(WorktreeError::file("remove", &path))?;
                self.forget(found)?;
            }
            Some(found) if path.join(".git").is_file() => {
                let worktree = found.clone();
                return Ok(Some(ChosenScratch { worktree, task, origin: WorktreeOrigin::Found, lock }));
            }
            Some(found) => self.forget(found)?,
            None if path.symlink_metadata().is_ok() => return Ok(None),
            None => {}
        }
        let worktree = self.make_at(&path, commit, REASON)?;
        Ok(Some(ChosenScratch { worktree, task, origin: WorktreeOrigin::Made, lock }))
    }

    /// Ends processes that a killed driver left there, and fills a new worktree.
    fn open_scratch(&self, chosen: ChosenScratch, commit: Oid) -> Result<Scratch, WorktreeError> {
        let ChosenScratch { worktree, task, origin, lock } = chosen;
        let file = OrphanLock::beside(&self.repository.worktree_lock(&worktree.path));
        let (orphan_lock, _) = OrphanLock::take_over(&lock, &file, GRACE)
            .map_err(|source| WorktreeError::Busy { task, source })?;
        let repository = self.linked(&worktree)?;
        self.repair_link(&repository)?;
        if origin == WorktreeOrigin::Made {
            repository.check_out_commit(commit)?;
        }
        Ok(Scratch { repository, path: worktree.path, orphan_lock, lock })
    }

    /// Saves changes and commits in a scratch worktree that no ref leads to. Returns the ref.
    pub fn save_scratch(&self, scratch: &Scratch) -> Result<Option<String>, WorktreeError> {
        let lane = &scratch.repository;
        let Some(head) = lane.find_commit("HEAD")? else {
            return Ok(None);
        };
        let tree = lane.snapshot()?;
        if tree == lane.tree_of(head)? && lane.is_reachable_from_refs(head)? {
            return Ok(None);
        }
        self.save_tree(lane, &survey::name_of(&scratch.path), tree, head).map(Some)
    }

    /// Resets a scratch worktree to `commit` and sets it up. Ignored files stay if they match one of `kept` and the
    /// last gate left them there.
    pub fn refresh(&self, scratch: &Scratch, commit: Oid, kept: &[String]) -> Result<(), WorktreeError> {
        let lane = &scratch.repository;
        fill::clear_locks(lane);
        fill::end_operations(lane);
        lane.check_out_commit(commit)?;
        lane.remove_untracked()?;
        lane.remove_ignored(kept)?;
        if !kept.is_empty() {
            self.remove_unknown(lane)?;
        }
        forget_set_up(lane);
        self.set_up(lane, &self.place_variables(&scratch.path)).map(drop)
    }

    /// Makes a scratch worktree exactly `commit`, with the files that worktrees are given and without set-up commands.
    /// Everything else is discarded. If only a few plain files differ, no git command runs; otherwise one, and a second
    /// one if there are untracked files.
    pub fn reset_scratch(&self, scratch: &Scratch, commit: Oid) -> Result<(), WorktreeError> {
        let lane = &scratch.repository;
        self.repair_link(lane)?;
        fill::clear_locks(lane);
        fill::end_operations(lane);
        if !lane.check_out_without_git(commit)? {
            lane.check_out_commit(commit)?;
            if !lane.holds_only(lane.tree_of(commit)?) {
                lane.remove_ignored(&[])?;
            }
        }
        self.copy_files(lane).map(drop)
    }

    /// Removes a scratch worktree.
    pub fn remove_scratch(&self, scratch: &Scratch) -> Result<(), WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        safe_files::remove_all(&scratch.path).map_err(WorktreeError::file("remove", &scratch.path))?;
        Ok(self.repository.forget_worktree(&scratch.path)?)
    }
}

/// Whether files of its commit are left out, as an earlier version did in a repository with a sparse checkout.
fn is_sparse(worktree: &Worktree) -> bool {
    let git_dir = worktree.git_dir.as_ref();
    git_dir.is_some_and(|git_dir| safe_files::kind_of(&git_dir.join("info/sparse-checkout")).is_some())
}
