//! Repairs what a killed driver left of its branch.

use crate::{
    failure::Failure,
    git::Repository,
    name::BranchName,
    process::{FileLock, LockError},
    queue::QueueClaim,
    session::finish_turns,
};

/// Repairs what a killed driver left of `branch`: lock files of git, an update of a checkout, a claim on the queue, a turn
/// whose record was written and whose branch was not moved. `lock` is the lock of the branch's run, which proves that its
/// driver is dead. Call this before anything is written to the branch: a note of an interrupted update counts only until
/// the branch moves. Returns whether something was repaired; then what was read before may be outdated.
///
/// Everything is looked for each time. Whether a driver died is known only to the first command after the crash, and that
/// command may have worked on another branch, where it repaired nothing of this one.
pub fn recover_branch(
    repository: &Repository,
    lock: &FileLock,
    branch: &BranchName,
) -> Result<bool, Failure> {
    let has_crashed = repository.remove_stale_locks(lock)?;
    let has_undone = recover_landing(repository, branch)?;
    // After the updates: it moves the branch.
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
