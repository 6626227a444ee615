//! Pushing while a run goes on: in a thread of its own, many commits at once, again after a while where it failed. It keeps
//! nobody waiting but at the end, and there not for ever.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{Cargo, Delivery, PushPolicy, Section, Workspace, WorkspaceError};
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
    pub result: Result<Delivery, String>,
    /// What was told before: names of refs, and why they were refused.
    pub known: BTreeSet<(String, String)>,
    /// What to try.
    pub hint: Option<&'static str>,
}

/// A repository that the courier looks after.
#[derive(Debug)]
struct Route {
    section: Section,
    repository: Repository,
    /// When to try again, and how long was waited for that, after a failure.
    again: Option<(Instant, Duration)>,
    /// What failed at the last try, and why: said once, not at each try. What failed as a whole has no name.
    complaints: BTreeSet<(String, String)>,
}

/// Who pushes while a run goes on.
#[derive(Debug)]
pub struct Courier {
    orders: Option<Sender<Order>>,
    notices: Arc<Mutex<Vec<Notice>>>,
    thread: Option<JoinHandle<()>>,
    cancel: Cancel,
}

#[derive(Debug)]
enum Order {
    /// A commit was made.
    Checkpoint,
    /// The run is over; whoever waits is told when all is done.
    Close(Close, Sender<()>),
}

impl Courier {
    /// Begins to look after the repositories that are pushed at all. `None` if there is none.
    #[must_use]
    pub fn start(
        workspace: &Workspace,
        repositories: Vec<(Section, Repository)>,
        cargo: Cargo,
    ) -> Option<Self> {
        let routes: Vec<Route> = repositories
            .into_iter()
            .filter(|(section, _)| section.push != PushPolicy::Never)
            .map(|(section, repository)| Route {
                section,
                repository,
                again: None,
                complaints: BTreeSet::new(),
            })
            .collect();
        if routes.is_empty() {
            return None;
        }
        // Not that of the run: what was committed before Ctrl-C is to be pushed too.
        let cancel = Cancel::new();
        let network = Network { cancel: cancel.clone(), ..workspace.network.clone() };
        let workspace = Workspace { network, ..workspace.clone() };
        let (orders, heard) = channel();
        let notices = Arc::new(Mutex::new(Vec::new()));
        let round = Round { workspace, routes, cargo, notices: Arc::clone(&notices) };
        let thread = Some(thread::spawn(move || round.run(&heard)));
        Some(Self { orders: Some(orders), notices, thread, cancel })
    }

    /// Tells that a commit was made. Returns at once.
    pub fn checkpoint(&self) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(Order::Checkpoint);
        }
    }

    /// What became of pushes since this was last asked.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Pushes what has to be pushed now that the run is over, and waits for that as long as remotes are at work; once
    /// there is a `wish` to stop, no longer than `hurry`. Gives what became of it.
    #[must_use]
    pub fn close(mut self, close: Close, (wish, hurry): (&Cancel, Duration)) -> Vec<Notice> {
        let (done, wait) = channel();
        if let Some(orders) = self.orders.take() {
            let _ = orders.send(Order::Close(close, done));
        }
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
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Courier {
    fn drop(&mut self) {
        self.end();
    }
}

struct Round {
    workspace: Workspace,
    routes: Vec<Route>,
    cargo: Cargo,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl Round {
    fn run(mut self, orders: &Receiver<Order>) {
        loop {
            let order = match self.patience() {
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => orders.recv_timeout(time),
            };
            match order {
                Ok(Order::Close(close, done)) => return self.close(close, &done),
                Err(RecvTimeoutError::Disconnected) => return,
                Ok(Order::Checkpoint) | Err(RecvTimeoutError::Timeout) => {}
            }
            // All that was committed meanwhile is one reason to push.
            while let Ok(order) = orders.try_recv() {
                if let Order::Close(close, done) = order {
                    return self.close(close, &done);
                }
            }
            let now = Instant::now();
            let (workspace, cargo) = (&self.workspace, &self.cargo);
            for route in &mut self.routes {
                let is_due = route.again.is_none_or(|(at, _)| at <= now);
                if is_due && route.section.push == PushPolicy::OnCheckpoint {
                    let (_, notice) = route.push(workspace, cargo);
                    self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(notice);
                }
            }
        }
    }

    /// How long until a push is tried again.
    fn patience(&self) -> Option<Duration> {
        let next = self.routes.iter().filter_map(|route| route.again).map(|(at, _)| at).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// All at once: one that hangs keeps nobody from the others.
    fn close(&mut self, close: Close, done: &Sender<()>) {
        let (workspace, cargo) = (&self.workspace, &self.cargo);
        let is_due =
            |route: &Route| route.section.push == PushPolicy::OnCheckpoint || close == Close::Succeeded;
        let told: Vec<Notice> = thread::scope(|scope| {
            let routes = self.routes.iter_mut().filter(|route| is_due(route));
            let last: Vec<_> = routes.map(|route| scope.spawn(|| route.finish(workspace, cargo))).collect();
            last.into_iter().filter_map(|thread| thread.join().ok()).flatten().collect()
        });
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(told);
        let _ = done.send(());
    }
}

impl Route {
    /// The last tries.
    fn finish(&mut self, workspace: &Workspace, cargo: &Cargo) -> Vec<Notice> {
        let mut told = Vec::new();
        let mut delay = DELAYS[0];
        for n in 1..=TRIES {
            let (fate, notice) = self.push(workspace, cargo);
            told.extend(notice);
            if fate == Fate::Settled || n == TRIES || workspace.network.cancel.wait(delay) {
                break;
            }
            delay *= 2;
        }
        told.extend(self.find_remainder(workspace, cargo));
        told
    }

    /// Who wants pushes hears that work which is on no session branch is not pushed.
    fn find_remainder(&self, workspace: &Workspace, cargo: &Cargo) -> Option<Notice> {
        let remote = self.section.remote.as_deref().map(shown_url).unwrap_or_default();
        let left = workspace.remainder(&self.repository, &self.section, cargo);
        let words = left.ok().filter(|left| !left.has_session).and_then(|left| left.words(&remote))?;
        let result = Err(format!("it has no session or task branches; {words}"));
        Some(Notice { repo: self.section.name.clone(), result, known: BTreeSet::new(), hint: None })
    }

    /// Tells whether it is worth another try, and what is new for the user.
    fn push(&mut self, workspace: &Workspace, cargo: &Cargo) -> (Fate, Option<Notice>) {
        let result = workspace.deliver(&self.repository, &self.section, cargo);
        let trouble = match &result {
            Err(WorkspaceError::Remote(RemoteError::Unreached { trouble, .. })) => Some(*trouble),
            _ => None,
        };
        // Who hangs or wants to know who asks does the same in a moment.
        let fate = if trouble == Some(Trouble::Other) { Fate::Passing } else { Fate::Settled };
        // Nobody asked for that: who waits at the end of a run does not wait for ever.
        let is_late = workspace.network.cancel.is_cancelled();
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
