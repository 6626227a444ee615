//! Pushing while a run goes on: in a thread for each remote, many commits at once, again after a while where it failed. It
//! keeps nobody waiting but at the end, and there not for ever; one that hangs keeps nobody from the others.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{PushPolicy, PushResult, PushSet, RepoSection, Workspace, WorkspaceError};
use crate::{
    git::{Network, Pushed, RemoteError, Repository, Trouble, shown_url},
    name::RepoName,
    process::Cancel,
};

/// The first time between two tries, and the longest.
const DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// How often a push is tried at the end of a run.
const TRIES: usize = 3;

/// How often one who waits looks whether there is a wish to stop.
const SLICE: Duration = Duration::from_millis(100);

/// How a run ended, as far as pushing is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Everything that was wanted is done.
    Succeeded,
    /// It is not.
    Failed,
}

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The repository.
    pub repo: RepoName,
    /// What the remote has now, or why it has it not.
    pub result: Result<PushResult, String>,
    /// What was told before: names of refs, and why they were refused.
    pub known: BTreeSet<(String, String)>,
    /// What to try.
    pub hint: Option<&'static str>,
}

/// Who pushes while a run goes on.
#[derive(Debug)]
pub struct Pusher {
    workers: Vec<RemoteWorker>,
    cancel: Cancel,
}

/// The way to whoever looks after one repository.
#[derive(Debug)]
struct RemoteWorker {
    orders: Option<Sender<Order>>,
    notices: Arc<Mutex<Vec<Notice>>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Order {
    /// A commit was made.
    Checkpoint,
    /// The run is over; whoever waits hears nothing more of this once all is done.
    Close(Close, Sender<()>),
}

impl Pusher {
    /// Begins to look after the repositories that are pushed at all. `None` if there is none.
    #[must_use]
    pub fn start(
        workspace: &Workspace,
        repositories: Vec<(RepoSection, Repository)>,
        cargo: &PushSet,
    ) -> Option<Self> {
        // Not that of the run: what was committed before Ctrl-C is to be pushed too.
        let cancel = Cancel::new();
        let network = Network { cancel: cancel.clone(), ..workspace.network.clone() };
        let workspace = Workspace { network, ..workspace.clone() };
        let workers: Vec<RemoteWorker> = repositories
            .into_iter()
            .filter(|(section, _)| section.push != PushPolicy::Never)
            .map(|place| RemoteWorker::start(place, &workspace, cargo))
            .collect();
        if workers.is_empty() { None } else { Some(Self { workers, cancel }) }
    }

    /// Tells that a commit was made. Returns at once.
    pub fn checkpoint(&self) {
        for orders in self.workers.iter().filter_map(|worker| worker.orders.as_ref()) {
            let _ = orders.send(Order::Checkpoint);
        }
    }

    /// What became of pushes since this was last asked.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        let take = |worker: &RemoteWorker| std::mem::take(&mut *lock(&worker.notices));
        self.workers.iter().flat_map(take).collect()
    }

    /// Pushes what has to be pushed now that the run is over, and waits for that as long as remotes are at work; once
    /// there is a `wish` to stop, no longer than `hurry`. Gives what became of it.
    #[must_use]
    pub fn close(mut self, close: Close, (wish, hurry): (&Cancel, Duration)) -> Vec<Notice> {
        let (done, wait) = channel();
        for orders in self.workers.iter_mut().filter_map(|worker| worker.orders.take()) {
            let _ = orders.send(Order::Close(close, done.clone()));
        }
        drop(done);
        let mut until = None;
        while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(SLICE) {
            let now = Instant::now();
            if wish.is_cancelled() && *until.get_or_insert(now + hurry) <= now {
                break;
            }
        }
        self.end();
        self.notices()
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

impl RemoteWorker {
    fn start(
        (section, repository): (RepoSection, Repository),
        workspace: &Workspace,
        cargo: &PushSet,
    ) -> Self {
        let (orders, heard) = channel();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let route = Route {
            section,
            repository,
            workspace: workspace.clone(),
            cargo: cargo.clone(),
            notices: Arc::clone(&notices),
            again: None,
            complaints: BTreeSet::new(),
        };
        Self { orders: Some(orders), notices, thread: Some(thread::spawn(move || route.run(&heard))) }
    }
}

fn lock(notices: &Mutex<Vec<Notice>>) -> MutexGuard<'_, Vec<Notice>> {
    notices.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A repository that is looked after.
struct Route {
    section: RepoSection,
    repository: Repository,
    workspace: Workspace,
    cargo: PushSet,
    notices: Arc<Mutex<Vec<Notice>>>,
    /// When to try again, and how long was waited for that, after a failure.
    again: Option<(Instant, Duration)>,
    /// What failed at the last try, and why: said once, not at each try. What failed as a whole has no name.
    complaints: BTreeSet<(String, String)>,
}

impl Route {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.again {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((at, _)) => orders.recv_timeout(at.saturating_duration_since(Instant::now())),
            };
            let is_due = match order {
                Ok(Order::Close(close, _done)) => return self.close(close),
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(Order::Checkpoint) => self.again.is_none_or(|(at, _)| at <= Instant::now()),
                Err(RecvTimeoutError::Timeout) => true,
            };
            // All that was committed meanwhile is one reason to push.
            while let Ok(order) = orders.try_recv() {
                if let Order::Close(close, _done) = order {
                    return self.close(close);
                }
            }
            if is_due && self.section.push == PushPolicy::OnCheckpoint {
                let (_, notice) = self.push();
                lock(&self.notices).extend(notice);
            }
        }
    }

    fn close(&mut self, close: Close) {
        if self.section.push == PushPolicy::OnCheckpoint || close == Close::Succeeded {
            let told = self.finish();
            lock(&self.notices).extend(told);
        }
    }

    /// The last tries.
    fn finish(&mut self) -> Vec<Notice> {
        let mut told = Vec::new();
        let mut delay = DELAYS[0];
        for n in 1..=TRIES {
            let (fate, notice) = self.push();
            told.extend(notice);
            if fate == Fate::Settled || n == TRIES || self.workspace.network.cancel.wait(delay) {
                break;
            }
            delay *= 2;
        }
        told.extend(self.find_remainder());
        told
    }

    /// Who wants pushes hears that work which is on no session branch is not pushed.
    fn find_remainder(&self) -> Option<Notice> {
        let remote = self.section.remote.as_deref().map(shown_url).unwrap_or_default();
        let left = self.workspace.remainder(&self.repository, &self.section, &self.cargo);
        let words = left.ok().filter(|left| !left.has_session).and_then(|left| left.words(&remote))?;
        let result = Err(format!("it has no session or task branches; {words}"));
        Some(Notice { repo: self.section.name.clone(), result, known: BTreeSet::new(), hint: None })
    }

    /// Tells whether it is worth another try, and what is new for the user.
    fn push(&mut self) -> (Fate, Option<Notice>) {
        let result = self.workspace.deliver(&self.repository, &self.section, &self.cargo);
        let trouble = match &result {
            Err(WorkspaceError::Remote(RemoteError::Unreached { trouble, .. })) => Some(*trouble),
            _ => None,
        };
        // Who hangs or wants to know who asks does the same in a moment.
        let fate = if trouble == Some(Trouble::Other) { Fate::Passing } else { Fate::Settled };
        // Nobody asked for that: who waits at the end of a run does not wait for ever.
        let is_late = self.workspace.network.cancel.is_cancelled();
        let late = || "the run is over, and its remote did not answer in time".to_owned();
        let result = result.map_err(|error| if is_late { late() } else { error.to_string() });
        let complaints: BTreeSet<(String, String)> = match &result {
            Ok(delivery) => {
                let why = |row: &Pushed| row.refused.clone().unwrap_or_default();
                delivery.refused.iter().map(|row| (row.name.clone(), why(row))).collect()
            }
            Err(why) => [(String::new(), why.clone())].into(),
        };
        self.again = match (&result, self.again) {
            (Ok(_), _) => None,
            (Err(_), None) => Some((Instant::now() + DELAYS[0], DELAYS[0])),
            (Err(_), Some((_, delay))) => {
                let delay = (delay * 2).min(DELAYS[1]);
                Some((Instant::now() + delay, delay))
            }
        };
        let is_told = complaints.is_subset(&self.complaints) || (is_late && !self.complaints.is_empty());
        let has_pushed = result.as_ref().is_ok_and(|delivery| !delivery.pushed.is_empty());
        let known = std::mem::replace(&mut self.complaints, complaints);
        let hint = trouble.and_then(Trouble::hint);
        let notice = Notice { repo: self.section.name.clone(), result, known, hint };
        (fate, (has_pushed || !is_told).then_some(notice))
    }
}

/// Whether another try may come to something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It may.
    Passing,
    /// It will not, or need not.
    Settled,
}
