//! Reverts: a commit that reverts a counted commit takes it back, and the task's later ones with it.

use super::{
    entry::Note,
    graph::{Graph, Marks},
};
use crate::message::Status;

/// What reverts did to the events of a run.
pub(super) struct Reverts {
    /// Events that do not count: reverted, or later than one that was.
    pub(super) cancelled: Marks,
    /// Events from before a revert in their task: its attempts are counted anew since.
    pub(super) earlier: Marks,
}

/// Applies all reverts.
pub(super) fn reverts(graph: &Graph) -> Reverts {
    let none = Marks::none(graph.entries.len());
    let mut reverts = Reverts { cancelled: none.clone(), earlier: none };
    for (revert, target) in active(graph) {
        let later = graph.descendants(target);
        let after_revert = graph.descendants(revert);
        let landed = landed_by(graph, target);
        let task = graph.entry(target).event().and_then(|event| event.task());
        for node in graph.oldest_first() {
            let is_its = graph.entry(node).event().is_some_and(|event| event.task() == task);
            if !is_its || after_revert.contains(node) {
                continue;
            }
            reverts.earlier.insert(node);
            if later.contains(node) || landed.as_ref().is_some_and(|marks| marks.contains(node)) {
                reverts.cancelled.insert(node);
            }
        }
    }
    reverts
}

/// Pairs of a revert and the event that it takes back, oldest first. A revert that was reverted itself is none.
fn active(graph: &Graph) -> Vec<(u32, u32)> {
    let mut void = Marks::none(graph.entries.len());
    let mut pairs = Vec::new();
    let order: Vec<u32> = graph.oldest_first().collect();
    for revert in order.into_iter().rev() {
        let Note::Reverts(ids) = &graph.entry(revert).note else {
            continue;
        };
        if void.contains(revert) {
            continue;
        }
        for target in ids.iter().filter_map(|id| find_target(graph, id)) {
            match graph.entry(target).note {
                Note::Reverts(_) => {
                    void.insert(target);
                }
                Note::Event(_) => pairs.push((revert, target)),
                _ => {}
            }
        }
    }
    pairs.reverse();
    pairs
}

/// A full id, or an abbreviated one that only one commit of the run has.
fn find_target(graph: &Graph, id: &str) -> Option<u32> {
    let matches = |node: &u32| graph.entry(*node).id.to_string().starts_with(id);
    let mut found = graph.oldest_first().filter(|node| is_target(graph, *node)).filter(matches);
    match (found.next(), found.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn is_target(graph: &Graph, node: u32) -> bool {
    matches!(graph.entry(node).note, Note::Event(_) | Note::Reverts(_))
}

/// Reverting a landing takes back all that came in with it: what is not reachable from its first parent.
fn landed_by(graph: &Graph, landing: u32) -> Option<Marks> {
    let event = graph.entry(landing).event()?;
    if event.status() != Status::Merge {
        return None;
    }
    let first = graph.entry(landing).first_parent.and_then(|id| graph.find(id));
    let kept = graph.reachable(&first.into_iter().collect::<Vec<_>>());
    let mut brought = Marks::none(graph.entries.len());
    let reached = graph.reachable(&[landing]);
    for node in graph.oldest_first().filter(|node| reached.contains(*node) && !kept.contains(*node)) {
        brought.insert(node);
    }
    Some(brought)
}
