//! The tasks that landed while another one was worked on: only these can be why it fails a gate on the target and passes it
//! on its own branch.

use super::GitQueue;
use crate::{
    git::RawCommit,
    history::Event,
    message::Status,
    queue::{EarlierLanding, QueueBackend, QueueError, Ticket},
};

/// How many of the newest landings are compared.
const MAX_LANDINGS: usize = 64;

impl GitQueue<'_> {
    /// The landings on the target that the source of a ticket does not contain, oldest first.
    pub(super) fn find_landings_since(&mut self, ticket: &Ticket) -> Result<Vec<EarlierLanding>, QueueError> {
        let tip = self.tip()?;
        let line = ["--first-parent".into(), tip.to_string(), format!("^{}", ticket.source)];
        let mut found = Vec::new();
        for commit in self.repository.stream_commits(&line)? {
            found.extend(self.earlier_landing(&commit?).filter(|found| !ticket.needs.contains(&found.task)));
            if found.len() == MAX_LANDINGS {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    fn earlier_landing(&self, commit: &RawCommit) -> Option<EarlierLanding> {
        let event = Event::of(commit).filter(|event| event.branch() == self.scope)?;
        let task = event.task().filter(|_| event.status() == Status::Merge)?.clone();
        Some(EarlierLanding { task, before: commit.parents().next()? })
    }
}
