//! Scratch worktrees: at a commit, on no branch, for tests and for joining what does not go together by itself. They
//! are nobody's work, so they are not listed with those of tasks.

use std::{path::PathBuf, time::Duration};

use super::{Pool, WorktreeError, claim::PlaceOrigin, set_up::forget_set_up, survey};
use crate::{
    git::{Repository, Worktree, stale},
    name::{Oid, TaskId},
    process::{FileLock, OrphanLock},
    safe_files,
};

/// The reason that scratch worktrees are locked with.
pub(super) const REASON: &str = "arborist scratch";
/// How long what a killed test left running may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// So many may be in use at a time.
const MOST: usize = 100;

/// A scratch worktree that nobody else has while this lives. It stays when this is dropped, so that caches stay warm.
#[derive(Debug)]
pub struct Scratch {
    /// The repository as it is seen from there.
    pub repository: Repository,
    /// The top of the worktree.
    pub path: PathBuf,
    /// Tells whether a process that was started there lives.
    pub orphan_lock: OrphanLock,
    lock: FileLock,
}

/// A scratch worktree that nobody else can have now.
struct ScratchClaim {
    worktree: Worktree,
    /// Who has it, in the words of its lock.
    task: TaskId,
    origin: PlaceOrigin,
    lock: FileLock,
}

impl Scratch {
    /// What one needs who works there. It is free for others when the lock is dropped.
    #[must_use]
    pub fn into_parts(self) -> (Repository, OrphanLock, FileLock) {
        (self.repository, self.orphan_lock, self.lock)
    }
}

impl Pool {
    /// The first of `{kind}-1`, `{kind}-2` and so on that nobody uses, made at `commit` if it is not there. What runs there of
    /// a killed process is ended.
    pub fn scratch(&self, kind: &str, commit: Oid) -> Result<Scratch, WorktreeError> {
        let gate = self.gate()?;
        let worktrees = self.list_registered()?;
        let mut names = (1..=MOST).map(|number| format!("{kind}-{number}"));
        let claim = names.find_map(|name| self.claim_scratch(&name, commit, &worktrees).transpose());
        // Others need not wait until the place is filled.
        drop(gate);
        let occupied = || WorktreeError::Occupied(self.places.base.clone());
        self.open_scratch(claim.ok_or_else(occupied)??, commit)
    }

    /// The scratch worktree of this name, made at `commit` if it is not there; `None` if it cannot be had.
    pub fn take_scratch(&self, name: &str, commit: Oid) -> Result<Option<Scratch>, WorktreeError> {
        let gate = self.gate()?;
        let claim = self.claim_scratch(name, commit, &self.list_registered()?)?;
        drop(gate);
        claim.map(|claim| self.open_scratch(claim, commit)).transpose()
    }

    /// All worktrees, without those in whose places something else stands.
    fn list_registered(&self) -> Result<Vec<Worktree>, WorktreeError> {
        let mut worktrees = self.repository.list_worktrees()?;
        self.forget_replaced(&mut worktrees)?;
        Ok(worktrees)
    }

    /// Claims the scratch worktree of this name; `None` if it cannot be had. One that is made is empty.
    fn claim_scratch(
        &self,
        name: &str,
        commit: Oid,
        worktrees: &[Worktree],
    ) -> Result<Option<ScratchClaim>, WorktreeError> {
        let path = self.places.prepared(&self.repository, worktrees)?.base.join(name);
        let Ok(task) = name.parse::<TaskId>() else { return Ok(None) };
        // To wait for whoever is at work there would keep all others waiting.
        if FileLock::find_holder(&self.repository.worktree_lock(&path)).is_some() {
            return Ok(None);
        }
        let Ok(lock) = self.lock_place(&path, &task) else { return Ok(None) };
        match worktrees.iter().find(|worktree| worktree.path == path) {
            Some(found) if found.lock.as_deref() != Some(REASON) => return Ok(None),
            Some(found) if path.join(".git").is_file() => {
                let worktree = found.clone();
                return Ok(Some(ScratchClaim { worktree, task, origin: PlaceOrigin::Found, lock }));
            }
            Some(found) => self.forget(found)?,
            None if path.symlink_metadata().is_ok() => return Ok(None),
            None => {}
        }
        let worktree = self.make_at(&path, commit, REASON)?;
        Ok(Some(ScratchClaim { worktree, task, origin: PlaceOrigin::Made, lock }))
    }

    /// Ends what a killed process left running in a claimed place, and fills one that was made.
    fn open_scratch(&self, claim: ScratchClaim, commit: Oid) -> Result<Scratch, WorktreeError> {
        let ScratchClaim { worktree, task, origin, lock } = claim;
        let file = OrphanLock::beside(&self.repository.worktree_lock(&worktree.path));
        let (orphan_lock, _) = OrphanLock::take_over(&lock, &file, GRACE)
            .map_err(|source| WorktreeError::Busy { task, source })?;
        let repository = self.linked(&worktree)?;
        self.mend_link(&repository)?;
        if origin == PlaceOrigin::Made {
            repository.check_out_commit(commit)?;
        }
        Ok(Scratch { repository, path: worktree.path, orphan_lock, lock })
    }

    /// Saves what lies in a scratch worktree and no ref leads to: what was changed there, and what was committed. Tells
    /// where.
    pub fn save_scratch(&self, scratch: &Scratch) -> Result<Option<String>, WorktreeError> {
        let lane = &scratch.repository;
        let Some(head) = lane.find_commit("HEAD")? else {
            return Ok(None);
        };
        let tree = lane.snapshot()?;
        if tree == lane.tree_of(head)? && lane.is_held(head)? {
            return Ok(None);
        }
        self.save_tree(lane, &survey::name_of(&scratch.path), (tree, head)).map(Some)
    }

    /// Puts a scratch worktree to `commit`, clean but for ignored files that match one of `kept` and that the last gate left
    /// there, and set up as worktrees are.
    pub fn refresh(&self, scratch: &Scratch, commit: Oid, kept: &[String]) -> Result<(), WorktreeError> {
        let lane = &scratch.repository;
        for name in ["index.lock", "HEAD.lock"] {
            stale::clear(&lane.git_dir.join(name));
        }
        for name in ["rebase-merge", "rebase-apply", "sequencer"] {
            let _ = safe_files::remove_all(&lane.git_dir.join(name));
        }
        lane.check_out_commit(commit)?;
        lane.remove_untracked()?;
        lane.remove_ignored(kept)?;
        if !kept.is_empty() {
            self.remove_unknown(lane)?;
        }
        forget_set_up(lane);
        self.set_up(lane, &self.place_variables(&scratch.path)).map(drop)
    }

    /// Makes a scratch worktree exactly what `commit` holds, with the files that worktrees are given and without any set-up.
    /// Whatever was left there is discarded, whoever was there before and however that ended. Where only a few plain files
    /// differ, that takes no call of git; else it takes one, and another one where something else than tracked files lies there.
    pub fn reset_scratch(&self, scratch: &Scratch, commit: Oid) -> Result<(), WorktreeError> {
        let lane = &scratch.repository;
        self.mend_link(lane)?;
        for name in ["index.lock", "HEAD.lock"] {
            stale::clear(&lane.git_dir.join(name));
        }
        for name in ["rebase-merge", "rebase-apply", "sequencer"] {
            let _ = safe_files::remove_all(&lane.git_dir.join(name));
        }
        if !lane.check_out_plainly(commit)? {
            lane.check_out_commit(commit)?;
            if !lane.holds_only(lane.tree_of(commit)?) {
                lane.remove_ignored(&[])?;
            }
        }
        self.copy_files(lane).map(drop)
    }

    /// Removes a scratch worktree that has nothing more to tell.
    pub fn remove_scratch(&self, scratch: &Scratch) -> Result<(), WorktreeError> {
        let _gate = self.gate()?;
        safe_files::remove_all(&scratch.path).map_err(WorktreeError::file("remove", &scratch.path))?;
        Ok(self.repository.forget_worktree(&scratch.path)?)
    }
}
