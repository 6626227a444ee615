//! Finished tasks that a person merged, and whose changes are not on the run's branch all the same: the merge was
//! reverted, or took nothing of the task (`git merge -s ours`). Content decides here, because ancestry would call them
//! landed.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::{State, TaskHistory, graph::Graph};
use crate::{
    git::{GitError, Repository},
    message::{Key, Status},
    name::{Oid, TaskId},
};

/// How the changes of a merged task were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertedMerge {
    /// The merge that a person made.
    pub merge: Oid,
    /// The commit on the run's branch that took the changes back; the merge itself if it took nothing of the task.
    pub by: Oid,
}

impl RevertedMerge {
    /// Whether the merge took nothing of the task.
    #[must_use]
    pub fn is_empty_merge(&self) -> bool {
        self.merge == self.by
    }

    /// What happened, as the end of a sentence about the task.
    #[must_use]
    pub fn words(&self) -> String {
        let merge = self.merge.short();
        match self.is_empty_merge() {
            true => format!("merged and reverted: {merge} merged it without its changes"),
            false => format!("merged and reverted: {merge} merged it, and {} took it back", self.by.short()),
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn advice(&self, task: &TaskId) -> String {
        let again = format!("do it again with: git arborist reset {task}");
        match self.is_empty_merge() {
            true => format!("{again}\nor leave it out: skip it in the plan"),
            false => format!(
                "bring it back with: git revert {}\n{again}\nor leave it out: skip it in the plan",
                self.by.short()
            ),
        }
    }
}

/// A commit on the first-parent line of the run's branch.
struct LineCommit {
    id: Oid,
    first_parent: Option<Oid>,
    /// The tasks whose commits came to the branch with it.
    tasks: HashSet<TaskId>,
}

/// The completion of a task that came with a merge.
struct Merged {
    /// The position of the merge on the line.
    at: usize,
    /// The commit that the task began from.
    base: Oid,
}

/// The merges that are no landings of ours and brought finished tasks.
pub(super) struct HandMerges {
    /// The first-parent line, the tip first.
    line: Vec<LineCommit>,
    /// By the commit that completed the task.
    merged: HashMap<Oid, Merged>,
}

impl HandMerges {
    /// Finds them in the history of `tip`, without looking at any file.
    pub(super) fn find(graph: &Graph, tip: Oid) -> Self {
        let mut found = Self { line: Vec::new(), merged: HashMap::new() };
        // In a chain, everything is on the line.
        if graph.is_chain() {
            return found;
        }
        let mut nodes = Vec::new();
        let mut next = graph.find(tip);
        while let Some(node) = next {
            nodes.push(node);
            next = graph.first_parent(node);
        }
        let mut owner: Vec<Option<usize>> = vec![None; graph.entries.len()];
        for (at, node) in nodes.iter().enumerate().rev() {
            let brought = brought_by(graph, (*node, at), &mut owner);
            let entry = graph.entry(*node);
            let task_of = |node: &u32| graph.entry(*node).event().and_then(|event| event.task()).cloned();
            if entry.event().is_none() {
                let completions = brought.iter().filter(|node| {
                    graph.entry(**node).event().is_some_and(|event| event.status() == Status::Complete)
                });
                for completion in completions {
                    if let Some(base) = base_of(graph, *completion, |node| owner[node as usize] == Some(at)) {
                        found.merged.insert(graph.entry(*completion).id, Merged { at, base });
                    }
                }
            }
            let tasks = brought.iter().filter_map(task_of).collect();
            found.line.push(LineCommit { id: entry.id, first_parent: entry.first_parent, tasks });
        }
        found.line.reverse();
        found
    }

    /// Marks the tasks whose changes are not in the tip.
    pub(super) fn mark(self, repository: &Repository, tasks: &mut [TaskHistory]) -> Result<(), GitError> {
        // In a shallow clone, files of old commits may be missing.
        if self.merged.is_empty() || repository.is_shallow {
            return Ok(());
        }
        for history in tasks.iter_mut().filter(|history| history.is_landed) {
            let completion = history.last().filter(|_| history.state.state == State::Complete);
            let completion = completion.map(|event| event.commit);
            let Some((commit, merged)) =
                completion.and_then(|commit| Some((commit, self.merged.get(&commit)?)))
            else {
                continue;
            };
            if let Some(reverted) = self.find_revert(repository, history, commit, merged)? {
                history.state.state = State::Reverted;
                history.reverted = Some(reverted);
            }
        }
        Ok(())
    }

    /// A task was taken back if every path that it changed is again as it was right before the merge, unless another
    /// task did that. Our own reports are not its work.
    fn find_revert(
        &self,
        repository: &Repository,
        history: &TaskHistory,
        completion: Oid,
        merged: &Merged,
    ) -> Result<Option<RevertedMerge>, GitError> {
        let merge = &self.line[merged.at];
        let Some(before) = merge.first_parent else { return Ok(None) };
        let paths = |from: Oid, to: Oid| -> Result<HashSet<Vec<u8>>, GitError> {
            let changes = repository.changes(repository.tree_of(from)?, repository.tree_of(to)?)?;
            Ok(changes.into_iter().map(|change| change.path).collect())
        };
        let new = paths(before, completion)?;
        let events = history.events.iter().chain(&history.cancelled);
        let reports: HashSet<&[u8]> =
            events.filter_map(|event| event.trailers.get(Key::Report)).map(str::as_bytes).collect();
        let is_work = |path: &Vec<u8>| new.contains(path) && !reports.contains(path.as_slice());
        let own: HashSet<Vec<u8>> = paths(merged.base, completion)?.into_iter().filter(is_work).collect();
        if own.is_empty() {
            return Ok(None);
        }
        let mut by = None;
        for commit in &self.line[..=merged.at] {
            if !paths(before, commit.id)?.is_disjoint(&own) {
                break;
            }
            by = Some(commit);
        }
        let is_of_other = |by: &&LineCommit| by.tasks.iter().any(|other| *other != history.id);
        let is_revert = |by: &&LineCommit| by.id == merge.id || !is_of_other(by);
        Ok(by.filter(is_revert).map(|by| RevertedMerge { merge: merge.id, by: by.id }))
    }
}

/// The commits that came to the line with the commit at `at`: its ancestors without an owner yet, and itself.
fn brought_by(graph: &Graph, (node, at): (u32, usize), owner: &mut [Option<usize>]) -> Vec<u32> {
    let (mut brought, mut open) = (Vec::new(), vec![node]);
    while let Some(node) = open.pop() {
        if owner[node as usize].is_none() {
            owner[node as usize] = Some(at);
            brought.push(node);
            open.extend(graph.parents(node));
        }
    }
    brought
}

/// The parent of the first commit of the task among those that came with the merge.
fn base_of(graph: &Graph, completion: u32, is_brought: impl Fn(u32) -> bool) -> Option<Oid> {
    let task = graph.entry(completion).event()?.task()?;
    let (mut first, mut next) = (completion, Some(completion));
    while let Some(node) = next.filter(|node| is_brought(*node)) {
        if graph.entry(node).event().and_then(|event| event.task()) == Some(task) {
            first = node;
        }
        next = graph.first_parent(node);
    }
    graph.entry(first).first_parent
}
