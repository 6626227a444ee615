//! Does what the plan says, and nothing else. Each fact is looked at again at the moment of deletion: refs go by
//! compare-and-swap, worktrees behind their locks. What changed meanwhile stays, and is told.

mod files;
mod places;
mod refs;
mod remotes;
mod save;

pub(super) use save::{message_of, staged_message};

use std::{collections::HashMap, path::PathBuf, time::Duration};

use super::{
    CandidatePlace, CleanupError, CleanupPlan, CleanupVerdict, JudgedCandidate, Sweep, What,
    left_running::LeftRunning,
};
use crate::{
    process::{Cancel, FileLock},
    worktree::delete_in_background,
};

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CleanupOutcome {
    /// It is gone. What was saved of it stands under these refs.
    Removed {
        /// Their full names.
        saved: Vec<String>,
    },
    /// It stays, as the plan says or for what has changed since.
    Kept(String),
    /// It was to go, and could not.
    Failed(String),
}

/// How long another cleanup may take before we give up.
const PATIENCE: Duration = Duration::from_millis(500);

/// The doing of one plan.
struct Doing<'a> {
    sweep: &'a Sweep<'a>,
    items: &'a [JudgedCandidate],
    fates: Vec<Option<CleanupOutcome>>,
    /// Whether nobody else drives these runs for as long as this lives, and if not, why.
    runs: HashMap<String, Result<FileLock, String>>,
    /// The branches of each remote that something goes of, or why it could not be asked.
    remotes: HashMap<String, remotes::RemoteBranches>,
    trash: Vec<PathBuf>,
}

impl Sweep<'_> {
    /// Does what `plan` says. Gives what became of each of its items.
    pub fn apply(&self, plan: &CleanupPlan) -> Result<Vec<CleanupOutcome>, CleanupError> {
        // A remote may take its time: nobody has to wait for us meanwhile.
        let remotes = self.ask_remotes(plan)?;
        let locks = self.repository.common_dir.join("arborist/locks");
        let lock =
            FileLock::take_within(&locks.join("cleanup"), "git arborist cleanup", PATIENCE, &Cancel::new());
        let _lock = lock.map_err(CleanupError::Locked)?;
        self.repository.recover_locks()?;
        let gate = self.pool.as_ref().map(crate::worktree::Pool::close).transpose()?;
        let mut doing = Doing {
            sweep: self,
            items: &plan.items,
            fates: vec![None; plan.items.len()],
            runs: HashMap::new(),
            remotes,
            trash: Vec::new(),
        };
        doing.take_runs();
        doing.keep_the_kept();
        doing.remove_places()?;
        doing.remove_refs()?;
        doing.remove_files();
        delete_in_background(&doing.trash);
        drop(gate);
        doing.remove_remotes()?;
        let untold = || CleanupOutcome::Failed("nobody saw to it".into());
        Ok(doing.fates.into_iter().map(|fate| fate.unwrap_or_else(untold)).collect())
    }
}

impl Doing<'_> {
    fn keep_the_kept(&mut self) {
        for (item, fate) in self.items.iter().zip(&mut self.fates) {
            if let CleanupVerdict::Keep(reason) = &item.verdict {
                *fate = Some(CleanupOutcome::Kept(reason.to_string()));
            }
        }
    }

    /// Takes the locks of all runs that something goes of, so that none of them begins meanwhile.
    fn take_runs(&mut self) {
        let locks = self.sweep.repository.common_dir.join("arborist/locks");
        for item in self.items.iter().filter(|item| matches!(item.verdict, CleanupVerdict::Remove(..))) {
            let Some(run) = &item.candidate.run else { continue };
            self.runs.entry(run.clone()).or_insert_with(|| {
                let lock = FileLock::try_take(&locks.join(format!("run-{run}")), "git arborist cleanup");
                let lock = lock.map_err(|error| error.to_string())?;
                match LeftRunning::find(&locks).of_run(run)? {
                    Some(active) => Err(active.to_string()),
                    None => Ok(lock),
                }
            });
        }
    }

    /// Why the run of an item keeps it, if it does.
    fn refuse_run(&self, item: &JudgedCandidate) -> Option<String> {
        let run = item.candidate.run.as_ref()?;
        self.runs.get(run)?.as_ref().err().map(|why| format!("its run is under way: {why}"))
    }

    /// The items that are to go and of which nothing was decided yet.
    fn open(&self, suits: impl Fn(&JudgedCandidate) -> bool) -> Vec<usize> {
        let is_open = |at: &usize| self.fates[*at].is_none() && suits(&self.items[*at]);
        (0..self.items.len()).filter(is_open).collect()
    }

    /// Files that are nobody's work, and what was thrown away before.
    fn remove_files(&mut self) {
        for at in self.open(|item| matches!(item.candidate.spot, CandidatePlace::Path(_))) {
            let candidate = &self.items[at].candidate;
            let CandidatePlace::Path(path) = &candidate.spot else { continue };
            self.fates[at] = Some(match candidate.what {
                What::Trash => {
                    self.trash.push(path.clone());
                    CleanupOutcome::Removed { saved: Vec::new() }
                }
                _ => files::remove(candidate, path),
            });
        }
    }
}
