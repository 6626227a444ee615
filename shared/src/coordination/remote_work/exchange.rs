//! What a worker asks of the remote and publishes there.

use std::time::{Duration, Instant};

use super::{HeldWorkClaim, INTERVALS, Known, LOOK, MAX_PUSH_TRIES, RemoteWork, Renewal};
use crate::{
    coordination::{
        ClaimState, Claiming, CoordinationError, Publication, PublishedLanding, Release, RemoteProgress,
        SharedLanding, WorkRequest, listing::ALL,
    },
    git::{FetchDepth, LeasedPush, Pushed},
    name::{Oid, TaskId, WorkerName},
};

/// Words in git's reasons for a ref that was refused only because another ref of the push was ("atomic push failed"), or
/// because the remote has another value than expected ("stale info").
const OF_OTHER_REFS: [&str; 2] = ["atomic", "stale"];

impl RemoteWork {
    /// How often to look at what others do.
    pub fn interval(&self) -> Duration {
        (self.options.ttl / LOOK).clamp(INTERVALS.0, INTERVALS.1)
    }

    /// The name of this worker.
    pub fn worker(&self) -> &WorkerName {
        &self.identity.name
    }

    /// Reads what others have done, and settles what this worker owes them. The exchange with the remote is locked all the
    /// time. If the process is killed in between, nothing is lost: each step does again what is left.
    ///
    /// 1. Read the refs at the remote.
    /// 2. Delete the claims of tasks that have landed. Another worker may be faster.
    /// 3. Ask the engine about the workers of quiet claims. Its answer shortens the wait and decides nothing.
    /// 4. Take a request to stop or to drain, which is returned only once by this process.
    pub fn catch_up(&self) -> Result<RemoteProgress, CoordinationError> {
        let mut known = self.known();
        self.refresh(&mut known)?;
        self.forget_landed(&mut known)?;
        let answer = self.ask_engine(&mut known);
        let mut remote_progress = self.progress(&known);
        remote_progress.remarks.extend(answer);
        remote_progress.request = self.take_request(&mut known);
        Ok(remote_progress)
    }

    /// What others have done, as far as this process knows.
    fn progress(&self, known: &Known) -> RemoteProgress {
        let mut remote_progress = RemoteProgress { target: known.view.target, ..RemoteProgress::default() };
        for (task, found) in &known.view.tasks {
            let source = found.claim.as_ref().and_then(|claim| claim.source);
            if found.is(ClaimState::Failed) {
                remote_progress.failed.insert(task.clone());
            } else if let (true, Some(source)) = (found.is(ClaimState::Finished), source)
                && !known.is_distrusted(found)
            {
                remote_progress.finished.insert(task.clone(), source);
            } else if !known.held.contains_key(task) && self.is_taken(known, found) {
                remote_progress.taken.insert(task.clone());
            }
        }
        remote_progress.remarks.clone_from(&known.view.remarks);
        let lander = known.view.lander.as_ref().filter(|_| known.lander.is_none());
        remote_progress.is_landing = lander.is_some_and(|found| self.is_taken(known, found));
        remote_progress
    }

    /// A request for this worker that it has not obeyed. The caller obeys it now.
    fn take_request(&self, known: &mut Known) -> Option<WorkRequest> {
        let is_new = |commit: &Oid| !known.obeyed.contains(commit);
        let is_own = |whose: &str| whose == ALL || whose == self.identity.name.as_str();
        let mut requests = known.view.requests.iter();
        let (_, commit, request) =
            requests.find(|(whose, commit, _)| is_own(whose) && is_new(commit)).cloned()?;
        known.obeyed.insert(commit);
        Some(request)
    }

    /// Claims a task.
    pub fn claim(&self, task: &TaskId) -> Result<Claiming, CoordinationError> {
        let mut known = self.known();
        if known.held.contains_key(task) {
            return Ok(Claiming::Won);
        }
        let found = known.view.tasks.get(task).cloned();
        match self.take(&mut known, self.refs.task(task), Some(task), found)? {
            Some(held) => {
                known.held.insert(task.clone(), held);
                Ok(Claiming::Won)
            }
            None => Ok(Claiming::Taken),
        }
    }

    /// Publishes a task that is finished at `tip`, and claims `next` with the same push if it is free.
    pub fn finish(
        &self,
        task: &TaskId,
        tip: Oid,
        next: Option<&TaskId>,
    ) -> Result<Publication, CoordinationError> {
        let mut known = self.known();
        // Only with the first try: if that is refused, another worker may have taken the next task.
        let mut next = next.filter(|next| !known.view.tasks.contains_key(*next));
        for _ in 0..MAX_PUSH_TRIES {
            let Some(held) = known.held.get(task).cloned() else { return Ok(Publication::Lost) };
            let finished = self.restate(&held, ClaimState::Finished, Some(tip))?;
            let mut pushes = vec![
                LeasedPush { name: self.refs.task(task), new: Some(finished.commit), old: Some(held.commit) },
                LeasedPush {
                    name: self.refs.branch(task),
                    new: Some(tip),
                    old: known.view.branches.get(task).copied(),
                },
            ];
            let record = self.record_push(&known)?;
            pushes.extend(record.clone());
            let claimed = next.take().map(|next| self.new_claim(Some(next))).transpose()?;
            pushes.extend(claimed.iter().map(|held| self.creation(held)));
            let refused = self.push(&mut known, &pushes, Renewal::Early)?;
            if refused.is_empty() {
                known.published = record.and_then(|record| record.new).or(known.published);
                known.held.remove(task);
                known.view.branches.insert(task.clone(), tip);
                claimed.into_iter().for_each(|held| known.renew(held));
                return Ok(Publication::Done);
            }
            self.refresh(&mut known)?;
            self.refresh_published(&mut known)?;
            if self.listed(&known, task) != Some(held.commit) {
                known.held.remove(task);
                return Ok(Publication::Lost);
            }
        }
        let (remote, name) = (self.claims_remote(), self.refs.branch(task));
        Err(CoordinationError::Refused { remote, name, why: "it keeps changing".into() })
    }

    /// Gives a task back.
    pub fn release(&self, task: &TaskId, release: Release) -> Result<(), CoordinationError> {
        let mut known = self.known();
        let held = known.held.remove(task);
        let (old, new) = match (held, release) {
            (None, Release::Free) => return Ok(()),
            (Some(held), Release::Free) => (held.commit, None),
            (Some(held), Release::Failed) => {
                (held.commit, Some(self.restate(&held, ClaimState::Failed, None)?.commit))
            }
            // A finished task that could not land, of whichever worker.
            (None, Release::Failed) => {
                let Some(found) = known.view.tasks.get(task).cloned() else { return Ok(()) };
                let Some(claim) = found.claim else { return Ok(()) };
                let held = HeldWorkClaim { commit: found.commit, claim, pushed: Instant::now() };
                let source = held.claim.source;
                (held.commit, Some(self.restate(&held, ClaimState::Failed, source)?.commit))
            }
        };
        let push = LeasedPush { name: self.refs.task(task), new, old: Some(old) };
        // If it is refused, another worker has taken the task over.
        self.push(&mut known, &[push], Renewal::Early).map(drop)
    }

    /// Brings these commits of finished tasks here.
    pub fn fetch(&self, tasks: &[(TaskId, Oid)]) -> Result<(), CoordinationError> {
        let mut known = self.known();
        let is_there = |(task, source): &&(TaskId, Oid)| known.view.branches.get(task) == Some(source);
        let names: Vec<String> =
            tasks.iter().filter(is_there).map(|(task, _)| self.refs.branch(task)).collect();
        let fetch = |names: &[String]| {
            self.repository.fetch_refs(self.options.claims_at(), names, FetchDepth::Newer, &self.network)
        };
        if names.is_empty() || fetch(&names).is_ok() {
            return Ok(());
        }
        // One branch that cannot be fetched must not hold up the others.
        for name in names {
            if fetch(&[name]).is_err() {
                // If the remote is out of reach, this fails as well.
                self.refresh(&mut known)?;
            }
        }
        Ok(())
    }

    /// No longer counts a task as finished, because the commit of its claim cannot land. Until it expires, its claim is
    /// respected like one that cannot be read.
    pub fn distrust(&self, task: &TaskId, source: Oid) {
        let mut known = self.known();
        let Some(found) = known.view.tasks.get(task) else { return };
        if found.claim.as_ref().and_then(|claim| claim.source) == Some(source) {
            let (name, commit) = (found.name.clone(), found.commit);
            known.distrusted.insert(name, commit);
        }
    }

    /// Whether this worker may land now. If so, look again: something may have landed before.
    pub fn begin_landing(&self) -> Result<bool, CoordinationError> {
        let mut known = self.known();
        if known.lander.as_ref().is_some_and(|held| held.claim.state == ClaimState::Working) {
            return Ok(true);
        }
        self.refresh(&mut known)?;
        let found = known.view.lander.clone();
        known.lander = self.take(&mut known, self.refs.lander.clone(), None, found)?;
        Ok(known.lander.is_some())
    }

    /// Publishes a landing.
    pub fn land(&self, landing: &PublishedLanding<'_>) -> Result<SharedLanding, CoordinationError> {
        let PublishedLanding { base, tip, tasks, .. } = *landing;
        let mut known = self.known();
        if self.options.coordination.is_some() {
            // With one remote, the push itself fails if the claim to land is lost.
            self.refresh(&mut known)?;
            known.forget_lost(&self.refs);
        }
        let Some(held) = known.lander.clone() else { return Ok(SharedLanding::OtherWorkerLands) };
        let free = self.restate(&held, ClaimState::Free, None)?;
        let target = LeasedPush { name: self.refs.target.clone(), new: Some(tip), old: Some(base) };
        let lander =
            LeasedPush { name: self.refs.lander.clone(), new: Some(free.commit), old: Some(held.commit) };
        let gone = tasks.iter().flat_map(|task| self.removal(&known, task));
        let record = self.record_push(&known)?;
        let claims: Vec<LeasedPush> = [lander].into_iter().chain(gone).chain(record.clone()).collect();
        let mut moved = match self.options.coordination {
            None => self.new_values(landing.gate_results)?,
            Some(_) => self.new_values_and_records(landing.gate_results)?,
        };
        moved.push(target);
        let refused = match self.options.coordination {
            None => {
                let pushes = [moved.clone(), claims].concat();
                self.push(&mut known, &pushes, Renewal::Early)
            }
            Some(_) => self.land_at_two_remotes(&mut known, &moved, &claims),
        };
        let is_done = match &refused {
            Ok(refused) => refused.is_empty(),
            // If the connection was cut, the push may have arrived nevertheless.
            Err(_) => {
                self.refresh(&mut known)?;
                known.view.target == Some(tip)
            }
        };
        if is_done {
            self.require_landed(base)?;
            known.published = record.and_then(|record| record.new).or(known.published);
            known.lander = Some(free);
            known.view.target = Some(tip);
            for task in tasks {
                known.view.tasks.remove(task);
                known.view.branches.remove(task);
            }
            return Ok(SharedLanding::Done);
        }
        let refused = refused?;
        self.refresh(&mut known)?;
        self.refresh_published(&mut known)?;
        if known.view.lander.as_ref().map(|found| found.commit) != Some(held.commit) {
            known.lander = None;
            return Ok(SharedLanding::OtherWorkerLands);
        }
        let Some(target) = known.view.target else {
            return Err(CoordinationError::NoTarget {
                remote: self.remote(),
                branch: self.options.run.clone(),
            });
        };
        let is_moved = |name: &String| moved.iter().any(|push| push.name == *name);
        let barred = refused.iter().filter(|row| is_moved(&row.name)).map(|row| (&row.name, row.reason()));
        let is_by_rule = |why: &str| !OF_OTHER_REFS.iter().any(|words| why.contains(words));
        match barred.into_iter().find(|(_, why)| target == base && is_by_rule(why)) {
            // The remote's own rules refuse it.
            Some((name, why)) => {
                Err(CoordinationError::Refused { remote: self.remote(), name: name.clone(), why })
            }
            None => Ok(SharedLanding::TargetChanged(target)),
        }
    }

    /// Lets others land.
    pub fn end_landing(&self) -> Result<(), CoordinationError> {
        let mut known = self.known();
        let Some(held) = known.lander.take().filter(|held| held.claim.state == ClaimState::Working) else {
            return Ok(());
        };
        let push = LeasedPush { name: self.refs.lander.clone(), new: None, old: Some(held.commit) };
        self.push(&mut known, &[push], Renewal::Early).map(drop)
    }
}

impl RemoteWork {
    /// The pushes that give these refs their values at the remote with the code, beside the target. Every clone can then
    /// verify what landed.
    pub(super) fn new_values(&self, refs: &[(String, Oid)]) -> Result<Vec<LeasedPush>, CoordinationError> {
        if refs.is_empty() {
            return Ok(Vec::new());
        }
        let names: Vec<&str> = refs.iter().map(|(name, _)| name.as_str()).collect();
        let listed = self.repository.list_remote_refs(&self.options.remote, &names, &self.network)?;
        let old = |name: &str| listed.iter().find(|(found, _)| found == name).map(|(_, commit)| *commit);
        let new = refs.iter().filter(|(name, commit)| old(name) != Some(*commit));
        let push = |(name, commit): &(String, Oid)| LeasedPush {
            name: name.clone(),
            new: Some(*commit),
            old: old(name),
        };
        Ok(new.map(push).collect())
    }

    /// Removes the claim and the branch of a task.
    fn removal(&self, known: &Known, task: &TaskId) -> Vec<LeasedPush> {
        let claim = self.listed(known, task).map(|old| (self.refs.task(task), old));
        let branch = known.view.branches.get(task).map(|old| (self.refs.branch(task), *old));
        let gone = claim.into_iter().chain(branch);
        gone.map(|(name, old)| LeasedPush { name, new: None, old: Some(old) }).collect()
    }

    /// Fails if the target is still at `base` after a push that the remote accepted, or is gone: a hook there may have
    /// undone it. Any other value may be a later landing.
    fn require_landed(&self, base: Oid) -> Result<(), CoordinationError> {
        let target = self.refs.target.as_str();
        // If the remote cannot be asked, its answer to the push counts.
        let found = self.repository.find_remote_ref(&self.options.remote, target, &self.network);
        let Ok(found) = found else { return Ok(()) };
        if found.is_some_and(|found| found != base) {
            return Ok(());
        }
        let why = "it accepted the push, and does not have the commits afterwards".to_owned();
        Err(CoordinationError::Refused { remote: self.remote(), name: target.to_owned(), why })
    }

    /// Lands where claims are at another remote than the target, so that no single push can move both. The target is moved
    /// first: then a finished task whose claim is left has landed, and every worker can see that. A worker that has lost
    /// its claim to land does no harm, because the target moves only from where this worker has tested it.
    fn land_at_two_remotes(
        &self,
        known: &mut Known,
        moved: &[LeasedPush],
        claims: &[LeasedPush],
    ) -> Result<Vec<Pushed>, CoordinationError> {
        let refused = self.repository.push_leased(&self.options.remote, moved, &self.network);
        let refused = refused.map_err(CoordinationError::of_push)?;
        if refused.is_empty() {
            // If this fails, workers remove these claims when they next look.
            let _ = self.push(known, claims, Renewal::Early);
        }
        Ok(refused)
    }

    /// Removes the claims of tasks that have landed. With one remote, the landing does that, unless the server is killed while
    /// it moves one ref after the other.
    fn forget_landed(&self, known: &mut Known) -> Result<(), CoordinationError> {
        let Some(target) = known.view.target else { return Ok(()) };
        let mut landed = Vec::new();
        for (task, found) in &known.view.tasks {
            let source = found.claim.as_ref().and_then(|claim| claim.source);
            if let Some(source) = source.filter(|_| found.is(ClaimState::Finished))
                && self.repository.find_commits(&[source])?.first() == Some(&Some(source))
                && self.repository.is_ancestor(source, target)?
            {
                landed.push(task.clone());
            }
        }
        for task in landed {
            // If it is refused, another worker was faster.
            let removal = self.removal(known, &task);
            let _ = self.push(known, &removal, Renewal::None);
            known.view.tasks.remove(&task);
            known.view.branches.remove(&task);
        }
        Ok(())
    }
}
