//! An order of nodes that grows edge by edge and never gets a circle.
//!
//! This is the algorithm of Pearce and Kelly for dynamic topological order: an edge that agrees with the current
//! order costs nothing, and one that does not only touches the nodes between its ends. Nearly all edges of a plan
//! lead down the file, so reading a plan stays linear.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::graph::{Edges, end, start};

/// Nodes with their children, each with a start and an end, in an order that holds every edge added so far.
#[derive(Debug)]
pub(super) struct Precedence {
    next: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
    /// The position of each gate in the order.
    rank: Vec<u32>,
    seen: Vec<u32>,
    round: u32,
}

impl Precedence {
    /// The order of the document. `children` holds the children of each node, `roots` the nodes without parent.
    pub(super) fn new(children: &[Vec<usize>], roots: &[usize]) -> Self {
        let gates = 2 * children.len();
        let mut order = Self {
            next: vec![Vec::new(); gates],
            before: vec![Vec::new(); gates],
            rank: vec![0; gates],
            seen: vec![0; gates],
            round: 0,
        };
        let mut rank = 0;
        let mut open: Vec<(usize, bool)> = roots.iter().rev().map(|node| (*node, false)).collect();
        while let Some((node, is_end)) = open.pop() {
            order.rank[if is_end { end(node) } else { start(node) }] = rank;
            rank += 1;
            if is_end {
                continue;
            }
            open.push((node, true));
            if children[node].is_empty() {
                order.link(start(node), end(node));
            }
            for child in children[node].iter().rev() {
                order.link(start(node), start(*child));
                order.link(end(*child), end(node));
                open.push((*child, false));
            }
        }
        order
    }

    /// Begins with an order that holds all of these edges, each that one node waits for another, if there is such an order
    /// and many of them lead up the file: moving nodes edge by edge would take the square of a list that is written last
    /// task first.
    pub(super) fn prefer(&mut self, needs: impl Iterator<Item = (usize, usize)>) {
        const MANY: usize = 64;
        let mut pairs: Vec<(usize, usize)> = needs.map(|(who, on)| (end(on), start(who))).collect();
        let leads_up = |(from, to): &&(usize, usize)| self.rank[*from] >= self.rank[*to];
        if pairs.iter().filter(leads_up).count() <= MANY {
            return;
        }
        let own = self.next.iter().enumerate();
        pairs.extend(own.flat_map(|(from, next)| next.iter().map(move |to| (from, *to as usize))));
        let edges = Edges::new(self.rank.len(), &pairs);
        let mut waits = vec![0usize; self.rank.len()];
        edges.ends.iter().for_each(|to| waits[*to] += 1);
        let free = (0..waits.len()).filter(|gate| waits[*gate] == 0);
        let mut open: BinaryHeap<Reverse<(u32, usize)>> =
            free.map(|gate| Reverse((self.rank[gate], gate))).collect();
        let mut order = Vec::with_capacity(waits.len());
        while let Some(Reverse((_, gate))) = open.pop() {
            order.push(gate);
            for to in edges.of(gate) {
                waits[*to] -= 1;
                if waits[*to] == 0 {
                    open.push(Reverse((self.rank[*to], *to)));
                }
            }
        }
        if order.len() == self.rank.len() {
            order.into_iter().zip(0..).for_each(|(gate, rank)| self.rank[gate] = rank);
        }
    }

    fn link(&mut self, from: usize, to: usize) {
        self.next[from].push(gate(to));
        self.before[to].push(gate(from));
    }

    /// Adds that `who` waits for `on`, unless that would close a circle.
    pub(super) fn try_add(&mut self, who: usize, on: usize) -> bool {
        let (from, to) = (end(on), start(who));
        if self.rank[from] >= self.rank[to] && !self.make_room(from, to) {
            return false;
        }
        self.link(from, to);
        true
    }

    /// Moves `to`, and what must follow it, after `from`. False if `from` must itself follow `to`.
    fn make_room(&mut self, from: usize, to: usize) -> bool {
        let (low, high) = (self.rank[to], self.rank[from]);
        let Some(after) = self.reach(to, |rank| rank <= high, Direction::Forward, Some(from)) else {
            return false;
        };
        let Some(before) = self.reach(from, |rank| rank >= low, Direction::Backward, None) else {
            return false;
        };
        let mut moved: Vec<u32> = before.iter().chain(&after).map(|gate| self.rank[*gate]).collect();
        moved.sort_unstable();
        let by_rank = |order: &Self, mut gates: Vec<usize>| {
            gates.sort_by_key(|gate| order.rank[*gate]);
            gates
        };
        let in_order: Vec<usize> = by_rank(self, before).into_iter().chain(by_rank(self, after)).collect();
        for (gate, rank) in in_order.into_iter().zip(moved) {
            self.rank[gate] = rank;
        }
        true
    }

    /// Everything that can be reached from a gate within some ranks; `None` if `forbidden` can.
    fn reach(
        &mut self,
        first: usize,
        is_within: impl Fn(u32) -> bool,
        direction: Direction,
        forbidden: Option<usize>,
    ) -> Option<Vec<usize>> {
        self.round += 1;
        let mut found = vec![first];
        self.seen[first] = self.round;
        let mut at = 0;
        while at < found.len() {
            if forbidden == Some(found[at]) {
                return None;
            }
            let links = match direction {
                Direction::Forward => &self.next[found[at]],
                Direction::Backward => &self.before[found[at]],
            };
            for gate in links.iter().map(|gate| *gate as usize) {
                if self.seen[gate] != self.round && is_within(self.rank[gate]) {
                    self.seen[gate] = self.round;
                    found.push(gate);
                }
            }
            at += 1;
        }
        Some(found)
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

/// Gates are counted in 32 bits: a plan file that had more nodes would not fit into memory as text.
fn gate(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_that_would_close_a_cycle_is_refused_and_all_others_are_accepted() {
        // 0 and 3 are phases with the children 1, 2 and 4.
        let children = [vec![1, 2], vec![], vec![], vec![4], vec![]];
        let mut order = Precedence::new(&children, &[0, 3]);
        assert!(order.try_add(2, 1));
        assert!(order.try_add(2, 4), "a task may wait for a later phase's task");
        assert!(!order.try_add(3, 0), "then that phase cannot wait for the whole phase of the task");
        assert!(order.try_add(3, 1));
        assert!(!order.try_add(1, 4));
        assert!(!order.try_add(1, 1));
        assert!(!order.try_add(1, 0), "a task cannot wait for its own phase");
    }
}
