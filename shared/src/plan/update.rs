//! Joining a plan that was read again with the tree file that was written before, so that what people added to
//! the tree file by hand stays.

use super::{Plan, TestProposal};
use crate::name::TaskId;

/// What a re-reading changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Nodes that are new.
    pub added: Vec<TaskId>,
    /// Nodes that the spec no longer has.
    pub gone: Vec<TaskId>,
}

impl Plan {
    /// Takes over from `old` what a spec cannot say: test commands, runners, models, repositories, commands and
    /// keys that we do not know.
    pub fn take_over(&mut self, old: &Self) -> Changes {
        let gone = old.tasks.iter().filter(|task| self.find(&task.id).is_none());
        let mut changes = Changes { added: Vec::new(), gone: gone.map(|task| task.id.clone()).collect() };
        for task in &mut self.tasks {
            let Some(before) = old.find(&task.id) else {
                changes.added.push(task.id.clone());
                continue;
            };
            if task.test_commands.is_empty() {
                task.test_commands.clone_from(&before.test_commands);
            }
            task.runner = task.runner.take().or_else(|| before.runner.clone());
            task.model = task.model.take().or_else(|| before.model.clone());
            if task.repos.is_empty() {
                task.repos.clone_from(&before.repos);
            }
            task.command = task.command.take().or_else(|| before.command.clone());
            for (key, value) in &before.extra {
                task.extra.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        for (key, value) in &old.extra {
            self.extra.entry(key.clone()).or_insert_with(|| value.clone());
        }
        changes
    }

    /// Gives a proposed test command to every leaf that has none.
    pub fn accept(&mut self, proposal: &TestProposal) {
        for task in self.tasks.iter_mut().filter(|task| task.is_leaf() && task.test_commands.is_empty()) {
            task.test_commands.push(proposal.test.clone());
        }
    }

    /// Names every file again, in the nodes and in the list of files.
    pub fn rename_files(&mut self, name: impl Fn(&str) -> String) {
        self.spec_files.iter_mut().for_each(|file| *file = name(file));
        for source in self.tasks.iter_mut().filter_map(|task| task.source.as_mut()) {
            source.file = name(&source.file);
        }
    }
}
