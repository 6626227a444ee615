//! Leaves out events that lack what they need: a task is complete only after the approved review of the same attempt,
//! and a landing counts only if it lands a complete task. A commit alone proves nothing, because any process can write
//! one.

use super::{Event, graph::Graph, reverts::RevertVerdict};
use crate::{git::Repository, message::Status, name::Oid};

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
    pub(super) fn prove(self, graph: &Graph, verdict: RevertVerdict) -> (RevertVerdict, bool) {
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
