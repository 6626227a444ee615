//! A worktree for a whole run: the run's own branch is checked out there, beside the user's checkout.

use std::path::PathBuf;

use super::{Note, Pool, WorktreeError, claim::Origin};
use crate::{
    git::{Repository, Worktree},
    name::SessionId,
};

/// The reason that worktrees of sessions are locked with.
pub const SESSION_REASON: &str = "arborist session";
/// So many places of one name are looked for.
const NAMES: usize = 100;

/// Where a run's branch is checked out.
#[derive(Debug)]
pub struct House {
    /// The repository as it is seen from there.
    pub repository: Repository,
    /// Its top.
    pub path: PathBuf,
    /// Whether it was made just now.
    pub is_new: bool,
    /// What the user should know.
    pub notes: Vec<Note>,
}

impl Pool {
    /// Where the branch of the run is checked out, if it is.
    pub fn find_house(&self) -> Result<Option<House>, WorktreeError> {
        let worktrees = self.repository.list_worktrees()?;
        match worktrees.iter().find(|found| self.has_run(found) && found.path.is_dir()) {
            Some(found) => Ok(Some(self.house_in(found, Vec::new())?)),
            None => Ok(None),
        }
    }

    /// The same; where the branch, which must be there, is not checked out, a worktree is made for the session.
    pub fn house(&self, session: &SessionId) -> Result<House, WorktreeError> {
        let _gate = self.gate()?;
        let mut worktrees = self.repository.list_worktrees()?;
        if let Some(at) = worktrees.iter().position(|found| self.has_run(found)) {
            if worktrees[at].path.is_dir() {
                return self.house_in(&worktrees[at], Vec::new());
            }
            self.forget(&worktrees.remove(at))?;
        }
        let tip = self.repository.require_commit(&self.run.to_ref())?;
        let places = self.places.prepared(&self.repository, &worktrees)?;
        for number in 1..=NAMES {
            let name = if number == 1 {
                format!("session-{session}")
            } else {
                format!("session-{session}-{number}")
            };
            let path = places.base.join(name);
            let registered = worktrees.iter().find(|found| found.path == path);
            let worktree = match registered {
                // Somebody was killed before its branch came there.
                Some(found) if is_ours(found) && found.branch.is_none() && path.is_dir() => found.clone(),
                Some(found) if is_ours(found) && !path.is_dir() => {
                    self.forget(found)?;
                    self.make_at(&path, tip, SESSION_REASON)?
                }
                None if path.symlink_metadata().is_err() => self.make_at(&path, tip, SESSION_REASON)?,
                _ => continue,
            };
            let lane = self.linked(&worktree)?;
            self.mend_link(&lane)?;
            let mut notes = self.fill(&lane, &self.run, Origin::Made)?;
            notes.extend(self.set_up(&lane, &self.place_variables(&path))?);
            let house = self.house_in(&Worktree { branch: Some(self.run.clone()), ..worktree }, notes)?;
            return Ok(House { is_new: true, ..house });
        }
        Err(WorktreeError::Occupied(places.base))
    }

    fn has_run(&self, worktree: &Worktree) -> bool {
        worktree.branch.as_ref() == Some(&self.run)
    }

    fn house_in(&self, worktree: &Worktree, notes: Vec<Note>) -> Result<House, WorktreeError> {
        let (repository, path) = (self.linked(worktree)?, worktree.path.clone());
        Ok(House { repository, path, is_new: false, notes })
    }
}

fn is_ours(worktree: &Worktree) -> bool {
    worktree.lock.as_deref() == Some(SESSION_REASON)
}
