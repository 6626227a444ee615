//! Repairs what a killed driver left.
//!
//! The order, in a run. The first three stages are [`recover_branch`], which every command calls that writes to the branch of a run:
//!
//! 1. Lock files of git (`git::locks`).
//! 2. Half an update of a checkout (`git::interrupted_updates`), and the claim of a dead process on the queue
//!    (`queue::claim`).
//! 3. Turns whose record was written, and whose commit is not on the branch yet (`session::recovery`). This moves the branch, and a
//!    note of an interrupted update counts only until then.
//! 4. Processes that are still running: [`OpenRun::end_orphans`]. From here on, nothing of the dead driver writes.
//! 5. Guarded files that have changed since are named ([`OpenRun::warn_of_changes_since_kill`]), and not restored.
//! 6. Unfinished attempts on the run's own branch are recorded as interrupted: [`OpenRun::record_interrupted`].
//! 7. With lanes, processes that are still running in them (`Lanes::clear`). When a task takes its lane, its unfinished attempts are
//!    recorded there, by the same code (`gardener::interrupted_attempts`).
//! 8. When a task continues, a test or review without a result is recorded as interrupted (`record_lost_step` in
//!    `pipeline::attempts`).
//! 9. When the queue is read, landings that were not completed (`queue::git_backend::read_and_repair`), also in other repositories.

use super::{OpenRun, Planned, branch_choice::RunPlace, monitor::RunMonitor};
use crate::{
    failure::Failure,
    gardener::{GardenerError, Lanes, recover},
    git::Repository,
    history::Run,
    name::BranchName,
    process::{FileLock, LockError, OrphanLock},
    queue::QueueClaim,
    record::{RunRecorder, repair_index},
    session::finish_turns,
    worktree::GRACE,
};

impl OpenRun {
    /// Ends processes that a crashed run left running.
    pub(super) fn end_orphans(&self, monitor: &mut RunMonitor<'_>) -> Result<OrphanLock, Failure> {
        let path = OrphanLock::beside(self.lock.path());
        let (orphan_lock, ended) = OrphanLock::take_over(&self.lock, &path, GRACE)
            .map_err(|source| GardenerError::Locked { branch: self.branch.clone(), source })?;
        let pids: Vec<String> = ended.iter().map(ToString::to_string).collect();
        if !pids.is_empty() {
            let words = format!("ended processes that a crashed run had left: {}", pids.join(", "));
            monitor.listener.warn(&words);
        }
        Ok(orphan_lock)
    }

    /// Records attempts that a crash interrupted.
    pub(super) fn record_interrupted(
        &self,
        planned: &Planned,
        run: &Run,
        lanes: Option<&Lanes<'_>>,
        monitor: &mut RunMonitor<'_>,
    ) -> Result<RunRecorder<'_>, Failure> {
        let session = self.session(run).clone();
        let mut recorder = RunRecorder::new(&self.repository, self.branch.clone(), session, self.head)?;
        if lanes.is_none() {
            // Recording a crash moves the branch. Wait for a git that holds the index: the user may be committing.
            self.repository.await_index()?;
        }
        repair_index(&self.repository, &self.branch, self.head)?;
        for recovered in recover(&mut recorder, run, &planned.plan, &self.options, &self.config_guard)? {
            monitor.listener.warn(&recovered.words());
        }
        Ok(recorder)
    }
}

/// Repairs what a killed driver left of the branch, and reads again what it may have changed meanwhile.
pub(super) fn recover_repository(
    repository: Repository,
    lock: &FileLock,
    place: &mut RunPlace,
) -> Result<Repository, Failure> {
    let has_crashed = recover_branch(&repository, lock, &place.branch)?;
    // A git command of the dead driver may have moved the branch after we read it, also if another command has repaired
    // the crash since.
    let now = repository.find_branch(&place.branch)?.unwrap_or(place.head);
    if !has_crashed && now == place.head {
        return Ok(repository);
    }
    if let Some(pending_move) = &mut place.pending_move {
        pending_move.is_written_on |= now != place.head;
    }
    place.head = now;
    Ok(Repository::discover()?)
}

/// Repairs what a killed driver left of `branch`: lock files of git, an update of a checkout, a claim on the queue, a turn
/// whose record was written and whose branch was not moved. `lock` is the lock of the branch's run, which proves that its
/// driver is dead. Call this before anything is written to the branch. Returns whether something was repaired; then what was read before may be outdated.
///
/// Everything is looked for each time. Whether a driver died is known only to the first command after the crash, and that
/// command may have worked on another branch, where it repaired nothing of this one.
pub(super) fn recover_branch(
    repository: &Repository,
    lock: &FileLock,
    branch: &BranchName,
) -> Result<bool, Failure> {
    let has_crashed = repository.remove_stale_locks(lock)?;
    let has_undone = recover_landing(repository, branch)?;
    let finished = finish_turns(repository, lock, branch)?;
    Ok(has_crashed || has_undone || !finished.is_empty())
}

/// Undoes interrupted updates and releases the claim of a dead process, unless another process lands on the branch: its own
/// update may be in progress, and in another container it looks dead from here. The lock of the branch's run does not
/// exclude that, because tasks of a run on another branch can land here too.
fn recover_landing(repository: &Repository, branch: &BranchName) -> Result<bool, Failure> {
    let has_update = repository.has_begun_update(branch)?;
    if !has_update && QueueClaim::find_dead(repository, branch)?.is_none() {
        return Ok(false);
    }
    match FileLock::try_take(&repository.landing_lock(branch), &format!("git arborist on {branch}")) {
        Ok(landing) => {
            repository.undo_updates(&landing, branch)?;
            QueueClaim::release_dead(repository, &landing, branch)?;
            Ok(has_update)
        }
        Err(LockError::Held { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
