//! Reverts: a commit that reverts an event cancels it, and all later events of the same task.

use std::collections::HashMap;

use super::{event::CommitMeaning, graph::Graph};
use crate::{message::Status, name::Oid};

/// The effective reverts of a walk: each cancels an event, and none of them was itself reverted.
#[derive(Debug, Default)]
pub(super) struct Reverts {
    /// A revert and the event that it cancels, oldest first.
    pairs: Vec<(u32, u32)>,
}

/// The effect of reverts on the events of one task.
#[derive(Debug, Default)]
pub(super) struct RevertVerdict {
    /// Events that count, oldest first.
    pub(super) counted: Vec<u32>,
    /// Events that do not count: reverted, or later than a reverted one.
    pub(super) cancelled: Vec<u32>,
    /// How many of those that count are from before a revert; attempts are counted from there.
    pub(super) earlier: usize,
    /// Events that were left out because they lack what they need.
    pub(super) unproven: Vec<u32>,
}

impl Reverts {
    /// The reverts among the nodes in `within`.
    pub(super) fn find(graph: &Graph, within: impl Fn(u32) -> bool) -> Self {
        let is_revert = |node: &u32| matches!(graph.entry(*node).note, CommitMeaning::Reverts(_));
        let mut reverts: Vec<u32> =
            graph.oldest_first().filter(|node| is_revert(node) && within(*node)).collect();
        if reverts.is_empty() {
            return Self::default();
        }
        reverts.reverse();
        let targets = Targets::of(graph, within);
        Self { pairs: active(graph, &reverts, &targets) }
    }

    /// The reverts that cancel events of `nodes`.
    pub(super) fn of<'a>(&'a self, nodes: &'a [u32]) -> impl Iterator<Item = (u32, u32)> + 'a {
        self.pairs.iter().copied().filter(|(_, target)| nodes.contains(target))
    }

    /// Applies them to the events of one task, given oldest first.
    pub(super) fn judge(&self, graph: &Graph, nodes: &[u32]) -> RevertVerdict {
        let pairs: Vec<(u32, u32)> =
            if self.pairs.is_empty() { Vec::new() } else { self.of(nodes).collect() };
        let mut verdict = RevertVerdict::default();
        for node in nodes {
            let before: Vec<&(u32, u32)> =
                pairs.iter().filter(|(revert, _)| !graph.is_ancestor(*revert, *node)).collect();
            if before.iter().any(|(_, target)| is_taken_back(graph, *node, *target)) {
                verdict.cancelled.push(*node);
                continue;
            }
            verdict.counted.push(*node);
            if !before.is_empty() {
                verdict.earlier = verdict.counted.len();
            }
        }
        verdict
    }
}

/// A reverted event cancels all later events of its task; a reverted landing also cancels everything that it brought.
fn is_taken_back(graph: &Graph, node: u32, target: u32) -> bool {
    if graph.is_ancestor(target, node) {
        return true;
    }
    let is_landing = graph.entry(target).event().is_some_and(|event| event.status() == Status::Merge);
    let kept = || graph.first_parent(target).is_some_and(|first| graph.is_ancestor(node, first));
    is_landing && graph.is_ancestor(node, target) && !kept()
}

/// Newest first, so that a reverted revert is known to be void before it is applied.
fn active(graph: &Graph, newest_first: &[u32], targets: &Targets) -> Vec<(u32, u32)> {
    let mut void = vec![false; graph.entries.len()];
    let mut pairs = Vec::new();
    for revert in newest_first {
        let CommitMeaning::Reverts(ids) = &graph.entry(*revert).note else { continue };
        if void[*revert as usize] {
            continue;
        }
        for target in ids.iter().filter_map(|id| targets.find(id)) {
            match graph.entry(target).note {
                CommitMeaning::Reverts(_) => void[target as usize] = true,
                CommitMeaning::Event(_) => pairs.push((*revert, target)),
                _ => {}
            }
        }
    }
    pairs.reverse();
    pairs
}

/// The commits that can be reverted, by id.
struct Targets {
    by_id: HashMap<Oid, u32>,
    /// Sorted by their digits, for abbreviated ids.
    sorted: Vec<(String, u32)>,
}

impl Targets {
    fn of(graph: &Graph, within: impl Fn(u32) -> bool) -> Self {
        let is_target = |node: &u32| {
            matches!(graph.entry(*node).note, CommitMeaning::Event(_) | CommitMeaning::Reverts(_))
        };
        let nodes: Vec<u32> = graph.oldest_first().filter(|node| is_target(node) && within(*node)).collect();
        let mut sorted: Vec<(String, u32)> =
            nodes.iter().map(|node| (graph.entry(*node).id.to_string(), *node)).collect();
        sorted.sort_unstable();
        Self { by_id: nodes.iter().map(|node| (graph.entry(*node).id, *node)).collect(), sorted }
    }

    /// Finds a full id, or an abbreviated one that is unique.
    fn find(&self, id: &str) -> Option<u32> {
        if let Ok(id) = id.parse::<Oid>() {
            return self.by_id.get(&id).copied();
        }
        let from = self.sorted.partition_point(|(known, _)| known.as_str() < id);
        let mut found = self.sorted[from..].iter().take_while(|(known, _)| known.starts_with(id));
        match (found.next(), found.next()) {
            (Some((_, only)), None) => Some(*only),
            _ => None,
        }
    }
}
