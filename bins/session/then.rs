//! Where the tasks of a session stood right after a turn, and how that is written down again.

use std::collections::HashSet;

use arborist_core::{
    failure::Failure,
    history::{Event, Reading, Run, Scope, TaskState},
    name::{Oid, TaskId},
    record::{Entry, Recorder},
    session::Stored,
};

use super::open::Opened;

/// A task as it stood then.
pub(super) struct Then {
    pub(super) task: TaskId,
    /// Its name, as its commits tell it.
    pub(super) name: String,
    /// The events that its attempts were counted from.
    pub(super) events: Vec<Event>,
}

impl Then {
    pub(super) fn state(&self) -> TaskState {
        self.events.iter().collect()
    }

    /// Writes down again what had happened to it, in the same words and without the costs.
    pub(super) fn repeat(&self, recorder: &mut Recorder<'_>) -> Result<(), Failure> {
        for entry in self.events.iter().filter_map(Entry::repeating) {
            let tree = recorder.tree();
            recorder.record(entry, tree)?;
        }
        Ok(())
    }
}

/// The tasks of which something had happened when the session of `newest` stood at `point`.
pub(super) fn at(opened: &Opened, newest: &Stored, point: Oid) -> Result<Vec<Then>, Failure> {
    let base = opened.archive().start_of(newest)?.record.context.head;
    let before: HashSet<Oid> = opened.repository.list_between(&[point], &[base])?.into_iter().collect();
    let scope = Scope { branch: newest.record.context.branch.clone(), tip: Some(point) };
    let run = Run::scan(&opened.repository, scope, Reading::Fresh)?;
    // What stands on a task's own branch may have been written later.
    let events = |events: &[Event]| {
        events.iter().filter(|event| before.contains(&event.commit)).cloned().collect::<Vec<_>>()
    };
    let tasks = run.tasks.iter().map(|task| Then {
        task: task.id.clone(),
        name: task.name().unwrap_or(task.id.as_str()).to_owned(),
        events: events(task.current()),
    });
    Ok(tasks.filter(|then| !then.events.is_empty()).collect())
}
