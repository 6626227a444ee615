//! The review of a resolution. An agent's resolution is code that the review of the task has not seen, so a reviewer
//! decides on it before it goes back into the queue.

use super::{
    GitQueue,
    rejection::{Rejection, reject},
    resolve_by_agent::{AgentWork, REVIEW},
};
use crate::{
    git::{Merge, OtherWriters, TreeChange},
    message::visible,
    name::Oid,
    pipeline::{
        ConcurrentChildren, RepoDiff, describe_changed_during_review, diff_command, judge_reply, render_diff,
    },
    process::OthersReach,
    queue::{QueueError, Ticket},
};

/// How many characters of a resolution the reviewer's prompt shows. Conflicts are short, so there is no setting for it.
const LONGEST: usize = 20_000;

/// A commit that resolves a conflict.
pub(super) struct Resolved<'a> {
    pub(super) ticket: &'a Ticket,
    pub(super) commit: Oid,
    /// The tree of git's own merge, with conflict markers.
    pub(super) merged: Oid,
}

impl GitQueue<'_> {
    /// Checks that a tree is a resolution of a merge: it may differ from git's own merge only in conflicting files.
    /// Returns the tree of git's merge.
    pub(super) fn check_resolution(&self, onto: Oid, theirs: Oid, tree: Oid) -> Result<Oid, Rejection> {
        let (merged, others) = self.changed_beside(onto, theirs, tree)?;
        match others.first() {
            Some(path) => reject(format!("it also changed '{path}', which had no conflict")),
            None => Ok(merged),
        }
    }

    /// The tree of git's own merge, and the files in which `tree` differs from it although they do not conflict.
    pub(super) fn changed_beside(
        &self,
        onto: Oid,
        theirs: Oid,
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

    /// Asks a reviewer, in a worktree at the resolution.
    pub(super) fn review_resolution(
        &mut self,
        work: &mut AgentWork<'_>,
        resolved: &Resolved<'_>,
    ) -> Result<(), Rejection> {
        let Resolved { ticket, commit, .. } = *resolved;
        work.pool.reset_scratch(&work.scratch, commit)?;
        let prompt = self.review_prompt(resolved)?;
        let guarded = self.guarded_refs(ticket)?;
        let place = work.scratch.repository.clone();
        let concurrent_children = ConcurrentChildren::count(&place);
        let before = place.read_tracked(self.repository.tree_of(commit)?, concurrent_children.at_start())?;
        let reach = OthersReach::begin(place.top());
        let watch = self.options.config_guard.watch(&place);
        let reply = self.call(work, &ticket.task, &prompt, REVIEW);
        let mut violations = watch.restore_after_child();
        let company = concurrent_children.since_start_with_reach(ConcurrentChildren::ONE_WATCH, reach);
        // The worktree is discarded, so changes matter only if another program could have made them.
        if company == OtherWriters::Others {
            violations.extend(describe_changed_during_review(&place.look_again(&before, company)?));
        }
        violations.extend(self.restore_refs(ticket, &guarded)?);
        let name = &work.resolver.reviewer.name;
        let reply = self.reply_or_note(reply, name, &violations)?;
        if let Some(violation) = violations.in_one_line() {
            return reject(format!("the reviewer '{name}' changed something: {violation}"));
        }
        judge_reply(reply).or_else(|why| reject(format!("{name} did not approve it: {}", visible(&why))))
    }

    fn review_prompt(
        &self,
        Resolved { ticket, commit, merged }: &Resolved<'_>,
    ) -> Result<String, QueueError> {
        let Ticket { task, into, name, .. } = ticket;
        let difference = self.repository.difference(*merged, self.repository.tree_of(*commit)?)?;
        let section = RepoDiff { repository: None, difference, command: diff_command("", *merged, *commit) };
        let diff = render_diff(&[section], LONGEST);
        Ok(format!(
            "Review the resolution of a merge conflict of task {task}: {name}\n\n\
             The task was reviewed before. It conflicted with tasks that landed on {into} meanwhile, and the conflict was resolved. \
             Decide whether the resolution keeps the intent of both sides, and adds nothing else.\n\n\
             Diff from the merge with its conflict markers to the resolution:\n{}\n\n\
             Do not change any file. Reply APPROVED if the resolution is correct, or REJECTED with reasons.\n\
             The last line of your reply must be exactly APPROVED, or begin with REJECTED: and say why.\n",
            diff.trim_end()
        ))
    }
}
