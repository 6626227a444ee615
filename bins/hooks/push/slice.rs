//! A part of a history that is walked once, so that many questions about it need no further walk.

use std::collections::{HashMap, HashSet};

use arborist_core::{git::RawCommit, name::Oid};

/// Commits in git's order, with their parents.
#[derive(Debug, Default)]
pub(super) struct Slice {
    places: HashMap<Oid, usize>,
    commits: Vec<(Oid, Vec<Oid>)>,
}

impl Slice {
    pub(super) fn add(&mut self, commit: &RawCommit) {
        self.places.insert(commit.id, self.commits.len());
        self.commits.push((commit.id, commit.parents().collect()));
    }

    /// The commits of the slice that are reachable from `tip` within it, in git's order.
    pub(super) fn below(&self, tip: Oid) -> Vec<Oid> {
        let mut places: Vec<usize> = self.reached_from(tip).into_iter().collect();
        places.sort_unstable();
        places.into_iter().map(|place| self.commits[place].0).collect()
    }

    /// Whether the slice proves that `old` is an ancestor of `new`. If not, it may still be one.
    pub(super) fn leads(&self, new: Oid, old: Oid) -> bool {
        let reached = self.reached_from(new);
        reached.into_iter().any(|place| self.commits[place].1.contains(&old))
    }

    fn reached_from(&self, tip: Oid) -> HashSet<usize> {
        let mut reached = HashSet::new();
        let mut open: Vec<usize> = self.places.get(&tip).copied().into_iter().collect();
        while let Some(place) = open.pop() {
            if reached.insert(place) {
                open.extend(self.commits[place].1.iter().filter_map(|parent| self.places.get(parent)));
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> Oid {
        digit.to_string().repeat(40).parse().unwrap()
    }

    #[test]
    fn a_slice_knows_what_stands_below_and_where_it_leads() {
        let mut slice = Slice::default();
        for (commit, parents) in [('5', "43"), ('4', "2"), ('3', "1"), ('7', "6")] {
            let parents: String = parents.chars().map(|parent| format!("parent {}\n", id(parent))).collect();
            slice.add(&RawCommit::new(id(commit), format!("tree x\n{parents}\n").into_bytes()));
        }
        assert_eq!(slice.below(id('5')), ['5', '4', '3'].map(id));
        assert_eq!(slice.below(id('1')), []);
        assert!(slice.leads(id('5'), id('1')) && slice.leads(id('4'), id('2')));
        assert!(!slice.leads(id('4'), id('1')) && !slice.leads(id('5'), id('6')));
    }
}
