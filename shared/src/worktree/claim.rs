//! Claims a worktree for a task: the one that has it, or else a free lane, or else a new one. All checks come before
//! anything is created. Decides where the task starts: at the run's branch, or at its upstream if that is ahead.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Pool, WorktreeError, is_ours,
    paths::{Places, lane_number},
    session_worktree::is_of_session,
    set_up, survey,
};
use crate::{
    git::{REPLACED, RefMove, Repository, Worktree, checkout_locks, escaped_pattern, report_moved},
    name::{BranchName, Oid, TaskId},
    process::{Cancel, FileLock, LockError},
    safe_files::{self, FileKind},
};

/// A process that only looks at a lock holds it for less than this.
pub(super) const LOOK_TIME: Duration = Duration::from_millis(200);
/// How many paths for one name are tried.
const MAX_NAMES: usize = 100;

/// A request for a worktree.
#[derive(Debug)]
pub(super) struct WorktreeRequest<'a> {
    pub(super) task: &'a TaskId,
    pub(super) branch: BranchName,
    pub(super) base: Oid,
    pub(super) kind: WantedKind,
    /// Lanes that turned out to be unusable.
    pub(super) refused: Vec<PathBuf>,
}

/// The kind of worktree that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WantedKind {
    Lane,
    Named,
    /// Only the one that the task already has.
    Own,
}

/// How a lease started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseStart {
    /// The branch was created.
    Fresh,
    /// The branch existed without commits of its own, and was moved to the base if it was elsewhere.
    Reused {
        /// Where it was.
        from: Oid,
    },
    /// The branch existed, with commits of its own.
    Continued {
        /// The newest of them.
        tip: Oid,
    },
    /// The worktree existed, with whatever files are in it.
    Adopted,
}

/// A worktree whose locks we hold.
#[derive(Debug)]
pub(super) struct ChosenWorktree {
    pub(super) repository: Repository,
    pub(super) path: PathBuf,
    pub(super) start: LeaseStart,
    pub(super) origin: WorktreeOrigin,
    /// Set if the branch was created for it, at this commit.
    pub(super) made_branch: Option<Oid>,
    pub(super) port: u16,
    pub(super) task_lock: FileLock,
    pub(super) worktree_lock: FileLock,
}

/// Where a chosen worktree comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorktreeOrigin {
    /// The task had it already.
    Found,
    /// A lane that was free.
    Reused,
    /// It was created.
    Made,
}

/// A worktree that could be taken.
enum WorktreeChoice {
    Free(Worktree),
    New(PathBuf),
}

impl Pool {
    /// Chooses or makes a worktree, with its branch, and takes its locks. Other processes that create or remove
    /// worktrees wait meanwhile.
    pub(super) fn claim_worktree(
        &self,
        request: &WorktreeRequest<'_>,
    ) -> Result<ChosenWorktree, WorktreeError> {
        let registry_lock = self.lock_registry()?;
        let task_lock = self.lock_task(request)?;
        let mut worktrees = self.repository.list_worktrees()?;
        self.forget_replaced(&mut worktrees)?;
        if let Some(found) = worktrees.iter().position(|found| found.branch.as_ref() == Some(&request.branch))
        {
            if worktrees[found].path.is_dir() || request.kind == WantedKind::Own {
                return self.adopt(&registry_lock, request, &worktrees[found], &worktrees, task_lock);
            }
            self.forget(&worktrees.remove(found))?;
        }
        if request.kind == WantedKind::Own {
            return Err(WorktreeError::Absent(request.task.to_string()));
        }
        let (candidate, worktree_lock) = self.find_candidate(request, &worktrees)?;
        let (start, made_branch) = self.prepare_branch(request)?;
        let (worktree, origin) = match candidate {
            WorktreeChoice::Free(worktree) => (worktree, WorktreeOrigin::Reused),
            WorktreeChoice::New(path) => {
                (self.make_at(&path, request.base, super::REASON)?, WorktreeOrigin::Made)
            }
        };
        let repository = self.linked(&worktree)?;
        let port = set_up::allot_port(&registry_lock, &repository, &worktrees)?;
        Ok(ChosenWorktree {
            repository,
            path: worktree.path,
            start,
            origin,
            made_branch,
            port,
            task_lock,
            worktree_lock,
        })
    }

    fn adopt(
        &self,
        registry_lock: &FileLock,
        request: &WorktreeRequest<'_>,
        found: &Worktree,
        all: &[Worktree],
        task_lock: FileLock,
    ) -> Result<ChosenWorktree, WorktreeError> {
        if !is_ours(found) {
            let (branch, path) = (request.branch.clone(), found.path.clone());
            return Err(WorktreeError::Elsewhere { branch, path });
        }
        if !found.path.is_dir() {
            return Err(WorktreeError::Missing(request.task.to_string(), found.path.clone()));
        }
        let worktree_lock = self.lock_worktree(&found.path, request.task)?;
        let repository = self.linked(found)?;
        if repository.find_head_branch()?.as_ref() != Some(&request.branch) {
            let source = LockError::Held { path: found.path.clone(), holder: Box::default() };
            return Err(WorktreeError::Busy { task: request.task.clone(), source });
        }
        if request.kind == WantedKind::Lane {
            self.follow(&repository, &request.branch, request.base)?;
        }
        let port = set_up::allot_port(registry_lock, &repository, all)?;
        Ok(ChosenWorktree {
            repository,
            path: found.path.clone(),
            start: LeaseStart::Adopted,
            origin: WorktreeOrigin::Found,
            made_branch: None,
            port,
            task_lock,
            worktree_lock,
        })
    }

    /// A free lane that no process holds, preferably one that is at the wanted commit; or else a path for a new
    /// worktree.
    fn find_candidate(
        &self,
        request: &WorktreeRequest<'_>,
        worktrees: &[Worktree],
    ) -> Result<(WorktreeChoice, FileLock), WorktreeError> {
        if request.kind == WantedKind::Lane {
            let is_free =
                |found: &&Worktree| self.is_free_lane(found) && !request.refused.contains(&found.path);
            let mut free: Vec<&Worktree> = worktrees.iter().filter(is_free).collect();
            free.sort_by_key(|lane| lane.head != Some(request.base));
            for lane in free {
                if FileLock::find_holder(&self.repository.worktree_lock(&lane.path)).is_some() {
                    continue;
                }
                // Another process may have filled it since the list was made.
                if let Ok(lock) = self.lock_worktree(&lane.path, request.task)
                    && self.linked(lane)?.find_head_branch()?.is_none()
                {
                    return Ok((WorktreeChoice::Free(lane.clone()), lock));
                }
            }
        }
        let places = self.places.prepared(&self.repository, worktrees)?;
        if let Some(half_made) = self.find_half_made(request, &places, worktrees) {
            return Ok((
                WorktreeChoice::Free(half_made.clone()),
                self.lock_worktree(&half_made.path, request.task)?,
            ));
        }
        self.require_room(worktrees)?;
        self.require_space(&places.base)?;
        let path = self.find_path(request, &places, worktrees)?;
        let lock = self.lock_worktree(&path, request.task)?;
        Ok((WorktreeChoice::New(path), lock))
    }

    /// Whether a worktree is a free lane. An agent can register any directory as a worktree, so only those in our
    /// directory count. A `.git` file that an agent changed is repaired when the lane is filled.
    fn is_free_lane(&self, worktree: &Worktree) -> bool {
        let is_lane = lane_number(&survey::name_of(&worktree.path)).is_some();
        is_lane && is_ours(worktree) && worktree.branch.is_none() && self.places.is_inside(&worktree.path)
    }

    /// A worktree of the task's own name whose creator was killed before it checked out the branch.
    fn find_half_made<'a>(
        &self,
        request: &WorktreeRequest<'_>,
        places: &Places,
        worktrees: &'a [Worktree],
    ) -> Option<&'a Worktree> {
        let own = (0..MAX_NAMES).map(|number| places.named(request.task, number));
        let mut own = own.take_while(|path| path.exists()).filter(|_| request.kind == WantedKind::Named);
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
        let needed = self.options.min_free();
        if free >= needed {
            return Ok(());
        }
        let in_mb = |bytes: u64| bytes / 1_000_000;
        Err(WorktreeError::Space { path: base.to_owned(), free: in_mb(free), needed: in_mb(needed) })
    }

    /// A free path. Anything there that is not ours is left alone: a lane gets another number, but for a task's own
    /// worktree it is an error.
    fn find_path(
        &self,
        request: &WorktreeRequest<'_>,
        places: &Places,
        worktrees: &[Worktree],
    ) -> Result<PathBuf, WorktreeError> {
        let registered = |path: &Path| worktrees.iter().find(|worktree| worktree.path == path);
        for number in 0..MAX_NAMES + worktrees.len() {
            let path = match request.kind {
                WantedKind::Lane => places.lane(number + 1),
                WantedKind::Named | WantedKind::Own => places.named(request.task, number),
            };
            let is_there = path.symlink_metadata().is_ok();
            match registered(&path) {
                None if !is_there => return Ok(path),
                None if request.kind == WantedKind::Named && self.is_orphan(&path) => {
                    return Err(WorktreeError::Broken(request.task.to_string(), path));
                }
                None if request.kind == WantedKind::Named => return Err(WorktreeError::Occupied(path)),
                Some(worktree) if !is_there && is_ours(worktree) => {
                    self.forget(worktree)?;
                    return Ok(path);
                }
                _ => {}
            }
        }
        Err(WorktreeError::Occupied(places.base.clone()))
    }

    /// Creates the branch, or moves one without commits of its own to the base. The branch comes first: whatever
    /// happens afterwards, the same command finds it again.
    fn prepare_branch(
        &self,
        request: &WorktreeRequest<'_>,
    ) -> Result<(LeaseStart, Option<Oid>), WorktreeError> {
        let tip = self.repository.find_branch(&request.branch)?;
        match tip {
            Some(tip) if tip == request.base => return Ok((LeaseStart::Reused { from: tip }, None)),
            Some(tip) if !self.repository.is_ancestor(tip, request.base)? => {
                return Ok((LeaseStart::Continued { tip }, None));
            }
            _ => {}
        }
        let name = request.branch.to_ref();
        let moves = [RefMove { name: &name, new: Some(request.base), old: tip }];
        let write = || self.repository.move_refs(&moves, "arborist: begin");
        if write().is_err() {
            checkout_locks::clear(&self.repository.common_dir.join(format!("{name}.lock")));
            write()?;
        }
        Ok(match tip {
            Some(from) => (LeaseStart::Reused { from }, None),
            None => (LeaseStart::Fresh, Some(request.base)),
        })
    }

    /// Registers a worktree without files.
    pub(super) fn make_at(&self, path: &Path, commit: Oid, reason: &str) -> Result<Worktree, WorktreeError> {
        self.note_making(path)?;
        let made = self.repository.add_worktree(path, commit, reason);
        let found = self.repository.list_worktrees();
        if let Err(error) = made {
            self.repair_failed(path)?;
            return Err(error.into());
        }
        self.note_made();
        self.hide_worktree(path)?;
        let found = found?.into_iter().find(|worktree| worktree.path == path);
        found.ok_or_else(|| WorktreeError::Missing(survey::name_of(path), path.to_owned()))
    }

    /// Hides a new worktree from `git status` of the checkout that it is in. It is registered before, so that the guards of
    /// other runs know what the new line in the exclude file is.
    pub(super) fn hide_worktree(&self, path: &Path) -> Result<(), WorktreeError> {
        let base = path.parent().unwrap_or(path);
        self.places.hide(&self.repository, base, &escaped_pattern(&survey::name_of(path)))
    }

    /// Unregisters a worktree whose directory is gone. Its branch stays. Something else at its path is renamed, because
    /// git does not unregister a worktree whose path exists.
    pub(super) fn forget(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let path = &worktree.path;
        if path.symlink_metadata().is_ok() {
            let name = survey::name_of(path);
            let mut free = (1u32..).map(|number| path.with_file_name(format!("{name}{REPLACED}{number}")));
            let kept = free.find(|free| free.symlink_metadata().is_err()).unwrap_or_default();
            safe_files::rename(path, &kept).map_err(WorktreeError::file("move", path))?;
            report_moved(path, &kept);
        }
        Ok(self.repository.forget_worktree(path)?)
    }

    /// Unregisters worktrees of ours whose path is now a file or a link, and that no process holds.
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

    fn lock_task(&self, request: &WorktreeRequest<'_>) -> Result<FileLock, WorktreeError> {
        let path =
            self.repository.lock_folder().join(survey::name_of_task_lock(&request.branch, request.task));
        Ok(self.take_lock(&path, request.task)?.temporary())
    }

    pub(super) fn lock_worktree(&self, path: &Path, task: &TaskId) -> Result<FileLock, WorktreeError> {
        self.take_lock(&self.repository.worktree_lock(path), task)
    }

    fn take_lock(&self, path: &Path, task: &TaskId) -> Result<FileLock, WorktreeError> {
        let what = format!("{task} of {}", self.run);
        let busy = |source: LockError| WorktreeError::Busy { task: task.clone(), source };
        FileLock::take_within(path, &what, LOOK_TIME, &Cancel::new()).map_err(busy)
    }
}

/// Where a task starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchBase {
    /// The commit.
    pub commit: Oid,
    /// Why that one.
    pub reason: BaseReason,
}

/// Why a task starts there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BaseReason {
    /// The run's branch has no upstream, or the remote was not to be asked.
    Local,
    /// The remote has nothing new.
    Current,
    /// The remote is ahead.
    Fetched {
        /// The remote's branch.
        from: String,
        /// The number of new commits.
        more: u64,
    },
    /// Both have commits that the other has not.
    Diverged {
        /// The remote's branch.
        from: String,
    },
    /// The remote could not be reached.
    Offline {
        /// The remote.
        remote: String,
        /// Git's error message.
        why: String,
    },
}

impl Pool {
    /// Where a task starts now. Fetches the upstream of the run's branch.
    pub fn find_base(&self, tip: Oid) -> Result<BranchBase, WorktreeError> {
        let repository = &self.repository;
        let Some(upstream) = repository.find_upstream(&self.run)? else {
            return Ok(BranchBase { commit: tip, reason: BaseReason::Local });
        };
        let there = match repository.fetch_upstream(&upstream)? {
            Ok(there) => there,
            Err(why) => {
                let reason = BaseReason::Offline { remote: upstream.remote, why };
                return Ok(BranchBase { commit: tip, reason });
            }
        };
        let distance = repository.distance(there, tip)?;
        let from = upstream.shown().to_owned();
        Ok(match (distance.ahead, distance.behind) {
            (0, _) => BranchBase { commit: tip, reason: BaseReason::Current },
            (more, 0) => BranchBase { commit: there, reason: BaseReason::Fetched { from, more } },
            _ => BranchBase { commit: tip, reason: BaseReason::Diverged { from } },
        })
    }
}
