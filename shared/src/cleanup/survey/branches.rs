//! The branches of tasks, here and at remotes, and what keeps each of them.

use super::{Ground, branch_of, readable, reflog_time};
use crate::{
    cleanup::{Active, Candidate, CleanupError, Remotes, Spot, What},
    git::RefFacts,
    name::{BranchName, TASK_BRANCHES, TASK_REFS, TaskId},
    queue::Claimant,
};

const TICKETS: &str = "refs/arborist/queue/tickets/";

/// A name of the form that we give to branches of tasks.
struct Named<'a> {
    run: &'a str,
    task: TaskId,
}

impl<'a> Named<'a> {
    fn read(rest: &'a str) -> Option<Self> {
        let (run, task) = rest.split_once('/')?;
        Some(Self { run, task: task.parse().ok()? })
    }
}

impl Ground<'_> {
    pub(super) fn branches(&self) -> Result<Vec<Candidate>, CleanupError> {
        let here = self.refs.below(TASK_REFS).filter(|found| !self.refs.is_session_branch(&found.name));
        let mut found: Vec<Candidate> = here.filter_map(|found| self.branch(found)).collect();
        if self.sweep.options.remotes == Remotes::Cleaned {
            for remote in self.sweep.repository.list_remotes()? {
                let prefix = format!("refs/remotes/{remote}/{TASK_BRANCHES}");
                found.extend(self.refs.below(&prefix).filter_map(|found| self.remote_branch(&remote, found)));
                found.extend(self.remote_sessions(&remote));
            }
        }
        Ok(found)
    }

    fn branch(&self, found: &RefFacts) -> Option<Candidate> {
        let named = Named::read(found.name.strip_prefix(TASK_REFS)?)?;
        let branch = branch_of(&found.name)?;
        let spot = Spot::Ref { name: found.name.clone(), tip: found.target };
        let mut candidate = self.task_branch(&named, spot, found);
        candidate.time = candidate.time.max(reflog_time(&self.sweep.repository.common_dir, &found.name));
        candidate.owners.push(branch.to_string());
        if self.going_on.iter().any(|(_, going_on)| going_on.branches.contains(&branch)) {
            let what = self.going_on.iter().find(|(_, going_on)| going_on.branches.contains(&branch));
            candidate.active.extend(what.map(|(_, going_on)| Active::GoingOn(going_on.what)));
        }
        if self.unpushed.contains(&found.name) {
            let upstream = found.upstream.as_deref().unwrap_or_default();
            let upstream = upstream.strip_prefix("refs/remotes/").unwrap_or(upstream);
            candidate.active.push(Active::Unpushed(upstream.to_owned()));
        }
        self.tell_worker(&mut candidate, &branch, &named.task);
        Some(candidate)
    }

    fn remote_branch(&self, remote: &str, found: &RefFacts) -> Option<Candidate> {
        let branch = found.name.strip_prefix(&format!("refs/remotes/{remote}/"))?;
        let named = Named::read(branch.strip_prefix(TASK_BRANCHES)?)?;
        let name = format!("refs/heads/{branch}");
        let spot = Spot::Remote { remote: remote.to_owned(), name, tip: found.target };
        let mut candidate = self.task_branch(&named, spot, found);
        candidate.what = What::RemoteBranch;
        candidate.name = format!("{remote}/{}", candidate.name);
        Some(candidate)
    }

    /// What is the same for a branch here and at a remote.
    fn task_branch(&self, named: &Named<'_>, spot: Spot, found: &RefFacts) -> Candidate {
        let Named { run, task } = named;
        let mut candidate = Candidate::new(What::Branch, spot, format!("{run}/{task}"));
        candidate.owners = vec![task.to_string(), format!("{run}/{task}")];
        candidate.run = Some((*run).to_owned());
        candidate.time = found.time;
        if !self.is_ours(named, found) {
            let why = "nothing proves that git arborist made it";
            candidate.active.push(Active::Foreign(why.into()));
        }
        self.tell_queue(&mut candidate, run, task);
        self.tell_sessions(&mut candidate);
        self.tell_run(&mut candidate);
        if found.commit.is_none() {
            candidate.unknown.push("what it points at".into());
        }
        candidate
    }

    /// The form of a name is no proof: its run must be there, or its newest commit must say that it is that task's.
    fn is_ours(&self, named: &Named<'_>, found: &RefFacts) -> bool {
        let run = readable(named.run);
        let claim = format!("task({run}@{}@", named.task);
        found.subject.starts_with(&claim) || self.refs.has_run(&run)
    }

    /// Whether a task waits for its landing, or somebody has claimed its target.
    pub(super) fn tell_queue(&self, candidate: &mut Candidate, run: &str, task: &TaskId) {
        if self.refs.find(&format!("{TICKETS}{run}/{task}")).is_some() {
            candidate.active.push(Active::Queued);
        }
        self.tell_claim(candidate, run);
    }

    /// Whether somebody who may live has claimed the target of a run.
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
            Err(error) => candidate.unknown.push(format!("whether somebody works on it: {error}")),
        }
    }
}
