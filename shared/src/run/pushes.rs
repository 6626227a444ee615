//! Pushes of a run: they are made beside it, and it hears of them now and then.

use std::{collections::BTreeSet, time::Duration};

use super::RunListener;
use crate::{
    event::{EventKind, RunEvent},
    git::shown_url,
    message::visible,
    process::Cancel,
    workspace::{Close, Notice, PushResult, Pusher},
};

/// How long a run that was asked to stop waits for its pushes.
const HURRY: Duration = Duration::from_secs(10);

/// What is pushed of a run, and what could not be.
#[derive(Debug, Default)]
pub(super) struct RunPushes {
    pusher: Option<Pusher>,
    /// The repositories whose last push failed.
    pub(super) unpushed: BTreeSet<String>,
}

impl RunPushes {
    pub(super) fn start(&mut self, pusher: Option<Pusher>) {
        self.pusher = pusher;
    }

    /// A commit is a reason to push.
    pub(super) fn hear(&self, event: &RunEvent) {
        let is_commit = matches!(event.kind, EventKind::Recorded { .. } | EventKind::TurnCommitted { .. });
        if let (true, Some(pusher)) = (is_commit, &self.pusher) {
            pusher.checkpoint();
        }
    }

    /// Tells what became of pushes since the last time.
    pub(super) fn tell(&mut self, listener: &mut dyn RunListener) {
        let notices = self.pusher.as_ref().map(Pusher::notices).unwrap_or_default();
        notices.iter().for_each(|notice| self.tell_notice(notice, listener));
    }

    /// The run is over: what is to be pushed then is pushed, and waited for. Returns whether the user cut that short.
    pub(super) fn close(&mut self, close: Close, cancel: &Cancel, listener: &mut dyn RunListener) -> bool {
        let Some(pusher) = self.pusher.take() else { return false };
        let was_stopped = cancel.is_cancelled();
        let notices = pusher.close(close, (cancel, HURRY));
        notices.iter().for_each(|notice| self.tell_notice(notice, listener));
        !was_stopped && cancel.is_cancelled() && !self.unpushed.is_empty()
    }

    fn tell_notice(&mut self, notice: &Notice, listener: &mut dyn RunListener) {
        match &notice.result {
            Ok(result) => self.tell_result(notice, result, listener),
            Err(why) => {
                self.tell_failure(notice, why.clone(), listener);
                listener.hint_once(notice.hint);
            }
        }
    }

    fn tell_result(&mut self, notice: &Notice, result: &PushResult, listener: &mut dyn RunListener) {
        let (repo, remote) = (notice.repo.clone(), shown_url(&result.remote));
        self.unpushed.remove(repo.as_str());
        let refs: Vec<String> = result.pushed.iter().map(|push| push.name.clone()).collect();
        if !refs.is_empty() {
            listener.tell(RunEvent::of_run(EventKind::Pushed { repo, remote, refs }));
        }
        for row in &result.refused {
            let why = row.refused.clone().unwrap_or_default();
            let words = format!("{} was refused: {}", visible(&row.name), row.reason());
            if !notice.known.contains(&(row.name.clone(), why)) {
                self.tell_failure(notice, words, listener);
            }
            self.unpushed.insert(notice.repo.to_string());
        }
    }

    fn tell_failure(&mut self, notice: &Notice, why: String, listener: &mut dyn RunListener) {
        let repo = notice.repo.clone();
        self.unpushed.insert(repo.to_string());
        listener.tell(RunEvent::of_run(EventKind::PushFailed { repo, why }));
    }
}
