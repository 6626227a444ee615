//! Adds new events to a run that was read before, while it continues.

use super::{Event, Run, TaskHistory};
use crate::name::TaskId;

/// Where an event was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPosition {
    /// On the run's branch.
    Run,
    /// On the task's own branch only.
    Task,
}

impl Run {
    /// Adds an event that was just recorded. It follows all known events of its task.
    pub fn grow(&mut self, event: Event, position: EventPosition) {
        let Some(task) = event.task().cloned() else {
            return;
        };
        let at = self.tasks.iter().position(|history| history.id == task).unwrap_or_else(|| {
            self.tasks.push(TaskHistory::new(task, Vec::new(), Vec::new(), Vec::new()));
            self.tasks.len() - 1
        });
        let history = self.tasks.swap_remove(at);
        let TaskHistory { id, mut events, cancelled, earlier, .. } = history;
        // If the run was read again while the task was under way, the event is known.
        if events.iter().all(|known| known.commit != event.commit) {
            events.push(event);
        }
        let mut grown = TaskHistory::new(id, events, cancelled, Vec::new()).with_earlier(earlier);
        grown.is_landed = position == EventPosition::Run;
        self.tasks.push(grown);
        let last = self.tasks.len() - 1;
        self.tasks.swap(at, last);
    }

    /// Forgets what a task did on its own branch, because the branch is gone and the task starts again.
    pub fn forget(&mut self, task: &TaskId) {
        self.tasks.retain(|history| history.id != *task);
    }
}
