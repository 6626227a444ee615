//! Claiming a place for a task: the worktree that has it, else a free lane, else a new one. Nothing is made before it is
//! certain that it may be.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    LeaseStart, Pool, WorktreeError, clear, environment, is_ours, places::Places, places::lane_number,
    session_worktree::is_of_session, survey,
};
use crate::{
    git::{RefMove, Repository, Worktree, report_moved, stale},
    name::{BranchName, Oid, TaskId},
    process::{Cancel, FileLock, LockError},
    safe_files::{self, FileKind},
};

/// One who only looks at a lock holds it for less than this.
pub(super) const GLANCE: Duration = Duration::from_millis(200);
/// So many worktrees of one name are looked for.
const NAMES: usize = 100;

/// A task that wants a place.
#[derive(Debug)]
pub(super) struct PlaceRequest<'a> {
    pub(super) task: &'a TaskId,
    pub(super) branch: BranchName,
    pub(super) base: Oid,
    pub(super) place: WantedKind,
    /// Lanes that turned out to be of no use.
    pub(super) refused: Vec<PathBuf>,
}

/// What kind of place is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedKind {
    Lane,
    Named,
    /// None but the one that the task has.
    Own,
}

/// A place that nobody else can have now.
#[derive(Debug)]
pub(super) struct PlaceClaim {
    pub(super) lane: Repository,
    pub(super) path: PathBuf,
    pub(super) begun: LeaseStart,
    pub(super) origin: PlaceOrigin,
    /// Set if the branch was made for this, at this commit.
    pub(super) made_branch: Option<Oid>,
    pub(super) port: u16,
    pub(super) locks: [FileLock; 2],
}

/// Where a claimed place comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceOrigin {
    /// The task has it already.
    Found,
    /// A lane that was free.
    Recycled,
    /// It was made.
    Made,
}

/// A place that could be had.
enum Spot {
    Free(Worktree),
    New(PathBuf),
}

impl Pool {
    /// Claims a place. Others who make or remove worktrees wait meanwhile.
    pub(super) fn claim(&self, wish: &PlaceRequest<'_>) -> Result<PlaceClaim, WorktreeError> {
        let _gate = self.gate()?;
        let task_lock = self.lock_task(wish)?;
        let mut worktrees = self.repository.list_worktrees()?;
        self.forget_replaced(&mut worktrees)?;
        if let Some(found) = worktrees.iter().position(|found| found.branch.as_ref() == Some(&wish.branch)) {
            if worktrees[found].path.is_dir() || wish.place == WantedKind::Own {
                return self.adopt(wish, (&worktrees[found], &worktrees), task_lock);
            }
            self.forget(&worktrees.remove(found))?;
        }
        if wish.place == WantedKind::Own {
            return Err(WorktreeError::Absent(wish.task.to_string()));
        }
        let (spot, lock) = self.find_spot(wish, &worktrees)?;
        let (begun, made_branch) = self.prepare_branch(wish)?;
        let (worktree, origin) = match spot {
            Spot::Free(worktree) => (worktree, PlaceOrigin::Recycled),
            Spot::New(path) => (self.make_at(&path, wish.base, super::REASON)?, PlaceOrigin::Made),
        };
        let lane = self.linked(&worktree)?;
        let port = environment::allot_port(&lane, &worktrees)?;
        Ok(PlaceClaim {
            lane,
            path: worktree.path,
            begun,
            origin,
            made_branch,
            port,
            locks: [task_lock, lock],
        })
    }

    fn adopt(
        &self,
        wish: &PlaceRequest<'_>,
        (found, all): (&Worktree, &[Worktree]),
        task_lock: FileLock,
    ) -> Result<PlaceClaim, WorktreeError> {
        if !is_ours(found) {
            let (branch, path) = (wish.branch.clone(), found.path.clone());
            return Err(WorktreeError::Elsewhere { branch, path });
        }
        if !found.path.is_dir() {
            return Err(WorktreeError::Missing(wish.task.to_string(), found.path.clone()));
        }
        let lock = self.lock_place(&found.path, wish.task)?;
        let lane = self.linked(found)?;
        if lane.find_head_branch()?.as_ref() != Some(&wish.branch) {
            let source = LockError::Held { path: found.path.clone(), holder: Box::default() };
            return Err(WorktreeError::Busy { task: wish.task.clone(), source });
        }
        if wish.place == WantedKind::Lane {
            self.follow(&lane, &wish.branch, wish.base)?;
        }
        let port = environment::allot_port(&lane, all)?;
        Ok(PlaceClaim {
            lane,
            path: found.path.clone(),
            begun: LeaseStart::Adopted,
            origin: PlaceOrigin::Found,
            made_branch: None,
            port,
            locks: [task_lock, lock],
        })
    }

    /// A free lane that nobody holds, the one that needs the least change first; else a path for a new worktree.
    fn find_spot(
        &self,
        wish: &PlaceRequest<'_>,
        worktrees: &[Worktree],
    ) -> Result<(Spot, FileLock), WorktreeError> {
        if wish.place == WantedKind::Lane {
            let is_free = |found: &&Worktree| self.is_free_lane(found) && !wish.refused.contains(&found.path);
            let mut free: Vec<&Worktree> = worktrees.iter().filter(is_free).collect();
            free.sort_by_key(|lane| lane.head != Some(wish.base));
            for lane in free {
                if FileLock::find_holder(&self.repository.worktree_lock(&lane.path)).is_some() {
                    continue;
                }
                // Whoever had it when the list was made may have filled it since.
                if let Ok(lock) = self.lock_place(&lane.path, wish.task)
                    && self.linked(lane)?.find_head_branch()?.is_none()
                {
                    return Ok((Spot::Free(lane.clone()), lock));
                }
            }
        }
        let places = self.places.prepared(&self.repository, worktrees)?;
        if let Some(half_made) = self.find_half_made(wish, &places, worktrees) {
            return Ok((Spot::Free(half_made.clone()), self.lock_place(&half_made.path, wish.task)?));
        }
        self.require_room(worktrees)?;
        self.require_space(&places.base)?;
        let path = self.find_path(wish, &places, worktrees)?;
        let lock = self.lock_place(&path, wish.task)?;
        Ok((Spot::New(path), lock))
    }

    /// An agent can write a registration that names any folder: only what stands where lanes are made is taken for one. What
    /// an agent did to the `.git` file in it is mended when the lane is filled.
    fn is_free_lane(&self, worktree: &Worktree) -> bool {
        let is_lane = lane_number(&survey::name_of(&worktree.path)).is_some();
        is_lane && is_ours(worktree) && worktree.branch.is_none() && self.places.is_inside(&worktree.path)
    }

    /// A worktree of the task's own name that nobody came to put its branch into.
    fn find_half_made<'a>(
        &self,
        wish: &PlaceRequest<'_>,
        places: &Places,
        worktrees: &'a [Worktree],
    ) -> Option<&'a Worktree> {
        let own = (0..NAMES).map(|number| places.named(wish.task, number));
        let mut own = own.take_while(|path| path.exists()).filter(|_| wish.place == WantedKind::Named);
        own.find_map(|path| {
            worktrees.iter().find(|found| found.path == path && is_ours(found) && found.branch.is_none())
        })
    }

    fn require_room(&self, worktrees: &[Worktree]) -> Result<(), WorktreeError> {
        let count = worktrees.iter().filter(|worktree| is_ours(worktree) && worktree.path.is_dir()).count();
        let max = self.options.max();
        if count >= max { Err(WorktreeError::Limit { count, max }) } else { Ok(()) }
    }

    fn require_space(&self, base: &Path) -> Result<(), WorktreeError> {
        let system =
            rustix::fs::statvfs(base).map_err(|error| WorktreeError::file("look at", base)(error.into()))?;
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        let needed = self.options.min_free;
        if free >= needed {
            return Ok(());
        }
        let in_mb = |bytes: u64| bytes / 1_000_000;
        Err(WorktreeError::Space { path: base.to_owned(), free: in_mb(free), needed: in_mb(needed) })
    }

    /// A path that is not taken. What stands at it and is not ours is left alone: another lane gets another number,
    /// but a task's own place is its own.
    fn find_path(
        &self,
        wish: &PlaceRequest<'_>,
        places: &Places,
        worktrees: &[Worktree],
    ) -> Result<PathBuf, WorktreeError> {
        let registered = |path: &Path| worktrees.iter().find(|worktree| worktree.path == path);
        for number in 0..NAMES + worktrees.len() {
            let path = match wish.place {
                WantedKind::Lane => places.lane(number + 1),
                WantedKind::Named | WantedKind::Own => places.named(wish.task, number),
            };
            let is_there = path.symlink_metadata().is_ok();
            match registered(&path) {
                None if !is_there => return Ok(path),
                None if wish.place == WantedKind::Named => return Err(WorktreeError::Occupied(path)),
                Some(worktree) if !is_there && is_ours(worktree) => {
                    self.forget(worktree)?;
                    return Ok(path);
                }
                _ => {}
            }
        }
        Err(WorktreeError::Occupied(places.base.clone()))
    }

    /// The branch comes first: whatever happens afterwards, the same command finds it again. One that has nothing of
    /// its own follows the base.
    fn prepare_branch(&self, wish: &PlaceRequest<'_>) -> Result<(LeaseStart, Option<Oid>), WorktreeError> {
        let tip = self.repository.find_branch(&wish.branch)?;
        match tip {
            Some(tip) if tip == wish.base => return Ok((LeaseStart::Fresh, None)),
            Some(tip) if !self.repository.is_ancestor(tip, wish.base)? => {
                return Ok((LeaseStart::Continued { tip }, None));
            }
            _ => {}
        }
        let name = wish.branch.to_ref();
        let moves = [RefMove { name: &name, new: Some(wish.base), old: tip }];
        let write = || self.repository.move_refs(&moves, "arborist: begin");
        if write().is_err() {
            stale::clear(&self.repository.common_dir.join(format!("{name}.lock")));
            write()?;
        }
        Ok((LeaseStart::Fresh, tip.is_none().then_some(wish.base)))
    }

    /// Registers a worktree without files.
    pub(super) fn make_at(&self, path: &Path, commit: Oid, reason: &str) -> Result<Worktree, WorktreeError> {
        self.note_making(path)?;
        let made = self.repository.add_worktree(path, commit, reason);
        let found = self.repository.list_worktrees();
        if let Err(error) = made {
            self.mend_unmade(path)?;
            return Err(error.into());
        }
        self.note_made();
        let found = found?.into_iter().find(|worktree| worktree.path == path);
        found.ok_or_else(|| WorktreeError::Missing(survey::name_of(path), path.to_owned()))
    }

    /// Takes a worktree whose folder is gone out of git's register. Its branch stays. Whatever stands there instead is kept
    /// beside it: git takes nothing out of the register as long as it is there.
    pub(super) fn forget(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let path = &worktree.path;
        if path.symlink_metadata().is_ok() {
            let name = survey::name_of(path);
            let mut free = (1u32..).map(|number| path.with_file_name(format!("{name}.replaced.{number}")));
            let kept = free.find(|free| free.symlink_metadata().is_err()).unwrap_or_default();
            safe_files::rename(path, &kept).map_err(WorktreeError::file("move", path))?;
            report_moved(path.clone(), kept);
        }
        Ok(self.repository.forget_worktree(path)?)
    }

    /// Forgets worktrees of ours in whose places something else stands: a file, or a link. Nobody works there.
    pub(super) fn forget_replaced(&self, worktrees: &mut Vec<Worktree>) -> Result<(), WorktreeError> {
        let is_replaced = |found: &Worktree| {
            let there = safe_files::kind_of(&found.path);
            let is_other = there.is_some_and(|kind| kind != FileKind::Folder);
            let reason = found.lock.as_deref();
            let is_of_pool = is_ours(found) || is_of_session(found) || reason == Some(super::scratch::REASON);
            is_other && is_of_pool && self.places.is_place(&found.path)
        };
        let is_held =
            |found: &Worktree| FileLock::find_holder(&self.repository.worktree_lock(&found.path)).is_some();
        let replaced: Vec<Worktree> =
            worktrees.iter().filter(|found| is_replaced(found) && !is_held(found)).cloned().collect();
        replaced.iter().try_for_each(|found| self.forget(found))?;
        worktrees.retain(|found| !replaced.iter().any(|other| other.path == found.path));
        Ok(())
    }

    pub(super) fn linked(&self, worktree: &Worktree) -> Result<Repository, WorktreeError> {
        let missing = || WorktreeError::Missing(survey::name_of(&worktree.path), worktree.path.clone());
        self.repository.linked(worktree).ok_or_else(missing)
    }

    fn lock_task(&self, wish: &PlaceRequest<'_>) -> Result<FileLock, WorktreeError> {
        let path = self.places.locks().join(clear::name_of_task_lock(&wish.branch, wish.task));
        self.take_lock(&path, wish.task)
    }

    pub(super) fn lock_place(&self, path: &Path, task: &TaskId) -> Result<FileLock, WorktreeError> {
        self.take_lock(&self.repository.worktree_lock(path), task)
    }

    fn take_lock(&self, path: &Path, task: &TaskId) -> Result<FileLock, WorktreeError> {
        let what = format!("{task} of {}", self.run);
        let busy = |source: LockError| WorktreeError::Busy { task: task.clone(), source };
        FileLock::take_within(path, &what, GLANCE, &Cancel::new()).map_err(busy)
    }
}
