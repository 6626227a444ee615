//! The review of a resolution. What an agent makes of a conflict is code that no review of its task has seen, so a reviewer
//! decides on it before it goes back into the queue.

use super::{GitQueue, resolving::ResolverCalls};
use crate::{
    git::{Merge, OtherWriters, TreeChange},
    message::visible,
    name::Oid,
    pipeline::{Neighbours, ReviewSection, altered, judge, render_diff},
    queue::{QueueError, Resolver, Ticket},
    worktree::{Pool, Scratch},
};

/// How many characters of a resolution a reviewer sees in the prompt. Conflicts are short, and there is no setting for it.
const LONGEST: usize = 20_000;

/// A commit that resolves a conflict.
pub(super) struct Resolved<'a> {
    pub(super) ticket: &'a Ticket,
    pub(super) commit: Oid,
    /// What git makes of the merge, with marks of conflict.
    pub(super) merged: Oid,
}

impl GitQueue<'_> {
    /// Why a commit is no resolution: it must join the source with `onto`, and may differ from what git makes of the two only
    /// in files that conflict. Gives what git makes of them otherwise.
    pub(super) fn check_resolution(
        &self,
        (onto, theirs): (Oid, Oid),
        tree: Oid,
    ) -> Result<Result<Oid, String>, QueueError> {
        let (merged, others) = self.changed_beside((onto, theirs), tree)?;
        Ok(match others.first() {
            Some(path) => Err(format!("it also changes '{path}', which does not conflict")),
            None => Ok(merged),
        })
    }

    /// What git makes of a merge, and the files that are not in conflict and differ from that in `tree`.
    pub(super) fn changed_beside(
        &self,
        (onto, theirs): (Oid, Oid),
        tree: Oid,
    ) -> Result<(Oid, Vec<String>), QueueError> {
        let repository = self.repository;
        let (merged, conflicts) = match repository.merge(onto, theirs)? {
            Merge::Clean(tree) => (tree, Vec::new()),
            Merge::Conflicted(tree, conflicts) => (tree, conflicts),
        };
        let changes = repository.changes(merged, tree)?;
        let is_in_conflict = |path: &String| conflicts.iter().any(|conflict| conflict.is_about(path));
        let others = changes.iter().map(TreeChange::shown).filter(|path| !is_in_conflict(path)).collect();
        Ok((merged, others))
    }

    /// Asks a reviewer in a worktree that holds exactly the resolution. Says why it is not used, if so.
    pub(super) fn review_resolution(
        &mut self,
        (resolver, talk): (&Resolver, &mut ResolverCalls),
        (pool, scratch): (&Pool, &mut Scratch),
        resolved: &Resolved<'_>,
    ) -> Result<Result<(), String>, QueueError> {
        let Resolved { ticket, commit, .. } = *resolved;
        pool.reset_scratch(scratch, commit)?;
        let prompt = self.review_prompt(resolved)?;
        let fenced = self.fenced_refs(ticket)?;
        let place = scratch.repository.clone();
        let neighbours = Neighbours::count(&place);
        let before =
            scratch.repository.look_at_tracked(self.repository.tree_of(commit)?, neighbours.now())?;
        let watch = self.options.config_guard.watch(&scratch.repository);
        let reply =
            self.call((resolver, &resolver.reviewer, talk), scratch, (&ticket.task, &prompt, "review"));
        let mut trespasses = watch.end();
        let company = neighbours.since(1);
        // One that was alone may write what it likes: its worktree is discarded.
        if company == OtherWriters::Others {
            trespasses.extend(altered(&scratch.repository.look_again(&before, company)?));
        }
        trespasses.extend(self.put_back(ticket, &fenced)?);
        let name = &resolver.reviewer.name;
        Ok(match reply {
            Err(error) => return Err(error),
            Ok(_) if !trespasses.is_empty() => {
                Err(format!("the reviewer {name} did more than to read: {}", trespasses.join("; ")))
            }
            Ok(reply) => judge(reply).map_err(|why| format!("{name} did not approve it: {}", visible(&why))),
        })
    }

    fn review_prompt(
        &self,
        Resolved { ticket, commit, merged }: &Resolved<'_>,
    ) -> Result<String, QueueError> {
        let Ticket { task, into, name, .. } = ticket;
        let difference = self.repository.difference(*merged, self.repository.tree_of(*commit)?)?;
        let section = ReviewSection {
            repository: None,
            difference,
            command: format!("git diff --text {merged} {commit}"),
        };
        let diff = render_diff(&[section], LONGEST);
        Ok(format!(
            "Review the resolution of a merge conflict of task {task}: {name}\n\n\
             The task was reviewed before. It met what had landed on {into} meanwhile, and the conflict was resolved. \
             Decide whether the resolution keeps the intent of both sides, and adds nothing else.\n\n\
             Diff from the merge with its marks of conflict to the resolution:\n{}\n\n\
             Do not change any file. Reply APPROVED if the resolution is correct, or REJECTED with reasons.\n\
             The last line of your reply must be exactly APPROVED, or begin with REJECTED: and say why.\n",
            diff.trim_end()
        ))
    }
}
