//! What an agent that resolves a conflict must leave alone: branches, and what gates and landings are remembered by.

use std::collections::BTreeMap;

use super::GitQueue;
use crate::{
    git::{Ref, RefMove},
    name::{Oid, TASK_REFS},
    queue::{QueueError, Ticket},
};

/// Refs by their names.
type Refs = BTreeMap<String, Oid>;

impl GitQueue<'_> {
    /// The refs that nobody but an agent has reason to move while it is at work. Branches of other tasks and of the run
    /// itself are moved by those who work on them.
    pub(super) fn fenced_refs(&self, ticket: &Ticket) -> Result<Refs, QueueError> {
        let own = ticket.scope.task_branch(&ticket.task).to_ref();
        let run = ticket.scope.to_ref();
        let landing = self.into.landing_ref();
        let refs = self.repository.list_refs(&["refs/heads/", "refs/arborist/gates/", &landing])?;
        let is_fenced =
            |found: &Ref| found.name == own || (found.name != run && !found.name.starts_with(TASK_REFS));
        Ok(refs.into_iter().filter(is_fenced).map(|found| (found.name, found.target)).collect())
    }

    /// Puts back what was moved since, but for branches that somebody has checked out, and says what it was. Where they
    /// were moved to is saved.
    pub(super) fn put_back(&self, ticket: &Ticket, before: &Refs) -> Result<Vec<String>, QueueError> {
        let now = self.fenced_refs(ticket)?;
        let worktrees = self.repository.list_worktrees()?;
        let used: Vec<String> =
            worktrees.iter().filter_map(|worktree| Some(worktree.branch.as_ref()?.to_ref())).collect();
        let mut found = Vec::new();
        for (name, old, new) in differences(before, &now) {
            if used.contains(name) {
                continue;
            }
            if let Some(new) = new {
                self.save(ticket, new)?;
            }
            let moved = RefMove { name, new: old, old: new };
            self.repository.move_refs(&[moved], "arborist: put back")?;
            found.push(format!("{name} was moved while it ran"));
        }
        Ok(found)
    }

    /// Keeps a commit under a ref of its task, and names that.
    pub(super) fn save(&self, ticket: &Ticket, commit: Oid) -> Result<String, QueueError> {
        let Ticket { scope, task, .. } = ticket;
        let name = format!("refs/arborist/saved/{}/{task}/conflict-{}", scope.component(), commit.short());
        if self.repository.find_ref(&name)?.is_none() {
            let save = RefMove { name: &name, new: Some(commit), old: None };
            self.repository.move_refs(&[save], "arborist: saved")?;
        }
        Ok(name)
    }
}

/// The names that lead elsewhere than before: from where, and where to.
fn differences<'a>(before: &'a Refs, now: &'a Refs) -> Vec<(&'a String, Option<Oid>, Option<Oid>)> {
    let all: BTreeMap<&String, ()> = before.keys().chain(now.keys()).map(|name| (name, ())).collect();
    let pair = |name: &'a String| (name, before.get(name).copied(), now.get(name).copied());
    all.into_keys().map(pair).filter(|(_, old, new)| old != new).collect()
}
