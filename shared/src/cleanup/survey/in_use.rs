//! Whether a candidate is in use: by a run or what is left of it, by the queue, or by a process that works in a lane.

use std::fs;

use super::CleanupFacts;
use crate::{
    cleanup::{Candidate, InUse, homes::LeftRunning},
    name::{BranchName, TaskId, unescaped},
    process::{FileLock, OrphanLock},
    queue::{Claimant, TICKETS},
};

impl CleanupFacts<'_> {
    /// Adds whether the run of a candidate is at work or landing something.
    pub(super) fn add_run_facts(&self, candidate: &mut Candidate) {
        let Some(run) = candidate.run.clone() else {
            return;
        };
        let mut runs = self.runs.borrow_mut();
        let known = runs.entry(run.clone()).or_insert_with(|| self.find_driver(&run));
        match known {
            Ok(active) => candidate.in_use.extend(active.clone()),
            Err(why) => candidate.unknown.push(why.clone()),
        }
    }

    /// Whether a process drives a run, here or where its session is recorded, or is left of it.
    fn find_driver(&self, run: &str) -> Result<Option<InUse>, String> {
        for (at, driver) in self.sweep.drivers_of(run).iter().enumerate() {
            // A run takes the lock `session-…` in the other repositories that it works in.
            for kind in ["run", "landing", "session"] {
                let held = FileLock::look(&driver.folder.join(format!("{kind}-{}", driver.run)));
                if held.map_err(|error| format!("whether '{run}' is active: {error}"))?.is_some() {
                    return Ok(Some(InUse::Run(unescaped(&driver.run))));
                }
            }
            let left = match at {
                0 => self.left_running.of_run(run)?,
                _ => LeftRunning::find(&driver.folder).of_run(&driver.run)?,
            };
            if left.is_some() {
                return Ok(left);
            }
        }
        Ok(None)
    }

    /// Adds whether the task is queued, or its target claimed.
    pub(super) fn add_queue_facts(&self, candidate: &mut Candidate, run: &str, task: &TaskId) {
        if self.refs.find(&format!("{TICKETS}{run}/{task}")).is_some() {
            candidate.in_use.push(InUse::Queued);
        }
        self.add_claim_facts(candidate, run);
    }

    /// Adds whether a process that may be alive has claimed the target of a run.
    pub(super) fn add_claim_facts(&self, candidate: &mut Candidate, run: &str) {
        match self.claims.get(run) {
            Some(Claimant::Alive(_)) => candidate.in_use.push(InUse::Claim),
            Some(Claimant::Unreadable) => candidate.unknown.push(format!("who has claimed '{run}'")),
            Some(Claimant::Dead) | None => {}
        }
    }

    /// Adds whether a process works in the lane of the task.
    pub(super) fn add_worker_facts(&self, candidate: &mut Candidate, branch: &BranchName, task: &TaskId) {
        let Some(pool) = &self.sweep.pool else { return };
        match pool.find_worker(branch, task) {
            Ok(None) => {}
            Ok(Some(holder)) => candidate.in_use.push(InUse::Lock(holder.to_string())),
            Err(error) => candidate.unknown.push(format!("whether a process is working on it: {error}")),
        }
    }

    /// Who may still write a log: any run at work, or a process that a killed run left.
    pub(super) fn find_writer(&self) -> Result<Option<InUse>, String> {
        let locks = self.sweep.repository.lock_folder();
        for entry in fs::read_dir(locks).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(run) = name.strip_prefix("run-").filter(|_| !name.ends_with(OrphanLock::SUFFIX)) else {
                continue;
            };
            match FileLock::look(&entry.path()) {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(Some(InUse::Run(unescaped(run)))),
                Err(error) => return Err(format!("whether a run of '{run}' is active: {error}")),
            }
        }
        // This has read the same directory, and knows whether that succeeded.
        self.left_running.any()
    }
}
