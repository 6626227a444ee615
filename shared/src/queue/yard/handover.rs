//! A conflict in the hands of a person: a worktree with the merge in it, and what they made of it back in the queue.

use std::path::PathBuf;

use super::{Yard, marks::Unsettled};
use crate::{
    git::Conflict,
    name::{Oid, TaskId, digest},
    queue::{News, QueueError, Standing, Ticket},
    worktree::{Pool, Scratch},
};

/// What a person finds when they ask for a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handover {
    /// A worktree with the conflict in it.
    Opened(PathBuf),
    /// These paths there are not resolved yet.
    Unfinished(PathBuf, Vec<String>),
    /// What stood there is in the queue.
    Taken,
}

impl Yard<'_> {
    /// Gives a conflict to a person, and takes back what they made of it.
    pub(in crate::queue) fn hand_over(&mut self, ticket: &Ticket) -> Result<Handover, QueueError> {
        let tip = self.target().require()?.tip();
        let pool = self.pool()?;
        let name = place_of("resolve", &ticket.task);
        let scratch = pool
            .take_scratch(&name, tip)?
            .ok_or_else(|| QueueError::Resolver(format!("the worktree '{name}' is in use")))?;
        let theirs = ticket.resolved.unwrap_or(ticket.source);
        let Some(onto) = scratch.repository.merging_onto(theirs)? else {
            self.keep_what_lies_in(&pool, &scratch)?;
            pool.refresh(&scratch, tip, &[])?;
            scratch.repository.begin_merge(theirs)?;
            return Ok(Handover::Opened(scratch.path));
        };
        self.take_back(&pool, scratch, (ticket, onto))
    }

    fn take_back(
        &mut self,
        pool: &Pool,
        scratch: Scratch,
        (ticket, onto): (&Ticket, Oid),
    ) -> Result<Handover, QueueError> {
        let merge = Unsettled { ticket, place: &scratch.repository, onto };
        let left = left_to_do(&merge)?;
        if !left.is_empty() {
            return Ok(Handover::Unfinished(scratch.path, left));
        }
        let commit = self.take(&merge, None)?.map_err(QueueError::Resolver)?;
        let tries = Vec::new();
        let ticket = Ticket { resolved: Some(commit), standing: Standing::Waiting, tries, ..ticket.clone() };
        self.write(&ticket)?;
        pool.remove_scratch(&scratch)?;
        Ok(Handover::Taken)
    }

    /// What a person left there is theirs, and another merge than this: it is saved before anything takes its place.
    fn keep_what_lies_in(&mut self, pool: &Pool, scratch: &Scratch) -> Result<(), QueueError> {
        if let Some(under) = pool.save_scratch(scratch)? {
            let words = format!("what lay in '{}' is kept under {under}", scratch.path.display());
            (self.voice)(News::Note { words });
        }
        Ok(())
    }
}

/// The paths that a person has not settled: with marks, or still unmerged and of a kind that leaves none.
fn left_to_do(merge: &Unsettled<'_>) -> Result<Vec<String>, QueueError> {
    let mut left = merge.marked(merge.place.snapshot()?)?;
    let leaves_marks = |path: &String| {
        let of_path = |conflict: &&Conflict| conflict.paths.contains(path);
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
    let name = format!("{kind}-{task}");
    if name.parse::<TaskId>().is_ok() {
        return name;
    }
    format!("{kind}-{}", &digest(task.as_str().as_bytes())[..16])
}
