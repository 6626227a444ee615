//! Which nodes may run beside each other, by what the plan says of them or of what they continue.

use super::{super::tree::NodeKind, Order};

/// How many tasks are looked at in all to find those that may run beside each other; behind that, waiting is the safe answer.
const MOST_STEPS: usize = 200_000;

impl Order<'_> {
    /// Whether a node need not wait for another: the plan says so of the two, or of what the other waits for.
    pub(super) fn is_beside(&self, who: usize, on: usize) -> bool {
        /// How many tasks are looked at; behind that, waiting is the safe answer.
        const FAR: usize = 32;
        let is_apart = |first: usize| self.stated.unrelated.contains(&(who, first));
        if !self.has_unrelated[who] {
            return self.is_of_other_chain(who, on);
        }
        if is_apart(on) || self.stated.needs[on].iter().any(|first| is_apart(*first)) {
            return true;
        }
        // Among tasks of one phase, who runs beside one cannot wait for what waits for that one.
        let is_sibling = |at: usize| self.family.parents[at] == self.family.parents[who];
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
        if self.stated.unrelated.is_empty() || !is_task || self.family.parents[who] != self.family.parents[on]
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
        /// How many tasks are looked at; behind that, waiting is the safe answer.
        const FAR: usize = 32;
        let siblings = |at: usize| {
            let parent = self.family.parents[at];
            self.stated.needs[at].iter().copied().filter(move |on| self.family.parents[*on] == parent)
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
