//! Changes to Markdown plans, as small as they can be: a tick is one byte, an id is an insertion.

use super::{Plan, Task, TaskSource, text::Offset};
use crate::name::TaskId;

/// Bytes to put in place of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The task that it is about.
    pub task: TaskId,
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Where to change the file.
    pub at: Offset,
    /// How many bytes go.
    pub cut: usize,
    /// What comes in their place.
    pub put: String,
}

impl Plan {
    /// The ticks that the boxes of `is_done` tasks lack, in the order of the files. A task with others nested in
    /// it is done when they are.
    #[must_use]
    pub fn plan_ticks(&self, tick: char, is_done: impl Fn(&Task) -> bool) -> Vec<Edit> {
        let done = self.done_with_nested(is_done);
        let lacks = |(at, task): &(usize, &Task)| done[*at] && !task.mark.is_settled();
        let edit = |(_, task): (usize, &Task)| {
            let TaskSource { file, line, mark_at } = task.source.clone()?;
            Some(Edit { task: task.id.clone(), file, line, at: mark_at?, cut: 1, put: tick.to_string() })
        };
        self.tasks.iter().enumerate().filter(lacks).filter_map(edit).collect()
    }

    /// For each node, whether it is done, or everything below it is.
    fn done_with_nested(&self, is_done: impl Fn(&Task) -> bool) -> Vec<bool> {
        let mut done = vec![true; self.tasks.len()];
        for (at, task) in self.tasks.iter().enumerate().rev() {
            if task.is_leaf() {
                done[at] = task.mark.is_settled() || is_done(task);
            }
            if let Some(parent) = task.parent.as_ref().and_then(|parent| self.index.get(parent)) {
                done[*parent] &= done[at];
            }
        }
        done
    }
}

/// How a file ticks its boxes: `X` if it does so more often than `x`.
#[must_use]
pub fn tick_style(text: &str) -> char {
    if text.matches("[X]").count() > text.matches("[x]").count() { 'X' } else { 'x' }
}

/// Applies the edits of one file.
#[must_use]
pub fn apply_edits(text: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut edits: Vec<&Edit> = edits.iter().collect();
    edits.sort_by_key(|edit| edit.at);
    let mut changed = Vec::with_capacity(text.len() + 8 * edits.len());
    let mut from = 0;
    for edit in edits {
        changed.extend_from_slice(text.get(from..edit.at).unwrap_or_default());
        changed.extend_from_slice(edit.put.as_bytes());
        from = edit.at + edit.cut;
    }
    changed.extend_from_slice(text.get(from..).unwrap_or_default());
    changed
}
