//! Which resolutions may land: those that this process has accepted, and others only after checks and a review.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Mutex, PoisonError},
};

use super::{
    GitQueue,
    handover::place_of,
    resolving::{REVIEW, ResolverCalls},
};
use crate::{
    git::{Merge, OtherWriters, Ref, RefMove, TreeChange},
    message::visible,
    name::{Oid, TASK_REFS, saved_ref},
    pipeline::{
        ConcurrentChildren, RepoDiff, describe_changed_during_review, diff_command, judge_reply, render_diff,
    },
    process::OthersReach,
    queue::{QueueError, QueueEvent, Resolver, Ticket},
    worktree::{Pool, Scratch},
};

/// The resolutions that this process has accepted from a resolver or a person.
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

impl GitQueue<'_> {
    /// Removes a resolution from a ticket if it cannot be trusted. A ticket is a ref, and agents can write refs. So the
    /// commit must join the source with a commit of the target, may differ from git's own merge only in conflicting
    /// files, and is reviewed.
    pub(super) fn discard_untrusted_resolution(
        &mut self,
        ticket: Ticket,
        tip: Oid,
    ) -> Result<Ticket, QueueError> {
        let Some(commit) = ticket.resolved.filter(|commit| !self.options.memory.resolutions.has(*commit))
        else {
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
        (self.on_event)(QueueEvent::Note { words });
        Ok(Ticket { resolved: None, resolved_by: None, has_persons_work: false, ..ticket })
    }

    fn fault_of_resolution(
        &mut self,
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
            return Ok(Some(format!("it does not merge the task with '{}'", ticket.into)));
        }
        let tree = repository.tree_of(commit)?;
        let merged = match self.check_resolution((onto, source), tree)? {
            Ok(merged) => merged,
            Err(why) => return Ok(Some(why)),
        };
        self.review_unknown(&Resolved { ticket, commit, merged })
    }

    /// Reviews a resolution that this process has not accepted before. That the ticket says a person made it proves
    /// nothing; a person's own resolution lands in the process that takes it.
    pub(super) fn review_unknown(&mut self, resolved: &Resolved<'_>) -> Result<Option<String>, QueueError> {
        let Some(resolver) = &self.options.resolver else {
            return Ok(Some("no reviewer can be called here, and this command did not make it".into()));
        };
        let base = self.repository.tree_of(resolved.ticket.source)?;
        if !self.repository.is_proven(base, self.repository.tree_of(resolved.commit)?)? {
            return Ok(Some("other content is stored under the object id of a file".into()));
        }
        let pool = self.pool()?;
        let place = place_of("agent", &resolved.ticket.task);
        let Some(mut scratch) = pool.take_scratch(&place, resolved.commit)? else {
            return Ok(Some("the worktree for its review is in use".into()));
        };
        let answer =
            self.review_resolution((resolver, &mut ResolverCalls::new()), (&pool, &mut scratch), resolved)?;
        pool.remove_scratch(&scratch)?;
        if answer.is_ok() {
            self.options.memory.resolutions.add(resolved.commit);
        }
        Ok(answer.err())
    }
}

// The review of a resolution. An agent's resolution is code that the review of the task has not seen, so a reviewer
// decides on it before it goes back into the queue.

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
    /// Returns the tree of git's merge, or why it is none.
    pub(super) fn check_resolution(
        &self,
        (onto, theirs): (Oid, Oid),
        tree: Oid,
    ) -> Result<Result<Oid, String>, QueueError> {
        let (merged, others) = self.changed_beside((onto, theirs), tree)?;
        Ok(match others.first() {
            Some(path) => Err(format!("it also changed '{path}', which had no conflict")),
            None => Ok(merged),
        })
    }

    /// The tree of git's own merge, and the files in which `tree` differs from it although they do not conflict.
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

    /// Asks a reviewer, in a worktree at the resolution. Returns why the resolution is rejected.
    pub(super) fn review_resolution(
        &mut self,
        (resolver, calls): (&Resolver, &mut ResolverCalls),
        (pool, scratch): (&Pool, &mut Scratch),
        resolved: &Resolved<'_>,
    ) -> Result<Result<(), String>, QueueError> {
        let Resolved { ticket, commit, .. } = *resolved;
        pool.reset_scratch(scratch, commit)?;
        let prompt = self.review_prompt(resolved)?;
        let guarded = self.guarded_refs(ticket)?;
        let place = scratch.repository.clone();
        let concurrent_children = ConcurrentChildren::count(&place);
        let before =
            scratch.repository.read_tracked(self.repository.tree_of(commit)?, concurrent_children.now())?;
        let reach = OthersReach::begin(scratch.repository.top());
        let watch = self.options.config_guard.watch(&scratch.repository);
        let reply = self.call(resolver, calls, scratch, &ticket.task, &prompt, REVIEW);
        let mut violations = watch.end();
        let company = concurrent_children.since_with_reach(1, reach);
        // The worktree is discarded, so changes matter only if another program could have made them.
        if company == OtherWriters::Others {
            violations
                .extend(describe_changed_during_review(&scratch.repository.look_again(&before, company)?));
        }
        violations.extend(self.restore_refs(ticket, &guarded)?);
        let name = &resolver.reviewer.name;
        let reply = self.reply_or_note(reply, (name, &violations))?;
        Ok(match violations.in_one_line() {
            Some(violation) => Err(format!("the reviewer '{name}' changed something: {violation}")),
            None => judge_reply(reply).map_err(|why| format!("{name} did not approve it: {}", visible(&why))),
        })
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

// Guards the refs that an agent which resolves a conflict must not move: branches, results of gates, and parked
// landings.

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
        if self.repository.find_ref(&name)?.is_none() {
            let save = RefMove { name: &name, new: Some(commit), old: None };
            self.repository.move_refs(&[save], "arborist: saved")?;
        }
        Ok(name)
    }
}

/// The refs that differ, with their old and new values.
fn differences<'a>(before: &'a Refs, now: &'a Refs) -> Vec<(&'a String, Option<Oid>, Option<Oid>)> {
    let all: BTreeMap<&String, ()> = before.keys().chain(now.keys()).map(|name| (name, ())).collect();
    let pair = |name: &'a String| (name, before.get(name).copied(), now.get(name).copied());
    all.into_keys().map(pair).filter(|(_, old, new)| old != new).collect()
}
