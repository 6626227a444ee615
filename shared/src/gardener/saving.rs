//! Saves an agent's uncommitted work periodically. The changes of each turn are committed, but a turn can be long, and
//! not every agent reports turns.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

use crate::{
    event::EventKind,
    git::Repository,
    message::Status,
    name::{BranchName, TaskId},
    process::Cancel,
    worktree::Saver,
};

/// A message to the thread that saves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// An agent starts to work.
    Begun,
    /// Its work has been recorded.
    Written,
}

impl Sign {
    /// The message for an event, if there is one.
    fn of(kind: &EventKind) -> Option<Self> {
        match kind {
            EventKind::StepBegins { step: "implement", .. } => Some(Self::Begun),
            EventKind::Recorded { status: Status::ImplementPass | Status::ImplementFail, .. } => {
                Some(Self::Written)
            }
            _ => None,
        }
    }
}

/// The sending side.
pub(super) struct Signals {
    sender: Sender<Sign>,
    /// Cancels the save in progress. Replaced for each agent.
    over: Arc<Mutex<Cancel>>,
}

/// The receiving side.
pub(super) struct SaveSignals {
    receiver: Receiver<Sign>,
    over: Arc<Mutex<Cancel>>,
}

impl SaveSignals {
    /// Cancels a save that starts now.
    fn cancel(&self) -> Cancel {
        self.over.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Signals {
    /// Creates both sides.
    pub(super) fn new() -> (Self, SaveSignals) {
        let (sender, receiver) = channel();
        let over = Arc::new(Mutex::new(Cancel::new()));
        (Self { sender, over: Arc::clone(&over) }, SaveSignals { receiver, over })
    }

    /// Sends the message for an event.
    pub(super) fn give(&self, kind: &EventKind) {
        let Some(sign) = Sign::of(kind) else { return };
        match sign {
            Sign::Begun => *self.over.lock().unwrap_or_else(PoisonError::into_inner) = Cancel::new(),
            Sign::Written => self.stop_saving(),
        }
        // Sending fails only when the work is at its end.
        let _ = self.sender.send(sign);
    }

    /// A save that hangs on something that the agent left must not delay the run.
    fn stop_saving(&self) {
        self.over.lock().unwrap_or_else(PoisonError::into_inner).cancel();
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.stop_saving();
    }
}

/// Whose work is saved, and how often.
pub(super) struct Saving<'a> {
    pub(super) repository: &'a Repository,
    pub(super) run: &'a BranchName,
    pub(super) task: &'a TaskId,
    pub(super) every: Duration,
}

impl Saving<'_> {
    /// Saves until the sender is gone. A failed save is retried the next time.
    pub(super) fn run(&self, signs: &SaveSignals) {
        let mut saver = None;
        let mut is_at_work = false;
        loop {
            match signs.receiver.recv_timeout(self.every) {
                Ok(Sign::Begun) => is_at_work = true,
                Ok(Sign::Written) => {
                    is_at_work = false;
                    if let Some(Err(_)) = saver.as_mut().map(Saver::clear) {
                        saver = None;
                    }
                }
                Err(RecvTimeoutError::Timeout) if is_at_work => self.save(&mut saver, &signs.cancel()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn save<'s>(&'s self, saver: &mut Option<Saver<'s>>, cancel: &Cancel) {
        if saver.is_none() {
            *saver = Saver::new(self.repository, self.run, self.task).ok();
        }
        if let Some(Err(_)) = saver.as_mut().map(|saver| saver.save(cancel)) {
            *saver = None;
        }
    }
}
