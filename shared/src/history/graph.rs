//! The order of commits, by ancestry alone. Most histories are one chain, in which order is position; in others
//! ancestry is followed.

use std::collections::HashMap;

use super::event::HistoryEntry;
use crate::name::Oid;

/// The commits of a walk in their order. Nodes are indices into the entries.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) entries: Vec<HistoryEntry>,
    shape: Shape,
}

#[derive(Debug)]
enum Shape {
    /// Each entry is the only parent of the one before it; the last entry is the oldest.
    Chain,
    /// Anything else: parents as indices, and all nodes with ancestors first.
    Web { parents: Vec<Vec<u32>>, order: Vec<u32>, rank: Vec<u32> },
}

impl Graph {
    pub(super) fn new(entries: Vec<HistoryEntry>) -> Self {
        let shape = if is_chain(&entries) { Shape::Chain } else { web(&entries) };
        Self { entries, shape }
    }

    /// Whether only the oldest entry can have parents that are not among the entries.
    pub(super) fn is_chain(&self) -> bool {
        matches!(self.shape, Shape::Chain)
    }

    pub(super) fn find(&self, id: Oid) -> Option<u32> {
        self.entries.iter().position(|entry| entry.id == id).map(index)
    }

    /// All nodes, each after its ancestors.
    pub(super) fn oldest_first(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match &self.shape {
            Shape::Chain => Box::new((0..index(self.entries.len())).rev()),
            Shape::Web { order, .. } => Box::new(order.iter().copied()),
        }
    }

    pub(super) fn entry(&self, node: u32) -> &HistoryEntry {
        &self.entries[node as usize]
    }

    /// The position of each node among all, after its ancestors.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.entries.len()];
        self.oldest_first().enumerate().for_each(|(place, node)| places[node as usize] = place);
        places
    }

    /// The node's parents within the walk.
    pub(super) fn parents(&self, node: u32) -> impl Iterator<Item = u32> {
        let (one, many) = match &self.shape {
            Shape::Chain => ((node + 1 < index(self.entries.len())).then_some(node + 1), [].as_slice()),
            Shape::Web { parents, .. } => (None, parents[node as usize].as_slice()),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// The first parent, if it is part of the walk.
    pub(super) fn first_parent(&self, node: u32) -> Option<u32> {
        let id = self.entry(node).first_parent?;
        self.parents(node).find(|parent| self.entry(*parent).id == id)
    }

    /// Whether `old` is `new` or one of its ancestors.
    pub(super) fn is_ancestor(&self, old: u32, new: u32) -> bool {
        let Shape::Web { parents, rank, .. } = &self.shape else {
            return old >= new;
        };
        let mut seen = Marks::none(self.entries.len());
        let mut open = vec![new];
        while let Some(node) = open.pop() {
            if node == old {
                return true;
            }
            let is_later = |parent: &&u32| rank[**parent as usize] >= rank[old as usize];
            open.extend(
                parents[node as usize].iter().filter(is_later).filter(|parent| seen.insert(**parent)),
            );
        }
        false
    }

    /// The nodes that are reachable from `starts`, including these.
    pub(super) fn reachable(&self, starts: &[u32]) -> Marks {
        let mut marks = Marks::none(self.entries.len());
        let mut open: Vec<u32> = starts.to_vec();
        while let Some(node) = open.pop() {
            if marks.insert(node) {
                open.extend(self.parents(node));
            }
        }
        marks
    }

    /// For each group, the nodes that no other node of the group descends from. One is the newest; more are a fork.
    pub(super) fn newest(&self, groups: usize, group_of: impl Fn(u32) -> Option<usize>) -> Vec<Vec<u32>> {
        let mut newest = vec![Vec::new(); groups];
        if self.is_chain() {
            for node in self.newest_first() {
                if let Some(first) =
                    group_of(node).map(|group| &mut newest[group]).filter(|known| known.is_empty())
                {
                    first.push(node);
                }
            }
            return newest;
        }
        let mut later: Vec<Option<Groups>> = vec![None; self.entries.len()];
        for node in self.newest_first() {
            let mut seen = later[node as usize].take().unwrap_or_else(|| Groups::none(groups));
            if let Some(group) = group_of(node)
                && seen.insert(group)
            {
                newest[group].push(node);
            }
            self.pass_down(node, seen, &mut later);
        }
        newest
    }

    /// Passes the groups that were seen at a node or later on to its parents.
    fn pass_down(&self, node: u32, seen: Groups, later: &mut [Option<Groups>]) {
        let mut parents = self.parents(node).peekable();
        while let Some(parent) = parents.next() {
            match &mut later[parent as usize] {
                Some(known) => known.join(&seen),
                empty if parents.peek().is_none() => {
                    *empty = Some(seen);
                    return;
                }
                empty => *empty = Some(seen.clone()),
            }
        }
    }

    fn newest_first(&self) -> Box<dyn Iterator<Item = u32> + '_> {
        match &self.shape {
            Shape::Chain => Box::new(0..index(self.entries.len())),
            Shape::Web { order, .. } => Box::new(order.iter().rev().copied()),
        }
    }
}

/// A set of groups, as bits.
#[derive(Debug, Clone)]
struct Groups(Vec<u64>);

impl Groups {
    fn none(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    /// Returns true if it is new.
    fn insert(&mut self, group: usize) -> bool {
        let (word, bit) = (&mut self.0[group / 64], 1 << (group % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }
}

fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_chain(entries: &[HistoryEntry]) -> bool {
    entries.iter().all(|entry| entry.more_parents.is_empty())
        && entries.windows(2).all(|pair| pair[0].first_parent == Some(pair[1].id))
}

fn web(entries: &[HistoryEntry]) -> Shape {
    let places: HashMap<Oid, u32> =
        entries.iter().enumerate().map(|(at, entry)| (entry.id, index(at))).collect();
    let known = |entry: &HistoryEntry| entry.parents().filter_map(|id| places.get(&id).copied()).collect();
    let parents: Vec<Vec<u32>> = entries.iter().map(known).collect();
    let order = ancestors_first(&parents);
    let mut rank = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(node, place)| rank[*node as usize] = place);
    Shape::Web { parents, order, rank }
}

/// Kahn's algorithm from the tips down, reversed.
fn ancestors_first(parents: &[Vec<u32>]) -> Vec<u32> {
    let mut children = vec![0u32; parents.len()];
    parents.iter().flatten().for_each(|parent| children[*parent as usize] += 1);
    let mut open: Vec<u32> = (0..index(parents.len())).filter(|node| children[*node as usize] == 0).collect();
    let mut order = Vec::with_capacity(parents.len());
    while let Some(node) = open.pop() {
        order.push(node);
        for parent in &parents[node as usize] {
            let left = &mut children[*parent as usize];
            *left -= 1;
            if *left == 0 {
                open.push(*parent);
            }
        }
    }
    order.reverse();
    order
}

/// A set of nodes.
#[derive(Debug, Clone)]
pub(super) struct Marks(Vec<bool>);

impl Marks {
    pub(super) fn none(len: usize) -> Self {
        Self(vec![false; len])
    }

    pub(super) fn contains(&self, node: u32) -> bool {
        self.0[node as usize]
    }

    /// Returns true if it is new.
    pub(super) fn insert(&mut self, node: u32) -> bool {
        !std::mem::replace(&mut self.0[node as usize], true)
    }
}
