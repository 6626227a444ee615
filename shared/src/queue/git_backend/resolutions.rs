//! Which resolutions may land: those that this process has accepted, and others only after checks and a review.

use super::{
    GitQueue,
    rejection::{Rejection, reject},
    resolution_review::Resolved,
    resolve_by_agent::{AgentWork, ResolverCalls},
    resolve_by_person::place_of,
};
use crate::{
    name::Oid,
    queue::{QueueError, QueueEvent, Ticket},
};

impl GitQueue<'_> {
    /// Removes a resolution from a ticket if it cannot be trusted. A ticket is a ref, and agents can write refs. So the
    /// commit must join the source with a commit of the target, may differ from git's own merge only in conflicting
    /// files, and is reviewed.
    pub(super) fn discard_untrusted_resolution(
        &mut self,
        ticket: Ticket,
        tip: Oid,
    ) -> Result<Ticket, QueueError> {
        let Some(commit) = ticket.resolved.filter(|commit| !self.options.memory.resolutions.has(commit))
        else {
            return Ok(ticket);
        };
        let why = match self.check_known_only_from(&ticket, commit, tip) {
            Ok(()) => return Ok(ticket),
            Err(rejection) => rejection.reason()?,
        };
        let under = self.save(&ticket, commit)?;
        let words = format!(
            "the resolution {} that the queue has for '{}' is not used: {why}; it is kept as {under}",
            commit.short(),
            ticket.task
        );
        (self.on_event)(QueueEvent::note(words));
        Ok(Ticket { resolved: None, resolved_by: None, has_persons_work: false, ..ticket })
    }

    /// Checks and reviews a resolution that only a ticket names.
    fn check_known_only_from(&mut self, ticket: &Ticket, commit: Oid, tip: Oid) -> Result<(), Rejection> {
        let repository = self.repository;
        let found = repository.load_commits(&[commit])?;
        let parents: Vec<Oid> = found.first().map(|raw| raw.parents().collect()).unwrap_or_default();
        let [onto, source] = parents[..] else {
            return reject("it is not a merge of two commits");
        };
        if source != ticket.source || !repository.is_ancestor(onto, tip)? {
            return reject(format!("it does not merge the task with '{}'", ticket.into));
        }
        let tree = repository.tree_of(commit)?;
        let merged = self.check_resolution(onto, source, tree)?;
        self.review_unknown(&Resolved { ticket, commit, merged })
    }

    /// Reviews a resolution that this process has not accepted before. That the ticket says a person made it proves
    /// nothing; a person's own resolution lands in the process that takes it.
    pub(super) fn review_unknown(&mut self, resolved: &Resolved<'_>) -> Result<(), Rejection> {
        let Some(resolver) = &self.options.resolver else {
            return reject("no reviewer can be called here, and this command did not make it");
        };
        let base = self.repository.tree_of(resolved.ticket.source)?;
        if !self.repository.is_proven(base, self.repository.tree_of(resolved.commit)?)? {
            return reject("other content is stored under the object id of a file");
        }
        let pool = self.pool()?;
        let place = place_of("agent", &resolved.ticket.task);
        let Some(scratch) = pool.take_scratch(&place, resolved.commit)? else {
            return reject("the worktree for its review is in use");
        };
        let mut work = AgentWork { resolver, calls: &mut ResolverCalls::new(), pool, scratch };
        let approval = self.review_resolution(&mut work, resolved);
        work.end(approval)?;
        self.options.memory.resolutions.add(resolved.commit);
        Ok(())
    }
}
