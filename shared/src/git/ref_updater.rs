//! The git processes that move refs, the only ones that stay.
//!
//! Refs are moved about eleven times for a task, and only git moves them: libgit2 has no transaction over several refs and no tables
//! of refs. `git update-ref` takes 2 to 4 ms to start and a tenth of that for a transaction, so that to start it each time would
//! double the cost of a run of small tasks (1.3 times the cost of its agents and commits otherwise). What such a process is told
//! moves nothing unless all of it arrives, so that it does not matter when we are killed.
//!
//! One moves refs for one worktree, because git notes moves of the branch that is checked out there in the log of its `HEAD`,
//! and for one reason, because git takes that as an argument. A run in a checkout needs two of them.

use std::{
    collections::HashMap,
    io::BufRead,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use super::{GitCommand, GitError, Repository, identity::GitDirId};
use crate::process::RunningProgram;

/// The processes for a repository and its worktrees, by git directory and reason. Copies share them.
#[derive(Debug, Clone, Default)]
pub(super) struct RefUpdaters(Arc<Mutex<HashMap<(PathBuf, String), RefUpdater>>>);

/// One of them, once it was needed.
type RefUpdater = Arc<Mutex<Option<RunningProgram>>>;

impl RefUpdaters {
    fn find(&self, key: (PathBuf, String)) -> RefUpdater {
        Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default())
    }
}

impl Repository {
    /// Has one transaction committed. A process that gives no answer is ended, and what it complained of is returned, which is
    /// nothing if somebody else ended it.
    pub(super) fn have_committed(
        &self,
        transaction: &str,
        why: &str,
    ) -> Result<Result<(), String>, GitError> {
        let updater = self.ref_updaters.find((self.git_dir.clone(), why.to_owned()));
        let mut kept = updater.lock().unwrap_or_else(PoisonError::into_inner);
        self.homes.iter().try_for_each(GitDirId::require)?;
        let mut running = match kept.take() {
            Some(running) => running,
            None => self.start_updater(why)?,
        };
        if running.tell(transaction.as_bytes()).is_ok() && has_committed(&mut running) {
            *kept = Some(running);
            return Ok(Ok(()));
        }
        Ok(Err(running.finish()?.complaint()))
    }

    pub(super) fn update_refs(&self, why: &str) -> GitCommand {
        self.change("update-ref").args(["--create-reflog", "-m", why, "--stdin"])
    }

    fn start_updater(&self, why: &str) -> Result<RunningProgram, GitError> {
        let command = self.update_refs(why).env("GIT_FLUSH", "1");
        // Not in a lane: whoever wants to remove one would find it there.
        if self.is_pinned { command.dir(&self.common_dir).converse() } else { command.converse() }
    }
}

/// It answers to each command. Without the last answer it is not known whether anything has moved.
fn has_committed(running: &mut RunningProgram) -> bool {
    let Some(output) = running.output() else { return false };
    let mut answer = String::new();
    loop {
        answer.clear();
        match output.read_line(&mut answer) {
            Ok(0) | Err(_) => return false,
            Ok(_) if answer.trim_end() == "commit: ok" => return true,
            Ok(_) => {}
        }
    }
}
