//! Groups the events of a walk by task, and judges them.

use std::collections::HashMap;

use super::{
    Event, TaskHistory,
    event::HistoryEntry,
    graph::Graph,
    reverts::{RevertVerdict, Reverts},
};
use crate::{
    git::Repository,
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
fn is_of_session(event: &Event, session: Option<&SessionId>) -> bool {
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
    graph: &Graph,
    sources: CommitFacts,
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
pub(super) fn judge(graph: &Graph, sources: CommitFacts, group: Group, reverts: &Reverts) -> Judged {
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
        (ids, places): (&[Oid], &[usize]),
        mut event: impl FnMut(u32) -> Option<Event>,
    ) -> TaskHistory {
        let id_of = |node: &u32| ids[*node as usize];
        let forks = if self.newest.len() > 1 { self.newest.iter().map(id_of).collect() } else { Vec::new() };
        let RevertVerdict { counted, cancelled, earlier, .. } = self.verdict;
        let place = counted.last().map_or(0, |node| places[*node as usize]);
        let events = counted.into_iter().filter_map(&mut event).collect();
        let cancelled = cancelled.into_iter().filter_map(&mut event).collect();
        let history = TaskHistory::new(self.task, events, cancelled, forks).with_earlier(earlier);
        TaskHistory { is_unverified: self.is_unverified, place, ..history }
    }
}

/// The histories of a whole walk. It is consumed, so that ten thousand events are moved instead of copied.
pub(super) fn histories(graph: Graph, judged: Vec<Judged>) -> Vec<TaskHistory> {
    let ids: Vec<Oid> = graph.entries.iter().map(|entry| entry.id).collect();
    let places = graph.places();
    let mut entries: Vec<HistoryEntry> = graph.entries;
    let mut take = |node: u32| entries[node as usize].take_event();
    let histories = judged.into_iter().map(|judged| judged.into_history((&ids, &places), &mut take));
    histories.filter(TaskHistory::has_events).collect()
}

// Leaves out events that lack what they need: a task is complete only after the approved review of the same attempt,
// and a landing counts only if it lands a complete task. A commit alone proves nothing, because any process can write
// one.

/// What is known about commits that were not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitFacts {
    /// Whether the repository may lack the landed commits. Only then a landing counts although its source cannot be
    /// found.
    may_lack: bool,
}

impl CommitFacts {
    pub(super) fn of(repository: &Repository) -> Self {
        Self { may_lack: repository.is_shallow }
    }

    /// Leaves out events that lack what they need. Also returns whether a landing could not be verified.
    fn prove(self, graph: &Graph, verdict: RevertVerdict) -> (RevertVerdict, bool) {
        let RevertVerdict { counted, cancelled, earlier, .. } = verdict;
        let (mut kept, mut is_unverified) = (Vec::with_capacity(counted.len()), false);
        let (mut left_out, mut unproven) = (Vec::new(), Vec::new());
        for (at, node) in counted.into_iter().enumerate() {
            let counts = match status(graph, node) {
                Some(Status::Complete) => follows_review(graph, &kept, node),
                Some(Status::Merge) => match self.lands_complete(graph, &kept, node) {
                    Some(lands) => lands,
                    None => {
                        is_unverified = true;
                        true
                    }
                },
                _ => true,
            };
            if counts {
                kept.push(node);
            } else {
                left_out.push(at);
                unproven.push(node);
            }
        }
        let earlier = earlier - left_out.iter().filter(|at| **at < earlier).count();
        (RevertVerdict { counted: kept, cancelled, earlier, unproven }, is_unverified)
    }

    /// Whether the source of a landing contains the completion of the task. `None` if the source is not in this
    /// repository.
    fn lands_complete(self, graph: &Graph, before: &[u32], landing: u32) -> Option<bool> {
        let source = graph.entry(landing).event().and_then(|event| event.trailers.source());
        let Some(source) = source.and_then(|source| find_source(graph, landing, source)) else {
            return if self.may_lack { None } else { Some(false) };
        };
        let mut completed =
            before.iter().rev().filter(|node| status(graph, **node) == Some(Status::Complete));
        Some(completed.any(|node| graph.is_ancestor(*node, source)))
    }
}

/// The source of a landing among the commits that were read: a parent of it, or an ancestor of one.
fn find_source(graph: &Graph, landing: u32, source: Oid) -> Option<u32> {
    let parent = graph.parents(landing).find(|parent| graph.entry(*parent).id == source);
    parent.or_else(|| graph.find(source).filter(|source| graph.is_ancestor(*source, landing)))
}

fn status(graph: &Graph, node: u32) -> Option<Status> {
    graph.entry(node).event().map(Event::status)
}

/// Whether the last result of the task is an approved review, after passed tests and a passed implement step of the
/// same attempt. Turns and interrupted attempts are no results.
fn follows_review(graph: &Graph, before: &[u32], complete: u32) -> bool {
    let results = before.iter().rev().filter_map(|node| {
        let event = graph.entry(*node).event()?;
        (event.status() != Status::Turn && !event.is_interruption()).then_some((*node, event))
    });
    let mut needed = [Status::ReviewApproved, Status::TestPass, Status::ImplementPass].into_iter().peekable();
    let mut attempt = None;
    for (node, event) in results {
        let is_next = needed.peek() == Some(&event.status());
        let is_same = attempt.is_none_or(|attempt| event.attempt() == attempt);
        if !is_next || !is_same || !graph.is_ancestor(node, complete) {
            return false;
        }
        attempt = Some(event.attempt());
        needed.next();
        if needed.peek().is_none() {
            return true;
        }
    }
    false
}
