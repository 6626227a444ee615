//! The worktree of a session: the session's branch is checked out there, next to the user's checkout.

use std::path::{Path, PathBuf};

use super::{Pool, WorktreeError, WorktreeNote, claim::WorktreeOrigin, fill};
use crate::{
    git::{Repository, Worktree},
    name::SessionId,
    process::{FileLock, Occupants},
    safe_files::{self, FileKind},
};

/// The lock reason of session worktrees.
pub const SESSION_REASON: &str = "arborist session";
/// What happened to a worktree that gave its branch back.
#[derive(Debug)]
pub enum GivenBack {
    /// It had no uncommitted work and was removed.
    Removed,
    /// It was kept with a detached `HEAD`, for this reason.
    Detached(PathBuf, &'static str),
}

/// How many paths for one name are tried.
const MAX_NAMES: usize = 100;

/// Where a run's branch is checked out.
#[derive(Debug)]
pub struct SessionWorktree {
    /// The repository, opened there.
    pub repository: Repository,
    /// Its top.
    pub path: PathBuf,
    /// Whether it was created for a session, and is not a checkout of the user.
    pub is_made: bool,
    /// Whether it was created or chosen just now, and not already the checkout of the branch.
    pub was_entered_now: bool,
    /// Notes for the user.
    pub notes: Vec<WorktreeNote>,
}

impl Pool {
    /// Where the run's branch is checked out, if it is.
    pub fn find_session_worktree(&self) -> Result<Option<SessionWorktree>, WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        match worktrees.iter().find(|found| self.has_run(found) && is_folder(&found.path)) {
            Some(found) => Ok(Some(self.session_worktree_in(found, Vec::new())?)),
            None => Ok(None),
        }
    }

    /// The worktree in which the run's branch, which must exist, is checked out. If there is none, one is created for the
    /// session.
    pub fn session_worktree(&self, session: &SessionId) -> Result<SessionWorktree, WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let mut worktrees = self.repository.list_worktrees()?;
        if let Some(at) = worktrees.iter().position(|found| self.has_run(found)) {
            if is_folder(&worktrees[at].path) {
                return self.session_worktree_in(&worktrees[at], Vec::new());
            }
            self.forget(&worktrees.remove(at))?;
        }
        let tip = self.repository.require_commit(&self.run.to_ref())?;
        let places = self.places.prepared(&self.repository, &worktrees)?;
        for number in 1..=MAX_NAMES {
            let name = if number == 1 {
                format!("session-{session}")
            } else {
                format!("session-{session}-{number}")
            };
            let path = places.base.join(name);
            let registered = worktrees.iter().find(|found| found.path == path);
            let make = || self.make_at(&path, tip, SESSION_REASON);
            let (worktree, origin) = match registered {
                // A killed process did not check out its branch, or it gave the branch back and was kept.
                Some(found) if is_of_session(found) && found.branch.is_none() && path.is_dir() => {
                    (found.clone(), WorktreeOrigin::Reused)
                }
                Some(found) if is_of_session(found) && !path.is_dir() => {
                    self.forget(found)?;
                    (make()?, WorktreeOrigin::Made)
                }
                None if path.symlink_metadata().is_err() => (make()?, WorktreeOrigin::Made),
                _ => continue,
            };
            let lane = self.linked(&worktree)?;
            self.repair_link(&lane)?;
            let mut notes = self.fill(&lane, &self.run, origin)?;
            notes.extend(self.set_up(&lane, &self.place_variables(&path))?);
            let session_worktree =
                self.session_worktree_in(&Worktree { branch: Some(self.run.clone()), ..worktree }, notes)?;
            return Ok(SessionWorktree { was_entered_now: true, ..session_worktree });
        }
        Err(WorktreeError::Occupied(places.base))
    }

    /// Releases a branch that is wanted elsewhere because it was not created for its session. Does nothing while a run
    /// is at work there, or if the user has checked the branch out.
    pub fn give_back(&self) -> Result<Option<GivenBack>, WorktreeError> {
        let _registry_lock = self.lock_registry()?;
        let worktrees = self.repository.list_worktrees()?;
        let is_it = |found: &&Worktree| self.has_run(found) && is_of_session(found) && found.path.is_dir();
        let Some(found) = worktrees.iter().find(is_it) else {
            return Ok(None);
        };
        let lock = FileLock::try_take(&self.repository.run_lock(&self.run), "git arborist worktree");
        let Ok(_lock) = lock else {
            return Ok(None);
        };
        let lane = self.linked(found)?;
        let Some(why) = self.find_needed(&lane)? else {
            self.discard(&found.path)?;
            return Ok(Some(GivenBack::Removed));
        };
        if let Some(head) = found.head {
            lane.detach(head)?;
        }
        Ok(Some(GivenBack::Detached(found.path.clone(), why)))
    }

    /// Why a worktree cannot simply be deleted.
    fn find_needed(&self, lane: &Repository) -> Result<Option<&'static str>, WorktreeError> {
        let changed_paths = lane.changed_paths()?;
        let is_safe = || {
            fill::refuse_inner(lane, &changed_paths)?;
            self.keep_submodules(lane)
        };
        if !changed_paths.is_empty() {
            return Ok(Some("it has uncommitted files"));
        }
        if is_safe().is_err() {
            return Ok(Some("it contains a repository with its own work"));
        }
        let is_free = Occupants::find().is_none_or(|occupants| occupants.of(&lane.dir).is_none());
        Ok((!is_free).then_some("a process is in it"))
    }

    fn has_run(&self, worktree: &Worktree) -> bool {
        worktree.branch.as_ref() == Some(&self.run)
    }

    fn session_worktree_in(
        &self,
        worktree: &Worktree,
        notes: Vec<WorktreeNote>,
    ) -> Result<SessionWorktree, WorktreeError> {
        let (repository, path) = (self.linked(worktree)?, worktree.path.clone());
        Ok(SessionWorktree {
            repository,
            path,
            is_made: is_of_session(worktree),
            was_entered_now: false,
            notes,
        })
    }
}

/// Whether a path is a directory. A link in the place of a worktree does not count, wherever it leads.
fn is_folder(path: &Path) -> bool {
    safe_files::kind_of(path) == Some(FileKind::Folder)
}

/// Whether this worktree was created for a session.
pub(super) fn is_of_session(worktree: &Worktree) -> bool {
    worktree.lock.as_deref() == Some(SESSION_REASON)
}
