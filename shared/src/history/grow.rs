//! A run that goes on while somebody watches: what was read once is kept, and what happens is added to it.

use super::{Event, Run, TaskHistory};
use crate::name::TaskId;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPosition {
    /// On the run's branch.
    Run,
    /// On the task's own branch only.
    Task,
}

impl Run {
    /// Adds what has just been written down. It follows everything that is known of its task.
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
        events.push(event);
        let mut grown = TaskHistory::new(id, events, cancelled, Vec::new()).with_earlier(earlier);
        grown.is_landed = position == EventPosition::Run;
        self.tasks.push(grown);
        let last = self.tasks.len() - 1;
        self.tasks.swap(at, last);
    }

    /// Forgets what a task did on its own branch, now that the branch is gone: it begins anew.
    pub fn forget(&mut self, task: &TaskId) {
        self.tasks.retain(|history| history.id != *task);
    }
}
