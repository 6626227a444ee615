//! Shares a plan with workers on other machines, through claims at a remote.
//!
//! A claim is created by a push that expects that it does not exist, and every later change of it expects the value that
//! this process gave it. So whoever loses a claim can publish nothing more under it. A claim is taken over only after
//! this process has seen it unchanged for its time to live, by its own clock.

mod exchange;
mod records;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, OnceLock, Weak},
    thread,
    time::{Duration, Instant},
};

use super::{
    ClaimState, CoordinationError, RemoteClaim, RemoteView, TaskClaim, WorkOptions, WorkRequest,
    claim::{ClaimRefs, OwnIdentity, UNREADABLE_TIME_TO_LIVE, nonce},
    listing::{ALL, KnownCommits, MOST_AT_ONCE},
};
use crate::{
    engine::StartedBy,
    git::{LeasedPush, Network, Pushed, Repository, Signing, shown_url},
    mutex::MutexExt,
    name::{Oid, SessionId, TaskId, WorkerName},
};

/// How often a push is tried if something else at the remote has changed meanwhile.
const MAX_PUSH_TRIES: usize = 3;
/// The limits of the time between two looks at the remote.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(15));

// Fractions of a claim's time to live, shortest first: a claim is renewed by itself at half of it, and tried again at each
// tick, so that a remote that is out of reach for a moment costs no claim.

/// After a twentieth, a worker looks again at what others do, within [`INTERVALS`].
const LOOK: u32 = 20;
/// After each tenth, the background thread renews the claims that are due.
const TICK: u32 = 10;
/// After a tenth without a change, a claim is quiet enough to ask the engine about its worker. That does no harm if it is
/// too early: most claims are renewed only after a half.
const QUIET: u32 = 10;
/// After a fifth, the engine is asked again, because a job may end at any time.
const ASK_AGAIN: u32 = 5;
/// After a quarter, a claim is renewed together with another push, which costs nothing.
const RENEW_EARLY: u32 = 4;
/// After half of its lifetime, a claim is renewed by a separate push.
const RENEW_DUE: u32 = 2;

/// A worker that shares a plan with others.
#[derive(Debug)]
pub struct RemoteWork {
    repository: Repository,
    network: Network,
    options: WorkOptions,
    refs: ClaimRefs,
    identity: OwnIdentity,
    /// The session whose records are published.
    session: OnceLock<SessionId>,
    /// Held during exchanges with the remote, so that they follow each other.
    exchange: Mutex<Known>,
}

/// What this process knows about the remote.
#[derive(Debug, Default)]
struct Known {
    view: RemoteView,
    commits: KnownCommits,
    /// Since when each ref is known to have its value.
    unchanged: HashMap<String, (Oid, Instant)>,
    /// The claims of this process on tasks that it works on.
    held: BTreeMap<TaskId, HeldWorkClaim>,
    /// Its claim to land.
    lander: Option<HeldWorkClaim>,
    /// Claims about which the engine was asked, and when.
    asked: HashMap<String, (Oid, Instant)>,
    /// Claims of workers that are gone, as the engine says.
    gone: HashMap<String, Oid>,
    /// Claims on finished tasks whose commits cannot land.
    distrusted: HashMap<String, Oid>,
    /// Requests that were there before this process started, or that it has obeyed.
    obeyed: BTreeSet<Oid>,
    /// The newest record of this worker at the remote.
    published: Option<Oid>,
    has_looked: bool,
}

/// A claim of this process.
#[derive(Debug, Clone)]
struct HeldWorkClaim {
    commit: Oid,
    claim: TaskClaim,
    /// When it was last pushed.
    pushed: Instant,
}

impl RemoteWork {
    /// Starts to share a plan. Claims are renewed in the background until this is dropped.
    pub fn join(
        repository: &Repository,
        options: WorkOptions,
        network: Network,
    ) -> Result<Arc<Self>, CoordinationError> {
        let identity = OwnIdentity::find(repository, options.started_by.as_ref().map(StartedBy::job));
        let work = Arc::new(Self {
            repository: repository.clone(),
            refs: ClaimRefs::new(&options.run),
            network,
            options,
            identity,
            session: OnceLock::new(),
            exchange: Mutex::default(),
        });
        let (weak, tick) = (Arc::downgrade(&work), work.options.ttl / TICK);
        thread::spawn(move || renew_until_dropped(&weak, tick));
        Ok(work)
    }

    /// The remote with the branch of the run, without secrets.
    pub fn remote(&self) -> String {
        shown_url(&self.options.remote)
    }

    /// The remote that has the claims, without secrets.
    fn claims_remote(&self) -> String {
        shown_url(self.options.claims_at())
    }

    /// Asks workers to stop or to drain: one, or all that are at work now. Returns those that have a task.
    pub fn ask(
        repository: &Repository,
        options: &WorkOptions,
        network: &Network,
        request: WorkRequest,
        worker: Option<&WorkerName>,
    ) -> Result<BTreeSet<WorkerName>, CoordinationError> {
        let refs = ClaimRefs::new(&options.run);
        let workers = RemoteView::load(repository, options, network)?.list_workers();
        let name = format!("{}{}", refs.requests, worker.map_or(ALL, WorkerName::as_str));
        let tree = repository.empty_tree()?;
        let new = repository.write_commit_with_parents(tree, &[], &request.message(&nonce()), Signing::No)?;
        for _ in 0..MAX_PUSH_TRIES {
            let old = repository.find_remote_ref(options.claims_at(), &name, network)?;
            let push = LeasedPush { name: name.clone(), new: Some(new), old };
            let refused = repository.push_leased(options.claims_at(), &[push], network);
            if refused.map_err(CoordinationError::of_push)?.is_empty() {
                return Ok(workers);
            }
        }
        let why = "it keeps changing".to_owned();
        Err(CoordinationError::Refused { remote: shown_url(options.claims_at()), name, why })
    }

    /// Removes the claims and branches of failed tasks. Returns the tasks. What another worker changes meanwhile stays.
    pub fn forget_failed(
        repository: &Repository,
        options: &WorkOptions,
        network: &Network,
    ) -> Result<Vec<TaskId>, CoordinationError> {
        let refs = ClaimRefs::new(&options.run);
        let view = RemoteView::load(repository, options, network)?;
        let gone = |name: String, old: Oid| LeasedPush { name, new: None, old: Some(old) };
        let failed = view.tasks.iter().filter(|(_, found)| found.is(ClaimState::Failed));
        let failed: Vec<(TaskId, Vec<LeasedPush>)> = failed
            .map(|(task, found)| {
                let branch = view.branches.get(task).map(|tip| gone(refs.branch(task), *tip));
                let claim = gone(refs.task(task), found.commit);
                (task.clone(), [claim].into_iter().chain(branch).collect())
            })
            .collect();
        let push = |pushes: &[LeasedPush]| {
            let refused = repository.push_leased(options.claims_at(), pushes, network);
            refused.map(|refused| refused.is_empty()).map_err(CoordinationError::of_push)
        };
        let all: Vec<LeasedPush> = failed.iter().flat_map(|(_, pushes)| pushes.clone()).collect();
        let mut forgotten = Vec::new();
        // One push, or one for each task if another worker has changed something.
        let is_done = all.is_empty() || push(&all)?;
        for (task, pushes) in failed {
            if is_done || push(&pushes)? {
                forgotten.push(task);
            }
        }
        Ok(forgotten)
    }

    /// Publishes its last records, and gives back everything that this process holds. If the remote cannot be reached, its
    /// claims expire.
    pub fn leave(&self) {
        let mut known = self.known();
        self.publish_records(&mut known);
        let held = std::mem::take(&mut known.held);
        let mut pushes: Vec<LeasedPush> = held
            .iter()
            .map(|(task, held)| LeasedPush { name: self.refs.task(task), new: None, old: Some(held.commit) })
            .collect();
        let lander = known.lander.take().filter(|held| held.claim.state == ClaimState::Working);
        let lander = lander.map(|held| LeasedPush {
            name: self.refs.lander.clone(),
            new: None,
            old: Some(held.commit),
        });
        pushes.extend(lander);
        // One by one: a claim that is lost does not hold up the others.
        for push in pushes {
            let _ = self.push(&mut known, &[push], Renewal::None);
        }
    }

    /// Taken after the queue's `other_checkouts`; held while git talks to the remote.
    fn known(&self) -> MutexGuard<'_, Known> {
        self.exchange.hold()
    }

    /// Reads the remote again.
    fn refresh(&self, known: &mut Known) -> Result<(), CoordinationError> {
        known.view = RemoteView::load_again(
            &self.repository, &self.options, &self.refs, &self.network, &mut known.commits,
        )?;
        let now = Instant::now();
        let claims = known.view.tasks.values().chain(&known.view.lander);
        let seen: HashMap<String, (Oid, Instant)> = claims
            .map(|claim| {
                let before = known.unchanged.get(&claim.name).filter(|(commit, _)| *commit == claim.commit);
                (claim.name.clone(), before.copied().unwrap_or((claim.commit, now)))
            })
            .collect();
        known.unchanged = seen;
        if !known.has_looked {
            known.obeyed = known.view.requests.iter().map(|(_, commit, _)| *commit).collect();
            self.refresh_published(known)?;
            known.has_looked = true;
        }
        Ok(())
    }

    /// Whether another process holds a claim and may be at work. The processes of this clone are not: this process
    /// holds the lock of the run here.
    fn is_taken(&self, known: &Known, found: &RemoteClaim) -> bool {
        let ttl = match &found.claim {
            Some(claim) if claim.state == ClaimState::Free => return false,
            Some(claim) if known.is_distrusted(found) => claim.time_to_live().min(UNREADABLE_TIME_TO_LIVE),
            Some(claim) if claim.state != ClaimState::Working => return true,
            Some(claim) if claim.place == self.identity.place => return false,
            Some(_) if known.gone.get(&found.name) == Some(&found.commit) => return false,
            Some(claim) => claim.time_to_live(),
            None => UNREADABLE_TIME_TO_LIVE,
        };
        let since = known.unchanged.get(&found.name).filter(|(commit, _)| *commit == found.commit);
        since.is_none_or(|(_, since)| since.elapsed() < ttl)
    }

    /// Asks the engine about a claim that has been quiet for a while, if this worker has nothing else to do. One claim at
    /// a time, and each rarely: many workers wait at once, and an engine answers all of them. Returns what it said.
    fn ask_engine(&self, known: &mut Known) -> Option<String> {
        let started_by = self.options.started_by.as_ref()?;
        let is_landing = known.lander.as_ref().is_some_and(|held| held.claim.state == ClaimState::Working);
        if is_landing || !known.held.is_empty() {
            return None;
        }
        let claims = known.view.tasks.values().chain(&known.view.lander);
        let (name, commit, job) = claims
            .filter(|found| found.is(ClaimState::Working) && self.is_taken(known, found))
            .find_map(|found| {
                let claim = found.claim.as_ref()?;
                let job = claim.job.as_ref().filter(|job| started_by.knows(job))?;
                let is_over = |at: &HashMap<String, (Oid, Instant)>, part: u32| {
                    let at = at.get(&found.name).filter(|(commit, _)| *commit == found.commit);
                    at.map(|(_, at)| at.elapsed() >= claim.time_to_live() / part)
                };
                let is_quiet = is_over(&known.unchanged, QUIET) == Some(true);
                let is_due = is_over(&known.asked, ASK_AGAIN).unwrap_or(true);
                (is_quiet && is_due).then(|| (found.name.clone(), found.commit, job.clone()))
            })?;
        known.asked.insert(name.clone(), (commit, Instant::now()));
        if !started_by.is_gone(&job, &self.network.cancel) {
            return None;
        }
        let what =
            name.strip_prefix(&self.refs.tasks).map_or_else(|| "to land".into(), |task| format!("on {task}"));
        known.gone.insert(name, commit);
        Some(format!("{} says that job {}, which held the claim {what}, is gone", job.engine, job.job))
    }

    /// Pushes all of these refs or none, together with the claims that are due to be renewed. A claim that turns out to
    /// be lost does not hold up the rest.
    fn push(
        &self,
        known: &mut Known,
        wanted: &[LeasedPush],
        renewal: Renewal,
    ) -> Result<Vec<Pushed>, CoordinationError> {
        for _ in 0..MAX_PUSH_TRIES {
            let renewed = self.due_renewals(known, wanted, renewal)?;
            if renewed.is_empty() {
                break;
            }
            let mut pushes = wanted.to_vec();
            pushes.extend(renewed.iter().map(|(push, _)| push.clone()));
            let refused = self.push_leased(&pushes)?;
            if refused.is_empty() {
                renewed.into_iter().for_each(|(_, held)| known.renew(held));
                self.remember(known, &pushes);
                return Ok(refused);
            }
            // Forget the claims that are no longer ours, then try again without them.
            self.refresh(known)?;
            let before = known.held.len() + usize::from(known.lander.is_some());
            known.forget_lost(&self.refs);
            if known.held.len() + usize::from(known.lander.is_some()) == before && !wanted.is_empty() {
                break;
            }
        }
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let refused = self.push_leased(wanted)?;
        if refused.is_empty() {
            self.remember(known, wanted);
        }
        Ok(refused)
    }

    fn push_leased(&self, pushes: &[LeasedPush]) -> Result<Vec<Pushed>, CoordinationError> {
        let pushed = self.repository.push_leased(self.options.claims_at(), pushes, &self.network);
        pushed.map_err(CoordinationError::of_push)
    }

    /// Remembers claims that this process has pushed, so that they are not fetched.
    fn remember(&self, known: &mut Known, pushes: &[LeasedPush]) {
        let is_claim =
            |push: &&LeasedPush| push.name.starts_with(&self.refs.tasks) || push.name == self.refs.lander;
        for commit in pushes.iter().filter(is_claim).filter_map(|push| push.new) {
            // If it cannot be read here, it is fetched like any other.
            let read = self.repository.load_commits(&[commit]).ok().and_then(|mut found| found.pop());
            known.commits.extend(read.map(|content| (commit, Some(content))));
        }
    }

    /// The claims that are to be renewed with a push, except those that it moves anyway.
    fn due_renewals(
        &self,
        known: &Known,
        wanted: &[LeasedPush],
        renewal: Renewal,
    ) -> Result<Vec<(LeasedPush, HeldWorkClaim)>, CoordinationError> {
        let Some(age) = renewal.age(self.options.ttl) else { return Ok(Vec::new()) };
        let mut due = Vec::new();
        for held in known.held.values().chain(&known.lander) {
            let name = self.ref_of(held);
            let is_free = held.claim.state == ClaimState::Free;
            if is_free || held.pushed.elapsed() < age || wanted.iter().any(|push| push.name == name) {
                continue;
            }
            let mut claim = held.claim.clone();
            (claim.renewed, claim.renewals) = ((self.options.clock)(), claim.renewals + 1);
            let commit = claim.write(&self.repository)?;
            due.push((
                LeasedPush { name, new: Some(commit), old: Some(held.commit) },
                HeldWorkClaim { commit, claim, pushed: Instant::now() },
            ));
        }
        Ok(due)
    }

    /// Moves a claim of this process to another state.
    fn restate(
        &self,
        held: &HeldWorkClaim,
        state: ClaimState,
        source: Option<Oid>,
    ) -> Result<HeldWorkClaim, CoordinationError> {
        let mut claim = TaskClaim { state, source, renewed: (self.options.clock)(), ..held.claim.clone() };
        let commit = claim.write(&self.repository)?;
        Ok(HeldWorkClaim { commit, claim, pushed: Instant::now() })
    }

    /// A new claim on a task, or to land. It is valid once it is pushed.
    fn new_claim(&self, task: Option<&TaskId>) -> Result<HeldWorkClaim, CoordinationError> {
        let mut claim = self.identity.claim(task.cloned(), ((self.options.clock)(), self.options.ttl));
        let commit = claim.write(&self.repository)?;
        Ok(HeldWorkClaim { commit, claim, pushed: Instant::now() })
    }

    /// The push that creates a claim where there is none.
    fn creation(&self, held: &HeldWorkClaim) -> LeasedPush {
        LeasedPush { name: self.ref_of(held), new: Some(held.commit), old: None }
    }

    /// The ref of a claim.
    fn ref_of(&self, held: &HeldWorkClaim) -> String {
        held.claim.task.as_ref().map_or_else(|| self.refs.lander.clone(), |task| self.refs.task(task))
    }

    /// Takes a claim. `found` is what the remote has.
    fn take(
        &self,
        known: &mut Known,
        name: String,
        task: Option<&TaskId>,
        found: Option<RemoteClaim>,
    ) -> Result<Option<HeldWorkClaim>, CoordinationError> {
        if found.as_ref().is_some_and(|found| self.is_taken(known, found)) {
            return Ok(None);
        }
        let old = found.map(|found| found.commit);
        let mut why = String::new();
        for _ in 0..MAX_PUSH_TRIES {
            let held = self.new_claim(task)?;
            let push = LeasedPush { name: name.clone(), new: Some(held.commit), old };
            let refused = self.push(known, &[push], Renewal::Early)?;
            let Some(row) = refused.first() else { return Ok(Some(held)) };
            why = row.reason();
            self.refresh(known)?;
            let now = match task {
                Some(task) => self.listed(known, task),
                None => known.view.lander.as_ref().map(|found| found.commit),
            };
            // Another worker was faster.
            if now != old {
                return Ok(None);
            }
        }
        Err(CoordinationError::Refused { remote: self.claims_remote(), name, why })
    }

    /// The commit of a task's claim at the remote.
    fn listed(&self, known: &Known, task: &TaskId) -> Option<Oid> {
        known.view.tasks.get(task).map(|found| found.commit)
    }
}

/// Which claims are renewed with a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// None.
    None,
    /// Those for which it saves a push of their own.
    Early,
    /// Those that are due.
    Due,
}

impl Renewal {
    /// How old the last push of a claim must be.
    fn age(self, ttl: Duration) -> Option<Duration> {
        match self {
            Self::None => None,
            Self::Early => Some(ttl / RENEW_EARLY),
            Self::Due => Some(ttl / RENEW_DUE),
        }
    }
}

impl Known {
    /// Whether it claims that a task is finished, but its commit cannot land.
    fn is_distrusted(&self, found: &RemoteClaim) -> bool {
        found.is(ClaimState::Finished) && self.distrusted.get(&found.name) == Some(&found.commit)
    }

    fn renew(&mut self, held: HeldWorkClaim) {
        match held.claim.task.clone() {
            Some(task) => drop(self.held.insert(task, held)),
            None => self.lander = Some(held),
        }
    }

    /// Forgets claims that the remote has with another value.
    fn forget_lost(&mut self, refs: &ClaimRefs) {
        let tasks = &self.view.tasks;
        self.held.retain(|task, held| tasks.get(task).is_some_and(|found| found.commit == held.commit));
        let is_ours = |held: &HeldWorkClaim| {
            let found = self.view.lander.as_ref().filter(|found| found.name == refs.lander);
            found.is_some_and(|found| found.commit == held.commit)
        };
        self.lander = self.lander.take().filter(is_ours);
    }
}

/// Renews claims until the worker is gone.
fn renew_until_dropped(work: &Weak<RemoteWork>, tick: Duration) {
    loop {
        thread::sleep(tick);
        let Some(work) = work.upgrade() else { return };
        let mut known = work.known();
        // If the remote cannot be reached, the next tick tries again. If that lasts too long, others take over.
        let _ = work.push(&mut known, &[], Renewal::Due);
    }
}
