//! Does what was decided, and nothing else. Each fact is checked again at the moment of deletion: refs are deleted by
//! compare-and-swap, worktrees under their locks. What has changed meanwhile stays, and is reported.

mod refs;
mod remotes;
mod worktrees;

use std::{collections::HashMap, path::PathBuf, time::Duration};

use super::{
    CandidateKind, CandidatePlace, CleanupError, CleanupPlan, CleanupVerdict, Grounds, JudgedCandidate,
    Sweep,
    homes::{DriverLocks, LeftRunning},
};
use crate::{
    process::{Cancel, FileLock},
    worktree::delete_in_background,
};

/// The outcome for a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanupOutcome {
    /// It was deleted. Its content was saved under these refs.
    Removed {
        /// Their full names.
        saved: Vec<String>,
    },
    /// It was moved to the trash, and is deleted in the background. Its content was saved under these refs.
    Trashed {
        /// Their full names.
        saved: Vec<String>,
    },
    /// It stays, because the plan says so or because something has changed since.
    Kept(String),
    /// It should have been deleted, but could not be.
    Failed(String),
}

/// How long to wait for another cleanup.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// The execution of one plan.
struct Execution<'a> {
    sweep: &'a Sweep<'a>,
    items: &'a [JudgedCandidate],
    outcomes: Vec<Option<CleanupOutcome>>,
    /// The locks of the runs whose candidates are deleted, so that no other process drives them; or why a lock could
    /// not be taken.
    runs: HashMap<String, Result<Vec<FileLock>, String>>,
    /// The branches of each remote that is cleaned, or why it could not be reached.
    remotes: HashMap<String, remotes::RemoteBranches>,
    trash: Vec<PathBuf>,
}

impl Sweep<'_> {
    /// Does what `plan` says. Returns the outcome of each of its items.
    pub fn apply(&self, plan: &CleanupPlan) -> Result<Vec<CleanupOutcome>, CleanupError> {
        // Before any lock is taken: a remote may be slow.
        let remotes = self.ask_remotes(plan)?;
        let locks = self.repository.lock_folder();
        let lock = FileLock::take_within(
            &locks.join("cleanup"),
            "git arborist cleanup",
            LOCK_TIMEOUT,
            &Cancel::new(),
        );
        let lock = lock.map_err(CleanupError::Locked)?;
        self.repository.remove_stale_locks(&lock)?;
        let gate = self.pool.as_ref().map(crate::worktree::Pool::lock_registry).transpose()?;
        let mut execution = Execution {
            sweep: self,
            items: &plan.items,
            outcomes: vec![None; plan.items.len()],
            runs: HashMap::new(),
            remotes,
            trash: Vec::new(),
        };
        execution.take_runs();
        execution.record_kept();
        execution.remove_places(gate.as_ref())?;
        execution.remove_refs()?;
        execution.remove_files();
        delete_in_background(self.repository, &execution.trash);
        drop(gate);
        execution.remove_remotes()?;
        let forgotten =
            || CleanupOutcome::Failed("it was skipped because of a bug; please report this".into());
        Ok(execution.outcomes.into_iter().map(|outcome| outcome.unwrap_or_else(forgotten)).collect())
    }
}

impl Execution<'_> {
    fn record_kept(&mut self) {
        for (item, outcome) in self.items.iter().zip(&mut self.outcomes) {
            if let CleanupVerdict::Keep(reason) = &item.verdict {
                *outcome = Some(CleanupOutcome::Kept(reason.to_string()));
            }
        }
    }

    /// Takes the locks of all runs whose candidates are deleted, here and where their sessions are recorded, so that
    /// none of them starts meanwhile.
    fn take_runs(&mut self) {
        for item in self.items.iter().filter(|item| matches!(item.verdict, CleanupVerdict::Remove(..))) {
            let Some(run) = &item.candidate.run else { continue };
            self.runs.entry(run.clone()).or_insert_with(|| {
                let mut locks = Vec::new();
                for DriverLocks { folder, run } in self.sweep.drivers_of(run) {
                    let lock = FileLock::try_take(&folder.join(format!("run-{run}")), "git arborist cleanup");
                    locks.push(lock.map_err(|error| error.to_string())?);
                    if let Some(active) = LeftRunning::find(&folder).of_run(&run)? {
                        return Err(active.to_string());
                    }
                }
                Ok(locks)
            });
        }
    }

    /// Why the run of an item prevents its deletion.
    fn refuse_run(&self, item: &JudgedCandidate) -> Option<String> {
        let run = item.candidate.run.as_ref()?;
        self.runs.get(run)?.as_ref().err().map(|why| format!("its run is active: {why}"))
    }

    /// The items to delete that have no outcome yet.
    fn open(&self, suits: impl Fn(&JudgedCandidate) -> bool) -> Vec<usize> {
        let is_open = |at: &usize| self.outcomes[*at].is_none() && suits(&self.items[*at]);
        (0..self.items.len()).filter(is_open).collect()
    }

    /// Deletes logs, reports, caches, and trash of earlier cleanups.
    fn remove_files(&mut self) {
        for at in self.open(|item| matches!(item.candidate.place, CandidatePlace::Path(_))) {
            let candidate = &self.items[at].candidate;
            let CandidatePlace::Path(path) = &candidate.place else { continue };
            self.outcomes[at] = Some(match candidate.what {
                CandidateKind::Trash => {
                    self.trash.push(path.clone());
                    match &self.items[at].verdict {
                        CleanupVerdict::Remove(Grounds::DeletionFailed(why), _) => {
                            CleanupOutcome::Failed(format!("could not be deleted: {why}; trying again"))
                        }
                        _ => CleanupOutcome::Trashed { saved: Vec::new() },
                    }
                }
                _ => worktrees::remove(candidate, path),
            });
        }
    }
}
