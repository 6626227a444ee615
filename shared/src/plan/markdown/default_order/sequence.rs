//! In which order the children of a node come before anything waits for anything, and which of them may run in parallel with each
//! other.

use super::{super::tree::NodeKind, ImpliedOrder};

impl ImpliedOrder<'_> {
    /// The children of a node in the order in which they come: that of the file, but tests before the
    /// implementation, last phases after all stories, and everything after the siblings that it says it needs.
    pub(super) fn sequence(&self, parent: Option<usize>) -> Vec<usize> {
        let mut sequence = self.hierarchy.siblings(parent).to_vec();
        self.put_tests_first(&mut sequence);
        self.put_last_phases_last(&mut sequence);
        self.follow_stated(parent, sequence)
    }

    /// Whether the plan says of any test that it waits for the implementation of its phase.
    pub(super) fn has_tests_behind(&self) -> bool {
        let is_of_both = |who: usize, on: usize| {
            self.roles[on].section.is_implementation
                && self.hierarchy.parents[who] == self.hierarchy.parents[on]
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

    /// Puts last phases after the stories. A further foundation starts over: "Polish" before it does not wait for the stories
    /// after it.
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
            let siblings = nodes
                .filter_map(|on| self.hierarchy.chain(on).find(|up| self.hierarchy.parents[*up] == parent));
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

/// How many tasks are looked at in all to find those that may run in parallel; after that, waiting is the safe answer.
const MOST_STEPS: usize = 200_000;

impl ImpliedOrder<'_> {
    /// Whether a node need not wait for another: the plan says so of the two, or of what the other waits for.
    pub(super) fn is_independent_of(&self, who: usize, on: usize) -> bool {
        /// How many tasks are looked at; after that, waiting is the safe answer.
        const FAR: usize = 32;
        let is_apart = |first: usize| self.stated.unrelated.contains(&(who, first));
        if !self.has_unrelated[who] {
            return self.is_of_other_chain(who, on);
        }
        if is_apart(on) || self.stated.needs[on].iter().any(|first| is_apart(*first)) {
            return true;
        }
        // Among tasks of one phase, who runs in parallel with one cannot wait for what waits for that one.
        let is_sibling = |at: usize| self.hierarchy.parents[at] == self.hierarchy.parents[who];
        if self.roles[who].kind != NodeKind::Task || !is_sibling(on) {
            return false;
        }
        let mut seen = vec![on];
        let mut at = 0;
        while at < seen.len() && seen.len() < FAR && self.steps_back.get() < MOST_STEPS {
            let before = self.before[seen[at]].iter().chain(&self.stated.needs[seen[at]]);
            for first in before.copied().filter(|first| is_sibling(*first)) {
                if is_apart(first) {
                    return true;
                }
                self.steps_back.set(self.steps_back.get() + 1);
                if !seen.contains(&first) {
                    seen.push(first);
                }
            }
            at += 1;
        }
        false
    }

    /// Whether two tasks of a phase continue lines of work that begin independently: "T021 and T025 are independent", where T022
    /// depends on T021 and T026 on T025. A task that names nothing of its phase keeps the order of the file.
    fn is_of_other_chain(&self, who: usize, on: usize) -> bool {
        let is_task = self.roles[who].kind == NodeKind::Task && self.roles[on].kind == NodeKind::Task;
        if self.stated.unrelated.is_empty()
            || !is_task
            || self.hierarchy.parents[who] != self.hierarchy.parents[on]
        {
            return false;
        }
        let Some(own) = self.chain_heads(who) else { return false };
        let is_head = || Some(vec![on]).filter(|_| self.is_continued[on]);
        let Some(others) = self.chain_heads(on).or_else(is_head) else { return false };
        own.iter().all(|own| others.iter().all(|other| self.stated.unrelated.contains(&(*own, *other))))
    }

    /// The first tasks of the lines of work that a task continues by what is stated within its phase; `None` if it continues none.
    fn chain_heads(&self, at: usize) -> Option<Vec<usize>> {
        /// How many tasks are looked at; after that, waiting is the safe answer.
        const FAR: usize = 32;
        let siblings = |at: usize| {
            let parent = self.hierarchy.parents[at];
            self.stated.needs[at].iter().copied().filter(move |on| self.hierarchy.parents[*on] == parent)
        };
        let (mut seen, mut heads) = (vec![at], Vec::new());
        let mut next = 0;
        while next < seen.len() {
            let before = seen.len();
            let is_head = siblings(seen[next]).next().is_none();
            for on in siblings(seen[next]) {
                if !seen.contains(&on) {
                    seen.push(on);
                }
            }
            self.steps_back.set(self.steps_back.get() + seen.len() - before + 1);
            if seen.len() > FAR || self.steps_back.get() > MOST_STEPS {
                return None;
            }
            if is_head {
                heads.push(seen[next]);
            }
            next += 1;
        }
        (heads != [at]).then_some(heads)
    }
}
