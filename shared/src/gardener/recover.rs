//! After a crash: what an attempt left is told from what lay there before, and written down.

use super::GardenerError;
use crate::{
    git::Change,
    history::{Event, FAILED, INTERRUPTED, Run},
    message::{Body, Status, Wording},
    name::{Oid, TaskId},
    pipeline::{Dirt, Sorted, place::quit_operations},
    plan::Plan,
    record::{Delivery, Entry, Recorder, Unfinished},
};

/// What is known of tasks when attempts are found that nobody ended.
pub(super) struct Known<'a> {
    /// The events that a task's attempts are counted from.
    pub(super) events: &'a dyn Fn(&TaskId) -> &'a [Event],
    /// A task's name.
    pub(super) name: &'a dyn Fn(&TaskId) -> Option<&'a str>,
    /// How many attempts a task has.
    pub(super) max: u32,
}

/// What is said of one.
#[must_use]
pub fn words_of(attempt: &Unfinished) -> String {
    let Unfinished { task, attempt, .. } = attempt;
    format!("attempt {} of {task} was interrupted; what it left is committed", attempt.ordinal())
}

/// Writes unfinished attempts down as failed ("interrupted"). Gives the attempts.
pub fn recover(
    recorder: &mut Recorder<'_>,
    run: &Run,
    plan: &Plan,
    max: u32,
) -> Result<Vec<Unfinished>, GardenerError> {
    let events = |task: &TaskId| run.find(task).map_or(&[][..], |history| history.current());
    let name = |task: &TaskId| {
        let planned = plan.find(task).map(|task| task.name.as_str());
        planned.or_else(|| run.find(task).and_then(|history| history.name()))
    };
    let written = write_down(recorder, &Known { events: &events, name: &name, max })?;
    Ok(written.into_iter().map(|(unfinished, _)| unfinished).collect())
}

/// The same where the branch that is written on is known to be the place that they were made in. Gives what was
/// written, too.
pub(super) fn write_down(
    recorder: &mut Recorder<'_>,
    known: &Known<'_>,
) -> Result<Vec<(Unfinished, Event)>, GardenerError> {
    let mut written = Vec::new();
    for attempt in Unfinished::find_all(recorder.repository(), recorder.branch())? {
        let events = (known.events)(&attempt.task);
        // Turns are a part of the attempt, not its end.
        let is_end =
            |event: &&Event| event.attempt() == Some(attempt.attempt) && event.status() != Status::Turn;
        let last = events.iter().rfind(is_end);
        let is_written = match last {
            Some(event) => !recorder.repository().is_ancestor(event.commit, attempt.before)?,
            None => false,
        };
        if is_written {
            recorder.repository().move_refs(&[attempt.ended()], "arborist: ended")?;
            continue;
        }
        let event = write_one(recorder, &attempt, known)?;
        written.push((attempt, event));
    }
    Ok(written)
}

fn write_one(
    recorder: &mut Recorder<'_>,
    attempt: &Unfinished,
    known: &Known<'_>,
) -> Result<Event, GardenerError> {
    let repository = recorder.repository();
    let before = repository.tree_of(attempt.before)?;
    let after = repository.snapshot()?;
    let dirt = Dirt::of_worktree(repository, branch_before(recorder, attempt)?, before)?;
    let touched = repository.changes(before, after)?;
    let Sorted { trespass, .. } = dirt.sort(repository, attempt, (before, after), touched)?;
    let left = repository.changes(recorder.tree(), after)?;
    let changes: Vec<Change> = left.into_iter().filter(|change| !dirt.holds(change)).collect();
    let tree =
        if changes.is_empty() { recorder.tree() } else { repository.tree_with(recorder.tree(), &changes)? };
    let name = (known.name)(&attempt.task).unwrap_or(attempt.task.as_str()).to_owned();
    let wording = Wording { name: &name, attempt: attempt.attempt, max: known.max };
    let mut entry = Entry::new(attempt.task.clone(), Status::ImplementFail, wording);
    let why = [format!("{INTERRUPTED}: the run ended before the agent did")].into_iter().chain(trespass);
    let why = why.chain(quit_operations(repository, &attempt.name)?);
    entry.body = Body::new(FAILED, &why.collect::<Vec<_>>().join("; "));
    let delivery = Delivery { tree, tip: recorder.head(), changes: &changes, index: None };
    Ok(recorder.deliver(entry, delivery, &[attempt.ended()])?)
}

/// What the branch held when the attempt began. The mark is on the branch's own commit then, or on one that follows it.
fn branch_before(recorder: &Recorder<'_>, attempt: &Unfinished) -> Result<Oid, GardenerError> {
    let repository = recorder.repository();
    if repository.is_ancestor(attempt.before, recorder.head())? {
        return Ok(repository.tree_of(attempt.before)?);
    }
    let commits = repository.load_commits(&[attempt.before])?;
    let parent = commits.first().and_then(|commit| commit.parents().next());
    Ok(repository.tree_of(parent.unwrap_or(recorder.head()))?)
}
