//! What the [`Gardener`](super::Gardener) knows while tasks are worked on: the running tasks, the finished ones, and why no
//! more tasks are started. Also the reports that threads send.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use super::{
    GardenerError, Selection, Summary, TaskCheckout, Unlanded, other_workers_state::OtherWorkers,
    outcome::explain_ticket,
};
use crate::{
    agent::limits::Spent,
    event::{EventKind, RunEvent},
    history::Event,
    name::{Oid, TaskId},
    pipeline::{OtherRepo, TaskEnd},
    plan::Task,
    queue::{LandingCommand, QueueReport, Ticket},
};

/// How often to check for a thread that ended without a report.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// After a landing here, the next one waits this long for other tasks to join it, unless a free job could use the result.
const LOCAL_BATCH_DELAY: Duration = Duration::from_millis(300);

/// The thread that works on a task.
pub(super) struct TaskThread<'scope, 'a> {
    pub(super) task: &'a Task,
    pub(super) handle: ScopedJoinHandle<'scope, ()>,
    /// What it has reported as spent. History has it when the thread ends.
    pub(super) spent: Spent,
    /// Tells it what other tasks have spent.
    pub(super) spending_sender: Sender<Spent>,
}

/// What changes while tasks are worked on.
pub(super) struct WorkState<'scope, 'a, 'w> {
    pub(super) wanted: Vec<&'a Task>,
    pub(super) selection: &'w Selection,
    pub(super) running: Vec<TaskThread<'scope, 'a>>,
    pub(super) summary: Summary,
    /// Tasks that are not started again in this run.
    pub(super) excluded: BTreeSet<TaskId>,
    /// Why no more tasks are started.
    pub(super) stop: Option<Stop>,
    /// Tasks that are complete in their lanes and have not landed.
    pub(super) finished: Vec<FinishedTask>,
    /// Tasks that had landed when the run began. Tickets that a crash or a parked landing has left of them are closed, which is
    /// no landing of this run.
    pub(super) landed_before: Arc<HashSet<TaskId>>,
    /// Whether an earlier run left tickets or finished tasks, and no drain was started for them yet.
    pub(super) has_leftover_tickets: bool,
    /// The thread that drains the queue.
    pub(super) lander: Option<ScopedJoinHandle<'scope, ()>>,
    /// When something last landed.
    pub(super) landed_at: Option<Instant>,
    /// When finished tasks land, if they are waiting for more to land with them.
    pub(super) land_due_at: Option<Instant>,
    /// What is known about workers on other machines.
    pub(super) other_workers: OtherWorkers,
}

pub(super) enum Stop {
    /// A task failed, or this worker was asked to take no more tasks.
    NoMore,
    /// The run cannot continue.
    Error(GardenerError),
}

impl<'a, 'w> WorkState<'_, 'a, 'w> {
    /// The initial state.
    pub(super) fn new(wanted: Vec<&'a Task>, selection: &'w Selection) -> Self {
        Self {
            wanted,
            selection,
            running: Vec::new(),
            summary: Summary::default(),
            excluded: BTreeSet::new(),
            stop: None,
            finished: Vec::new(),
            landed_before: Arc::default(),
            has_leftover_tickets: false,
            lander: None,
            landed_at: None,
            land_due_at: None,
            other_workers: OtherWorkers::default(),
        }
    }
}

impl<'scope> WorkState<'scope, '_, '_> {
    /// Whether a task is worked on or the queue is drained.
    pub(super) fn has_threads(&self) -> bool {
        !self.running.is_empty() || self.lander.is_some()
    }

    /// The number of lanes in use. A finished task keeps its lane until it has landed.
    pub(super) fn lanes_in_use(&self) -> usize {
        self.running.len() + self.finished.iter().filter(|finished| finished.workplace.is_some()).count()
    }

    /// Lets finished tasks wait for more to land with them, if all jobs are taken and there is a lane for the next task.
    /// Returns whether they wait.
    pub(super) fn delay_landing(&mut self, jobs: usize, max_lanes: usize) -> bool {
        let is_needed = self.stop.is_some() || self.running.len() < jobs || self.lanes_in_use() >= max_lanes;
        let due =
            self.landed_at.map(|landed_at| landed_at + LOCAL_BATCH_DELAY).filter(|due| *due > Instant::now());
        self.land_due_at = due.filter(|_| !is_needed);
        self.land_due_at.is_some()
    }

    /// Takes the handle of a thread that has ended. Its report may still be in the channel.
    fn take_ended(&mut self) -> Option<ScopedJoinHandle<'scope, ()>> {
        if self.lander.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
            return self.lander.take();
        }
        let at = self.running.iter().position(|running| running.handle.is_finished())?;
        Some(self.running.swap_remove(at).handle)
    }

    /// Tells all other running tasks what one of them has spent.
    pub(super) fn share_spending(&mut self, event: &RunEvent) {
        let EventKind::Recorded { spent, .. } = event.kind else {
            return;
        };
        for running in &mut self.running {
            if Some(&running.task.id) == event.task.as_ref() {
                running.spent = running.spent + spent;
            } else {
                // Sending fails only if that thread is at its end.
                let _ = running.spending_sender.send(spent);
            }
        }
    }

    /// What running tasks have reported as spent.
    pub(super) fn spent(&self) -> Spent {
        self.running.iter().fold(Spent::default(), |sum, running| sum + running.spent)
    }

    /// Stops starting tasks. The first error is kept.
    pub(super) fn halt(&mut self, stop: Stop) {
        if !matches!(self.stop, Some(Stop::Error(_))) {
            self.stop = Some(stop);
        }
    }

    pub(super) fn halt_unless_kept_going(&mut self) {
        if !self.selection.keep_going {
            self.halt(Stop::NoMore);
        }
    }
}

/// A report of a thread.
pub(super) enum ThreadReport {
    News(RunEvent),
    Ended(Box<EndedJob>),
    Drained(Box<DrainReport>),
}

/// A job that has ended.
pub(super) struct EndedJob {
    pub(super) task: TaskId,
    /// Where it was worked on, which is free again.
    pub(super) workplace: Option<TaskCheckout>,
    /// Its worktrees in other repositories.
    pub(super) other_repos: Vec<OtherRepo>,
    /// The events that were recorded.
    pub(super) events: Vec<Event>,
    pub(super) result: Result<TaskEnd, GardenerError>,
}

/// The report of one drain.
pub(super) struct DrainReport(pub(super) Result<QueueReport, GardenerError>);

/// A task that is complete on its own branch and has not landed.
pub(super) struct FinishedTask {
    pub(super) task: TaskId,
    /// Whether another worker has finished it. Then its branch is here only to land.
    pub(super) is_adopted: bool,
    /// Its lane, if it was worked on in this call.
    pub(super) workplace: Option<TaskCheckout>,
    pub(super) source: Oid,
    pub(super) is_queued: bool,
    /// Why it waits, if the queue reported that.
    pub(super) why: Option<String>,
}

impl FinishedTask {
    pub(super) fn new(task: TaskId, workplace: TaskCheckout) -> Self {
        let source = workplace.tip.head;
        Self { task, is_adopted: false, source, workplace: Some(workplace), is_queued: false, why: None }
    }

    /// A task that another worker has finished.
    pub(super) fn adopted(task: TaskId, source: Oid) -> Self {
        Self { task, is_adopted: true, source, workplace: None, is_queued: false, why: None }
    }

    /// Whether it waits in the queue for its turn.
    pub(super) fn is_waiting(&self) -> bool {
        self.is_queued && self.why.is_none()
    }

    /// Describes a task whose landing had no result. `is_on_request` says that `merge.auto` is off, `stuck` has the
    /// tickets that do not wait for their turn, and `withheld` says why the policy lets nothing land.
    pub(super) fn into_unlanded(
        self,
        is_on_request: bool,
        stuck: &[Ticket],
        withheld: Option<&str>,
    ) -> Unlanded {
        let ticket = stuck.iter().find(|ticket| ticket.task == self.task);
        if let Some(unlanded) = ticket.and_then(explain_ticket) {
            return unlanded;
        }
        let is_aside = || ("it is set aside in the queue".to_owned(), LandingCommand::Status);
        let (why, command) = match (self.why, is_on_request) {
            (Some(why), _) => (why, LandingCommand::Status),
            (None, false) => withheld.map_or_else(is_aside, |why| (why.to_owned(), LandingCommand::Land)),
            (None, true) => ("it is queued, and merge.auto is off".to_owned(), LandingCommand::Run),
        };
        Unlanded { task: self.task, why, needs_person: false, command }
    }
}

/// Waits for a report. `None` means that it is time to land finished tasks, or to look at other workers. A thread that ended
/// without a report has panicked; the panic is resumed here.
pub(super) fn next_report(
    reports: &Receiver<ThreadReport>,
    state: &mut WorkState<'_, '_, '_>,
) -> Option<ThreadReport> {
    loop {
        let next = state.land_due_at.into_iter().chain(state.other_workers.next_look_at).min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        match reports.recv_timeout(left.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)) {
            Ok(report) => return Some(report),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if state.land_due_at.take_if(|due| *due <= Instant::now()).is_some()
            || state.other_workers.next_look_at.is_some_and(|at| at <= Instant::now())
        {
            return None;
        }
        let Some(handle) = state.take_ended() else {
            continue;
        };
        if let Err(panic) = handle.join() {
            std::panic::resume_unwind(panic);
        }
        if let Ok(report) = reports.try_recv() {
            return Some(report);
        }
    }
}
