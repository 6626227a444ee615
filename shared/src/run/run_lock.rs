//! The lock of a branch's run: only its holder writes to the branch.

use std::time::Duration;

use super::recovery::recover_branch;
use crate::{
    failure::Failure,
    gardener::GardenerError,
    git::Repository,
    name::BranchName,
    process::{Cancel, FileLock},
};

/// Takes the lock of a branch's run, so that no run works there meanwhile, and repairs what a killed command left. `what`
/// is how messages of others name this command. If another command holds the lock, it is waited for at most `wait`.
pub fn lock_branch(
    repository: &Repository,
    branch: &BranchName,
    what: &str,
    wait: Option<Duration>,
) -> Result<FileLock, Failure> {
    let lock = take_lock(repository, branch, what, wait)?;
    recover_branch(repository, &lock, branch)?;
    Ok(lock)
}

/// Takes the lock of a branch's run.
pub(super) fn take_lock(
    repository: &Repository,
    branch: &BranchName,
    what: &str,
    wait: Option<Duration>,
) -> Result<FileLock, GardenerError> {
    let path = repository.run_lock(branch);
    let lock = match wait {
        Some(wait) => FileLock::take_within(&path, what, wait, &Cancel::new()),
        None => FileLock::try_take(&path, what),
    };
    lock.map_err(|source| GardenerError::Locked { branch: branch.clone(), source })
}
