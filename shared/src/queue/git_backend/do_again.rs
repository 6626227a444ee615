//! Withdraws a ticket instead of resolving its conflict: the task is done again on top of what has landed meanwhile. Its
//! work is saved, and its branch deleted.

use super::GitQueue;
use crate::{
    git::RefMove,
    queue::{LogEntry, LoggedOutcome, QueueError, Resolution, Ticket, store::OutcomeWritten},
};

/// How many entries of the log are searched.
const MAX_LOG_ENTRIES: usize = 1000;

impl GitQueue<'_> {
    /// Withdraws a ticket, but not more often than a conflict may be resolved.
    pub(super) fn withdraw(&mut self, ticket: Ticket) -> Result<Resolution, QueueError> {
        let branch = ticket.scope.task_branch(&ticket.task);
        if self.times_withdrawn(&ticket)? >= self.options.merge.resolve_attempts as usize {
            return Ok(Resolution::Left(Box::new(ticket)));
        }
        if !self.repository.checkouts_of(&branch)?.is_empty() {
            // An idle lane is given to others. If anything else has the branch checked out, it may still be needed.
            let _ = self.pool()?.recycle(&ticket.task);
            if !self.repository.checkouts_of(&branch)?.is_empty() {
                return Ok(Resolution::Left(Box::new(ticket)));
            }
        }
        let (name, tip) = (branch.to_ref(), ticket.source);
        self.save(&ticket, tip)?;
        let delete = RefMove { name: &name, new: None, old: Some(tip) };
        self.repository.move_refs(&[delete], "arborist: to be done again")?;
        let entry = LogEntry::new(&ticket, LoggedOutcome::Withdrawn, None, (self.options.clock)());
        let closed = self.stored.remove(&ticket.task);
        self.store.log(self.into, &[entry], closed.as_slice(), OutcomeWritten::New)?;
        self.forget_view();
        Ok(Resolution::Withdrawn)
    }

    fn times_withdrawn(&self, ticket: &Ticket) -> Result<usize, QueueError> {
        let log = self.store.load_log(self.into, MAX_LOG_ENTRIES)?;
        let own = log.iter().filter(|entry| (&entry.scope, &entry.task) == (&ticket.scope, &ticket.task));
        let since = own.take_while(|entry| entry.outcome != LoggedOutcome::Landed);
        Ok(since.filter(|entry| entry.outcome == LoggedOutcome::Withdrawn).count())
    }
}
