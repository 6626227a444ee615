//! The pushes of a run. They happen in background threads; their results are reported between events of the run.

use std::{collections::BTreeSet, time::Duration};

use super::RunListener;
use crate::{
    event::{EventKind, RunEvent},
    git::shown_url,
    message::visible,
    process::Cancel,
    workspace::{PushReport, PushResult, Pusher, RunEnd},
};

/// How long a run that was asked to stop waits for its pushes.
const GRACE: Duration = Duration::from_secs(10);

/// The pusher of a run, and what it could not push.
#[derive(Debug, Default)]
pub(super) struct RunPushes {
    /// `None` if nothing is pushed, or not yet.
    pub(super) pusher: Option<Pusher>,
    /// The repositories whose last push failed.
    pub(super) unpushed: BTreeSet<String>,
}

impl RunPushes {
    /// Triggers a push if the event is a commit.
    pub(super) fn handle_event(&self, event: &RunEvent) {
        let is_commit = matches!(event.kind, EventKind::Recorded { .. } | EventKind::TurnCommitted { .. });
        if let (true, Some(pusher)) = (is_commit, &self.pusher) {
            pusher.note_commit();
        }
    }

    /// Reports the pushes that have ended since the last call.
    pub(super) fn report(&mut self, listener: &mut dyn RunListener) {
        let reports = self.pusher.as_ref().map(Pusher::take_reports).unwrap_or_default();
        reports.iter().for_each(|report| self.report_push(report, listener));
    }

    /// Makes the last pushes and waits for them. Returns whether the user interrupted that.
    pub(super) fn close(&mut self, end: RunEnd, cancel: &Cancel, listener: &mut dyn RunListener) -> bool {
        let Some(pusher) = self.pusher.take() else { return false };
        let was_stopped = cancel.is_cancelled();
        let reports = pusher.close(end, cancel, GRACE);
        reports.iter().for_each(|report| self.report_push(report, listener));
        !was_stopped && cancel.is_cancelled() && !self.unpushed.is_empty()
    }

    fn report_push(&mut self, report: &PushReport, listener: &mut dyn RunListener) {
        match &report.result {
            Ok(result) => self.report_result(report, result, listener),
            Err(why) => {
                self.report_failure(report, why.clone(), listener);
                listener.hint_once(report.hint);
            }
        }
    }

    fn report_result(&mut self, report: &PushReport, result: &PushResult, listener: &mut dyn RunListener) {
        let (repo, remote) = (report.repo.clone(), shown_url(&result.remote));
        self.unpushed.remove(repo.as_str());
        let refs: Vec<String> = result.pushed.iter().map(|push| push.name.clone()).collect();
        if !refs.is_empty() {
            listener.report(RunEvent::of_run(EventKind::Pushed { repo, remote, refs }));
        }
        for row in &result.refused {
            let why = row.refused.clone().unwrap_or_default();
            let words = format!("{} was refused: {}", visible(&row.name), row.reason());
            if !report.known.contains(&(row.name.clone(), why)) {
                self.report_failure(report, words, listener);
            }
            self.unpushed.insert(report.repo.to_string());
        }
    }

    fn report_failure(&mut self, report: &PushReport, why: String, listener: &mut dyn RunListener) {
        let repo = report.repo.clone();
        self.unpushed.insert(repo.to_string());
        listener.report(RunEvent::of_run(EventKind::PushFailed { repo, why }));
    }
}
