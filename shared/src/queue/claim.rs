//! Claims: which process drains the queue of a target. A claim is a ref that is taken by compare-and-swap and renewed
//! while its holder works. It is taken over only from a holder that is dead or has not renewed it in time.
//!
//! The file lock of a target works on one machine; a claim also works if several machines share a repository.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::QueueError;
use crate::{
    coordination::{CLAIMS, WORK_CLAIMS},
    git::{GitError, Ref, RefMove, Repository, Signing},
    mutex::MutexExt,
    name::{BranchName, Oid},
    process::{FileLock, ProcessId},
};

/// How many seconds a claim is valid without renewal.
const LEASE: i64 = 600;
/// How many seconds the clock of another machine may be ahead.
const SKEW: i64 = 3600;
/// How often a claim is renewed.
const RENEWAL: Duration = Duration::from_secs(120);
/// How often taking a claim is tried if other processes are faster.
const MAX_CLAIM_TRIES: usize = 3;

/// The content of a claim. It is serialised into git as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueClaim {
    /// The target.
    pub into: BranchName,
    /// The process that holds it.
    pub holder: ProcessId,
    /// When it was taken: seconds since 1970.
    pub since: i64,
    /// When it expires if it is not renewed.
    pub until: i64,
}

/// The state of a claim's holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimant {
    /// It may be at work.
    Alive(Box<QueueClaim>),
    /// It is dead, or the claim has expired.
    Dead,
    /// The claim cannot be parsed: a newer version may have written it.
    Unreadable,
}

impl QueueClaim {
    /// Lists the claims of all targets whose holders may be at work.
    pub fn list(repository: &Repository, now: i64) -> Result<Vec<Self>, QueueError> {
        let alive = |claimant| match claimant {
            Claimant::Alive(claim) => Some(*claim),
            Claimant::Dead | Claimant::Unreadable => None,
        };
        Ok(Self::survey(repository, now)?.into_values().filter_map(alive).collect())
    }

    /// The state of each claim, by the component of its target.
    pub fn survey(repository: &Repository, now: i64) -> Result<BTreeMap<String, Claimant>, QueueError> {
        let notes = repository.start_listing_notes(&[CLAIMS])?.finish()?;
        let claimant = |body: &str| match serde_json::from_str::<Self>(body) {
            Ok(claim) if claim.is_alive(now) => Claimant::Alive(Box::new(claim)),
            Ok(_) => Claimant::Dead,
            Err(_) => Claimant::Unreadable,
        };
        let target = |name: &str| name.strip_prefix(CLAIMS).unwrap_or(name).to_owned();
        // Claims of workers come here if all refs of a remote are fetched. They say nothing about this repository.
        let own = notes.iter().filter(|(found, _)| !found.name.starts_with(WORK_CLAIMS));
        Ok(own.map(|(found, body)| (target(&found.name), claimant(body))).collect())
    }

    /// Deletes the claim of a target if its holder was a process of this machine and is dead. A driver that is killed
    /// after its last landing leaves one, and no other process would take it over before something else lands.
    /// `_landing` is the lock of the target, which the holder would have if it were alive in another container.
    pub fn release_dead(
        repository: &Repository,
        _landing: &FileLock,
        into: &BranchName,
    ) -> Result<(), QueueError> {
        if let Some(dead) = Self::find_dead(repository, into)? {
            // If another process takes the claim over at this moment, the compare-and-swap fails.
            let gone = RefMove { name: &dead.name, new: None, old: Some(dead.target) };
            let _ = repository.move_refs_with_default_reason(&[gone]);
        }
        Ok(())
    }

    /// The claim of a target, if its holder was a process of this machine and seems to be dead.
    pub fn find_dead(repository: &Repository, into: &BranchName) -> Result<Option<Ref>, QueueError> {
        let name = format!("{CLAIMS}{}", into.component());
        let Some((found, body)) = repository.find_note(&name)? else { return Ok(None) };
        let claim: Option<Self> = serde_json::from_str(&body).ok();
        let is_dead = |claim: Self| claim.holder.is_of_this_machine() && !claim.holder.is_here();
        Ok(claim.is_some_and(is_dead).then_some(found))
    }

    /// Whether the holder may be at work. For a process of this machine the process is checked; of another machine only
    /// the expiry is known.
    fn is_alive(&self, now: i64) -> bool {
        if self.holder.is_of_this_machine() {
            return self.holder.is_here();
        }
        // No process claims for longer than this. A longer claim was not written by a run, and would block the queue
        // for ever.
        (now..now + LEASE + SKEW).contains(&self.until)
    }
}

/// A claim that this process holds until this is dropped.
#[derive(Debug)]
pub(super) struct HeldQueueClaim<'a> {
    repository: &'a Repository,
    name: String,
    claim: QueueClaim,
    commit: Mutex<Oid>,
    is_lost: AtomicBool,
    clock: fn() -> i64,
}

impl<'a> HeldQueueClaim<'a> {
    /// Claims a target, unless another holder may be at work.
    pub(super) fn take(
        repository: &'a Repository,
        into: &BranchName,
        clock: fn() -> i64,
    ) -> Result<Self, QueueError> {
        let name = format!("{CLAIMS}{}", into.component());
        let now = clock();
        let claim =
            QueueClaim { into: into.clone(), holder: ProcessId::ours(), since: now, until: now + LEASE };
        let commit = write(repository, &claim)?;
        let mut old = None;
        for _ in 0..MAX_CLAIM_TRIES {
            let taken =
                repository.move_refs_with_default_reason(&[RefMove { name: &name, new: Some(commit), old }]);
            if let Err(error) = taken {
                // A lock file on the ref says nothing about who holds the claim.
                if error.is_lock() {
                    return Err(error.into());
                }
            } else {
                let (commit, is_lost) = (Mutex::new(commit), AtomicBool::new(false));
                return Ok(Self { repository, name, claim, commit, is_lost, clock });
            }
            old = refuse_living(repository, &name, &claim)?;
        }
        Err(QueueError::Changing(into.clone()))
    }

    /// Renews the claim until the sender is dropped.
    pub(super) fn renew_until_dropped(&self, end: &Receiver<()>) {
        while end.recv_timeout(RENEWAL) == Err(RecvTimeoutError::Timeout) {
            if self.renew().is_err() {
                self.is_lost.store(true, Ordering::Release);
                return;
            }
        }
    }

    fn renew(&self) -> Result<(), QueueError> {
        let renewed =
            write(self.repository, &QueueClaim { until: (self.clock)() + LEASE, ..self.claim.clone() })?;
        // Held during the transaction, which takes the table of owned refs.
        let mut commit = self.commit.hold();
        let moved = RefMove { name: &self.name, new: Some(renewed), old: Some(*commit) };
        self.repository.move_refs_with_default_reason(&[moved])?;
        *commit = renewed;
        Ok(())
    }

    /// Fails if another process took the claim over because it was not renewed in time.
    pub(super) fn require(&self) -> Result<(), QueueError> {
        if self.is_lost.load(Ordering::Acquire) {
            return Err(QueueError::Overtaken(self.claim.into.clone()));
        }
        Ok(())
    }
}

impl Drop for HeldQueueClaim<'_> {
    /// Deletes the claim. After a crash this does not happen; then others see that its holder is dead.
    fn drop(&mut self) {
        let commit = *self.commit.hold();
        let _ = self.repository.move_refs_with_default_reason(&[RefMove {
            name: &self.name,
            new: None,
            old: Some(commit),
        }]);
    }
}

/// Finds the claim that is in the way, and fails if its holder may be alive. We hold the target's lock, so a process of
/// this machine can be at work only if its lock file was deleted.
fn refuse_living(repository: &Repository, name: &str, ours: &QueueClaim) -> Result<Option<Oid>, QueueError> {
    let Some((found, body)) = repository.find_note(name)? else { return Ok(None) };
    let other: Option<QueueClaim> = serde_json::from_str(&body).ok();
    let other = other.filter(|other| other.holder != ours.holder);
    match other.filter(|other| other.is_alive(ours.since)) {
        Some(claim) => Err(QueueError::Claimed(Box::new(claim))),
        None => Ok(Some(found.target)),
    }
}

fn write(repository: &Repository, claim: &QueueClaim) -> Result<Oid, GitError> {
    let subject = format!("claim: {} by {}", claim.into, claim.holder);
    repository.write_json_commit(&subject, &[claim], &[], Signing::No)
}
