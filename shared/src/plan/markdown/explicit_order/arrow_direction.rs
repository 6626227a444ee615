//! From arrows to edges: `T001 → T002` means "then" for most people and "needs" for some, so the arrows of a section vote.

use std::collections::HashSet;

use super::{
    super::{
        name_reader::{Name, PlacedName},
        node_index::NamedNodes,
        sentences::{ArrowClaim, Force, OrderClaim},
    },
    MOST_PAIRS, Scope, Weight,
    page_reader::PageReader,
};

/// Two nodes that an arrow joins.
#[derive(Debug, Clone, Copy)]
struct Pair {
    left: usize,
    right: usize,
    at: usize,
    /// What the sides of the arrow say about the order among their members.
    scopes: (Scope, Scope),
}

impl PageReader<'_, '_, '_> {
    /// `T001 → T002` means "then" for most people and "needs" for some. In each section the direction counts in
    /// which most arrows follow the order of the file.
    pub(super) fn resolve_arrows(&mut self, arrows: &[ArrowClaim<'_>]) {
        let mut pairs: Vec<Pair> = Vec::new();
        let (general, arrows): (Vec<_>, Vec<_>) = arrows.iter().partition(|claim| is_general(claim));
        arrows.iter().for_each(|claim| self.arrow_pairs(claim, &mut pairs));
        pairs.retain(|pair| !self.hierarchy.are_nested(pair.left, pair.right));
        pairs = self.take_mutual(pairs);
        let forward = pairs.iter().filter(|pair| pair.left < pair.right).count();
        let backward = pairs.len() - forward;
        general.iter().for_each(|claim| self.general_arrow(claim, backward > forward));
        if forward == backward {
            return self.warn_of_both_readings(&pairs);
        }
        let is_then = forward > backward;
        for Pair { left, right, at, scopes } in pairs {
            let (who, on, scope) = if is_then { (right, left, scopes.1) } else { (left, right, scopes.0) };
            if (left < right) != is_then {
                self.warn_of_unclear_arrow(left, right, who, on, at);
            }
            self.edge(who, on, at, Weight::Arrow, scope);
        }
    }

    /// An arrow of which a side is "all" or "everything": the other side tells which ones are meant. It has no vote about the
    /// direction of the others.
    fn general_arrow(&mut self, ArrowClaim { left, right }: &ArrowClaim<'_>, is_needs: bool) {
        // "Phase 8 → everything else" among arrows that mean "needs".
        if is_needs && is_all(right) {
            let claim =
                OrderClaim { who: left.clone(), on: with_all(right, &Name::AllBefore), force: Force::Firm };
            return self.claim(&claim, None, Weight::Arrow);
        }
        let (left, right) = (with_all(left, &Name::AllBefore), with_all(right, &Name::AllAfter));
        let (left, right) = self.sides(&left, &right);
        for (left, at) in &left {
            for (right, _) in &right {
                self.edge(*right, *left, *at, Weight::Arrow, Scope::All);
            }
        }
    }

    /// The pairs of one arrow.
    fn arrow_pairs(&mut self, ArrowClaim { left, right }: &ArrowClaim<'_>, pairs: &mut Vec<Pair>) {
        let scope = |names: &[PlacedName<'_>]| {
            let is_range = names.iter().any(|(name, _)| matches!(name, Name::Range(..)));
            if is_range { Scope::Range } else { Scope::Few }
        };
        let scopes = (scope(left), scope(right));
        let (left, right) = self.sides(left, right);
        for (left, at) in &left {
            pairs.extend(right.iter().map(|(right, _)| Pair { left: *left, right: *right, at: *at, scopes }));
        }
    }

    /// The nodes on both sides of an arrow; none if these are too many.
    fn sides(&mut self, left: &[PlacedName<'_>], right: &[PlacedName<'_>]) -> (NamedNodes, NamedNodes) {
        self.note_near(None, [left, right]);
        let first = self.known.nodes(right).into_iter().min();
        let left = self.nodes(left, first, Force::Firm);
        let right = self.nodes(right, left.iter().map(|(at, _)| *at).max(), Force::Firm);
        if left.len() * right.len() > MOST_PAIRS { (Vec::new(), Vec::new()) } else { (left, right) }
    }

    /// Who writes "T003 → T012" and "T012 → T003" means "then" once and "needs" once: the order of the file tells.
    fn take_mutual(&mut self, pairs: Vec<Pair>) -> Vec<Pair> {
        let both: HashSet<(usize, usize)> = pairs.iter().map(|pair| (pair.left, pair.right)).collect();
        let is_mutual = |pair: &Pair| both.contains(&(pair.right, pair.left));
        let (mutual, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(is_mutual);
        for Pair { left, right, at, .. } in mutual {
            self.edge(left.max(right), left.min(right), at, Weight::Arrow, Scope::Few);
        }
        others
    }

    fn warn_of_unclear_arrow(&mut self, left: usize, right: usize, who: usize, on: usize, at: usize) {
        let id = |at: usize| &self.found.drafts[at].task.id;
        let what = format!(
            "the arrow '{} → {}' points against the order of the file; as most arrows here are meant, '{}' waits for '{}'",
            id(left),
            id(right),
            id(who),
            id(on)
        );
        let fix = format!("write '{} depends on {}'", id(who), id(on));
        self.found.warnings.push(self.page.file.1.problem(at, what, fix));
    }

    fn warn_of_both_readings(&mut self, pairs: &[Pair]) {
        let Some(Pair { left, right, at, .. }) = pairs.first().copied() else { return };
        let id = |at: usize| &self.found.drafts[at].task.id;
        let what = format!(
            "arrows point both ways: read as 'then', '{0} → {1}' lets '{1}' wait for '{0}'; read as 'needs', '{0}' waits for '{1}'",
            id(left),
            id(right)
        );
        let fix = format!("let all arrows point one way, or write '{} depends on {}'", id(right), id(left));
        self.found.warnings.push(self.page.file.1.problem(at, what, fix));
    }
}

/// These names, with "all" and "everything" meant as `all`.
fn with_all<'a>(names: &[PlacedName<'a>], all: &Name<'a>) -> Vec<PlacedName<'a>> {
    let mut names = names.to_vec();
    let is_all = |name: &Name<'_>| matches!(name, Name::AllBefore | Name::AllAfter);
    names.iter_mut().filter(|(name, _)| is_all(name)).for_each(|(name, _)| *name = all.clone());
    names
}

fn is_all(names: &[PlacedName<'_>]) -> bool {
    names.iter().any(|(name, _)| matches!(name, Name::AllBefore | Name::AllAfter))
}

/// Whether a side of an arrow is "all", or it leads to all stories.
fn is_general(ArrowClaim { left, right }: &ArrowClaim<'_>) -> bool {
    is_all(left) || is_all(right) || right.iter().any(|(name, _)| *name == Name::AllStories)
}
