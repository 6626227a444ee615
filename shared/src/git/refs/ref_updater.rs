//! Keeps git processes that move refs open. They are the only git processes that stay open.
//!
//! Refs are moved about eleven times for each task, and only by git: libgit2 has neither transactions over several refs
//! nor reftables. `git update-ref` takes 2 to 4 ms to start and a tenth of that for a transaction, so starting it each
//! time would double the cost of a run of small tasks (otherwise 1.3 times the cost of its agents and commits). A
//! transaction moves nothing unless all of it has arrived, so it does not matter when this process is killed.
//!
//! There is one process for each worktree, because git records moves of the checked-out branch in the reflog of that
//! worktree's `HEAD`, and for each reason, because git takes the reflog message as an argument. Refs that no worktree
//! checks out are moved by processes that all worktrees share. A run in a checkout needs two processes.

use std::{
    collections::HashMap,
    io::BufRead,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use crate::{
    git::{GitCommand, GitError, Repository, git_dir_id::GitDirId},
    mutex::MutexExt,
    process::RunningProgram,
};

/// The processes of a repository and its worktrees, by git directory, reason and whether they are confined. Clones
/// share them.
#[derive(Debug, Clone, Default)]
pub(in crate::git) struct RefUpdaters(Arc<Mutex<HashMap<UpdaterKey, RefUpdater>>>);

type UpdaterKey = (PathBuf, Reason, bool);

/// What the reflogs of moved refs say.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::git) struct Reason {
    /// The message.
    pub(in crate::git) message: String,
    /// Whether refs get a reflog that git would not give them by itself.
    pub(in crate::git) creates_reflog: bool,
}

/// One process, started when it is first needed.
type RefUpdater = Arc<Mutex<Option<RunningProgram>>>;

impl RefUpdaters {
    fn find(&self, (git_dir, why, is_confined): UpdaterKey) -> RefUpdater {
        let mut all = self.0.hold();
        if is_confined {
            // One that was started before is not used again.
            all.remove(&(git_dir.clone(), why.clone(), false));
        }
        Arc::clone(all.entry((git_dir, why, is_confined)).or_default())
    }
}

impl Repository {
    /// Commits one transaction. A process that does not answer is ended.
    pub(in crate::git) fn commit_transaction(
        &self,
        transaction: &str,
        why: &Reason,
    ) -> Result<TransactionEnd, GitError> {
        let updater = self.ref_updaters.find((self.git_dir.clone(), why.clone(), self.confines_refs()));
        // Under the table of owned refs; held until the transaction has ended.
        let mut slot = updater.hold();
        self.git_dir_ids.iter().try_for_each(GitDirId::require)?;
        let mut running = match slot.take() {
            Some(running) => running,
            None => self.start_updater(why)?,
        };
        if running.send_request(transaction.as_bytes()).is_ok() && has_committed(&mut running) {
            *slot = Some(running);
            return Ok(TransactionEnd::Committed);
        }
        let complaint = running.finish()?.complaint();
        Ok(if complaint.is_empty() { TransactionEnd::Killed } else { TransactionEnd::Refused(complaint) })
    }

    pub(in crate::git) fn update_refs(&self, why: &Reason) -> GitCommand {
        let command = self.change("update-ref").args(why.creates_reflog.then_some("--create-reflog"));
        command.args(["-m", &why.message, "--stdin"])
    }
    fn start_updater(&self, why: &Reason) -> Result<RunningProgram, GitError> {
        let command = self.update_refs(why).env("GIT_FLUSH", "1");
        // Not in a lane: a process with its current directory there would keep the lane from being removed.
        if self.ignores_index_env {
            command.dir(&self.common_dir).start_interactive()
        } else {
            command.start_interactive()
        }
    }
}

/// How a transaction ended.
pub(in crate::git) enum TransactionEnd {
    /// All refs were moved.
    Committed,
    /// git moved nothing, and printed this error message.
    Refused(String),
    /// Another process killed git before it answered, so it is unknown whether the refs were moved.
    Killed,
}

/// git answers each command. Without the last answer it is unknown whether the refs were moved.
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
