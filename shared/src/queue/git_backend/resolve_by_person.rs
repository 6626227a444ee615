//! Hands a conflict to a person: opens a worktree with the merge in it, and takes the resolution back into the queue.

use std::path::PathBuf;

use super::{
    GitQueue,
    rejection::{Rejection, reject},
};
use crate::{
    git::{Merge, MergeConflict, Repository, Signing},
    name::{BranchName, Oid, TaskId, digest},
    queue::{QueueError, QueueEvent, ResolvedBy, Ticket, TicketState, UnparkableResolution},
    safe_files,
    worktree::{Pool, Scratch},
};

/// The file in the worktree's git directory that records what a person was given: the tree, and on the next line the
/// run's branch.
const OPENED: &str = "arborist-opened";

/// What a person who asks for a conflict gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handover {
    /// A worktree with the conflict was opened.
    Opened(PathBuf),
    /// These paths there are not resolved yet.
    Unfinished(PathBuf, Vec<String>),
    /// These files there were changed although they do not conflict, and that was not approved. Nothing was taken.
    OtherFiles(PathBuf, Vec<String>),
    /// The resolution is in the queue.
    Taken,
}

/// What to do with files that a person's resolution changes although they do not conflict. The worktree is open for as
/// long as the person needs, so another program may have written them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherFiles {
    /// List them, and take nothing.
    Listed,
    /// The person approved them.
    Approved,
}

impl GitQueue<'_> {
    /// Opens a conflict for a person, or takes their resolution back.
    pub(in crate::queue) fn hand_over(
        &mut self,
        ticket: &Ticket,
        other_files: OtherFiles,
    ) -> Result<Handover, QueueError> {
        let tip = self.position()?.tip();
        let pool = self.pool()?;
        let scratch = self.take_place(&pool, ticket, tip)?;
        let theirs = ticket.resolved.unwrap_or(ticket.source);
        let Some(onto) = scratch.repository.find_merge_onto(theirs)? else {
            self.save_left_files(&pool, &scratch)?;
            pool.refresh(&scratch, tip, &[])?;
            scratch.repository.begin_merge(theirs)?;
            note_opened(&scratch, &ticket.scope)?;
            return Ok(Handover::Opened(scratch.path));
        };
        self.take_back(&pool, scratch, ticket, onto, other_files)
    }

    /// Takes the worktree for a conflict. Another run may have a task of the same name; if the usual worktree is in use
    /// for it, take one with the run in its name.
    fn take_place(&self, pool: &Pool, ticket: &Ticket, tip: Oid) -> Result<Scratch, QueueError> {
        let take = |name: String| {
            let taken = pool.take_scratch(&name, tip)?;
            taken.ok_or_else(|| QueueError::Resolver(format!("the worktree '{name}' is in use")))
        };
        let own = place_of_run(ticket);
        if self.is_place(&own) {
            return take(own);
        }
        let usual = take(place_of("resolve", &ticket.task))?;
        match opened_for(&usual.repository) {
            Some(run) if run != ticket.scope => take(own),
            _ => Ok(usual),
        }
    }

    fn is_place(&self, name: &str) -> bool {
        self.repository.common_dir.join("worktrees").join(name).exists()
    }

    fn take_back(
        &mut self,
        pool: &Pool,
        scratch: Scratch,
        ticket: &Ticket,
        onto: Oid,
        other_files: OtherFiles,
    ) -> Result<Handover, QueueError> {
        let merge = UnfinishedMerge { ticket, place: &scratch.repository, onto };
        let left = left_to_do(&merge)?;
        if !left.is_empty() {
            return Ok(Handover::Unfinished(scratch.path, left));
        }
        let commit = match self.take(&merge, None) {
            Ok(commit) => commit,
            Err(rejection) => return Err(QueueError::Resolver(rejection.reason()?)),
        };
        // Compare the commit that was taken and not the worktree, which may change meanwhile.
        let tree = self.repository.tree_of(commit)?;
        let (_, others) = self.changed_beside(onto, merge.theirs(), tree)?;
        if !others.is_empty() && other_files == OtherFiles::Listed {
            return Ok(Handover::OtherFiles(scratch.path, others));
        }
        if !others.is_empty() {
            self.require_landing_now(ticket, commit, &others)?;
            let words =
                format!("these files had no conflict, but were changed and land too: {}", others.join(", "));
            (self.on_event)(QueueEvent::note(words));
        }
        // A person has made it, so it needs no review.
        self.options.memory.resolutions.add(commit);
        let (state, resolved_by) = (TicketState::Waiting, Some(ticket.resolved_too(ResolvedBy::Person)));
        let (resolved, tries) = (Some(commit), Vec::new());
        let ticket = Ticket { resolved, resolved_by, state, tries, has_persons_work: true, ..ticket.clone() };
        self.write(&ticket)?;
        pool.remove_scratch(&scratch)?;
        Ok(Handover::Taken)
    }

    /// Refuses a resolution that changes `others`, files without a conflict, unless it can land now. Only the process to
    /// which the person approved them knows of that, so no later one accepts the resolution, or a parked landing of it.
    fn require_landing_now(
        &self,
        ticket: &Ticket,
        resolution: Oid,
        others: &[String],
    ) -> Result<(), QueueError> {
        let Ticket { task, into, .. } = ticket;
        let others = others.join(", ");
        let tip = self.target().require()?.tip();
        let Merge::Clean(tree) = self.repository.merge(tip, resolution)? else {
            return Err(QueueError::NewConflict { task: task.clone(), into: into.clone(), others });
        };
        match self.target().find_obstacle_to(resolution, tree)? {
            Some((why, obstacle)) => {
                let (task, into) = (task.clone(), into.clone());
                let resolution = UnparkableResolution { task, into, others, why, obstacle };
                Err(QueueError::CannotBeParked(Box::new(resolution)))
            }
            None => Ok(()),
        }
    }

    /// Opens the conflict again with a person's resolution that has failed a gate, so that the person can correct it. If
    /// the worktree is in use, the resolution is only saved. Says where it is.
    pub(super) fn open_resolution(&mut self, ticket: &Ticket) -> Result<Option<String>, QueueError> {
        let Some(resolved) = ticket.resolved else { return Ok(None) };
        let found = self.repository.load_commits(&[resolved])?;
        let onto = found.first().and_then(|commit| commit.parents().next());
        let names = [place_of_run(ticket), place_of("resolve", &ticket.task)];
        let is_free = !names.iter().any(|name| self.is_place(name));
        let Some(onto) = onto.filter(|_| is_free) else {
            return self.save_resolution(ticket);
        };
        let pool = self.pool()?;
        let scratch = self.take_place(&pool, ticket, onto)?;
        pool.refresh(&scratch, onto, &[])?;
        let place = &scratch.repository;
        place.begin_merge(ticket.source)?;
        note_opened(&scratch, &ticket.scope)?;
        let tree = self.repository.tree_of(resolved)?;
        place.restore_paths(tree, &place.changes(place.snapshot()?, tree)?)?;
        place.stage_tree(tree)?;
        Ok(Some(format!("correct it in '{}'", scratch.path.display())))
    }

    /// Saves a person's resolution, and says where.
    pub(super) fn save_resolution(&mut self, ticket: &Ticket) -> Result<Option<String>, QueueError> {
        let saved = ticket.resolved.map(|resolved| self.save(ticket, resolved)).transpose()?;
        Ok(saved.map(|saved| format!("it is saved as {saved}")))
    }

    /// Removes the worktree for a conflict whose task has landed in another way, unless a person has worked in it.
    pub(super) fn close_place(&mut self, ticket: &Ticket, landed: Oid) -> Result<(), QueueError> {
        let names = [place_of_run(ticket), place_of("resolve", &ticket.task)];
        let Some(name) = names.into_iter().find(|name| self.is_place(name)) else {
            return Ok(());
        };
        let pool = self.pool()?;
        let Some(scratch) = pool.take_scratch(&name, landed)? else {
            return Ok(());
        };
        if opened_for(&scratch.repository).is_some_and(|run| run != ticket.scope) {
            return Ok(());
        }
        if is_untouched(&scratch)? {
            return Ok(pool.remove_scratch(&scratch)?);
        }
        let (task, path) = (&ticket.task, scratch.path.display());
        let words =
            format!("{task} has landed, but an unfinished resolution of its conflict is still in '{path}'");
        (self.on_event)(QueueEvent::note(words));
        Ok(())
    }

    /// Saves what a person left in the worktree, if it is not this merge, before it is replaced.
    fn save_left_files(&mut self, pool: &Pool, scratch: &Scratch) -> Result<(), QueueError> {
        if let Some(under) = pool.save_scratch(scratch)? {
            let words = format!("the files in '{}' are kept as {under}", scratch.path.display());
            (self.on_event)(QueueEvent::note(words));
        }
        Ok(())
    }
}

/// Records what a person is given, so that it can be determined later whether they changed anything.
fn note_opened(scratch: &Scratch, run: &BranchName) -> Result<(), QueueError> {
    let tree = scratch.repository.snapshot()?;
    let path = scratch.repository.git_dir.join(OPENED);
    safe_files::write(&path, format!("{tree}\n{run}\n").as_bytes())
        .map_err(|source| QueueError::File { path: path.display().to_string(), source })
}

/// The run whose conflict was opened in the worktree of `repository`.
#[must_use]
pub fn opened_for(repository: &Repository) -> Option<BranchName> {
    let noted = safe_files::read_text(&repository.git_dir.join(OPENED)).ok()?;
    noted.lines().nth(1)?.parse().ok()
}

/// Whether the worktree is as it was given.
fn is_untouched(scratch: &Scratch) -> Result<bool, QueueError> {
    let place = &scratch.repository;
    let opened = safe_files::read_text(&place.git_dir.join(OPENED)).unwrap_or_default();
    let head = place.find_commit("HEAD")?;
    let is_kept = head.map(|head| place.is_reachable_from_refs(head)).transpose()?.unwrap_or(false);
    Ok(is_kept && opened.lines().next() == Some(place.snapshot()?.to_string().as_str()))
}

/// The paths that are not resolved: those with conflict markers, and unmerged ones of a kind that has no markers.
fn left_to_do(merge: &UnfinishedMerge<'_>) -> Result<Vec<String>, QueueError> {
    let mut left = merge.marked(merge.place.snapshot()?)?;
    let leaves_marks = |path: &String| {
        let of_path = |conflict: &&MergeConflict| conflict.paths.contains(path);
        merge.conflicts().iter().filter(of_path).all(|conflict| conflict.kind.leaves_marks())
    };
    let unmerged = merge.place.unmerged()?;
    let others: Vec<String> =
        unmerged.into_iter().filter(|path| !left.contains(path) && !leaves_marks(path)).collect();
    left.extend(others);
    Ok(left)
}

/// The name of the worktree for the conflict of a task. It has the form of a task id.
pub(super) fn place_of(kind: &str, task: &TaskId) -> String {
    short_enough(format!("{kind}-{task}"), || format!("{kind}-{}", &digest(task.as_str().as_bytes())[..16]))
}

/// The name of the worktree for the conflict of a ticket, which no other run uses.
fn place_of_run(ticket: &Ticket) -> String {
    let whose = digest(format!("{}\n{}", ticket.scope, ticket.task).as_bytes());
    short_enough(format!("resolve-{}-{}", ticket.task, &whose[..8]), || format!("resolve-{}", &whose[..16]))
}

fn short_enough(name: String, otherwise: impl FnOnce() -> String) -> String {
    if name.parse::<TaskId>().is_ok() { name } else { otherwise() }
}

// Decides whether the files of a worktree are a resolution: every conflict was edited, and no conflict markers are
// left.

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
        match &self.ticket.state {
            TicketState::Conflict { conflicts, .. } => conflicts,
            _ => &[],
        }
    }

    /// The files that still have conflict markers in `tree`.
    fn marked(&self, tree: Oid) -> Result<Vec<String>, QueueError> {
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
    /// Commits the files of a worktree as the resolution. `before` is the tree that git left there.
    pub(super) fn take(&self, merge: &UnfinishedMerge<'_>, before: Option<Oid>) -> Result<Oid, Rejection> {
        let tree = merge.place.snapshot()?;
        if before == Some(tree) && merge.conflicts().iter().any(MergeConflict::needs_edits) {
            return reject("nothing was changed");
        }
        let marked = merge.marked(tree)?;
        if !marked.is_empty() {
            return reject(format!("conflict markers are left in {}", marked.join(", ")));
        }
        let untouched = before.map(|before| merge.untouched(before, tree)).transpose()?.unwrap_or_default();
        if !untouched.is_empty() {
            return reject(format!("{} is still unresolved", untouched.join(", ")));
        }
        let Ticket { task, into, source, .. } = merge.ticket;
        let message = format!("the conflict of {task} with {into}, resolved\n");
        let parents = [merge.onto, *source];
        Ok(self.repository.write_commit_with_parents(tree, &parents, &message, Signing::No)?)
    }
}
