//! While an agent works, what it has done so far is saved now and then: what it did in its turns is committed, but a turn can
//! be long, and not every agent tells of them.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    time::Duration,
};

use crate::{
    git::Repository,
    message::Status,
    name::{BranchName, TaskId},
    pipeline::Happening,
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
    fn of(happening: &Happening) -> Option<Self> {
        match happening {
            Happening::Begins { step: "implement", .. } => Some(Self::Begun),
            Happening::Recorded { status: Status::ImplementPass | Status::ImplementFail, .. } => {
                Some(Self::Written)
            }
            _ => None,
        }
    }
}

/// Gives signs.
pub(super) struct Signals(Sender<Sign>);

impl Signals {
    /// Those who give signs, and those who see them.
    pub(super) fn new() -> (Self, Receiver<Sign>) {
        let (sender, receiver) = channel();
        (Self(sender), receiver)
    }

    /// Tells what has happened.
    pub(super) fn give(&self, happening: &Happening) {
        if let Some(sign) = Sign::of(happening) {
            // Nobody listens only when the work is at its end.
            let _ = self.0.send(sign);
        }
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
    pub(super) fn go_on(&self, signs: &Receiver<Sign>) {
        let mut saver = None;
        let mut is_at_work = false;
        loop {
            match signs.recv_timeout(self.every) {
                Ok(Sign::Begun) => is_at_work = true,
                Ok(Sign::Written) => {
                    is_at_work = false;
                    if let Some(Err(_)) = saver.as_mut().map(Saver::clear) {
                        saver = None;
                    }
                }
                Err(RecvTimeoutError::Timeout) if is_at_work => self.save(&mut saver),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn save<'s>(&'s self, saver: &mut Option<Saver<'s>>) {
        if saver.is_none() {
            *saver = Saver::new(self.repository, self.run, self.task).ok();
        }
        if let Some(Err(_)) = saver.as_mut().map(Saver::save) {
            *saver = None;
        }
    }
}
