//! Reads what is at the remote: the target, claims, requests and branches of finished tasks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    ClaimState, CoordinationError, TaskClaim, WorkOptions,
    claim::{ClaimRefs, LARGEST_CLAIM},
};
use crate::{
    git::{FetchDepth, Network, RawCommit, Repository},
    message::visible,
    name::{Oid, TaskId, WorkerName},
    plan::Plan,
    words::words,
};

/// How many refs are fetched by one command.
pub(super) const MOST_AT_ONCE: usize = 200;
/// How often the remote is asked again if refs vanish between listing and fetching them.
const MAX_LISTING_TRIES: usize = 3;
/// How many refs that cannot be used are named.
const MOST_REMARKS: usize = 5;

/// A claim as the remote has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteClaim {
    /// The ref's name.
    pub name: String,
    /// Its value.
    pub commit: Oid,
    /// The content; `None` if it cannot be read.
    pub claim: Option<TaskClaim>,
}

impl RemoteClaim {
    /// Whether it is in this state.
    #[must_use]
    pub fn is(&self, state: ClaimState) -> bool {
        self.claim.as_ref().is_some_and(|claim| claim.state == state)
    }
}

/// What a remote has of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteView {
    /// The target.
    pub target: Option<Oid>,
    /// The claims on tasks.
    pub tasks: BTreeMap<TaskId, RemoteClaim>,
    /// The claim of the worker that lands.
    pub lander: Option<RemoteClaim>,
    /// The branches of finished tasks.
    pub branches: BTreeMap<TaskId, Oid>,
    /// The requests to workers: the last part of the name, the commit and the request.
    pub requests: Vec<(String, Oid, WorkRequest)>,
    /// What cannot be used there, in words.
    pub remarks: Vec<String>,
}

/// Claims and requests that were read before, by their commits.
pub(super) type KnownCommits = HashMap<Oid, Option<RawCommit>>;

impl RemoteView {
    /// Reads it from the remote.
    pub fn load(
        repository: &Repository,
        options: &WorkOptions,
        network: &Network,
    ) -> Result<Self, CoordinationError> {
        let refs = ClaimRefs::new(&options.run);
        Self::load_again(repository, options, &refs, network, &mut KnownCommits::new())
    }

    /// Whether the remote has claims on tasks. This is one question, and nothing is fetched.
    pub fn has_claims(
        repository: &Repository,
        options: &WorkOptions,
        network: &Network,
    ) -> Result<bool, CoordinationError> {
        let tasks = ClaimRefs::new(&options.run).tasks;
        let pattern = format!("{tasks}*");
        let listed = repository.list_remote_refs(options.claims_at(), &[&pattern], network)?;
        // A pattern also matches the end of a longer name.
        Ok(listed.iter().any(|(name, _)| name.starts_with(&tasks)))
    }

    /// Like [`Self::load`], but does not read again what is known.
    pub(super) fn load_again(
        repository: &Repository,
        options: &WorkOptions,
        refs: &ClaimRefs,
        network: &Network,
        known: &mut KnownCommits,
    ) -> Result<Self, CoordinationError> {
        let mut tries = 0;
        loop {
            let listed = list(repository, options, refs, network)?;
            match fetch_unknown(repository, options, refs, &listed, network, known) {
                Ok(()) => return Ok(Self::of(refs, listed, known)),
                Err(_) if tries < MAX_LISTING_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The workers that work on a task or land.
    pub(super) fn list_workers(&self) -> BTreeSet<WorkerName> {
        let claims = self.tasks.values().chain(&self.lander).filter_map(|found| found.claim.as_ref());
        let claims = claims.filter(|claim| claim.state == ClaimState::Working);
        claims.map(|claim| claim.worker.clone()).collect()
    }

    /// The tasks that a worker works on, and those of this plan that are finished and have not landed. Claims that were not
    /// renewed for their time to live do not count, by the clocks of both machines. A finished task that left the plan does
    /// not count either: no worker will ever land it.
    #[must_use]
    pub fn list_in_work(&self, now: i64, plan: &Plan) -> Vec<TaskId> {
        let is_in_work = |task: &TaskId, claim: &TaskClaim| match claim.state {
            ClaimState::Working => now.saturating_sub(claim.renewed) < i64::try_from(claim.ttl).unwrap_or(0),
            ClaimState::Finished => plan.find(task).is_some(),
            ClaimState::Failed | ClaimState::Free => false,
        };
        let is_claimed = |task: &TaskId, found: &RemoteClaim| {
            found.claim.as_ref().is_some_and(|claim| is_in_work(task, claim))
        };
        self.tasks
            .iter()
            .filter(|(task, found)| is_claimed(task, found))
            .map(|(task, _)| task.clone())
            .collect()
    }

    fn of(refs: &ClaimRefs, listed: Vec<(String, Oid)>, known: &mut KnownCommits) -> Self {
        let mut view = Self::default();
        let mut strange = Vec::new();
        known.retain(|commit, _| listed.iter().any(|(_, listed)| listed == commit));
        for (name, commit) in listed {
            let content = || known.get(&commit).cloned().flatten();
            let claim = |task: Option<&TaskId>| {
                let claim = content().and_then(|content| TaskClaim::read(&content));
                let claim = claim.filter(|claim| claim.task.as_ref() == task);
                RemoteClaim { name: name.clone(), commit, claim }
            };
            if name == refs.target {
                view.target = Some(commit);
            } else if name == refs.lander {
                let found = claim(None);
                strange.extend(found.claim.is_none().then(|| name.clone()));
                view.lander = Some(found);
            } else if let Some(task) = name.strip_prefix(&refs.branches) {
                view.branches.extend(task.parse().ok().map(|task: TaskId| (task, commit)));
            } else if let Some(task) = name.strip_prefix(&refs.tasks) {
                match task.parse::<TaskId>() {
                    Ok(task) => {
                        let found = claim(Some(&task));
                        if found.claim.is_none() {
                            strange.push(name.clone());
                        }
                        view.tasks.insert(task, found);
                    }
                    Err(_) => strange.push(name.clone()),
                }
            } else if let Some(whose) = name.strip_prefix(&refs.requests) {
                let request = content().and_then(|content| WorkRequest::read(&content));
                view.requests.extend(request.map(|request| (whose.to_owned(), commit, request)));
            }
        }
        let more = strange.len().saturating_sub(MOST_REMARKS);
        view.remarks =
            strange.iter().take(MOST_REMARKS).map(|name| format!("not a claim: {}", visible(name))).collect();
        if more > 0 {
            view.remarks.push(format!("and {more} more that are not claims"));
        }
        view
    }
}

/// The refs of a run at the remote. Claims are listed before branches, because of their names, and before the target if
/// that is at another remote: if a landed task's claim is missing here, the target has that task.
fn list(
    repository: &Repository,
    options: &WorkOptions,
    refs: &ClaimRefs,
    network: &Network,
) -> Result<Vec<(String, Oid)>, CoordinationError> {
    let (tasks, requests) = (format!("{}*", refs.tasks), format!("{}*", refs.requests));
    let branches = format!("{}*", refs.branches);
    let mut patterns = vec![tasks.as_str(), &refs.lander, &requests, &branches];
    if options.coordination.is_none() {
        patterns.push(&refs.target);
    }
    let mut listed = repository.list_remote_refs(options.claims_at(), &patterns, network)?;
    if options.coordination.is_some() {
        listed.retain(|(name, _)| *name != refs.target);
        listed.extend(repository.list_remote_refs(&options.remote, &[&refs.target], network)?);
    }
    // A pattern also matches the end of a longer name.
    let prefixes = [&refs.tasks, &refs.requests, &refs.branches];
    let is_ours = |name: &String| {
        *name == refs.target
            || *name == refs.lander
            || prefixes.iter().any(|prefix| name.starts_with(*prefix))
    };
    listed.retain(|(name, _)| is_ours(name));
    Ok(listed)
}

/// Fetches the target, and claims and requests that are not known. The objects come without refs: nothing of the
/// repository changes.
fn fetch_unknown(
    repository: &Repository,
    options: &WorkOptions,
    refs: &ClaimRefs,
    listed: &[(String, Oid)],
    network: &Network,
    known: &mut KnownCommits,
) -> Result<(), CoordinationError> {
    let is_unknown = |(name, commit): &&(String, Oid)| {
        if *name == refs.target {
            return repository.load_commits(&[*commit]).is_err();
        }
        !name.starts_with(&refs.branches) && !known.contains_key(commit)
    };
    let unknown: Vec<&(String, Oid)> = listed.iter().filter(is_unknown).collect();
    let is_elsewhere = |(name, _): &&(String, Oid)| options.coordination.is_some() && *name == refs.target;
    let (targets, unknown): (Vec<_>, Vec<_>) = unknown.into_iter().partition(is_elsewhere);
    for (remote, part) in unknown
        .chunks(MOST_AT_ONCE)
        .map(|part| (options.claims_at(), part))
        .chain([(options.remote.as_str(), &*targets)])
    {
        let names: Vec<String> = part.iter().map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            continue;
        }
        repository.fetch_refs(remote, &names, FetchDepth::Newer, network)?;
        let claims = part.iter().filter(|(name, _)| *name != refs.target);
        let commits: Vec<Oid> = claims.map(|(_, commit)| *commit).collect();
        let contents = repository.find_small_commits(&commits, LARGEST_CLAIM)?;
        known.extend(commits.into_iter().zip(contents));
    }
    Ok(())
}

words! {
    /// What workers are asked to do.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum WorkRequest {
        /// Interrupt the agents and end.
        Stop = "stop",
        /// Finish the current tasks, take no more, and end.
        Drain = "drain",
    }
}

/// The name of the ref that all workers of a run obey.
pub(super) const ALL: &str = "all";

impl WorkRequest {
    /// The message of its commit. `nonce` tells it from earlier ones.
    pub(super) fn message(self, nonce: &str) -> String {
        format!("request: {}\n\n{nonce}\n", self.as_str())
    }

    /// Reads a request. `None` if it is not one.
    pub(super) fn read(commit: &RawCommit) -> Option<Self> {
        let line = commit.message().split(|b| *b == b'\n').next()?;
        Self::of_word(std::str::from_utf8(line).ok()?.strip_prefix("request: ")?)
    }
}
