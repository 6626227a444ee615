//! Events on the tasks' own branches that have not landed yet. They are judged together with the run's commits, as one
//! history.

use std::collections::{HashMap, HashSet};

use super::{
    Event, HistoryError, TaskHistory,
    event::{CommitMeaning, HistoryEntry},
    graph::{Graph, Marks},
    reverts::Reverts,
    tasks::{self, CommitFacts, Group, Judged},
    walk::{RunCommits, Walker},
};
use crate::{
    git::Ref,
    name::{BranchName, Oid, SessionId, TaskId},
};

/// A task's own branch.
struct Branch {
    task: TaskId,
    tip: Oid,
}

/// The tasks' own branches, and the commits that only they contain.
pub(super) struct Branches {
    branches: Vec<Branch>,
    entries: Vec<HistoryEntry>,
}

impl Branches {
    /// Reads what the run's branch does not contain, in one walk. A branch whose tip is among `known`, the run's own
    /// commits, has nothing else; git would have to walk back to it to find that out.
    pub(super) fn read(walker: &Walker<'_>, refs: Vec<Ref>, known: &Graph) -> Result<Self, HistoryError> {
        let mut branches = task_branches(walker.branch, refs);
        if !branches.is_empty() {
            let known: HashSet<Oid> = known.entries.iter().map(|entry| entry.id).collect();
            branches.retain(|branch| !known.contains(&branch.tip));
        }
        let mut entries = Vec::new();
        if !branches.is_empty() {
            let mut revisions: Vec<String> = branches.iter().map(|branch| branch.tip.to_string()).collect();
            revisions.push(format!("^{}", walker.tip));
            entries = walker.read_entries(&revisions)?;
        }
        Ok(Self { branches, entries })
    }

    /// Whether the run's branch contains everything.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many of their commits claim to be ours and are not sound.
    pub(super) fn ignored(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry.note, CommitMeaning::Malformed)).count()
    }

    /// The tasks of the run, with the state of their own branches where these are not stale.
    pub(super) fn fold(
        self,
        walk: RunCommits,
        session: Option<&SessionId>,
        sources: CommitFacts,
    ) -> (Vec<TaskHistory>, Vec<Event>) {
        let offset = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        let mut entries = self.entries;
        entries.extend(walk.graph.entries);
        let graph = Graph::new(entries);
        let whole = JoinedGraph {
            start: walk.start.map(|start| start + offset),
            offset,
            session,
            graph: &graph,
            sources,
        };
        whole.fold(&self.branches)
    }
}

fn task_branches(run: &BranchName, refs: Vec<Ref>) -> Vec<Branch> {
    let prefix = run.task_refs();
    let branch = |found: Ref| {
        let task = found.name.strip_prefix(&prefix)?.parse().ok()?;
        Some(Branch { task, tip: found.target })
    };
    refs.into_iter().filter_map(branch).collect()
}

/// The run's commits and those of the tasks' own branches in one graph; the latter come first.
struct JoinedGraph<'a> {
    graph: &'a Graph,
    offset: u32,
    start: Option<u32>,
    session: Option<&'a SessionId>,
    sources: CommitFacts,
}

impl JoinedGraph<'_> {
    fn is_landed(&self, node: u32) -> bool {
        node >= self.offset
    }

    fn fold(&self, branches: &[Branch]) -> (Vec<TaskHistory>, Vec<Event>) {
        let graph = self.graph;
        let reverts = Reverts::find(graph, |node| self.is_landed(node));
        let groups = tasks::group(graph, self.session, |node| self.is_landed(node));
        let landed = tasks::judge_all(graph, self.sources, groups, &reverts);
        let everywhere = tasks::group(graph, self.session, |_| true);
        let events: HashMap<&TaskId, &[u32]> =
            everywhere.iter().map(|group| (&group.task, group.nodes.as_slice())).collect();
        let places: HashMap<Oid, u32> = (0..self.offset).map(|node| (graph.entry(node).id, node)).collect();
        let mut own: HashMap<&TaskId, Judged> = HashMap::new();
        for branch in branches {
            let known = landed.iter().find(|judged| judged.task == branch.task);
            let nodes = events.get(&branch.task).copied().unwrap_or_default();
            if let Some(tip) = places.get(&branch.tip)
                && let Some(judged) = self.state_on_branch(
                    *tip,
                    Group { task: branch.task.clone(), nodes: nodes.to_vec() },
                    known,
                    &reverts,
                )
            {
                own.insert(&branch.task, judged);
            }
        }
        let unproven = tasks::unproven(graph, landed.iter().chain(own.values()));
        (self.histories(landed, own), unproven)
    }

    /// The state on a task's own branch, unless it is stale: it must contain the start of the run, the task's newest
    /// events on the run's branch, and everything that reverted events of it there.
    fn state_on_branch(
        &self,
        tip: u32,
        mut group: Group,
        landed: Option<&Judged>,
        reverts: &Reverts,
    ) -> Option<Judged> {
        let reached: Marks = self.graph.reachable(&[tip]);
        let holds = |node: u32| reached.contains(node);
        let taken_back = reverts.of(&group.nodes).all(|(revert, _)| holds(revert));
        let newest = landed.is_none_or(|judged| judged.newest.iter().all(|node| holds(*node)));
        // A start that only this branch contains belongs to a run that is gone, because the run's branch was moved back
        // behind it. The next run starts again and does not own this branch.
        let is_of_lost_run =
            (0..self.offset).any(|node| holds(node) && self.graph.entry(node).run_start().is_some());
        if !self.start.is_none_or(holds) || is_of_lost_run || !newest || !taken_back {
            return None;
        }
        group.nodes.retain(|node| holds(*node));
        if group.nodes.iter().all(|node| self.is_landed(*node)) {
            return None;
        }
        let reverts = Reverts::find(self.graph, holds);
        Some(tasks::judge(self.graph, self.sources, group, &reverts))
    }

    fn histories(&self, landed: Vec<Judged>, mut own: HashMap<&TaskId, Judged>) -> Vec<TaskHistory> {
        let ids: Vec<Oid> = self.graph.entries.iter().map(|entry| entry.id).collect();
        let places = self.graph.places();
        let at = (ids.as_slice(), places.as_slice());
        let event = |node: u32| self.graph.entry(node).event().cloned();
        let mut histories = Vec::new();
        for judged in landed {
            match own.remove(&judged.task) {
                Some(own) => {
                    histories.push(TaskHistory { is_landed: false, ..own.into_history(at, event) });
                }
                None => histories.push(judged.into_history(at, event)),
            }
        }
        let mut rest: Vec<Judged> = own.into_values().collect();
        rest.sort_by(|a, b| a.task.cmp(&b.task));
        histories.extend(
            rest.into_iter().map(|own| TaskHistory { is_landed: false, ..own.into_history(at, event) }),
        );
        histories.retain(TaskHistory::has_events);
        histories
    }
}
