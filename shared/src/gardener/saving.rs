//! While an agent works, what it has done so far is saved: after each of its turns, and now and then in between.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
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
    fn of(happening: &Happening) -> Option<Self> {
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

/// How many signs may wait. A turn that finds no room ends in the middle of others: a save is due already.
const WAITING: usize = 8;

/// Gives signs.
pub(super) struct Signals(SyncSender<Sign>);

impl Signals {
    /// Those who give signs, and those who see them.
    pub(super) fn new() -> (Self, Receiver<Sign>) {
        let (sender, receiver) = sync_channel(WAITING);
        (Self(sender), receiver)
    }

    /// Tells what has happened. An agent may end its turns faster than anybody can save.
    pub(super) fn give(&self, happening: &Happening) {
        match Sign::of(happening) {
            Some(Sign::Turned) => drop(self.0.try_send(Sign::Turned)),
            Some(sign) => drop(self.0.send(sign)),
            None => {}
        }
    }
}

/// The next sign; several turns are one.
fn next_sign(signs: &Receiver<Sign>, time: Duration) -> Result<Sign, RecvTimeoutError> {
    let mut sign = signs.recv_timeout(time)?;
    while sign == Sign::Turned {
        match signs.try_recv() {
            Ok(next) => sign = next,
            Err(_) => break,
        }
    }
    Ok(sign)
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
            match next_sign(signs, self.every) {
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
