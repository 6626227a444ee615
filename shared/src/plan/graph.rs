//! What waits for what, over the whole tree, in time linear in tasks and declared dependencies.
//!
//! Every node has two gates, its start and its end. A phase's start opens those of its children, their ends
//! open its end, and a dependency leads from one node's end to another's start. So "all leaves of a phase"
//! costs one edge, not one for each pair of leaves.

use std::{cmp::Reverse, collections::BinaryHeap};

/// The nodes of a tree by position, parents before children.
#[derive(Debug, Default)]
pub(super) struct TreeShape {
    /// The parent of each node.
    pub(super) parents: Vec<Option<usize>>,
    /// Who waits for whom, as declared.
    pub(super) needs: Vec<(usize, usize)>,
    /// Which nodes have no children.
    pub(super) leaves: Vec<bool>,
}

/// The gates in an order in which each comes after those that it waits for.
#[derive(Debug)]
pub(super) struct Flow {
    gates: Vec<usize>,
    next: Edges,
    leaves: Vec<bool>,
}

pub(super) fn start(node: usize) -> usize {
    2 * node
}

pub(super) fn end(node: usize) -> usize {
    2 * node + 1
}

fn node(gate: usize) -> usize {
    gate / 2
}

fn is_start(gate: usize) -> bool {
    gate.is_multiple_of(2)
}

impl TreeShape {
    fn edges(&self) -> Edges {
        let mut pairs = Vec::with_capacity(3 * self.parents.len() + self.needs.len());
        for (child, parent) in self.parents.iter().enumerate() {
            if let Some(parent) = *parent {
                pairs.push((start(parent), start(child)));
                pairs.push((end(child), end(parent)));
            }
            if self.leaves[child] {
                pairs.push((start(child), end(child)));
            }
        }
        pairs.extend(self.needs.iter().map(|(who, on)| (end(*on), start(*who))));
        Edges::new(2 * self.parents.len(), &pairs)
    }

    /// Kahn's algorithm; among leaves that could come next, the first in the tree does. If nodes wait for each
    /// other, the error is one such circle, each node waiting for the one after it.
    pub(super) fn sort(self) -> Result<Flow, Vec<usize>> {
        let next = self.edges();
        let mut waits = count_waits(&next);
        let mut queue = Queue::default();
        waits
            .iter()
            .enumerate()
            .filter(|(_, count)| **count == 0)
            .for_each(|(gate, _)| queue.add(gate, &self));
        let mut gates = Vec::with_capacity(next.gates());
        while let Some(gate) = queue.take() {
            gates.push(gate);
            for after in next.of(gate) {
                waits[*after] -= 1;
                if waits[*after] == 0 {
                    queue.add(*after, &self);
                }
            }
        }
        if gates.len() < next.gates() {
            return Err(find_circle(&next, &waits));
        }
        Ok(Flow { gates, next, leaves: self.leaves })
    }
}

fn count_waits(next: &Edges) -> Vec<usize> {
    let mut waits = vec![0; next.gates()];
    next.ends.iter().for_each(|after| waits[*after] += 1);
    waits
}

/// Gates that are open. Those of phases cost nothing and go first; leaves start by position.
#[derive(Debug, Default)]
struct Queue {
    free: Vec<usize>,
    leaves: BinaryHeap<Reverse<usize>>,
}

impl Queue {
    fn add(&mut self, gate: usize, shape: &TreeShape) {
        if is_start(gate) && shape.leaves[node(gate)] {
            self.leaves.push(Reverse(gate));
        } else {
            self.free.push(gate);
        }
    }

    fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| self.leaves.pop().map(|Reverse(gate)| gate))
    }
}

/// Every gate that is still closed waits for another closed one, so walking back must come round.
fn find_circle(next: &Edges, waits: &[usize]) -> Vec<usize> {
    let mut before = vec![usize::MAX; next.gates()];
    for gate in (0..next.gates()).filter(|gate| waits[*gate] > 0) {
        next.of(gate).iter().for_each(|after| before[*after] = gate);
    }
    let mut seen_at = vec![usize::MAX; next.gates()];
    let mut path = Vec::new();
    let mut gate = waits.iter().position(|count| *count > 0).unwrap_or_default();
    while seen_at[gate] == usize::MAX {
        seen_at[gate] = path.len();
        path.push(gate);
        gate = before[gate];
    }
    let mut circle: Vec<usize> = path[seen_at[gate]..].iter().map(|gate| node(*gate)).collect();
    circle.dedup();
    if circle.len() > 1 && circle.first() == circle.last() {
        circle.pop();
    }
    let first = (0..circle.len()).min_by_key(|at| circle[*at]).unwrap_or_default();
    circle.rotate_left(first);
    circle
}

/// Adds the members of a sorted list to another, up to a few.
fn join(all: &mut Vec<usize>, more: &[usize]) {
    const MAX_MEMBERS: usize = 16;
    for node in more {
        if let Err(place) = all.binary_search(node) {
            all.insert(place, *node);
        }
    }
    all.truncate(MAX_MEMBERS);
}

impl Flow {
    /// The leaves in order.
    pub(super) fn order(&self) -> impl Iterator<Item = usize> {
        self.gates
            .iter()
            .filter(|gate| is_start(**gate))
            .map(|gate| node(*gate))
            .filter(|node| self.leaves[*node])
    }

    /// For each node, how many unsettled leaves stand one after the other before it can start.
    pub(super) fn depths(&self, is_settled: impl Fn(usize) -> bool) -> Vec<usize> {
        self.fold(|leaf, depth| depth + usize::from(!is_settled(leaf)))
    }

    /// For each node that is done, the nodes that are not and that it waits for, through whatever else is done; by
    /// position. The first few are enough to say that it waits, and keep this linear.
    pub(super) fn passed_on(&self, is_done: &[bool]) -> Vec<Vec<usize>> {
        let mut open: Vec<Vec<usize>> = vec![Vec::new(); self.next.gates()];
        for gate in &self.gates {
            let own = node(*gate);
            if !is_start(*gate) && !is_done[own] {
                open[*gate] = vec![own];
            }
            let passed = std::mem::take(&mut open[*gate]);
            self.next.of(*gate).iter().for_each(|after| join(&mut open[*after], &passed));
            open[*gate] = passed;
        }
        let end_of = |at: usize| std::mem::take(&mut open[end(at)]);
        (0..is_done.len()).map(end_of).collect()
    }

    /// Carries a number through the gates. What comes to a node is the largest of what leaves those it waits
    /// for; `through` says what leaves a leaf. Gives what comes to each node.
    pub(super) fn fold(&self, through: impl Fn(usize, usize) -> usize) -> Vec<usize> {
        let mut value = vec![0; self.next.gates()];
        for gate in &self.gates {
            let own = node(*gate);
            if !is_start(*gate) && self.leaves[own] {
                value[*gate] = through(own, value[start(own)]);
            }
            for after in self.next.of(*gate) {
                value[*after] = value[*after].max(value[*gate]);
            }
        }
        value.into_iter().step_by(2).collect()
    }
}

/// Edges by where they begin, in one list: a list for each gate would cost more than all the rest.
#[derive(Debug)]
pub(super) struct Edges {
    starts: Vec<usize>,
    pub(super) ends: Vec<usize>,
}

impl Edges {
    pub(super) fn new(gates: usize, pairs: &[(usize, usize)]) -> Self {
        let mut starts = vec![0; gates + 1];
        pairs.iter().for_each(|(from, _)| starts[from + 1] += 1);
        for gate in 0..gates {
            starts[gate + 1] += starts[gate];
        }
        let mut free = starts.clone();
        let mut ends = vec![0; pairs.len()];
        for (from, to) in pairs {
            ends[free[*from]] = *to;
            free[*from] += 1;
        }
        Self { starts, ends }
    }

    pub(super) fn gates(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn of(&self, gate: usize) -> &[usize] {
        &self.ends[self.starts[gate]..self.starts[gate + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree from `(parent, needs)` by position.
    fn shape(nodes: &[(Option<usize>, &[usize])]) -> TreeShape {
        TreeShape {
            parents: nodes.iter().map(|(parent, _)| *parent).collect(),
            needs: (0..nodes.len()).flat_map(|at| nodes[at].1.iter().map(move |need| (at, *need))).collect(),
            leaves: (0..nodes.len()).map(|at| nodes.iter().all(|(parent, _)| *parent != Some(at))).collect(),
        }
    }

    fn order(nodes: &[(Option<usize>, &[usize])]) -> Result<Vec<usize>, Vec<usize>> {
        shape(nodes).sort().map(|flow| flow.order().collect())
    }

    #[test]
    fn ties_are_broken_by_position() {
        assert_eq!(order(&[(None, &[3]), (None, &[]), (None, &[]), (None, &[])]), Ok(vec![1, 2, 3, 0]));
    }

    #[test]
    fn dependencies_on_a_phase_mean_all_its_tasks_and_those_of_a_phase_are_inherited() {
        let nodes: &[(Option<usize>, &[usize])] =
            &[(None, &[3]), (Some(0), &[]), (Some(0), &[]), (None, &[]), (Some(3), &[]), (Some(3), &[4])];
        assert_eq!(order(nodes), Ok(vec![4, 5, 1, 2]));
        assert_eq!(shape(nodes).sort().unwrap().depths(|_| false), [2, 2, 2, 0, 0, 1]);
        assert_eq!(shape(nodes).sort().unwrap().depths(|at| at == 5), [1, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn a_cycle_is_reported_as_a_path_that_begins_with_its_first_node() {
        assert_eq!(order(&[(None, &[]), (None, &[3]), (None, &[1]), (None, &[2])]), Err(vec![1, 3, 2]));
        assert_eq!(order(&[(None, &[0])]), Err(vec![0]));
        assert_eq!(order(&[(None, &[]), (Some(0), &[0])]), Err(vec![0, 1]));
    }
}
