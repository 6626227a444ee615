//! The course of a run while workers are at work: who runs, what is finished, and why nothing more is taken up.

use std::{
    collections::BTreeSet,
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    thread::ScopedJoinHandle,
    time::{Duration, Instant},
};

use super::{GardenerError, KeepGoing, Selection, Summary, worker::WorkerReport};
use crate::{
    agent::limits::Spent,
    event::{EventKind, RunEvent},
    gardener::land::CompletedTask,
    name::TaskId,
    plan::Task,
};

/// How often a worker is looked after that says nothing.
const PULSE: Duration = Duration::from_secs(1);
/// So soon after a landing the next one waits for others to join it, as long as nobody waits for it.
const COMPANY: Duration = Duration::from_millis(300);

/// A worker at work.
pub(super) struct RunningWorker<'scope, 'a> {
    pub(super) task: &'a Task,
    pub(super) handle: ScopedJoinHandle<'scope, ()>,
    /// What it has told of its expenses; history has that when it ends.
    pub(super) spent: Spent,
    /// Where it hears what others have spent.
    pub(super) others: Sender<Spent>,
}

/// What becomes of a run while workers are at work.
pub(super) struct RunProgress<'scope, 'a, 'w> {
    pub(super) wanted: Vec<&'a Task>,
    pub(super) wish: &'w Selection,
    pub(super) running: Vec<RunningWorker<'scope, 'a>>,
    pub(super) summary: Summary,
    /// Tasks that have had their turn.
    pub(super) ended: BTreeSet<TaskId>,
    /// Why nothing more is taken up.
    pub(super) stop: Option<Stop>,
    /// Tasks that are complete in their lanes, and not on the run's branch.
    pub(super) finished: Vec<CompletedTask>,
    /// Whether somebody has looked at the queue since it last changed.
    pub(super) is_drained: bool,
    /// The one who lands them, if somebody is at it.
    pub(super) lander: Option<ScopedJoinHandle<'scope, ()>>,
    /// When something last landed.
    pub(super) landed: Option<Instant>,
    /// When what is finished lands, if that is to wait.
    pub(super) due: Option<Instant>,
}

pub(super) enum Stop {
    /// A task failed.
    Failure,
    /// The run cannot go on.
    Error(GardenerError),
}

impl<'a, 'w> RunProgress<'_, 'a, 'w> {
    /// Nothing has happened yet.
    pub(super) fn new(wanted: Vec<&'a Task>, wish: &'w Selection) -> Self {
        Self {
            wanted,
            wish,
            running: Vec::new(),
            summary: Summary::default(),
            ended: BTreeSet::new(),
            stop: None,
            finished: Vec::new(),
            is_drained: true,
            lander: None,
            landed: None,
            due: None,
        }
    }
}

impl<'scope> RunProgress<'scope, '_, '_> {
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.lander.is_none()
    }

    /// How many lanes are in use: what is finished keeps its own until it has landed.
    pub(super) fn lanes(&self) -> usize {
        self.running.len() + self.finished.iter().filter(|finished| finished.site.is_some()).count()
    }

    /// Whether what is finished can wait for more: every worker is busy, and there is a lane for the next one. Then `due`
    /// says how long.
    pub(super) fn can_wait(&mut self, (jobs, lanes): (usize, usize)) -> bool {
        let is_needed = self.stop.is_some() || self.running.len() < jobs || self.lanes() >= lanes;
        let due = self.landed.map(|landed| landed + COMPANY).filter(|due| *due > Instant::now());
        self.due = due.filter(|_| !is_needed);
        self.due.is_some()
    }

    /// A thread that has ended, whose report may be there or not.
    fn take_ended(&mut self) -> Option<ScopedJoinHandle<'scope, ()>> {
        if self.lander.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
            return self.lander.take();
        }
        let at = self.running.iter().position(|running| running.handle.is_finished())?;
        Some(self.running.swap_remove(at).handle)
    }

    /// Tells all others who are at work what one of them has spent.
    pub(super) fn pass_on(&mut self, event: &RunEvent) {
        let EventKind::Recorded { spent, .. } = event.kind else {
            return;
        };
        for running in &mut self.running {
            if Some(&running.task.id) == event.task.as_ref() {
                running.spent = running.spent + spent;
            } else {
                // One who does not listen any more is at its end.
                let _ = running.others.send(spent);
            }
        }
    }

    /// What those who are at work have told of their expenses.
    pub(super) fn spent(&self) -> Spent {
        self.running.iter().fold(Spent::default(), |sum, running| sum + running.spent)
    }

    /// Nothing more is taken up. The first reason counts, but an error counts for more than a failure.
    pub(super) fn halt(&mut self, stop: Stop) {
        if !matches!(self.stop, Some(Stop::Error(_))) {
            self.stop = Some(stop);
        }
    }

    pub(super) fn halt_unless_kept_going(&mut self) {
        if self.wish.keeps_going == KeepGoing::No {
            self.halt(Stop::Failure);
        }
    }
}

/// Waits for a report, or until something is due to land. A worker that ended without a report has panicked, and so do we.
pub(super) fn next_report(
    reports: &Receiver<WorkerReport>,
    course: &mut RunProgress<'_, '_, '_>,
) -> Option<WorkerReport> {
    loop {
        let left = course.due.map(|due| due.saturating_duration_since(Instant::now()));
        match reports.recv_timeout(left.unwrap_or(PULSE).min(PULSE)) {
            Ok(report) => return Some(report),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        if course.due.take_if(|due| *due <= Instant::now()).is_some() {
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
