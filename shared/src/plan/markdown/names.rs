//! The names of tasks, phases and stories that sentences use, and lists of them.

use super::{
    Offset,
    name_reader::NameReader,
    tokens::{Piece, Token, is_phase_word, piece_at, word_at},
};

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
    /// Everything after the task or phase that the sentence is about.
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
    /// Where a group of members begins after the first: in "T001+T002, T003+T004" the second begins at 2.
    pub(super) groups: Vec<usize>,
}

impl<'a> List<'a> {
    /// A list that is one member, or that is put together from others.
    pub(super) fn new(members: Vec<PlacedName<'a>>, first: usize, end: usize) -> Self {
        Self { members, first, last: first, end, is_comma_list: false, groups: Vec::new() }
    }

    /// The groups of a list that has some of more than one member.
    pub(super) fn grouped(&self) -> Option<Vec<Vec<PlacedName<'a>>>> {
        const MAX_GROUPS: usize = 16;
        let is_grouped =
            (1..MAX_GROUPS).contains(&self.groups.len()) && self.members.len() > self.groups.len() + 1;
        let starts = std::iter::once(0).chain(self.groups.iter().copied());
        let ends = self.groups.iter().copied().chain([self.members.len()]);
        is_grouped.then(|| starts.zip(ends).map(|(start, end)| self.members[start..end].to_vec()).collect())
    }
}

impl NameReader<'_> {
    /// "the API phase", "la fase de API": a phase by words that only its title has.
    pub(super) fn phase_called_at(&self, clause: &[Token<'_>], at: usize) -> Option<(usize, usize)> {
        const MOST_WORDS: usize = 3;
        const FIRST: [&str; 5] = ["fase", "etapa", "faza", "фаза", "этап"];
        const OF: [&str; 7] = ["de", "del", "da", "do", "des", "du", "von"];
        const NO_NAMES: [&str; 24] = [
            "this", "that", "each", "every", "any", "the", "previous", "prior", "next", "same", "first",
            "last", "current", "later", "earlier", "other", "another", "one", "a", "an", "per", "all",
            "both", "phase",
        ];
        let word = |at: usize| word_at(clause, at).map(str::to_lowercase);
        let is = |at: usize, words: &[&str]| word(at).is_some_and(|word| words.contains(&word.as_str()));
        let is_labelled = |at: usize| matches!(piece_at(clause, at), Some(Piece::Phase(_)));
        let names = |start: usize, len: usize| -> Option<usize> {
            let words: Vec<String> = (start..start + len).map(word).collect::<Option<_>>()?;
            let is_name = |word: &String| !NO_NAMES.contains(&word.as_str()) && !is_phase_word(word);
            words.iter().all(is_name).then(|| self.known.phase_with_words(&words)).flatten()
        };
        if is(at, &FIRST) {
            let start = at + 1 + usize::from(is(at + 1, &OF));
            return (1..=MOST_WORDS).rev().find_map(|len| Some((names(start, len)?, start + len)));
        }
        let noun = (1..=MOST_WORDS).find(|len| word(at + len).is_some_and(|word| is_phase_word(&word)))?;
        let node = names(at, noun).filter(|_| !is_labelled(at + noun + 1))?;
        Some((node, at + noun + 1))
    }
}

/// Whether two lists name the same, wherever they do.
pub(super) fn same_names(one: &[PlacedName<'_>], other: &[PlacedName<'_>]) -> bool {
    one.iter().map(|(name, _)| name).eq(other.iter().map(|(name, _)| name))
}

/// Whether a name is that of a task or of a range of tasks.
pub(super) fn is_of_tasks((name, _): &PlacedName<'_>) -> bool {
    matches!(name, Name::Task(_) | Name::Range(..))
}
