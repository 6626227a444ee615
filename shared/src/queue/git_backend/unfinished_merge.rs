//! Decides whether the files of a worktree are a resolution: every conflict was edited, and no conflict markers are
//! left.

use super::GitQueue;
use crate::{
    git::{MergeConflict, Repository, Signing},
    name::Oid,
    queue::{QueueError, Ticket, TicketState},
};

/// An unfinished merge in a worktree.
pub(super) struct UnfinishedMerge<'a> {
    pub(super) ticket: &'a Ticket,
    pub(super) place: &'a Repository,
    /// The commit that is merged into.
    pub(super) onto: Oid,
}

impl UnfinishedMerge<'_> {
    /// The commit that is merged: the result of an earlier try, or else the ticket's source.
    pub(super) fn theirs(&self) -> Oid {
        self.ticket.resolved.unwrap_or(self.ticket.source)
    }

    pub(super) fn conflicts(&self) -> &[MergeConflict] {
        match &self.ticket.standing {
            TicketState::Conflict { conflicts, .. } => conflicts,
            _ => &[],
        }
    }

    /// The files that still have conflict markers in `tree`.
    pub(super) fn marked(&self, tree: Oid) -> Result<Vec<String>, QueueError> {
        let mut marked = Vec::new();
        for file in self.place.list_unmerged(self.onto, self.theirs())? {
            let Some(blob) = self.place.find_entry(tree, &file.path)? else { continue };
            if self.place.find_blob(blob)?.is_some_and(|content| file.is_marked(&content)) {
                marked.push(file.shown());
            }
        }
        Ok(marked)
    }

    /// The conflicting files that are still as git left them.
    fn untouched(&self, before: Oid, after: Oid) -> Result<Vec<String>, QueueError> {
        let changes = self.place.changes(before, after)?;
        let touched: Vec<String> = changes.iter().map(crate::git::TreeChange::shown).collect();
        let is_touched = |conflict: &&MergeConflict| conflict.paths.iter().any(|path| touched.contains(path));
        let left = self.conflicts().iter().filter(|conflict| !is_touched(conflict) && conflict.needs_edits());
        Ok(left.flat_map(|conflict| conflict.paths.clone()).collect())
    }
}

impl GitQueue<'_> {
    /// Commits the files of a worktree as the resolution, or says why they are none. `before` is the tree that git left
    /// there.
    pub(super) fn take(
        &self,
        merge: &UnfinishedMerge<'_>,
        before: Option<Oid>,
    ) -> Result<Result<Oid, String>, QueueError> {
        let tree = merge.place.snapshot()?;
        if before == Some(tree) && merge.conflicts().iter().any(MergeConflict::needs_edits) {
            return Ok(Err("nothing was changed".into()));
        }
        let marked = merge.marked(tree)?;
        if !marked.is_empty() {
            return Ok(Err(format!("conflict markers are left in {}", marked.join(", "))));
        }
        let untouched = before.map(|before| merge.untouched(before, tree)).transpose()?.unwrap_or_default();
        if !untouched.is_empty() {
            return Ok(Err(format!("{} is still unresolved", untouched.join(", "))));
        }
        let Ticket { task, into, source, .. } = merge.ticket;
        let message = format!("the conflict of {task} with {into}, resolved\n");
        let parents = [merge.onto, *source];
        Ok(Ok(self.repository.write_commit_with_parents(tree, &parents, &message, Signing::No)?))
    }
}
