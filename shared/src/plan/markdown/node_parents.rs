//! The tree of a plan's nodes by position: parents, children and roots.

use crate::{name::TaskId, plan::assemble::DraftNode};

/// Who belongs to whom, by position.
pub(super) struct NodeParents {
    pub(super) parents: Vec<Option<usize>>,
    pub(super) children: Vec<Vec<usize>>,
    pub(super) roots: Vec<usize>,
}

impl NodeParents {
    pub(super) fn new(drafts: &[DraftNode], position: impl Fn(&TaskId) -> Option<usize>) -> Self {
        let parents: Vec<Option<usize>> =
            drafts.iter().map(|draft| draft.task.parent.as_ref().and_then(&position)).collect();
        let mut children = vec![Vec::new(); drafts.len()];
        let mut roots = Vec::new();
        for (at, parent) in parents.iter().enumerate() {
            parent.map_or(&mut roots, |parent| &mut children[parent]).push(at);
        }
        Self { parents, children, roots }
    }

    /// Whether one of two nodes is the other or inside it.
    pub(super) fn are_nested(&self, one: usize, other: usize) -> bool {
        let is_above = |top: usize, below: usize| self.chain(below).any(|at| at == top);
        is_above(one, other) || is_above(other, one)
    }

    /// A node and those around it, innermost first.
    pub(super) fn chain(&self, at: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(at), |at| self.parents[*at])
    }

    pub(super) fn siblings(&self, parent: Option<usize>) -> &[usize] {
        parent.map_or(&self.roots, |parent| &self.children[parent])
    }
}
