//! After a crash: what an attempt left in the checkout is told from what the user had there, and written down.

use super::GardenerError;
use crate::{
    history::{Run, TaskHistory},
    message::{Body, Status, Wording},
    pipeline::{Dirt, Sorted},
    record::{Entry, Recorder, Unfinished},
};

/// Writes unfinished attempts down as failed ("interrupted"). Gives the tasks that they were of.
pub fn recover(recorder: &mut Recorder<'_>, run: &Run, max: u32) -> Result<Vec<Unfinished>, GardenerError> {
    let repository = recorder.repository();
    let unfinished = Unfinished::find_all(repository, recorder.branch())?;
    for attempt in &unfinished {
        let events = run.find(&attempt.task).map(TaskHistory::current).unwrap_or_default();
        let last = events.iter().rfind(|event| event.attempt() == Some(attempt.attempt));
        let is_written = match last {
            Some(event) => !repository.is_ancestor(event.commit, attempt.before)?,
            None => false,
        };
        if is_written {
            repository.move_refs(&[attempt.ended()], "arborist: ended")?;
            continue;
        }
        let before = repository.tree_of(attempt.before)?;
        let after = repository.snapshot()?;
        let dirt = Dirt::of_worktree(repository, recorder.tree(), before)?;
        let changes = repository.changes(before, after)?;
        let Sorted { changes, trespass } = dirt.sort(repository, attempt, (before, after), changes)?;
        let tree = if changes.is_empty() {
            recorder.tree()
        } else {
            repository.tree_with(recorder.tree(), &changes)?
        };
        let name = run
            .find(&attempt.task)
            .and_then(|history| history.name())
            .unwrap_or(attempt.task.as_str())
            .to_owned();
        let wording = Wording { name: &name, attempt: attempt.attempt, max };
        let mut entry = Entry::new(attempt.task.clone(), Status::ImplementFail, wording);
        let why = ["interrupted: the run ended before the agent did".to_owned()].into_iter().chain(trespass);
        entry.body = Body::new("Why it failed:", &why.collect::<Vec<_>>().join("; "));
        recorder.record_over(entry, tree, recorder.head(), &[attempt.ended()])?;
        repository.stage(&changes)?;
    }
    Ok(unfinished)
}
