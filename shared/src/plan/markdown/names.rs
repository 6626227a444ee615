//! Names of tasks, phases and stories in sentences, and lists of them.

use super::Offset;

/// A task, a phase or several of them, as a sentence names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Name<'a> {
    Task(&'a str),
    /// From one task to another, both included.
    Range(&'a str, &'a str),
    Phase(&'a str),
    Phases(&'a str, &'a str),
    /// "Phase 3+".
    PhasesFrom(&'a str),
    Story(&'a str),
    Stories(&'a str, &'a str),
    AllStories,
    /// The stories of a priority, such as `P1`.
    Priority(&'a str),
    /// All other phases than the one that the sentence is about.
    AllOthers,
    /// All phases before the one that the sentence is about.
    AllBefore,
    /// Everything behind the task or phase that the sentence is about.
    AllAfter,
    /// The tests of the phase that the sentence is about.
    Tests,
    /// A phase by its title, by position.
    Node(usize),
    /// A phase by what its title counts, as "Module 2" of "Phase 3: Module 2 - Physics".
    Part(&'a str, &'a str),
    /// From one of these to another.
    Parts(&'a str, &'a str, &'a str),
    /// Tasks by a name that the plan gives them in brackets or in a heading that counts, by its number.
    Group(usize),
}

/// A name with its place.
pub(super) type PlacedName<'a> = (Name<'a>, Offset);

/// A list of tasks and phases.
#[derive(Debug, Clone)]
pub(super) struct List<'a> {
    pub(super) members: Vec<PlacedName<'a>>,
    /// Where its first member begins.
    pub(super) first: usize,
    /// Where its last member begins.
    pub(super) last: usize,
    pub(super) end: usize,
    /// Whether its members are parted by commas only.
    pub(super) is_comma_list: bool,
    /// Where a group of members begins behind the first: in "T001+T002, T003+T004" the second begins at 2.
    pub(super) groups: Vec<usize>,
}

impl<'a> List<'a> {
    /// A list that is one member, or that is put together from others.
    pub(super) fn new(members: Vec<PlacedName<'a>>, first: usize, end: usize) -> Self {
        Self { members, first, last: first, end, is_comma_list: false, groups: Vec::new() }
    }

    /// The groups of a list that has some of more than one member.
    pub(super) fn grouped(&self) -> Option<Vec<Vec<PlacedName<'a>>>> {
        const MOST: usize = 16;
        let is_grouped = (1..MOST).contains(&self.groups.len()) && self.members.len() > self.groups.len() + 1;
        let starts = std::iter::once(0).chain(self.groups.iter().copied());
        let ends = self.groups.iter().copied().chain([self.members.len()]);
        is_grouped.then(|| starts.zip(ends).map(|(start, end)| self.members[start..end].to_vec()).collect())
    }
}
