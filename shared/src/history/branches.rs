//! What stands on the tasks' own branches and has not landed yet.

use std::collections::HashMap;

use super::{Event, HistoryError, TaskHistory, entry::Entry, graph::Graph, run::Run};
use crate::{
    git::{Ref, RefReader, Repository},
    name::{Oid, TaskId},
};

/// A task's own branch.
struct Branch {
    task: TaskId,
    tip: Oid,
}

impl Run {
    /// Lets the tasks' own branches speak for what has not landed.
    pub(super) fn add_task_branches(
        &mut self,
        repository: &Repository,
        refs: RefReader,
    ) -> Result<(), HistoryError> {
        let branches = self.task_branches(refs.finish()?);
        if branches.is_empty() {
            return Ok(());
        }
        let mut revisions: Vec<String> = branches.iter().map(|branch| branch.tip.to_string()).collect();
        revisions.extend(self.scope.tip.map(|tip| format!("^{tip}")));
        let mut entries = Vec::new();
        for commit in repository.stream_commits(&revisions)? {
            entries.push(Entry::new(&commit?, &self.scope.branch));
        }
        let graph = Graph::new(entries);
        let places: HashMap<Oid, u32> =
            (0u32..).zip(&graph.entries).map(|(at, entry)| (entry.id, at)).collect();
        for branch in branches {
            if let Some(tip) = places.get(&branch.tip) {
                self.add_task_branch(repository, &graph, *tip, branch.task)?;
            }
        }
        Ok(())
    }

    fn task_branches(&self, refs: Vec<Ref>) -> Vec<Branch> {
        let prefix = self.scope.branch.task_refs();
        let branch = |found: Ref| {
            let task = found.name.strip_prefix(&prefix)?.parse().ok()?;
            Some(Branch { task, tip: found.target })
        };
        refs.into_iter().filter_map(branch).collect()
    }

    fn add_task_branch(
        &mut self,
        repository: &Repository,
        graph: &Graph,
        tip: u32,
        task: TaskId,
    ) -> Result<(), HistoryError> {
        let reached = graph.reachable(&[tip]);
        let counts = |event: &&Event| event.task() == Some(&task) && self.is_of_session(event);
        let nodes = graph.oldest_first().filter(|node| reached.contains(*node));
        let own: Vec<Event> =
            nodes.filter_map(|node| graph.entry(node).event()).filter(counts).cloned().collect();
        if own.is_empty() {
            return Ok(());
        }
        let known = self.tasks.iter().position(|history| history.id == task);
        let mut events = known.map(|at| self.tasks[at].events.clone()).unwrap_or_default();
        if let Some(newest) = events.last()
            && !repository.is_ancestor(newest.commit, graph.entry(tip).id)?
        {
            return Ok(());
        }
        events.extend(own);
        let earlier = known.map_or(0, |at| self.tasks[at].earlier);
        let cancelled = known.map(|at| self.tasks[at].cancelled.clone()).unwrap_or_default();
        let history = TaskHistory {
            is_landed: false,
            ..TaskHistory::new(task, events, cancelled, Vec::new()).with_earlier(earlier)
        };
        match known {
            Some(at) => self.tasks[at] = history,
            None => self.tasks.push(history),
        }
        Ok(())
    }
}
