//! Which tests may fail in a landing: those that failed before the run, and those that a task which has landed, or
//! lands with it, wrote to fail until later tasks make them pass.

use std::collections::HashSet;

use super::GitQueue;
use crate::{
    name::{Oid, TaskId},
    pipeline::KnownRed,
    queue::{QueueError, Ticket},
};

impl GitQueue<'_> {
    /// The tests that are known to fail once a ticket is merged onto this commit.
    pub(super) fn known_red(&self, ticket: &Ticket, onto: Oid) -> Result<KnownRed, QueueError> {
        let Some(run) = self.history() else { return Ok(KnownRed::default()) };
        let mut known = KnownRed::before_run(self.repository, run)?;
        let mut there = self.stacked_below(onto);
        there.insert(&ticket.task);
        let is_there = |task: &TaskId| there.contains(task) || run.has_landed(task);
        for (red, menders) in &self.options.tests_first {
            let is_open = menders.is_empty() || !menders.iter().all(is_there);
            let own = KnownRed::of_task(run, red).filter(|_| is_there(red) && is_open);
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
