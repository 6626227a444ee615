//! Which tests may fail in a landing: those that failed before the run, and those that a task which has landed, or
//! lands with it, wrote to fail until later tasks make them pass.

use std::collections::HashSet;

use super::GitQueue;
use crate::{
    history::{Run, State},
    message::Status,
    name::{Oid, TaskId},
    pipeline::{KnownRed, TO_BE_MENDED},
    queue::{QueueError, Ticket},
};

impl GitQueue<'_> {
    /// The tests that are known to fail once a ticket is merged onto this commit.
    pub(super) fn known_red(&self, ticket: &Ticket, onto: Oid) -> Result<KnownRed, QueueError> {
        let Some(run) = self.history() else { return Ok(KnownRed::default()) };
        let mut known = KnownRed::before_run(self.repository, run)?;
        let mut there = self.stacked_below(onto);
        there.insert(&ticket.task);
        let is_there = |task: &TaskId| there.contains(task) || has_landed(run, task);
        for (red, menders) in &self.options.tests_first {
            let is_open = menders.is_empty() || !menders.iter().all(is_there);
            let own = to_be_mended(run, red).filter(|_| is_there(red) && is_open);
            known = own.map_or(known.clone(), |own| known.join(&own));
        }
        Ok(known)
    }

    /// The tasks of the merges below a commit that have not landed yet.
    fn stacked_below(&self, onto: Oid) -> HashSet<&TaskId> {
        let mut tasks = HashSet::new();
        let mut next = onto;
        while let Some((below, task)) = self.stacked.get(&next) {
            tasks.insert(task);
            next = *below;
        }
        tasks
    }
}

fn has_landed(run: &Run, task: &TaskId) -> bool {
    run.find(task).is_some_and(|history| history.is_landed && history.state.state == State::Complete)
}

/// The tests that a task wrote to fail, as recorded in its test commit.
fn to_be_mended(run: &Run, red: &TaskId) -> Option<KnownRed> {
    let passed = run.find(red)?.events.iter().rfind(|event| event.status() == Status::TestPass)?;
    KnownRed::read(&passed.body(), TO_BE_MENDED)
}
