//! Whether what lies in a worktree is a resolution: something was done about every conflict, and no marks are left.

use super::GitQueue;
use crate::{
    git::{MergeConflict, Repository, Signing},
    name::Oid,
    queue::{QueueError, Ticket, TicketState},
};

/// A merge that did not come to an end, in a worktree.
pub(super) struct Unsettled<'a> {
    pub(super) ticket: &'a Ticket,
    pub(super) place: &'a Repository,
    /// What is merged into.
    pub(super) onto: Oid,
}

impl Unsettled<'_> {
    /// What is merged: what an earlier try came to, if there was one.
    pub(super) fn theirs(&self) -> Oid {
        self.ticket.resolved.unwrap_or(self.ticket.source)
    }

    pub(super) fn conflicts(&self) -> &[MergeConflict] {
        match &self.ticket.standing {
            TicketState::Conflict { conflicts, .. } => conflicts,
            _ => &[],
        }
    }

    /// The files that still have marks of conflict in `tree`.
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

    /// The files of conflicts that are as git left them, none of them touched.
    fn untouched(&self, before: Oid, after: Oid) -> Result<Vec<String>, QueueError> {
        let changes = self.place.changes(before, after)?;
        let touched: Vec<String> = changes.iter().map(crate::git::TreeChange::shown).collect();
        let is_touched = |conflict: &&MergeConflict| conflict.paths.iter().any(|path| touched.contains(path));
        let left = self.conflicts().iter().filter(|conflict| !is_touched(conflict) && conflict.needs_edits());
        Ok(left.flat_map(|conflict| conflict.paths.clone()).collect())
    }
}

impl GitQueue<'_> {
    /// Takes what lies in a worktree as the resolution, or says why it is none. `before` is what git left there.
    pub(super) fn take(
        &self,
        merge: &Unsettled<'_>,
        before: Option<Oid>,
    ) -> Result<Result<Oid, String>, QueueError> {
        let tree = merge.place.snapshot()?;
        if before == Some(tree) && merge.conflicts().iter().any(MergeConflict::needs_edits) {
            return Ok(Err("nothing was changed".into()));
        }
        let marked = merge.marked(tree)?;
        if !marked.is_empty() {
            return Ok(Err(format!("marks of conflict are left in {}", marked.join(", "))));
        }
        let untouched = before.map(|before| merge.untouched(before, tree)).transpose()?.unwrap_or_default();
        if !untouched.is_empty() {
            return Ok(Err(format!("nothing was done about {}", untouched.join(", "))));
        }
        let Ticket { task, into, source, .. } = merge.ticket;
        let message = format!("the conflict of {task} with {into}, resolved\n");
        let parents = [merge.onto, *source];
        Ok(Ok(self.repository.write_joint(tree, &parents, &message, Signing::No)?))
    }
}
