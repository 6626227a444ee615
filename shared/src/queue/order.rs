//! The order of tickets: dependencies first, then urgency, then time of completion. Pure.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet},
};

use super::{Priority, Ticket};
use crate::name::TaskId;

/// Tickets in the order in which they are tried.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct QueueOrder {
    /// The indexes of tickets that can land, each after everything that it needs.
    pub ready: Vec<usize>,
    /// Tickets that need something that has neither landed nor comes before them, and what they need.
    pub held: Vec<(usize, Vec<TaskId>)>,
}

/// Sort key: smaller ones come first.
type Rank<'a> = (Priority, i64, i64, &'a TaskId, usize);

fn rank(ticket: &Ticket, at: usize, now: i64) -> Rank<'_> {
    (ticket.priority.after(now - ticket.added), ticket.finished, ticket.added, &ticket.task, at)
}

/// Orders those of `tickets` for which `is_open` is true.
#[must_use]
pub fn arrange(
    tickets: &[Ticket],
    is_open: impl Fn(&Ticket) -> bool,
    landed: &HashSet<TaskId>,
    now: i64,
) -> QueueOrder {
    let open: Vec<usize> = (0..tickets.len()).filter(|at| is_open(&tickets[*at])).collect();
    let mut missing: HashMap<usize, HashSet<&TaskId>> = HashMap::new();
    let mut waiters: HashMap<&TaskId, Vec<usize>> = HashMap::new();
    let mut heap = BinaryHeap::new();
    for at in &open {
        let needs: HashSet<&TaskId> =
            tickets[*at].needs.iter().filter(|need| !landed.contains(*need)).collect();
        if needs.is_empty() {
            heap.push(Reverse(rank(&tickets[*at], *at, now)));
            continue;
        }
        needs.iter().for_each(|need| waiters.entry(need).or_default().push(*at));
        missing.insert(*at, needs);
    }
    let mut order = QueueOrder::default();
    while let Some(Reverse((.., at))) = heap.pop() {
        order.ready.push(at);
        for waiter in waiters.remove(&tickets[at].task).unwrap_or_default() {
            let Some(needs) = missing.get_mut(&waiter) else { continue };
            needs.remove(&tickets[at].task);
            if needs.is_empty() {
                missing.remove(&waiter);
                heap.push(Reverse(rank(&tickets[waiter], waiter, now)));
            }
        }
    }
    order.held = open
        .iter()
        .filter_map(|at| {
            let mut needs: Vec<TaskId> = missing.remove(at)?.into_iter().cloned().collect();
            needs.sort();
            Some((*at, needs))
        })
        .collect();
    order
}
