//! A conflict in the hands of a person: a worktree with the merge in it, and what they made of it back in the queue.

use std::path::PathBuf;

use super::{GitQueue, marks::Unsettled};
use crate::{
    git::{MergeConflict, Repository},
    name::{BranchName, Oid, TaskId, digest},
    queue::{QueueError, QueueEvent, ResolvedBy, Ticket, TicketState},
    safe_files,
    worktree::{Pool, Scratch},
};

/// Where it is noted what a person was given: the tree, and in the next line the run's branch.
const OPENED: &str = "arborist-opened";

/// What a person finds when they ask for a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handover {
    /// A worktree with the conflict in it.
    Opened(PathBuf),
    /// These paths there are not resolved yet.
    Unfinished(PathBuf, Vec<String>),
    /// These files there were changed although they are not in conflict, and nobody approved that. All of it stays as it is.
    OtherFiles(PathBuf, Vec<String>),
    /// What stood there is in the queue.
    Taken,
}

/// What is done about files that a person's resolution changes although they are not in conflict. Another program can have
/// written them: the worktree is open for as long as the person needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherFiles {
    /// They are listed, and nothing is taken.
    Listed,
    /// The person approved them.
    Approved,
}

impl GitQueue<'_> {
    /// Gives a conflict to a person, and takes back what they made of it.
    pub(in crate::queue) fn hand_over(
        &mut self,
        ticket: &Ticket,
        other_files: OtherFiles,
    ) -> Result<Handover, QueueError> {
        let tip = self.position()?.tip();
        let pool = self.pool()?;
        let scratch = self.take_place(&pool, ticket, tip)?;
        let theirs = ticket.resolved.unwrap_or(ticket.source);
        let Some(onto) = scratch.repository.merging_onto(theirs)? else {
            self.keep_what_lies_in(&pool, &scratch)?;
            pool.refresh(&scratch, tip, &[])?;
            scratch.repository.begin_merge(theirs)?;
            note_opened(&scratch, &ticket.scope)?;
            return Ok(Handover::Opened(scratch.path));
        };
        self.take_back(&pool, scratch, (ticket, onto), other_files)
    }

    /// Another run may have a task of this name: while its conflict stands in the usual place, that is left alone.
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
        (ticket, onto): (&Ticket, Oid),
        other_files: OtherFiles,
    ) -> Result<Handover, QueueError> {
        let merge = Unsettled { ticket, place: &scratch.repository, onto };
        let left = left_to_do(&merge)?;
        if !left.is_empty() {
            return Ok(Handover::Unfinished(scratch.path, left));
        }
        let commit = self.take(&merge, None)?.map_err(QueueError::Resolver)?;
        // What was taken is compared, not what lies there: that may be changed meanwhile.
        let tree = self.repository.tree_of(commit)?;
        let (_, others) = self.changed_beside((onto, merge.theirs()), tree)?;
        if !others.is_empty() && other_files == OtherFiles::Listed {
            return Ok(Handover::OtherFiles(scratch.path, others));
        }
        if !others.is_empty() {
            let words = format!("these files were not in conflict and land too: {}", others.join(", "));
            (self.on_event)(QueueEvent::Note { words });
        }
        // A person has decided on it.
        self.options.resolutions.add(commit);
        let (standing, resolved_by) = (TicketState::Waiting, Some(ticket.resolved_too(ResolvedBy::Person)));
        let (resolved, tries) = (Some(commit), Vec::new());
        let ticket = Ticket { resolved, resolved_by, standing, tries, ..ticket.clone() };
        self.write(&ticket)?;
        pool.remove_scratch(&scratch)?;
        Ok(Handover::Taken)
    }

    /// A task that has landed otherwise needs nobody's worktree any more. One in which something was done stays.
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
        let words = format!("{task} has landed, and what was begun for it in '{path}' is still there");
        (self.on_event)(QueueEvent::Note { words });
        Ok(())
    }

    /// What a person left there is theirs, and another merge than this: it is saved before anything takes its place.
    fn keep_what_lies_in(&mut self, pool: &Pool, scratch: &Scratch) -> Result<(), QueueError> {
        if let Some(under) = pool.save_scratch(scratch)? {
            let words = format!("what lay in '{}' is kept under {under}", scratch.path.display());
            (self.on_event)(QueueEvent::Note { words });
        }
        Ok(())
    }
}

/// What was given to a person stands beside their worktree, so that it can be told later whether they did anything.
fn note_opened(scratch: &Scratch, run: &BranchName) -> Result<(), QueueError> {
    let tree = scratch.repository.snapshot()?;
    let path = scratch.repository.git_dir.join(OPENED);
    safe_files::write(&path, format!("{tree}\n{run}\n").as_bytes())
        .map_err(|source| QueueError::File { path: path.display().to_string(), source })
}

/// The run whose conflict a person was given in the worktree that `repository` is seen from.
#[must_use]
pub fn opened_for(repository: &Repository) -> Option<BranchName> {
    let noted = safe_files::read_text(&repository.git_dir.join(OPENED)).ok()?;
    noted.lines().nth(1)?.parse().ok()
}

/// Whether everything there is as it was given.
fn is_untouched(scratch: &Scratch) -> Result<bool, QueueError> {
    let place = &scratch.repository;
    let opened = safe_files::read_text(&place.git_dir.join(OPENED)).unwrap_or_default();
    let head = place.find_commit("HEAD")?;
    let is_kept = head.map(|head| place.is_held(head)).transpose()?.unwrap_or(false);
    Ok(is_kept && opened.lines().next() == Some(place.snapshot()?.to_string().as_str()))
}

/// The paths that a person has not settled: with marks, or still unmerged and of a kind that leaves none.
fn left_to_do(merge: &Unsettled<'_>) -> Result<Vec<String>, QueueError> {
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

/// The worktree for the conflict of a task, with a name that a task could have too.
pub(super) fn place_of(kind: &str, task: &TaskId) -> String {
    short_enough(format!("{kind}-{task}"), || format!("{kind}-{}", &digest(task.as_str().as_bytes())[..16]))
}

/// The same, with a name that no other run has.
fn place_of_run(ticket: &Ticket) -> String {
    let whose = digest(format!("{}\n{}", ticket.scope, ticket.task).as_bytes());
    short_enough(format!("resolve-{}-{}", ticket.task, &whose[..8]), || format!("resolve-{}", &whose[..16]))
}

fn short_enough(name: String, otherwise: impl FnOnce() -> String) -> String {
    if name.parse::<TaskId>().is_ok() { name } else { otherwise() }
}
