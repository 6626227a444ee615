//! Guards the refs that an agent which resolves a conflict must not move: branches, results of gates, and parked
//! landings.

use std::collections::BTreeMap;

use super::GitQueue;
use crate::{
    git::{Ref, RefMove},
    name::{Oid, TASK_REFS, saved_ref},
    queue::{QueueError, Ticket},
};

/// Refs by their names.
type Refs = BTreeMap<String, Oid>;

impl GitQueue<'_> {
    /// The refs that no process but the agent has a reason to move during its call. Branches of other tasks and of the
    /// run itself are excluded, because workers move them.
    pub(super) fn guarded_refs(&self, ticket: &Ticket) -> Result<Refs, QueueError> {
        let own = ticket.scope.task_branch(&ticket.task).to_ref();
        let run = ticket.scope.to_ref();
        let landing = self.into.landing_ref();
        let refs = self.repository.list_refs(&["refs/heads/", "refs/arborist/gates/", &landing])?;
        let is_guarded =
            |found: &Ref| found.name == own || (found.name != run && !found.name.starts_with(TASK_REFS));
        Ok(refs.into_iter().filter(is_guarded).map(|found| (found.name, found.target)).collect())
    }

    /// Restores refs that were moved, except branches that are checked out, and describes them. The values that they
    /// were moved to are saved.
    pub(super) fn restore_refs(&self, ticket: &Ticket, before: &Refs) -> Result<Vec<String>, QueueError> {
        let now = self.guarded_refs(ticket)?;
        let worktrees = self.repository.list_worktrees()?;
        let used: Vec<String> =
            worktrees.iter().filter_map(|worktree| Some(worktree.branch.as_ref()?.to_ref())).collect();
        let mut found = Vec::new();
        for (name, old, new) in differences(before, &now) {
            if used.contains(name) {
                continue;
            }
            let kept = new.map(|new| self.save(ticket, new)).transpose()?;
            let kept = kept.map(|saved| format!("; its target is kept as {saved}")).unwrap_or_default();
            let moved = RefMove { name, new: old, old: new };
            self.repository.move_refs(&[moved], "arborist: restored")?;
            found.push(format!("{name} was moved while an agent or a command ran{kept}"));
        }
        Ok(found)
    }

    /// Saves a commit under a ref of its task, and returns the name of the ref.
    pub(super) fn save(&self, ticket: &Ticket, commit: Oid) -> Result<String, QueueError> {
        let Ticket { scope, task, .. } = ticket;
        let name = saved_ref(&format!("{}/{task}", scope.component()), "conflict", commit);
        self.repository.save_commit(&name, commit)?;
        Ok(name)
    }
}

/// The refs that differ, with their old and new values.
fn differences<'a>(before: &'a Refs, now: &'a Refs) -> Vec<(&'a String, Option<Oid>, Option<Oid>)> {
    let all: BTreeMap<&String, ()> = before.keys().chain(now.keys()).map(|name| (name, ())).collect();
    let pair = |name: &'a String| (name, before.get(name).copied(), now.get(name).copied());
    all.into_keys().map(pair).filter(|(_, old, new)| old != new).collect()
}
