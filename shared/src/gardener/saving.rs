//! While an agent works, what it has done so far is saved: after each of its turns, and now and then in between.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError},
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
    /// It has ended a turn.
    Turned,
    /// What it did is written down.
    Written,
}

impl Sign {
    /// What follows from something that has happened.
    pub(super) fn of(happening: &Happening) -> Option<Self> {
        match happening {
            Happening::Begins { step: "implement", .. } => Some(Self::Begun),
            Happening::Turned => Some(Self::Turned),
            Happening::Recorded { status: Status::ImplementPass | Status::ImplementFail, .. } => {
                Some(Self::Written)
            }
            _ => None,
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
                Ok(Sign::Turned) | Err(RecvTimeoutError::Timeout) if is_at_work => self.save(&mut saver),
                Ok(Sign::Turned) | Err(RecvTimeoutError::Timeout) => {}
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
