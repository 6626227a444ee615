//! Plans: the tree of tasks, what waits for what, and the readers of plan files.
//!
//! A reader turns a file into drafts with exact positions; [`assemble`] checks them and makes the [`Plan`]. Every
//! mistake in a file is reported as a [`Problem`] with its place and a fix.

mod assemble;
mod edit;
mod forecast;
mod graph;
mod json;
mod markdown;
mod named_path;
mod precedence;
mod problem;
mod proposal;
mod read;
mod readiness;
mod reason;
mod task;
mod text;
mod update;
mod usual_paths;

use std::collections::HashMap;

use serde_json::{Map, Value};

pub use edit::{Edit, apply_edits, tick_style};
pub use forecast::SharedFile;
pub use json::TreeDocument;
pub use markdown::{Unread, Why, plan_ids};
pub use named_path::{configured_plan_path, read_named_plan, typed_plan_path};
pub use problem::{PlanError, Problem};
pub use proposal::{RedProposal, TestProposal, propose_test};
pub use readiness::Readiness;
pub use reason::{Basis, WaitReason, Waiting};
pub use task::{Mark, Task, TaskSource, TestCommand, TestKind};
pub use update::Changes;
pub use usual_paths::{TASK_LIST, find_plans, find_usual_plan, usual_places};

use self::graph::Flow;
use crate::name::TaskId;

/// A tree of tasks that makes sense: ids are unique, dependencies lead somewhere, nothing waits for itself.
#[derive(Debug)]
pub struct Plan {
    /// Every node, parents before children, in the order of the document.
    pub tasks: Vec<Task>,
    /// The files that it was made from.
    pub spec_files: Vec<String>,
    /// What is doubtful, in the order of the files.
    pub warnings: Vec<Problem>,
    /// What can be read and is surely not meant so, such as a misspelt key of a JSON plan. A run that goes on is not kept from
    /// it by that.
    pub mistakes: Vec<Problem>,
    /// Lines that look like tasks and were not taken.
    pub unread: Vec<Unread>,
    /// Tasks that may be meant as `[red]`.
    pub red_proposals: Vec<RedProposal>,
    /// Keys of the tree file that we do not know, kept for a rewrite.
    pub extra: Map<String, Value>,
    index: HashMap<TaskId, usize>,
    /// For each node, why it waits for what.
    reasons: Vec<Vec<WaitReason>>,
    flow: Flow,
}

impl Plan {
    /// The node with this id.
    #[must_use]
    pub fn find(&self, id: &TaskId) -> Option<&Task> {
        self.index.get(id).map(|at| &self.tasks[*at])
    }

    /// The tasks that are worked on, in the order of the document.
    pub fn leaves(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.is_leaf())
    }

    /// The leaves below a node.
    pub fn leaves_of<'p>(&'p self, id: &'p TaskId) -> impl Iterator<Item = &'p Task> {
        let parent = |task: &&'p Task| task.parent.as_ref().and_then(|parent| self.find(parent));
        let is_below =
            move |task: &&'p Task| std::iter::successors(Some(*task), parent).any(|above| above.id == *id);
        self.leaves().filter(is_below)
    }

    /// The nodes without a parent, in the order of the document.
    pub fn roots(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter(|task| task.parent.is_none())
    }

    /// The leaves in the order of Kahn's algorithm, ties by position in the tree.
    #[must_use]
    pub fn order(&self) -> Vec<&Task> {
        self.flow.order().map(|at| &self.tasks[at]).collect()
    }

    /// What can run at once: the first wave waits for nothing that is unsettled, each later one only for
    /// waves before it. Settled leaves are in none.
    #[must_use]
    pub fn waves(&self, is_settled: impl Fn(&Task) -> bool) -> Vec<Vec<&Task>> {
        let depths = self.flow.depths(|at| is_settled(&self.tasks[at]));
        let mut waves: Vec<Vec<&Task>> = Vec::new();
        for (task, depth) in self.tasks.iter().zip(depths) {
            if !task.is_leaf() || is_settled(task) {
                continue;
            }
            if waves.len() <= depth {
                waves.resize_with(depth + 1, Vec::new);
            }
            waves[depth].push(task);
        }
        waves
    }

    fn sort_warnings(&mut self) {
        let rank = |problem: &Problem| self.spec_files.iter().position(|file| *file == problem.file);
        self.warnings.sort_by_key(|problem| (rank(problem), problem.line, problem.column));
    }

    /// The positions of the leaves at or below `id`.
    fn push_leaves(&self, id: &TaskId, leaves: &mut Vec<usize>) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let Some(at) = self.index.get(id) else { continue };
            let task = &self.tasks[*at];
            if task.is_leaf() {
                leaves.push(*at);
            }
            open.extend(&task.children);
        }
    }
}
