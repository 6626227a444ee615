//! Pushes while a run is at work. Each remote has its own thread, so a remote that hangs does not delay the others.
//!
//! One push covers all commits that were made since the previous one; a failed push is retried after a growing delay. A
//! run waits for pushes only at its end, and only for a limited time.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{PushResult, PushSet, RepoSection, Workspace, WorkspaceError};
use crate::{
    git::{Network, Pushed, RemoteError, RemoteFailure, Repository, shown_url},
    mutex::MutexExt,
    name::RepoName,
    process::Cancel,
    settings::PushPolicy,
};

/// The delay before the first retry. It doubles with every failure.
const FIRST_DELAY: Duration = Duration::from_secs(1);

/// The longest delay between two tries.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// How many times a push is tried at the end of a run.
const MAX_PUSH_TRIES: usize = 3;

/// How often a waiting thread checks for cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// The run did everything it was asked to do.
    Succeeded,
    /// The run failed, or was interrupted.
    Failed,
}

/// A moment of a run at which its repositories may be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PushMoment {
    /// A commit was made.
    Commit,
    /// The run is over.
    End(RunEnd),
}

impl PushMoment {
    /// Whether a repository with this policy is pushed at this moment. There is no `_`, so that each new policy and each
    /// new moment is decided on here.
    const fn is_for(self, policy: PushPolicy) -> bool {
        match (policy, self) {
            (PushPolicy::OnCheckpoint, Self::Commit | Self::End(RunEnd::Succeeded | RunEnd::Failed))
            | (PushPolicy::OnCompletion, Self::End(RunEnd::Succeeded)) => true,
            (PushPolicy::OnCompletion, Self::Commit | Self::End(RunEnd::Failed))
            | (PushPolicy::Never, Self::Commit | Self::End(RunEnd::Succeeded | RunEnd::Failed)) => false,
        }
    }
}

/// The result of one push, as reported to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushReport {
    /// The repository.
    pub repo: RepoName,
    /// What was pushed and what the remote refused, or the error message.
    pub result: Result<PushResult, String>,
    /// Failures that were reported before: the name of the ref and the reason.
    pub known: BTreeSet<(String, String)>,
    /// A hint for the user.
    pub hint: Option<&'static str>,
}

/// Pushes the repositories of a run in background threads.
#[derive(Debug)]
pub struct Pusher {
    workers: Vec<WorkerHandle>,
    cancel: Cancel,
}

/// The run's side of one [`PushWorker`].
#[derive(Debug)]
struct WorkerHandle {
    orders: Option<Sender<Order>>,
    reports: Arc<Mutex<Vec<PushReport>>>,
    thread: Option<JoinHandle<()>>,
}

/// A message to a [`PushWorker`].
#[derive(Debug)]
enum Order {
    /// The run has reached this moment and continues.
    Reached(PushMoment),
    /// The run is over. The sender is dropped when the worker is done, which wakes the waiting run.
    Close(RunEnd, Sender<()>),
}

impl Pusher {
    /// Starts a thread for each repository that has a push policy other than "never". Returns `None` if there is none.
    #[must_use]
    pub fn start(
        workspace: &Workspace,
        repositories: Vec<(RepoSection, Repository)>,
        wanted: &PushSet,
    ) -> Option<Self> {
        // A separate token, not the run's: commits that were made before Ctrl-C are still pushed.
        let cancel = Cancel::new();
        let network = Network { cancel: cancel.clone(), ..workspace.network.clone() };
        let workspace = Workspace { network, ..workspace.clone() };
        let workers: Vec<WorkerHandle> = repositories
            .into_iter()
            .filter(|(section, _)| section.push != PushPolicy::Never)
            .map(|repository| WorkerHandle::start(repository.0, repository.1, &workspace, wanted))
            .collect();
        if workers.is_empty() { None } else { Some(Self { workers, cancel }) }
    }

    /// Takes notice of a commit. Does not block.
    pub fn note_commit(&self) {
        for orders in self.workers.iter().filter_map(|worker| worker.orders.as_ref()) {
            let _ = orders.send(Order::Reached(PushMoment::Commit));
        }
    }

    /// Returns the reports since the last call.
    #[must_use]
    pub fn take_reports(&self) -> Vec<PushReport> {
        let take = |worker: &WorkerHandle| std::mem::take(&mut *worker.reports.hold());
        self.workers.iter().flat_map(take).collect()
    }

    /// Pushes what the end of the run asks for, and waits for it. Once `cancel` is cancelled, it waits at most `grace`
    /// longer. Returns the remaining reports.
    #[must_use]
    pub fn close(mut self, end: RunEnd, cancel: &Cancel, grace: Duration) -> Vec<PushReport> {
        let (done, wait) = channel();
        for orders in self.workers.iter_mut().filter_map(|worker| worker.orders.take()) {
            let _ = orders.send(Order::Close(end, done.clone()));
        }
        drop(done);
        let mut deadline = None;
        // The channel disconnects, which ends the loop, when the last worker has dropped its sender.
        while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(CANCEL_INTERVAL) {
            let now = Instant::now();
            if cancel.is_cancelled() && *deadline.get_or_insert(now + grace) <= now {
                break;
            }
        }
        self.end();
        self.take_reports()
    }

    fn end(&mut self) {
        self.cancel.cancel();
        self.workers.iter_mut().for_each(|worker| worker.orders = None);
        for thread in self.workers.iter_mut().filter_map(|worker| worker.thread.take()) {
            let _ = thread.join();
        }
    }
}

impl Drop for Pusher {
    fn drop(&mut self) {
        self.end();
    }
}

impl WorkerHandle {
    fn start(section: RepoSection, repository: Repository, workspace: &Workspace, wanted: &PushSet) -> Self {
        let (orders, received) = channel();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let worker = PushWorker {
            section,
            repository,
            workspace: workspace.clone(),
            wanted: wanted.clone(),
            reports: Arc::clone(&reports),
            retry: None,
            failures: BTreeSet::new(),
        };
        Self { orders: Some(orders), reports, thread: Some(thread::spawn(move || worker.run(&received))) }
    }
}

/// The thread that pushes one repository.
struct PushWorker {
    section: RepoSection,
    repository: Repository,
    workspace: Workspace,
    wanted: PushSet,
    reports: Arc<Mutex<Vec<PushReport>>>,
    /// After a failure: when to try again, and the delay that led to that time.
    retry: Option<(Instant, Duration)>,
    /// The failures of the last push, each reported once and not at every retry: the name of the ref, or an empty name
    /// if the whole push failed, and the reason.
    failures: BTreeSet<(String, String)>,
}

impl PushWorker {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.retry {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => orders.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            let mut is_wanted = match order {
                Ok(Order::Close(end, _done)) => return self.close(end),
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(Order::Reached(moment)) => moment.is_for(self.section.push),
                // Only a push that this loop made and that failed sets a time for the next.
                Err(RecvTimeoutError::Timeout) => true,
            };
            // One push covers everything that has happened in the meantime.
            while let Ok(order) = orders.try_recv() {
                match order {
                    Order::Close(end, _done) => return self.close(end),
                    Order::Reached(moment) => is_wanted |= moment.is_for(self.section.push),
                }
            }
            // Before the time of a retry, nothing is lost unless the run ends first: the retry pushes this too.
            if is_wanted && self.retry.is_none_or(|(at, _)| at <= Instant::now()) {
                let (_, report) = self.push();
                self.reports.hold().extend(report);
            }
        }
    }

    fn close(&mut self, end: RunEnd) {
        if PushMoment::End(end).is_for(self.section.push) {
            let reports = self.push_at_end();
            self.reports.hold().extend(reports);
        }
    }

    /// Tries the last push up to [`MAX_PUSH_TRIES`] times.
    fn push_at_end(&mut self) -> Vec<PushReport> {
        let mut reports = Vec::new();
        let mut delay = FIRST_DELAY;
        for n in 1..=MAX_PUSH_TRIES {
            let (retry, report) = self.push();
            reports.extend(report);
            if retry == Retry::Pointless || n == MAX_PUSH_TRIES || self.workspace.network.cancel.wait(delay) {
                break;
            }
            delay *= 2;
        }
        reports.extend(self.find_work_outside());
        reports
    }

    /// Warns that work outside of session branches is not pushed.
    fn find_work_outside(&self) -> Option<PushReport> {
        let remote = self.section.remote.as_deref().map(shown_url).unwrap_or_default();
        let left = self.workspace.unpushed_checkout(&self.repository, &self.section, &self.wanted);
        let words = left.ok().filter(|left| !left.has_session).and_then(|left| left.words(&remote))?;
        let result = Err(format!("it has no session or task branches; {words}"));
        Some(PushReport { repo: self.section.name.clone(), result, known: BTreeSet::new(), hint: None })
    }

    /// Pushes once. Returns whether a retry is worthwhile, and a report if there is something new for the user.
    fn push(&mut self) -> (Retry, Option<PushReport>) {
        let result = self.workspace.push_missing(&self.repository, &self.section, &self.wanted);
        let trouble = match &result {
            Err(WorkspaceError::Remote(RemoteError::Unreached { trouble, .. })) => Some(*trouble),
            _ => None,
        };
        // A remote that hung or that asked for credentials will do the same again.
        let retry = if trouble == Some(RemoteFailure::Other) { Retry::Worthwhile } else { Retry::Pointless };
        // A push that was cut off at the end of the run has no error of its own worth reporting.
        let is_late = self.workspace.network.cancel.is_cancelled();
        let late = || "the run ended before its remote answered".to_owned();
        let result = result.map_err(|error| if is_late { late() } else { error.to_string() });
        let failures: BTreeSet<(String, String)> = match &result {
            Ok(pushed) => {
                let why = |row: &Pushed| row.refused.clone().unwrap_or_default();
                pushed.refused.iter().map(|row| (row.name.clone(), why(row))).collect()
            }
            Err(why) => [(String::new(), why.clone())].into(),
        };
        self.retry = match (&result, self.retry) {
            (Ok(_), _) => None,
            (Err(_), None) => Some((Instant::now() + FIRST_DELAY, FIRST_DELAY)),
            (Err(_), Some((_, delay))) => {
                let delay = (delay * 2).min(LONGEST_DELAY);
                Some((Instant::now() + delay, delay))
            }
        };
        let is_known = failures.is_subset(&self.failures) || (is_late && !self.failures.is_empty());
        let has_pushed = result.as_ref().is_ok_and(|pushed| !pushed.pushed.is_empty());
        let known = std::mem::replace(&mut self.failures, failures);
        let hint = trouble.and_then(RemoteFailure::hint);
        let report = PushReport { repo: self.section.name.clone(), result, known, hint };
        (retry, (has_pushed || !is_known).then_some(report))
    }
}

/// Whether another try could end differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retry {
    Worthwhile,
    /// The push succeeded, or it would fail in the same way.
    Pointless,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_push_policy_pushes_at_its_moments() {
        let moments =
            [PushMoment::Commit, PushMoment::End(RunEnd::Failed), PushMoment::End(RunEnd::Succeeded)];
        for (policy, expected) in [
            (PushPolicy::Never, [false, false, false]),
            (PushPolicy::OnCompletion, [false, false, true]),
            (PushPolicy::OnCheckpoint, [true, true, true]),
        ] {
            assert_eq!(moments.map(|moment| moment.is_for(policy)), expected, "{policy:?}");
        }
    }
}
