//! While an agent works, what it has done so far is saved now and then: what it did in its turns is committed, but a turn can
//! be long, and not every agent tells of them.

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

/// What the one who saves has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// An agent begins to work.
    Begun,
    /// What it did is written down.
    Written,
}

impl Sign {
    /// What follows from something that has happened.
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

/// Gives signs.
pub(super) struct Signals {
    sender: Sender<Sign>,
    /// The wish that the save under way stops, for the agent that is at work now.
    over: Arc<Mutex<Cancel>>,
}

/// Sees signs.
pub(super) struct SaveSignals {
    receiver: Receiver<Sign>,
    over: Arc<Mutex<Cancel>>,
}

impl SaveSignals {
    /// The wish that a save which begins now stops.
    fn cancel(&self) -> Cancel {
        self.over.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Signals {
    /// Those who give signs, and those who see them.
    pub(super) fn new() -> (Self, SaveSignals) {
        let (sender, receiver) = channel();
        let over = Arc::new(Mutex::new(Cancel::new()));
        (Self { sender, over: Arc::clone(&over) }, SaveSignals { receiver, over })
    }

    /// Tells what has happened.
    pub(super) fn give(&self, kind: &EventKind) {
        let Some(sign) = Sign::of(kind) else { return };
        match sign {
            Sign::Begun => *self.over.lock().unwrap_or_else(PoisonError::into_inner) = Cancel::new(),
            Sign::Written => self.stop_saving(),
        }
        // Nobody listens only when the work is at its end.
        let _ = self.sender.send(sign);
    }

    /// A save that hangs at what the agent has left must not hold up the run.
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
    /// Saves until nobody gives signs any more. What could not be saved now is saved the next time.
    pub(super) fn go_on(&self, signs: &SaveSignals) {
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
