//! Instead of a resolution: the task begins anew on what has landed meanwhile. What it did is saved, and its branch goes.

use super::GitQueue;
use crate::{
    git::RefMove,
    queue::{LogEntry, QueueError, Resolution, Ticket, store::OutcomeWritten},
};

/// So much of what became of tickets is looked through.
const LONGEST_LOG: usize = 1000;

impl GitQueue<'_> {
    /// Takes a ticket out of the queue so that its task is done anew, but not more often than a conflict is resolved.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Result<Resolution, QueueError> {
        let branch = ticket.scope.task_branch(&ticket.task);
        if self.times_withdrawn(&ticket)? >= self.options.resolve_attempts as usize {
            return Ok(Resolution::Left(Box::new(ticket)));
        }
        if !self.repository.checkouts_of(&branch)?.is_empty() {
            // A lane in which nobody is at work is left for others. Whoever else has it may still want it.
            let _ = self.pool()?.recycle(&ticket.task);
            if !self.repository.checkouts_of(&branch)?.is_empty() {
                return Ok(Resolution::Left(Box::new(ticket)));
            }
        }
        let (name, tip) = (branch.to_ref(), ticket.source);
        self.save(&ticket, tip)?;
        let delete = RefMove { name: &name, new: None, old: Some(tip) };
        self.repository.move_refs(&[delete], "arborist: to be done anew")?;
        let entry = LogEntry::new(&ticket, "withdrawn", None, (self.options.clock)());
        let closed = self.stored.remove(&ticket.task);
        self.store.log(self.into, &[entry], closed.as_slice(), OutcomeWritten::New)?;
        self.forget();
        Ok(Resolution::Withdrawn)
    }

    fn times_withdrawn(&self, ticket: &Ticket) -> Result<usize, QueueError> {
        let log = self.store.load_log(self.into, LONGEST_LOG)?;
        let own = log.iter().filter(|entry| (&entry.scope, &entry.task) == (&ticket.scope, &ticket.task));
        let since = own.take_while(|entry| entry.outcome != "landed");
        Ok(since.filter(|entry| entry.outcome == "withdrawn").count())
    }
}
