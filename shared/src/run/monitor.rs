//! Where the events of a run go: to its log, to its pushes and to the listener that shows them.

use super::{RunListener, pushes::RunPushes, run_log::RunLog};
use crate::event::{EventKind, RunEvent, RunOpening};

/// Forwards the events of a run, and collects what its end needs.
pub(super) struct RunMonitor<'l> {
    pub(super) listener: &'l mut dyn RunListener,
    pub(super) log: RunLog,
    pub(super) pushes: RunPushes,
}

impl<'l> RunMonitor<'l> {
    pub(super) fn new(listener: &'l mut dyn RunListener) -> Self {
        Self { listener, log: RunLog::default(), pushes: RunPushes::default() }
    }

    /// Reports that the run is open.
    pub(super) fn begin(&mut self, opening: RunOpening, now: i64) {
        let begins = EventKind::RunBegins(Box::new(opening.clone()));
        self.listener.report(RunEvent::of_run(begins));
        self.log.begin(opening, now);
    }

    /// Forwards an event.
    pub(super) fn report(&mut self, event: RunEvent) {
        self.log.handle_event(&event);
        self.pushes.handle_event(&event);
        self.listener.report(event);
        self.pushes.report(self.listener);
    }
}
