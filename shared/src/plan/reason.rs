//! Why a task waits for another: the sentence that says so, or the rule of order that was applied.

use super::{Plan, Task};
use crate::{name::TaskId, words::words};

words! {
    /// What an edge of the plan rests on.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Basis {
        /// The plan says so in words, in a table, in a drawing or in a field.
        Stated = "stated",
        /// A task without `[P]` waits for all tasks before it in its phase.
        Serial = "a task without [P] waits for the tasks before it",
        /// A task with `[P]` waits for the last task without it.
        Parallel = "a task with [P] waits for the last task without [P]",
        /// The subsections of a phase run in their order.
        Section = "the sections of a phase run in order",
        /// Tests come before the implementation.
        TestsFirst = "tests come before the implementation",
        /// A phase waits for the phase before it.
        Phase = "phases run in order",
        /// A user story waits for the last phase before the stories.
        Story = "a story waits for the last phase before the stories",
        /// Phases such as "Polish" come last.
        Last = "this phase comes last",
    }
}

/// Why a node waits for another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitReason {
    /// The node that is waited for.
    pub on: TaskId,
    /// What the edge rests on.
    pub basis: Basis,
    /// The file, by its position in [`Plan::spec_files`].
    pub file: usize,
    /// The line of the sentence, or of the node that waits.
    pub line: usize,
    /// The line itself, where the plan states the edge.
    pub text: Option<String>,
}

/// The reasons of one node: the task itself, or a phase around it.
#[derive(Debug)]
pub struct Waiting<'p> {
    /// The node that waits.
    pub node: &'p Task,
    /// What it waits for, each with its reason.
    pub reasons: &'p [WaitReason],
}

impl Plan {
    /// Why a task waits: its own reasons first, then those of the phases around it.
    #[must_use]
    pub fn explain(&self, id: &TaskId) -> Vec<Waiting<'_>> {
        let mut chain = Vec::new();
        let mut next = self.find(id);
        while let Some(node) = next {
            let reasons = self.index.get(&node.id).and_then(|at| self.reasons.get(*at));
            chain.push(Waiting { node, reasons: reasons.map(Vec::as_slice).unwrap_or_default() });
            next = node.parent.as_ref().and_then(|parent| self.find(parent));
        }
        chain
    }
}
