//! The order that a plan implies where it states none: phases follow each other, stories run side by side, and
//! within a phase a task without `[P]` waits for all tasks before it, one with `[P]` for the last without.
//!
//! Stated edges come first. An implied edge that would close a circle with them is left out, for a phase as few of
//! its tasks as possible.

mod sequence;

use std::{cell::Cell, collections::HashMap};

use super::{
    explicit_order::ExplicitOrder,
    node_parents::NodeParents,
    tree::{NodeKind, Role},
};
use crate::plan::{
    Basis,
    assemble::{DraftNeed, DraftNode},
};

/// A barrier of more tasks than this is closed by its last task, so that two long lists of parallel tasks cost no
/// edge for each pair.
const WIDEST: usize = 64;

/// Implied edges to single tasks of a phase, where the phase as a whole cannot be waited for.
const MOST_PARTS: usize = 50_000;

/// What a plan says about the order of all its tasks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImpliedRules {
    /// It asks for tests first: they come before the implementation also where they are written after it.
    pub(super) tests_first: bool,
    /// It says that tasks with a star do not block the others.
    pub(super) skips_optional: bool,
}

/// Adds the implied edges to drafts whose `needs` hold the stated ones.
pub(super) fn add_implied(
    drafts: &mut [DraftNode],
    roles: &[Role],
    hierarchy: &NodeParents,
    stated: &mut ExplicitOrder,
    rules: ImpliedRules,
) {
    let is_optional =
        if rules.skips_optional { optional(roles, hierarchy) } else { vec![false; roles.len()] };
    let mut order = ImpliedOrder {
        drafts,
        roles,
        hierarchy,
        stated,
        rank: vec![0; roles.len()],
        late: vec![None; roles.len()],
        late_tasks: vec![Vec::new(); roles.len()],
        before: vec![Vec::new(); roles.len()],
        has_unrelated: vec![false; roles.len()],
        is_continued: vec![false; roles.len()],
        has_optional: partly_optional(&is_optional, hierarchy),
        is_optional,
        keeps_tests: !rules.tests_first,
        steps_back: Cell::new(0),
        parts: 0,
    };
    order.keeps_tests |= order.has_tests_behind();
    for (who, _) in &order.stated.unrelated {
        order.has_unrelated[*who] = true;
    }
    for (who, needs) in order.stated.needs.iter().enumerate() {
        let mut beside = needs.iter().filter(|on| hierarchy.parents[**on] == hierarchy.parents[who]);
        if let (Some(on), None) = (beside.next(), beside.next()) {
            order.is_continued[*on] = true;
        }
    }
    let parents: Vec<Option<usize>> = std::iter::once(None)
        .chain((0..roles.len()).filter(|at| !hierarchy.children[*at].is_empty()).map(Some))
        .collect();
    let sequences: Vec<Vec<usize>> = parents.iter().map(|parent| order.sequence(*parent)).collect();
    for sequence in &sequences {
        for (rank, at) in sequence.iter().enumerate() {
            order.rank[*at] = rank;
        }
    }
    order.find_late();
    for sequence in sequences {
        let mut front = WaitState::default();
        for at in sequence {
            match roles[at].kind {
                NodeKind::Task => order.task(at, &mut front),
                NodeKind::Story if !order.stated.is_in_order => order.story(at, &mut front),
                NodeKind::Story | NodeKind::Phase | NodeKind::Last => order.phase(at, &mut front),
            }
        }
    }
}

/// Which nodes are optional: those with a star, and all in them.
fn optional(roles: &[Role], hierarchy: &NodeParents) -> Vec<bool> {
    let mut is_optional: Vec<bool> = roles.iter().map(|role| role.is_optional).collect();
    // Children come after their parents.
    for at in 0..roles.len() {
        is_optional[at] |= hierarchy.parents[at].is_some_and(|parent| is_optional[parent]);
    }
    is_optional
}

/// Which nodes have both optional tasks and others in them.
fn partly_optional(is_optional: &[bool], hierarchy: &NodeParents) -> Vec<bool> {
    let mut has = vec![[false; 2]; is_optional.len()];
    for at in (0..is_optional.len()).rev() {
        if hierarchy.children[at].is_empty() {
            has[at][usize::from(is_optional[at])] = true;
        }
        if let Some(parent) = hierarchy.parents[at] {
            let [core, optional] = has[at];
            has[parent][0] |= core;
            has[parent][1] |= optional;
        }
    }
    has.into_iter().map(|has| has == [true; 2]).collect()
}

struct ImpliedOrder<'o> {
    drafts: &'o mut [DraftNode],
    roles: &'o [Role],
    hierarchy: &'o NodeParents,
    stated: &'o mut ExplicitOrder,
    /// The position of each node among its siblings.
    rank: Vec<usize>,
    /// Tasks that wait for a later phase than their own, with that phase: nothing in their phase waits for them but others that wait for
    /// the same.
    late: Vec<Option<usize>>,
    /// For each node, the late tasks that are done with it.
    late_tasks: Vec<Vec<usize>>,
    /// For each phase, what the phases beside it wait for.
    before: Vec<Vec<usize>>,
    /// Whether the plan says of a node that it need not wait for another.
    has_unrelated: Vec<bool>,
    /// Whether a task of the same phase says that it waits for a task, and for no other of that phase.
    is_continued: Vec<bool>,
    /// Nodes that the others need not wait for, and nodes that hold such.
    is_optional: Vec<bool>,
    has_optional: Vec<bool>,
    /// Whether tests that are written after the implementation stay there.
    keeps_tests: bool,
    /// How many tasks were looked at to find those that may run in parallel.
    steps_back: Cell<usize>,
    /// How many edges to parts of phases there are.
    parts: usize,
}

/// What the next node of a parent may have to wait for.
#[derive(Default)]
struct WaitState {
    /// The last task without `[P]` in this section, with those that the plan lets run in parallel with it.
    serial: Vec<usize>,
    /// Tasks with `[P]` since then.
    loose: Vec<usize>,
    /// What the tasks of this section wait for: the end of the section before.
    barrier: Vec<usize>,
    /// Sections that may run in parallel with the ones after them.
    aside: Vec<usize>,
    section: Option<usize>,
    has_tasks: bool,
    is_implementation: bool,
    /// The last phase that is no story, or the tasks before the first phase.
    base: Vec<usize>,
    /// The stories since then.
    stories: Vec<usize>,
    /// The stories since `base`, by their numbers.
    by_story: HashMap<String, Vec<usize>>,
    /// A later phase that the last tasks wait for, and what the next of them has to wait for besides.
    late: Option<Box<(usize, WaitState)>>,
}

impl ImpliedOrder<'_> {
    /// What has to be done before anything new may begin.
    fn last_tasks(&self, front: &WaitState) -> Vec<usize> {
        let mut tail = self.bypassed_serial_tasks(front);
        tail.extend(&front.loose);
        if tail.is_empty() {
            tail.extend(&front.serial);
        }
        // A task that may run parallel to the section before does not wait for it, so waiting for that task is not enough.
        let is_independent_of = |before: &usize| tail.iter().any(|on| self.is_independent_of(*on, *before));
        let mut beside: Vec<usize> =
            front.barrier.iter().copied().filter(|on| tail.is_empty() || is_independent_of(on)).collect();
        tail.append(&mut beside);
        tail
    }

    /// The last serial tasks, if one with `[P]` after them does not wait for them: it does not stand for them then.
    fn bypassed_serial_tasks(&self, front: &WaitState) -> Vec<usize> {
        let is_free = |on: &usize| {
            self.stated.replaced[*on]
                || front.serial.iter().any(|serial| self.is_independent_of(*on, *serial))
        };
        if front.loose.iter().any(is_free) { front.serial.clone() } else { Vec::new() }
    }

    /// Finds tasks that wait for something in a later phase than their own.
    fn find_late(&mut self) {
        for who in 0..self.roles.len() {
            let mut awaited: Option<usize> = None;
            for on in &self.stated.needs[who] {
                let Some((own, other)) = self.diverging_siblings(who, *on) else { continue };
                if own != who && self.rank[other] > self.rank[own] {
                    let is_later = |awaited: usize| {
                        self.hierarchy.chain(other).count() <= self.hierarchy.chain(awaited).count()
                            && self.rank[other] > self.rank[awaited]
                    };
                    awaited = Some(awaited.filter(|awaited| !is_later(*awaited)).unwrap_or(other));
                }
            }
            if let Some(awaited) = awaited {
                self.late[who] = Some(awaited);
                self.late_tasks[awaited].push(who);
            }
        }
        self.find_late_followers();
    }

    /// A task that waits for a late task is late too, if it comes before the phase that the late task waits for.
    fn find_late_followers(&mut self) {
        let mut followers: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut open: Vec<usize> = (0..self.late.len()).filter(|at| self.late[*at].is_some()).collect();
        if open.is_empty() {
            return;
        }
        for (who, needs) in self.stated.needs.iter().enumerate() {
            needs.iter().for_each(|on| followers.entry(*on).or_default().push(who));
        }
        while let Some(on) = open.pop() {
            for who in followers.remove(&on).unwrap_or_default() {
                let Some(awaited) = self.late[on].filter(|_| self.late[who].is_none()) else { continue };
                let Some((own, other)) = self.diverging_siblings(who, awaited) else { continue };
                if own != who && self.rank[other] > self.rank[own] {
                    self.late[who] = Some(other);
                    self.late_tasks[other].push(who);
                    open.push(who);
                }
            }
        }
    }

    /// The siblings at which the ways up from two nodes meet.
    fn diverging_siblings(&self, who: usize, on: usize) -> Option<(usize, usize)> {
        for own in self.hierarchy.chain(who) {
            let parent = self.hierarchy.parents[own];
            if let Some(other) = self.hierarchy.chain(on).find(|up| self.hierarchy.parents[*up] == parent) {
                return (other != own).then_some((own, other));
            }
        }
        None
    }

    fn add(&mut self, who: usize, on: usize, basis: Basis) {
        for other in self.late_tasks[on].clone() {
            if other != who && !self.hierarchy.are_nested(other, who) {
                self.add_one(who, other, basis);
            }
        }
        let is_core = !self.is_optional[who];
        let is_of_parts = is_core && self.has_optional[on] && self.parts <= MOST_PARTS;
        if !is_of_parts && self.add_one(who, on, basis) || self.parts > MOST_PARTS {
            return;
        }
        for child in self.hierarchy.children[on].clone() {
            if !(is_core && self.is_optional[child]) {
                self.parts += 1;
                self.add(who, child, basis);
            }
        }
    }

    fn add_one(&mut self, who: usize, on: usize, basis: Basis) -> bool {
        let is_added = self.stated.precedence.try_add(who, on);
        if is_added {
            let (place, id) = (self.drafts[who].place, self.drafts[on].task.id.clone());
            self.drafts[who].needs.push(DraftNeed { on: id, place, basis });
        }
        is_added
    }

    /// Lets a node wait for others, and gives those that it does wait for.
    fn add_all(&mut self, who: usize, on: &[usize], basis: Basis) -> Vec<usize> {
        /// How many nodes beside this one are gone back over. After that it waits, which is the safe answer: else a plan
        /// whose tasks all run in parallel with their neighbours would cost an edge for each pair.
        const FAR: usize = 64;
        let mut taken = Vec::with_capacity(on.len());
        let mut seen = std::collections::HashSet::new();
        let mut open: Vec<usize> = on.iter().rev().copied().collect();
        while let Some(on) = open.pop() {
            // Beside a phase that it has nothing to do with, a phase waits for what comes before both.
            if seen.len() + self.before[on].len() <= FAR && self.is_independent_of(who, on) {
                open.extend(self.before[on].iter().filter(|on| seen.insert(**on)));
            } else {
                self.add(who, on, basis);
                taken.push(on);
            }
        }
        taken
    }

    fn task(&mut self, at: usize, front: &mut WaitState) {
        self.enter_section(at, front);
        if !self.stated.replaced[at] {
            self.add_implied_waits(at, front);
        } else if self.stated.by_others.contains(&at) {
            self.wait_for_tests(at, front);
        }
        match self.late[at] {
            None => self.note_done(at, front),
            Some(awaited) => self.late_task(at, awaited, front),
        }
    }

    /// Tasks that wait for the same later phase follow each other as others do.
    fn late_task(&mut self, at: usize, awaited: usize, front: &mut WaitState) {
        let known = front.late.take().filter(|late| late.0 == awaited);
        let mut late = known.unwrap_or_else(|| Box::new((awaited, WaitState::default())));
        if !self.stated.replaced[at] {
            let before = std::mem::take(&mut self.before[at]);
            self.enter_section(at, &mut late.1);
            self.add_implied_waits(at, &late.1);
            self.before[at].extend(before);
        }
        self.note_done(at, &mut late.1);
        front.late = Some(late);
    }

    /// Lets what follows wait for a task.
    fn note_done(&mut self, at: usize, front: &mut WaitState) {
        if self.is_optional[at] {
            return;
        }
        front.has_tasks = true;
        if self.drafts[at].task.parallel {
            front.loose.push(at);
        } else if self.stated.replaced[at] {
            // It need not wait for everything before it, so what follows it has to.
            front.serial.append(&mut front.loose);
            front.serial.push(at);
        } else {
            let (serial, loose) = (std::mem::take(&mut front.serial), std::mem::take(&mut front.loose));
            front.serial =
                serial.into_iter().chain(loose).filter(|on| self.is_independent_of(at, *on)).collect();
            if front.serial.len() > WIDEST {
                // So many tasks in parallel are closed by this one, whatever the plan says: waiting is safe, and an
                // edge for each pair would cost too much.
                for on in std::mem::take(&mut front.serial) {
                    self.add(at, on, Basis::Serial);
                }
            }
            front.serial.push(at);
        }
    }

    fn add_implied_waits(&mut self, at: usize, front: &WaitState) {
        let is_parallel = self.drafts[at].task.parallel;
        if !(is_parallel || front.loose.is_empty() && front.serial.is_empty()) {
            let tail = self.last_tasks(front);
            self.before[at] = self.add_all(at, &tail, Basis::Serial);
            return;
        }
        if !front.serial.is_empty() {
            self.before[at] = self.add_all(at, &front.serial, Basis::Parallel);
            return;
        }
        let has_tests = front.barrier.iter().any(|on| self.roles[*on].section.is_tests);
        let basis = if front.is_implementation && has_tests { Basis::TestsFirst } else { Basis::Section };
        self.before[at] = self.add_all(at, &front.barrier, basis);
        if front.barrier.is_empty() {
            self.wait_for_phases(at, front, Basis::Phase);
        }
    }

    /// Where the plan asks for tests first, an implementation that waits only for tasks of other phases comes after the tests of
    /// its own all the same.
    fn wait_for_tests(&mut self, at: usize, front: &WaitState) {
        let is_sibling = |on: &usize| self.hierarchy.parents[*on] == self.hierarchy.parents[at];
        let needs = &self.stated.needs[at];
        let is_of_others = !needs.is_empty() && !needs.iter().any(is_sibling);
        let is_behind_tests = front.barrier.iter().all(|on| self.roles[*on].section.is_tests);
        if front.is_implementation && !self.keeps_tests && is_of_others && is_behind_tests {
            self.add_all(at, &front.barrier, Basis::TestsFirst);
        }
    }

    /// A new section of a phase waits for everything before it, unless it says otherwise.
    fn enter_section(&mut self, at: usize, front: &mut WaitState) {
        let section = &self.roles[at].section;
        if front.section == section.number && front.has_tasks {
            return;
        }
        let tail = if front.has_tasks { self.last_tasks(front) } else { Vec::new() };
        front.section = section.number;
        front.is_implementation = section.is_implementation;
        if section.is_apart && front.has_tasks {
            let barrier = std::mem::take(&mut front.barrier);
            front.aside.extend(tail);
            front.barrier = barrier;
        } else if front.has_tasks {
            front.barrier = tail;
            front.barrier.append(&mut front.aside);
            self.narrow(&mut front.barrier);
        }
        front.serial.clear();
        front.loose.clear();
    }

    /// Closes a wide barrier by its last task.
    fn narrow(&mut self, barrier: &mut Vec<usize>) {
        if barrier.len() > WIDEST
            && let Some(last) = barrier.pop()
        {
            let others = std::mem::replace(barrier, vec![last]);
            self.add_all(last, &others, Basis::Section);
        }
    }

    /// All phases so far; where there are stories, the phase before them is waited for by them.
    fn wait_for_phases(&mut self, at: usize, front: &WaitState, basis: Basis) {
        let has_free = front.stories.iter().any(|story| self.stated.replaced[*story]);
        if front.stories.is_empty() || has_free {
            self.add_all(at, &front.base, basis);
        }
        self.add_all(at, &front.stories, basis);
    }

    fn story(&mut self, at: usize, front: &mut WaitState) {
        self.close_tasks(front);
        self.before[at].clone_from(&front.base);
        if !self.stated.replaced[at] {
            self.add_all(at, &front.base, Basis::Story);
        }
        let mut before = self.same_story(at, front);
        // "Phase 8 (US5) depends on Phase 6" says all of Phase 8, also where the tasks of Phase 7 have the tag of US5.
        if self.stated.replaced[at] && self.stated.numbered.contains(&at) {
            before.retain(|on| !self.roles[at].is_tagged && !self.roles[*on].is_tagged);
        }
        self.add_all(at, &before, Basis::Phase);
        front.stories.push(at);
        for story in &self.roles[at].stories {
            front.by_story.entry(story.clone()).or_default().push(at);
        }
    }

    /// A story that has several phases goes through them in order. The last one stands for those before it, so that a
    /// story of a thousand phases costs no edge for each pair; one that need not wait for them does not.
    fn same_story(&self, at: usize, front: &WaitState) -> Vec<usize> {
        /// How many phases without implied order are gone through.
        const MAX_PHASES: usize = 64;
        let mut before = Vec::new();
        for phases in self.roles[at].stories.iter().filter_map(|story| front.by_story.get(story)) {
            let is_last = |phase: &usize| !self.stated.replaced[*phase] && !self.has_unrelated[*phase];
            let end =
                phases.iter().rev().take(MAX_PHASES).position(is_last).map_or(MAX_PHASES, |last| last + 1);
            before.extend(phases.iter().rev().take(end));
        }
        before.sort_unstable();
        before.dedup();
        before
    }

    fn phase(&mut self, at: usize, front: &mut WaitState) {
        self.close_tasks(front);
        let is_last = self.roles[at].kind == NodeKind::Last;
        let ahead: Vec<usize> = front.base.iter().chain(&front.stories).copied().collect();
        self.before[at].clone_from(&ahead);
        if !self.stated.replaced[at] {
            let beside: Vec<usize> =
                ahead.into_iter().filter(|on| self.stated.unrelated.contains(&(at, *on))).collect();
            self.wait_for_phases(at, front, if is_last { Basis::Last } else { Basis::Phase });
            *front = WaitState { base: beside, ..WaitState::default() };
            front.base.push(at);
            return;
        }
        // "Polish depends on US1 and US2": the phases before the stories come first too, also where the stories wait only for a part of them.
        if is_last && !front.stories.is_empty() {
            self.add_all(at, &front.base, Basis::Last);
        }
        // It need not wait for everything before it, so what follows it has to.
        let mut base: Vec<usize> = front.base.drain(..).chain(front.stories.drain(..)).collect();
        base.retain(|before| !self.stated.needs[at].contains(before));
        base.push(at);
        *front = WaitState { base, ..WaitState::default() };
    }

    /// Tasks between phases count as a phase.
    fn close_tasks(&mut self, front: &mut WaitState) {
        if front.has_tasks {
            let mut base = self.last_tasks(front);
            base.append(&mut front.aside);
            self.narrow(&mut base);
            *front = WaitState { base, ..WaitState::default() };
        }
    }
}
