//! The branches of tasks, here and at remotes, and the reasons to keep them.

use std::collections::HashSet;

use super::{CleanupFacts, branch_of, readable, reflog_time, task_branch_proof::TaskBranch};
use crate::{
    cleanup::{Active, Candidate, CandidatePlace, CleanupError, Remotes, What},
    git::RefFacts,
    name::{BranchName, TASK_BRANCHES, TASK_REFS, TaskId},
    queue::{Claimant, TICKETS},
};

pub(super) const UNPROVED: &str = "nothing proves that git arborist made it";
/// The prefix of all our branches, of tasks and sessions.
pub(super) const OURS: &str = "refs/heads/arborist/";

impl CleanupFacts<'_> {
    pub(super) fn branches(&self) -> Result<Vec<Candidate>, CleanupError> {
        let is_of_session =
            |found: &RefFacts| self.refs.is_session_branch(&found.name) || self.is_recorded_elsewhere(found);
        let here = self.refs.below(OURS).filter(|found| !is_of_session(found));
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for found in here {
            match found.name.strip_prefix(TASK_REFS).and_then(|rest| TaskBranch::read(rest, found)) {
                Some(one) => named.push(one),
                None => others.push(unnamed(found)),
            }
        }
        let ours = self.find_ours(&named)?;
        let mut found: Vec<Candidate> = named.iter().filter_map(|named| self.branch(named, &ours)).collect();
        found.extend(others);
        if self.sweep.options.remotes == Remotes::Cleaned {
            for remote in self.sweep.repository.list_remotes()? {
                found.extend(self.remote_branches(&remote)?);
                found.extend(self.remote_sessions(&remote));
            }
        }
        Ok(found)
    }

    fn remote_branches(&self, remote: &str) -> Result<Vec<Candidate>, CleanupError> {
        let prefix = format!("refs/remotes/{remote}/{TASK_BRANCHES}");
        let there = self.refs.below(&prefix);
        let named: Vec<TaskBranch<'_>> =
            there.filter_map(|found| TaskBranch::read(found.name.strip_prefix(&prefix)?, found)).collect();
        let ours = self.find_ours(&named)?;
        Ok(named.iter().map(|named| self.remote_branch(remote, named, &ours)).collect())
    }

    fn branch(&self, named: &TaskBranch<'_>, ours: &HashSet<String>) -> Option<Candidate> {
        let found = named.found;
        let branch = branch_of(&found.name)?;
        let spot = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = self.task_branch(named, spot, ours);
        candidate.time = candidate.time.max(reflog_time(&self.sweep.repository.common_dir, &found.name));
        candidate.owners.push(branch.to_string());
        if self.going_on.iter().any(|(_, going_on)| going_on.branches.contains(&branch)) {
            let what = self.going_on.iter().find(|(_, going_on)| going_on.branches.contains(&branch));
            candidate.active.extend(what.map(|(_, going_on)| Active::OperationInProgress(going_on.what)));
        }
        if self.unpushed.contains(&found.name) {
            let upstream = found.upstream.as_deref().unwrap_or_default();
            let upstream = upstream.strip_prefix("refs/remotes/").unwrap_or(upstream);
            candidate.active.push(Active::Unpushed(upstream.to_owned()));
        }
        self.tell_worker(&mut candidate, &branch, &named.task);
        Some(candidate)
    }

    fn remote_branch(&self, remote: &str, named: &TaskBranch<'_>, ours: &HashSet<String>) -> Candidate {
        let name = format!("{TASK_REFS}{}/{}", named.run, named.task);
        let spot = CandidatePlace::Remote { remote: remote.to_owned(), name, tip: named.found.target };
        let mut candidate = self.task_branch(named, spot, ours);
        candidate.what = What::RemoteBranch;
        candidate.name = format!("{remote}/{}", candidate.name);
        candidate
    }

    /// The facts that are the same for a local branch and one at a remote.
    fn task_branch(&self, named: &TaskBranch<'_>, spot: CandidatePlace, ours: &HashSet<String>) -> Candidate {
        let TaskBranch { run, task, found } = named;
        let mut candidate = Candidate::new(What::Branch, spot, format!("{}/{task}", readable(run)));
        candidate.owners = vec![task.to_string(), format!("{run}/{task}"), candidate.name.clone()];
        candidate.run = Some((*run).to_owned());
        candidate.time = found.time;
        if !ours.contains(&found.name) {
            candidate.active.push(Active::Foreign(UNPROVED.into()));
        }
        self.tell_queue(&mut candidate, run, task);
        self.tell_sessions(&mut candidate);
        self.tell_run(&mut candidate);
        if found.commit.is_none() {
            candidate.unknown.push("what it points at".into());
        }
        candidate
    }

    /// Adds whether the task is queued, or its target claimed.
    pub(super) fn tell_queue(&self, candidate: &mut Candidate, run: &str, task: &TaskId) {
        if self.refs.find(&format!("{TICKETS}{run}/{task}")).is_some() {
            candidate.active.push(Active::Queued);
        }
        self.tell_claim(candidate, run);
    }

    /// Adds whether a process that may be alive has claimed the target of a run.
    pub(super) fn tell_claim(&self, candidate: &mut Candidate, run: &str) {
        match self.claims.get(run) {
            Some(Claimant::Alive(_)) => candidate.active.push(Active::Claim),
            Some(Claimant::Unreadable) => candidate.unknown.push(format!("who has claimed '{run}'")),
            Some(Claimant::Dead) | None => {}
        }
    }

    pub(super) fn tell_worker(&self, candidate: &mut Candidate, branch: &BranchName, task: &TaskId) {
        let Some(pool) = &self.sweep.pool else { return };
        match pool.find_worker(branch, task) {
            Ok(None) => {}
            Ok(Some(holder)) => candidate.active.push(Active::Lock(holder.to_string())),
            Err(error) => candidate.unknown.push(format!("whether a process is working on it: {error}")),
        }
    }
}

/// A branch below our prefix whose name does not have our form. It is listed, and it stays.
fn unnamed(found: &RefFacts) -> Candidate {
    let name = found.name.strip_prefix("refs/heads/").unwrap_or(&found.name);
    let spot = CandidatePlace::Ref { name: found.name.clone(), tip: found.target };
    let mut candidate = Candidate::new(What::Branch, spot, name.to_owned());
    candidate.owners = vec![name.to_owned()];
    candidate.time = found.time;
    candidate.active.push(Active::Foreign(UNPROVED.into()));
    candidate
}
