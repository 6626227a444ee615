//! To start git costs more than most of what it is asked. What is asked many times for a task is asked of one that stays.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{GitCommand, GitError, Repository, identity::GitDirId};
use crate::{name::ObjectKind, process::RunningProgram};

/// A git that stays, once it was needed. Copies share it.
#[derive(Debug, Clone, Default)]
pub(super) struct PersistentGit {
    running: Arc<Mutex<Option<RunningProgram>>>,
    /// The git directories that it was started for.
    homes: Arc<[GitDirId]>,
}

impl PersistentGit {
    /// Talks to it, and starts it first if there is none. One that gives no answer is ended; what it complained of is
    /// returned then, which is nothing if somebody else ended it.
    pub(super) fn ask<T>(
        &self,
        start: impl FnOnce() -> Result<RunningProgram, GitError>,
        talk: impl FnOnce(&mut RunningProgram) -> Option<T>,
    ) -> Result<Result<T, String>, GitError> {
        let mut kept = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.homes.iter().try_for_each(GitDirId::require)?;
        let mut running = match kept.take() {
            Some(running) => running,
            None => start()?,
        };
        if let Some(answer) = talk(&mut running) {
            *kept = Some(running);
            return Ok(Ok(answer));
        }
        Ok(Err(running.finish()?.complaint()))
    }
}

/// What a git that stays is there for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum GitService {
    /// It writes objects of one kind.
    Write(ObjectKind),
    /// It tells what objects are and hold.
    Read,
    /// It moves refs, for this reason.
    Move(String),
}

/// The gits that stay for a repository and its worktrees. Copies share them.
#[derive(Debug, Clone, Default)]
pub(super) struct PersistentGits(Arc<Mutex<HashMap<(PathBuf, GitService), PersistentGit>>>);

impl PersistentGits {
    fn find(&self, git_dir: &Path, duty: GitService) -> PersistentGit {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((git_dir.to_owned(), duty)).or_default().clone()
    }
}

impl Repository {
    /// The git that has a duty at a git directory of this repository.
    pub(super) fn clerk_at(&self, git_dir: &Path, duty: GitService) -> PersistentGit {
        PersistentGit { homes: Arc::clone(&self.homes), ..self.clerks.find(git_dir, duty) }
    }

    /// The git that has a duty for all worktrees.
    pub(super) fn clerk(&self, duty: GitService) -> PersistentGit {
        self.clerk_at(&self.common_dir, duty)
    }

    /// The git that has a duty for this worktree alone, whose `HEAD` it knows.
    pub(super) fn own_clerk(&self, duty: GitService) -> PersistentGit {
        self.clerk_at(&self.git_dir, duty)
    }

    /// Starts a git that stays. It is in no lane: whoever wants to remove one would find it there.
    pub(super) fn converse(&self, command: GitCommand) -> Result<RunningProgram, GitError> {
        let command = command.env("GIT_FLUSH", "1");
        if self.is_pinned { command.dir(&self.common_dir).converse() } else { command.converse() }
    }
}
