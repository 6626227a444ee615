//! The state of a run while workers are at work: the running tasks, the finished ones, and why no more are started.

use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use super::{GardenerError, KeepGoing, Selection, Summary, share::Shared, worker::WorkerReport};
use crate::{
    agent::limits::Spent,
    event::{EventKind, RunEvent},
    gardener::land::CompletedTask,
    name::TaskId,
    plan::Task,
};

/// How often to check for a worker that ended without a report.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// After a landing, the next one waits this long for other tasks to join it, unless a worker is waiting.
const BATCH_DELAY: Duration = Duration::from_millis(300);

/// A worker at work.
pub(super) struct RunningWorker<'scope, 'a> {
    pub(super) task: &'a Task,
    pub(super) handle: ScopedJoinHandle<'scope, ()>,
    /// What it has reported as spent. History has it when the worker ends.
    pub(super) spent: Spent,
    /// Receives what other workers have spent.
    pub(super) others: Sender<Spent>,
}

/// The state of a run while workers are at work.
pub(super) struct RunProgress<'scope, 'a, 'w> {
    pub(super) wanted: Vec<&'a Task>,
    pub(super) selection: &'w Selection,
    pub(super) running: Vec<RunningWorker<'scope, 'a>>,
    pub(super) summary: Summary,
    /// Tasks that are not started again in this run.
    pub(super) ended: BTreeSet<TaskId>,
    /// Why no more tasks are started.
    pub(super) stop: Option<Stop>,
    /// Tasks that are complete in their lanes and have not landed.
    pub(super) finished: Vec<CompletedTask>,
    /// Whether the queue has been drained since it last changed.
    pub(super) is_drained: bool,
    /// The thread that drains the queue.
    pub(super) lander: Option<ScopedJoinHandle<'scope, ()>>,
    /// When something last landed.
    pub(super) landed: Option<Instant>,
    /// When finished tasks land, if they are waiting for others.
    pub(super) due: Option<Instant>,
    /// What is known about other workers.
    pub(super) shared: Shared,
}

pub(super) enum Stop {
    /// A task failed, or this worker was asked to take no more tasks.
    NoMore,
    /// The run cannot continue.
    Error(GardenerError),
}

impl<'a, 'w> RunProgress<'_, 'a, 'w> {
    /// The initial state.
    pub(super) fn new(wanted: Vec<&'a Task>, selection: &'w Selection) -> Self {
        Self {
            wanted,
            selection,
            running: Vec::new(),
            summary: Summary::default(),
            ended: BTreeSet::new(),
            stop: None,
            finished: Vec::new(),
            is_drained: true,
            lander: None,
            landed: None,
            due: None,
            shared: Shared::default(),
        }
    }
}

impl<'scope> RunProgress<'scope, '_, '_> {
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.lander.is_none()
    }

    /// The number of lanes in use. A finished task keeps its lane until it has landed.
    pub(super) fn lanes(&self) -> usize {
        self.running.len() + self.finished.iter().filter(|finished| finished.site.is_some()).count()
    }

    /// Whether finished tasks can wait for more to land with them: every worker is busy, and there is a lane for the
    /// next one. Sets `due`.
    pub(super) fn can_wait(&mut self, (jobs, lanes): (usize, usize)) -> bool {
        let is_needed = self.stop.is_some() || self.running.len() < jobs || self.lanes() >= lanes;
        let due = self.landed.map(|landed| landed + BATCH_DELAY).filter(|due| *due > Instant::now());
        self.due = due.filter(|_| !is_needed);
        self.due.is_some()
    }

    /// Takes the handle of a thread that has ended. Its report may still be in the channel.
    fn take_ended(&mut self) -> Option<ScopedJoinHandle<'scope, ()>> {
        if self.lander.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
            return self.lander.take();
        }
        let at = self.running.iter().position(|running| running.handle.is_finished())?;
        Some(self.running.swap_remove(at).handle)
    }

    /// Tells all other workers what one of them has spent.
    pub(super) fn pass_on(&mut self, event: &RunEvent) {
        let EventKind::Recorded { spent, .. } = event.kind else {
            return;
        };
        for running in &mut self.running {
            if Some(&running.task.id) == event.task.as_ref() {
                running.spent = running.spent + spent;
            } else {
                // Sending fails only if that worker is at its end.
                let _ = running.others.send(spent);
            }
        }
    }

    /// What running workers have reported as spent.
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
        if self.selection.keeps_going == KeepGoing::No {
            self.halt(Stop::NoMore);
        }
    }
}

/// Waits for a report, or until finished tasks are due to land. A worker that ended without a report has panicked; the
/// panic is resumed here.
pub(super) fn next_report(
    reports: &Receiver<WorkerReport>,
    course: &mut RunProgress<'_, '_, '_>,
) -> Option<WorkerReport> {
    loop {
        let next = course.due.into_iter().chain(course.shared.look_at).min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()));
        match reports.recv_timeout(left.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL)) {
            Ok(report) => return Some(report),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if course.due.take_if(|due| *due <= Instant::now()).is_some()
            || course.shared.look_at.is_some_and(|at| at <= Instant::now())
        {
            return None;
        }
        let Some(handle) = course.take_ended() else {
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
