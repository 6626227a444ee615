//! Claims: who drains the queue of a target. A claim is a ref that is taken by compare-and-swap, renewed while its holder is
//! at work, and taken over only from one who is dead or has let it run out. The lock of a target holds on one machine;
//! a claim also where several share a repository.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::QueueError;
use crate::{
    git::{RefMove, Repository, Signing},
    name::{BranchName, Oid},
    process::ProcessId,
};

/// Where claims stand.
pub const CLAIMS: &str = "refs/arborist/claims/";
/// For how many seconds a claim holds that is not renewed.
const LEASE: i64 = 600;
/// So far ahead, in seconds, the clock of another machine may be.
const SKEW: i64 = 3600;
/// How often it is renewed.
const RENEWAL: Duration = Duration::from_secs(120);
/// How often others may be faster.
const PATIENCE: usize = 3;

/// What a claim says. It is written into git as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueClaim {
    /// The target.
    pub into: BranchName,
    /// Who.
    pub holder: ProcessId,
    /// Since when: seconds since 1970.
    pub since: i64,
    /// Until when it holds if it is not renewed.
    pub until: i64,
}

/// What is known of who holds a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimant {
    /// They may be at work.
    Alive(Box<QueueClaim>),
    /// They are gone.
    Dead,
    /// What it says is not understood: a newer version may have written it.
    Unreadable,
}

impl QueueClaim {
    /// The claims of all targets whose holders may be at work.
    pub fn list(repository: &Repository, now: i64) -> Result<Vec<Self>, QueueError> {
        let alive = |claimant| match claimant {
            Claimant::Alive(claim) => Some(*claim),
            Claimant::Dead | Claimant::Unreadable => None,
        };
        Ok(Self::survey(repository, now)?.into_values().filter_map(alive).collect())
    }

    /// Who holds each claim, by the component of its target.
    pub fn survey(repository: &Repository, now: i64) -> Result<BTreeMap<String, Claimant>, QueueError> {
        let notes = repository.start_listing_notes(&[CLAIMS])?.finish()?;
        let claimant = |body: &str| match serde_json::from_str::<Self>(body) {
            Ok(claim) if claim.is_alive(now) => Claimant::Alive(Box::new(claim)),
            Ok(_) => Claimant::Dead,
            Err(_) => Claimant::Unreadable,
        };
        let target = |name: &str| name.strip_prefix(CLAIMS).unwrap_or(name).to_owned();
        Ok(notes.iter().map(|(found, body)| (target(&found.name), claimant(body))).collect())
    }

    /// Removes the claim of a target whose holder was a process of this machine and is dead. A driver that is killed
    /// behind its last landing leaves one, and nobody would take it over before something else is to land.
    pub fn release_dead(repository: &Repository, into: &BranchName) -> Result<(), QueueError> {
        let name = format!("{CLAIMS}{}", into.component());
        let notes = repository.start_listing_notes(&[&name])?.finish()?;
        for (found, body) in notes.into_iter().filter(|(found, _)| found.name == name) {
            let claim: Option<Self> = serde_json::from_str(&body).ok();
            let is_dead = |claim: Self| claim.holder.is_of_this_machine() && !claim.holder.is_here();
            if claim.is_some_and(is_dead) {
                // Whoever takes it over at this moment has it: then it is not what we saw any more.
                let gone = RefMove { name: &name, new: None, old: Some(found.target) };
                let _ = repository.move_refs_again(&[gone]);
            }
        }
        Ok(())
    }

    /// A process of this machine is asked for; of another one only its lease is known.
    fn is_alive(&self, now: i64) -> bool {
        if self.holder.is_of_this_machine() {
            return self.holder.is_here();
        }
        // Nobody renews a claim for longer than this. One that says so was not written by a run, and would block for ever.
        (now..now + LEASE + SKEW).contains(&self.until)
    }
}

/// A claim that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct Held<'a> {
    repository: &'a Repository,
    name: String,
    claim: QueueClaim,
    commit: Mutex<Oid>,
    is_lost: AtomicBool,
    clock: fn() -> i64,
}

impl<'a> Held<'a> {
    /// Claims a target, if nobody who may live has.
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
        for _ in 0..PATIENCE {
            let taken = repository.move_refs_again(&[RefMove { name: &name, new: Some(commit), old }]);
            if let Err(error) = taken {
                // A lock file says nothing about who holds the claim.
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

    /// Renews it again and again, until nobody holds the other end of the channel.
    pub(super) fn keep(&self, end: &Receiver<()>) {
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
        let mut commit = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let moved = RefMove { name: &self.name, new: Some(renewed), old: Some(*commit) };
        self.repository.move_refs_again(&[moved])?;
        *commit = renewed;
        Ok(())
    }

    /// Refuses to go on if somebody took it over, because it was not renewed in time.
    pub(super) fn require(&self) -> Result<(), QueueError> {
        if self.is_lost.load(Ordering::Acquire) {
            return Err(QueueError::Overtaken(self.claim.into.clone()));
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    /// Whoever finds it after a crash sees that its holder is gone.
    fn drop(&mut self) {
        let commit = *self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let _ =
            self.repository.move_refs_again(&[RefMove { name: &self.name, new: None, old: Some(commit) }]);
    }
}

/// What stands in the way of a claim, unless somebody who may live put it there. We hold the target's lock: one of this
/// machine who does not is not at work, but for one whose lock file was deleted from under them.
fn refuse_living(repository: &Repository, name: &str, ours: &QueueClaim) -> Result<Option<Oid>, QueueError> {
    let notes = repository.start_listing_notes(&[name])?.finish()?;
    let Some((found, body)) = notes.into_iter().find(|(found, _)| found.name == name) else {
        return Ok(None);
    };
    let other: Option<QueueClaim> = serde_json::from_str(&body).ok();
    let other = other.filter(|other| other.holder != ours.holder);
    match other.filter(|other| other.is_alive(ours.since)) {
        Some(claim) => Err(QueueError::Claimed(Box::new(claim))),
        None => Ok(Some(found.target)),
    }
}

fn write(repository: &Repository, claim: &QueueClaim) -> Result<Oid, QueueError> {
    let json = serde_json::to_string(claim)
        .map_err(|error| QueueError::Unreadable { name: CLAIMS.into(), why: error.to_string() })?;
    let message = format!("claim: {} by {}\n\n{json}\n", claim.into, claim.holder);
    let tree = repository.empty_tree()?;
    Ok(repository.write_joint(tree, &[], &message, Signing::No)?)
}
