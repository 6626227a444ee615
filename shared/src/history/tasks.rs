//! Groups the events of a walk by task, and judges them.

use std::collections::HashMap;

use super::{
    Event, TaskHistory,
    entry::HistoryEntry,
    graph::Graph,
    proof::CommitFacts,
    reverts::{RevertVerdict, Reverts},
};
use crate::{
    message::{Key, Status},
    name::{Oid, SessionId, TaskId},
};

/// The events of one task, oldest first.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) task: TaskId,
    pub(super) nodes: Vec<u32>,
}

/// The judged events of a task.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) task: TaskId,
    pub(super) verdict: RevertVerdict,
    /// The events that no other follows: one, or the ends of a fork.
    pub(super) newest: Vec<u32>,
    /// Whether a landing counts although the landed commits are not in this repository.
    pub(super) is_unverified: bool,
}

/// Whether an event belongs to the session. Commits of other sessions say nothing about a run.
pub(super) fn is_of_session(event: &Event, session: Option<&SessionId>) -> bool {
    match (session, event.trailers.get(Key::Session)) {
        (Some(own), Some(named)) => own.as_str() == named,
        _ => true,
    }
}

/// The events of a session among the nodes in `within`, by task, in the order in which tasks first appear.
pub(super) fn group(graph: &Graph, session: Option<&SessionId>, within: impl Fn(u32) -> bool) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<&TaskId, usize> = HashMap::new();
    let mut last: usize = 0;
    for node in graph.oldest_first().filter(|node| within(*node)) {
        let Some(event) = graph.entry(node).event().filter(|event| is_of_session(event, session)) else {
            continue;
        };
        let Some(task) = event.task() else { continue };
        // Most commits follow one of the same task.
        if groups.get(last).is_none_or(|group| group.task != *task) {
            last = *places.entry(task).or_insert_with(|| {
                groups.push(Group { task: task.clone(), nodes: Vec::new() });
                groups.len() - 1
            });
        }
        groups[last].nodes.push(node);
    }
    groups
}

/// Judges all tasks of a run at once.
pub(super) fn judge_all(
    (graph, sources): (&Graph, CommitFacts),
    groups: Vec<Group>,
    reverts: &Reverts,
) -> Vec<Judged> {
    let proven = groups.iter().map(|group| sources.prove(graph, reverts.judge(graph, &group.nodes)));
    let (verdicts, unverified): (Vec<RevertVerdict>, Vec<bool>) = proven.unzip();
    let mut group_of = vec![None; graph.entries.len()];
    for (at, verdict) in verdicts.iter().enumerate() {
        verdict.counted.iter().for_each(|node| group_of[*node as usize] = Some(at));
    }
    let newest = graph.newest(groups.len(), |node| group_of[node as usize]);
    let judged = groups.into_iter().zip(verdicts).zip(newest).zip(unverified);
    judged
        .map(|(((group, verdict), newest), is_unverified)| Judged {
            task: group.task,
            verdict,
            newest: join_landings(graph, newest),
            is_unverified,
        })
        .collect()
}

/// Judges one task.
pub(super) fn judge((graph, sources): (&Graph, CommitFacts), group: Group, reverts: &Reverts) -> Judged {
    let (verdict, is_unverified) = sources.prove(graph, reverts.judge(graph, &group.nodes));
    let counted = &verdict.counted;
    let is_followed =
        |node: &u32| counted.iter().any(|other| other != node && graph.is_ancestor(*node, *other));
    let newest = counted.iter().copied().filter(|node| !is_followed(node)).collect();
    Judged { task: group.task, newest: join_landings(graph, newest), verdict, is_unverified }
}

/// The events that were left out because they lack what they need.
pub(super) fn unproven<'a>(graph: &Graph, judged: impl Iterator<Item = &'a Judged>) -> Vec<Event> {
    let nodes = judged.flat_map(|judged| &judged.verdict.unproven);
    nodes.filter_map(|node| graph.entry(*node).event().cloned()).collect()
}

/// Landings of the same commit are no fork. A landing that was parked and then repeated because the target had moved is
/// also in the branches of tasks that began on top of it.
fn join_landings(graph: &Graph, newest: Vec<u32>) -> Vec<u32> {
    let landed = |node: &u32| {
        let event = graph.entry(*node).event().filter(|event| event.status() == Status::Merge)?;
        event.trailers.get(Key::Source)
    };
    let mut sources = newest.iter().map(landed);
    match (sources.next().flatten(), newest.last()) {
        (Some(first), Some(last)) if sources.all(|source| source == Some(first)) => vec![*last],
        _ => newest,
    }
}

impl Judged {
    /// The history of the task; `event` returns the event of a node.
    pub(super) fn into_history(
        self,
        ids: &[Oid],
        mut event: impl FnMut(u32) -> Option<Event>,
    ) -> TaskHistory {
        let id_of = |node: &u32| ids[*node as usize];
        let forks = if self.newest.len() > 1 { self.newest.iter().map(id_of).collect() } else { Vec::new() };
        let RevertVerdict { counted, cancelled, earlier, .. } = self.verdict;
        let events = counted.into_iter().filter_map(&mut event).collect();
        let cancelled = cancelled.into_iter().filter_map(&mut event).collect();
        let history = TaskHistory::new(self.task, events, cancelled, forks).with_earlier(earlier);
        TaskHistory { is_unverified: self.is_unverified, ..history }
    }
}

/// The histories of a whole walk. It is consumed, so that ten thousand events are moved instead of copied.
pub(super) fn histories(graph: Graph, judged: Vec<Judged>) -> Vec<TaskHistory> {
    let ids: Vec<Oid> = graph.entries.iter().map(|entry| entry.id).collect();
    let mut entries: Vec<HistoryEntry> = graph.entries;
    let mut take = |node: u32| entries[node as usize].take_event();
    let histories = judged.into_iter().map(|judged| judged.into_history(&ids, &mut take));
    histories.filter(TaskHistory::has_events).collect()
}
