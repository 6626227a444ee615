//! Edges that nobody wrote down: phases follow each other, stories go side by side, and within a phase each
//! task waits for the last one before it that is not marked as parallel.
//!
//! What is written down goes first. A task that says it waits for something further down the file leaves the
//! order of its phase: nothing waits for it unless that is said. So the two kinds of edges never make a circle.

use std::collections::HashMap;

use super::{needs::Need, tree::Role};
use crate::{
    name::TaskId,
    plan::{
        assemble::{Draft, Place},
        graph::Shape,
    },
};

/// Adds the unwritten edges to drafts whose `needs` hold the written ones. Gives the positions of the tasks
/// that left the order of their phase.
pub(super) fn add_default_needs(drafts: &mut [Draft], roles: &[Role]) -> Vec<usize> {
    let family = Family::new(drafts);
    // Where the written edges go round in a circle there is nothing to add: the circle will be told.
    let Some(latest) = latest_needs(drafts, &family) else { return Vec::new() };
    let is_late: Vec<bool> = latest.iter().enumerate().map(|(at, latest)| *latest > at).collect();
    let added = unwritten(drafts, roles, &family, &is_late);
    let reach = Reach::new(&family, &latest, &is_late);
    for (who, on) in added {
        reach.add(drafts, &family, (who, on));
    }
    (0..drafts.len()).filter(|at| is_late[*at] && roles[*at] == Role::Task).collect()
}

/// Whether some edges, together with the unwritten ones, make no circle.
pub(super) fn agrees(drafts: &[Draft], roles: &[Role], needs: &[Need]) -> bool {
    let family = Family::new(drafts);
    let mut all = unwritten(drafts, roles, &family, &vec![false; drafts.len()]);
    all.extend(needs.iter().map(|need| (need.who, need.on)));
    family.shape(all).sort().is_ok()
}

/// The unwritten edges of all tasks but the late ones.
fn unwritten(drafts: &[Draft], roles: &[Role], family: &Family, is_late: &[bool]) -> Vec<(usize, usize)> {
    let mut added = Vec::new();
    for siblings in family.children.iter().chain([&family.roots]) {
        let mut chain = Chain { roles, drafts, is_late, added: &mut added, front: Front::default() };
        siblings.iter().for_each(|at| chain.follow(*at));
    }
    added
}

/// How far down the file the late tasks of each node reach.
struct Reach {
    /// The last position that a late task at or below a node waits for; 0 if there is none.
    furthest: Vec<usize>,
    /// The last leaf at or below a node.
    last: Vec<usize>,
}

impl Reach {
    fn new(family: &Family, latest: &[usize], is_late: &[bool]) -> Self {
        let mut last: Vec<usize> = (0..latest.len()).collect();
        let mut furthest: Vec<usize> =
            latest.iter().zip(is_late).map(|(latest, is_late)| if *is_late { *latest } else { 0 }).collect();
        for at in (0..last.len()).rev() {
            if let Some(parent) = family.parents[at] {
                last[parent] = last[parent].max(last[at]);
                furthest[parent] = furthest[parent].max(furthest[at]);
            }
        }
        Self { furthest, last }
    }

    /// Adds an edge. Where tasks of a phase wait for something behind that phase, it is waited for without them.
    fn add(&self, drafts: &mut [Draft], family: &Family, (who, on): (usize, usize)) {
        let place = drafts[who].place;
        let mut open = vec![on];
        while let Some(at) = open.pop() {
            if self.furthest[at] <= self.last[on] {
                let id = drafts[at].task.id.clone();
                drafts[who].needs.push((id, place));
            } else {
                open.extend(family.children[at].iter().rev());
            }
        }
    }
}

/// Who belongs to whom, by position.
struct Family {
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    roots: Vec<usize>,
    index: HashMap<TaskId, usize>,
}

impl Family {
    fn new(drafts: &[Draft]) -> Self {
        let mut index = HashMap::with_capacity(drafts.len());
        for (at, draft) in drafts.iter().enumerate() {
            index.entry(draft.task.id.clone()).or_insert(at);
        }
        let parent = |draft: &Draft| draft.task.parent.as_ref().and_then(|id| index.get(id).copied());
        let parents: Vec<Option<usize>> = drafts.iter().map(parent).collect();
        let mut children = vec![Vec::new(); drafts.len()];
        let mut roots = Vec::new();
        for (at, parent) in parents.iter().enumerate() {
            parent.map_or(&mut roots, |parent| &mut children[parent]).push(at);
        }
        Self { parents, children, roots, index }
    }

    fn shape(&self, needs: Vec<(usize, usize)>) -> Shape {
        let leaves = self.children.iter().map(Vec::is_empty).collect();
        Shape { parents: self.parents.clone(), needs, leaves }
    }
}

/// For each node, the last position among all that it waits for by written edges, directly or not.
fn latest_needs(drafts: &[Draft], family: &Family) -> Option<Vec<usize>> {
    let position = |(id, _): &(TaskId, Place)| family.index.get(id).copied();
    let of = |(at, draft): (usize, &Draft)| {
        draft.needs.iter().filter_map(position).map(move |on| (at, on)).collect()
    };
    let needs: Vec<(usize, usize)> =
        drafts.iter().enumerate().flat_map(|draft| -> Vec<_> { of(draft) }).collect();
    // Most files are written in their order; then nobody is late.
    if needs.iter().all(|(who, on)| on < who && family.children[*on].is_empty()) {
        return Some(vec![0; drafts.len()]);
    }
    Some(family.shape(needs).sort().ok()?.fold(|leaf, latest| latest.max(leaf)))
}

/// Goes through the nodes of one parent in their order, and notes what each waits for.
struct Chain<'c> {
    roles: &'c [Role],
    drafts: &'c [Draft],
    is_late: &'c [bool],
    added: &'c mut Vec<(usize, usize)>,
    front: Front,
}

/// What the next node of a parent may have to wait for.
#[derive(Default)]
struct Front {
    /// The last task that is not parallel, since the last phase.
    serial: Option<usize>,
    /// Tasks since the last phase.
    loose: Vec<usize>,
    /// The last phase that is no story, or the tasks before the first phase.
    base: Vec<usize>,
    /// The stories since then.
    stories: Vec<usize>,
}

impl Chain<'_> {
    fn follow(&mut self, at: usize) {
        if self.is_late[at] {
            return;
        }
        match &self.roles[at] {
            Role::Task => self.task(at),
            Role::Phase { is_story: true, .. } => self.story(at),
            Role::Phase { is_story: false, .. } => self.phase(at),
        }
    }

    fn task(&mut self, at: usize) {
        match self.front.serial {
            Some(before) => self.added.push((at, before)),
            None => self.wait_for_phases(at),
        }
        if !self.drafts[at].task.parallel {
            self.front.serial = Some(at);
        }
        self.front.loose.push(at);
    }

    /// All phases so far; where there are stories, the phase before them is waited for by them.
    fn wait_for_phases(&mut self, at: usize) {
        let before = if self.front.stories.is_empty() { &self.front.base } else { &self.front.stories };
        self.added.extend(before.iter().map(|before| (at, *before)));
    }

    fn story(&mut self, at: usize) {
        self.settle_loose();
        self.added.extend(self.front.base.iter().map(|before| (at, *before)));
        self.front.stories.push(at);
    }

    fn phase(&mut self, at: usize) {
        self.settle_loose();
        self.wait_for_phases(at);
        self.front = Front { base: vec![at], ..Front::default() };
    }

    /// Tasks between phases count as a phase of their own.
    fn settle_loose(&mut self) {
        self.front.serial = None;
        if !self.front.loose.is_empty() {
            self.front.base = std::mem::take(&mut self.front.loose);
            self.front.stories.clear();
        }
    }
}
