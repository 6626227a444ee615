//! Which resolutions of conflicts may land: those that this process has taken, and of others only what can be checked.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use super::Yard;
use crate::{
    git::{Change, Merge},
    name::Oid,
    queue::{News, QueueError, Ticket},
};

/// The resolutions that this process has taken from a resolver or from a person.
#[derive(Debug, Default)]
pub struct Resolutions(Mutex<HashSet<Oid>>);

impl Resolutions {
    pub(super) fn add(&self, commit: Oid) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(commit);
    }

    fn has(&self, commit: Oid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&commit)
    }
}

impl Yard<'_> {
    /// The same ticket without a resolution that cannot be one. A ticket is a ref, and agents can write refs: a commit that
    /// a ticket calls a resolution must join the source with a commit of the target, and may differ from what git makes of
    /// the two only in files that conflict.
    pub(super) fn without_false_resolution(
        &mut self,
        ticket: Ticket,
        tip: Oid,
    ) -> Result<Ticket, QueueError> {
        let Some(commit) = ticket.resolved.filter(|commit| !self.options.resolutions.has(*commit)) else {
            return Ok(ticket);
        };
        let Some(why) = self.fault_of_resolution(&ticket, commit, tip)? else {
            return Ok(ticket);
        };
        let under = self.save(&ticket, commit)?;
        let words = format!(
            "the resolution {} that the queue has for '{}' is not used: {why}; it is kept as {under}",
            commit.short(),
            ticket.task
        );
        (self.voice)(News::Note { words });
        Ok(Ticket { resolved: None, resolved_by: None, ..ticket })
    }

    fn fault_of_resolution(
        &self,
        ticket: &Ticket,
        commit: Oid,
        tip: Oid,
    ) -> Result<Option<String>, QueueError> {
        let repository = self.repository;
        let found = repository.load_commits(&[commit])?;
        let parents: Vec<Oid> = found.first().map(|raw| raw.parents().collect()).unwrap_or_default();
        let [onto, source] = parents[..] else {
            return Ok(Some("it is not a merge of two commits".into()));
        };
        if source != ticket.source || !repository.is_ancestor(onto, tip)? {
            return Ok(Some(format!("it does not join the task with '{}'", ticket.into)));
        }
        let (tree, conflicts) = match repository.merge(onto, source)? {
            Merge::Clean(tree) => (tree, Vec::new()),
            Merge::Conflicted(tree, conflicts) => (tree, conflicts),
        };
        let changes = repository.changes(tree, repository.tree_of(commit)?)?;
        let is_in_conflict = |path: &String| conflicts.iter().any(|conflict| conflict.is_about(path));
        let other = changes.iter().map(Change::shown).find(|path| !is_in_conflict(path));
        Ok(other.map(|path| format!("it also changes '{path}', which does not conflict")))
    }
}
