//! In which order the children of a node come, before anything waits for anything.

use super::{super::tree::NodeKind, Order};

impl Order<'_> {
    /// The children of a node in the order in which they come: that of the file, but tests before the
    /// implementation, last phases behind all stories, and everything behind the siblings that it says it needs.
    pub(super) fn sequence(&self, parent: Option<usize>) -> Vec<usize> {
        let mut sequence = self.family.siblings(parent).to_vec();
        self.put_tests_first(&mut sequence);
        self.put_last_phases_last(&mut sequence);
        self.follow_stated(parent, sequence)
    }

    /// Whether the plan says of any test that it waits for the implementation of its phase.
    pub(super) fn has_tests_behind(&self) -> bool {
        let is_of_both = |who: usize, on: usize| {
            self.roles[on].section.is_implementation && self.family.parents[who] == self.family.parents[on]
        };
        let mut tests = (0..self.roles.len()).filter(|at| self.roles[*at].section.is_tests);
        tests.any(|who| self.stated.needs[who].iter().any(|on| is_of_both(who, *on)))
    }

    fn put_tests_first(&self, sequence: &mut [usize]) {
        if self.keeps_tests {
            return;
        }
        let kind = |at: usize| &self.roles[at].section;
        let Some(first) = sequence.iter().position(|at| kind(*at).is_implementation) else { return };
        let Some(tests) = sequence.iter().position(|at| kind(*at).is_tests).filter(|tests| *tests > first)
        else {
            return;
        };
        let section = kind(sequence[tests]).number;
        let len = sequence[tests..].iter().take_while(|at| kind(**at).number == section).count();
        sequence[first..tests + len].rotate_right(len);
    }

    /// Puts last phases behind the stories. A further foundation starts over: "Polish" before it does not wait for the stories
    /// behind it.
    fn put_last_phases_last(&self, sequence: &mut [usize]) {
        for part in sequence.chunk_by_mut(|_, next| !self.roles[*next].is_first) {
            if let Some(last_story) = part.iter().rposition(|at| self.roles[*at].kind == NodeKind::Story) {
                part[..=last_story].sort_by_key(|at| self.roles[*at].kind == NodeKind::Last);
            }
        }
    }

    /// Sorts by what siblings themselves state about each other, otherwise as given.
    fn follow_stated(&self, parent: Option<usize>, sequence: Vec<usize>) -> Vec<usize> {
        let mut place = std::collections::HashMap::with_capacity(sequence.len());
        place.extend(sequence.iter().enumerate().map(|(rank, at)| (*at, rank)));
        let needs = |at: usize| {
            let nodes = self.stated.needs[at].iter().copied();
            let siblings =
                nodes.filter_map(|on| self.family.chain(on).find(|up| self.family.parents[*up] == parent));
            siblings.filter_map(|on| place.get(&on).copied())
        };
        let is_forward = |(rank, at): (usize, &usize)| needs(*at).any(|on| on > rank);
        if !sequence.iter().enumerate().any(is_forward) {
            return sequence;
        }
        let mut open: Vec<usize> = sequence.iter().map(|at| needs(*at).count()).collect();
        let mut next = vec![Vec::new(); sequence.len()];
        for (rank, at) in sequence.iter().enumerate() {
            needs(*at).for_each(|on| next[on].push(rank));
        }
        let mut free: std::collections::BTreeSet<usize> =
            (0..sequence.len()).filter(|at| open[*at] == 0).collect();
        let mut sorted = Vec::with_capacity(sequence.len());
        while let Some(rank) = free.pop_first() {
            sorted.push(sequence[rank]);
            for after in &next[rank] {
                open[*after] -= 1;
                if open[*after] == 0 {
                    free.insert(*after);
                }
            }
        }
        if sorted.len() < sequence.len() { sequence } else { sorted }
    }
}
